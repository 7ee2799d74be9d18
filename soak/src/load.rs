//! The load: what one thread does in a round.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use portcullis::{Engine, ObserverGuard, Outcome, Rejection, Subscription, Target, Transition};

use crate::faults::{stage_a_panic, survive};
use crate::holding::{Holding, Kept, outcome};
use crate::plan::{LIMITS, MAX_TARGETS, PINNED, Random};
use crate::stage::{Counts, Stage, note};

/// Permits that a thread holds on to at most.
const MOST_HELD: usize = 14;

/// Permits on their way from one thread to another.
pub(crate) type Mailbox<'e> = Mutex<Vec<Holding<'e>>>;

/// A thread of the load.
#[derive(Debug)]
pub(crate) struct Worker<'m, 'e> {
    pub(crate) stage: &'e Stage,
    pub(crate) handles: &'e [Target<'e>],
    pub(crate) mailbox: &'m Mailbox<'e>,
    pub(crate) random: Random,
    pub(crate) held: Vec<Holding<'e>>,
    pub(crate) watching: Vec<(ObserverGuard, Subscription)>,
}

impl<'e> Worker<'_, 'e> {
    /// Does so many things and then settles what it holds.
    pub(crate) fn run(mut self, operations: u64) {
        for _ in 0..operations {
            self.step();
        }
        while let Some(holding) = self.held.pop() {
            self.held.extend(holding.end(&mut self.random, self.stage));
        }
        Counts::add(&self.stage.counts.operations, operations);
    }

    fn step(&mut self) {
        match self.random.draw(1_000) {
            0..400 => self.admit(),
            400..770 => self.end(),
            770..830 => self.call(),
            830..880 => self.call_async(),
            880..920 => self.stage.time.jump(&mut self.random),
            920..940 => self.fresh_key(),
            940..960 => self.mail(),
            960..975 => self.by_hand(),
            975..985 => self.change(),
            985..990 => self.watch(),
            _ => self.look(),
        }
    }

    /// Some key; half of the time the same, so that threads meet.
    fn seat(&mut self) -> usize {
        let seats = self.stage.seats.len() as u64;
        if self.random.one_in(2) { self.random.draw(2) as usize } else { self.random.draw(seats) as usize }
    }

    fn admit(&mut self) {
        if self.held.len() >= MOST_HELD {
            return self.end();
        }
        let (number, stage) = (self.seat(), self.stage);
        let (seat, engine) = (&stage.seats[number], &stage.engine);
        let answer = match self.random.draw(5) {
            0 if number < PINNED => self.handles[number].admit().map(Kept::Permit),
            1 => engine.target(&seat.name).and_then(|handle| handle.clone().admit()).map(Kept::Permit),
            2 => engine.admit_owned(&seat.name).map(Kept::Owned),
            3 => engine.admit_async(&seat.name).map(Kept::Owned),
            _ => engine.admit(&seat.name).map(Kept::Permit),
        };
        if let Some(kept) = self.answered(number, answer) {
            self.held.push(Holding::new(kept, number, stage));
        }
    }

    fn answered<T>(&self, number: usize, answer: Result<T, Rejection>) -> Option<T> {
        if let Err(rejection) = &answer {
            self.stage.seats[number].tally.refused(*rejection);
            let is_full = matches!(rejection, Rejection::Saturated { .. });
            Counts::add(&self.stage.counts.saturated, u64::from(is_full));
            let waits = rejection.retry_after();
            self.stage.faults.check(waits != Some(std::time::Duration::ZERO), || format!("retry at once: {rejection}"));
        }
        self.stage.noted(answer)
    }

    fn end(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let at = self.random.draw(self.held.len() as u64) as usize;
        let holding = self.held.swap_remove(at);
        self.held.extend(holding.end(&mut self.random, self.stage));
    }

    fn call(&mut self) {
        let (number, way) = (self.seat(), self.random.draw(20));
        let (seat, outcome) = (&self.stage.seats[number], outcome(&mut self.random));
        let call = || {
            if way == 0 {
                stage_a_panic()
            }
        };
        let judge = |(): &()| if way == 1 { stage_a_panic() } else { outcome };
        let answer = survive(|| match self.handles.get(number) {
            Some(handle) if way % 2 == 0 => handle.call(judge, call),
            _ => self.stage.engine.call(&seat.name, judge, call),
        });
        let ended = answer.map_or(Some(None), |answer| self.answered(number, answer).map(|()| Some(outcome)));
        self.called(number, ended);
    }

    fn call_async(&mut self) {
        let (number, way) = (self.seat(), self.random.draw(20));
        let (seat, outcome) = (&self.stage.seats[number], outcome(&mut self.random));
        let mut rests = self.random.draw(3);
        let waits = std::future::poll_fn(|_| match rests {
            _ if way == 0 => stage_a_panic(),
            0 => Poll::Ready(()),
            _ => {
                rests -= 1;
                Poll::Pending
            }
        });
        let polls = self.random.draw(4);
        let mut call = pin!(self.stage.engine.call_async(&seat.name, |()| outcome, || waits));
        let mut answer = Ok(None);
        for _ in 0..polls {
            match survive(|| call.as_mut().poll(&mut Context::from_waker(Waker::noop()))) {
                Some(Poll::Pending) => answer = Err(()),
                Some(Poll::Ready(ready)) => {
                    answer = Ok(Some(self.answered(number, ready).map(|()| Some(outcome))));
                    break;
                }
                None => {
                    answer = Ok(Some(Some(None)));
                    break;
                }
            }
        }
        match answer {
            // Never begun.
            Ok(None) => {}
            Ok(Some(ended)) => self.called(number, ended),
            // Begun, and dropped below in the middle of it.
            Err(()) => {
                seat.tally.passed();
                seat.tally.dropped();
            }
        }
    }

    /// Of a call that was let in: its outcome, or none if it panicked.
    fn called(&self, number: usize, ended: Option<Option<Outcome>>) {
        let tally = &self.stage.seats[number].tally;
        match ended {
            None => return,
            Some(Some(outcome)) => tally.judged(outcome),
            Some(None) => {
                tally.panicked();
                Counts::add(&self.stage.counts.panics, 1);
            }
        }
        tally.passed();
    }

    /// A key that nobody has asked for before, most likely: there is seldom room.
    fn fresh_key(&mut self) {
        let name = format!("fresh-{}", self.random.draw(10_000));
        if let Some(permit) = self.stage.noted(self.stage.engine.admit(&name)) {
            permit.settle(outcome(&mut self.random));
        }
    }

    fn mail(&mut self) {
        let mut mailbox = self.mailbox.lock().unwrap_or_else(PoisonError::into_inner);
        if self.random.one_in(2) {
            mailbox.extend(self.held.pop());
        } else {
            self.held.extend(mailbox.pop());
        }
    }

    fn by_hand(&mut self) {
        let (number, engine) = (self.seat(), &self.stage.engine);
        let name = &self.stage.seats[number].name;
        let done = match self.random.draw(6) {
            0 => engine.force_open(name),
            1 => engine.disable(name),
            _ => engine.release(name),
        };
        self.stage.noted(done);
    }

    /// Another policy or limit, for the keys that are meant for it.
    fn change(&mut self) {
        let number = 2 * self.random.draw(PINNED as u64 / 2) as usize + 1;
        let (engine, name) = (&self.stage.engine, &self.stage.seats[number].name);
        let done = if self.random.one_in(2) {
            engine.set_limit(name, *self.random.pick(&LIMITS))
        } else {
            engine.set_policy(name, self.random.pick(&self.stage.plans).policy.clone())
        };
        self.stage.noted(done);
    }

    /// Observers and subscriptions come and go; the observers ask the engine, and panic.
    fn watch(&mut self) {
        if self.watching.len() > 2 || self.random.one_in(3) {
            self.watching.pop();
            return;
        }
        let (engine, counts) = (Arc::downgrade(&self.stage.engine), Arc::clone(&self.stage.counts));
        let (name, panics) = (format!("fresh-{}", self.random.draw(10_000)), self.random.one_in(3));
        let observer = move |transition: &Transition| {
            if let Some(engine) = engine.upgrade() {
                ask(&engine, &name, transition, &counts);
            }
            if panics {
                Counts::add(&counts.observers_panicked, 1);
                stage_a_panic();
            }
        };
        let engine = &self.stage.engine;
        self.watching.push((engine.observe(observer), engine.subscribe(1 + self.random.draw(64) as usize)));
    }

    fn look(&mut self) {
        let (number, stage) = (self.seat(), self.stage);
        let engine = &stage.engine;
        match self.random.draw(6) {
            0 => drop(engine.sweep()),
            1 => drop(engine.snapshots()),
            2 if !stage.logs_all => drop(engine.transitions()),
            3 => stage.drain(),
            _ => {
                let len = engine.len();
                stage.faults.check(len <= MAX_TARGETS, || format!("{len} targets"));
                let Some(now) = engine.snapshot(&stage.seats[number].name) else { return };
                let window = now.window.unwrap_or_default();
                let fits = window.failures <= window.calls && now.probes_in_flight <= 31 && now.reopens <= 31;
                stage.faults.check(fits, || format!("{now:?}"));
                if let Some(planned) = &stage.seats[number].steady {
                    let fits = now.in_flight <= planned.limit && now.probes_in_flight <= planned.max_probes;
                    stage.faults.check(fits, || format!("{now:?}"));
                }
            }
        }
    }
}

/// What an observer may do: anything.
fn ask(engine: &Engine, name: &str, transition: &Transition, counts: &Counts) {
    let _ = engine.snapshot(&*transition.target);
    if let Some(permit) = note(counts, engine.admit(name)) {
        permit.failure();
    }
}
