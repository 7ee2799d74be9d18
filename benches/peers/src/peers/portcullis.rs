//! portcullis, by its public API like any other: keyed, every decision by `Engine::admit`.

use std::sync::Arc;
use std::time::Duration;

use portcullis::{Clock, Engine, Outcome, Permit, Policy, PolicyBuilder, Transition, Window};

use crate::subject::{Cannot, Ending, Held, Hook, Killable, Rule, Settings, Subject};

pub struct Portcullis {
    engine: Arc<Engine>,
    time: Arc<dyn Fn(Duration) + Send + Sync>,
}

impl std::fmt::Debug for Portcullis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Portcullis").field("engine", &self.engine).finish_non_exhaustive()
    }
}

fn ruled(rule: Rule) -> PolicyBuilder {
    match rule {
        Rule::Any => Policy::builder().no_window().consecutive_failures(5),
        Rule::Calls { window, min_calls } => Policy::builder().window(Window::calls(window)).min_calls(min_calls),
        Rule::Time { window, min_calls } => Policy::builder().window(Window::time(window)).min_calls(min_calls),
    }
}

/// What scenarios and timings set alike.
pub(crate) fn policy(settings: &Settings) -> Policy {
    let policy = ruled(settings.rule)
        // The same wait after each opening, as the others have it.
        .open_wait(settings.wait)
        .open_wait_max(settings.wait)
        .backoff(1.0)
        .jitter(0.0)
        .max_probes(settings.probes)
        .successes_to_close(settings.to_close)
        .probe_lease(Duration::from_secs(10))
        .max_in_flight(settings.limit);
    policy.build().unwrap_or_else(|error| panic!("the policy of a scenario builds: {error}"))
}

impl Subject for Portcullis {
    const NAME: &'static str = "portcullis";
    const CRATES: &'static [&'static str] = &["portcullis"];
    const CANNOT: &'static [Cannot] = &[];
    const BETTER: &'static str =
        "breaker, windows, probes, permits and bounded keys in one decision; lost probes come back by lease";

    fn build(settings: &Settings, hook: Option<Hook>) -> Self {
        let (clock, mock) = Clock::mock();
        let engine = Engine::builder().policy(policy(settings)).clock(clock).max_targets(settings.keys).build();
        if let Some(hook) = hook {
            engine.observe(move |_: &Transition| hook()).forever();
        }
        Self { engine: Arc::new(engine), time: Arc::new(move |by| mock.increment(by)) }
    }

    fn once(&self, key: &str, ending: Ending) -> bool {
        self.engine.admit(key).map(|permit| permit.settle(outcome(ending))).is_ok()
    }
}

impl Held for Portcullis {
    const WAIT: Duration = Duration::from_secs(5);
    /// A lease of 10 s ends on a whole second.
    const LEASE: Duration = Duration::from_secs(11);
    const WINDOW: Duration = Duration::from_secs(10);
    const SILENCE: Duration = Duration::from_secs(1);

    type Token<'a> = Permit<'a>;

    fn admit(&self, key: &str) -> Option<Permit<'_>> {
        self.engine.admit(key).ok()
    }

    fn settle<'a>(&'a self, permit: Permit<'a>, ending: Ending) {
        permit.settle(outcome(ending));
    }

    fn hang(&self, key: &str) -> Option<Box<dyn Killable + '_>> {
        self.engine.admit_async(key).ok().map(|permit| Box::new(permit) as Box<dyn Killable>)
    }

    fn advance(&self, by: Duration) {
        (self.time)(by);
    }

    fn close_by_hand(&self) {
        // OPEN is left by time and probes; what an operator can do is force it, and release it to CLOSED.
        for key in self.engine.snapshots().into_iter().map(|(key, _)| key) {
            let _ = self.engine.force_open(&*key).and_then(|_| self.engine.release(&*key));
        }
    }

    fn tidy(&self) {
        // The first visit notes that the counters stand still, the second, after `idle_after`, lets go.
        self.engine.sweep();
        self.advance(Duration::from_secs(3_600));
        self.engine.sweep();
    }
}

fn outcome(ending: Ending) -> Outcome {
    match ending {
        Ending::Success => Outcome::Success,
        Ending::Failure => Outcome::Failure,
        Ending::Ignored => Outcome::Ignored,
    }
}
