//! Which target a request is for: by host, then by the longest prefix of its path.
//!
//! The path is compared as it was sent, byte for byte: nothing is decoded, and `..` is not resolved. It is forwarded
//! the same way, so the upstream sees what the route was chosen by.

use http::Request;
use portcullis_numbers::routes::{Routes, host_of};

use crate::headers::requested_host;

/// The value of the best route for a request.
pub(crate) fn find<'r, T, B>(routes: &'r Routes<T>, request: &Request<B>) -> Option<&'r T> {
    routes.find(|| host_of(requested_host(request)?.to_str().ok()?), request.uri().path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(routes: &Routes<u8>, host: &str, uri: &str) -> Option<u8> {
        super::find(routes, &Request::get(uri).header("host", host).body(()).unwrap()).copied()
    }

    fn table(routes: &[(Option<&str>, &str, u8)]) -> Routes<u8> {
        Routes::new(routes.iter().map(|&(host, path, value)| (host.map(str::to_owned), path.to_owned(), value)))
    }

    #[test]
    fn the_longest_prefix_wins() {
        let routes = table(&[(None, "/", 0), (None, "/core/", 1), (None, "/core/loans/", 2)]);
        assert_eq!(find(&routes, "h", "/core/loans/7?x=1"), Some(2));
        assert_eq!(find(&routes, "h", "/core/"), Some(1));
        assert_eq!(find(&routes, "h", "/core"), Some(0));
        assert_eq!(find(&routes, "h", "/%63ore/"), Some(0));
    }

    #[test]
    fn a_route_for_the_host_wins_over_a_longer_one_for_any() {
        let routes = table(&[(Some("api.example.com"), "/", 0), (None, "/core/", 1), (Some("[::1]"), "/", 2)]);
        assert_eq!(find(&routes, "API.example.com:8080", "/core/x"), Some(0));
        assert_eq!(find(&routes, "other", "/core/x"), Some(1));
        assert_eq!(find(&routes, "[::1]:80", "/x"), Some(2));
        assert_eq!(find(&routes, "other", "/x"), None);
        assert_eq!(find(&routes, "other", "http://api.example.com/x"), Some(0));
    }

    #[test]
    fn a_host_without_a_fitting_path_falls_back_to_any() {
        let routes = table(&[(Some("a"), "/own/", 0), (None, "/", 1)]);
        assert_eq!(find(&routes, "a", "/x"), Some(1));
    }

    #[test]
    fn a_host_that_is_none_matches_nothing() {
        let routes = table(&[(Some("a"), "/", 0)]);
        assert_eq!(find(&routes, "a b", "/"), None);
        assert_eq!(find(&routes, "", "/"), None);
    }
}
