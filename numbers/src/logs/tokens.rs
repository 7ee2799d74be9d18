//! The fields of a line between blanks.

use memchr::{memchr, memchr2};

/// A field of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// As it stands; a list, such as nginx writes for several upstreams, is one: `0.100, 0.004`.
    Bare(&'a [u8]),
    /// Between quotes.
    Quoted(&'a [u8]),
    /// Between brackets.
    Bracketed(&'a [u8]),
    /// `name=value`, with or without quotes.
    Named(&'a [u8], &'a [u8]),
}

impl<'a> Token<'a> {
    /// Its text, whatever is around it.
    pub(super) fn text(self) -> &'a [u8] {
        match self {
            Self::Bare(text) | Self::Quoted(text) | Self::Bracketed(text) | Self::Named(_, text) => text,
        }
    }
}

/// The fields of the rest of a line.
#[derive(Clone, Debug)]
pub(super) struct Tokens<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.0 = self.0.trim_ascii_start();
        match self.0 {
            [] => None,
            [b'"', inner @ ..] => {
                let end = closing(inner);
                self.0 = inner.get(end + 1..).unwrap_or_default();
                Some(Token::Quoted(&inner[..end]))
            }
            [b'[', inner @ ..] if bracketed(inner).is_some() => {
                let end = bracketed(inner)?;
                self.0 = &inner[end + 1..];
                Some(Token::Bracketed(&inner[..end]))
            }
            line => Some(self.bare(line)),
        }
    }
}

impl<'a> Tokens<'a> {
    fn bare(&mut self, line: &'a [u8]) -> Token<'a> {
        let mut end = memchr2(b' ', b'"', line).unwrap_or(line.len());
        if let Some(name) = line[..end].strip_suffix(b"=")
            && line.get(end) == Some(&b'"')
        {
            let inner = &line[end + 1..];
            let end = closing(inner);
            self.0 = inner.get(end + 1..).unwrap_or_default();
            return Token::Named(name, &inner[..end]);
        }
        end = memchr(b' ', line).unwrap_or(line.len());
        // nginx puts ", " between upstreams and " : " between groups of them.
        while line[..end].ends_with(b",") || line[end..].starts_with(b" : ") {
            let from = end + if line[end..].starts_with(b" : ") { 3 } else { 1 };
            match line.get(from..) {
                Some(rest) if !rest.is_empty() => end = from + memchr(b' ', rest).unwrap_or(rest.len()),
                _ => break,
            }
        }
        self.0 = &line[end..];
        match memchr(b'=', &line[..end]) {
            Some(sign) => Token::Named(&line[..sign], &line[sign + 1..end]),
            None => Token::Bare(&line[..end]),
        }
    }
}

/// Where the quoted text ends that `inner` begins with; a backslash hides a quote. Without an end it goes to the line's.
pub(super) fn closing(inner: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = memchr2(b'"', b'\\', inner.get(at..).unwrap_or_default()) {
        if inner[at + found] == b'"' {
            return at + found;
        }
        at += found + 2;
    }
    inner.len()
}

/// Where the bracket is that ends a field: the address of an upstream may begin with one, too.
fn bracketed(inner: &[u8]) -> Option<usize> {
    memchr(b']', inner).filter(|&end| matches!(inner.get(end + 1), None | Some(b' ')))
}

/// The path of a request line, of an absolute URL, or as it is; without what follows a `?`.
pub(super) fn path(request: &[u8]) -> &[u8] {
    let target = if request.first() == Some(&b'/') {
        request
    } else {
        request.split(|&byte| byte == b' ').nth(1).unwrap_or(request)
    };
    let target = match memchr::memmem::find(target, b"://") {
        Some(scheme) if target.first() != Some(&b'/') => {
            let rest = &target[scheme + 3..];
            memchr(b'/', rest).map_or(&b"/"[..], |slash| &rest[slash..])
        }
        _ => target,
    };
    &target[..memchr2(b'?', b'#', target).unwrap_or(target.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let line = br#"89 0.001 [web-80] [] [::1]:80, [::2]:80 "a \" b" rt="0.1" urt=0.2 0.100, 0.004 : 0.1 -"#;
        let tokens: Vec<_> = Tokens(line).collect();
        use Token::{Bare, Bracketed, Named, Quoted};
        let expected = [
            Bare(b"89"),
            Bare(b"0.001"),
            Bracketed(b"web-80"),
            Bracketed(b""),
            Bare(b"[::1]:80, [::2]:80"),
            Quoted(br#"a \" b"#),
            Named(b"rt", b"0.1"),
            Named(b"urt", b"0.2"),
            Bare(b"0.100, 0.004 : 0.1"),
            Bare(b"-"),
        ];
        assert_eq!(tokens, expected);
    }

    #[test]
    fn a_line_may_end_anywhere() {
        let line = br#"a "b\" c=" [d] e, f : g"#;
        for end in 0..=line.len() {
            assert!(Tokens(&line[..end]).count() <= 7);
        }
    }

    #[test]
    fn a_path_is_found_in_whatever_is_logged() {
        let found = [&b"GET /a/b?c HTTP/1.1"[..], b"/a/b#c", b"GET http://host:80/a/b HTTP/1.1", b"https://host", b"-"]
            .map(path);
        assert_eq!(found, [&b"/a/b"[..], b"/a/b", b"/a/b", b"/", b"-"]);
    }
}
