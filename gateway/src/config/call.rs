//! What the gateway asks of a target's call policy.

use std::time::Duration;

use portcullis::call::{CallPolicy, Fallback};

/// The deadline, if one is set: one that is just the worst case still bounds what a client takes to send its request.
pub(super) fn deadline(policy: &CallPolicy) -> Option<Duration> {
    let is_set = toml::Table::try_from(policy).is_ok_and(|fields| fields.contains_key("deadline"));
    is_set.then(|| policy.deadline())
}

/// Whether a target's calls are more than one attempt within its timeout: only those take the way of whole calls.
pub(super) fn is_whole(policy: &CallPolicy) -> bool {
    deadline(policy).is_some()
        || policy.attempts() > 1
        || policy.probe_timeout() != policy.timeout()
        || *policy.fallback() != Fallback::Refuse
}
