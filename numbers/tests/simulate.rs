//! Simulations: each shipped scenario shows what it says it does, the model agrees with closed forms, a seed means the same bytes, and a scenario that
//! can't be run says why.
#![allow(clippy::unwrap_used, reason = "clippy doesn't take helpers of tests for tests")]

#[path = "simulate/errors.rs"]
mod errors;
#[path = "simulate/model.rs"]
mod model;
#[path = "simulate/random.rs"]
mod random;
#[path = "simulate/shipped.rs"]
mod shipped;

use portcullis_numbers::simulate::scenario::Scenario;
use portcullis_numbers::simulate::{Report, simulate};
use serde_json::Value;

fn report(text: &str, seeds: u32) -> Report {
    let scenario: Scenario = text.parse().unwrap_or_else(|errors| panic!("{errors}"));
    simulate(&scenario, seeds).unwrap()
}

/// What a variant came to at an upstream.
fn upstream<'a>(json: &'a Value, variant: &str, upstream: &str) -> &'a Value {
    let named = |list: &'a Value, name: &str| {
        let found = list.as_array().unwrap().iter().find(|entry| entry["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}"))
    };
    named(&named(&json["variants"], variant)["upstreams"], upstream)
}

/// A figure's median.
fn figure(json: &Value, variant: &str, of: &str, key: &str) -> f64 {
    let value = &upstream(json, variant, of)["figures"][key]["median"];
    value.as_f64().unwrap_or_else(|| panic!("{variant}: {key}: {value}"))
}

/// The mean of a series from one second to another, at steps of a second.
fn mean(json: &Value, variant: &str, of: &str, key: &str, seconds: std::ops::Range<usize>) -> f64 {
    assert_eq!(json["bucket_s"], 1.0);
    let values = upstream(json, variant, of)["series"][key].as_array().unwrap();
    let steps = values[seconds.clone()].iter().map(|value| value.as_f64().unwrap_or(0.0));
    steps.sum::<f64>() / seconds.len() as f64
}
