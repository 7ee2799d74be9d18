//! What is timed: a path of decisions, and the keys that are asked for.

use std::time::Duration;

use super::keys::Keys;
use crate::subject::{Rule, Settings};

/// The limit that is reached.
const FULL: u32 = 10;

/// What a breaker judges by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Failures in a row.
    Streak,
    /// The last 100 calls.
    Calls,
    /// The last 10 seconds.
    Time,
}

impl Basis {
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Streak => "streak",
            Self::Calls => "calls",
            Self::Time => "time",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Streak => "failures in a row",
            Self::Calls => "last 100 calls",
            Self::Time => "last 10 s",
        }
    }
}

/// What is asked, and how it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// What decisions are measured against.
    Floor,
    /// Admitted, and settled as a success.
    Healthy(Basis),
    /// Admitted, and one in so many settled as a failure.
    Failing(Basis, u32),
    /// Refused: the circuit is open, its wait far from over.
    Open,
    /// Refused: every permit is out.
    Full,
    /// Refused: the wait is over, and the one probe is in flight.
    Probing,
}

impl Path {
    /// The name in the JSON, and what `--only` looks into.
    #[must_use]
    pub fn id(self) -> String {
        match self {
            Self::Floor => "floor".to_owned(),
            Self::Healthy(basis) => format!("admit/{}", basis.id()),
            Self::Failing(basis, one_in) => format!("failures/{}/{}%", basis.id(), percent(one_in)),
            Self::Open => "refused/open".to_owned(),
            Self::Full => "refused/full".to_owned(),
            Self::Probing => "refused/probing".to_owned(),
        }
    }

    /// The head of its group in the table.
    #[must_use]
    pub fn title(self) -> String {
        match self {
            Self::Floor => "what decisions are measured against".to_owned(),
            Self::Healthy(basis) => format!("admit + success, {}", basis.title()),
            Self::Failing(basis, one_in) => {
                format!("admit + settle, {}, {} % failures", basis.title(), percent(one_in))
            }
            Self::Open => "refused while OPEN".to_owned(),
            Self::Full => "refused while full".to_owned(),
            Self::Probing => "refused while a probe is in flight".to_owned(),
        }
    }

    /// What the breakers that can choose judge by.
    #[must_use]
    pub fn basis(self) -> Basis {
        match self {
            Self::Healthy(basis) | Self::Failing(basis, _) => basis,
            _ => Basis::Calls,
        }
    }

    /// Whether calls are admitted, all of them; else none is.
    #[must_use]
    pub fn admits(self) -> bool {
        matches!(self, Self::Floor | Self::Healthy(_) | Self::Failing(..))
    }
}

fn percent(one_in: u32) -> f64 {
    100.0 / f64::from(one_in)
}

/// One group of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub path: Path,
    pub keys: Keys,
}

impl Case {
    #[must_use]
    pub fn title(self) -> String {
        match self.path {
            Path::Floor => self.path.title(),
            _ => format!("{}; {}", self.path.title(), self.keys.title()),
        }
    }

    /// How many calls are held open meanwhile, by all threads together.
    #[must_use]
    pub fn held(self) -> u64 {
        match self.path {
            Path::Full => u64::from(FULL),
            Path::Probing => 1,
            _ => 0,
        }
    }

    /// What subjects are set to: nothing trips by the share of failures that is timed, half of the calls would.
    #[must_use]
    pub fn settings(self, basis: Basis) -> Settings {
        let window = match self.path {
            // Some judge nothing before their window has passed once.
            Path::Open => Duration::from_secs(1),
            _ => Duration::from_secs(10),
        };
        let rule = match basis {
            Basis::Streak => Rule::Any,
            Basis::Calls => Rule::Calls { window: 100, min_calls: 10 },
            Basis::Time => Rule::Time { window, min_calls: 10 },
        };
        let wait = match self.path {
            // Longer than a sample: some take a probe for lost after another wait.
            Path::Probing => Duration::from_millis(100),
            _ => Duration::from_secs(3_600),
        };
        let limit = if self.path == Path::Full { FULL } else { 1_000 };
        Settings { rule, wait, probes: 1, to_close: 1, limit, keys: self.keys.count() }
    }
}

/// All groups, in the order of the table.
#[must_use]
pub fn all() -> Vec<Case> {
    let healthy = Path::Healthy(Basis::Calls);
    let mut paths = vec![Path::Healthy(Basis::Streak), Path::Healthy(Basis::Time)];
    for basis in [Basis::Calls, Basis::Time] {
        paths.extend([1_000, 100, 10].map(|one_in| Path::Failing(basis, one_in)));
    }
    paths.extend([Path::Open, Path::Full, Path::Probing]);
    let hot = |path| Case { path, keys: Keys::Hot };
    let mut cases = vec![hot(Path::Floor), hot(healthy), Case { path: healthy, keys: Keys::Own }];
    cases.extend(paths.into_iter().map(hot));
    // The million comes last: what it leaves in the caches and in the heap is nobody else's.
    cases.extend([Keys::Zipf, Keys::Uniform, Keys::Million].map(|keys| Case { path: healthy, keys }));
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_name_cases_apart() {
        let mut ids: Vec<_> = all().iter().map(|case| (case.path.id(), case.keys.id())).collect();
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count);
        assert!(ids.iter().any(|(path, _)| path == "failures/calls/0.1%"), "{ids:?}");
    }
}
