//! What a subject offers to the reports: one trait for calls in one piece, one for calls held open.

use std::sync::Arc;
use std::time::Duration;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Success,
    Failure,
    /// No evidence about the upstream. Subjects without such a word ([`Cannot::Ignore`]) are told by dropping the call.
    Ignored,
}

/// When a closed circuit opens.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// The subject's quickest rule: 5 failures in a row, or half of the last 10 calls where it can't count a row.
    Any,
    /// At least half of the last `window` calls failed, `min_calls` at least.
    Calls { window: u32, min_calls: u32 },
    /// At least half of the calls of the last `window` failed, `min_calls` at least.
    Time { window: Duration, min_calls: u32 },
}

/// What all subjects are set to, as far as they can be.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub rule: Rule,
    /// The time between opening and the first probe.
    pub wait: Duration,
    /// Probes in flight at once.
    pub probes: u32,
    /// Successful probes that close it.
    pub to_close: u32,
    /// Calls in flight at once.
    pub limit: u32,
    /// Keys held at once.
    pub keys: usize,
}

impl Settings {
    /// One probe, whose success closes; a limit that nothing meets; the subject's own wait.
    #[must_use]
    pub fn of<P: Held>(rule: Rule) -> Self {
        Self { rule, wait: P::WAIT, probes: 1, to_close: 1, limit: 1_000_000, keys: 10_000 }
    }
}

/// What a subject has no feature for, so that nobody is compared at what it never promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cannot {
    /// It is no breaker.
    Break,
    /// It has no bulkhead.
    Permit,
    /// It has no window of the last n calls.
    CallsWindow,
    /// It has no window of time.
    TimeWindow,
    /// Its rate rule has no least number of calls.
    MinCalls,
    /// Whoever asks in HALF_OPEN is admitted.
    LimitProbes,
    /// One probe at a time and no more.
    ChooseProbes,
    /// The first success closes it; or, for a limit of one probe, one success closes it.
    CountSuccesses,
    /// A call without evidence can't be told apart from a success or a cancelled call.
    Ignore,
    /// One circuit, no keys.
    Key,
    /// Keys are kept without bound.
    BoundKeys,
    /// It calls nobody when its state changes.
    Observe,
    /// Its clock can't be moved by its users' tests: scenarios really wait.
    MoveClock,
}

impl Cannot {
    /// The words of the report.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Break => "break circuits",
            Self::Permit => "limit calls in flight",
            Self::CallsWindow => "judge the last n calls",
            Self::TimeWindow => "judge a span of time",
            Self::MinCalls => "wait for a least number of calls",
            Self::LimitProbes => "limit probes",
            Self::ChooseProbes => "have more than one probe",
            Self::CountSuccesses => "ask for more than one success",
            Self::Ignore => "ignore a call",
            Self::Key => "tell keys apart",
            Self::BoundKeys => "bound its keys",
            Self::Observe => "call back on a change of state",
            Self::MoveClock => "run on a test's clock",
        }
    }
}

/// Called by the subject, on its own terms, when its state changes.
pub type Hook = Arc<dyn Fn() + Send + Sync>;

/// A subject that takes calls in one piece. This is all that a benchmark of decisions needs.
pub trait Subject: Sized + Send + Sync + 'static {
    /// The name in the reports.
    const NAME: &'static str;
    /// The crates behind it, whose releases the report names.
    const CRATES: &'static [&'static str];
    const CANNOT: &'static [Cannot];
    /// What it does that others here don't, portcullis among them.
    const BETTER: &'static str;

    fn build(settings: &Settings, hook: Option<Hook>) -> Self;

    /// Asks, and if admitted ends the call at once, by the shortest way that the subject's documentation shows. Whether it was admitted.
    fn once(&self, key: &str, ending: Ending) -> bool;

    fn can(what: Cannot) -> bool {
        !Self::CANNOT.contains(&what)
    }
}

/// Something whose drop ends a call without a word.
pub trait Killable {}

impl<T> Killable for T {}

/// A subject whose calls can be held open between asking and telling.
pub trait Held: Subject {
    /// The wait that scenarios set: short where it is really waited for, but long beside a neighbour's time slice.
    const WAIT: Duration = Duration::from_millis(80);
    /// How long a lost probe may hold its slot, by the subject's settings or its own rule.
    const LEASE: Duration = Self::WAIT;
    /// The window of time that scenarios set.
    const WINDOW: Duration = Duration::from_millis(100);
    /// How long a hung upstream is silent before an outer timeout kills its call.
    const SILENCE: Duration = Duration::from_millis(100);

    /// An admitted call. Dropping it is what a cancelled caller does.
    type Token<'a>;

    fn admit(&self, key: &str) -> Option<Self::Token<'_>>;

    fn settle<'a>(&'a self, token: Self::Token<'a>, ending: Ending);

    /// Starts a call by the way that asynchronous users take; dropping it is what an outer timeout does.
    fn hang(&self, key: &str) -> Option<Box<dyn Killable + '_>> {
        self.admit(key).map(|token| Box::new(token) as Box<dyn Killable + '_>)
    }

    /// Lets time pass on the subject's clock.
    fn advance(&self, by: Duration) {
        std::thread::sleep(by);
    }

    /// Lets a subject that judges nothing during its first window come to the end of it.
    fn ripen(&self) {}

    /// Closes an open circuit by hand, where that can be done.
    fn close_by_hand(&self) {}

    /// Lets go of keys that have been idle, by the subject's own means.
    fn tidy(&self) {}
}
