//! A target that is kept open for a while on purpose, so that what its callers get instead is seen before an outage shows it.
//!
//! A drill is a lease: it ends by itself, whatever has become of who began it. Whatever else an operator does to the target ends it at once, and
//! is left alone by it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

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
    wall: SystemTime,
    lease: AbortHandle,
}

impl Drills {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Drill>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a target's drill still lasts.
    pub(crate) fn left(&self, target: &str) -> Option<Duration> {
        self.lock().get(target).map(|drill| drill.ends.saturating_duration_since(Instant::now()))
    }

    /// When it ends.
    pub(super) fn ends(&self, target: &str) -> Option<SystemTime> {
        self.lock().get(target).map(|drill| drill.wall)
    }

    /// Ends a drill, if there is one, and does what is done to the target instead: nothing comes between. `act` must not ask for drills.
    pub(super) fn end_and<R>(&self, target: &str, act: impl FnOnce() -> R) -> R {
        let mut drills = self.lock();
        if let Some(drill) = drills.remove(target) {
            drill.lease.abort();
        }
        act()
    }

    /// The same for the drill alone; nothing if none is on.
    pub(super) fn end<R>(&self, target: &str, act: impl FnOnce() -> R) -> Option<R> {
        let mut drills = self.lock();
        drills.remove(target)?.lease.abort();
        Some(act())
    }

    /// The same at the end of a lease; nothing if the drill is over, or the target's drill is another one.
    fn expire<R>(&self, target: &str, ends: Instant, act: impl FnOnce() -> R) -> Option<R> {
        let mut drills = self.lock();
        drills.get(target).filter(|drill| drill.ends == ends)?;
        drills.remove(target);
        Some(act())
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
    drills.insert(name.to_owned(), Drill { ends, wall: SystemTime::now() + length, lease });
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
    let released = shared.drills().expire(&name, ends, || shared.engine().release(name.as_str()));
    if matches!(released, Some(Ok(_))) {
        tracing::info!(target_name = name, "a drill's time is over");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared() -> Arc<Shared> {
        let text = "[[route]]\npath = \"/\"\ntarget = \"t\"\n[target.t]\nupstream = [\"http://127.0.0.1:1\"]";
        Shared::new(&text.parse().unwrap()).unwrap()
    }

    fn state(shared: &Shared) -> State {
        shared.engine().snapshot("t").unwrap().state
    }

    #[tokio::test]
    async fn a_lease_ends_its_own_drill_and_no_newer_one() {
        let shared = shared();
        let early = Instant::now();
        assert_eq!(begin(&shared, "t", Some("seconds=600")).status(), StatusCode::OK);
        // As one that had just woken up when its drill was ended and the next one began.
        release_at(early, Arc::downgrade(&shared), "t".to_owned()).await;
        assert!(shared.drills().left("t").is_some());
        assert_eq!(state(&shared), State::ForcedOpen);
        shared.drills().lock().get_mut("t").unwrap().ends = early;
        release_at(early, Arc::downgrade(&shared), "t".to_owned()).await;
        assert!(shared.drills().left("t").is_none());
        assert_eq!(state(&shared), State::Closed);
    }

    #[tokio::test]
    async fn nothing_comes_between_the_end_of_a_drill_and_what_is_done_instead() {
        let shared = shared();
        let drills = shared.drills();
        assert_eq!(begin(&shared, "t", Some("seconds=600")).status(), StatusCode::OK);
        let ends = drills.lock()["t"].ends;
        let is_held = || drills.0.try_lock().is_err();
        assert_eq!(drills.expire("t", ends, is_held), Some(true));
        assert_eq!(drills.expire("t", ends, is_held), None);
        assert!(drills.end_and("t", is_held));
        assert_eq!(drills.end("t", is_held), None);
        assert_eq!(state(&shared), State::ForcedOpen);
        shared.engine().release("t").unwrap();
        assert_eq!(begin(&shared, "t", Some("seconds=600")).status(), StatusCode::OK);
        assert_eq!(drills.end("t", is_held), Some(true));
        assert!(!is_held());
    }
}
