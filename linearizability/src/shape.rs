//! What is hammered: policies, limits and keys that provoke each rule, and the lone calls that set the scene.

use std::time::Duration;

use portcullis::{Policy, UNLIMITED, Window};

use crate::plan::{Act, Ending};

/// The settings of a target, in the specification's own terms: the engine's policy is made from these, never the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    pub limit: u32,
    /// Failures in a row that trip.
    pub streak: Option<u32>,
    pub window: Option<WindowRule>,
    pub wait_ms: u64,
    pub wait_max_ms: u64,
    pub max_probes: u32,
    pub successes_to_close: u32,
    pub lease_s: u64,
}

/// A share of failures among the last calls that trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowRule {
    pub size: usize,
    pub min_calls: usize,
    pub percent: usize,
}

/// The rules that the shapes vary.
pub const PLAIN: Rules = Rules {
    limit: UNLIMITED,
    streak: None,
    window: None,
    wait_ms: 100,
    wait_max_ms: 400,
    max_probes: 1,
    successes_to_close: 1,
    lease_s: 1,
};

impl Rules {
    /// The wait after so many failed probes in a row: doubled each time, to a maximum.
    #[must_use]
    pub fn wait(&self, reopens: u32) -> u64 {
        (self.wait_ms << reopens.min(20)).min(self.wait_max_ms)
    }

    /// The engine's policy of these rules.
    ///
    /// # Panics
    ///
    /// If the shape asks for what no policy can do.
    #[must_use]
    pub fn policy(&self) -> Policy {
        let builder = Policy::builder()
            .max_in_flight(self.limit)
            .open_wait(Duration::from_millis(self.wait_ms))
            .open_wait_max(Duration::from_millis(self.wait_max_ms))
            .backoff(2.0)
            .jitter(0.0)
            .max_probes(self.max_probes)
            .successes_to_close(self.successes_to_close)
            .probe_lease(Duration::from_secs(self.lease_s));
        let builder = match self.streak {
            Some(failures) => builder.consecutive_failures(failures),
            None => builder,
        };
        let builder = match self.window {
            Some(WindowRule { size, min_calls, percent }) => {
                let window = Window::calls(u32::try_from(size).unwrap_or(u32::MAX));
                let min_calls = u32::try_from(min_calls).unwrap_or(u32::MAX);
                builder.window(window).min_calls(min_calls).failure_rate(percent as f64 / 100.0)
            }
            None => builder.no_window(),
        };
        builder.build().unwrap_or_else(|error| panic!("a shape that no policy can have: {error}"))
    }
}

/// One way to use the engine, hammered in many histories.
#[derive(Debug)]
pub struct Shape {
    pub name: &'static str,
    /// The first is the default policy; `Act::SetPolicy` picks among them.
    pub rules: &'static [Rules],
    /// Through resolved handles, or by key.
    pub keyed: bool,
    pub keys: u8,
    /// Fewer than the keys where some must be forgotten for others.
    pub max_targets: usize,
    /// Lone calls before the threads start. Permits that they get are handed to the threads.
    pub prelude: &'static [Act],
    /// What the threads pick from; an act listed twice is picked twice as often.
    pub acts: &'static [Act],
}

impl Shape {
    /// Whether targets are forgotten, so that generations start anew.
    #[must_use]
    pub fn evicts(&self) -> bool {
        self.max_targets < usize::from(self.keys) || self.acts.contains(&Act::Sweep)
    }
}

const ADMIT: Act = Act::Admit(0);
const SUCCEED: Act = Act::Settle(Ending::Success);
const FAIL: Act = Act::Settle(Ending::Failure);
const IGNORE: Act = Act::Settle(Ending::Ignored);
const DROP: Act = Act::Settle(Ending::Dropped);
const LOOK: Act = Act::Look(0);

const fn resolved(name: &'static str, rules: &'static [Rules], prelude: &'static [Act], acts: &'static [Act]) -> Shape {
    Shape { name, rules, keyed: false, keys: 1, max_targets: 10, prelude, acts }
}

const STREAK: Rules = Rules { streak: Some(2), limit: 2, ..PLAIN };
const WINDOW: Rules = Rules { window: Some(WindowRule { size: 3, min_calls: 2, percent: 50 }), limit: 3, ..PLAIN };

/// Every shape, in the order of the report.
pub static SHAPES: &[Shape] = &[
    resolved(
        "streak, limit 1",
        &[Rules { limit: 1, ..STREAK }],
        &[],
        &[ADMIT, ADMIT, FAIL, FAIL, SUCCEED, DROP, Act::Advance(100)],
    ),
    resolved("streak, limit 2", &[STREAK], &[ADMIT, ADMIT], &[ADMIT, ADMIT, FAIL, FAIL, SUCCEED, LOOK]),
    resolved(
        "window of calls",
        &[WINDOW],
        &[ADMIT, ADMIT, ADMIT],
        &[ADMIT, ADMIT, FAIL, SUCCEED, SUCCEED, IGNORE, Act::Advance(100)],
    ),
    resolved(
        "streak and window at once",
        &[Rules { streak: Some(2), limit: UNLIMITED, ..WINDOW }],
        // In a later generation than the streak's word, which then is of the past.
        &[Act::ForceOpen(0), Act::Release(0), ADMIT, ADMIT, ADMIT],
        &[ADMIT, FAIL, FAIL, SUCCEED, SUCCEED],
    ),
    resolved(
        "one probe at the end of the wait",
        &[Rules { streak: Some(1), successes_to_close: 2, limit: 2, ..PLAIN }],
        &[ADMIT, ADMIT, FAIL, Act::Advance(100)],
        &[ADMIT, ADMIT, ADMIT, SUCCEED, SUCCEED, FAIL, IGNORE, DROP, LOOK, Act::Advance(1_000)],
    ),
    resolved(
        "two probes, limit 2",
        &[Rules { streak: Some(1), max_probes: 2, successes_to_close: 2, limit: 2, ..PLAIN }],
        &[ADMIT, FAIL, Act::Advance(100)],
        &[ADMIT, ADMIT, ADMIT, SUCCEED, SUCCEED, FAIL, DROP, Act::Advance(200), Act::Advance(2_000)],
    ),
    resolved(
        "forced by hand",
        &[Rules { streak: Some(1), ..STREAK }],
        &[ADMIT, ADMIT],
        &[ADMIT, ADMIT, FAIL, SUCCEED, LOOK, Act::ForceOpen(0), Act::Disable(0), Act::Release(0), Act::Release(0)],
    ),
    resolved(
        "limits that change",
        &[Rules { limit: 2, ..STREAK }],
        &[ADMIT],
        &[ADMIT, ADMIT, ADMIT, SUCCEED, SUCCEED, FAIL, Act::SetLimit(0, 0), Act::SetLimit(0, 1), Act::SetLimit(0, 3)],
    ),
    resolved(
        "limits with and without stashes",
        &[PLAIN],
        &[ADMIT, ADMIT],
        &[ADMIT, ADMIT, ADMIT, SUCCEED, SUCCEED, Act::SetLimit(0, 1), Act::SetLimit(0, 2), Act::SetLimit(0, UNLIMITED)],
    ),
    Shape {
        name: "two keys",
        rules: &[STREAK],
        keyed: true,
        keys: 2,
        max_targets: 10,
        prelude: &[],
        acts: &[
            ADMIT,
            Act::Admit(1),
            FAIL,
            FAIL,
            SUCCEED,
            Act::ForceOpen(1),
            Act::Release(1),
            Act::SetLimit(0, 1),
            Act::Sweep,
        ],
    },
    Shape {
        name: "more keys than targets",
        rules: &[STREAK],
        keyed: true,
        keys: 3,
        max_targets: 2,
        prelude: &[ADMIT, SUCCEED, Act::Admit(1), SUCCEED],
        acts: &[
            ADMIT,
            Act::Admit(1),
            Act::Admit(2),
            Act::Admit(2),
            FAIL,
            SUCCEED,
            SUCCEED,
            DROP,
            Act::ForceOpen(2),
            Act::Release(2),
            Act::Sweep,
            Act::Sweep,
        ],
    },
    Shape {
        name: "policies that change",
        rules: &[STREAK, Rules { streak: Some(1), limit: 1, ..STREAK }],
        keyed: true,
        keys: 1,
        max_targets: 10,
        prelude: &[ADMIT],
        acts: &[ADMIT, ADMIT, FAIL, FAIL, SUCCEED, Act::SetPolicy(0, 0), Act::SetPolicy(0, 1)],
    },
];
