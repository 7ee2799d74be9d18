//! Random calls, with shadows and without: a shadow changes nothing, and decides as its policy would.

use std::sync::Arc;
use std::time::Duration;

use portcullis::{
    Adaptive, Admit, Engine, Held, OnAbandon, Outcome, OwnedPermit, Permit, Policy, Priority, State, Transition, Window,
};
use proptest::prelude::*;

use crate::common::{Bench, T, ms, secs, textbook};

/// What may happen to a target.
#[derive(Clone, Copy, Debug)]
enum Op {
    Ask(Kind, Priority),
    End(usize, End),
    Pass(u64),
    Act(Act),
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    ByKey,
    ByHandle,
    Owned,
    Async,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Settle(Outcome),
    ComeBack,
    Drop,
    Hold(Outcome),
    Touch,
}

/// What is done by hand.
#[derive(Clone, Copy, Debug)]
enum Act {
    ForceOpen,
    Disable,
    Release,
    Limit(u32),
    ReleaseLimit,
    Policy(usize),
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![Just(Outcome::Success), Just(Outcome::Failure), Just(Outcome::Ignored)]
}

fn ask() -> impl Strategy<Value = Op> {
    let kind = prop_oneof![Just(Kind::ByKey), Just(Kind::ByHandle), Just(Kind::Owned), Just(Kind::Async)];
    let priority =
        prop_oneof![4 => Just(Priority::Critical), 1 => Just(Priority::Normal), 1 => Just(Priority::Sheddable)];
    (kind, priority).prop_map(|(kind, priority)| Op::Ask(kind, priority))
}

fn call() -> impl Strategy<Value = Op> {
    let end = prop_oneof![
        6 => outcome().prop_map(End::Settle),
        1 => Just(End::ComeBack),
        1 => Just(End::Drop),
        1 => outcome().prop_map(End::Hold),
        1 => Just(End::Touch),
    ];
    prop_oneof![
        5 => ask(),
        5 => (0..8_usize, end).prop_map(|(which, end)| Op::End(which, end)),
        2 => prop_oneof![0..50_u64, 200..2_000_u64].prop_map(Op::Pass),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let act = prop_oneof![
        1 => Just(Act::ForceOpen),
        1 => Just(Act::Disable),
        3 => Just(Act::Release),
        1 => (0..5_u32).prop_map(Act::Limit),
        2 => Just(Act::ReleaseLimit),
        2 => (0..policies().len()).prop_map(Act::Policy),
    ];
    prop_oneof![15 => call(), 1 => act.prop_map(Op::Act)]
}

/// One of each kind of rule.
fn policies() -> Vec<Policy> {
    let quick = || textbook().open_wait(ms(500)).open_wait_max(secs(4));
    let policies = [
        quick().consecutive_failures(2).max_in_flight(3),
        quick().min_calls(2).max_probes(2).successes_to_close(2).jitter(0.5),
        quick()
            .window(Window::time(secs(2)).buckets(4))
            .min_calls(3)
            .max_in_flight(4)
            .sheddable_share(0.5)
            .normal_share(0.8),
        quick().slow_call(ms(30)).slow_rate(0.5).on_abandon(OnAbandon::FailureAfter(ms(30))),
        quick().max_in_flight(4).stall_after(ms(400)).stalled_calls(2),
        quick().consecutive_failures(2).max_in_flight(6).ramp(secs(1)).ramp_failures(1),
        quick().max_in_flight(8).adaptive(Adaptive::gradient()),
        quick().on_abandon(OnAbandon::Failure).failures(3),
    ];
    policies.into_iter().map(|policy| policy.build().unwrap()).collect()
}

/// A call that runs.
enum Call<'e> {
    Borrowed(Permit<'e>),
    Owned(OwnedPermit<Arc<Engine>>),
    Held(#[expect(dead_code, reason = "dropped in the end")] Held<'e>),
    AlsoHeld(#[expect(dead_code, reason = "dropped in the end")] portcullis::OwnedHeld<Arc<Engine>>),
}

impl<'e> Call<'e> {
    fn ask(engine: &'e Arc<Engine>, kind: Kind, priority: Priority) -> Result<Self, portcullis::Rejection> {
        Ok(match kind {
            Kind::ByKey => Self::Borrowed(engine.admit_with(T, priority)?),
            Kind::ByHandle => Self::Borrowed(engine.target(T)?.admit_with(priority)?),
            Kind::Owned => Self::Owned(engine.admit_owned_with(T, priority)?),
            Kind::Async => Self::Owned(engine.admit_owned_with(T, Admit::new().priority(priority).may_be_dropped())?),
        })
    }

    /// What is told, and the call if it goes on.
    fn end(self, end: End) -> (String, Option<Self>) {
        match (self, end) {
            (Self::Borrowed(permit), End::Settle(outcome)) => (format!("{:?}", permit.settle(outcome)), None),
            (Self::Owned(permit), End::Settle(outcome)) => (format!("{:?}", permit.settle(outcome)), None),
            (Self::Borrowed(permit), End::ComeBack) => (format!("{:?}", permit.failure_retry_after(secs(1))), None),
            (Self::Owned(permit), End::ComeBack) => (format!("{:?}", permit.failure_retry_after(secs(1))), None),
            (Self::Borrowed(permit), End::Hold(outcome)) => {
                let held = permit.record(outcome);
                (format!("{:?}", held.settled()), Some(Self::Held(held)))
            }
            (Self::Owned(permit), End::Hold(outcome)) => {
                let held = permit.record(outcome);
                (format!("{:?}", held.settled()), Some(Self::AlsoHeld(held)))
            }
            (Self::Owned(mut permit), End::Touch) => {
                permit.touch();
                (String::new(), Some(Self::Owned(permit)))
            }
            (borrowed @ Self::Borrowed(_), End::Touch) => (String::new(), Some(borrowed)),
            _ => (String::new(), None),
        }
    }
}

fn told(transition: &Transition) -> String {
    let Transition { from, to, cause, sequence, generation, at, evidence, wait, retry_after, .. } = transition;
    format!("{from} {to} {cause} {sequence} {generation} {at:?} {evidence:?} {wait:?} {retry_after:?}")
}

fn act(engine: &Engine, act: Act) -> String {
    match act {
        Act::ForceOpen => format!("{:?}", engine.force_open(T)),
        Act::Disable => format!("{:?}", engine.disable(T)),
        Act::Release => format!("{:?}", engine.release(T)),
        Act::Limit(limit) => format!("{:?}", engine.set_limit(T, limit)),
        Act::ReleaseLimit => format!("{:?}", engine.release_limit(T)),
        Act::Policy(index) => format!("{:?}", engine.set_policy(T, policies()[index].clone())),
    }
}

/// All that can be seen of a target while the operations run.
fn run(policy: &Policy, shadows: &[usize], ops: &[Op]) -> Vec<String> {
    let Bench { engine, time } = Bench::new(policy.to_builder());
    let engine = Arc::new(engine);
    // So that with and without shadows it is one that is never forgotten.
    engine.set_policy(T, policy.clone()).unwrap();
    for index in shadows {
        engine.shadow(T, &index.to_string(), policies()[*index].clone()).unwrap();
    }
    let (mut calls, mut seen) = (Vec::new(), Vec::new());
    for op in ops {
        seen.push(match *op {
            Op::Ask(kind, priority) => match Call::ask(&engine, kind, priority) {
                Ok(call) => {
                    let told = match &call {
                        Call::Borrowed(permit) => format!("{} {}", permit.is_probe(), permit.generation()),
                        Call::Owned(permit) => format!("{} {}", permit.is_probe(), permit.generation()),
                        Call::Held(_) | Call::AlsoHeld(_) => String::new(),
                    };
                    calls.push(call);
                    told
                }
                Err(rejection) => format!("{rejection:?}"),
            },
            Op::End(which, end) if which < calls.len() => {
                let (told, goes_on) = calls.remove(which).end(end);
                calls.extend(goes_on);
                told
            }
            Op::End(..) => String::new(),
            Op::Pass(millis) => {
                time.increment(Duration::from_millis(millis));
                String::new()
            }
            Op::Act(what) => act(&engine, what),
        });
        seen.push(format!("{:?}", engine.snapshot(T)));
    }
    drop(calls);
    seen.push(format!("{:?}", engine.snapshot(T)));
    seen.extend(engine.transitions().iter().map(|transition| told(transition)));
    for shadow in engine.shadows(T) {
        assert_eq!(shadow.would_be.in_flight, 0, "{shadow:?}");
        assert_eq!(
            shadow.refused,
            shadow.refused_but_succeeded + shadow.failures_avoided + shadow.refused_without_verdict
        );
    }
    seen
}

proptest! {
    #[test]
    fn a_shadow_changes_no_answer_count_transition_or_sequence(
        live in 0..policies().len(),
        shadows in proptest::sample::subsequence((0..policies().len()).collect::<Vec<_>>(), 1..=4),
        ops in proptest::collection::vec(op(), 1..120),
    ) {
        let live = &policies()[live];
        prop_assert_eq!(run(live, &[], &ops), run(live, &shadows, &ops));
    }

    /// The calls that an engine of the policy would have refused are made here, and are all that differs.
    #[test]
    fn a_shadow_decides_as_an_engine_of_its_policy_would_on_the_same_calls(
        policy in 0..policies().len(),
        is_disabled in any::<bool>(),
        ops in proptest::collection::vec(call(), 1..200),
    ) {
        let policy = &policies()[policy];
        let live = Bench::new(policy.to_builder());
        let open = Bench::new(Policy::builder().no_window());
        open.engine.shadow(T, "candidate", policy.clone()).unwrap();
        if is_disabled {
            open.engine.disable(T).unwrap();
        }
        live.engine.target(T).unwrap();
        let (lives, opens) = (Arc::new(live.engine), Arc::new(open.engine));
        let mut calls: Vec<(Option<Call<'_>>, Call<'_>)> = Vec::new();
        // Of the calls that the engine of the policy refused: those that succeeded and failed in fact.
        let mut came_of = [0, 0];
        for op in &ops {
            match *op {
                Op::Ask(kind, priority) => {
                    let live = Call::ask(&lives, kind, priority).ok();
                    calls.push((live, Call::ask(&opens, kind, priority).unwrap()));
                }
                Op::End(which, end) if which < calls.len() => {
                    let (live, shown) = calls.remove(which);
                    if live.is_none() && !matches!(shown, Call::Held(_) | Call::AlsoHeld(_)) {
                        match end {
                            End::Settle(Outcome::Success) | End::Hold(Outcome::Success) => came_of[0] += 1,
                            End::Settle(Outcome::Failure) | End::Hold(Outcome::Failure) | End::ComeBack => came_of[1] += 1,
                            _ => {}
                        }
                    }
                    let live = live.and_then(|call| call.end(end).1);
                    if let Some(shown) = shown.end(end).1 {
                        calls.push((live, shown));
                    }
                }
                Op::Pass(millis) => {
                    live.time.increment(Duration::from_millis(millis));
                    open.time.increment(Duration::from_millis(millis));
                }
                Op::End(..) | Op::Act(_) => {}
            }
            let shadow = opens.shadows(T).remove(0);
            prop_assert_eq!(format!("{:?}", lives.snapshot(T).unwrap()), format!("{:?}", shadow.would_be));
            let trips = lives.transitions();
            let trips: Vec<_> = trips.iter().filter(|transition| transition.evidence.is_some()).collect();
            prop_assert_eq!(shadow.trips, trips.len() as u64);
            let last = trips.last().map(|trip| (trip.at, trip.cause, trip.evidence.clone()));
            prop_assert_eq!(shadow.last_trip.map(|trip| (trip.at, trip.cause, Some(trip.evidence))), last);
            prop_assert!(shadow.refused_but_succeeded == came_of[0] && shadow.failures_avoided >= came_of[1]);
        }
        prop_assert_eq!(opens.snapshot(T).unwrap().state == State::Disabled, is_disabled);
        drop(calls);
        prop_assert_eq!(opens.shadows(T).remove(0).would_be.in_flight, 0);
    }
}
