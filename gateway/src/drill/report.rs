//! What callers got in a drill, by the gateway's own counts before and after.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// What a drill showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    target: String,
    lasted: Duration,
    is_cut: bool,
    is_foreign: bool,
    /// The kind of fallback that is configured; none if callers are meant to be refused.
    fallback: Option<String>,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Refusals by the engine: those that called.
    turned_away: u64,
    value: u64,
    stale: u64,
    /// Fallbacks that had no answer.
    fallback_failed: u64,
    /// Whole calls that failed.
    failed: u64,
    /// Among them those that were refused.
    rejected: u64,
}

/// Whether a target is as a drill keeps it.
pub(super) fn is_drilled(target: &Value) -> bool {
    target["state"] == "FORCED_OPEN" && target.get("drill_ms").is_some()
}

/// Whether a target that was drilled is kept by somebody else, or by its own failures. One that is CLOSED was released, and may be again.
pub(super) fn is_foreign(target: &Value) -> bool {
    !is_drilled(target) && target["state"] != "CLOSED"
}

impl Counts {
    fn of(target: &Value) -> Self {
        let count = |value: &Value| value.as_u64().unwrap_or(0);
        let calls = &target["calls"];
        Self {
            turned_away: count(&target["refusals"]["forced"]),
            value: count(&calls["fallback_value"]),
            stale: count(&calls["fallback_stale"]),
            fallback_failed: count(&calls["fallback_failed"]),
            failed: count(&calls["failed"]),
            rejected: count(&calls["rejected"]),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            turned_away: self.turned_away.saturating_sub(before.turned_away),
            value: self.value.saturating_sub(before.value),
            stale: self.stale.saturating_sub(before.stale),
            fallback_failed: self.fallback_failed.saturating_sub(before.fallback_failed),
            failed: self.failed.saturating_sub(before.failed),
            rejected: self.rejected.saturating_sub(before.rejected),
        }
    }

    /// Those that called, while the target was open or since before.
    fn callers(self) -> u64 {
        self.turned_away + self.other()
    }

    /// Calls that had begun before, and failed for another reason.
    fn other(self) -> u64 {
        self.failed.saturating_sub(self.rejected)
    }

    /// Callers that got an error.
    fn errors(self) -> u64 {
        self.callers().saturating_sub(self.value + self.stale)
    }
}

impl Report {
    pub(super) fn new(
        target: &str,
        lasted: Duration,
        is_cut: bool,
        is_foreign: bool,
        before: &Value,
        after: &Value,
    ) -> Self {
        let fallback = &before["call_policy"]["fallback"];
        let fallback = match fallback {
            Value::Object(kind) => kind.keys().next().cloned(),
            Value::String(word) if word != "refuse" => Some(word.clone()),
            _ => None,
        };
        let counts = Counts::of(after).since(Counts::of(before));
        Self { target: target.to_owned(), lasted, is_cut, is_foreign, fallback, counts }
    }

    /// Whether it showed that callers get what they are meant to get.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        !self.is_foreign && self.counts.turned_away > 0 && (self.fallback.is_none() || self.counts.errors() == 0)
    }

    fn verdict(&self) -> String {
        let Counts { turned_away, .. } = self.counts;
        let errors = self.counts.errors();
        if turned_away == 0 {
            return "failed: nobody called, so nothing was shown".to_owned();
        }
        if self.is_foreign {
            return "failed: somebody else ended the drill".to_owned();
        }
        match &self.fallback {
            None => "passed: callers are refused, as configured; there is no fallback".to_owned(),
            Some(kind) if errors == 0 => format!("passed: every caller got the fallback ({kind})"),
            Some(kind) => format!("failed: {errors} callers got an error, though there is a fallback ({kind})"),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { value, stale, fallback_failed, .. } = self.counts;
        let early = if self.is_cut { ", ended early" } else { "" };
        writeln!(f, "{} was open for {:.1} s{early}", self.target, self.lasted.as_secs_f64())?;
        writeln!(f, "callers                {:8}", self.counts.callers())?;
        writeln!(f, "  got a fallback value {value:8}")?;
        writeln!(f, "  got a stale answer   {stale:8}")?;
        writeln!(f, "  got an error         {:8}", self.counts.errors())?;
        if fallback_failed > 0 {
            writeln!(f, "    since the fallback failed, too: {fallback_failed}")?;
        }
        if self.counts.other() > 0 {
            writeln!(f, "calls from before that failed otherwise: {}", self.counts.other())?;
        }
        writeln!(f, "{}", self.verdict())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn target(forced: u64, value: u64, failed: u64, fallback: &Value) -> Value {
        json!({
            "refusals": { "forced": forced },
            "calls": { "fallback_value": value, "failed": failed, "rejected": failed },
            "call_policy": { "fallback": fallback },
        })
    }

    fn report(fallback: &Value, forced: u64, value: u64) -> Report {
        let (before, after) = (target(7, 3, 7, fallback), target(7 + forced, 3 + value, 7 + forced, fallback));
        Report::new("t", Duration::from_secs(2), false, false, &before, &after)
    }

    #[test]
    fn a_drill_passes_if_everybody_got_what_is_configured() {
        let value = json!({ "value": { "status": 200 } });
        assert!(report(&value, 5, 5).is_passed());
        let failed = report(&value, 5, 3);
        assert!(!failed.is_passed() && failed.to_string().contains("failed: 2 callers got an error"), "{failed}");
        assert!(report(&json!("refuse"), 5, 0).is_passed());
        for fallback in [value, json!("refuse")] {
            let nobody = report(&fallback, 0, 0);
            assert!(!nobody.is_passed() && nobody.to_string().contains("nothing was shown"), "{nobody}");
        }
    }
}
