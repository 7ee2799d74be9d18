//! The stall rule: calls that are still running.
//!
//! With `stall_after` of 8 s a tick is a second: what began in second n has stalled once second n + 9 begins.

use std::sync::Arc;

use portcullis::{Cause, Clock, Engine, Permit, PolicyBuilder, Rejection, Rule, Settled, State};

use crate::common::{Bench, T, listener, ms, race, secs, take, textbook};

/// Three calls that hang are too many.
fn three() -> PolicyBuilder {
    textbook().max_in_flight(10).stall_after(secs(8)).stalled_calls(3)
}

impl Bench {
    fn waits(&self) -> Rejection {
        let rejection = self.refusal();
        assert!(matches!(rejection, Rejection::Open { .. }), "{rejection:?}");
        rejection
    }

    fn stalled(&self) -> u64 {
        self.snapshot().stalled
    }
}

#[test]
fn a_hung_target_trips_while_its_calls_still_run() {
    let bench = Bench::new(three());
    let hung = take(&bench, 3);
    bench.advance(ms(8_999));
    let fourth = bench.enter();
    bench.advance(ms(1));
    assert_eq!(bench.waits(), Rejection::Open { retry_after: secs(30) });
    let trip = bench.log()[0].clone();
    assert_eq!((trip.from, trip.to, trip.cause), (State::Closed, State::Open, Cause::StalledCalls));
    let evidence = trip.evidence.as_deref().expect("a trip has evidence");
    let met = evidence.met[0];
    assert_eq!((met.rule, met.count, met.calls, met.threshold), (Rule::StalledCalls, 3, 10, 3));
    assert_eq!((evidence.met.len(), evidence.stalled, evidence.policy_version), (1, 3, 0));
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.refusals.open, snapshot.stalled), (4, 1, 0));
    // What they come to is of the generation that has ended.
    for permit in hung.into_iter().chain([fourth]) {
        assert_eq!(permit.failure(), Settled::Stale);
    }
    assert_eq!((bench.snapshot().in_flight, bench.log().len()), (0, 1));
}

#[test]
fn a_stall_is_noticed_at_most_a_tick_late_and_never_early() {
    for (begun, noticed) in [(0, 9_000), (1, 9_000), (999, 9_000), (1_000, 10_000)] {
        let bench = Bench::new(three().stalled_calls(1));
        bench.advance(ms(begun));
        let _hung = bench.enter();
        // Calls keep coming.
        for millis in begun + 1..noticed {
            bench.advance(ms(1));
            assert!(
                bench.admit().is_ok_and(|permit| permit.success() == Settled::Recorded),
                "{begun}: early at {millis}"
            );
        }
        bench.advance(ms(1));
        bench.waits();
    }
}

#[test]
fn a_full_bulkhead_hides_no_stall() {
    for by_handle in [false, true] {
        let bench = Bench::new(three().max_in_flight(3));
        let target = bench.engine.target(T).unwrap();
        let refusal = || if by_handle { target.admit().unwrap_err() } else { bench.refusal() };
        let _hung = take(&bench, 3);
        for _ in 0..8 {
            assert_eq!((refusal(), refusal()), (Rejection::Saturated { limit: 3 }, Rejection::Saturated { limit: 3 }));
            bench.advance(secs(1));
        }
        assert_eq!(refusal(), Rejection::Saturated { limit: 3 });
        bench.advance(secs(1));
        assert_eq!(refusal(), Rejection::Open { retry_after: secs(30) });
        let refusals = bench.snapshot().refusals;
        assert_eq!((refusals.saturated, refusals.open), (17, 1));
    }
}

#[test]
fn a_snapshot_notices_a_stall_where_nobody_calls() {
    let bench = Bench::new(three());
    let (heard, ears) = listener();
    let _listening = bench.engine.observe(ears);
    let target = bench.engine.target(T).unwrap();
    let _hung = take(&bench, 3);
    bench.advance(secs(9));
    // A look at the state alone changes nothing.
    assert_eq!((target.state(), heard.lock().unwrap().len()), (State::Closed, 0));
    assert_eq!(target.snapshot().state, State::Open);
    assert_eq!(heard.lock().unwrap()[0].cause, Cause::StalledCalls);

    for look in [|engine: &Engine| drop(engine.snapshots()), |engine: &Engine| drop(engine.snapshot(T))] {
        let bench = Bench::new(three());
        let _hung = take(&bench, 3);
        bench.advance(secs(9));
        look(&bench.engine);
        assert_eq!(bench.last_state(), State::Open);
    }
}

#[test]
fn a_lone_caller_after_a_long_quiet_judges_first() {
    let bench = Bench::new(three());
    let _hung = take(&bench, 3);
    bench.advance(secs(3_600));
    bench.waits();
}

#[test]
fn calls_that_end_in_time_or_too_late_are_not_running() {
    let bench = Bench::new(three().no_failure_rate());
    for second in 0..100 {
        // Two at any time, each for up to 20 s.
        let (one, other) = (bench.enter(), bench.enter());
        bench.advance(secs(second % 21));
        assert_eq!(bench.stalled(), if second % 21 < 9 { 0 } else { 2 });
        one.success();
        drop(other);
        assert_eq!(bench.stalled(), 0);
    }
    assert_eq!(bench.log().len(), 0);
}

#[test]
fn a_share_is_of_the_limit_in_force() {
    let half = || textbook().max_in_flight(10).stall_after(secs(8)).stalled_share(0.5);
    let bench = Bench::new(half());
    let mut hung = take(&bench, 4);
    bench.advance(secs(9));
    hung.push(bench.enter());
    assert_eq!((bench.state(), bench.stalled()), (State::Closed, 4));
    bench.advance(secs(9));
    bench.waits();
    let met = bench.log()[0].evidence.as_ref().unwrap().met[0];
    assert_eq!((met.rule, met.count, met.calls, met.threshold), (Rule::StalledShare, 5, 10, 5_000));

    let bench = Bench::new(half());
    let _hung = take(&bench, 4);
    bench.advance(secs(9));
    assert_eq!(bench.state(), State::Closed);
    bench.engine.set_limit(T, 8).unwrap();
    assert_eq!(bench.state(), State::Open);

    let bench = Bench::new(half());
    bench.enter().success();
    // A limit of 0 and nothing that hangs.
    bench.engine.set_limit(T, 0).unwrap();
    bench.advance(secs(9));
    assert_eq!((bench.refusal(), bench.state()), (Rejection::Saturated { limit: 0 }, State::Closed));
}

#[test]
fn what_hung_before_a_reopening_says_nothing_new() {
    let bench = Bench::new(three());
    let mut hung = take(&bench, 3);
    bench.advance(secs(9));
    bench.waits();
    bench.advance(secs(30));
    bench.probe().success();
    assert_eq!((bench.state(), bench.snapshot().in_flight), (State::Closed, 3));
    bench.advance(secs(100));
    assert_eq!((bench.enter().success(), bench.stalled()), (Settled::Recorded, 0));
    // Two new ones, and an old one that ends meanwhile, are two.
    let _new = take(&bench, 2);
    bench.advance(secs(9));
    assert_eq!(hung.pop().map(Permit::failure), Some(Settled::Stale));
    assert_eq!((bench.stalled(), bench.state()), (2, State::Closed));
    let _third = bench.enter();
    bench.advance(secs(9));
    bench.waits();
}

#[test]
fn a_leaked_permit_counts_in_its_generation_only() {
    let bench = Bench::new(three().stalled_calls(1));
    std::mem::forget(bench.enter());
    bench.advance(secs(9));
    bench.waits();
    bench.advance(secs(30));
    bench.probe().success();
    bench.advance(secs(1_000));
    assert_eq!((bench.enter().success(), bench.stalled(), bench.log().len()), (Settled::Recorded, 0, 3));
}

#[test]
fn probes_and_forced_states_are_not_judged() {
    let bench = Bench::new(three().stalled_calls(1).max_probes(2).probe_lease(secs(3_600)));
    let hung = bench.enter();
    bench.advance(secs(9));
    bench.waits();
    bench.advance(secs(30));
    let _probe = bench.probe();
    bench.advance(secs(100));
    assert_eq!((bench.state(), bench.probe().is_probe()), (State::HalfOpen, true));
    bench.engine.disable(T).unwrap();
    let disabled = bench.enter();
    bench.advance(secs(100));
    assert_eq!((bench.state(), bench.enter().success()), (State::Disabled, Settled::Recorded));
    bench.engine.force_open(T).unwrap();
    assert_eq!((bench.refusal(), bench.state()), (Rejection::ForcedOpen, State::ForcedOpen));
    bench.engine.release(T).unwrap();
    bench.advance(secs(100));
    assert_eq!((bench.enter().success(), bench.state()), (Settled::Recorded, State::Closed));
    assert_eq!((disabled.success(), hung.success(), bench.stalled()), (Settled::Stale, Settled::Stale, 0));
}

fn shared(policy: PolicyBuilder) -> (Arc<Engine>, Arc<quanta::Mock>) {
    let (clock, time) = Clock::mock();
    (Arc::new(Engine::builder().policy(policy.build().unwrap()).clock(clock).build()), time)
}

#[test]
fn a_recorded_outcome_or_a_sign_of_life_is_no_stall() {
    let (engine, time) = shared(three().stalled_calls(1));
    let stalled = || engine.snapshot(T).unwrap().stalled;
    let borrowed = engine.admit(T).unwrap().record(portcullis::Outcome::Success);
    let owned = engine.admit_owned(T).unwrap().record(portcullis::Outcome::Success);
    let mut touched = engine.admit_async(T).unwrap();
    touched.touch();
    time.increment(secs(100));
    assert_eq!((stalled(), engine.snapshot(T).unwrap().in_flight), (0, 3));
    touched.touch();
    assert_eq!(touched.success(), Settled::Recorded);
    drop((borrowed, owned));
    assert_eq!((stalled(), engine.transitions().len()), (0, 0));
    let late = engine.admit_async(T).unwrap();
    time.increment(secs(9));
    assert_eq!(engine.snapshot(T).unwrap().state, State::Open);
    drop(late);
}

#[test]
fn r17_calls_from_before_the_rule_are_not_counted() {
    let adopt = |bench: &Bench, policy: PolicyBuilder| bench.engine.set_policy(T, policy.build().unwrap()).unwrap();
    let bench = Bench::new(textbook().max_in_flight(10));
    let before = take(&bench, 3);
    adopt(&bench, three());
    // The first rule of its kind changes nothing of what is there.
    assert_eq!((bench.log().len(), bench.snapshot().generation), (0, 0));
    let _two = take(&bench, 2);
    bench.advance(secs(9));
    assert_eq!((bench.stalled(), bench.state()), (2, State::Closed));
    for permit in before {
        assert_eq!(permit.success(), Settled::Recorded);
    }
    assert_eq!(bench.stalled(), 2);
    // Another threshold is judged by at once.
    adopt(&bench, three().stalled_calls(2));
    assert_eq!((bench.state(), bench.log()[0].evidence.as_ref().unwrap().policy_version), (State::Open, 2));
}

#[test]
fn r17_another_stall_after_starts_empty() {
    let adopt = |bench: &Bench, policy: PolicyBuilder| bench.engine.set_policy(T, policy.build().unwrap()).unwrap();
    for stall_after in [secs(4), secs(9), secs(16), ms(50)] {
        let bench = Bench::new(three());
        let before = take(&bench, 3);
        bench.advance(secs(7));
        adopt(&bench, three().stall_after(stall_after));
        let changed = bench.log()[0].clone();
        assert_eq!((changed.from, changed.to, changed.cause), (State::Closed, State::Closed, Cause::PolicyChanged));
        let _two = take(&bench, 2);
        bench.advance(secs(20));
        assert_eq!((bench.stalled(), bench.state()), (2, State::Closed));
        for permit in before {
            assert_eq!(permit.success(), Settled::Stale);
        }
        assert_eq!(bench.stalled(), 2);
        let _third = bench.enter();
        bench.advance(secs(20));
        bench.waits();
    }
}

#[test]
fn r17_a_rule_that_was_off_meanwhile_starts_empty() {
    let adopt = |bench: &Bench, policy: PolicyBuilder| bench.engine.set_policy(T, policy.build().unwrap()).unwrap();
    let bench = Bench::new(three());
    let before = take(&bench, 3);
    adopt(&bench, textbook().max_in_flight(10));
    bench.advance(secs(20));
    assert_eq!((bench.enter().success(), bench.stalled(), bench.log().len()), (Settled::Recorded, 0, 0));
    adopt(&bench, three());
    bench.advance(secs(20));
    assert_eq!((bench.stalled(), bench.state()), (0, State::Closed));
    for permit in before {
        assert_eq!(permit.success(), Settled::Stale);
    }
    let _three = take(&bench, 3);
    bench.advance(secs(9));
    bench.waits();
}

#[test]
fn r17_another_stall_after_elsewhere_is_no_transition() {
    let adopt = |bench: &Bench, policy: PolicyBuilder| bench.engine.set_policy(T, policy.build().unwrap()).unwrap();
    let bench = Bench::new(three());
    let _hung = take(&bench, 3);
    bench.advance(secs(9));
    bench.waits();
    adopt(&bench, three().stall_after(secs(4)));
    assert_eq!((bench.log().len(), bench.last_state()), (1, State::Open));
    bench.advance(secs(30));
    bench.probe().success();
    let _three = take(&bench, 3);
    bench.advance(ms(4_500));
    bench.waits();
}

#[test]
fn r19_the_next_tenant_of_a_slot_finds_no_calls() {
    let policy = three().stalled_calls(1);
    let bench = Bench::with(policy, |builder| builder.max_targets(1).idle_after(secs(1)).forget_after(secs(1)));
    // Late, so that its buckets are in use, and ended.
    for _ in 0..20 {
        let permit = bench.enter();
        bench.advance(ms(700));
        permit.success();
    }
    bench.engine.sweep();
    bench.advance(secs(60));
    assert_eq!(bench.engine.sweep(), 1);
    let next = bench.engine.admit("ledger").unwrap();
    bench.advance(secs(8));
    assert_eq!(bench.engine.snapshot("ledger").unwrap().stalled, 0);
    bench.advance(secs(1));
    let snapshot = bench.engine.snapshot("ledger").unwrap();
    assert_eq!((snapshot.state, snapshot.in_flight), (State::Open, 1));
    drop(next);
}

#[test]
fn a_clock_that_steps_back_trips_nothing() {
    let bench = Bench::new(three().stalled_calls(1));
    bench.advance(secs(1_000));
    for back in [1, 8, 9, 100, 900] {
        bench.advance(secs(900));
        bench.enter().success();
        bench.time.decrement(secs(back));
        // From further back than the ring holds it isn't counted; it does no harm.
        let call = bench.enter();
        assert_eq!((bench.stalled(), bench.state()), (0, State::Closed), "{back} s");
        assert_eq!((call.success(), bench.stalled()), (Settled::Recorded, 0), "{back} s");
    }
}

#[test]
fn calls_that_begin_on_one_thread_and_end_on_others_leave_nothing() {
    let (clock, time) = Clock::mock();
    let policy = textbook().unlimited().no_failure_rate().stall_after(secs(8)).stalled_calls(1_000_000);
    let engine = Engine::builder().policy(policy.build().unwrap()).clock(clock).build();
    let met = std::sync::Mutex::new(Vec::new());
    for _ in 0..30 {
        let permits = race(4, |thread| {
            let target = engine.target(T).unwrap();
            for call in 0..2_000 {
                let permit = target.admit().unwrap();
                if call % 4 == thread {
                    met.lock().unwrap().push(permit);
                } else {
                    permit.success();
                }
            }
            std::mem::take(&mut *met.lock().unwrap())
        });
        time.increment(ms(1_700));
        // Each thread ends what others began, of now and of long ago.
        let left = std::sync::Mutex::new(permits.into_iter().flatten().collect::<Vec<_>>());
        race(4, |_| {
            while let Some(permit) = { left.lock().unwrap().pop() } {
                permit.success();
            }
        });
    }
    drop(std::mem::take(&mut *met.lock().unwrap()));
    let some: Vec<_> = (0..7).map(|_| engine.admit(T).unwrap()).collect();
    time.increment(secs(100));
    let snapshot = engine.snapshot(T).unwrap();
    assert_eq!((snapshot.stalled, snapshot.in_flight), (7, 7));
    drop(some);
    assert_eq!(engine.snapshot(T).unwrap().stalled, 0);
}
