//! Any text is refused with reasons or is a configuration; a policy that was read is written and read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis::Policy;
use portcullis_gateway::Config;

fuzz_target!(|text: &str| {
    match text.parse::<Config>() {
        Ok(config) => config.targets.iter().for_each(|target| round_trip(&target.policy)),
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
    if let Ok(policy) = toml::from_str::<Policy>(text) {
        round_trip(&policy);
    }
});

fn round_trip(policy: &Policy) {
    let written = toml::to_string(policy).unwrap_or_else(|error| panic!("{policy:?} can't be written: {error}"));
    let read = toml::from_str(&written).unwrap_or_else(|error| panic!("{written} can't be read: {error}"));
    assert_eq!(*policy, read, "{written}");
}
