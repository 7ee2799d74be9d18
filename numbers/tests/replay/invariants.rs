//! What holds of any log and any policy.

use portcullis_numbers::logs::{Call, TargetId};
use portcullis_numbers::replay::Replay;
use portcullis_numbers::replay::report::Report;

use crate::log::{by_chance, names, policies, taken};

const POLICIES: [(&str, &str); 4] = [
    ("calls", "[defaults]\nmax_in_flight = 8\nmin_calls = 10\nopen_wait = \"500ms\"\n"),
    (
        "streak",
        "[defaults]\nconsecutive_failures = 4\ntimeout = \"300ms\"\nopen_wait = \"1s\"\n[target.t1]\nmax_in_flight = 3\n",
    ),
    (
        "time",
        "[defaults]\nmax_in_flight = 20\nwindow = { time = \"2s\", buckets = 10 }\nramp = \"2s\"\nslow_call = \"400ms\"\n",
    ),
    ("adaptive", "[defaults]\nmax_in_flight = 30\nadaptive = { algorithm = \"gradient\", min = 2, start = 5 }\n"),
];

fn all() -> Replay {
    Replay::new(POLICIES.map(|(name, text)| (name.to_owned(), policies(text))).into())
}

fn play(mut replay: Replay, log: &[Call]) -> Report {
    let names = names(5);
    log.iter().for_each(|call| replay.take(call, &names));
    replay.finish(100)
}

fn json(report: &Report) -> String {
    serde_json::to_string(report).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_call_is_admitted_or_refused_and_every_refusal_has_a_reason_and_a_fate() {
    for seed in 0..2 {
        let report = play(all(), &by_chance(seed, 5, 20_000));
        let mut refusals = [0; 3];
        for target in &report.targets {
            for under in target.under.iter().flatten() {
                let sums = &under.sums;
                assert_eq!(target.calls, sums.admitted + sums.refused);
                assert_eq!(sums.refused, sums.refused_open + sums.refused_probing + sums.refused_saturated);
                assert!(sums.refused_good + sums.failures_avoided <= sums.refused);
                assert!(sums.refused - sums.refused_good - sums.failures_avoided <= target.abandoned);
                let of_series = under.series.iter().fold((0, 0, 0), |(admitted, refused, good), point| {
                    let point_refused = u64::from(point.turned_away + point.full);
                    (
                        admitted + u64::from(point.admitted),
                        refused + point_refused,
                        good + u64::from(point.refused_good),
                    )
                });
                assert_eq!(of_series, (sums.admitted, sums.refused, sums.refused_good));
                let opened = under.transitions.iter().filter(|change| change.to == portcullis::State::Open).count();
                assert_eq!(
                    opened as u64 + under.transitions_untold,
                    sums.trips + sums.reopened + under.transitions_untold
                );
                for (sum, more) in
                    refusals.iter_mut().zip([sums.refused_open, sums.refused_probing, sums.refused_saturated])
                {
                    *sum += more;
                }
            }
            assert_eq!(target.series.iter().map(|point| u64::from(point.calls)).sum::<u64>(), target.calls);
        }
        assert!(refusals.iter().all(|refused| *refused > 0), "{refusals:?}: the logs must lead everywhere");
    }
}

#[test]
fn the_engines_own_totals_are_the_reports() {
    for (_, policy) in POLICIES {
        let log = by_chance(7, 1, 10_000);
        let mut replay = taken(policy, &log);
        // Nothing is in flight an hour later, when one more call is asked for.
        let last = log.last().unwrap();
        let late = Call { start: last.start + 3_600_000_000_000, latency: 0, ..*last };
        replay.take(&late, &names(1));
        let snapshot = replay.snapshot("p", "t0").unwrap();
        let report = replay.finish(1);
        let under = report.targets[0].under[0].as_ref().unwrap();
        assert_eq!((snapshot.totals.admitted, snapshot.in_flight), (under.sums.admitted, 1));
        let refusals = snapshot.refusals;
        let told = (under.sums.refused_open, under.sums.refused_probing, under.sums.refused_saturated);
        assert_eq!((refusals.open, refusals.probing, refusals.saturated), told);
        assert_eq!(refusals.total(), under.sums.refused);
    }
}

#[test]
fn policies_side_by_side_do_what_each_does_alone() {
    let log = by_chance(11, 5, 10_000);
    let together = play(all(), &log);
    for (n, (name, text)) in POLICIES.into_iter().enumerate() {
        let alone = play(Replay::new(vec![(name.to_owned(), policies(text))]), &log);
        for target in &alone.targets {
            let same = together.targets.iter().find(|other| other.name == target.name).unwrap();
            let json = |under| serde_json::to_string(under).unwrap();
            assert_eq!(json(&target.under[0]), json(&same.under[n]), "{name}, {}", target.name);
        }
    }
}

#[test]
fn a_target_among_others_does_what_it_does_alone() {
    let log = by_chance(13, 5, 10_000);
    // What the others do must not matter to it, but for when the log begins.
    let first = Call { target: TargetId(0), ..log[0] };
    let alone: Vec<Call> =
        std::iter::once(first).chain(log.iter().copied().filter(|call| call.target.0 == 0)).collect();
    let with_first: Vec<Call> = std::iter::once(first).chain(log.iter().copied()).collect();
    let among = play(all(), &with_first);
    let alone = play(all(), &alone);
    let sums = |report: &Report| {
        let target = report.targets.iter().find(|target| target.name == "t0").unwrap();
        let told = |under: &portcullis_numbers::replay::report::Under| {
            let changes = serde_json::to_string(&under.transitions).unwrap();
            (serde_json::to_string(&under.sums).unwrap(), changes, under.peak_in_flight)
        };
        target.under.iter().flatten().map(told).collect::<Vec<_>>()
    };
    assert_eq!(sums(&among), sums(&alone));
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    // More than are played at a time.
    let log = by_chance(17, 5, 66_000);
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| json(&play(all(), &log)))
    };
    assert_eq!(with(1), with(4));
}
