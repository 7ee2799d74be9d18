//! Which target a request is for.

use http::Request;
use portcullis::tower::{ByAuthority, KeyFor};

fn key(uri: &str, host: Option<&[u8]>) -> String {
    let mut request = Request::builder().uri(uri);
    if let Some(host) = host {
        request = request.header("host", host);
    }
    ByAuthority.key(&request.body(()).expect("a request"))
}

#[test]
fn the_authority_of_the_uri_goes_before_the_host_header() {
    assert_eq!(key("http://api.example.com/path", None), "api.example.com");
    assert_eq!(key("http://api.example.com:8080/path", Some(b"other")), "api.example.com:8080");
    assert_eq!(key("/path", Some(b"api.example.com:8080")), "api.example.com:8080");
}

#[test]
fn what_stands_before_the_host_is_no_part_of_the_key() {
    assert_eq!(key("http://user:secret@api.example.com/", None), "api.example.com");
}

#[test]
fn keys_are_lower_case() {
    assert_eq!(key("http://API.Example.COM:80/", None), "api.example.com:80");
    assert_eq!(key("/", Some(b"API.Example.COM")), "api.example.com");
}

#[test]
fn a_request_without_either_has_the_empty_key() {
    assert_eq!(key("/path", None), "");
    assert_eq!(key("/path", Some(b"\xff\xfe")), "", "a host that isn't text");
}

#[test]
fn any_function_of_the_request_is_a_key() {
    fn of<Req, K>(key: &impl KeyFor<Req, K>, request: &Req) -> K {
        key.key(request)
    }
    assert_eq!(of(&|request: &Request<u16>| *request.body() / 100, &Request::new(503)), 5);
}
