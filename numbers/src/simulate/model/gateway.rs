//! The gateway: places, the engine's leave for each attempt, timeouts, and retries within deadline and budget.
//!
//! It does what `portcullis::call` does, in the same order, with the same budget; waits are events instead of timers.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use portcullis::call::CallPolicy;
use portcullis::internals::{Allowance, Budget};
use portcullis::{Admit, Clock, Engine, OwnedPermit, Rejection, State, Transition};

use super::{Event, Sim};
use crate::simulate::draws::Draws;
use crate::simulate::record::{Change, End};
use crate::simulate::scenario::{Model, Nanos, Variant};

type Permit = OwnedPermit<Arc<Engine>>;

/// A request on its way to a permit.
pub(super) struct Asking(Pin<Box<dyn Future<Output = Result<Permit, Rejection>>>>);

/// Where a request is.
#[derive(Debug)]
pub(super) enum Stage {
    /// Between two tries of its caller.
    Away,
    /// Waits for a place in the gateway.
    Backlog,
    /// Holds a place, and waits for a permit.
    Asking(Asking),
    /// Holds a place, and a permit if there is an engine.
    Calling(Option<Permit>),
    /// Holds a place until it tries once more.
    BackingOff,
}

#[derive(Debug)]
pub(super) struct Gateway {
    engine: Arc<Engine>,
    time: Arc<quanta::Mock>,
    /// Of each upstream.
    budgets: Vec<Budget>,
    back: Draws,
    held: u32,
    max_concurrent: Option<u32>,
    woken: Woken,
    transitions: Arc<Mutex<Vec<Change>>>,
}

type Woken = Arc<Mutex<VecDeque<u64>>>;

/// Notes whose turn it is.
struct Wakes {
    request: u64,
    woken: Woken,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.request);
    }
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asking")
    }
}

impl Gateway {
    pub(super) fn new(model: &Model, variant: &Variant, seed: u64) -> Self {
        let (clock, time) = Clock::mock();
        let engine = Arc::new(Engine::builder().clock(clock).seed(seed).max_targets(model.upstreams.len() + 1).build());
        for (upstream, terms) in model.upstreams.iter().zip(&variant.terms) {
            // There is room for all of them.
            let _ = engine.set_policy(upstream.name.as_str(), terms.policy.clone());
        }
        let transitions = Arc::new(Mutex::new(Vec::new()));
        let (names, heard) = (
            model.upstreams.iter().map(|upstream| upstream.name.clone()).collect::<Vec<_>>(),
            Arc::clone(&transitions),
        );
        let observer = move |change: &Transition| {
            let Some(upstream) = names.iter().position(|name| *name == *change.target) else { return };
            let at = u64::try_from(change.at.as_nanos()).unwrap_or(u64::MAX);
            let is_open = matches!(change.to, State::Open | State::HalfOpen);
            let trips = change.from == State::Closed && change.to == State::Open;
            let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
            heard.push(Change { upstream, at, is_open, trips });
        };
        engine.observe(observer).forever();
        Self {
            engine,
            time,
            budgets: model.upstreams.iter().map(|_| Budget::default()).collect(),
            back: Draws::new(seed, 1_000_000),
            held: 0,
            max_concurrent: model.max_concurrent,
            woken: Woken::default(),
            transitions,
        }
    }

    pub(super) fn pass(&self, nanos: Nanos) {
        self.time.increment(nanos);
    }

    pub(super) fn transitions(&self) -> Vec<Change> {
        self.transitions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn has_place(&self) -> bool {
        self.max_concurrent.is_none_or(|most| self.held < most)
    }

    /// Whether nobody holds anything.
    pub(super) fn is_at_rest(&self) -> bool {
        let targets = self.engine.snapshots();
        self.held == 0 && targets.iter().all(|(_, target)| target.in_flight == 0 && target.waiting == 0)
    }

    pub(super) fn leave(&mut self) {
        self.held -= 1;
    }

    /// Who waited for a permit and is to hear of it.
    pub(super) fn next_woken(&self) -> Option<u64> {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn poll(&self, asking: &mut Asking, request: u64) -> Poll<Result<Permit, Rejection>> {
        let waker = Waker::from(Arc::new(Wakes { request, woken: Arc::clone(&self.woken) }));
        asking.0.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// The future of a permit; its wait is over once the clock says so, at a poll.
    fn asking(&self, upstream: &str, at_most: Nanos) -> Asking {
        let (engine, time, upstream) = (Arc::clone(&self.engine), Arc::clone(&self.time), upstream.to_owned());
        let until = time.value().saturating_add(at_most);
        Asking(Box::pin(async move {
            let is_over = move || if time.value() >= until { Poll::Ready(()) } else { Poll::Pending };
            let sleep = |_| poll_fn(move |_| is_over());
            engine.admit_waiting_owned(upstream.as_str(), Admit::new().may_be_dropped(), sleep).await
        }))
    }

    fn period(&self, policy: &CallPolicy) -> u64 {
        self.time.value() / (nanos(policy.retry_memory()) / 2).max(1)
    }

    /// Counts a call that its retries are a share of.
    fn earn(&self, upstream: usize, policy: &CallPolicy) {
        if policy.attempts() > 1 && policy.retry_budget().is_some() {
            self.budgets[upstream].called(self.period(policy));
        }
    }

    /// Takes a retry from the budget, if one is left.
    fn spend(&self, upstream: usize, policy: &CallPolicy) -> bool {
        let Some(budget) = policy.retry_budget() else { return true };
        let floor = u128::from(policy.retry_floor()) * policy.retry_memory().as_millis() / 1_000;
        let floor = u32::try_from(floor).unwrap_or(u32::MAX);
        let allowance = Allowance { share_milli: (budget * 1_000.0).round() as u32, floor };
        self.budgets[upstream].take(self.period(policy), allowance)
    }
}

fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Sim<'_> {
    /// Takes a place in the gateway.
    pub(super) fn enter(&mut self, id: u64) {
        self.gateway.held += 1;
        self.attempt(id);
    }

    /// Asks the engine for an attempt.
    fn attempt(&mut self, id: u64) {
        let Some(request) = self.requests.get(&id) else { return };
        let upstream = request.upstream;
        let terms = &self.variant.terms[upstream];
        let name = self.model.upstreams[upstream].name.as_str();
        let left = nanos(terms.call.deadline()).saturating_sub(self.now - request.began);
        if left == 0 {
            return self.end_try(id, End::Failed);
        }
        if !self.variant.isolation {
            return self.call(id, None);
        }
        if terms.policy.max_waiting() == 0 {
            let answer = self.gateway.engine.admit_owned_with(name, Admit::new().may_be_dropped());
            return self.answered(id, answer);
        }
        // Who gets a permit may still take the whole timeout.
        let at_most = nanos(terms.policy.max_wait()).min(left.saturating_sub(nanos(terms.call.timeout())));
        let mut asking = self.gateway.asking(name, at_most);
        match self.gateway.poll(&mut asking, id) {
            Poll::Ready(answer) => self.answered(id, answer),
            Poll::Pending => {
                let serial = self.stage(id, Stage::Asking(asking));
                self.after(at_most, Event::WaitEnds { request: id, serial });
            }
        }
    }

    fn answered(&mut self, id: u64, answer: Result<Permit, Rejection>) {
        match answer {
            Ok(permit) => self.call(id, Some(permit)),
            Err(rejection) => self.end_try(id, End::Refused(rejection.reason())),
        }
    }

    pub(super) fn end_wait(&mut self, id: u64, serial: u64) {
        if self.requests.get(&id).is_some_and(|request| request.serial == serial) {
            self.ask_again(id);
        }
    }

    /// Somebody who waited for a permit hears whether it has come, or the wait is over.
    pub(super) fn ask_again(&mut self, id: u64) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        let Stage::Asking(asking) = &mut request.stage else { return };
        if let Poll::Ready(answer) = self.gateway.poll(asking, id) {
            self.answered(id, answer);
        }
    }

    /// Makes an attempt.
    fn call(&mut self, id: u64, permit: Option<Permit>) {
        let is_probe = permit.as_ref().is_some_and(Permit::is_probe);
        let serial = self.stage(id, Stage::Calling(permit));
        let Some(request) = self.requests.get_mut(&id) else { return };
        request.attempts += 1;
        let (upstream, attempts, began) = (request.upstream, request.attempts, request.began);
        let policy = &self.variant.terms[upstream].call;
        if attempts == 1 {
            self.gateway.earn(upstream, policy);
        }
        let left = nanos(policy.deadline()).saturating_sub(self.now - began);
        let timeout = if is_probe { policy.probe_timeout() } else { policy.timeout() };
        self.record.called(upstream, self.now);
        self.after(nanos(timeout).min(left), Event::TimesOut { request: id, serial });
        self.submit(upstream, id, serial);
    }

    pub(super) fn time_out(&mut self, id: u64, serial: u64) {
        let Some(request) = self.requests.get(&id).filter(|request| request.serial == serial) else { return };
        self.abandon(request.upstream, serial);
        self.end_attempt(id, serial, false);
    }

    /// Settles an attempt; after a failure there may be another.
    pub(super) fn end_attempt(&mut self, id: u64, serial: u64, is_good: bool) {
        let Some(request) = self.requests.get_mut(&id).filter(|request| request.serial == serial) else { return };
        let upstream = request.upstream;
        if let Stage::Calling(permit) = &mut request.stage
            && let Some(permit) = permit.take()
        {
            let _ = if is_good { permit.success() } else { permit.failure() };
        }
        self.record.left(upstream);
        if is_good {
            return self.end_try(id, End::Good);
        }
        match self.backoff(id) {
            Some(wait) => {
                let serial = self.stage(id, Stage::BackingOff);
                self.after(wait, Event::Retries { request: id, serial });
            }
            None => self.end_try(id, End::Failed),
        }
    }

    pub(super) fn retry(&mut self, id: u64, serial: u64) {
        if self.requests.get(&id).is_some_and(|request| request.serial == serial) {
            self.attempt(id);
        }
    }

    /// The wait before another attempt; none if there is none. The budget is asked last.
    fn backoff(&mut self, id: u64) -> Option<Nanos> {
        let request = self.requests.get(&id)?;
        let policy = &self.variant.terms[request.upstream].call;
        if request.attempts >= policy.attempts() {
            return None;
        }
        // Full jitter.
        let wait = (self.gateway.back.share() * nanos(policy.longest_backoff(request.attempts)) as f64) as Nanos;
        let end = (self.now - request.began).saturating_add(wait).saturating_add(nanos(policy.timeout()));
        let is_allowed = end <= nanos(policy.deadline()) && self.gateway.spend(request.upstream, policy);
        is_allowed.then_some(wait)
    }
}
