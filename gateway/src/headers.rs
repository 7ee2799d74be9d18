//! What a proxy may not pass on, and what it must add.

use std::net::IpAddr;

use http::header::{
    CONNECTION, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, VIA,
};
use http::uri::Authority;
use http::{Request, Version};

static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
static PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
static FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
static FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Removes the fields that are meant for one connection only: those that `Connection` names, and those that always are.
pub(crate) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    remove_all(headers, is_hop_by_hop);
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    let always = [&CONNECTION, &KEEP_ALIVE, &PROXY_CONNECTION, &TE, &TRANSFER_ENCODING, &UPGRADE];
    always.contains(&name) || [&PROXY_AUTHENTICATE, &PROXY_AUTHORIZATION].contains(&name)
}

/// Removes the fields with such names. Few messages have one, and a look at each name costs less than a search for each that there might be.
fn remove_all(headers: &mut HeaderMap, is_such: impl Fn(&HeaderName) -> bool) {
    let present: Vec<HeaderName> = headers.keys().filter(|&name| is_such(name)).cloned().collect();
    for name in present {
        headers.remove(name);
    }
}

/// A client's address as `X-Forwarded-For` has it.
pub(crate) fn address(client: IpAddr) -> HeaderValue {
    // The text of an address is nothing that a header can't hold.
    HeaderValue::try_from(client.to_canonical().to_string()).unwrap_or(HeaderValue::from_static("unknown"))
}

/// Makes the headers of a client's request those of the gateway's own: nothing hop-by-hop, and who asked for what.
///
/// `Host` is left to the call, which knows the upstream. `Expect` has been answered here, and without `Trailer` no trailers are sent: they
/// could say again what only the gateway may say.
pub(crate) fn prepare<B>(request: &mut Request<B>, client: &HeaderValue) {
    let host = requested_host(request);
    let via = if request.version() == Version::HTTP_2 { "2.0 portcullis" } else { "1.1 portcullis" };
    let headers = request.headers_mut();
    strip_hop_by_hop(headers);
    remove_all(headers, |name| [&HOST, &EXPECT, &TRAILER].contains(&name));
    append(headers, &FORWARDED_FOR, client);
    headers.insert(&FORWARDED_PROTO, HeaderValue::from_static("http"));
    match host {
        Some(host) => drop(headers.insert(&FORWARDED_HOST, host)),
        None => drop(headers.remove(&FORWARDED_HOST)),
    }
    append(headers, &VIA, &HeaderValue::from_static(via));
}

/// The host that was asked for, with its port: from the URI if it names one (HTTP/2 always does), else from `Host`.
pub(crate) fn requested_host<B>(request: &Request<B>) -> Option<HeaderValue> {
    match request.uri().authority() {
        Some(authority) => HeaderValue::from_str(authority.as_str()).ok(),
        None => request.headers().get(HOST).cloned(),
    }
}

/// Whether it is clear which host is asked for: who stands before the gateway must not have understood another one.
pub(crate) fn names_one_host<B>(request: &Request<B>) -> bool {
    let lines = request.headers().get_all(HOST).iter().count();
    let is_enough = lines == 1 || lines == 0 && request.version() != Version::HTTP_11;
    is_enough && requested_host(request).is_none_or(|host| host.is_empty() || is_host(&host))
}

/// A host with or without a port, and no user before it.
fn is_host(host: &HeaderValue) -> bool {
    let authority = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    authority.is_some_and(|authority| !authority.as_str().contains('@'))
}

/// Whether nothing was done to the body for the way here but what hyper undoes: the upstream wouldn't be told of anything else.
pub(crate) fn is_plain_or_chunked(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked =
        codings.next().is_none_or(|coding| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"));
    is_chunked && codings.next().is_none()
}

/// Adds to the end of a list, which becomes one line however many there were.
fn append(headers: &mut HeaderMap, name: &HeaderName, last: &HeaderValue) {
    let mut list = Vec::new();
    for value in headers.get_all(name).iter().chain([last]) {
        if !list.is_empty() {
            list.extend_from_slice(b", ");
        }
        list.extend_from_slice(value.as_bytes());
    }
    // Field values joined by a comma are a field value.
    if let Ok(joined) = HeaderValue::from_bytes(&list) {
        headers.insert(name, joined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_named_by_connection_are_stripped_with_the_usual_ones() {
        let mut request = Request::get("/")
            .header("connection", "close, X-Secret")
            .header("connection", " x-other ,,\u{e9}")
            .header("x-secret", "1")
            .header("x-other", "2")
            .header("keep-alive", "timeout=5")
            .header("te", "trailers")
            .header("proxy-authorization", "Basic x")
            .header("upgrade", "websocket")
            .header("x-kept", "3")
            .body(())
            .unwrap();
        strip_hop_by_hop(request.headers_mut());
        assert_eq!(request.headers().keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-kept"]);
    }

    #[test]
    fn the_client_is_added_to_those_before_it() {
        let mut request = Request::get("/")
            .header("host", "api.example.com:8080")
            .header("x-forwarded-for", "192.0.2.1")
            .header("x-forwarded-for", "192.0.2.2")
            .header("x-forwarded-proto", "gopher")
            .header("x-forwarded-host", "elsewhere")
            .body(())
            .unwrap();
        prepare(&mut request, &address("::ffff:127.0.0.1".parse().unwrap()));
        let headers = request.headers();
        assert_eq!(headers["x-forwarded-for"], "192.0.2.1, 192.0.2.2, 127.0.0.1");
        assert_eq!(headers["x-forwarded-proto"], "http");
        assert_eq!(headers["x-forwarded-host"], "api.example.com:8080");
        assert_eq!(headers["via"], "1.1 portcullis");
        assert!(!headers.contains_key("host"));
    }
}
