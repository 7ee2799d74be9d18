//! What makes a policy of the settings: every field's range, and what follows from what.

use std::fmt::Display;
use std::time::Duration;

use super::{BASIS_POINTS, Policy, PolicyBuilder, PolicyError, Stall, UNLIMITED};
use crate::time::saturating_nanos;
use crate::window::Geometry;

const YEAR: Duration = Duration::from_hours(365 * 24);
const DEFAULT_WAIT: Duration = Duration::from_secs(5);
const DEFAULT_WAIT_MAX_MS: u64 = 60_000;
const DEFAULT_LEASE: Duration = Duration::from_secs(10);
const DEFAULT_MAX_WAIT: Duration = Duration::from_millis(100);
const MOST_WAIT: Duration = Duration::from_hours(1);
/// What the gate's five-bit fields hold.
const MAX_PROBES: u32 = 31;
/// Ticks of an eighth of it are wide enough for their counts; see `stall::bucket`.
const LEAST_STALL: Duration = Duration::from_millis(50);
const LONGEST_STALL: Duration = Duration::from_hours(24);
const RAMP_FAILURES: u32 = 3;

impl PolicyBuilder {
    /// Leaves out what `policy`, which these settings build, has by default: another setting may then move it.
    pub(super) fn without_defaults_of(self, policy: &Policy) -> Self {
        let lean: [fn(&mut Self); 7] = [
            |builder| builder.min_calls = None,
            |builder| builder.failure_rate = None,
            |builder| builder.slow_rate = None,
            |builder| builder.open_wait_max = None,
            |builder| builder.probe_lease = None,
            |builder| builder.sheddable_share = None,
            |builder| builder.max_wait = None,
        ];
        lean.into_iter().fold(self, |builder, leave_out| {
            let mut without = builder.clone();
            leave_out(&mut without);
            if without.clone().build().as_ref() == Ok(policy) { without } else { builder }
        })
    }

    /// Checks the settings and builds the policy.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] names the first field that can't work, its value, and what would be accepted.
    pub fn build(self) -> Result<Policy, PolicyError> {
        let limit = match self.max_in_flight {
            None | Some(UNLIMITED) => UNLIMITED,
            Some(calls) => whole("max_in_flight", calls, 1, UNLIMITED - 1)?,
        };
        let (normal_share_bp, sheddable_share_bp) = self.shares()?;
        let (max_waiting, max_wait_ms) = self.queue()?;
        let consecutive_failures =
            self.consecutive_failures.map(|n| whole("consecutive_failures", n, 1, u32::MAX)).transpose()?;
        let geometry = self.geometry()?;
        let most_calls = geometry.map_or(0, Geometry::most_calls);
        let min_calls = match self.min_calls {
            Some(n) => whole("min_calls", n, 1, needs_window(geometry, "min_calls", n)?)?,
            None => most_calls.min(10),
        };
        let failure_rate_bp = match self.failure_rate {
            Some(Some(share)) => {
                needs_window(geometry, "failure_rate", share)?;
                Some(rate("failure_rate", share)?)
            }
            Some(None) => None,
            None => geometry.map(|_| 5_000),
        };
        let failures = match self.failures {
            Some(n) => Some(whole("failures", n, 1, needs_window(geometry, "failures", n)?)?),
            None => None,
        };
        let (slow_call_nanos, slow_rate_bp) = self.slow(geometry)?;
        let stall = self.stall(limit)?;
        let jitter = self.jitter.unwrap_or(0.1);
        if !(0.0..=1.0).contains(&jitter) {
            return Err(PolicyError::new("jitter", jitter, "0 to 1"));
        }
        let jitter_bp = parts(jitter, BASIS_POINTS);
        let (open_wait_ms, backoff_milli, open_wait_max_ms) = self.waits(jitter_bp)?;
        let default_lease = DEFAULT_LEASE.max(Duration::from_millis(open_wait_ms));
        let lease = within("probe_lease", self.probe_lease.unwrap_or(default_lease), Duration::from_secs(1), YEAR)?;
        let (ramp_ms, ramp_failures) = self.checked_ramp(limit)?;
        Ok(Policy {
            limit,
            normal_share_bp,
            sheddable_share_bp,
            max_waiting,
            max_wait_ms,
            consecutive_failures,
            geometry,
            min_calls,
            failure_rate_bp,
            failures,
            slow_call_nanos,
            slow_rate_bp,
            stall,
            open_wait_ms,
            backoff_milli,
            open_wait_max_ms,
            jitter_bp,
            max_probes: whole("max_probes", self.max_probes.unwrap_or(1), 1, MAX_PROBES)?,
            successes_to_close: whole("successes_to_close", self.successes_to_close.unwrap_or(3), 1, MAX_PROBES)?,
            probe_lease_s: lease.as_secs() + u64::from(lease.subsec_nanos() > 0),
            on_abandon: self.on_abandon,
            ignored_probes: whole("ignored_probes", self.ignored_probes.unwrap_or(10), 1, 1_000_000)?,
            adaptive: self.adaptive.flatten().map(|adaptive| adaptive.rules(limit)).transpose()?.map(Box::new),
            ramp_ms,
            ramp_failures,
        })
    }

    fn shares(&self) -> Result<(u16, u16), PolicyError> {
        let share = |field, share: Option<f64>, default| match share {
            Some(share) => rate(field, share).map(|basis_points| basis_points as u16),
            None => Ok(default),
        };
        let normal = share("normal_share", self.normal_share, 10_000)?;
        let sheddable = share("sheddable_share", self.sheddable_share, normal)?;
        if sheddable > normal {
            let expected = format!("at most normal_share, which is {}", f64::from(normal) / 10_000.0);
            return Err(PolicyError::new("sheddable_share", f64::from(sheddable) / 10_000.0, expected));
        }
        Ok((normal, sheddable))
    }

    /// The most calls that may wait, and for how many milliseconds.
    fn queue(&self) -> Result<(u16, u32), PolicyError> {
        let calls = whole("max_waiting", self.max_waiting.unwrap_or(0), 0, u16::MAX.into())?;
        let wait =
            self.max_wait.map(|wait| within("max_wait", wait, Duration::from_millis(1), MOST_WAIT)).transpose()?;
        match wait {
            Some(wait) if calls == 0 => {
                Err(PolicyError::new("max_wait", format!("{wait:?}"), "left out, or set together with max_waiting"))
            }
            None if calls == 0 => Ok((0, 0)),
            // Both are within their ranges.
            wait => Ok((calls as u16, millis(wait.unwrap_or(DEFAULT_MAX_WAIT)) as u32)),
        }
    }

    /// The ramp in milliseconds, and the failures that end it.
    fn checked_ramp(&self, limit: u32) -> Result<(Option<u64>, u32), PolicyError> {
        let Some(ramp) = self.ramp else {
            return match self.ramp_failures {
                Some(failures) => {
                    Err(PolicyError::new("ramp_failures", failures, "left out, or set together with ramp"))
                }
                None => Ok((None, RAMP_FAILURES)),
            };
        };
        let length = within("ramp", ramp, Duration::from_millis(1), Duration::from_hours(24))?;
        if limit == UNLIMITED {
            let expected = "left out, or set together with max_in_flight: there is no limit to ramp to";
            return Err(PolicyError::new("ramp", format!("{ramp:?}"), expected));
        }
        let failures = whole("ramp_failures", self.ramp_failures.unwrap_or(RAMP_FAILURES), 1, 1_000)?;
        Ok((Some(millis(length)), failures))
    }

    fn geometry(&self) -> Result<Option<Geometry>, PolicyError> {
        match &self.window {
            None => Ok(Some(Geometry::Calls(100))),
            Some(None) => Ok(None),
            Some(Some(window)) => window.geometry().map(Some),
        }
    }

    fn slow(&self, geometry: Option<Geometry>) -> Result<(Option<u64>, Option<u32>), PolicyError> {
        let Some(slow_call) = self.slow_call else {
            return match self.slow_rate {
                Some(share) => Err(PolicyError::new("slow_rate", share, "left out, or set together with slow_call")),
                None => Ok((None, None)),
            };
        };
        if slow_call.is_zero() {
            return Err(PolicyError::new("slow_call", "0s", "above 0"));
        }
        let slow_rate = match self.slow_rate {
            Some(share) => {
                needs_window(geometry, "slow_rate", share)?;
                Some(rate("slow_rate", share)?)
            }
            None => geometry.map(|_| parts(1.0, BASIS_POINTS)),
        };
        Ok((Some(saturating_nanos(slow_call)), slow_rate))
    }

    fn stall(&self, limit: u32) -> Result<Option<Stall>, PolicyError> {
        let calls = match self.stalled_calls {
            Some(calls) => Some(whole("stalled_calls", calls, 1, limit.min(UNLIMITED - 1))?),
            None => None,
        };
        let share_bp = match self.stalled_share {
            Some(share) if limit == UNLIMITED => {
                return Err(PolicyError::new("stalled_share", share, "left out, or set together with max_in_flight"));
            }
            Some(share) => Some(rate("stalled_share", share)?),
            None => None,
        };
        let Some(after) = self.stall_after else {
            let alone = |field, value: &dyn Display| {
                Err(PolicyError::new(field, value, "left out, or set together with stall_after"))
            };
            return match (self.stalled_calls, self.stalled_share) {
                (Some(calls), _) => alone("stalled_calls", &calls),
                (None, Some(share)) => alone("stalled_share", &share),
                (None, None) => Ok(None),
            };
        };
        let after = within("stall_after", after, LEAST_STALL, LONGEST_STALL)?;
        if calls.is_none() && share_bp.is_none() {
            let expected = "left out, or set together with stalled_calls or stalled_share";
            return Err(PolicyError::new("stall_after", format!("{after:?}"), expected));
        }
        Ok(Some(Stall { after_nanos: saturating_nanos(after), calls, share_bp }))
    }

    /// Open wait and its maximum in milliseconds, with the factor between them in thousandths.
    fn waits(&self, jitter_bp: u32) -> Result<(u64, u32, u64), PolicyError> {
        let tick = Duration::from_millis(1);
        let open_wait = millis(within("open_wait", self.open_wait.unwrap_or(DEFAULT_WAIT), tick, YEAR)?);
        let backoff = self.backoff.unwrap_or(2.0);
        if !(1.0..=1_000.0).contains(&backoff) {
            return Err(PolicyError::new("backoff", backoff, "1 to 1000"));
        }
        let backoff_milli = parts(backoff, 1_000);
        let with_jitter = |wait: u64| wait.saturating_add(wait.saturating_mul(jitter_bp.into()) / BASIS_POINTS);
        let reach = with_jitter(reach(open_wait, backoff_milli));
        let most = match self.open_wait_max {
            // Room for the first wait's jitter, or a constant wait would only ever be shortened.
            None => with_jitter(open_wait).max(reach.min(DEFAULT_WAIT_MAX_MS)).min(millis(YEAR)),
            Some(most) => {
                let most = millis(within("open_wait_max", most, Duration::from_millis(open_wait), YEAR)?);
                if most > reach {
                    let value = format!("{backoff} with open_wait_max {:?}", Duration::from_millis(most));
                    let can = Duration::from_millis(reach);
                    let expected =
                        format!("large enough to reach it in 31 reopenings, or open_wait_max at most {can:?}");
                    return Err(PolicyError::new("backoff", value, expected));
                }
                most
            }
        };
        Ok((open_wait, backoff_milli, most))
    }
}

/// The longest wait, in milliseconds, that 31 steps of the factor lead to.
fn reach(open_wait: u64, backoff_milli: u32) -> u64 {
    let mut micros = u128::from(open_wait) * 1_000;
    for _ in 0..31 {
        micros = (micros * u128::from(backoff_milli) / 1_000).min(u128::from(u64::MAX));
    }
    u64::try_from(micros / 1_000).unwrap_or(u64::MAX)
}

fn whole(field: &'static str, value: u32, least: u32, most: u32) -> Result<u32, PolicyError> {
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(PolicyError::new(field, value, format!("{least} to {most}")))
    }
}

/// The most calls that the window can hold, for a setting that is judged on one.
fn needs_window(geometry: Option<Geometry>, field: &'static str, value: impl Display) -> Result<u32, PolicyError> {
    geometry.map(Geometry::most_calls).ok_or_else(|| PolicyError::new(field, value, "left out: there is no window"))
}

fn rate(field: &'static str, share: f64) -> Result<u32, PolicyError> {
    let basis_points = parts(share, BASIS_POINTS);
    if share > 0.0 && share <= 1.0 && basis_points > 0 {
        Ok(basis_points)
    } else {
        Err(PolicyError::new(field, share, "above 0 and at most 1, in steps of 0.0001"))
    }
}

/// A checked share or factor in whole parts of one, rounded to the nearest.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate; ranges are checked")]
fn parts(value: f64, of_one: u64) -> u32 {
    (value * of_one as f64).round() as u32
}

fn within(field: &'static str, value: Duration, least: Duration, most: Duration) -> Result<Duration, PolicyError> {
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(PolicyError::new(field, format!("{value:?}"), format!("{least:?} to {most:?}")))
    }
}

/// Whole milliseconds, rounded up; at most a year, so it fits.
fn millis(duration: Duration) -> u64 {
    saturating_nanos(duration).div_ceil(1_000_000)
}
