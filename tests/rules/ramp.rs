//! Recovery without a flood: the limit after HALF_OPEN closed, and what ends it. What it is good for is shown in `recovery.rs`.

use portcullis::{Cause, Permit, Policy, PolicyBuilder, Rejection, Rule, State, UNLIMITED, Window};

use crate::common::{Bench, T, ms, race, secs, take, textbook};

/// From 1 to 101 calls in 10 s: ten more each second.
fn ramping() -> PolicyBuilder {
    textbook().max_in_flight(101).ramp(secs(10))
}

/// Closed just now.
fn recovered(policy: PolicyBuilder) -> Bench {
    let bench = Bench::new(policy);
    trip(&bench);
    recover(&bench);
    bench
}

fn trip(bench: &Bench) {
    bench.fail(1);
    while bench.state() == State::Closed {
        bench.fail(1);
    }
}

fn recover(bench: &Bench) {
    bench.advance(bench.snapshot().reopen_in.expect("it is open"));
    bench.probe().success();
    assert_eq!(bench.state(), State::Closed);
}

/// Takes all that may be had: the permits, and the limit that ended it.
fn fill<'e>(bench: &'e Bench, held: &mut Vec<Permit<'e>>) -> u32 {
    loop {
        match bench.admit() {
            Ok(permit) => held.push(permit),
            Err(Rejection::Saturated { limit }) => return limit,
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn ramp_the_limit_is_linear_in_time_and_exact_at_each_moment() {
    let bench = recovered(ramping());
    let mut held = Vec::new();
    let mut seen = Vec::new();
    for millis in 0..10_000_u64 {
        let due = 1 + millis / 100;
        assert_eq!(u64::from(bench.snapshot().limit), due, "shown before anybody asked, after {millis} ms");
        assert_eq!(u64::from(fill(&bench, &mut held)), due, "after {millis} ms");
        let snapshot = bench.snapshot();
        assert_eq!((held.len() as u64, u64::from(snapshot.in_flight)), (due, due), "after {millis} ms");
        assert_eq!((snapshot.full_limit, snapshot.ramps_for), (101, Some(ms(10_000 - millis))));
        if due == 50 {
            seen.push(snapshot.to_string());
        }
        bench.advance(ms(1));
    }
    assert!(seen[0].contains("50 in flight of 50, ramping to 101"), "{}", seen[0]);
    let before = (bench.snapshot().generation, bench.log().len());
    assert_eq!((bench.snapshot().limit, bench.snapshot().ramps_for), (101, None));
    assert_eq!((fill(&bench, &mut held), held.len()), (101, 101));
    assert_eq!((bench.snapshot().generation, bench.log().len()), before, "the end of a ramp is no transition");
}

#[test]
fn ramp_one_nanosecond_early_is_a_call_less() {
    let bench = recovered(ramping());
    let mut held = Vec::new();
    bench.advance(ms(100) - std::time::Duration::from_nanos(1));
    assert_eq!(fill(&bench, &mut held), 1);
    bench.advance(std::time::Duration::from_nanos(1));
    assert_eq!(fill(&bench, &mut held), 2);
}

#[test]
fn ramp_begins_with_the_probes_and_counts_what_is_in_flight() {
    let bench = Bench::new(ramping().max_probes(4));
    let stragglers = take(&bench, 30);
    bench.fail(5);
    bench.advance(secs(30));
    let probes = take(&bench, 4);
    let mut probes = probes.into_iter();
    assert!(probes.next().is_some_and(|probe| probe.is_probe() && probe.success() == portcullis::Settled::Recorded));
    assert_eq!((bench.snapshot().limit, bench.snapshot().in_flight), (4, 33));
    // 4 + 97 × t / 10 s: 34 after 3.1 s.
    bench.advance(ms(3_092));
    assert_eq!(bench.refusal(), Rejection::Saturated { limit: 33 });
    bench.advance(ms(1));
    drop(bench.enter());
    drop((stragglers, probes));
}

#[test]
fn ramp_permits_stashed_before_the_outage_let_no_call_past_it() {
    // Large enough for stashes, which hold some of them idle by now.
    let bench = Bench::new(textbook().max_in_flight(1_000).ramp(secs(10)));
    let all = race(4, |_| (0..50).map(|_| bench.enter()).collect::<Vec<_>>());
    all.into_iter().flatten().for_each(|permit| assert_eq!(permit.success(), portcullis::Settled::Recorded));
    trip(&bench);
    recover(&bench);
    let got = race(4, |_| (0..5).map_while(|_| bench.admit().ok()).collect::<Vec<_>>());
    assert_eq!(got.iter().flatten().count(), 1);
    assert_eq!(bench.snapshot().in_flight, 1);
}

#[test]
fn ramp_many_threads_never_have_more_than_it_allows() {
    let bench = recovered(ramping());
    for step in 0..200_u64 {
        let due = 1 + step / 2;
        let got = race(4, |_| (0..due).map_while(|_| bench.admit().ok()).collect::<Vec<_>>());
        let count = got.iter().flatten().count() as u64;
        assert!(count >= 1 && count <= due, "{count} of {due}");
        drop(got);
        let mut held = Vec::new();
        assert_eq!(u64::from(fill(&bench, &mut held)), due, "a lone caller gets all of it");
        bench.advance(ms(50));
    }
}

#[test]
fn ramp_a_few_failures_reopen_without_min_calls_and_with_a_longer_wait() {
    let bench = recovered(ramping().min_calls(10));
    bench.succeed(1);
    bench.fail(2);
    assert_eq!((bench.state(), bench.snapshot().streak), (State::Closed, 2));
    bench.fail(1);
    let (snapshot, last) = (bench.snapshot(), bench.log().last().cloned().unwrap());
    assert_eq!((snapshot.state, snapshot.reopens, snapshot.reopen_in), (State::Open, 1, Some(secs(60))));
    assert_eq!((last.cause, last.wait), (Cause::Relapse, Some(secs(60))));
    let evidence = last.evidence.as_deref().unwrap();
    assert_eq!((evidence.rule(), evidence.calls, evidence.failures), (Rule::Relapse, 4, 3));
    assert_eq!((evidence.met[0].count, evidence.met[0].threshold), (3, 3));
    // Again: it counts as in a row. The limit is low only while it ramps.
    assert_eq!((snapshot.limit, snapshot.full_limit, snapshot.ramps_for), (101, 101, None));
    recover(&bench);
    bench.fail(3);
    assert_eq!((bench.snapshot().reopens, bench.snapshot().reopen_in), (2, Some(secs(120))));
}

#[test]
fn ramp_a_relapse_shows_among_any_number_of_successes_and_between_successes() {
    let bench = recovered(ramping().window(Window::calls(100)).min_calls(50));
    bench.succeed(100);
    bench.fail(3);
    assert_eq!(bench.log().last().unwrap().cause, Cause::Relapse);
    // No three in a row, but half of six.
    let bench = recovered(ramping().window(Window::time(secs(60))).min_calls(50));
    for _ in 0..2 {
        bench.succeed(1);
        bench.fail(1);
    }
    bench.succeed(1);
    assert_eq!(bench.state(), State::Closed);
    bench.fail(1);
    assert_eq!(bench.log().last().unwrap().evidence.as_ref().unwrap().met[0].calls, 6);
    // A streak is all that a policy without a window has.
    let bench = recovered(ramping_without_window());
    bench.fail(3);
    assert_eq!(bench.log().last().unwrap().cause, Cause::Relapse);
}

fn ramping_without_window() -> PolicyBuilder {
    let streak = Policy::builder().no_window().consecutive_failures(9).successes_to_close(1);
    streak.max_in_flight(101).ramp(secs(10)).ramp_failures(3).jitter(0.0)
}

#[test]
fn ramp_once_it_is_over_the_rules_are_the_usual_ones() {
    let bench = recovered(ramping().min_calls(10));
    bench.advance(secs(10));
    // The admission that finds it over isn't in it any more.
    bench.fail(9);
    assert_eq!(bench.state(), State::Closed);
    bench.fail(1);
    let last = bench.log().last().cloned().unwrap();
    assert_eq!((last.cause, bench.snapshot().reopens, last.wait), (Cause::FailureRate, 0, Some(secs(30))));
    assert_eq!(last.evidence.as_ref().unwrap().met.len(), 1);
}

#[test]
fn ramp_without_one_all_is_as_before() {
    let bench = recovered(textbook().max_in_flight(101).min_calls(10));
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.limit, snapshot.full_limit, snapshot.ramps_for), (101, 101, None));
    assert_eq!(take(&bench, 101).len(), 101);
    bench.fail(9);
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn r17_a_limit_set_by_hand_is_where_the_ramp_leads() {
    let bench = recovered(ramping());
    bench.advance(secs(5));
    assert_eq!(bench.snapshot().limit, 51);
    let mut held = Vec::new();
    assert_eq!(fill(&bench, &mut held), 51);
    let set = |limit| bench.engine.set_limit(T, limit).unwrap();
    for (limit, now) in [(21, 11), (0, 0), (2, 1), (101, 51), (201, 101)] {
        set(limit);
        let snapshot = bench.snapshot();
        assert_eq!((snapshot.limit, snapshot.full_limit), (now, limit));
        let due = if now > 51 { Some(bench.enter()) } else { None };
        assert_eq!(bench.admit().is_ok(), due.is_some(), "51 are in flight, and the limit is {now}");
    }
    // Without a limit it ramps to the policy's, and is then unlimited.
    set(UNLIMITED);
    assert_eq!(bench.snapshot().limit, 51);
    set(21);
    bench.advance(secs(5));
    held.clear();
    assert_eq!((fill(&bench, &mut held), held.len()), (21, 21));
    held.clear();
    // It is kept at the next outage.
    trip(&bench);
    recover(&bench);
    bench.advance(secs(5));
    assert_eq!((fill(&bench, &mut held), bench.snapshot().full_limit), (11, 21));
}

#[test]
fn r17_another_policy_changes_the_ramp_from_then_on() {
    let adopt = |bench: &Bench, policy: PolicyBuilder| bench.engine.set_policy(T, policy.build().unwrap()).unwrap();
    let half = || {
        let bench = recovered(ramping());
        bench.advance(secs(5));
        bench
    };
    let bench = half();
    adopt(&bench, ramping().max_in_flight(201));
    assert_eq!((bench.snapshot().limit, bench.snapshot().full_limit), (101, 201));
    let bench = half();
    adopt(&bench, ramping().ramp(secs(50)));
    assert_eq!((bench.snapshot().limit, bench.snapshot().ramps_for), (11, Some(secs(45))));
    assert_eq!(take(&bench, 11).len(), 11);
    // Over at once: shorter than what has passed, or none at all.
    for policy in [ramping().ramp(secs(3)), textbook().max_in_flight(101)] {
        let bench = half();
        adopt(&bench, policy);
        assert_eq!((bench.snapshot().limit, bench.snapshot().ramps_for), (101, None));
        assert_eq!(take(&bench, 101).len(), 101);
        bench.fail(1);
    }
    // An empty window, and the same ramp.
    let bench = half();
    adopt(&bench, ramping().window(Window::time(secs(60))));
    assert_eq!((bench.snapshot().limit, bench.snapshot().state), (51, State::Closed));
    bench.advance(secs(2));
    let mut held = Vec::new();
    assert_eq!(fill(&bench, &mut held), 71);
    held.clear();
    bench.fail(3);
    assert_eq!((bench.log().last().unwrap().cause, bench.snapshot().reopens), (Cause::Relapse, 1));
    // A ramp that comes while calls are refused is the next closing's.
    let bench = Bench::tripped(textbook().max_in_flight(101));
    adopt(&bench, ramping());
    recover(&bench);
    assert_eq!(bench.snapshot().limit, 1);
}

#[test]
fn r16_a_forced_state_ends_the_ramp_and_what_is_released_has_none() {
    let ways: [fn(&Bench) -> bool; 2] =
        [|bench| bench.engine.force_open(T).unwrap(), |bench| bench.engine.disable(T).unwrap()];
    for force in ways {
        let bench = recovered(ramping());
        assert!(force(&bench));
        assert_eq!((bench.snapshot().limit, bench.snapshot().ramps_for), (101, None));
        if bench.state() == State::Disabled {
            assert_eq!(take(&bench, 101).len(), 101);
        }
        assert!(bench.engine.release(T).unwrap());
        assert_eq!(take(&bench, 101).len(), 101);
        bench.fail(5);
        assert_eq!(bench.snapshot().reopens, 0);
    }
}

#[test]
fn r19_a_target_that_ramps_is_not_forgotten_before_it_is_through() {
    let bench = Bench::with(ramping().ramp(secs(600)), |builder| builder.idle_after(secs(60)));
    bench.fail(5);
    recover(&bench);
    let mut visits = 0;
    assert_eq!(bench.engine.sweep(), 0);
    while bench.engine.sweep() == 0 {
        bench.advance(secs(60));
        visits += 1;
        assert!(visits < 20);
    }
    assert_eq!(visits, 10);
    // Its place is another's, without a ramp.
    assert_eq!((take(&bench, 101).len(), bench.snapshot().ramps_for), (101, None));
}

#[test]
fn r18_a_ramp_needs_a_limit_and_a_length() {
    let error = |policy: PolicyBuilder| policy.build().unwrap_err().to_string();
    for (policy, parts) in [
        (Policy::builder().ramp(secs(5)), ["ramp", "5s", "max_in_flight"]),
        (textbook().max_in_flight(9).ramp(secs(0)), ["ramp", "0ns", "1ms to 86400s"]),
        (textbook().max_in_flight(9).ramp(secs(86_401)), ["ramp", "86401s", "1ms to 86400s"]),
        (textbook().max_in_flight(9).ramp_failures(3), ["ramp_failures", "3", "together with ramp"]),
        (textbook().max_in_flight(9).ramp(secs(1)).ramp_failures(0), ["ramp_failures", "0", "1 to 1000"]),
    ] {
        let error = error(policy);
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let policy = ramping().ramp_failures(7).build().unwrap();
    assert_eq!(policy.to_builder().build().unwrap(), policy);
    assert_ne!(ramping().build().unwrap(), policy);
}
