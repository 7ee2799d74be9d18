//! A target that is kept open for a while on purpose, so that what its callers get instead is seen before an outage shows it.
//!
//! A drill is a lease: it ends by itself, whatever has become of who began it. Whatever else an operator does to the target ends it at once, and
//! is left alone by it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use http::StatusCode;
use portcullis::State;
use serde_json::json;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::{Answer, described, error, unknown};
use crate::reply::json;
use crate::shared::Shared;

/// The longest drill.
pub(crate) const LONGEST: Duration = Duration::from_mins(10);

/// The drills that are on.
#[derive(Debug, Default)]
pub(crate) struct Drills(Mutex<HashMap<String, Drill>>);

#[derive(Debug)]
struct Drill {
    ends: Instant,
    lease: AbortHandle,
}

impl Drills {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Drill>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a target's drill still lasts.
    pub(super) fn left(&self, target: &str) -> Option<Duration> {
        self.lock().get(target).map(|drill| drill.ends.saturating_duration_since(Instant::now()))
    }

    /// Ends a drill without a word to the target.
    pub(super) fn end(&self, target: &str) {
        let ended = self.lock().remove(target);
        if let Some(drill) = ended {
            drill.lease.abort();
        }
    }
}

/// Begins a drill, as `?seconds=N` says.
pub(super) fn begin(shared: &Arc<Shared>, name: &str, query: Option<&str>) -> Answer {
    let seconds = query.and_then(|query| query.strip_prefix("seconds=")?.parse().ok()).map(Duration::from_secs);
    let Some(length) = seconds.filter(|length| (Duration::from_secs(1)..=LONGEST).contains(length)) else {
        let message = format!("say how long: ?seconds=1 to {}", LONGEST.as_secs());
        return error(StatusCode::BAD_REQUEST, &message);
    };
    let engine = shared.engine();
    let Some(snapshot) = engine.snapshot(name) else { return unknown(name) };
    // Held until the lease is noted: of two that begin at once, one finds the other's.
    let mut drills = shared.drills().lock();
    let state = engine.snapshot(name).map_or(snapshot.state, |snapshot| snapshot.state);
    if state != State::Closed || drills.contains_key(name) {
        let message = format!("{name} is {}: only a target that is CLOSED is drilled", state.as_str());
        return json(StatusCode::CONFLICT, &json!({ "error": message, "state": state.as_str() }));
    }
    if let Err(rejection) = engine.force_open(name) {
        return error(StatusCode::SERVICE_UNAVAILABLE, &rejection.to_string());
    }
    let ends = Instant::now() + length;
    let lease = tokio::spawn(release_at(ends, Arc::downgrade(shared), name.to_owned())).abort_handle();
    drills.insert(name.to_owned(), Drill { ends, lease });
    drop(drills);
    tracing::info!(target_name = name, seconds = length.as_secs(), "a drill begins");
    match engine.snapshot(name) {
        Some(snapshot) => json(StatusCode::OK, &described(shared, name, &snapshot)),
        None => unknown(name),
    }
}

async fn release_at(ends: Instant, shared: Weak<Shared>, name: String) {
    tokio::time::sleep_until(ends).await;
    let Some(shared) = shared.upgrade() else { return };
    let is_on = shared.drills().lock().remove(&name).is_some();
    if is_on && shared.engine().release(name.as_str()).is_ok() {
        tracing::info!(target_name = name, "a drill's time is over");
    }
}
