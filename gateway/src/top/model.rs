//! What is known of the gateway: its targets as they were last told, and what can be told from two tellings.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, VecDeque};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::feed::Heard;

/// Transitions that are kept to be shown.
const TOLD: usize = 200;
/// Tellings that the small plots go back.
const HISTORY: usize = 24;

/// All that is known.
#[derive(Debug, Default)]
pub(super) struct Model {
    pub(super) targets: BTreeMap<String, Target>,
    /// The newest last.
    pub(super) transitions: VecDeque<Moved>,
    pub(super) health: Health,
    pub(super) version: String,
    /// The gateway's clock when it last told something, in milliseconds since 1970.
    pub(super) now_ms: u64,
    /// Why nothing is heard any more; none while something is.
    pub(super) lost: Option<String>,
}

/// A target, and how it has been doing.
#[derive(Debug, Default)]
pub(super) struct Target {
    // As told: a change names only the fields that changed.
    fields: Map<String, Value>,
    pub(super) seen: Seen,
    pub(super) pace: Pace,
    /// Calls that ended per second, and those that failed, of the last tellings.
    pub(super) history: VecDeque<(f64, f64)>,
}

/// What is shown of a target.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Seen {
    pub(super) configured: bool,
    pub(super) state: String,
    pub(super) since_ms: Option<u64>,
    pub(super) cause: Option<String>,
    pub(super) reopen_at_ms: Option<u64>,
    pub(super) drill_until_ms: Option<u64>,
    pub(super) in_flight: u32,
    pub(super) limit: Option<u32>,
    pub(super) waiting: u32,
    pub(super) totals: Totals,
    pub(super) refusals: BTreeMap<String, u64>,
    pub(super) latency: Option<Latency>,
}

/// Counted since the gateway began.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Totals {
    pub(super) admitted: u64,
    pub(super) success: u64,
    pub(super) failure: u64,
}

/// Of the last seconds.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Latency {
    pub(super) p50_ms: Option<f64>,
    pub(super) p99_ms: Option<f64>,
}

/// Per second, between the last two tellings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Pace {
    pub(super) admitted: f64,
    pub(super) failed: f64,
    pub(super) ended: f64,
    pub(super) refused: f64,
}

impl Pace {
    /// The share of calls that failed, if any ended.
    pub(super) fn failure_share(&self) -> Option<f64> {
        (self.ended > 0.0).then(|| self.failed / self.ended)
    }
}

/// The process as a whole.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Health {
    pub(super) status: String,
    pub(super) in_flight: u64,
    pub(super) max_concurrent: u64,
}

/// A transition.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Moved {
    pub(super) target: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) cause: String,
    pub(super) wall: String,
}

/// A telling, of everything or of what changed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Telling {
    now_ms: u64,
    version: Option<String>,
    health: Health,
    targets: Vec<Map<String, Value>>,
    gone: Vec<String>,
    transitions: Vec<Moved>,
}

impl Model {
    /// Takes note of what was heard.
    pub(super) fn hear(&mut self, heard: Heard) {
        let (data, is_whole) = match heard {
            Heard::State(data) => (data, true),
            Heard::Change(data) => (data, false),
            Heard::Lost(why) => {
                self.lost = Some(why);
                return;
            }
        };
        let Ok(telling) = serde_json::from_value::<Telling>(data) else {
            self.lost = Some("what it tells isn't understood: is it of another version?".to_owned());
            return;
        };
        let seconds = telling.now_ms.saturating_sub(self.now_ms) as f64 / 1e3;
        if is_whole {
            // Counters may have begun again, and time has passed unseen.
            *self = Self { version: telling.version.unwrap_or_default(), ..Self::default() };
        }
        self.lost = None;
        (self.now_ms, self.health) = (telling.now_ms, telling.health);
        for name in telling.gone {
            self.targets.remove(&name);
        }
        let mut before: HashMap<String, Seen> = HashMap::new();
        for mut fields in telling.targets {
            let Some(Value::String(name)) = fields.remove("name") else { continue };
            let is_new = !self.targets.contains_key(&name);
            let target = self.targets.entry(name.clone()).or_default();
            target.fields.extend(fields);
            let seen = Seen::deserialize(Value::Object(target.fields.clone())).unwrap_or_default();
            let was = std::mem::replace(&mut target.seen, seen);
            // What a new one had counted before it was told of says nothing about its pace.
            if !is_new {
                before.insert(name, was);
            }
        }
        if !is_whole {
            for (name, target) in &mut self.targets {
                target.paced(before.get(name), seconds);
            }
        }
        self.transitions.extend(telling.transitions);
        let surplus = self.transitions.len().saturating_sub(TOLD);
        self.transitions.drain(..surplus);
    }

    /// The names of the targets that match, in order.
    pub(super) fn names(&self, search: &str, sort: Sort) -> Vec<&str> {
        let search = search.to_lowercase();
        let matches = |(name, target): &(&String, &Target)| {
            search.is_empty() || name.to_lowercase().contains(&search) || target.seen.state.to_lowercase() == search
        };
        let mut all: Vec<_> = self.targets.iter().filter(matches).collect();
        all.sort_by(|a, b| sort.compare(a.1, b.1).then_with(|| a.0.cmp(b.0)));
        all.into_iter().map(|(name, _)| name.as_str()).collect()
    }
}

impl Target {
    /// Tells the pace by what was seen before; by nothing if it hasn't changed.
    fn paced(&mut self, before: Option<&Seen>, seconds: f64) {
        let (was, is) = (before.unwrap_or(&self.seen), &self.seen);
        let per_second = |was: u64, is: u64| if seconds > 0.0 { is.saturating_sub(was) as f64 / seconds } else { 0.0 };
        let refused = |seen: &Seen| seen.refusals.values().sum::<u64>();
        let ended = |seen: &Seen| seen.totals.success + seen.totals.failure;
        self.pace = Pace {
            admitted: per_second(was.totals.admitted, is.totals.admitted),
            failed: per_second(was.totals.failure, is.totals.failure),
            ended: per_second(ended(was), ended(is)),
            refused: per_second(refused(was), refused(is)),
        };
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back((self.pace.ended, self.pace.failed));
    }

    /// How much it needs to be looked at: the less, the more.
    fn rank(&self) -> u8 {
        match self.seen.state.as_str() {
            _ if !self.seen.configured => 5,
            "OPEN" => 0,
            "FORCED_OPEN" => 1,
            "HALF_OPEN" => 2,
            "DISABLED" => 3,
            _ => 4,
        }
    }
}

/// The orders of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    #[default]
    Worst,
    Name,
    Rate,
    Failures,
    Slowest,
    InFlight,
}

impl Sort {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Worst => "worst first",
            Self::Name => "by name",
            Self::Rate => "by rate",
            Self::Failures => "by failures",
            Self::Slowest => "by p99",
            Self::InFlight => "by calls in flight",
        }
    }

    pub(super) fn next(self) -> Self {
        match self {
            Self::Worst => Self::Name,
            Self::Name => Self::Rate,
            Self::Rate => Self::Failures,
            Self::Failures => Self::Slowest,
            Self::Slowest => Self::InFlight,
            Self::InFlight => Self::Worst,
        }
    }

    fn compare(self, a: &Target, b: &Target) -> Ordering {
        let most = |of: fn(&Target) -> f64| of(b).total_cmp(&of(a));
        match self {
            Self::Worst => {
                let trouble = |target: &Target| target.pace.failed + target.pace.refused;
                a.rank().cmp(&b.rank()).then_with(|| most(trouble))
            }
            Self::Name => Ordering::Equal,
            Self::Rate => most(|target| target.pace.admitted),
            Self::Failures => most(|target| target.pace.failure_share().unwrap_or(-1.0)),
            Self::Slowest => most(|target| target.seen.latency.and_then(|latency| latency.p99_ms).unwrap_or(-1.0)),
            Self::InFlight => most(|target| f64::from(target.seen.in_flight)),
        }
    }
}
