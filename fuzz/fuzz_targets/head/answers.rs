//! What the client is answered: whole answers and nothing between them.

use serde_json::Value;

use super::upstream::SAYS;

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
}

/// All answers, or none if the last one lacks its end.
///
/// To HEAD there is no body. Which answers are to HEAD, if there may be one, is seen from what follows: no body begins like an answer.
///
/// # Panics
///
/// If these are no answers of the gateway.
pub fn read(mut bytes: &[u8], to_head: bool) -> Option<Vec<Answer>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let mut fields = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Response::new(&mut fields);
        let read = parsed.parse(bytes).unwrap_or_else(|error| panic!("{error}: {}", bytes.escape_ascii()));
        let httparse::Status::Complete(read) = read else { return None };
        let status = parsed.code.unwrap_or_default();
        let field = |name: &str| {
            let mut values = parsed.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
            let value = values.next().map(|field| field.value);
            assert!(values.next().is_none(), "two lines of {name}: {}", bytes.escape_ascii());
            value
        };
        assert!(field("transfer-encoding").is_none());
        let (length, kind) = (field("content-length"), field("content-type"));
        bytes = &bytes[read..];
        if status == 100 {
            assert!(length.is_none());
            continue;
        }
        let length: usize = std::str::from_utf8(length.expect("a length")).ok()?.parse().expect("a length");
        let bodiless = to_head && (bytes.is_empty() || bytes.starts_with(b"HTTP/1."));
        let body = if bodiless { None } else { Some(bytes.get(..length)?) };
        bytes = &bytes[body.map_or(0, <[u8]>::len)..];
        check(status, kind, length, body);
        all.push(Answer { status });
    }
    Some(all)
}

/// Checks who answers: the upstream, hyper (which has nothing to say beside the status), or the gateway with its code.
fn check(status: u16, kind: Option<&[u8]>, length: usize, body: Option<&[u8]>) {
    match (status, kind) {
        (200, None) => assert!(body.is_none_or(|body| body == SAYS)),
        (400 | 414 | 431, None) => assert_eq!(length, 0),
        (400..600, Some(b"application/json")) => {
            let json: Option<Value> = body.map(|body| serde_json::from_slice(body).expect("JSON"));
            assert!(json.is_none_or(|json| json["code"].as_str().expect("a code").starts_with('E')));
        }
        _ => panic!("{status} of {kind:?}"),
    }
}
