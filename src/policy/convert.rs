//! A policy as the settings that build it, and the other way.

use std::time::Duration;

use super::{Policy, PolicyBuilder, PolicyError};
use crate::adaptive::Adaptive;
use crate::window::Window;

impl From<Policy> for PolicyBuilder {
    fn from(policy: Policy) -> Self {
        let share = |bp: u32| f64::from(bp) / 10_000.0;
        let has_window = policy.geometry.is_some();
        Self {
            max_in_flight: Some(policy.limit),
            normal_share: Some(share(policy.normal_share_bp.into())),
            sheddable_share: Some(share(policy.sheddable_share_bp.into())),
            max_waiting: Some(policy.max_waiting()),
            max_wait: (policy.max_waiting > 0).then(|| policy.max_wait()),
            consecutive_failures: policy.consecutive_failures,
            window: Some(policy.geometry.map(Window::from)),
            min_calls: has_window.then_some(policy.min_calls),
            failure_rate: Some(policy.failure_rate_bp.map(share)),
            failures: policy.failures,
            slow_call: policy.slow_call_nanos.map(Duration::from_nanos),
            slow_rate: policy.slow_rate_bp.map(share),
            stall_after: policy.stall.map(|stall| Duration::from_nanos(stall.after_nanos)),
            stalled_calls: policy.stall.and_then(|stall| stall.calls),
            stalled_share: policy.stall.and_then(|stall| stall.share_bp).map(share),
            open_wait: Some(Duration::from_millis(policy.open_wait_ms)),
            backoff: Some(f64::from(policy.backoff_milli) / 1_000.0),
            open_wait_max: Some(Duration::from_millis(policy.open_wait_max_ms)),
            jitter: Some(share(policy.jitter_bp)),
            max_probes: Some(policy.max_probes),
            successes_to_close: Some(policy.successes_to_close),
            probe_lease: Some(Duration::from_secs(policy.probe_lease_s)),
            on_abandon: policy.on_abandon,
            ignored_probes: Some(policy.ignored_probes),
            adaptive: policy.adaptive.map(|rules| Some(Adaptive::from(*rules))),
            ramp: policy.ramp_ms.map(Duration::from_millis),
            ramp_failures: policy.ramp_ms.map(|_| policy.ramp_failures),
        }
    }
}

impl TryFrom<PolicyBuilder> for Policy {
    type Error = PolicyError;

    fn try_from(builder: PolicyBuilder) -> Result<Self, PolicyError> {
        builder.build()
    }
}
