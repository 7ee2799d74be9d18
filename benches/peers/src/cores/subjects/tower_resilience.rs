//! tower-resilience: the bulkhead's layer around the breaker's, a clone of the service for each thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

use ::tower_resilience_bulkhead::{Bulkhead, BulkheadLayer};
use ::tower_resilience_circuitbreaker::{CircuitBreaker, CircuitBreakerLayer, DefaultClassifier, SlidingWindowType};
use tokio::runtime::EnterGuard;
use tower::{Layer, Service, ServiceExt};

use super::finish;
use crate::cores::case::{Basis, Path};
use crate::cores::keys::{Key, Keys};
use crate::cores::timed::{Failure, Setup, Timed, answer};
use crate::held::{HeldCall, Running, Verdict};
use crate::peers::tower_resilience;
use crate::subject::{Cannot, Ending, Killable, Rule, Settings, Subject as _};

/// What the upstream is to answer: at once, or when a verdict comes.
#[derive(Clone, Debug)]
enum Call {
    Now(Ending),
    Held(Verdict),
}

#[derive(Debug)]
enum Answer {
    Now(Result<(), Failure>),
    Held(Running),
}

impl Future for Answer {
    type Output = Result<(), Failure>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Now(answer) => Poll::Ready(*answer),
            Self::Held(running) => Pin::new(running).poll(context).map_err(|_| Failure),
        }
    }
}

#[derive(Clone, Debug)]
struct Upstream;

impl Service<Call> for Upstream {
    type Response = ();
    type Error = Failure;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, call: Call) -> Answer {
        match call {
            Call::Now(ending) => Answer::Now(answer(ending)),
            Call::Held(verdict) => Answer::Held(verdict.call()),
        }
    }
}

type Stack = Bulkhead<CircuitBreaker<Upstream, DefaultClassifier>>;

pub struct TowerResilience {
    /// One for all threads, or each its own; locked to be cloned, since it can't be shared.
    each: Vec<Mutex<Stack>>,
}

impl std::fmt::Debug for TowerResilience {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TowerResilience").field("each", &self.each.len()).finish()
    }
}

impl TowerResilience {
    fn service(&self, home: usize) -> Stack {
        self.each[home].lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A clone of the service, within reach of the timers that it sleeps on when its lock is taken.
pub struct Caller {
    service: Stack,
    _timers: EnterGuard<'static>,
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller").finish_non_exhaustive()
    }
}

fn stack(settings: &Settings) -> Stack {
    let builder = CircuitBreakerLayer::builder()
        .failure_rate_threshold(0.5)
        .wait_duration_in_open(settings.wait)
        .permitted_calls_in_half_open(settings.probes as usize);
    let breaker = match settings.rule {
        Rule::Any => builder.consecutive_failures(5),
        Rule::Calls { window, min_calls } => {
            builder.sliding_window_size(window as usize).minimum_number_of_calls(min_calls as usize)
        }
        Rule::Time { window, min_calls } => builder
            .sliding_window_type(SlidingWindowType::TimeBased)
            .sliding_window_duration(window)
            .minimum_number_of_calls(min_calls as usize),
    };
    let breaker = breaker.build().unwrap_or_else(|error| panic!("the breaker builds: {error}"));
    let bulkhead = BulkheadLayer::builder().max_concurrent_calls(settings.limit as usize).reject_when_full().build();
    bulkhead.unwrap_or_else(|error| panic!("the bulkhead builds: {error}")).layer(breaker.layer(Upstream))
}

impl Timed for TowerResilience {
    fn name() -> String {
        tower_resilience::TowerResilience::NAME.to_owned()
    }

    fn cannot() -> Vec<Cannot> {
        tower_resilience::TowerResilience::CANNOT.to_vec()
    }

    const BASES: &'static [Basis] = &[Basis::Calls, Basis::Streak, Basis::Time];

    fn remark(path: Path) -> &'static str {
        match path {
            Path::Full => "refuses by a timer",
            Path::Open | Path::Probing => "sleeps 1 ms if its lock is taken",
            Path::Healthy(Basis::Time) | Path::Failing(Basis::Time, _) => "slower with each call in the window",
            _ => "",
        }
    }

    type Caller<'a> = Caller;

    fn build(setup: &Setup) -> Self {
        let count = if setup.case.keys == Keys::Own { setup.seats } else { 1 };
        Self { each: (0..count).map(|_| Mutex::new(stack(&setup.settings))).collect() }
    }

    fn caller(&self, home: usize) -> Caller {
        Caller { service: self.service(home), _timers: tower_resilience::runtime().enter() }
    }

    #[inline]
    fn call(caller: &mut Caller, _: &Key, ending: Ending) -> bool {
        finish(async {
            let Ok(ready) = caller.service.ready().await else { return false };
            match ready.call(Call::Now(ending)).await {
                Ok(()) => true,
                // Refusals of both layers are errors of other kinds than the upstream's.
                Err(error) => error.into_inner().is_some_and(|error| error.into_inner().is_some()),
            }
        })
    }

    fn hold(&self, home: usize) -> Option<Box<dyn Killable + '_>> {
        let (verdict, mut service) = (Verdict::default(), self.service(home));
        let upstream = verdict.clone();
        let held = HeldCall::start(verdict, async move {
            if let Ok(ready) = service.ready().await {
                let _ = ready.call(Call::Held(upstream)).await;
            }
        });
        held.map(|call| Box::new(call) as Box<dyn Killable>)
    }
}
