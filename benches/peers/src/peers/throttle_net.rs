//! throttle-net: its bulkhead, then its breaker. The breaker can't be had without a limiter, so it wraps one that never limits.

use std::sync::Arc;
use std::time::Duration;

use throttle_net::{Bulkhead, BulkheadPermit, CircuitBreaker, ManualClock, Permit, Throttle, Trip};

use crate::subject::{Cannot, Ending, Held, Hook, Rule, Settings, Subject};

pub struct ThrottleNet {
    breaker: CircuitBreaker<Throttle, Arc<ManualClock>>,
    bulkhead: Bulkhead,
    clock: Arc<ManualClock>,
}

impl std::fmt::Debug for ThrottleNet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ThrottleNet").field("state", &self.breaker.state()).finish_non_exhaustive()
    }
}

/// The breaker's permit, and the bulkhead's behind it.
#[derive(Debug)]
pub struct Token<'a> {
    call: Permit<'a, Throttle, Arc<ManualClock>>,
    _slot: BulkheadPermit<'a>,
}

impl Subject for ThrottleNet {
    const NAME: &'static str = "throttle-net";
    const CRATES: &'static [&'static str] = &["throttle-net"];
    const CANNOT: &'static [Cannot] = &[Cannot::Key, Cannot::Observe];
    const BETTER: &'static str = "rate limits, queues, retries and adaptive limits in the same crate; waits for permits; late results are fenced";

    fn build(settings: &Settings, _: Option<Hook>) -> Self {
        let trip = match settings.rule {
            Rule::Any => Trip::Consecutive(5),
            Rule::Calls { window, min_calls } => Trip::Ratio { window, ratio: 0.5, min_calls },
            Rule::Time { window, min_calls } => Trip::Windowed { failures: min_calls, period: window },
        };
        let clock = Arc::new(ManualClock::new());
        let breaker = CircuitBreaker::builder()
            .trip(trip)
            .cooldown(settings.wait)
            .half_open(settings.probes, settings.to_close)
            .build(Throttle::per_second(u32::MAX / 2))
            .with_clock(Arc::clone(&clock));
        Self { breaker, bulkhead: Bulkhead::new(settings.limit), clock }
    }

    fn once(&self, key: &str, ending: Ending) -> bool {
        self.admit(key).map(|token| self.settle(token, ending)).is_some()
    }
}

impl Held for ThrottleNet {
    const WAIT: Duration = Duration::from_secs(5);
    const WINDOW: Duration = Duration::from_secs(10);
    const SILENCE: Duration = Duration::from_secs(1);

    type Token<'a> = Token<'a>;

    fn admit(&self, _: &str) -> Option<Token<'_>> {
        let slot = self.bulkhead.try_acquire()?;
        let call = self.breaker.try_acquire().ok()??;
        Some(Token { call, _slot: slot })
    }

    fn settle<'a>(&'a self, token: Token<'a>, ending: Ending) {
        match ending {
            Ending::Success => token.call.success(),
            Ending::Failure => token.call.failure(),
            Ending::Ignored => token.call.cancel(),
        }
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn close_by_hand(&self) {
        self.breaker.reset();
    }
}
