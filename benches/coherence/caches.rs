//! The machine: a MESI count of lines over infinite caches.

use std::collections::HashMap;

use portcullis::internals::trace::Kind;

/// What the caches keep and send.
pub(crate) const LINE_BYTES: usize = 64;
/// What an access cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// The core had the line, and for a write had it alone.
    Hit,
    /// No core had it.
    Memory,
    /// Another core had it: it sent the line, or gave up its copy, or both.
    Transfer,
}

/// Who has a line: Modified and Exclusive are `is_alone`, Shared is the rest, Invalid is not to be among the holders.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    holders: u128,
    is_alone: bool,
}

/// Every core's cache.
#[derive(Debug, Default)]
pub(crate) struct Caches(HashMap<usize, Line>);

impl Caches {
    /// Lets a core access an address.
    pub(crate) fn access(&mut self, core: usize, address: usize, kind: Kind) -> Cost {
        let line = self.0.entry(address / LINE_BYTES).or_default();
        let own = 1_u128 << core;
        let (has, others) = (line.holders & own != 0, line.holders & !own != 0);
        assert!(!(line.is_alone && line.holders.count_ones() != 1), "a line that one core has alone is one core's");
        match kind {
            Kind::Load => {
                line.is_alone = if has { line.is_alone } else { !others };
                line.holders |= own;
                match (has, others) {
                    (true, _) => Cost::Hit,
                    (false, true) => Cost::Transfer,
                    (false, false) => Cost::Memory,
                }
            }
            // A lost compare-and-swap has asked for the line as one that wins.
            Kind::Store | Kind::Swap | Kind::Lost | Kind::Publish | Kind::Lock => {
                *line = Line { holders: own, is_alone: true };
                match (has, others) {
                    (_, true) => Cost::Transfer,
                    (true, false) => Cost::Hit,
                    (false, false) => Cost::Memory,
                }
            }
        }
    }
}
