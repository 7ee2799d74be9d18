//! Peers that are one circuit, or one semaphore, without keys.

use std::future::ready;

use ::breaker::{BackoffStrategy, CircuitBreaker, CircuitBreakerConfig};
use ::failsafe::{CircuitBreaker as _, StateMachine};
use ::throttle_net::{Bulkhead, BulkheadPermit, CircuitBreaker as Shedder, Permit, SystemClock, Throttle, Trip};
use ferryman_core::BreakerConfig;
use tokio::sync::Semaphore;

use super::finish;
use crate::cores::case::{Basis, Path};
use crate::cores::timed::{Single, answer};
use crate::held::{HeldCall, Verdict};
use crate::peers::failsafe::Kind;
use crate::peers::{breaker, failsafe, ferryman, recloser, semaphore, throttle_net};
use crate::subject::{Ending, Killable, Rule, Settings};

/// failsafe, by `call`.
pub struct Failsafe<K: Kind>(StateMachine<K::Policy, ()>);

impl<K: Kind> std::fmt::Debug for Failsafe<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Failsafe").field(&self.0).finish()
    }
}

/// What a policy of failsafe judges by.
pub trait Judged: Kind {
    const BASES: &'static [Basis];
}

impl Judged for failsafe::Consecutive {
    const BASES: &'static [Basis] = &[Basis::Streak];
}

impl Judged for failsafe::Rate {
    const BASES: &'static [Basis] = &[Basis::Time];
}

impl<K: Judged> Single for Failsafe<K> {
    type Adapter = failsafe::Failsafe<K>;

    const BASES: &'static [Basis] = K::BASES;

    fn build(settings: &Settings) -> Self {
        Self(StateMachine::new(K::policy(settings), ()))
    }

    #[inline]
    fn call(&self, ending: Ending) -> bool {
        !matches!(self.0.call(|| answer(ending)), Err(::failsafe::Error::Rejected))
    }
}

/// recloser, by its blocking `call`.
#[derive(Debug)]
pub struct Recloser(::recloser::Recloser);

impl Single for Recloser {
    type Adapter = recloser::Futures;

    const BASES: &'static [Basis] = &[Basis::Calls];

    fn build(settings: &Settings) -> Self {
        Self(recloser::ring(settings))
    }

    #[inline]
    fn call(&self, ending: Ending) -> bool {
        !matches!(self.0.call(|| answer(ending)), Err(::recloser::Error::Rejected))
    }
}

/// ferryman-core, by its tickets.
#[derive(Debug)]
pub struct Ferryman(ferryman_core::Breaker);

impl Single for Ferryman {
    type Adapter = ferryman::Ferryman;

    const BASES: &'static [Basis] = &[Basis::Streak];

    fn build(settings: &Settings) -> Self {
        let config = BreakerConfig::default().with_failure_threshold(5).with_cooldown(settings.wait);
        Self(ferryman_core::Breaker::new(config).unwrap_or_else(|error| panic!("the breaker builds: {error}")))
    }

    #[inline]
    fn call(&self, ending: Ending) -> bool {
        let Some(ticket) = self.0.try_acquire() else { return false };
        match ending {
            Ending::Failure => self.0.record_failure(ticket),
            _ => self.0.record_success(ticket),
        }
        true
    }

    fn hold(&self) -> Option<Box<dyn Killable + '_>> {
        self.0.try_acquire().map(|ticket| Box::new(ticket) as Box<dyn Killable>)
    }
}

/// breaker, by `call`, which is asynchronous only.
#[derive(Debug)]
pub struct Breaker(CircuitBreaker);

impl Single for Breaker {
    type Adapter = breaker::Breaker;

    const BASES: &'static [Basis] = &[Basis::Calls, Basis::Streak];

    fn build(settings: &Settings) -> Self {
        let builder = CircuitBreakerConfig::builder()
            .backoff(BackoffStrategy::Fixed(settings.wait))
            .half_open_max_calls(settings.probes)
            .success_threshold(settings.to_close);
        let config = match settings.rule {
            Rule::Calls { window, min_calls } => builder
                .sliding_window_size(window)
                .minimum_calls(min_calls)
                .failure_rate_threshold(0.5)
                .consecutive_failures(u32::MAX),
            // A rate of 0 turns that rule off.
            _ => builder.consecutive_failures(5).failure_rate_threshold(0.0),
        };
        Self(CircuitBreaker::new(config.build()))
    }

    #[inline]
    fn call(&self, ending: Ending) -> bool {
        use ::breaker::CircuitBreakerError::{CircuitOpen, Rejected};
        !matches!(finish(self.0.call(|| ready(answer(ending)))), Err(CircuitOpen | Rejected))
    }

    fn hold(&self) -> Option<Box<dyn Killable + '_>> {
        let verdict = Verdict::default();
        let upstream = verdict.clone();
        let call = HeldCall::start(verdict, async move {
            let _ = self.0.call(|| upstream.call()).await;
        });
        call.map(|call| Box::new(call) as Box<dyn Killable>)
    }
}

/// throttle-net: its bulkhead, then its breaker, which can't be had without a limiter.
pub struct ThrottleNet {
    bulkhead: Bulkhead,
    breaker: Shedder<Throttle>,
}

impl std::fmt::Debug for ThrottleNet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ThrottleNet").field("state", &self.breaker.state()).finish_non_exhaustive()
    }
}

impl Single for ThrottleNet {
    type Adapter = throttle_net::ThrottleNet;

    const BASES: &'static [Basis] = &[Basis::Calls, Basis::Streak, Basis::Time];

    fn remark(_: Path) -> &'static str {
        "has a rate limiter, too"
    }

    fn build(settings: &Settings) -> Self {
        let trip = match settings.rule {
            Rule::Any => Trip::Consecutive(5),
            Rule::Calls { window, min_calls } => Trip::Ratio { window, ratio: 0.5, min_calls },
            // It counts failures, not their share: a number that none reaches.
            Rule::Time { window, .. } => Trip::Windowed { failures: u32::MAX, period: window },
        };
        let breaker = Shedder::builder()
            .trip(trip)
            .cooldown(settings.wait)
            .half_open(settings.probes, settings.to_close)
            .build(Throttle::per_second(u32::MAX / 2));
        Self { bulkhead: Bulkhead::new(settings.limit), breaker }
    }

    #[inline]
    fn call(&self, ending: Ending) -> bool {
        let Some(_slot) = self.bulkhead.try_acquire() else { return false };
        let Ok(Some(permit)) = self.breaker.try_acquire() else { return false };
        match ending {
            Ending::Failure => permit.failure(),
            _ => permit.success(),
        }
        true
    }

    fn hold(&self) -> Option<Box<dyn Killable + '_>> {
        let slot = self.bulkhead.try_acquire()?;
        let permit = self.breaker.try_acquire().ok()??;
        Some(Box::new(Cancelled { permit: Some(permit), _slot: slot }))
    }
}

/// Dropped, its permit would count as a failure.
struct Cancelled<'a> {
    permit: Option<Permit<'a, Throttle, SystemClock>>,
    _slot: BulkheadPermit<'a>,
}

impl Drop for Cancelled<'_> {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            permit.cancel();
        }
    }
}

/// tokio's semaphore.
#[derive(Debug)]
pub struct Permits(Semaphore);

impl Single for Permits {
    type Adapter = semaphore::Permits;

    const BASES: &'static [Basis] = &[];

    fn build(settings: &Settings) -> Self {
        Self(Semaphore::new(settings.limit as usize))
    }

    #[inline]
    fn call(&self, _: Ending) -> bool {
        self.0.try_acquire().is_ok()
    }

    fn hold(&self) -> Option<Box<dyn Killable + '_>> {
        self.0.try_acquire().ok().map(|permit| Box::new(permit) as Box<dyn Killable>)
    }
}
