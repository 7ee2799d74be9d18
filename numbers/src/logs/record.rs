//! Where a record ends: at the end of its line, or, in CSV, of a later one if a quoted field holds newlines.

use memchr::{memchr, memchr2};

/// How records end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Records {
    Lines,
    /// CSV, with this between fields.
    Quoted(u8),
}

/// What is found at a record's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its newline.
    Newline(usize),
    /// Neither a newline nor an open quote: the line goes on.
    Line,
    /// A quote is still open.
    Quote,
}

impl Records {
    /// Where the record that begins with `data` ends.
    pub(super) fn end(self, data: &[u8]) -> End {
        let newline = memchr(b'\n', data);
        let line = &data[..newline.unwrap_or(data.len())];
        match (self, newline) {
            (Self::Quoted(between), _) if memchr(b'"', line).is_some() => quoted(data, between),
            (_, Some(newline)) => End::Newline(newline),
            (_, None) => End::Line,
        }
    }

    /// How much of `data` is whole records.
    pub(super) fn whole(self, data: &[u8]) -> usize {
        if self == Self::Lines || memchr(b'"', data).is_none() {
            return memchr::memrchr(b'\n', data).map_or(0, |newline| newline + 1);
        }
        let mut whole = 0;
        while let End::Newline(newline) = self.end(&data[whole..]) {
            whole += newline + 1;
        }
        whole
    }
}

/// RFC 4180: a quote opens a field only as its first byte, and a doubled one within it is one of its bytes.
fn quoted(data: &[u8], between: u8) -> End {
    let mut at = 0;
    loop {
        if data.get(at) == Some(&b'"') {
            let Some(close) = closing(&data[at + 1..]) else { return End::Quote };
            at += 1 + close + 1;
        }
        match memchr2(between, b'\n', &data[at..]) {
            Some(found) if data[at + found] == b'\n' => return End::Newline(at + found),
            Some(found) => at += found + 1,
            None => return End::Line,
        }
    }
}

/// Where the quote is that ends a field.
pub(super) fn closing(field: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let quote = at + memchr(b'"', &field[at..])?;
        if field.get(quote + 1) != Some(&b'"') {
            return Some(quote);
        }
        at = quote + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newline_within_quotes_ends_no_record() {
        let csv = Records::Quoted(b',');
        assert_eq!(csv.end(b"1,\"a\nb\",2\n3"), End::Newline(9));
        assert_eq!(csv.end(b"1,\"a\"\"\nb\",2\n3"), End::Newline(11));
        assert_eq!(csv.end(b"1,a\"b,2\n3"), End::Newline(7));
        assert_eq!(csv.end(b"1,\"a\nb,2\n3"), End::Quote);
        assert_eq!(csv.end(b"1,2"), End::Line);
        assert_eq!(Records::Lines.end(b"1,\"a\nb\",2\n3"), End::Newline(4));
    }

    #[test]
    fn whole_records_end_where_the_last_of_them_does() {
        let csv = Records::Quoted(b',');
        assert_eq!(csv.whole(b"1,2\n3,\"\n\"\n4,\"\n"), 10);
        assert_eq!(csv.whole(b"1,2\n3"), 4);
        assert_eq!(csv.whole(b"1,2"), 0);
        assert_eq!(Records::Lines.whole(b"1,2\n3,\"\n\"\n4,\"\n"), 14);
    }
}
