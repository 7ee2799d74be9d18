//! Which answers may be kept for others, and under which name.

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};

use bytes::Bytes;

use super::super::FALLBACK_HEADER;
use super::super::last_good::LastGood;

/// A whole answer.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

pub(super) fn store(most_bytes: u64) -> LastGood<Kept> {
    LastGood::weighed(most_bytes, |name, kept: &Kept| u32::try_from(weight(name, kept)).unwrap_or(u32::MAX))
}

/// The bytes of name, headers and body.
fn weight(name: &str, kept: &Kept) -> usize {
    let headers: usize = kept.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    name.len() + headers + kept.body.len()
}

/// The name under which a request's answer may be kept; none if it may be meant for this caller only.
pub(super) fn name(target: &impl std::fmt::Debug, request: &Parts) -> Option<String> {
    let is_private = request.headers.keys().any(says_who_asks) || request.headers.contains_key(header::RANGE);
    if request.method != Method::GET || is_private || forbids(&request.headers, &NOT_FOR_ALL) {
        return None;
    }
    let host = request.headers.get(header::HOST).map_or(&b""[..], HeaderValue::as_bytes).escape_ascii();
    // What the answer may depend on, whatever it says: languages and forms.
    let accepts = [header::ACCEPT, header::ACCEPT_LANGUAGE, header::ACCEPT_ENCODING].map(|name| {
        request.headers.get_all(name).iter().map(|line| line.as_bytes().escape_ascii().to_string()).collect()
    });
    let accepts: [Vec<String>; 3] = accepts;
    Some(format!("{target:?} {host} {} {accepts:?}", request.uri))
}

/// Whether a header tells callers from each other: `Authorization`, `X-Api-Key`, `X-Auth-Request-User`, `X-Session-Id` and their like. Better
/// a caller too many without a last good answer than one who gets another's.
fn says_who_asks(name: &HeaderName) -> bool {
    // Names of headers are lower case here.
    ["auth", "cookie", "token", "session", "api-key", "apikey"].iter().any(|word| name.as_str().contains(word))
}

/// Whether an answer is good, and good for anybody.
pub(super) fn may_keep(status: StatusCode, headers: &HeaderMap) -> bool {
    let varies = headers.get_all(header::VARY).iter().any(|vary| !varies_as_named(vary));
    // What stood in for an answer further on is none.
    let is_fallback = headers.contains_key(FALLBACK_HEADER);
    let is_own = headers.contains_key(header::SET_COOKIE)
        || varies
        || forbids(headers, &NOT_FOR_ALL)
        || forbids(headers, &NOT_STALE);
    status == StatusCode::OK && !is_fallback && !is_own
}

/// Whether it varies by nothing that isn't in the name.
fn varies_as_named(vary: &HeaderValue) -> bool {
    let named = ["accept", "accept-language", "accept-encoding", "host"];
    let names = |text: &str| text.split(',').all(|name| named.contains(&&*name.trim().to_ascii_lowercase()));
    vary.to_str().is_ok_and(names)
}

/// Directives of requests and answers that speak against keeping.
const NOT_FOR_ALL: [&str; 2] = ["no-store", "private"];

/// Directives of answers that may be given while they are fresh only (RFC 9111, 4.2.4): `s-maxage` means `proxy-revalidate`, too.
const NOT_STALE: [&str; 4] = ["no-cache", "must-revalidate", "proxy-revalidate", "s-maxage"];

fn forbids(headers: &HeaderMap, directives: &[&str]) -> bool {
    let control = headers.get_all(header::CACHE_CONTROL);
    control.iter().any(|value| {
        let text = value.to_str().unwrap_or("no-store").to_ascii_lowercase();
        text.split(',').any(|word| directives.contains(&word.split('=').next().unwrap_or_default().trim()))
    })
}

/// The headers that go with a kept body: those of one connection and one moment don't.
pub(super) fn lasting<B>(response: &Response<B>) -> HeaderMap {
    let mut headers = response.headers().clone();
    for name in
        [header::CONNECTION, header::TRANSFER_ENCODING, header::TRAILER, header::UPGRADE, header::DATE, header::AGE]
    {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(fields: &[(&str, &str)]) -> Parts {
        let mut builder = http::Request::get("http://host/path?q=1");
        for (name, value) in fields {
            builder = builder.header(*name, *value);
        }
        builder.body(()).unwrap().into_parts().0
    }

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        [(HeaderName::from_static(name), HeaderValue::from_static(value))].into_iter().collect()
    }

    #[test]
    fn what_may_be_meant_for_one_caller_is_not_kept_for_others() {
        assert!(name(&"t", &request(&[])).is_some());
        for private in [
            ("authorization", "x"),
            ("proxy-authorization", "x"),
            ("x-api-key", "x"),
            ("x-csrf-token", "x"),
            ("x-auth-request-user", "x"),
            ("x-session-id", "x"),
            ("cookie", "a=b"),
            ("range", "bytes=1-2"),
            ("cache-control", "no-store"),
        ] {
            assert_eq!(name(&"t", &request(&[private])), None, "{private:?}");
        }
        let mut post = request(&[]);
        post.method = Method::POST;
        assert_eq!(name(&"t", &post), None);
        assert_ne!(name(&"t", &request(&[])), name(&"u", &request(&[])));
        assert_ne!(
            name(&"t", &request(&[("accept-language", "de")])),
            name(&"t", &request(&[("accept-language", "en")]))
        );
        // All lines of a header, and where each ends.
        let languages = |lines: &[&str]| {
            name(&"t", &request(&lines.iter().map(|line| ("accept-language", *line)).collect::<Vec<_>>()))
        };
        assert_ne!(languages(&["de", "en"]), languages(&["de", "fr"]));
        assert_ne!(languages(&["de", "en"]), languages(&["de"]));
        // Who asks for a fresh answer gets an old one if there is no other.
        assert!(name(&"t", &request(&[("cache-control", "no-cache")])).is_some());

        assert!(may_keep(StatusCode::OK, &HeaderMap::new()));
        assert!(may_keep(StatusCode::OK, &headers("cache-control", "max-age=0")));
        assert!(may_keep(StatusCode::OK, &headers("vary", "Accept, accept-encoding")));
        assert!(!may_keep(StatusCode::NOT_FOUND, &HeaderMap::new()));
        for (name, value) in [
            ("cache-control", "max-age=3, Private"),
            ("cache-control", "no-store"),
            ("cache-control", "private=\"x\""),
            ("cache-control", "no-cache"),
            ("cache-control", "max-age=3, must-revalidate"),
            ("cache-control", "Proxy-Revalidate"),
            ("cache-control", "s-maxage=60"),
            ("set-cookie", "a=b"),
            ("vary", "accept, x-user"),
            ("vary", "*"),
            ("x-portcullis-fallback", "value"),
        ] {
            assert!(!may_keep(StatusCode::OK, &headers(name, value)), "{name}: {value}");
        }
    }
    #[test]
    fn an_answer_weighs_what_its_headers_do() {
        let mut kept = Kept { headers: headers("link", "<a>; rel=next"), body: Bytes::from_static(b"body") };
        assert_eq!(weight("name", &kept), 4 + 4 + 13 + 4);
        kept.headers.append("link", HeaderValue::try_from("x".repeat(8_000)).unwrap());
        assert_eq!(weight("name", &kept), 4 + 4 + 13 + 4 + 8_000 + 4);
    }
}
