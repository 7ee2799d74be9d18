//! Which target a request is for: by host, then by the longest prefix of its path.
//!
//! The path is compared as it was sent, byte for byte: nothing is decoded, and `..` is not resolved. It is forwarded
//! the same way, so the upstream sees what the route was chosen by.

use std::collections::HashMap;

use http::Request;

use crate::headers::requested_host;

/// Values by host and path prefix.
#[derive(Debug)]
pub(crate) struct Routes<T> {
    by_host: HashMap<String, Prefixes<T>>,
    any_host: Prefixes<T>,
}

#[derive(Debug)]
struct Prefixes<T>(Vec<(String, T)>);

impl<T> Prefixes<T> {
    fn find(&self, path: &str) -> Option<&T> {
        self.0.iter().find(|(prefix, _)| path.starts_with(prefix.as_str())).map(|(_, value)| value)
    }

    fn sort(&mut self) {
        // The longest first, so that the first match is the longest.
        self.0.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
    }
}

impl<T> Routes<T> {
    pub(crate) fn new(routes: impl IntoIterator<Item = (Option<String>, String, T)>) -> Self {
        let mut table = Self { by_host: HashMap::new(), any_host: Prefixes(Vec::new()) };
        for (host, path, value) in routes {
            let prefixes = match host {
                Some(host) => table.by_host.entry(host).or_insert_with(|| Prefixes(Vec::new())),
                None => &mut table.any_host,
            };
            prefixes.0.push((path, value));
        }
        table.by_host.values_mut().for_each(Prefixes::sort);
        table.any_host.sort();
        table
    }

    /// The value of the best route: one for this host before one for any, the longest prefix among those.
    pub(crate) fn find<B>(&self, request: &Request<B>) -> Option<&T> {
        let path = request.uri().path();
        let named = if self.by_host.is_empty() { None } else { host(request) };
        named
            .and_then(|host| self.by_host.get(&host))
            .and_then(|own| own.find(path))
            .or_else(|| self.any_host.find(path))
    }
}

/// The host that is asked for, in lower case, without its port.
fn host<B>(request: &Request<B>) -> Option<String> {
    let host = requested_host(request)?;
    let authority: http::uri::Authority = host.to_str().ok()?.parse().ok()?;
    Some(authority.host().to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(routes: &Routes<u8>, host: &str, uri: &str) -> Option<u8> {
        routes.find(&Request::get(uri).header("host", host).body(()).unwrap()).copied()
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
