//! Control: governor, a keyed rate limiter. It learns nothing from outcomes; its map shows what keys cost, and how to forget them.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::FakeRelativeClock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::DashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::subject::{Cannot, Ending, Held, Hook, Settings, Subject};

type Limiter = RateLimiter<
    String,
    DashMapStateStore<String>,
    FakeRelativeClock,
    NoOpMiddleware<<FakeRelativeClock as governor::clock::Clock>::Instant>,
>;

pub struct Governor {
    limiter: Limiter,
    clock: FakeRelativeClock,
}

impl std::fmt::Debug for Governor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Governor").field("keys", &self.limiter.len()).finish_non_exhaustive()
    }
}

impl Subject for Governor {
    const NAME: &'static str = "governor (keyed)";
    const CRATES: &'static [&'static str] = &["governor"];
    const CANNOT: &'static [Cannot] = &[Cannot::Break, Cannot::Permit, Cannot::BoundKeys, Cannot::Observe];
    const BETTER: &'static str =
        "limits rates, with the least memory a key; `retain_recent` and `shrink_to_fit` give that of idle keys back";

    fn build(_: &Settings, _: Option<Hook>) -> Self {
        let clock = FakeRelativeClock::default();
        let quota = Quota::per_second(NonZeroU32::new(1_000_000).unwrap_or(NonZeroU32::MIN));
        Self { limiter: RateLimiter::new(quota, DashMapStateStore::default(), clock.clone()), clock }
    }

    fn once(&self, key: &str, _: Ending) -> bool {
        self.limiter.check_key(&key.to_owned()).is_ok()
    }
}

impl Held for Governor {
    const WAIT: Duration = Duration::from_secs(5);

    type Token<'a> = ();

    fn admit(&self, key: &str) -> Option<()> {
        self.once(key, Ending::Success).then_some(())
    }

    fn settle(&self, (): (), _: Ending) {}

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    fn tidy(&self) {
        self.limiter.retain_recent();
        self.limiter.shrink_to_fit();
    }
}
