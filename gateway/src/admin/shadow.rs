//! What the shadows of a target make of its calls, and the one thing that is done with them by hand.

use http::StatusCode;
use percent_encoding::percent_decode_str;
use portcullis::{Policy, ShadowError};
use serde_json::{Value, json};

use super::{Answer, error, unknown};
use crate::config::over_others;
use crate::reply::json;
use crate::shared::Shared;

pub(super) fn all(shared: &Shared, name: &str) -> Value {
    json!(shared.engine().shadows(name))
}

/// Puts the policy of a shadow in force, as `?shadow=NAME` says, until the configuration is read again.
pub(super) fn promote(shared: &Shared, name: &str, query: Option<&str>) -> Answer {
    let named = query.and_then(|query| percent_decode_str(query.strip_prefix("shadow=")?).decode_utf8().ok());
    let Some(shadow) = named else {
        return error(StatusCode::BAD_REQUEST, "say which: ?shadow=NAME");
    };
    let engine = shared.engine();
    if engine.snapshot(name).is_none() {
        return unknown(name);
    }
    let before = match engine.promote(name, &shadow) {
        Ok(before) => before,
        Err(ShadowError::Unknown) => {
            return error(StatusCode::NOT_FOUND, &format!("{name} has no shadow that is named {shadow:?}"));
        }
        Err(other) => return error(StatusCode::SERVICE_UNAVAILABLE, &other.to_string()),
    };
    let Some(snapshot) = engine.snapshot(name) else { return unknown(name) };
    let lines = |policy: &Policy| over_others(policy).unwrap_or_default();
    json(
        StatusCode::OK,
        &json!({
            "name": name,
            "promoted": shadow,
            "state": snapshot.state.as_str(),
            "until": "the configuration is read again: put `toml` into the target's table, and take the shadow's out",
            "toml": lines(&snapshot.policy),
            "before": lines(&before),
        }),
    )
}
