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

#[test]
fn a_call_that_comes_too_late_is_counted_and_left_out() {
    // Blocks are handed over one by one, so the late one must not be in the first.
    let many: String = (1..=20_000).map(|n| format!("{},a,1,200\n", 1000 + n)).collect();
    let mut logs = Logs::of(format!("{HEADER}{many}1500,late,1,200\n20990,b,1,200\n"));
    logs.input.reorder = Duration::from_secs(60);
    let read = logs.read().unwrap();
    assert_eq!((read.calls.len(), read.summary.bad[&Fault::Late]), (20_001, 1));
    assert_eq!(read.summary.samples[0].line, 20_002);
    assert!(read.summary.held < 20_000, "{}", read.summary.held);
}

#[test]
fn one_wrong_time_in_the_future_makes_nothing_late() {
    let many: String = (1..=20_000).map(|n| format!("{},a,1,200\n", 1000 + n)).collect();
    let log = many.replacen("\n1500,", "\n9000000000,wrong,1,200\n1500,", 1);
    let read = Logs::of(format!("{HEADER}8000000000,wrong,1,200\n{log}")).read().unwrap();
    assert_eq!(read.calls.len(), 20_002);
    assert!(read.summary.bad.is_empty());
    assert!(read.calls[20_000..].iter().all(|(target, _)| target == "wrong"));
}

#[test]
fn a_log_that_was_idle_goes_on() {
    let read = Logs::of(format!("{HEADER}1,a,1,200\n2,a,1,200\n1000000,a,1,200\n1000001,a,1,200\n999999,a,1,200\n"))
        .read()
        .unwrap();
    assert_eq!(read.calls.len(), 5);
}

#[test]
fn rare_calls_are_handed_over_as_they_come() {
    let lines: String = (1..=20_000_u64).map(|n| format!("{},a,1,200\n", n * 100)).collect();
    let mut logs = Logs::of(format!("{HEADER}{lines}"));
    logs.input.reorder = Duration::from_secs(5);
    let read = logs.read().unwrap();
    assert_eq!((read.calls.len(), read.summary.bad.len()), (20_000, 0));
    assert!(read.summary.held < 20_000, "{}", read.summary.held);
}
