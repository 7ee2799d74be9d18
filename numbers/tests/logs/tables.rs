//! CSV and JSON with named fields.

use portcullis::Outcome;

use super::support::{Logs, MS, at};

const HEADER: &str = "time,target,latency_ms,status\n";

#[test]
fn a_csv_line_is_a_call() {
    let read =
        Logs::of(format!("{HEADER}1700000000.25,core,12.5,200\n2023-11-14T22:13:21.5Z,rates,3,503\n")).read().unwrap();
    let [(core, first), (rates, second)] = &read.calls[..] else { panic!("{read:?}") };
    assert_eq!(
        (core.as_str(), first.start, first.latency, first.status),
        ("core", at(1_700_000_000.25), 12_500_000, 200)
    );
    assert_eq!(
        (rates.as_str(), second.start, second.latency, second.status),
        ("rates", at(1_700_000_001.5), 3 * MS, 503)
    );
    assert_eq!([first.outcome, second.outcome], [Outcome::Success, Outcome::Failure]);
    assert_eq!((read.summary.lines, read.summary.names.len()), (3, 2));
    assert!(read.summary.bad.is_empty());
}

#[test]
fn a_json_line_is_a_call() {
    let log = r#"{"time":1700000000.123456789,"target":"c\u006fre","latency_ms":0.25,"status":200,"more":{"a":[1]}}
{"status":"404","latency_ms":"7","time":"2023-11-14T23:13:21+01:00","target":"rates"}
"#;
    let read = Logs::of(log).read().unwrap();
    let [(core, first), (rates, second)] = &read.calls[..] else { panic!("{read:?}") };
    assert_eq!((core.as_str(), first.start, first.latency), ("core", 1_700_000_000_123_456_789, MS / 4));
    assert_eq!((rates.as_str(), second.start, second.status), ("rates", at(1_700_000_001.0), 404));
    assert_eq!(second.outcome, Outcome::Success);
}

#[test]
fn outcomes_are_told_by_the_status() {
    let statuses = ["200", "404", "429", "499", "500", "599", "0", "-", ""];
    let lines: String = (1..).zip(statuses).map(|(time, status)| format!("{time},a,1,{status}\n")).collect();
    let read = Logs::of(format!("{HEADER}{lines}")).read().unwrap();
    let outcomes: Vec<_> = read.calls.iter().map(|(_, call)| (call.status, call.outcome)).collect();
    use Outcome::{Failure, Ignored, Success};
    let expected = [
        (200, Success),
        (404, Success),
        (429, Failure),
        (499, Ignored),
        (500, Failure),
        (599, Failure),
        (0, Failure),
        (0, Failure),
        (0, Failure),
    ];
    assert_eq!(outcomes, expected);
}
