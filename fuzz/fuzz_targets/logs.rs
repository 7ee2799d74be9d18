//! Whatever a log holds, each line of it is accounted for, calls come in order, and how the bytes arrive makes no difference.
#![no_main]

use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use portcullis_numbers::logs::{self, Call, Format, Input, Summary};

/// What is read in one way.
type Reading = Result<(Vec<Call>, Summary), String>;

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, log)) = bytes.split_first() else { return };
    let mut input = Input::new(Vec::new());
    input.format = [Format::Auto, Format::Csv, Format::Json, Format::Nginx, Format::Envoy, Format::Haproxy]
        [usize::from(choice % 6)];
    input.without_latency = choice & 64 != 0;
    input.reorder = Duration::from_secs(u64::from(choice >> 7) * 90);
    input.max_targets = 4;

    let whole = read(log, &input);
    match (&whole, read(Dripping(log), &input)) {
        (Ok((calls, summary)), Ok((dripped, other))) => {
            assert_eq!((calls, summary.lines, &summary.bad), (&dripped, other.lines, &other.bad));
            checked(calls, summary, log);
        }
        (Err(error), Err(other)) => assert_eq!(*error, other),
        _ => panic!("a log is refused by how its bytes arrive"),
    }
});

fn read(log: impl Read + Send, input: &Input) -> Reading {
    let mut calls = Vec::new();
    match logs::read_from(log, Path::new("log"), input, |call, _| calls.push(*call)) {
        Ok(summary) => Ok((calls, summary)),
        Err(error) => Err(error.to_string()),
    }
}

fn checked(calls: &[Call], summary: &Summary, log: &[u8]) {
    assert!(calls.is_sorted_by_key(|call| call.start));
    assert!(summary.names.len() <= 4);
    let bad: u64 = summary.bad.values().sum();
    let read = calls.len() as u64 + bad + summary.refused + summary.answered_by_proxy + summary.unmatched;
    assert!(read <= summary.lines, "{read} of {}", summary.lines);
    // What is packed has lines of its own.
    if !log.starts_with(&[0x1F, 0x8B]) {
        let newlines = log.iter().filter(|&&byte| byte == b'\n').count() as u64;
        assert!(summary.lines <= newlines + 1, "{} of {newlines}", summary.lines);
    }
    assert_eq!(summary.to_string().is_empty(), read == calls.len() as u64 && summary.damaged.is_empty() && summary.others == 0);
}

/// Bytes that come three at a time.
struct Dripping<'a>(&'a [u8]);

impl Read for Dripping<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let few = into.len().min(3);
        self.0.read(&mut into[..few])
    }
}
