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

/// Bytes that an answer's headers weigh, roughly.
const HEADERS: u32 = 512;

pub(super) fn store(most_bytes: u64) -> LastGood<Kept> {
    let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    LastGood::weighed(most_bytes, move |name, kept: &Kept| {
        length(name.len()).saturating_add(length(kept.body.len())).saturating_add(HEADERS)
    })
}

/// The name under which a request's answer may be kept; none if it may be meant for this caller only.
pub(super) fn name(target: &impl std::fmt::Debug, request: &Parts) -> Option<String> {
    let has = |name: HeaderName| request.headers.contains_key(name);
    let is_private = has(header::AUTHORIZATION) || has(header::COOKIE) || has(header::RANGE);
    if request.method != Method::GET || is_private || forbids(&request.headers) {
        return None;
    }
    let host = request.headers.get(header::HOST).map_or(&b""[..], HeaderValue::as_bytes).escape_ascii();
    // What the answer may depend on, whatever it says: languages and forms.
    let accepts = [header::ACCEPT, header::ACCEPT_LANGUAGE, header::ACCEPT_ENCODING]
        .map(|name| request.headers.get(name).map_or(&b""[..], HeaderValue::as_bytes).escape_ascii().to_string());
    Some(format!("{target:?} {host} {} {accepts:?}", request.uri))
}

/// Whether an answer is good, and good for anybody.
pub(super) fn may_keep(status: StatusCode, headers: &HeaderMap) -> bool {
    let varies = headers.get_all(header::VARY).iter().any(|vary| !varies_as_named(vary));
    // What stood in for an answer further on is none.
    let is_fallback = headers.contains_key(FALLBACK_HEADER);
    let is_own = headers.contains_key(header::SET_COOKIE) || varies || forbids(headers);
    status == StatusCode::OK && !is_fallback && !is_own
}

/// Whether it varies by nothing that isn't in the name.
fn varies_as_named(vary: &HeaderValue) -> bool {
    let named = ["accept", "accept-language", "accept-encoding", "host"];
    let names = |text: &str| text.split(',').all(|name| named.contains(&&*name.trim().to_ascii_lowercase()));
    vary.to_str().is_ok_and(names)
}

fn forbids(headers: &HeaderMap) -> bool {
    let control = headers.get_all(header::CACHE_CONTROL);
    control.iter().any(|value| {
        let text = value.to_str().unwrap_or("no-store").to_ascii_lowercase();
        text.split(',').any(|word| matches!(word.split('=').next().unwrap_or_default().trim(), "no-store" | "private"))
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
        for private in
            [("authorization", "x"), ("cookie", "a=b"), ("range", "bytes=1-2"), ("cache-control", "no-store")]
        {
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

        assert!(may_keep(StatusCode::OK, &HeaderMap::new()));
        assert!(may_keep(StatusCode::OK, &headers("cache-control", "max-age=0")));
        assert!(may_keep(StatusCode::OK, &headers("vary", "Accept, accept-encoding")));
        assert!(!may_keep(StatusCode::NOT_FOUND, &HeaderMap::new()));
        for (name, value) in [
            ("cache-control", "max-age=3, Private"),
            ("cache-control", "no-store"),
            ("cache-control", "private=\"x\""),
            ("set-cookie", "a=b"),
            ("vary", "accept, x-user"),
            ("vary", "*"),
            ("x-portcullis-fallback", "value"),
        ] {
            assert!(!may_keep(StatusCode::OK, &headers(name, value)), "{name}: {value}");
        }
    }
}
