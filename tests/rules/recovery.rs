//! A ramp beside none, at an upstream that dies above a load: a simulation on a clock that the test moves, without chance.
//!
//! The upstream carries few calls at once when it comes back and more with time: caches are cold, connections are few. With one call more
//! than it carries it dies: whatever it has fails, and so does what comes in the next two seconds; then it comes back as cold as before.
//! Callers want 200 calls at a time, each of 50 ms, and try again at once whatever they got.

use std::collections::VecDeque;

use portcullis::{Cause, Permit, PolicyBuilder, State, Window};

use crate::common::{Bench, ms, secs, textbook};

const WANTED: usize = 200;
const CALL_MS: u64 = 50;
const DOWN_MS: u64 = 2_000;
/// The first death, of its own accord.
const FIRST_MS: u64 = 1_000;
const HORIZON_MS: u64 = 300_000;

#[derive(Default)]
struct Upstream {
    /// Since when it is up, cold; none while it was warm from the start.
    up_at: Option<u64>,
    deaths: u32,
}

impl Upstream {
    /// 10 calls at first, one more each 50 ms: 200 after 9.5 s, 300 at most.
    fn carries(&self, now: u64) -> usize {
        let up_at = self.up_at.unwrap_or(0);
        match self.up_at {
            None => 300,
            Some(_) if now < up_at => 0,
            Some(_) => 300.min(10 + usize::try_from((now - up_at) / 50).unwrap()),
        }
    }

    fn die(&mut self, now: u64) {
        self.up_at = Some(now + DOWN_MS);
        self.deaths += 1;
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Story {
    deaths: u32,
    opened: usize,
    relapses: usize,
    /// When the last call failed, and calls in flight at the end.
    last_failure_s: u64,
    at_the_end: usize,
    served: u64,
}

fn run(policy: PolicyBuilder) -> Story {
    let bench = Bench::with(policy, |builder| builder.log_capacity(10_000));
    let (mut upstream, mut flying) = (Upstream::default(), VecDeque::<(u64, Permit<'_>)>::new());
    let (mut served, mut last_failure) = (0, 0);
    for now in 0..HORIZON_MS {
        while flying.front().is_some_and(|(ends, _)| *ends <= now) {
            flying.pop_front().into_iter().for_each(|(_, permit)| _ = permit.success());
            served += 1;
        }
        while flying.len() < WANTED
            && let Ok(permit) = bench.admit()
        {
            flying.push_back((now + CALL_MS, permit));
            let carries = upstream.carries(now);
            if flying.len() > carries {
                last_failure = now;
                if carries > 0 {
                    upstream.die(now);
                }
                flying.drain(..).for_each(|(_, permit)| _ = permit.failure());
            }
        }
        if now == FIRST_MS {
            upstream.die(now);
            flying.drain(..).for_each(|(_, permit)| _ = permit.failure());
        }
        bench.advance(ms(1));
    }
    let log = bench.log();
    let count = |is: fn(&portcullis::Transition) -> bool| log.iter().filter(|transition| is(transition)).count();
    Story {
        deaths: upstream.deaths,
        opened: count(|transition| transition.to == State::Open),
        relapses: count(|transition| transition.cause == Cause::Relapse),
        last_failure_s: last_failure / 1_000,
        at_the_end: flying.len(),
        served,
    }
}

/// The same for both: what differs is the ramp.
fn breaker() -> PolicyBuilder {
    let rules = textbook().window(Window::calls(100)).min_calls(20).max_in_flight(250);
    rules.open_wait(secs(1)).open_wait_max(secs(60)).successes_to_close(3)
}

#[test]
fn recovery_without_a_ramp_flaps_for_ever() {
    let story = run(breaker());
    assert_eq!((story.deaths, story.opened, story.relapses), (95, 190, 0), "{story:?}");
    assert_eq!((story.last_failure_s, story.served), (298, 4_282), "{story:?}");
}

#[test]
fn recovery_with_a_ramp_comes_back_at_once() {
    let story = run(breaker().ramp(secs(15)));
    assert_eq!((story.deaths, story.relapses), (1, 0), "{story:?}");
    assert_eq!((story.opened, story.last_failure_s, story.at_the_end), (2, 2, WANTED), "{story:?}");
    assert!(story.served > 1_100_000, "{story:?}");
}

/// Steeper than the upstream can bear: two relapses, and each time there is more patience and the upstream warmer.
#[test]
fn recovery_with_too_short_a_ramp_backs_off() {
    let story = run(breaker().ramp(secs(5)));
    assert_eq!((story.deaths, story.relapses), (3, 2), "{story:?}");
    assert_eq!((story.opened, story.last_failure_s, story.at_the_end), (4, 11, WANTED), "{story:?}");
}
