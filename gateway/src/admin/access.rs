//! Who may act: anyone on this machine, unless a token is set; then whoever has the token.

use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use subtle::ConstantTimeEq;

use super::{Answer, error};

/// Refuses those who may not act.
#[expect(clippy::result_large_err, reason = "the refusal is the answer")]
pub(super) fn check(headers: &HeaderMap, token: Option<&str>) -> Result<(), Answer> {
    let Some(token) = token else {
        // A web page in the operator's browser is on this machine too. Browsers say where a POST comes from.
        return if headers.contains_key(ORIGIN) {
            Err(error(StatusCode::FORBIDDEN, "requests of web pages need a token"))
        } else {
            Ok(())
        };
    };
    let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).and_then(bearer);
    // In constant time: how long a refusal takes must not tell how much of a guess was right.
    if given.is_some_and(|given| bool::from(given.ct_eq(token.as_bytes()))) {
        return Ok(());
    }
    let mut refusal: Response<_> = error(StatusCode::UNAUTHORIZED, "a bearer token is needed");
    refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    Err(refusal)
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(name: &'static str, value: &str, token: Option<&str>) -> Option<StatusCode> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        check(&headers, token).err().map(|refusal| refusal.status())
    }

    #[test]
    fn only_the_very_token_is_let_in() {
        let token = Some("0123456789abcdef");
        assert_eq!(status("authorization", "Bearer 0123456789abcdef", token), None);
        assert_eq!(status("authorization", "bearer 0123456789abcdef", token), None);
        let wrong =
            ["Bearer 0123456789abcdeg", "Bearer 0123456789abcde", "Bearer", "Bearer ", "Basic 0123456789abcdef"];
        for wrong in wrong {
            assert_eq!(status("authorization", wrong, token), Some(StatusCode::UNAUTHORIZED), "{wrong}");
        }
        assert_eq!(status("x-other", "x", token), Some(StatusCode::UNAUTHORIZED));
    }

    #[test]
    fn without_a_token_web_pages_are_kept_out() {
        assert_eq!(status("x-other", "x", None), None);
        assert_eq!(status("origin", "null", None), Some(StatusCode::FORBIDDEN));
    }
}
