//! The access log of changes: who asked for what, when, and what became of it. Bounded, in memory, and an event of `tracing` each.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Serialize;

use super::Answer;
use crate::reply::json;

/// Who acts, as they say themselves.
static OPERATOR: HeaderName = HeaderName::from_static("x-operator");

/// The changes that are kept.
const KEPT: usize = 256;

/// The most characters that are kept of what comes from outside.
const LONGEST: usize = 128;

/// What was asked for, and by whom.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Change {
    wall: String,
    peer: String,
    operator: Option<String>,
    token: bool,
    action: String,
    query: Option<String>,
    target: String,
    status: u16,
}

/// Who asks.
#[derive(Clone, Debug)]
pub(super) struct Who {
    /// The address of the connection's other end.
    pub(super) peer: HeaderValue,
    /// What they call themselves.
    pub(super) operator: Option<String>,
    /// Whether they gave the token.
    pub(super) token: bool,
}

impl Who {
    pub(super) fn new(headers: &HeaderMap, peer: HeaderValue, token: bool) -> Self {
        let operator = headers.get(&OPERATOR).map(|name| short(&String::from_utf8_lossy(name.as_bytes())));
        Self { peer, operator: operator.filter(|name| !name.is_empty()), token }
    }
}

/// The last changes.
#[derive(Debug, Default)]
pub(super) struct Changes(Mutex<Log>);

#[derive(Debug, Default)]
struct Log {
    kept: VecDeque<Change>,
    dropped: u64,
}

impl Changes {
    fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what somebody asked for and what they were answered.
    pub(super) fn note(&self, who: &Who, action: &str, target: &str, query: Option<&str>, status: StatusCode) {
        let change = Change {
            wall: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
            peer: short(&String::from_utf8_lossy(who.peer.as_bytes())),
            operator: who.operator.clone(),
            token: who.token,
            action: action.to_owned(),
            query: query.map(short),
            target: short(target),
            status: status.as_u16(),
        };
        let Change { peer, operator, token, query, target, status, .. } = &change;
        tracing::info!(peer, operator, token, action, query, target_name = target, status, "an operator asked");
        let mut log = self.lock();
        if log.kept.len() == KEPT {
            log.kept.pop_front();
            log.dropped += 1;
        }
        log.kept.push_back(change);
    }

    /// The log as JSON, oldest first.
    pub(super) fn told(&self) -> Answer {
        let log = self.lock();
        let told = serde_json::json!({ "dropped": log.dropped, "changes": log.kept });
        drop(log);
        json(StatusCode::OK, &told)
    }
}

/// The beginning of a text from outside, without what could move a terminal's cursor.
fn short(text: &str) -> String {
    text.trim().chars().take(LONGEST).map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(operator: &[u8]) -> Who {
        let mut headers = HeaderMap::new();
        headers.insert(&OPERATOR, HeaderValue::from_bytes(operator).unwrap());
        Who::new(&headers, HeaderValue::from_static("127.0.0.1"), false)
    }

    #[test]
    fn the_log_keeps_the_last_and_counts_the_rest() {
        let changes = Changes::default();
        for turn in 0..KEPT + 3 {
            changes.note(&who(b"ann"), "release", &turn.to_string(), None, StatusCode::OK);
        }
        let log = changes.lock();
        assert_eq!((log.kept.len(), log.dropped), (KEPT, 3));
        assert_eq!((log.kept[0].target.as_str(), log.kept[KEPT - 1].target.as_str()), ("3", "258"));
    }

    #[test]
    fn what_comes_from_outside_is_cut_and_tamed() {
        assert_eq!(who("é".repeat(1_000).as_bytes()).operator.unwrap().chars().count(), LONGEST);
        assert_eq!(who(b" \xff\t[2J ").operator.unwrap(), "\u{fffd}\u{fffd}[2J");
        assert_eq!(who(b"   ").operator, None);
    }
}
