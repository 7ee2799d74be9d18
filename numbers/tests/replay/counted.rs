//! Each log is small enough to count on one's fingers.

use portcullis::Outcome::{Failure, Ignored, Success};
use portcullis::State;
use portcullis_numbers::logs::Call;

use crate::log::{EPOCH_MS, call, names, only, played, policies, taken};

const FIVE: &str = r#"
    [defaults]
    window = "none"
    failure_rate = "none"
    consecutive_failures = 5
    open_wait = "1s"
    jitter = 0.0
    successes_to_close = 1
"#;

/// A call each 100 ms, of 10 ms; those that start from 1 s to 1.9 s fail.
fn outage() -> Vec<Call> {
    let failed = |at| if (1_000..2_000).contains(&at) { Failure } else { Success };
    (0..40).map(|n| n * 100).map(|at| call(0, at, 10, failed(at))).collect()
}

#[test]
fn five_failures_in_a_row_trip_when_the_fifth_ends() {
    let report = played(FIVE, &outage());
    let under = only(&report);
    let changes: Vec<_> =
        under.transitions.iter().map(|change| (change.at_ms - EPOCH_MS, change.to, change.cause.as_str())).collect();
    let expected = [
        (1_410, State::Open, "consecutive_failures"),
        (2_500, State::HalfOpen, "wait_elapsed"),
        (2_510, State::Closed, "probes_succeeded"),
    ];
    assert_eq!(changes, expected);
    let evidence = under.transitions[0].evidence.as_ref().unwrap();
    assert_eq!((evidence.streak, evidence.met[0].count, evidence.met[0].threshold), (5, 5, 5));
    assert_eq!(under.first_trip_after_ms, Some(400), "from 1,010 to 1,410");
    // From 1,410 to 2,410 it refuses; the probe comes at 2,500 and ends at 2,510.
    assert_eq!((under.open_ms, under.half_open_ms), (1_000, 100));
}

#[test]
fn refusals_are_told_by_what_had_come_of_the_calls() {
    let report = played(FIVE, &outage());
    let sums = &only(&report).sums;
    // Those of 1,500 to 1,900 had failed, those of 2,000 to 2,400 succeeded.
    assert_eq!((sums.refused, sums.failures_avoided, sums.refused_good), (10, 5, 5));
    assert_eq!((sums.refused_open, sums.refused_probing, sums.refused_saturated), (10, 0, 0));
    assert_eq!((sums.spared_ms, sums.trips, sums.reopened, sums.probes), (50, 1, 0, 1));
    assert_eq!(sums.admitted, 30);
    let totals = &report.policies[0];
    assert_eq!((totals.name.as_str(), totals.sums.refused, totals.unasked), ("p", 10, 0));
    assert_eq!((report.targets[0].calls, report.targets[0].failures), (40, 10));
}

#[test]
fn one_failure_less_in_a_row_does_not_trip() {
    let mut log = outage();
    log[14].outcome = Success;
    let report = played(&FIVE.replace("= 5", "= 6"), &log);
    assert_eq!(only(&report).sums.trips, 0);
}

#[test]
fn a_failed_probe_opens_again_and_waits_for_longer() {
    let failed = |at| if at >= 1_000 { Failure } else { Success };
    let log: Vec<_> = (0..60).map(|n| n * 100).map(|at| call(0, at, 10, failed(at))).collect();
    let report = played(FIVE, &log);
    let under = only(&report);
    let opened: Vec<_> = under
        .transitions
        .iter()
        .filter(|change| change.to == State::Open)
        .map(|change| change.at_ms - EPOCH_MS)
        .collect();
    // The probe of 2,500 fails at 2,510: 2 s from there; that of 4,600 at 4,610: 4 s.
    assert_eq!(opened, [1_410, 2_510, 4_610]);
    assert_eq!((under.sums.trips, under.sums.reopened, under.sums.probes), (1, 2, 2));
}

#[test]
fn calls_beside_the_probe_are_refused_as_such() {
    let mut log = outage();
    // The probe of 2,500 takes until 2,750: those of 2,600 and 2,700 find it at work.
    log[25].latency = 250_000_000;
    let report = played(FIVE, &log);
    assert_eq!((only(&report).sums.refused_probing, only(&report).sums.refused_open), (2, 10));
}

#[test]
fn a_call_that_ends_when_another_starts_has_ended() {
    let limit = "[defaults]\nmax_in_flight = 1\n";
    let next = |at| [call(0, 0, 100, Success), call(0, at, 100, Success)];
    let report = played(limit, &next(100));
    assert_eq!((only(&report).sums.refused_saturated, only(&report).peak_in_flight), (0, 1));
    let report = played(limit, &next(99));
    assert_eq!((only(&report).sums.refused_saturated, only(&report).sums.refused_good), (1, 1));
}

#[test]
fn calls_in_flight_are_counted_at_their_peak() {
    // Of 30 ms each, one each 10 ms: three at once.
    let log: Vec<_> = (0..20).map(|n| call(0, n * 10, 30, Success)).collect();
    assert_eq!(only(&played("", &log)).peak_in_flight, 3);
    let limited = played("[defaults]\nmax_in_flight = 2\n", &log);
    // Two start, the third finds both at work: one of three is refused, until the log ends.
    assert_eq!((only(&limited).peak_in_flight, only(&limited).sums.refused_saturated), (2, 6));
}

#[test]
fn the_policys_timeout_ends_a_call_as_a_failure() {
    let policy = format!("{FIVE}timeout = \"50ms\"\n");
    let log: Vec<_> = (0..5).map(|n| call(0, n * 100, 80, Success)).collect();
    let report = played(&policy, &log);
    let under = only(&report);
    assert_eq!((under.sums.cut, under.sums.cut_good, under.sums.spared_ms), (5, 5, 150));
    assert_eq!(under.transitions[0].at_ms - EPOCH_MS, 450);
    let just: Vec<_> = (0..5).map(|n| call(0, n * 100, 50, Success)).collect();
    assert_eq!(only(&played(&policy, &just)).sums.cut, 0);
}

#[test]
fn a_probe_has_its_own_timeout() {
    let mut log = outage();
    log[25].latency = 40_000_000;
    let policy = format!("{FIVE}timeout = \"50ms\"\nprobe_timeout = \"20ms\"\n");
    let report = played(&policy, &log);
    let under = only(&report);
    assert_eq!((under.sums.cut, under.sums.reopened), (1, 1));
    assert_eq!(under.transitions[2].at_ms - EPOCH_MS, 2_520);
}

#[test]
fn a_client_that_leaves_says_something_once_it_has_waited() {
    let five = |latency| (0..5).map(|n| call(0, n * 1_000, latency, Ignored)).collect::<Vec<_>>();
    // As in the gateway: silence of 500 ms is the target's.
    assert_eq!(only(&played(FIVE, &five(499))).sums.trips, 0);
    assert_eq!(only(&played(FIVE, &five(500))).sums.trips, 1);
    let ignored = format!("{FIVE}on_abandon = \"ignore\"\n");
    assert_eq!(only(&played(&ignored, &five(500))).sums.trips, 0);
}

#[test]
fn a_call_out_of_order_starts_no_earlier_than_the_one_before() {
    let report = played("[defaults]\nmax_in_flight = 1\n", &[call(0, 100, 50, Success), call(0, 20, 50, Success)]);
    // At 100, where the first one is at work.
    assert_eq!(only(&report).sums.refused_saturated, 1);
}

#[test]
fn a_trip_by_slow_calls_has_no_first_failure() {
    let policy = "[defaults]\nfailure_rate = \"none\"\nslow_call = \"50ms\"\nmin_calls = 5\n";
    let log: Vec<_> = (0..5).map(|n| call(0, n * 100, 60, Success)).collect();
    let report = played(policy, &log);
    assert_eq!((only(&report).sums.trips, only(&report).first_trip_after_ms), (1, None));
}

#[test]
fn a_target_that_hangs_trips_while_its_calls_run() {
    let policy = "[defaults]\nmax_in_flight = 10\nstall_after = \"1s\"\nstalled_calls = 3\n";
    let log: Vec<_> = (0..20).map(|n| call(0, n * 200, 60_000, Failure)).collect();
    let report = played(policy, &log);
    let trip = &only(&report).transitions[0];
    // Those of 0, 200 and 400 have been running for 1 s at 1,400; in steps of 250 ms it is seen by the next call.
    assert_eq!((trip.cause.as_str(), trip.evidence.as_ref().unwrap().stalled), ("stalled_calls", 3));
    assert!((1_400..=1_800).contains(&(trip.at_ms - EPOCH_MS)), "{trip:?}");
}

#[test]
fn a_target_without_a_policy_is_told_of_and_not_asked() {
    let policy = "[defaults]\nramp = \"10s\"\n[target.t1]\nmax_in_flight = 5\n";
    let report = played(policy, &[call(0, 0, 1, Success), call(1, 1, 1, Success), call(0, 2, 1, Success)]);
    assert_eq!(report.policies[0].unasked, 2);
    let without: Vec<_> = report.targets.iter().filter(|target| target.under[0].is_none()).collect();
    assert_eq!((without.len(), without[0].name.as_str(), without[0].calls), (1, "t0", 2));
    assert!(report.targets.iter().any(|target| target.under[0].as_ref().is_some_and(|under| under.has_table)));
}

#[test]
fn the_worst_targets_come_first_and_only_they_in_detail() {
    let mut log: Vec<_> = (0..30).map(|n| call(n % 3, u64::from(n) * 100, 10, Success)).collect();
    log.extend((0..10).map(|n| call(1, 4_000 + n * 100, 10, Failure)));
    let report = taken(FIVE, &log).finish(1);
    assert_eq!(report.targets.iter().map(|target| target.name.as_str()).collect::<Vec<_>>(), ["t1", "t0", "t2"]);
    assert_eq!(report.in_detail, 1);
    assert!(!report.targets[0].series.is_empty() && report.targets[1].series.is_empty());
    assert!(report.targets[2].under[0].as_ref().unwrap().series.is_empty());
}

#[test]
fn an_empty_log_is_an_empty_report() {
    let report = played(FIVE, &[]);
    assert_eq!((report.log.calls, report.targets.len(), report.policies.len()), (0, 0, 1));
}

#[test]
fn a_log_of_years_still_plays() {
    let day = 86_400_000;
    let log: Vec<_> = (0..1_500).map(|n| call(0, n * day, 10, Failure)).collect();
    let report = played(FIVE, &log);
    let under = only(&report);
    assert_eq!(under.sums.admitted + under.sums.refused, 1_500);
    assert!(under.series.len() <= 300 && report.log.bucket_ms >= 5 * day);
}

#[test]
fn buckets_reach_to_the_end_of_the_last_call() {
    let month = 30 * 86_400_000;
    let report = played(FIVE, &[call(0, 0, 10, Success), call(0, 5, month, Success), call(0, 20, 10, Success)]);
    assert!((report.log.to_ms - report.log.from_ms) / report.log.bucket_ms < 300, "{}", report.log.bucket_ms);
    assert_eq!((report.targets[0].series.len(), report.targets[0].series[0].calls), (1, 3));
}

#[test]
fn policies_side_by_side_are_named_in_their_order() {
    let two = vec![("one".to_owned(), policies(FIVE)), ("two".to_owned(), policies(""))];
    let mut replay = portcullis_numbers::replay::Replay::new(two);
    let names = names(1);
    outage().iter().for_each(|call| replay.take(call, &names));
    let report = replay.finish(1);
    assert_eq!(report.policies.iter().map(|totals| totals.name.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!((report.policies[0].sums.trips, report.targets[0].under.len()), (1, 2));
}
