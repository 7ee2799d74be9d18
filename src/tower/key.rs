//! Which target a request is for.

/// Tells the key of the target that a request is for. Any `Fn(&Req) -> K` does.
pub trait KeyFor<Req, K> {
    /// The key of the request's target.
    fn key(&self, request: &Req) -> K;
}

impl<Req, K, F: Fn(&Req) -> K> KeyFor<Req, K> for F {
    fn key(&self, request: &Req) -> K {
        self(request)
    }
}

/// The authority that an HTTP request is addressed to, host and port in lower case, from its URI or else its `Host` header; empty
/// without either.
///
/// Keys that callers choose freely make targets up to the engine's `max_targets`; where that matters, map them to known names first.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByAuthority;

impl<B> KeyFor<http::Request<B>, String> for ByAuthority {
    fn key(&self, request: &http::Request<B>) -> String {
        let host = || request.headers().get(http::header::HOST)?.to_str().ok();
        let authority = request.uri().authority().map(http::uri::Authority::as_str);
        // Whatever a client put before the host is no part of the target's name, and may be a secret.
        let authority = authority.or_else(host).unwrap_or_default();
        authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase()
    }
}
