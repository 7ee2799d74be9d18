//! `GET /events`: the targets as server-sent events, first as they are, then what changes.
//!
//! While anyone looks, one ticker looks at the engine once a second, however many readers there are; while nobody does, nothing is done. Each tick
//! is an event, so that silence means that the stream is lost. A reader that comes back with `Last-Event-ID` gets what it missed, or everything
//! if that was too long ago. One that falls [`BEHIND`] events behind is dropped: it may come again, and nothing piles up.
//!
//! | event | data |
//! | --- | --- |
//! | `state` | everything: `now_ms`, `interval_ms`, `started_ms`, `version`, `health`, `targets`, `transitions` (the last [`TOLD`]) |
//! | `change` | `now_ms`, `health`; of `targets` those that changed, each with `name` and only the fields that did; `gone`, the names of targets that are no longer held; new `transitions` |
//!
//! A target has `name`, `configured`, `state`, `since_ms` and `cause` (its last transition, null before the first), `reopen_at_ms` (while its wait
//! lasts or is over and nobody has probed), `drill_until_ms`, `reopens`, `probes_in_flight`, `probe_successes`, `in_flight`, and `full_limit` (null without a limit), `waiting`, `stalled`, `window` (`calls`, `failures`, `slow`; or null), `totals` and `refusals`
//! as in `/targets`, and `latency` (`count`, `p50_ms`, `p99_ms`, of the last seconds). A transition is as in `/transitions`, `health` as in
//! `/healthz`. All `_ms` that name a moment are milliseconds since 1970 by the gateway's clock, of which `now_ms` is the present.

mod body;
mod tile;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use portcullis::Transition;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, Sender};
use tokio::time::Instant;

pub(super) use body::Events;
use tile::Tile;

use super::{healthy, told};
use crate::shared::{Live, Shared};
use crate::story::wall_ms;

/// The time between two looks, if they are short.
const INTERVAL: Duration = Duration::from_secs(1);

/// Looking takes at most one part in so many of the time.
const SHARE: u32 = 10;

/// The most readers.
pub(super) const READERS: usize = 32;

/// The events that a reader may be behind, and that are kept for those who come back.
const BEHIND: usize = 16;

/// The transitions that a reader gets at first.
const TOLD: usize = 500;

/// What is told, and to whom.
pub(super) struct Feed(Mutex<Told>);

#[derive(Default)]
struct Told {
    /// When it began, which tells this process's events from another's.
    epoch: u64,
    /// Of the last event.
    number: u64,
    tiles: BTreeMap<Arc<String>, Tile>,
    transitions: VecDeque<Arc<Transition>>,
    events: VecDeque<Bytes>,
    readers: Vec<Sender<Bytes>>,
    is_ticking: bool,
    /// A reload may have changed who may look.
    live: Weak<Live>,
}

impl Feed {
    /// A feed that nobody reads yet.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Told { epoch: wall_ms(SystemTime::now()), ..Told::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets another reader in, who has seen the events up to `last`; none if there are too many. It looks at every target, so it isn't for a thread
    /// that others wait for.
    pub(super) fn join(self: &Arc<Self>, shared: &Arc<Shared>, last: Option<&str>) -> Option<Events> {
        let mut told = self.lock();
        told.readers.retain(|reader| !reader.is_closed());
        if told.readers.len() >= READERS {
            return None;
        }
        if !told.is_ticking {
            told.look(shared);
            told.is_ticking = true;
            tokio::spawn(tick(Arc::downgrade(self), Arc::downgrade(shared)));
        }
        let first = match last.and_then(|last| told.since(last)) {
            Some(missed) => missed,
            None => told.state(shared),
        };
        // The first one and those to come.
        let (reader, events) = mpsc::channel(BEHIND + 1);
        // There is room, and the other end is here.
        let _ = reader.try_send(first);
        told.readers.push(reader);
        Some(Events(events))
    }

    /// Looks once more; whether anyone still reads.
    fn go_on(&self, shared: &Shared) -> bool {
        let mut told = self.lock();
        told.readers.retain(|reader| !reader.is_closed());
        told.is_ticking = !told.readers.is_empty();
        if told.is_ticking {
            let event = told.look(shared);
            told.readers.retain(|reader| reader.try_send(event.clone()).is_ok());
        }
        told.is_ticking
    }
}

/// Looks for as long as anyone reads.
async fn tick(feed: Weak<Feed>, shared: Weak<Shared>) {
    let mut pause = INTERVAL;
    loop {
        tokio::time::sleep(pause).await;
        let (Some(feed), Some(shared)) = (feed.upgrade(), shared.upgrade()) else { return };
        let begun = Instant::now();
        match tokio::task::spawn_blocking(move || feed.go_on(&shared)).await {
            Ok(true) => pause = INTERVAL.max(begun.elapsed() * (SHARE - 1)),
            _ => return,
        }
    }
}

impl Told {
    /// Takes note of what has changed; the event that tells it.
    fn look(&mut self, shared: &Shared) -> Bytes {
        let live = Arc::downgrade(&shared.live());
        if !live.ptr_eq(&std::mem::replace(&mut self.live, live.clone())) {
            self.readers.clear();
        }
        let mut before = std::mem::take(&mut self.tiles);
        let mut changed = Vec::new();
        shared.engine().visit(|name, snapshot| {
            let tile = Tile::of(shared, name, &snapshot);
            match before.remove(name) {
                Some(old) if old == tile => {}
                Some(old) => changed.push(tile.changed(name, &old)),
                None => changed.push(tile.whole(name)),
            }
            self.tiles.insert(Arc::clone(name), tile);
        });
        let transitions: Vec<Value> = self.new_transitions(shared).iter().map(|transition| told(transition)).collect();
        let gone: Vec<&str> = before.keys().map(|name| name.as_str()).collect();
        self.number += 1;
        let event = self.event(
            "change",
            &json!({
                "now_ms": wall_ms(SystemTime::now()), "health": healthy(shared), "targets": changed, "gone": gone, "transitions": transitions,
            }),
        );
        if self.events.len() == BEHIND {
            self.events.pop_front();
        }
        self.events.push_back(event.clone());
        event
    }

    fn new_transitions(&mut self, shared: &Shared) -> Vec<Arc<Transition>> {
        let mut log = shared.engine().transitions();
        let last = self.transitions.back();
        // The log is in order; what was told last may have fallen out of it.
        let known = last.and_then(|last| log.iter().rposition(|transition| Arc::ptr_eq(transition, last)));
        let new = log.split_off(known.map_or(0, |known| known + 1));
        self.transitions.extend(new.iter().cloned());
        let surplus = self.transitions.len().saturating_sub(TOLD);
        self.transitions.drain(..surplus);
        new
    }

    /// Everything, for a reader who knows nothing.
    fn state(&self, shared: &Shared) -> Bytes {
        let targets: Vec<Value> = self.tiles.iter().map(|(name, tile)| tile.whole(name)).collect();
        let transitions: Vec<Value> = self.transitions.iter().map(|transition| told(transition)).collect();
        self.event(
            "state",
            &json!({
                "now_ms": wall_ms(SystemTime::now()),
                "interval_ms": u64::try_from(INTERVAL.as_millis()).unwrap_or(u64::MAX),
                "started_ms": self.epoch,
                "version": env!("CARGO_PKG_VERSION"),
                "health": healthy(shared),
                "targets": targets,
                "transitions": transitions,
            }),
        )
    }

    /// The events after that one, if they are all still there.
    fn since(&self, last: &str) -> Option<Bytes> {
        let (epoch, number) = last.split_once('-')?;
        let (epoch, number): (u64, u64) = (epoch.parse().ok()?, number.parse().ok()?);
        let missed = usize::try_from(self.number.checked_sub(number)?).ok()?;
        if epoch != self.epoch || missed > self.events.len() {
            return None;
        }
        if missed == 0 {
            return Some(Bytes::from_static(b": nothing was missed\n\n"));
        }
        let events = self.events.iter().skip(self.events.len() - missed);
        Some(events.flat_map(|event| event.iter().copied()).collect())
    }

    fn event(&self, kind: &str, data: &Value) -> Bytes {
        // JSON of serde_json has no line break in it.
        format!("id: {}-{}\nevent: {kind}\ndata: {data}\n\n", self.epoch, self.number).into()
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
