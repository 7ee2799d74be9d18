//! The builder: every setting optional, every combination checked at once in `build`.

use std::time::Duration;

use super::{OnAbandon, UNLIMITED};
use crate::adaptive::Adaptive;
use crate::window::Window;

/// Collects the settings of a [`Policy`](super::Policy); see there for defaults and ranges.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[must_use]
pub struct PolicyBuilder {
    #[cfg_attr(
        feature = "serde",
        serde(
            deserialize_with = "super::file::named::max_in_flight",
            serialize_with = "super::file::limit::serialize",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub(super) max_in_flight: Option<u32>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::named::normal_share", skip_serializing_if = "Option::is_none")
    )]
    pub(super) normal_share: Option<f64>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::named::sheddable_share", skip_serializing_if = "Option::is_none")
    )]
    pub(super) sheddable_share: Option<f64>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::named::max_waiting", skip_serializing_if = "Option::is_none")
    )]
    pub(super) max_waiting: Option<u32>,
    #[cfg_attr(
        feature = "serde",
        serde(
            deserialize_with = "super::file::named::max_wait",
            serialize_with = "super::file::duration::serialize",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub(super) max_wait: Option<Duration>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::named::consecutive_failures", skip_serializing_if = "Option::is_none")
    )]
    pub(super) consecutive_failures: Option<u32>,
    #[cfg_attr(
        feature = "serde",
        serde(
            deserialize_with = "super::file::named::window",
            serialize_with = "super::file::window::serialize",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub(super) window: Option<Option<Window>>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::named::min_calls", skip_serializing_if = "Option::is_none")
    )]
    pub(super) min_calls: Option<u32>,
    #[cfg_attr(
        feature = "serde",
        serde(
            deserialize_with = "super::file::named::failure_rate",
            serialize_with = "super::file::rate::serialize",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub(super) failure_rate: Option<Option<f64>>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::named::failures", skip_serializing_if = "Option::is_none")
    )]
    pub(super) failures: Option<u32>,
    #[cfg_attr(
        feature = "serde",
        serde(
            deserialize_with = "super::file::named::slow_call",
            serialize_with = "super::file::duration::serialize",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub(super) slow_call: Option<Duration>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::named::slow_rate", skip_serializing_if = "Option::is_none")
    )]
    pub(super) slow_rate: Option<f64>,
    #[cfg_attr(
        feature = "serde",
        serde(
            deserialize_with = "super::file::named::stall_after",
            serialize_with = "super::file::duration::serialize",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub(super) stall_after: Option<Duration>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::named::stalled_calls", skip_serializing_if = "Option::is_none")
    )]
    pub(super) stalled_calls: Option<u32>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::named::stalled_share", skip_serializing_if = "Option::is_none")
    )]
    pub(super) stalled_share: Option<f64>,
    #[cfg_attr(
        feature = "serde",
        serde(
            deserialize_with = "super::file::named::open_wait",
            serialize_with = "super::file::duration::serialize",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub(super) open_wait: Option<Duration>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::named::backoff", skip_serializing_if = "Option::is_none")
    )]
    pub(super) backoff: Option<f64>,
    #[cfg_attr(
        feature = "serde",
        serde(
            deserialize_with = "super::file::named::open_wait_max",
            serialize_with = "super::file::duration::serialize",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub(super) open_wait_max: Option<Duration>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::named::jitter", skip_serializing_if = "Option::is_none")
    )]
    pub(super) jitter: Option<f64>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::named::max_probes", skip_serializing_if = "Option::is_none")
    )]
    pub(super) max_probes: Option<u32>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::named::successes_to_close", skip_serializing_if = "Option::is_none")
    )]
    pub(super) successes_to_close: Option<u32>,
    #[cfg_attr(
        feature = "serde",
        serde(
            deserialize_with = "super::file::named::probe_lease",
            serialize_with = "super::file::duration::serialize",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub(super) probe_lease: Option<Duration>,
    #[cfg_attr(
        feature = "serde",
        serde(
            deserialize_with = "super::file::named::on_abandon",
            serialize_with = "super::file::abandon::serialize",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub(super) on_abandon: Option<OnAbandon>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::named::ignored_probes", skip_serializing_if = "Option::is_none")
    )]
    pub(super) ignored_probes: Option<u32>,
    #[cfg_attr(
        feature = "serde",
        serde(
            deserialize_with = "super::file::named::adaptive",
            serialize_with = "super::file::adaptive::serialize",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub(super) adaptive: Option<Option<Adaptive>>,
    #[cfg_attr(
        feature = "serde",
        serde(
            deserialize_with = "super::file::named::ramp",
            serialize_with = "super::file::duration::serialize",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub(super) ramp: Option<Duration>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::named::ramp_failures", skip_serializing_if = "Option::is_none")
    )]
    pub(super) ramp_failures: Option<u32>,
}

impl PolicyBuilder {
    /// Limits the calls in flight.
    pub fn max_in_flight(mut self, calls: u32) -> Self {
        self.max_in_flight = Some(calls);
        self
    }

    /// Counts the calls in flight without a limit.
    pub fn unlimited(self) -> Self {
        self.max_in_flight(UNLIMITED)
    }

    /// Stops calls of normal priority at this share of the limit; sheddable ones as well, unless they have a smaller share.
    pub fn normal_share(mut self, share: f64) -> Self {
        self.normal_share = Some(share);
        self
    }

    /// Stops sheddable calls at this share of the limit.
    pub fn sheddable_share(mut self, share: f64) -> Self {
        self.sheddable_share = Some(share);
        self
    }

    /// Lets so many calls wait for a permit, of those that ask to: see [`Engine::admit_waiting`](crate::Engine::admit_waiting).
    pub fn max_waiting(mut self, calls: u32) -> Self {
        self.max_waiting = Some(calls);
        self
    }

    /// Bounds how long a call may wait for a permit.
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = Some(wait);
        self
    }

    /// Trips after this many failures with no success between them, however far apart.
    pub fn consecutive_failures(mut self, failures: u32) -> Self {
        self.consecutive_failures = Some(failures);
        self
    }

    /// Sets the window that rates and counts are judged on.
    pub fn window(mut self, window: Window) -> Self {
        self.window = Some(Some(window));
        self
    }

    /// Does without a window, and so without rates and counts.
    pub fn no_window(mut self) -> Self {
        self.window = Some(None);
        self
    }

    /// Sets how many calls the window must hold before a rate is judged.
    pub fn min_calls(mut self, calls: u32) -> Self {
        self.min_calls = Some(calls);
        self
    }

    /// Trips when this share of the window's calls failed: 0.5 is one half.
    pub fn failure_rate(mut self, share: f64) -> Self {
        self.failure_rate = Some(Some(share));
        self
    }

    /// Judges no failure rate.
    pub fn no_failure_rate(mut self) -> Self {
        self.failure_rate = Some(None);
        self
    }

    /// Trips when the window holds this many failures, whatever `min_calls` says.
    pub fn failures(mut self, failures: u32) -> Self {
        self.failures = Some(failures);
        self
    }

    /// Counts calls that take at least this long as slow; a slow probe reopens.
    pub fn slow_call(mut self, duration: Duration) -> Self {
        self.slow_call = Some(duration);
        self
    }

    /// Trips when this share of the window's calls was slow.
    pub fn slow_rate(mut self, share: f64) -> Self {
        self.slow_rate = Some(share);
        self
    }

    /// Counts a call that has been running for this long as stalled, within an eighth of it; [`stalled_calls`](Self::stalled_calls) or
    /// [`stalled_share`](Self::stalled_share) says how many are too many. Longer than any healthy call takes, and shorter than the
    /// timeout, which would end it.
    pub fn stall_after(mut self, duration: Duration) -> Self {
        self.stall_after = Some(duration);
        self
    }

    /// Trips when this many calls have stalled.
    pub fn stalled_calls(mut self, calls: u32) -> Self {
        self.stalled_calls = Some(calls);
        self
    }

    /// Trips when calls that have stalled take this share of the limit in force.
    pub fn stalled_share(mut self, share: f64) -> Self {
        self.stalled_share = Some(share);
        self
    }

    /// Sets the wait between a trip and its first probe.
    pub fn open_wait(mut self, wait: Duration) -> Self {
        self.open_wait = Some(wait);
        self
    }

    /// Multiplies the wait at each reopening in a row; 1 keeps it constant.
    pub fn backoff(mut self, factor: f64) -> Self {
        self.backoff = Some(factor);
        self
    }

    /// Bounds the wait.
    pub fn open_wait_max(mut self, wait: Duration) -> Self {
        self.open_wait_max = Some(wait);
        self
    }

    /// Moves each wait by up to this share of itself, so that a fleet doesn't probe in step.
    pub fn jitter(mut self, share: f64) -> Self {
        self.jitter = Some(share);
        self
    }

    /// Bounds the probes in flight.
    pub fn max_probes(mut self, probes: u32) -> Self {
        self.max_probes = Some(probes);
        self
    }

    /// Sets how many probes must succeed before the target closes.
    pub fn successes_to_close(mut self, successes: u32) -> Self {
        self.successes_to_close = Some(successes);
        self
    }

    /// Sets how long a probe may hold its slot without a word; longer than the calls' own timeout.
    pub fn probe_lease(mut self, lease: Duration) -> Self {
        self.probe_lease = Some(lease);
        self
    }

    /// Sets what a permit dropped unsettled says about the target.
    pub fn on_abandon(mut self, meaning: OnAbandon) -> Self {
        self.on_abandon = Some(meaning);
        self
    }

    /// Sets how many probes settled as ignored in a row count as one success.
    pub fn ignored_probes(mut self, probes: u32) -> Self {
        self.ignored_probes = Some(probes);
        self
    }

    /// Lets the limit follow measured latency, up to `max_in_flight`.
    pub fn adaptive(mut self, adaptive: Adaptive) -> Self {
        self.adaptive = Some(Some(adaptive));
        self
    }

    /// Keeps the limit at `max_in_flight`.
    pub fn no_adaptive(mut self) -> Self {
        self.adaptive = Some(None);
        self
    }

    /// Raises the limit from `max_probes` to the full one over this time after HALF_OPEN closes, so that a target that came back isn't
    /// flooded. Needs a limit in `max_in_flight`.
    ///
    /// The limit is linear in time and exact: `max_probes + (limit - max_probes) × elapsed / ramp`, rounded down, in force for every call
    /// that starts. Calls that are in flight when it begins, probes among them, are counted in it. It ends with the first admission
    /// after its time; until then a few failures open the target again, and the wait is longer as after a failed probe: see
    /// [`ramp_failures`](Self::ramp_failures). What leaves a forced state by hand doesn't ramp.
    pub fn ramp(mut self, duration: Duration) -> Self {
        self.ramp = Some(duration);
        self
    }

    /// Sets how many failures open the target again while its limit ramps, before `min_calls`: so many in a row; or so many failures or
    /// slow calls in the window that reach their rate among the calls that are there.
    ///
    /// More than one or two, or a target with few failures as always may never get through the ramp: a share `p` of calls that
    /// fail for other reasons makes three in a row once in `1 / p³` calls, a thousand million for one in a thousand.
    pub fn ramp_failures(mut self, failures: u32) -> Self {
        self.ramp_failures = Some(failures);
        self
    }
}
