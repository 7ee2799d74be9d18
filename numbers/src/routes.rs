//! Which target a request is for: by host, then by the longest prefix of its path.
//!
//! The gateway routes by this table, and [`logs`](crate::logs) tell by it whom a request in a log went to. The path is compared as it was
//! sent, byte for byte: nothing is decoded, and `..` is not resolved.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

/// Values by host and path prefix.
#[derive(Debug)]
pub struct Routes<T> {
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
    /// A table of these hosts, in lower case and without ports, path prefixes and values.
    pub fn new(routes: impl IntoIterator<Item = (Option<String>, String, T)>) -> Self {
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
    ///
    /// The host is in lower case and without its port, as [`host_of`] makes it; it is asked for only if a route names one.
    pub fn find<H: AsRef<str>>(&self, host: impl FnOnce() -> Option<H>, path: &str) -> Option<&T> {
        let named = if self.by_host.is_empty() { None } else { host() };
        named
            .and_then(|host| self.by_host.get(host.as_ref()))
            .and_then(|own| own.find(path))
            .or_else(|| self.any_host.find(path))
    }
}

/// The host of an authority in lower case, without its port; none if it is no authority.
#[must_use]
pub fn host_of(authority: &str) -> Option<String> {
    let authority: http::uri::Authority = authority.parse().ok()?;
    Some(authority.host().to_ascii_lowercase())
}

/// Reads the routes of a gateway's configuration; its other parts are left to `portcullis check`.
///
/// # Errors
///
/// The file can't be read, isn't TOML, or has no route or one without a path or target.
pub fn read(file: &Path) -> Result<Routes<String>, String> {
    #[derive(Deserialize)]
    struct File {
        #[serde(default)]
        route: Vec<Route>,
    }
    #[derive(Deserialize)]
    struct Route {
        host: Option<String>,
        path: String,
        target: String,
    }
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let File { route } = toml::from_str(&text).map_err(|error| error.to_string())?;
    if route.is_empty() {
        return Err("expected at least one [[route]]".to_owned());
    }
    Ok(Routes::new(
        route.into_iter().map(|route| (route.host.map(|host| host.to_ascii_lowercase()), route.path, route.target)),
    ))
}
