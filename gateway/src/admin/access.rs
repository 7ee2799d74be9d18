//! Who may look and who may act.
//!
//! At home, that is on a listener on loopback that is asked for by a name of this machine, anyone may look, and act unless a token is set.
//! Everybody else needs the token for either: names and upstreams are no stranger's business. Nobody but the dashboard itself acts from
//! within a browser, whatever else it has: see [`is_foreign_page`].

use std::net::IpAddr;

use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use http::uri::Authority;
use http::{Method, Request, StatusCode};
use subtle::ConstantTimeEq;

use super::{Answer, error};
use crate::headers::{names_one_host, requested_host};

static FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
static FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// Refuses those who may not; whether the others gave the token.
#[expect(clippy::result_large_err, reason = "the refusal is the answer")]
pub(super) fn check<B>(request: &Request<B>, on_loopback: bool, token: Option<&str>) -> Result<bool, Answer> {
    if !names_one_host(request) {
        return Err(error(StatusCode::BAD_REQUEST, "one host must be named"));
    }
    let host = requested_host(request);
    let reads = request.method() != Method::POST;
    if is_foreign_page(request.headers(), host.as_ref(), reads) {
        return Err(error(StatusCode::FORBIDDEN, "no other web page may ask; the dashboard is at /"));
    }
    let headers = request.headers();
    if token.is_some_and(|token| gives(headers, token)) {
        return Ok(true);
    }
    // A page that has its own name point to this machine is not foreign to what it asks, but its name tells.
    let at_home = on_loopback && host.as_ref().is_none_or(is_this_machine);
    match token {
        None if at_home => Ok(false),
        Some(_) if at_home && reads => Ok(false),
        Some(_) => {
            let mut refusal = error(StatusCode::UNAUTHORIZED, "a bearer token is needed");
            refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            Err(refusal)
        }
        None => Err(error(
            StatusCode::FORBIDDEN,
            "ask for localhost or 127.0.0.1; by another name only with admin_token set",
        )),
    }
}

/// Whether another web page than the dashboard asks. Browsers say where a POST comes from, and, to places that they trust, where everything
/// comes from. A link that somebody follows to read is let pass: the page that has it doesn't see what comes.
fn is_foreign_page(headers: &HeaderMap, host: Option<&HeaderValue>, reads: bool) -> bool {
    let is_own = |origin: &HeaderValue| {
        let origin = origin.as_bytes();
        let authority = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
        authority.zip(host).is_some_and(|(authority, host)| authority.eq_ignore_ascii_case(host.as_bytes()))
    };
    if !headers.get_all(ORIGIN).iter().all(is_own) {
        return true;
    }
    let is_followed = reads && headers.get(&FETCH_MODE).is_some_and(|mode| mode == "navigate");
    let is_near = |site: &HeaderValue| site == "same-origin" || site == "none" || is_followed;
    !headers.get_all(&FETCH_SITE).iter().all(is_near)
}

/// Whether a name, with or without a port, can only mean the machine itself: whoever owns a domain can't make it mean that.
fn is_this_machine(host: &HeaderValue) -> bool {
    let Some(host) = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) else {
        return false;
    };
    let name = host.host();
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
    address.parse().map_or_else(|_| name.eq_ignore_ascii_case("localhost"), is_loopback)
}

/// Compares in constant time: how long a refusal takes must not tell how much of a guess was right.
fn gives(headers: &HeaderMap, token: &str) -> bool {
    let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).and_then(bearer);
    !token.is_empty() && given.is_some_and(|given| bool::from(given.ct_eq(token.as_bytes())))
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Option<&str> = Some("0123456789abcdef");

    /// What becomes of a request with these headers beside `host`: whether the token was given, or the status of the refusal.
    fn asked(
        method: &Method,
        host: &str,
        headers: &[(&'static str, &str)],
        at: (bool, Option<&str>),
    ) -> Result<bool, u16> {
        let mut request = Request::builder().method(method).uri("/targets").header("host", host);
        for &(name, value) in headers {
            request = request.header(name, value);
        }
        check(&request.body(()).unwrap(), at.0, at.1).map_err(|refusal| refusal.status().as_u16())
    }

    #[test]
    fn only_the_very_token_is_let_in() {
        let asked = |value| asked(&Method::POST, "localhost", &[("authorization", value)], (true, TOKEN));
        assert_eq!(asked("Bearer 0123456789abcdef"), Ok(true));
        assert_eq!(asked("bearer 0123456789abcdef"), Ok(true));
        let wrong =
            ["Bearer 0123456789abcdeg", "Bearer 0123456789abcde", "Bearer", "Bearer ", "Basic 0123456789abcdef"];
        for wrong in wrong {
            assert_eq!(asked(wrong), Err(401), "{wrong}");
        }
    }

    #[test]
    fn an_empty_token_is_nobodys() {
        let empty = [("authorization", "Bearer ")];
        assert_eq!(asked(&Method::GET, "gate.example", &empty, (false, Some(""))), Err(401));
    }

    #[test]
    fn away_from_home_reading_needs_the_token_too() {
        for at in [(false, "localhost"), (false, "10.0.0.5:9090"), (true, "gate.example"), (true, "10.0.0.5:9090")] {
            assert_eq!(asked(&Method::GET, at.1, &[], (at.0, TOKEN)), Err(401), "{at:?}");
            let with = [("authorization", "Bearer 0123456789abcdef")];
            assert_eq!(asked(&Method::GET, at.1, &with, (at.0, TOKEN)), Ok(true), "{at:?}");
        }
        for host in ["localhost", "LOCALHOST:1", "127.0.0.1:9090", "[::1]:9090", "127.8.9.1", "[::ffff:127.0.0.1]"] {
            assert_eq!(asked(&Method::GET, host, &[], (true, TOKEN)), Ok(false), "{host}");
            assert_eq!(asked(&Method::POST, host, &[], (true, TOKEN)), Err(401), "{host}");
        }
    }

    #[test]
    fn a_name_that_was_made_to_mean_this_machine_gets_nothing() {
        for host in
            ["evil.example", "localhost.evil.example:9090", "127.0.0.1.evil.example", "0.0.0.0:9090", "2130706433"]
        {
            for method in [Method::GET, Method::POST] {
                assert_eq!(asked(&method, host, &[], (true, None)), Err(403), "{host}");
            }
        }
        assert_eq!(asked(&Method::POST, "localhost:9090", &[], (true, None)), Ok(false));
        assert_eq!(asked(&Method::GET, "a@localhost", &[], (true, None)), Err(400));
    }

    #[test]
    fn only_the_dashboard_acts_from_within_a_browser() {
        let home = (true, None);
        let own = ["http://localhost:9090", "https://localhost:9090", "HTTP://localhost:9090"];
        for (origin, wanted) in own.into_iter().zip([Ok(false), Ok(false), Err(403)]) {
            assert_eq!(asked(&Method::POST, "localhost:9090", &[("origin", origin)], home), wanted, "{origin}");
        }
        let others =
            ["null", "", "http://localhost:3000", "http://127.0.0.1:9090", "http://evil.example", "localhost:9090"];
        for origin in others {
            let headers = [("origin", origin), ("authorization", "Bearer 0123456789abcdef")];
            for method in [Method::GET, Method::POST] {
                assert_eq!(asked(&method, "localhost:9090", &headers, (true, TOKEN)), Err(403), "{origin}");
            }
        }
    }

    #[test]
    fn where_a_browser_says_it_comes_from_is_heeded() {
        let from = |method, site, mode| {
            asked(&method, "localhost:9090", &[("sec-fetch-site", site), ("sec-fetch-mode", mode)], (true, None))
        };
        for site in ["same-origin", "none"] {
            assert_eq!(from(Method::GET, site, "cors"), Ok(false));
            assert_eq!(from(Method::POST, site, "cors"), Ok(false));
        }
        for site in ["cross-site", "same-site", "nonsense"] {
            assert_eq!(from(Method::GET, site, "no-cors"), Err(403));
            assert_eq!(from(Method::GET, site, "navigate"), Ok(false));
            assert_eq!(from(Method::POST, site, "navigate"), Err(403));
        }
    }
}
