//! The order in which calls are handed over.

use std::time::Duration;

use portcullis_numbers::logs::Fault;

use super::support::Logs;

const HEADER: &str = "time,target,latency_ms,status\n";

#[test]
fn calls_out_of_order_are_handed_over_in_order() {
    let mut logs = Logs::of(format!("{HEADER}3,c,1,200\n1,a,1,200\n2,b,1,200\n"));
    logs.input.reorder = Duration::from_secs(5);
    let targets: Vec<_> = logs.read().unwrap().calls.into_iter().map(|(target, _)| target).collect();
    assert_eq!(targets, ["a", "b", "c"]);
}

#[test]
fn several_logs_are_one_in_whatever_order_they_are_named() {
    let logs = Logs::new()
        .and("access.log", format!("{HEADER}500,c,1,200\n"))
        .and("access.log.1", format!("{HEADER}1,a,1,200\n9,c,1,200\n"))
        .and("access.log.2", format!("{HEADER}5,b,1,200\n"));
    let read = logs.read().unwrap();
    let starts: Vec<_> = read.calls.iter().map(|(_, call)| call.start / 1_000_000_000).collect();
    assert_eq!(starts, [1, 5, 9, 500]);
    assert!(!read.summary.bad.contains_key(&Fault::Late));
}
