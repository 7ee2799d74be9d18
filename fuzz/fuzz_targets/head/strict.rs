//! HTTP/1 requests read as narrowly as RFC 9112 has them: what two readers could take in two ways is refused.

/// Names in lower case, with their values. Bytes that aren't ASCII are escaped, here and in bodies, so that all can be read.
pub type Fields = Vec<(String, String)>;

/// Why bytes are no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody may act on it.
    Wrong(&'static str),
    /// A generous reader may understand it, in one way or another.
    Loose(&'static str),
}

use Refusal::{Loose, Wrong};

/// Something that was read and how many bytes it took; none if more has to come.
pub type Progress<T> = Result<Option<(T, usize)>, Refusal>;

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Length(usize),
    Chunked,
}

#[derive(Debug)]
pub struct Head {
    pub method: String,
    pub target: String,
    pub minor: u8,
    pub fields: Fields,
    pub framing: Framing,
    /// Why it must be refused, although it is clear where it ends.
    pub fault: Option<&'static str>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Body {
    pub text: String,
    pub trailers: Fields,
}

#[derive(Debug)]
pub struct Request {
    pub head: Head,
    pub body: Body,
}

impl Head {
    /// The values of a field, one for each of its lines.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The value of a field with exactly one line.
    pub fn only<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let mut all = self.all(name);
        all.next().filter(|_| all.next().is_none())
    }

    /// Whether the connection ends after this request.
    pub fn is_last(&self) -> bool {
        let said = |word: &str| self.connection().iter().any(|token| token == word);
        said("close") || self.minor == 0 && !said("keep-alive")
    }

    /// What `Connection` says, in lower case.
    pub fn connection(&self) -> Vec<String> {
        let tokens = self.all("connection").flat_map(|value| value.split(','));
        tokens.map(|token| token.trim_matches([' ', '\t']).to_ascii_lowercase()).collect()
    }
}

/// All requests in these bytes, and why they end; none if the rest only lacks its end.
pub fn requests(mut bytes: &[u8]) -> (Vec<Request>, Option<Refusal>) {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        match request(bytes) {
            Ok(Some((request, read))) => {
                all.push(request);
                bytes = &bytes[read..];
            }
            Ok(None) => break,
            Err(refusal) => return (all, Some(refusal)),
        }
    }
    (all, None)
}

fn request(bytes: &[u8]) -> Progress<Request> {
    let Some((head, start)) = head(bytes)? else { return Ok(None) };
    let body = body(head.framing, &bytes[start..])?;
    Ok(body.map(|(body, read)| (Request { head, body }, start + read)))
}

/// The request line and the fields.
pub fn head(bytes: &[u8]) -> Progress<Head> {
    // The gateway passes on 100 fields and adds its own.
    let mut fields = [httparse::EMPTY_HEADER; 128];
    let mut parsed = httparse::Request::new(&mut fields);
    let read = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(read)) => read,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Wrong("no head")),
    };
    let lines = &bytes[..read];
    check_ends(lines)?;
    let (method, target) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
    let minor = parsed.version.unwrap_or_default();
    if !lines.starts_with(format!("{method} {target} HTTP/1.{minor}\r\n").as_bytes()) {
        return Err(Loose("something around the request line"));
    }
    if target.is_empty() || target.chars().any(|char| char.is_whitespace() || char.is_control() || char == '#') {
        return Err(Loose("a character that no target has"));
    }
    let fields = fields_of(parsed.headers)?;
    let framing = framing(&fields, minor)?;
    let fault = fault(&fields, minor);
    Ok(Some((Head { method: method.to_owned(), target: target.to_owned(), minor, fields, framing, fault }, read)))
}

fn check_ends(lines: &[u8]) -> Result<(), Refusal> {
    let halves = lines.iter().filter(|&&byte| byte == b'\r' || byte == b'\n').count();
    let ends = lines.windows(2).filter(|&two| two == b"\r\n").count();
    if halves == 2 * ends { Ok(()) } else { Err(Loose("a line that ends in half")) }
}

fn fields_of(parsed: &[httparse::Header<'_>]) -> Result<Fields, Refusal> {
    let is_text = |value: &[u8]| value.iter().all(|&byte| byte == b'\t' || !byte.is_ascii_control());
    if !parsed.iter().all(|field| is_text(field.value)) {
        return Err(Wrong("a control character in a field"));
    }
    Ok(parsed.iter().map(|field| (field.name.to_ascii_lowercase(), escaped(field.value))).collect())
}

fn escaped(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn all<'a>(fields: &'a Fields, name: &str) -> Vec<&'a str> {
    fields.iter().filter(|(own, _)| own == name).map(|(_, value)| value.as_str()).collect()
}

fn framing(fields: &Fields, minor: u8) -> Result<Framing, Refusal> {
    match (all(fields, "content-length").as_slice(), all(fields, "transfer-encoding").as_slice()) {
        ([], []) => Ok(Framing::Length(0)),
        ([length], []) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
            length.parse().map(Framing::Length).map_err(|_| Wrong("no length"))
        }
        (lengths @ [_, ..], []) if lengths.windows(2).all(|two| is_same(two[0], two[1])) => Err(Loose("many lengths")),
        ([], [.., last]) if minor == 1 && is_chunked(last) => Ok(Framing::Chunked),
        (_, [.., last]) if minor == 1 && is_chunked(last) => Err(Loose("a length beside chunks")),
        _ => Err(Wrong("no framing")),
    }
}

fn is_same(length: &str, other: &str) -> bool {
    length.trim_start_matches('0') == other.trim_start_matches('0')
}

fn is_chunked(codings: &str) -> bool {
    codings.rsplit(',').next().is_some_and(|last| last.trim_matches([' ', '\t']).eq_ignore_ascii_case("chunked"))
}

fn fault(fields: &Fields, minor: u8) -> Option<&'static str> {
    if !matches!((minor, all(fields, "host").len()), (0, 0) | (_, 1)) {
        return Some("not one host");
    }
    let codings = all(fields, "transfer-encoding").join(",");
    (!codings.is_empty() && !codings.eq_ignore_ascii_case("chunked")).then_some("another coding")
}

/// A body and its trailers.
pub fn body(framing: Framing, bytes: &[u8]) -> Progress<Body> {
    match framing {
        Framing::Length(length) => {
            let body = bytes.get(..length);
            Ok(body.map(|body| (Body { text: escaped(body), trailers: Vec::new() }, length)))
        }
        Framing::Chunked => chunked(bytes),
    }
}

fn chunked(bytes: &[u8]) -> Progress<Body> {
    let mut body = Body::default();
    let mut at = 0;
    loop {
        let Some((size, read)) = chunk_size(&bytes[at..])? else { return Ok(None) };
        at += read;
        if size == 0 {
            break;
        }
        let Some(chunk) = bytes.get(at..at + size + 2) else { return Ok(None) };
        let Some(data) = chunk.strip_suffix(b"\r\n") else { return Err(Wrong("a chunk of another size")) };
        body.text += &escaped(data);
        at += chunk.len();
    }
    if bytes[at..].starts_with(b"\r\n") {
        return Ok(Some((body, at + 2)));
    }
    let mut trailers = [httparse::EMPTY_HEADER; 128];
    match httparse::parse_headers(&bytes[at..], &mut trailers) {
        Ok(httparse::Status::Complete((read, trailers))) => {
            check_ends(&bytes[at..at + read])?;
            body.trailers = fields_of(trailers)?;
            Ok(Some((body, at + read)))
        }
        Ok(httparse::Status::Partial) => Ok(None),
        Err(_) => Err(Loose("no trailers")),
    }
}

/// A line with a size, and with extensions that are passed over.
fn chunk_size(bytes: &[u8]) -> Progress<usize> {
    let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else { return Ok(None) };
    let line = bytes[..end].strip_suffix(b"\r").ok_or(Wrong("a size that ends in half"))?;
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (size, extension) = line.split_at(digits);
    let size = std::str::from_utf8(size).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
    let size = size.ok_or(Wrong("no size"))?;
    if digits > 8 || extension.iter().any(u8::is_ascii_control) || !extension.is_empty() && !extension.starts_with(b";")
    {
        return Err(Loose("something around a size"));
    }
    Ok(Some((size, end + 1)))
}
