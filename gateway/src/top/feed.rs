//! What the gateway tells by and by, over a stream that is opened again whenever it ends.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::sync::mpsc::Sender;

use crate::operator::Operator;

/// The gateway tells something every second, or every few if it has very many targets.
const SILENCE: Duration = Duration::from_secs(15);
/// More than any event: 100,000 targets.
const LONGEST: usize = 256 << 20;

/// What was heard.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Heard {
    /// Everything, as it is now.
    State(Value),
    /// What has changed since.
    Change(Value),
    /// The stream has ended, and why; what was heard before gets old.
    Lost(String),
}

/// Listens until nobody wants to hear any more.
pub(super) async fn follow(operator: Operator, tell: Sender<Heard>) {
    let waits = || {
        let second = Duration::from_secs(1);
        ExponentialBuilder::new().with_min_delay(second).with_max_delay(5 * second).without_max_times().build()
    };
    let mut wait = waits();
    loop {
        let (heard, why) = listen(&operator, &tell).await;
        if heard {
            wait = waits();
        }
        if tell.send(Heard::Lost(why)).await.is_err() {
            return;
        }
        tokio::time::sleep(wait.next().unwrap_or(SILENCE)).await;
    }
}

/// Reads one stream to its end: whether anything came, and why it ended.
async fn listen(operator: &Operator, tell: &Sender<Heard>) -> (bool, String) {
    let mut body = match operator.open("/events").await {
        Ok(body) => body,
        Err(error) => return (false, error.to_string()),
    };
    let (mut came, mut heard) = (BytesMut::new(), false);
    loop {
        let frame = match tokio::time::timeout(SILENCE, body.frame()).await {
            Err(_) => return (heard, format!("nothing was heard for {SILENCE:?}")),
            Ok(None) => return (heard, "the gateway ended the stream".to_owned()),
            Ok(Some(Err(error))) => return (heard, crate::upstream::causes(&error)),
            Ok(Some(Ok(frame))) => frame,
        };
        // Only the new part can hold the end, but for its first byte.
        let mut from = came.len().saturating_sub(1);
        came.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        if came.len() > LONGEST {
            return (heard, "an event is too long".to_owned());
        }
        while let Some(end) = came[from..].windows(2).position(|pair| pair == b"\n\n") {
            let event = came.split_to(from + end + 2);
            from = 0;
            if let Some(event) = read(&event) {
                heard = true;
                if tell.send(event).await.is_err() {
                    return (heard, String::new());
                }
            }
        }
    }
}

/// An event, if it is one of those that are known.
fn read(event: &[u8]) -> Option<Heard> {
    let text = std::str::from_utf8(event).ok()?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
    let data = serde_json::from_str(field("data: ")?).ok()?;
    match field("event: ")? {
        "state" => Some(Heard::State(data)),
        "change" => Some(Heard::Change(data)),
        _ => None,
    }
}
