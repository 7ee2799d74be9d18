//! breaker: a lock around a ring of outcomes, permits of probes by compare-and-swap beside it.

use std::future::ready;

use breaker::{BackoffStrategy, CircuitBreaker, CircuitBreakerConfig, CircuitBreakerError};

use super::recloser::answer;
use crate::held::{Failed, HeldCall, Verdict, now};
use crate::subject::{Cannot, Ending, Held, Hook, Rule, Settings, Subject};

#[derive(Debug)]
pub struct Breaker(CircuitBreaker);

impl Subject for Breaker {
    const NAME: &'static str = "breaker";
    const CRATES: &'static [&'static str] = &["breaker"];
    const CANNOT: &'static [Cannot] = &[Cannot::Permit, Cannot::TimeWindow, Cannot::Key, Cannot::MoveClock];
    const BETTER: &'static str = "errors keep their type; loom and kani harnesses come with it; with its own timeout (a feature) a hung call is a failure";

    fn build(settings: &Settings, hook: Option<Hook>) -> Self {
        let builder = CircuitBreakerConfig::builder()
            .backoff(BackoffStrategy::Fixed(settings.wait))
            .half_open_max_calls(settings.probes)
            .success_threshold(settings.to_close)
            .failure_predicate(|failed: &Failed| *failed == Failed::Upstream);
        let config = match settings.rule {
            // A rate of 0 turns that rule off.
            Rule::Any => builder.consecutive_failures(5).failure_rate_threshold(0.0),
            Rule::Calls { window, min_calls } => builder
                .sliding_window_size(window)
                .minimum_calls(min_calls)
                .failure_rate_threshold(0.5)
                .consecutive_failures(u32::MAX),
            Rule::Time { min_calls, .. } => {
                builder.minimum_calls(min_calls).failure_rate_threshold(0.5).consecutive_failures(u32::MAX)
            }
        };
        let breaker = CircuitBreaker::builder(config.build());
        Self(match hook {
            Some(hook) => breaker.on_state_change(move |_, _| hook()).build(),
            None => breaker.build(),
        })
    }

    fn once(&self, _: &str, ending: Ending) -> bool {
        let answer = now(self.0.call(|| ready(answer(ending))));
        !matches!(answer, Err(CircuitBreakerError::CircuitOpen | CircuitBreakerError::Rejected))
    }
}

impl Held for Breaker {
    type Token<'a> = HeldCall<'a>;

    fn admit(&self, _: &str) -> Option<HeldCall<'_>> {
        let verdict = Verdict::default();
        let upstream = verdict.clone();
        HeldCall::start(verdict, async move {
            let _ = self.0.call(|| upstream.call()).await;
        })
    }

    fn settle<'a>(&'a self, call: HeldCall<'a>, ending: Ending) {
        // An error that the predicate spares never touches its state: that is to ignore.
        call.finish(ending);
    }

    fn close_by_hand(&self) {
        self.0.reset();
    }
}
