//! What makes a call policy of the settings: every field's range, inner times within outer ones, and the sums by their numbers.

use std::time::Duration;

use super::builder::CallPolicyBuilder;
use super::fallback::Fallback;
use super::policy::CallPolicy;
use crate::policy::{Policy, PolicyError};

const MILLISECOND: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_hours(24);
pub(super) const DEFAULT_BACKOFF_MAX: Duration = Duration::from_secs(1);
const MOST_ATTEMPTS: u32 = 10;
const MOST_REPLAYED: u32 = 16 << 20;

impl CallPolicyBuilder {
    /// Checks the settings and builds the policy.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] names the first field that can't work, its value, and what would be accepted; for a deadline that is too short,
    /// with the numbers that it must hold.
    pub fn build(self) -> Result<CallPolicy, PolicyError> {
        let timeout = within("timeout", self.timeout.unwrap_or(Duration::from_secs(1)), MILLISECOND, DAY)?;
        let probe_timeout =
            self.probe_timeout.map(|time| within("probe_timeout", time, MILLISECOND, timeout)).transpose()?;
        let attempts = whole("attempts", self.attempts.unwrap_or(1), 1, MOST_ATTEMPTS)?;
        let longest = Duration::from_hours(1);
        let backoff = self.backoff.unwrap_or(Duration::from_millis(50));
        let most = self.backoff_max.unwrap_or(longest).min(longest);
        let backoff = within("backoff", backoff, Duration::ZERO, most)?;
        let backoff_max = self.backoff_max.map(|time| within("backoff_max", time, backoff, longest)).transpose()?;
        let policy = CallPolicy {
            timeout,
            probe_timeout,
            deadline: self.deadline.map(|time| within("deadline", time, MILLISECOND, DAY)).transpose()?,
            attempts,
            backoff,
            backoff_max,
            retry_budget_milli: self.retry_budget.unwrap_or(Some(0.1)).map(share).transpose()?,
            retry_floor: whole("retry_floor", self.retry_floor.unwrap_or(1), 0, 1_000)?,
            retry_memory: within(
                "retry_memory",
                self.retry_memory.unwrap_or(Duration::from_secs(10)),
                Duration::from_secs(1),
                Duration::from_secs(60),
            )?,
            replay_limit: whole("replay_limit", self.replay_limit.unwrap_or(64 << 10), 0, MOST_REPLAYED)?,
            fallback: checked(self.fallback.unwrap_or_default())?,
        };
        policy.holds_together()?;
        Ok(policy)
    }
}

impl CallPolicy {
    /// Refuses a deadline that the attempts can't keep: they would be cut or left out, and nobody who reads their number would know.
    fn holds_together(&self) -> Result<(), PolicyError> {
        let worst = self.worst_case();
        if worst > DAY {
            return Err(PolicyError::new(
                "timeout",
                shown(self.timeout),
                format!("at most {:?} in all: {}", DAY, self.sum()),
            ));
        }
        match self.deadline {
            Some(deadline) if deadline < worst => {
                Err(PolicyError::new("deadline", shown(deadline), format!("at least the worst case, {}", self.sum())))
            }
            _ => Ok(()),
        }
    }

    /// The worst case in its parts.
    fn sum(&self) -> String {
        let worst = shown(self.worst_case());
        let timeouts = format!("{} x {}", self.attempts, shown(self.timeout));
        if self.attempts == 1 {
            return format!("{timeouts} = {worst}");
        }
        let backoffs: Vec<String> = (1..self.attempts).map(|number| shown(self.longest_backoff(number))).collect();
        let noun = if backoffs.len() == 1 { "backoff" } else { "backoffs" };
        format!("{timeouts} + {} {noun} of at most {} = {worst}", backoffs.len(), backoffs.join(" + "))
    }

    /// Checks the times against those of the engine's policy for the same target.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] if a probe would lose its slot while its call may still run: `probe_lease` must be longer than `probe_timeout`. Or if a call
    /// that waits for its permit as long as it may, `max_wait`, couldn't be made as often as it may before the `deadline`.
    pub fn check_with(&self, engine: &Policy) -> Result<(), PolicyError> {
        let (lease, timeout) = (engine.probe_lease(), self.probe_timeout());
        if lease > timeout {
            return self.leaves_room_for(engine);
        }
        let field = if self.probe_timeout.is_some() { "probe_timeout" } else { "timeout" };
        Err(PolicyError::new(
            field,
            shown(timeout),
            format!("shorter than the engine's probe_lease of {}", shown(lease)),
        ))
    }

    /// Calls that wait longer than the deadline leaves them end in a refusal that nobody who reads `max_wait` expects.
    fn leaves_room_for(&self, engine: &Policy) -> Result<(), PolicyError> {
        let wait = engine.max_wait();
        match self.deadline {
            Some(deadline) if engine.max_waiting() > 0 && deadline < self.worst_case() + wait => {
                let (wait, all) = (shown(wait), shown(self.worst_case() + wait));
                let expected = format!(
                    "at least the engine's max_wait and the worst case: {wait} + {} = {all}",
                    shown(self.worst_case())
                );
                Err(PolicyError::new("deadline", shown(deadline), expected))
            }
            _ => Ok(()),
        }
    }
}

fn checked(fallback: Fallback) -> Result<Fallback, PolicyError> {
    match &fallback {
        Fallback::Stale { max_age } => {
            let month = DAY * 30;
            let max_age = within("fallback", *max_age, MILLISECOND, month)?;
            Ok(Fallback::Stale { max_age })
        }
        Fallback::Value(value) => {
            if !(200..=599).contains(&value.status) {
                return Err(PolicyError::new(
                    "fallback",
                    format!("status {}", value.status),
                    "a status from 200 to 599",
                ));
            }
            if http::HeaderValue::try_from(&*value.content_type).is_err() {
                return Err(PolicyError::new("fallback", format!("{:?}", value.content_type), "a content type"));
            }
            Ok(fallback)
        }
        Fallback::Refuse | Fallback::Function => Ok(fallback),
    }
}

/// A share in thousandths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
fn share(share: f64) -> Result<u32, PolicyError> {
    let milli = (share * 1_000.0).round();
    // A share that rounds to nothing was meant to be something.
    if (0.0..=10.0).contains(&share) && (milli > 0.0 || share == 0.0) {
        Ok(milli as u32)
    } else {
        Err(PolicyError::new("retry_budget", share, "0 to 10 in steps of 0.001, or none"))
    }
}

fn whole(field: &'static str, value: u32, least: u32, most: u32) -> Result<u32, PolicyError> {
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(PolicyError::new(field, value, format!("{least} to {most}")))
    }
}

/// In whole milliseconds, rounded up.
fn within(field: &'static str, value: Duration, least: Duration, most: Duration) -> Result<Duration, PolicyError> {
    if (least..=most).contains(&value) {
        let millis = u64::try_from(value.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        Ok(Duration::from_millis(millis))
    } else {
        Err(PolicyError::new(field, shown(value), format!("{} to {}", shown(least), shown(most))))
    }
}

fn shown(duration: Duration) -> String {
    format!("{duration:?}")
}
