//! The dashboard: files that are part of the program, and what browsers are told about every answer.
//!
//! They hold no data, so whoever comes may have them: a page must be there before a token can be entered.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, Response};
use http_body_util::Full;

use super::Answer;

macro_rules! files {
    ($($path:literal: $kind:ident,)*) => {
        const FILES: &[(&str, &str, &str)] = &[$(($path, $kind, include_str!(concat!("dashboard/", $path)))),*];
    };
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

files! {
    "index.html": HTML,
    "page.css": STYLE,
    "tiles.css": STYLE,
    "detail.css": STYLE,
    "icon.svg": IMAGE,
    "app.js": SCRIPT,
    "actions.js": SCRIPT,
    "detail.js": SCRIPT,
    "grid.js": SCRIPT,
    "history.js": SCRIPT,
    "states.js": SCRIPT,
    "store.js": SCRIPT,
    "stream.js": SCRIPT,
    "text.js": SCRIPT,
    "tile.js": SCRIPT,
}

/// The page itself, or one of its parts.
pub(super) fn file(path: &[&str]) -> Option<Answer> {
    let wanted = match path {
        [""] => "index.html",
        ["dashboard", name] => name,
        _ => return None,
    };
    let (_, kind, text) = FILES.iter().find(|(name, ..)| *name == wanted)?;
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Some(answer)
}

/// Scripts and styles only from the listener itself, none inline, and no text that turns into markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Tells browsers to keep no copy, to run nothing but the dashboard's own scripts, and to show it in nobody's frame.
pub(super) fn harden(headers: &mut HeaderMap) {
    let fixed = [
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_there_and_nothing_comes_from_elsewhere() {
        let mut named = 0;
        for (file, _, text) in FILES {
            let quoted =
                text.split(['"', '\'']).filter(|part| ["dashboard/", "./"].iter().any(|at| part.starts_with(at)));
            for part in quoted {
                let name = part.trim_start_matches("dashboard/").trim_start_matches("./");
                assert!(super::file(&["dashboard", name]).is_some(), "{file} names {part}");
                named += 1;
            }
            // The namespace of drawings is a name, not a place.
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("//cdn"), "{file}");
            assert!(!text.contains("innerHTML") && !text.contains("localStorage"), "{file}");
        }
        assert!(named > 20, "{named}");
        assert!(super::file(&[""]).is_some() && super::file(&["dashboard", ".."]).is_none());
    }
}
