//! ferryman-core's breaker: plain atomics, and no clock while it is closed.

use ferryman_core::{Admission, Breaker, BreakerConfig};

use crate::subject::{Cannot, Ending, Held, Hook, Settings, Subject};

#[derive(Debug)]
pub struct Ferryman(Breaker);

impl Subject for Ferryman {
    const NAME: &'static str = "ferryman-core";
    const CRATES: &'static [&'static str] = &["ferryman-core"];
    const CANNOT: &'static [Cannot] = &[
        Cannot::Permit,
        Cannot::CallsWindow,
        Cannot::TimeWindow,
        Cannot::MinCalls,
        Cannot::ChooseProbes,
        Cannot::CountSuccesses,
        Cannot::Key,
        Cannot::Observe,
        Cannot::MoveClock,
    ];
    const BETTER: &'static str =
        "the least work per decision of all here: a load while it is closed, no permit to carry";

    fn build(settings: &Settings, _: Option<Hook>) -> Self {
        let config = BreakerConfig::default().with_failure_threshold(5).with_cooldown(settings.wait);
        Self(Breaker::new(config).unwrap_or_else(|error| panic!("the breaker of a scenario builds: {error}")))
    }

    fn once(&self, key: &str, ending: Ending) -> bool {
        self.admit(key).map(|ticket| self.settle(ticket, ending)).is_some()
    }
}

impl Held for Ferryman {
    /// A ticket without a drop: a cancelled caller who doesn't hand it back by hand is a lost one.
    type Token<'a> = Admission;

    fn admit(&self, _: &str) -> Option<Admission> {
        self.0.try_acquire()
    }

    fn settle(&self, ticket: Admission, ending: Ending) {
        match ending {
            Ending::Success => self.0.record_success(ticket),
            Ending::Failure => self.0.record_failure(ticket),
            Ending::Ignored => self.0.release(ticket),
        }
    }
}
