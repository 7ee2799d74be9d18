//! The shadows of a target, as the configuration has them.

use portcullis::{Engine, Policy, ShadowError};

/// Has the target's calls told to these from now on, and to no others. One that is there with the same policy goes on counting.
pub(crate) fn apply(engine: &Engine<String>, target: &str, wanted: &[(String, Policy)]) -> Result<(), ShadowError> {
    for there in engine.shadows(target) {
        if wanted.iter().all(|(name, _)| *name != there.name) {
            engine.unshadow(target, &there.name);
        }
    }
    for (name, policy) in wanted {
        engine.shadow(target, name, policy.clone())?;
    }
    Ok(())
}
