//! The same over HTTP/2: blocks of lines become the fields of requests, and what stands between them their bodies.

/// What a client of HTTP/2 begins with.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A whole connection: `:method: GET`, more lines, an empty one, a body, an empty line, and so on.
pub fn frames(text: &[u8]) -> Vec<u8> {
    let mut frames = PREFACE.to_vec();
    frame(&mut frames, SETTINGS, 0, 0, &[]);
    let blocks = split(text, b"\r\n\r\n");
    for (n, request) in (0_u32..).zip(blocks.chunks(2)) {
        let (stream, body) = (2 * n + 1, request.get(1).copied().unwrap_or_default());
        let fields: Vec<u8> = split(request[0], b"\r\n").into_iter().flat_map(field).collect();
        if body.is_empty() {
            frame(&mut frames, HEADERS, END_HEADERS | END_STREAM, stream, &fields);
        } else {
            frame(&mut frames, HEADERS, END_HEADERS, stream, &fields);
            frame(&mut frames, DATA, END_STREAM, stream, body);
        }
    }
    frames
}

/// How many answers begin with the status 200, which is a byte of its own.
pub fn passed_on(mut received: &[u8]) -> usize {
    let mut count = 0;
    while let [a, b, c, kind, _flags, _, _, _, _, rest @ ..] = received {
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        count += usize::from(*kind == HEADERS && rest.first() == Some(&0x88));
        received = rest.get(length..).unwrap_or_default();
    }
    count
}

fn frame(to: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).expect("a short input");
    to.extend_from_slice(&length.to_be_bytes()[1..]);
    to.extend_from_slice(&[kind, flags]);
    to.extend_from_slice(&stream.to_be_bytes());
    to.extend_from_slice(payload);
}

/// A literal field that no table keeps. The colon before a name belongs to it.
fn field(line: &[u8]) -> Vec<u8> {
    let colon = line.iter().skip(1).position(|&byte| byte == b':').map_or(line.len(), |at| at + 1);
    let value = line.get(colon + 1..).unwrap_or_default();
    let mut field = vec![0];
    for text in [&line[..colon], value.strip_prefix(b" ").unwrap_or(value)] {
        length(&mut field, text.len());
        field.extend_from_slice(text);
    }
    field
}

/// A number with a prefix of seven bits.
fn length(to: &mut Vec<u8>, length: usize) {
    let Some(mut rest) = length.checked_sub(127) else { return to.push(length as u8) };
    to.push(127);
    while rest >= 128 {
        to.push(rest as u8 | 128);
        rest >>= 7;
    }
    to.push(rest as u8);
}

fn split<'a>(bytes: &'a [u8], by: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(by.len()).position(|part| part == by) {
        parts.push(&rest[..at]);
        rest = &rest[at + by.len()..];
    }
    parts.push(rest);
    parts
}
