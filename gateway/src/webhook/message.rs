//! What is posted: a JSON body, and by whom it is signed.

use std::sync::Arc;

use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use sha2::Sha256;

use super::board::Notice;
use crate::story::wall_ms;

/// The form of the body. Fields may be added to it; another number means that one was changed or taken away.
const VERSION: u32 = 1;

/// A body that stays the same however often it is tried.
#[derive(Debug)]
pub(super) struct Message {
    /// The same for each try, and for nothing else.
    pub(super) id: String,
    pub(super) body: Bytes,
}

#[derive(Serialize)]
struct Body<'m> {
    version: u32,
    id: &'m str,
    text: String,
    transition: &'m portcullis::Transition,
    // If it stands for more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Summary>,
    dropped: u64,
}

#[derive(Serialize)]
struct Summary {
    transitions: u64,
    opened: u64,
    since_ms: u64,
}

impl Message {
    /// Tells a notice. `boot` sets the transitions of this process apart from those of another; `dropped` were lost before this one.
    pub(super) fn new(notice: &Notice, boot: u64, dropped: u64) -> Self {
        let transition = Arc::as_ref(&notice.last);
        let target = utf8_percent_encode(&transition.target, NON_ALPHANUMERIC);
        let id = format!("{target}/{boot}/{}/{}", transition.incarnation, transition.sequence);
        let summary = (notice.count > 1).then(|| Summary {
            transitions: notice.count,
            opened: notice.opened,
            since_ms: wall_ms(notice.since),
        });
        let body = Body { version: VERSION, id: &id, text: text(notice), transition, summary, dropped };
        // Only a map with keys that aren't text can't be written, and there is none.
        let body = serde_json::to_vec(&body).unwrap_or_default().into();
        Self { id, body }
    }
}

/// One line for people.
fn text(notice: &Notice) -> String {
    let transition = &notice.last;
    let (target, to) = (&transition.target, transition.to);
    if notice.count == 1 {
        return format!("{target}: {} to {to}, {}", transition.from, transition.cause.as_str().replace('_', " "));
    }
    let since = humantime::format_rfc3339_seconds(notice.since);
    format!("{target}: {} transitions since {since}, opened {} times, now {to}", notice.count, notice.opened)
}

/// `t=SECONDS,v1=HEX`: HMAC-SHA256 over the seconds since 1970, a dot, and the body.
pub(super) fn signature(secret: &str, seconds: u64, body: &[u8]) -> String {
    // Any length of a key is one.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return String::new() };
    mac.update(format!("{seconds}.").as_bytes());
    mac.update(body);
    let hex: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={seconds},v1={hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_the_one_that_others_come_to() {
        // printf '1764500000.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef
        let signed = signature("0123456789abcdef", 1_764_500_000, br#"{"a":1}"#);
        assert_eq!(signed, "t=1764500000,v1=cd97f36a2a2137d096df865662d6b08d54e1bd33d764f4f715f2f3af2dd1eb8f");
    }
}
