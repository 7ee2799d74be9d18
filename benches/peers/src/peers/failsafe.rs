//! failsafe, with each of its policies. Its state machine takes permission and outcome apart, so calls can be held open.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use failsafe::backoff::{Constant, constant};
use failsafe::failure_policy::{self, ConsecutiveFailures, SuccessRateOverTimeWindow};
use failsafe::futures::CircuitBreaker as _;
use failsafe::{FailurePolicy, Instrument, StateMachine};

use crate::held::{HeldCall, Verdict};
use crate::subject::{Cannot, Ending, Held, Hook, Killable, Rule, Settings, Subject};

/// What differs between the policies.
pub trait Kind: Send + Sync + 'static {
    const NAME: &'static str;
    const CANNOT: &'static [Cannot];
    const BETTER: &'static str;
    /// How long after its start, or its last recovery, it judges nothing.
    const UNRIPE: Duration;
    type Policy: FailurePolicy + Send + Sync + 'static;

    fn policy(settings: &Settings) -> Self::Policy;
}

#[derive(Debug)]
pub struct Consecutive;

impl Kind for Consecutive {
    const NAME: &'static str = "failsafe (consecutive)";
    const CANNOT: &'static [Cannot] = &[
        Cannot::Permit,
        Cannot::CallsWindow,
        Cannot::TimeWindow,
        Cannot::MinCalls,
        Cannot::LimitProbes,
        Cannot::ChooseProbes,
        Cannot::CountSuccesses,
        Cannot::Key,
        Cannot::MoveClock,
    ];
    const BETTER: &'static str =
        "any policy and any back-off series can be plugged in; a lost probe can't wedge it, since it counts none";
    const UNRIPE: Duration = Duration::ZERO;
    type Policy = ConsecutiveFailures<Constant>;

    fn policy(settings: &Settings) -> Self::Policy {
        failure_policy::consecutive_failures(5, constant(settings.wait))
    }
}

#[derive(Debug)]
pub struct Rate;

impl Kind for Rate {
    const NAME: &'static str = "failsafe (rate)";
    const CANNOT: &'static [Cannot] = &[
        Cannot::Permit,
        Cannot::CallsWindow,
        Cannot::LimitProbes,
        Cannot::ChooseProbes,
        Cannot::CountSuccesses,
        Cannot::Key,
        Cannot::MoveClock,
    ];
    const BETTER: &'static str = "a moving average weighs the latest calls most; policies combine with `or_else`";
    const UNRIPE: Duration = Duration::from_millis(1_050);
    type Policy = SuccessRateOverTimeWindow<Constant>;

    fn policy(settings: &Settings) -> Self::Policy {
        // It counts windows in whole seconds: one is the shortest that does what it says.
        let shortest = Duration::from_secs(1);
        let (min_calls, window) = match settings.rule {
            Rule::Any => (5, shortest),
            Rule::Calls { min_calls, .. } => (min_calls, shortest),
            Rule::Time { window, min_calls } => (min_calls, window.max(shortest)),
        };
        failure_policy::success_rate_over_time_window(0.5, min_calls, window, constant(settings.wait))
    }
}

/// Calls the hook outside and inside of whatever the state machine locks: that is what is asked.
struct Told(Option<Hook>);

impl Told {
    fn tell(&self) {
        if let Some(hook) = &self.0 {
            hook();
        }
    }
}

impl Instrument for Told {
    fn on_call_rejected(&self) {}

    fn on_open(&self) {
        self.tell();
    }

    fn on_half_open(&self) {
        self.tell();
    }

    fn on_closed(&self) {
        self.tell();
    }
}

pub struct Failsafe<K: Kind> {
    machine: StateMachine<K::Policy, Told>,
    /// When it was made or last told of a success: at the latest then its first window began.
    since: Mutex<Instant>,
}

impl<K: Kind> std::fmt::Debug for Failsafe<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Failsafe").field("machine", &self.machine).finish_non_exhaustive()
    }
}

impl<K: Kind> Subject for Failsafe<K> {
    const NAME: &'static str = K::NAME;
    const CRATES: &'static [&'static str] = &["failsafe"];
    const CANNOT: &'static [Cannot] = K::CANNOT;
    const BETTER: &'static str = K::BETTER;

    fn build(settings: &Settings, hook: Option<Hook>) -> Self {
        let machine = StateMachine::new(K::policy(settings), Told(hook));
        Self { machine, since: Mutex::new(Instant::now()) }
    }

    fn once(&self, _: &str, ending: Ending) -> bool {
        let is_permitted = self.machine.is_call_permitted();
        match ending {
            _ if !is_permitted => {}
            Ending::Success => self.machine.on_success(),
            Ending::Failure => self.machine.on_error(),
            Ending::Ignored => {}
        }
        is_permitted
    }
}

impl<K: Kind> Held for Failsafe<K> {
    type Token<'a> = ();

    fn admit(&self, _: &str) -> Option<()> {
        self.machine.is_call_permitted().then_some(())
    }

    fn settle(&self, (): (), ending: Ending) {
        match ending {
            Ending::Success => {
                self.machine.on_success();
                if let Ok(mut since) = self.since.lock() {
                    *since = Instant::now();
                }
            }
            Ending::Failure => self.machine.on_error(),
            // Permission obliges to nothing: saying nothing is how it ignores.
            Ending::Ignored => {}
        }
    }

    fn hang(&self, _: &str) -> Option<Box<dyn Killable + '_>> {
        let verdict = Verdict::default();
        let call = self.machine.call(verdict.call());
        HeldCall::start(verdict, async {
            let _ = call.await;
        })
        .map(|call| Box::new(call) as Box<dyn Killable>)
    }

    fn ripen(&self) {
        let since = self.since.lock().map_or_else(|poisoned| *poisoned.into_inner(), |since| *since);
        std::thread::sleep(K::UNRIPE.saturating_sub(since.elapsed()));
    }

    fn close_by_hand(&self) {
        self.machine.reset();
    }
}
