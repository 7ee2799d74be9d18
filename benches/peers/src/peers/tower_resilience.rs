//! tower-resilience: the bulkhead's layer around the breaker's, so that a full bulkhead isn't a failure to the breaker.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use tokio::runtime::Runtime;
use tower::{Layer, Service, ServiceExt};
use tower_resilience_bulkhead::{Bulkhead, BulkheadLayer};
use tower_resilience_circuitbreaker::{
    CircuitBreaker, CircuitBreakerError, CircuitBreakerHandle, CircuitBreakerLayer, CircuitState, DefaultClassifier,
    SlidingWindowType,
};

use crate::held::{Failed, HeldCall, Running, Verdict, now};
use crate::subject::{Cannot, Ending, Held, Hook, Rule, Settings, Subject};

/// The upstream behind the layers.
#[derive(Clone, Debug)]
struct Upstream;

impl Service<Verdict> for Upstream {
    type Response = ();
    type Error = Failed;
    type Future = Running;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, verdict: Verdict) -> Running {
        verdict.call()
    }
}

type Stack = Bulkhead<CircuitBreaker<Upstream, DefaultClassifier>>;

pub struct TowerResilience {
    /// Cloned for each call, as servers do; behind a lock since the clone of a service that can't be shared needs one.
    service: Mutex<Stack>,
    handle: CircuitBreakerHandle<DefaultClassifier>,
}

impl std::fmt::Debug for TowerResilience {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TowerResilience").field("state", &self.handle.state()).finish_non_exhaustive()
    }
}

/// The timers that its readiness sleeps on when its lock is taken.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let built = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build();
        built.unwrap_or_else(|error| panic!("a runtime starts: {error}"))
    })
}

impl TowerResilience {
    fn service(&self) -> Stack {
        self.service.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Subject for TowerResilience {
    const NAME: &'static str = "tower-resilience";
    const CRATES: &'static [&'static str] = &["tower-resilience-circuitbreaker", "tower-resilience-bulkhead"];
    const CANNOT: &'static [Cannot] = &[Cannot::Ignore, Cannot::Key, Cannot::MoveClock];
    const BETTER: &'static str =
        "the widest set: back-pressure, fallbacks, health endpoints, metrics, slow calls, a dozen further layers";

    fn build(settings: &Settings, hook: Option<Hook>) -> Self {
        let builder = CircuitBreakerLayer::builder()
            .failure_rate_threshold(0.5)
            .wait_duration_in_open(settings.wait)
            // One number is both: so many probes at once, and so many successes to close.
            .permitted_calls_in_half_open(settings.probes.max(settings.to_close) as usize);
        let builder = match settings.rule {
            Rule::Any => builder.consecutive_failures(5),
            Rule::Calls { window, min_calls } => {
                builder.sliding_window_size(window as usize).minimum_number_of_calls(min_calls as usize)
            }
            Rule::Time { window, min_calls } => builder
                .sliding_window_type(SlidingWindowType::TimeBased)
                .sliding_window_duration(window)
                .minimum_number_of_calls(min_calls as usize),
        };
        let builder = match hook {
            Some(hook) => builder.on_state_transition(move |_: CircuitState, _: CircuitState| hook()),
            None => builder,
        };
        let (breaker, handle) =
            builder.build_with_handle().unwrap_or_else(|error| panic!("the breaker of a scenario builds: {error}"));
        let bulkhead = BulkheadLayer::builder()
            .max_concurrent_calls(settings.limit as usize)
            .reject_when_full()
            .build()
            .unwrap_or_else(|error| panic!("the bulkhead of a scenario builds: {error}"));
        Self { service: Mutex::new(bulkhead.layer(breaker.layer(Upstream))), handle }
    }

    fn once(&self, _: &str, ending: Ending) -> bool {
        let _timers = runtime().enter();
        let mut service = self.service();
        let answer = now(async {
            let ready = service.ready().await.map_err(|_| Failed::Refused)?;
            // Refusals of both layers are errors of other kinds than the upstream's.
            ready.call(Verdict::ready(ending)).await.map_err(|error| {
                let inner = error.into_inner().and_then(CircuitBreakerError::into_inner);
                inner.unwrap_or(Failed::Refused)
            })
        });
        answer != Err(Failed::Refused)
    }
}

impl Held for TowerResilience {
    type Token<'a> = HeldCall<'a>;

    fn admit(&self, _: &str) -> Option<HeldCall<'_>> {
        let _timers = runtime().enter();
        let (verdict, mut service) = (Verdict::default(), self.service());
        let upstream = verdict.clone();
        HeldCall::start(verdict, async move {
            if let Ok(ready) = service.ready().await {
                let _ = ready.call(upstream).await;
            }
        })
    }

    fn settle<'a>(&'a self, call: HeldCall<'a>, ending: Ending) {
        match ending {
            Ending::Ignored => drop(call),
            told => call.finish(told),
        }
    }

    fn close_by_hand(&self) {
        now(self.handle.force_closed());
    }
}
