//! CSV by RFC 4180: the names of the columns in the first line, quotes around what holds quotes, newlines or what stands between fields.

use std::borrow::Cow;

use memchr::memchr;

use super::columns::{Columns, FIELDS, Values};
use super::fault::Fault;
use super::parse::Entry;
use super::record;

/// Which columns of a CSV file are which fields.
#[derive(Debug)]
pub(super) struct Csv {
    pub(super) between: u8,
    columns: Columns,
    /// For each column up to the last that is of use, its field.
    fields: Vec<Option<usize>>,
}

impl Csv {
    /// The columns of a file with this header.
    pub(super) fn new(between: u8, header: &[String], columns: Columns) -> Self {
        let field = |name: &String| columns.names().find(|&(_, column)| column == name).map(|(field, _)| field);
        let mut fields: Vec<_> = header.iter().map(field).collect();
        while fields.last().is_some_and(Option::is_none) {
            fields.pop();
        }
        Self { between, columns, fields }
    }

    pub(super) fn entry<'a>(&self, record: &'a [u8]) -> Result<Entry<'a>, Fault> {
        let mut values: Values<'a> = [const { None }; FIELDS];
        let mut rest = Some(record);
        for field in &self.fields {
            let (value, next) = split(rest.ok_or(Fault::Missing)?, self.between)?;
            if let Some(field) = field {
                values[*field] = Some(value);
            }
            rest = next;
        }
        self.columns.entry(values)
    }
}

/// All fields of a record.
pub(super) fn fields(record: &[u8], between: u8) -> Result<Vec<String>, Fault> {
    let mut fields = Vec::new();
    let mut rest = Some(record);
    while let Some(record) = rest {
        let (field, next) = split(record, between)?;
        fields.push(String::from_utf8_lossy(&field).trim().to_owned());
        rest = next;
    }
    Ok(fields)
}

/// A field, and what follows it.
type Split<'a> = (Cow<'a, [u8]>, Option<&'a [u8]>);

/// The first field of a record.
fn split(record: &[u8], between: u8) -> Result<Split<'_>, Fault> {
    if record.first() == Some(&b'"') {
        return split_quoted(&record[1..], between);
    }
    Ok(match memchr(between, record) {
        Some(end) => (Cow::Borrowed(&record[..end]), Some(&record[end + 1..])),
        None => (Cow::Borrowed(record), None),
    })
}

/// The same behind an opening quote.
fn split_quoted(record: &[u8], between: u8) -> Result<Split<'_>, Fault> {
    let close = record::closing(record).ok_or(Fault::Quote)?;
    let field = &record[..close];
    let field = if memchr(b'"', field).is_none() { Cow::Borrowed(field) } else { Cow::Owned(undouble(field)) };
    match &record[close + 1..] {
        [] => Ok((field, None)),
        [next, rest @ ..] if *next == between => Ok((field, Some(rest))),
        _ => Err(Fault::Quote),
    }
}

/// Each pair of quotes as one.
fn undouble(field: &[u8]) -> Vec<u8> {
    let mut single = Vec::with_capacity(field.len());
    let mut bytes = field.iter();
    while let Some(&byte) = bytes.next() {
        single.push(byte);
        if byte == b'"' {
            bytes.next();
        }
    }
    single
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_taken_off_and_pairs_of_them_are_one() {
        assert_eq!(fields(br#"a,"b,""c""",,"d"#, b',').unwrap_err(), Fault::Quote);
        assert_eq!(fields(br#"a,"b,""c""",,"d""#, b',').unwrap(), ["a", "b,\"c\"", "", "d"]);
        assert_eq!(fields(br#"a"b;"c"d"#, b';').unwrap_err(), Fault::Quote);
        assert_eq!(fields(b"a\"b;\"c\nd\"", b';').unwrap(), ["a\"b", "c\nd"]);
        assert_eq!(fields(b"a,", b',').unwrap(), ["a", ""]);
    }
}
