//! What a million targets take that nobody calls: what was asked of the allocator, less keys and map entries.

use std::collections::hash_map::RandomState;

use dashmap::DashMap;
use portcullis::Engine;

use super::keys::{Key, name};
use crate::alloc;

pub const ID: &str = "idle";
pub const TITLE: &str = "memory of 1,000,000 idle targets";

const TARGETS: usize = 1_000_000;

/// Bytes of each, beside its key and map entry. A second copy of the key counts as the target's.
#[must_use]
pub fn bytes() -> f64 {
    let before = alloc::held();
    let engine: Engine = Engine::builder().max_targets(TARGETS).build();
    for key in (0..TARGETS).map(name) {
        match engine.admit(key.as_str()) {
            Ok(permit) => permit.success(),
            Err(rejection) => panic!("there is room: {rejection}"),
        };
    }
    let held = alloc::held() - before;
    drop(engine);
    let before = alloc::held();
    let map: DashMap<Key, u32, RandomState> = (0..TARGETS).map(name).zip(0..).collect();
    let entries = alloc::held() - before;
    assert_eq!(map.len(), TARGETS);
    (held - entries) as f64 / TARGETS as f64
}
