//! Snapshots: what they show, and that it adds up.

use std::sync::atomic::{AtomicBool, Ordering};

use portcullis::{Outcome, Snapshot, State, Totals, UNLIMITED, Window};

use crate::common::{Bench, Draw, T, ms, race, secs, take, textbook};

fn adds_up(snapshot: &Snapshot) {
    let Totals { admitted, success, failure, ignored, abandoned, stale, .. } = snapshot.totals;
    let ended = success + failure + ignored + abandoned + stale;
    assert_eq!(admitted, ended + u64::from(snapshot.in_flight), "{:?}", snapshot.totals);
}

#[test]
fn snapshot_totals_add_up_after_every_step() {
    let bench = Bench::new(textbook().probe_lease(secs(2)).max_in_flight(40));
    let mut draw = Draw(5);
    let mut held = Vec::new();
    let mut recorded = Vec::new();
    for _ in 0..3_000 {
        match draw.below(20) {
            0..=9 => held.extend(bench.admit()),
            10 => bench.advance(secs(draw.below(10))),
            11 => drop(bench.engine.disable(T)),
            12 => drop(bench.engine.release(T)),
            choice if !held.is_empty() => {
                let index = draw.below(held.len() as u64) as usize;
                let permit = held.swap_remove(index);
                match choice {
                    13 | 14 => _ = permit.failure(),
                    15 | 16 => _ = permit.success(),
                    17 => drop(permit),
                    18 => recorded.push(permit.record(Outcome::Success)),
                    _ => _ = permit.ignore(),
                }
            }
            _ => recorded.clear(),
        }
        if let Some(snapshot) = bench.engine.snapshot(T) {
            assert_eq!(snapshot.in_flight as usize, held.len() + recorded.len());
            if recorded.is_empty() {
                adds_up(&snapshot);
            }
        }
    }
    let totals = bench.snapshot().totals;
    assert!([totals.success, totals.failure, totals.ignored, totals.abandoned, totals.stale].iter().all(|n| *n > 10));
}

#[test]
fn snapshot_a_recorded_call_counts_as_its_outcome_and_still_as_in_flight() {
    let bench = Bench::new(textbook());
    let held = bench.enter().record(Outcome::Failure);
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.totals.failure, snapshot.totals.admitted), (1, 1, 1));
    drop(held);
    adds_up(&bench.snapshot());
}

/// What never goes back: `admitted` is none of it, since it adds two words up that calls move between.
fn all(snapshot: &Snapshot) -> [u64; 12] {
    let (t, r) = (snapshot.totals, snapshot.refusals);
    let ends = [t.success, t.failure, t.ignored, t.abandoned, t.slow, t.stale];
    let refused = [r.open, r.probing, r.saturated, r.shed, r.forced, r.total()];
    std::array::from_fn(|index| if index < 6 { ends[index] } else { refused[index - 6] })
}

/// Load of three threads until a fourth that looks saw things move often; how often that was.
fn watched(bench: &Bench, work: impl Fn(&mut Draw) + Sync) -> u64 {
    let done = AtomicBool::new(false);
    let seen = race(4, |thread| {
        if thread > 0 {
            let mut draw = Draw(thread as u64);
            while !done.load(Ordering::SeqCst) {
                work(&mut draw);
            }
            return 0;
        }
        let (mut before, mut moves) = ([0; 12], 0);
        for _ in 0..30_000 {
            let Some(snapshot) = bench.engine.snapshot(T) else { continue };
            let now = all(&snapshot);
            let goes_back = before.iter().zip(&now).any(|(before, now)| before > now);
            // The others must end before this thread may panic.
            done.store(goes_back, Ordering::SeqCst);
            assert!(!goes_back, "{before:?} then {now:?}");
            moves += u64::from(now != before);
            before = now;
        }
        done.store(true, Ordering::SeqCst);
        moves
    });
    seen.iter().sum()
}

#[test]
fn snapshot_totals_never_go_back_under_load() {
    let bench = Bench::new(textbook().probe_lease(secs(1)).max_in_flight(2).slow_call(ms(1)));
    let moves = watched(&bench, |draw| {
        if draw.below(50) == 0 {
            bench.advance(secs(5));
        }
        if let Ok(permit) = bench.admit() {
            match draw.below(6) {
                0 => _ = permit.failure(),
                1 => drop(permit),
                2 => _ = permit.ignore(),
                _ => _ = permit.success(),
            }
        }
    });
    assert!(moves > 10, "the watcher saw {moves} moves only");
    adds_up(&bench.snapshot());
}

#[test]
fn snapshot_totals_of_a_target_that_only_succeeds_never_go_back() {
    // In bursts past the stash's high mark, so that permits wander between magazine and pool.
    let bench = Bench::new(textbook().unlimited());
    let moves = watched(&bench, |draw| {
        let burst: Vec<_> = (0..draw.below(40) * draw.below(2)).filter_map(|_| bench.admit().ok()).collect();
        burst.into_iter().for_each(|permit| _ = permit.success());
    });
    assert!(moves > 10, "the watcher saw {moves} moves only");
    adds_up(&bench.snapshot());
}

#[test]
fn snapshot_shows_the_window_of_either_kind() {
    for window in [Window::calls(10), Window::time(secs(100)).buckets(4)] {
        let bench = Bench::new(textbook().window(window).min_calls(10).slow_call(secs(1)));
        bench.succeed(3);
        bench.fail(2);
        let slow = bench.enter();
        bench.advance(secs(1));
        slow.success();
        let snapshot = bench.snapshot();
        let shown = snapshot.window.unwrap();
        assert_eq!((shown.calls, shown.failures, shown.slow), (6, 2, 1));
        assert_eq!(snapshot.totals.slow, 1);
    }
    let bench = Bench::new(textbook().no_window().min_calls_unset());
    bench.fail(1);
    assert_eq!(bench.snapshot().window, None);
}

trait Unset {
    fn min_calls_unset(self) -> Self;
}

impl Unset for portcullis::PolicyBuilder {
    /// The textbook's rules on windows make no sense without one.
    fn min_calls_unset(self) -> Self {
        portcullis::Policy::builder().no_window()
    }
}

#[test]
fn snapshot_shows_each_state_s_own_fields() {
    let bench = Bench::new(textbook().max_probes(2).successes_to_close(3).consecutive_failures(50));
    bench.fail(4);
    let closed = bench.snapshot();
    assert_eq!((closed.state, closed.reopen_in, closed.streak, closed.limit), (State::Closed, None, 4, UNLIMITED));
    bench.fail(1);
    bench.advance(secs(10));
    let open = bench.snapshot();
    assert_eq!((open.state, open.reopen_in, open.streak), (State::Open, Some(secs(20)), 0));
    assert_eq!((open.probes_in_flight, open.probe_successes), (0, 0));
    bench.advance(secs(20));
    bench.probe().success();
    let probes = take(&bench, 2);
    let half_open = bench.snapshot();
    assert_eq!((half_open.state, half_open.probes_in_flight, half_open.probe_successes), (State::HalfOpen, 2, 1));
    assert_eq!((half_open.in_flight, half_open.reopen_in), (2, None));
    drop(probes);
    bench.probe().failure();
    assert_eq!((bench.snapshot().reopens, bench.snapshot().generation), (1, 3));
}

#[test]
fn snapshot_debug_shows_decoded_fields() {
    let bench = Bench::new(textbook().max_in_flight(7));
    bench.fail(3);
    let permit = bench.enter();
    let shown = format!("{:?}", bench.snapshot());
    for part in ["state: Closed", "generation: 0", "in_flight: 1", "limit: 7", "calls: 3", "failures: 3", "failure: 3"]
    {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    permit.failure();
    bench.fail(1);
    let target = bench.engine.target(T).unwrap();
    let shown = format!("{target:?}");
    for part in ["core-banking", "Open", "reopen_at_ms: 30000", "generation: 1"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    bench.advance(secs(30));
    let probe = bench.probe();
    let shown = format!("{target:?} {probe:?}");
    for part in ["HalfOpen", "probes: 1", "successes: 0", "lease_end_s: 60", "is_probe: true"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
}

#[test]
fn snapshot_display_is_a_line_for_people() {
    let bench = Bench::new(textbook().max_in_flight(7));
    bench.fail(3);
    let _permit = bench.enter();
    assert_eq!(bench.snapshot().to_string(), "CLOSED (generation 0), 1 in flight of 7, 3 of 3 calls failed");
}

#[test]
fn snapshot_of_an_unknown_key_is_none_and_makes_nothing() {
    let bench = Bench::new(textbook());
    assert!(bench.engine.snapshot(T).is_none());
    assert!(bench.engine.is_empty() && bench.engine.snapshots().is_empty());
    bench.engine.target("a").unwrap();
    bench.engine.target("b").unwrap();
    let mut keys: Vec<_> = bench.engine.snapshots().into_iter().map(|(key, _)| key.to_string()).collect();
    keys.sort();
    assert_eq!(keys, ["a", "b"]);
    assert!(format!("{:?}", bench.engine).contains("targets: 2"));
}

#[test]
fn snapshot_counts_probes_and_transitions_of_its_own_tenant_only() {
    let bench = Bench::with(textbook().max_probes(2), |builder| builder.max_targets(1).forget_after(secs(400)));
    let counted = || (bench.snapshot().probes_granted, bench.snapshot().transitions);
    bench.fail(5);
    assert_eq!(counted(), (0, 1));
    bench.advance(secs(30));
    let first = bench.probe();
    bench.probe().ignore();
    first.failure();
    assert_eq!(counted(), (2, 3), "a second probe is no transition");
    bench.advance(secs(60));
    bench.probe().success();
    assert_eq!((counted(), bench.log().len()), ((3, 5), 5));
    // The sweeper looks twice.
    bench.engine.sweep();
    bench.advance(secs(400));
    assert_eq!(bench.engine.sweep(), 1);
    bench.succeed(1);
    assert_eq!(counted(), (0, 0));
}

#[test]
fn snapshot_a_visit_shows_what_a_list_holds_and_may_call_the_engine() {
    let bench = Bench::new(textbook());
    for key in ["a", "b", "c"] {
        bench.engine.admit(key).unwrap().success();
    }
    let mut seen = Vec::new();
    bench.engine.visit(|key, snapshot| {
        bench.engine.admit(key.as_str()).unwrap().success();
        seen.push((key.to_string(), snapshot.totals.success));
    });
    seen.sort();
    assert_eq!(seen, ["a", "b", "c"].map(|key| (key.to_owned(), 1)));
    assert!(bench.engine.snapshots().iter().all(|(_, snapshot)| snapshot.totals.success == 2));
}
