//! What is wrong with lines and files: counted, sampled, reported, and never the end of a reading.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use portcullis_numbers::logs::{self, Fault, Input};

use super::support::{Logs, MS, Read};

const HEADER: &str = "time,target,latency_ms,status\n";

/// Reads these lines under the usual header, with a good one before and one after.
fn between(lines: impl AsRef<[u8]>) -> Read {
    let mut log = format!("{HEADER}1,a,1,200\n").into_bytes();
    log.extend_from_slice(lines.as_ref());
    log.extend_from_slice(b"\n2,a,1,200\n");
    let read = Logs::of(log).read().unwrap();
    assert_eq!(read.calls.last().map(|(_, call)| call.start), Some(2_000_000_000), "a bad line never stops a reading");
    read
}

fn fault(line: impl AsRef<[u8]>) -> Fault {
    let read = between(line);
    assert_eq!((read.calls.len(), read.summary.bad.values().sum::<u64>()), (2, 1), "{}", read.summary);
    assert_eq!(read.summary.samples[0].line, 3);
    *read.summary.bad.keys().next().unwrap()
}

#[test]
fn each_fault_has_its_name() {
    assert_eq!(fault("1,a,1"), Fault::Missing);
    assert_eq!(fault("1"), Fault::Missing);
    assert_eq!(fault("noon,a,1,200"), Fault::Time);
    assert_eq!(fault(",a,1,200"), Fault::Time);
    assert_eq!(fault("2026-01-31T12:00:00,a,1,200"), Fault::Time);
    assert_eq!(fault("-1,a,1,200"), Fault::TimeRange);
    assert_eq!(fault("1969-12-31T23:59:59Z,a,1,200"), Fault::TimeRange);
    assert_eq!(fault("2263-01-01T00:00:00Z,a,1,200"), Fault::TimeRange);
    assert_eq!(fault("1700000000000,a,1,200"), Fault::TimeRange);
    assert_eq!(fault("1,a,fast,200"), Fault::Latency);
    assert_eq!(fault("1,a,NaN,200"), Fault::Latency);
    assert_eq!(fault("1,a,,200"), Fault::Latency);
    assert_eq!(fault("1,a,-1,200"), Fault::LatencyRange);
    assert_eq!(fault("1,a,inf,200"), Fault::LatencyRange);
    assert_eq!(fault("1,a,99999999999999999999999,200"), Fault::LatencyRange);
    assert_eq!(fault("1,a,1e300,200"), Fault::LatencyRange);
    assert_eq!(fault("1,a,2592000001,200"), Fault::LatencyRange);
    assert_eq!(fault("1,a,1,ok"), Fault::Status);
    assert_eq!(fault("1,a,1,1000"), Fault::Status);
    assert_eq!(fault("1,\"a\"b,1,200"), Fault::Quote);
    assert_eq!(fault(b"1,a\0,1,200"), Fault::Nul);
    assert_eq!(fault(b"1,a\xFF,1,200"), Fault::Utf8);
}

#[test]
fn what_is_odd_but_right_is_taken() {
    let read = between("1,a,+1.5e3,200\r\n\r\n  \n1,\"a \"\"b\"\"\",0,200\n1.0000000019,a,0.0000019,200");
    let odd: Vec<_> =
        read.calls[1..4].iter().map(|(target, call)| (target.as_str(), call.start, call.latency)).collect();
    let one = 1_000_000_000;
    assert_eq!(odd, [("a", one, 1500 * MS), ("a \"b\"", one, 0), ("a", one + 1, 1)]);
    assert!(read.summary.bad.is_empty(), "{}", read.summary);
}

#[test]
fn a_byte_order_mark_and_other_separators_are_no_matter() {
    for between in [",", ";", "\t"] {
        let log = format!("\u{FEFF}{HEADER}1,a,1,200\r\n").replace(',', between);
        assert_eq!(Logs::of(log).read().unwrap().calls.len(), 1);
    }
}

#[test]
fn a_line_that_never_ends_is_passed_over() {
    let read = between("x".repeat(5 << 20));
    assert_eq!((read.summary.bad[&Fault::TooLong], read.summary.lines), (1, 4));
    let read = Logs::of(format!("{HEADER}1,a,1,200\n{}", "x".repeat(3 << 20))).read().unwrap();
    assert_eq!((read.summary.bad[&Fault::TooLong], read.calls.len()), (1, 1));
}

#[test]
fn a_quote_that_is_never_closed_costs_its_line_and_no_other() {
    let many = "1,a,1,200\n".repeat(200_000);
    let read = between(format!("1,\"a,1,200\n{many}"));
    assert_eq!((read.summary.bad[&Fault::Quote], read.calls.len()), (1, 200_002));
    assert_eq!(read.summary.samples[0].line, 3);
    assert_eq!(fault("1,\"a,1,200"), Fault::Quote);
}

#[test]
fn quoted_newlines_are_lines_to_the_line_numbers() {
    let read = between("1,\"a\nb\",1,200\nbad");
    assert_eq!((read.calls[1].0.as_str(), read.calls.len()), ("a\nb", 3));
    assert_eq!((read.summary.samples[0].line, read.summary.lines), (5, 6));
}

#[test]
fn bad_lines_are_reported_where_they_are_with_what_would_be_right() {
    let logs = Logs::of(format!("{HEADER}1,a,1,200\n{}", "soon,a\u{1b}[31m,1,200\n".repeat(1000)));
    let summary = logs.read().unwrap().summary;
    let text = summary.to_string();
    assert_eq!(
        summary.samples.iter().map(|sample| sample.line).collect::<Vec<_>>(),
        [3, 4, 6, 10, 18, 34, 66, 130, 258, 514]
    );
    assert!(
        text.contains("1000 of 1002 lines: the time can't be read; right: seconds since 1970, or RFC 3339"),
        "{text}"
    );
    assert!(text.contains("access.log:3: soon,a\\u{1b}[31m,1,200\n"), "{text}");
    assert_eq!(text.lines().count(), 6, "{text}");
}

#[test]
fn a_json_line_may_be_anything() {
    let good = r#"{"time":1,"target":"a","latency_ms":1,"status":200}"#;
    let lines = [
        "{",
        "[]",
        "null",
        r#"{"time":1}"#,
        r#"{"time":{},"target":"a","latency_ms":1,"status":200}"#,
        "{}x",
        r#"{"time":"\ud800"}"#,
    ];
    let read = Logs::of(format!("{good}\n{}\n{good}\n", lines.join("\n"))).read().unwrap();
    assert_eq!((read.calls.len(), read.summary.bad.values().sum::<u64>()), (2, lines.len() as u64), "{}", read.summary);
    let mut log = format!("{good}\n").into_bytes();
    log.extend_from_slice(b"{\"time\":1,\"target\":\"\xFF\",\"latency_ms\":1,\"status\":200}\n");
    assert_eq!(Logs::of(log).read().unwrap().summary.bad[&Fault::Utf8], 1);
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn gzip_is_known_by_its_first_bytes_and_may_have_several_members() {
    let log = [gzip(&format!("{HEADER}1,a,1,200\n")), gzip("2,a,1,200\n")].concat();
    assert_eq!(Logs::of(log).read().unwrap().calls.len(), 2);
}

/// Gives a byte at a time, as a pipe may.
struct Dripping<'b>(&'b [u8]);

impl io::Read for Dripping<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(1);
        self.0.read(&mut into[..most])
    }
}

#[test]
fn how_a_log_is_packed_is_known_however_its_bytes_arrive() {
    let read = |log: &[u8]| {
        let mut calls = 0;
        logs::read_from(Dripping(log), Path::new("log"), &Input::new(Vec::new()), |_, _| calls += 1).map(|_| calls)
    };
    assert_eq!(read(&gzip(&format!("{HEADER}1,a,1,200\n"))).unwrap(), 1);
    assert!(read(b"PK\x03\x04t").unwrap_err().to_string().contains("unzip -p"));
}

#[test]
fn gzip_that_is_cut_is_read_as_far_as_it_goes() {
    let lines: String = (1..20_000).map(|n| format!("{n},target-{},1,200\n", n * 7919 % 1000)).collect();
    let log = gzip(&format!("{HEADER}{lines}"));
    let read = Logs::of(&log[..log.len() / 2]).read().unwrap();
    assert!(read.calls.len() > 1000 && read.calls.len() < 19_999, "{}", read.calls.len());
    assert!(read.summary.to_string().contains("access.log: "), "{}", read.summary);
    assert_eq!(read.summary.damaged.len(), 1);
}

#[test]
fn files_that_cannot_be_read_are_named() {
    assert!(Logs::of(b"\x28\xB5\x2F\xFDxyz").refusal().contains("zstd -dc"));
    assert!(Logs::of(b"\xFF\xFEt\0i\0").refusal().contains("iconv"));
    let mut logs = Logs::new();
    logs.input.logs = vec!["/nowhere/access.log".into()];
    assert!(logs.refusal().starts_with("/nowhere/access.log: No such file"));
    logs.input.logs = vec!["/".into()];
    assert_eq!(logs.refusal(), "/: is a directory");
}

#[test]
fn an_empty_log_has_no_calls() {
    for log in ["", "\n\n", HEADER] {
        assert!(Logs::of(log).read().unwrap().calls.is_empty());
    }
}

#[test]
fn refusals_by_portcullis_are_no_calls() {
    let log = "time,target,latency_ms,status,code\n1,a,0,503,E904\n1,a,0,503,E905\n1,a,9,504,E901\n1,a,9,503,\n";
    let read = Logs::of(log).read().unwrap();
    let statuses: Vec<_> = read.calls.iter().map(|(_, call)| call.status).collect();
    assert_eq!((statuses, read.summary.refused), (vec![0, 503], 2));
}

#[test]
fn targets_are_bounded_in_number_and_length() {
    let lines: String = (0..50).map(|n| format!("1,target-{n},1,200\n")).collect();
    let mut logs = Logs::of(format!("{HEADER}{lines}1,{},1,200\n", "ä".repeat(500)));
    logs.input.max_targets = 10;
    let read = logs.read().unwrap();
    assert_eq!((read.summary.names.len(), read.summary.others, read.calls.len()), (10, 42, 51));
    assert_eq!(read.calls.iter().filter(|(target, _)| target == "other").count(), 42);
    logs.input.max_targets = 100;
    assert_eq!(logs.read().unwrap().calls.last().unwrap().0, "ä".repeat(128));
}
