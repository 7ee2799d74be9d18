//! One operation, done to both engines and its answers compared.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::Duration;

use portcullis::{Admit, Cause, Outcome, Priority, Rejection, Settled};

use crate::driver::{Driver, Pass, Stay, YEAR};
use crate::op::{Grip, Op, Span, Verdict};
use crate::settle::Ending;
use crate::target::{NANOS_PER_MS, Phase, Target, Token};

/// The key that a number names: one of three mostly, so that operations meet; one of more than fit at times.
fn name(key: u8) -> u8 {
    if key < 192 { key % 3 } else { key % 24 }
}

/// Takes one of those there are.
fn take<T>(from: &mut Vec<T>, by: u8) -> Option<T> {
    (!from.is_empty()).then(|| from.swap_remove(usize::from(by) % from.len()))
}

impl Driver<'_> {
    pub(crate) fn act(&mut self, op: Op) -> Option<()> {
        let now = self.naive.now;
        match op {
            Op::Admit { key, grip } => self.admit(name(key), grip, Priority::Critical)?,
            Op::AdmitBelow { key, grip, is_sheddable } => {
                self.admit(name(key), grip, if is_sheddable { Priority::Sheddable } else { Priority::Normal })?;
            }
            Op::Settle { permit, verdict } => {
                let (pass, token) = take(&mut self.permits, permit)?;
                let settled = match (pass, verdict) {
                    (Pass::Borrowed(permit), Verdict::Success) => permit.success(),
                    (Pass::Borrowed(permit), Verdict::Failure) => permit.failure(),
                    (Pass::Borrowed(permit), Verdict::Ignored) => permit.ignore(),
                    (Pass::Owned(permit), verdict) => permit.settle(verdict.outcome()),
                };
                self.ended(token, Ending::Settled(verdict.outcome()), Some(settled));
            }
            Op::ComeBack { permit, seconds } => {
                let (pass, mut token) = take(&mut self.permits, permit)?;
                let wait = Duration::from_secs(seconds.into());
                token.asked_ms = 1_000 * u64::from(seconds);
                let settled = match pass {
                    Pass::Borrowed(permit) => permit.failure_retry_after(wait),
                    Pass::Owned(permit) => permit.failure_retry_after(wait),
                };
                self.ended(token, Ending::Settled(Outcome::Failure), Some(settled));
            }
            Op::Drop { permit } => {
                let (pass, token) = take(&mut self.permits, permit)?;
                drop(pass);
                self.ended(token, Ending::Abandoned, None);
            }
            Op::Forget { permit } => match take(&mut self.permits, permit)?.0 {
                Pass::Borrowed(permit) => std::mem::forget(permit),
                pass @ Pass::Owned(_) => self.buried.push(pass),
            },
            Op::Panic { permit } => {
                let (pass, token) = take(&mut self.permits, permit)?;
                // Past the panic hook, which would print.
                let holder = AssertUnwindSafe(|| {
                    let _pass = pass;
                    resume_unwind(Box::new("on purpose"))
                });
                let _: Result<(), _> = catch_unwind(holder);
                self.ended(token, Ending::Panicked, None);
            }
            Op::Touch { permit } => {
                let count = self.permits.len();
                let (pass, token) = self.permits.get_mut(usize::from(permit).checked_rem(count)?)?;
                let Pass::Owned(owned) = pass else { return None };
                owned.touch();
                self.naive.at(token.place, |target| target.counts_out(token));
                token.answered.get_or_insert(now);
                token.alive = Some(now);
            }
            Op::Record { permit, verdict } => {
                let (pass, token) = take(&mut self.permits, permit)?;
                let (stay, settled) = match pass {
                    Pass::Borrowed(permit) => {
                        let held = permit.record(verdict.outcome());
                        let settled = held.settled();
                        (Stay::Borrowed(held), settled)
                    }
                    Pass::Owned(permit) => {
                        let held = permit.record(verdict.outcome());
                        let settled = held.settled();
                        (Stay::Owned(held), settled)
                    }
                };
                let ending = Ending::Settled(verdict.outcome());
                let expected = self.naive.at(token.place, |target| target.record(token, ending, now));
                assert_eq!(settled, expected, "recorded");
                self.held.push((stay, token));
            }
            Op::Unhold { held } => {
                let (stay, token) = take(&mut self.held, held)?;
                drop(stay);
                self.naive.at(token.place, Target::give_back);
            }
            Op::ForgetHeld { held } => match take(&mut self.held, held)?.0 {
                Stay::Borrowed(held) => std::mem::forget(held),
                stay @ Stay::Owned(_) => self.buried_held.push(stay),
            },
            Op::Advance { span } | Op::Leap { span } => self.advance(span)?,
            Op::SetPolicy { key, policy } => self.set_policy(name(key), policy),
            Op::SetLimit { key, limit } => {
                let (key, limit) = (name(key), [0, 1, 2, 5, 129, 1_000, u32::MAX][usize::from(limit) % 7]);
                let expected = self.naive.on_target(key, |target| target.set_limit(limit));
                assert_eq!(self.real.set_limit(&key, limit), expected, "set limit");
            }
            Op::ForceOpen { key } => {
                let force = |target: &mut Target| target.force(Phase::ForcedOpen, Cause::ForcedOpen, now);
                assert_eq!(self.real.force_open(&(name(key))), self.naive.on_target(name(key), force), "force open");
            }
            Op::Disable { key } => {
                let disable = |target: &mut Target| target.force(Phase::Disabled, Cause::Disabled, now);
                assert_eq!(self.real.disable(&(name(key))), self.naive.on_target(name(key), disable), "disable");
            }
            Op::Release { key } => {
                let expected = self.naive.on_target(name(key), |target| target.release(now));
                assert_eq!(self.real.release(&(name(key))), expected, "release");
            }
            Op::Resolve { key } => {
                let expected = self.naive.on_target(name(key), |target| target.handles += 1);
                match self.real.target(&(name(key))) {
                    Ok(handle) => self.handles.push((handle, name(key))),
                    Err(rejection) => assert_eq!(Err(rejection), expected, "resolve"),
                }
            }
            Op::Unresolve { handle } => {
                let (handle, key) = take(&mut self.handles, handle)?;
                let target = &mut self.naive.places[self.naive.keys[&key]];
                assert_eq!(handle.state(), target.shown(now), "state by handle");
                target.handles -= 1;
            }
            Op::Sweep => assert_eq!(self.real.sweep(), self.naive.sweep(), "swept"),
            Op::Snapshots => {
                // In the order of their places.
                for place in 0..self.naive.places.len() {
                    if self.naive.keys.get(&self.naive.places[place].key) == Some(&place) {
                        self.naive.at(place, |target| target.judge_running(now));
                    }
                }
                let mut keys: Vec<u8> = self.real.snapshots().iter().map(|(key, _)| **key).collect();
                keys.sort_unstable();
                assert!(keys.iter().eq(self.naive.keys.keys()), "snapshots of {keys:?}");
                assert_eq!(self.real.now(), Duration::from_nanos(now), "now");
            }
        }
        Some(())
    }

    fn admit(&mut self, key: u8, grip: Grip, priority: Priority) -> Option<()> {
        let is_critical = priority == Priority::Critical;
        let how = Admit::from(priority);
        let answer = match grip {
            Grip::Borrowed if is_critical => self.real.admit(&key).map(Pass::Borrowed),
            Grip::Borrowed => self.real.admit_with(&key, how).map(Pass::Borrowed),
            Grip::Owned if is_critical => self.real.admit_owned(&key).map(Pass::Owned),
            Grip::Owned => self.real.admit_owned_with(&key, how).map(Pass::Owned),
            Grip::Async if is_critical => self.real.admit_async(&key).map(Pass::Owned),
            Grip::Async => self.real.admit_owned_with(&key, how.may_be_dropped()).map(Pass::Owned),
            Grip::Handle => {
                let (handle, _) = self.handles.iter().find(|(_, of)| *of == key)?;
                let answer = if is_critical { handle.admit() } else { handle.admit_with(how) };
                answer.map(Pass::Borrowed)
            }
        };
        match (answer, self.naive.admit(key, grip == Grip::Async, priority)) {
            (Ok(pass), Ok(token)) => {
                let (is_probe, generation) = match &pass {
                    Pass::Borrowed(permit) => (permit.is_probe(), permit.generation()),
                    Pass::Owned(permit) => (permit.is_probe(), permit.generation()),
                };
                assert_eq!((is_probe, generation), (token.is_probe, token.generation), "permit of {key}");
                self.permits.push((pass, token));
            }
            (Err(rejection), Err(expected)) => {
                let now = self.naive.now;
                let expected = match (rejection, expected) {
                    // It may have tripped the target just now, and have heard of the wait before anybody saw it.
                    (Rejection::Open { retry_after }, Rejection::Open { .. }) => {
                        let target = &mut self.naive.places[self.naive.keys[&key]];
                        target.learn(Some(retry_after), now);
                        Rejection::Open {
                            retry_after: Duration::from_nanos(target.due(now).unwrap_or(0).saturating_sub(now)),
                        }
                    }
                    _ => expected,
                };
                assert_eq!(rejection, expected, "refusal of {key}");
                *self.tally.rejections.entry(rejection.reason()).or_default() += 1;
            }
            (answer, expected) => {
                let answer: Result<(), Rejection> = answer.map(|_| ());
                panic!("{key} is answered {answer:?}, not {expected:?}");
            }
        }
        Some(())
    }

    /// A permit is gone: nobody says what came of a dropped one.
    fn ended(&mut self, token: Token, ending: Ending, settled: Option<Settled>) {
        let now = self.naive.now;
        let expected = self.naive.at(token.place, |target| {
            let settled = target.record(token, ending, now);
            target.give_back();
            settled
        });
        self.tally.stale += u64::from(expected == Settled::Stale);
        assert_eq!(settled.unwrap_or(expected), expected, "settled");
    }

    fn advance(&mut self, span: Span) -> Option<()> {
        let now = self.naive.now;
        let by = match span {
            Span::Nanos(nanos) => u64::from(nanos),
            Span::Millis(millis) => u64::from(millis) * NANOS_PER_MS,
            Span::Seconds(seconds) => u64::from(seconds) * 1_000 * NANOS_PER_MS,
            Span::Days(days) => u64::from(days) * (YEAR / 365),
            Span::Until(key) => self.naive.due(name(key))? - now,
            Span::Before(key) => self.naive.due(name(key))? - now - 1,
        };
        let by = by.min(self.last - now);
        self.naive.now += by;
        self.time.increment(by);
        Some(())
    }

    fn set_policy(&mut self, key: u8, policy: u8) {
        let now = self.naive.now;
        let terms = Rc::clone(&self.terms[usize::from(policy) % self.terms.len()]);
        let answer = self.real.set_policy(&key, terms.policy.clone());
        let restarted = {
            let heard = self.heard.lock().expect("no listener panics");
            heard.last().is_some_and(|transition| transition.cause == Cause::PolicyChanged)
        };
        let expected = self.naive.on_target(key, |target| target.set_policy(&terms, now, restarted));
        assert_eq!(answer, expected, "set policy");
    }
}

impl Verdict {
    fn outcome(self) -> Outcome {
        match self {
            Self::Success => Outcome::Success,
            Self::Failure => Outcome::Failure,
            Self::Ignored => Outcome::Ignored,
        }
    }
}
