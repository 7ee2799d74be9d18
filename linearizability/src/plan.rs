//! What the threads do: acts drawn from a shape, and what came of them.

/// One act of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    Admit(u8),
    /// Settles the thread's oldest permit; asks for one if it holds none.
    Settle(Ending),
    Look(u8),
    ForceOpen(u8),
    Disable(u8),
    Release(u8),
    SetLimit(u8, u32),
    /// Puts the shape's rules of this index in force.
    SetPolicy(u8, usize),
    /// Moves the clock, in milliseconds.
    Advance(u64),
    Sweep,
}

/// How a permit ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    Success,
    Failure,
    Ignored,
    Dropped,
}

/// What an admission was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    Granted { probe: bool, generation: u32 },
    Open,
    Probing,
    Forced,
    Saturated { limit: u32 },
    Exhausted,
}

/// What a look at the state shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shown {
    Closed,
    Open,
    HalfOpen,
    ForcedOpen,
    Disabled,
}

/// A call, named by the admission that asked for it.
pub type Call = u16;

/// An act and what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Done {
    Admit {
        key: u8,
        answer: Answer,
    },
    Settle {
        call: Call,
        key: u8,
        probe: bool,
        ending: Ending,
        stale: Option<bool>,
    },
    Look {
        key: u8,
        shown: Shown,
    },
    /// By hand; none if there was no room for the key.
    Hand {
        key: u8,
        to: Shown,
        changed: Option<bool>,
    },
    SetLimit {
        key: u8,
        limit: u32,
        done: bool,
    },
    SetPolicy {
        key: u8,
        rules: usize,
        done: bool,
    },
    Advance {
        ms: u64,
    },
    Sweep {
        gone: usize,
    },
}

impl Done {
    /// The target that it is about, if it is about one.
    #[must_use]
    pub fn key(&self) -> Option<u8> {
        match *self {
            Self::Admit { key, .. }
            | Self::Settle { key, .. }
            | Self::Look { key, .. }
            | Self::Hand { key, .. }
            | Self::SetLimit { key, .. }
            | Self::SetPolicy { key, .. } => Some(key),
            Self::Advance { .. } | Self::Sweep { .. } => None,
        }
    }

    /// Its place in the tally of acts.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Admit { answer: Answer::Granted { probe: false, .. }, .. } => "admitted",
            Self::Admit { answer: Answer::Granted { probe: true, .. }, .. } => "admitted as probe",
            Self::Admit { answer: Answer::Open, .. } => "refused, open",
            Self::Admit { answer: Answer::Probing, .. } => "refused, probing",
            Self::Admit { answer: Answer::Forced, .. } => "refused, forced",
            Self::Admit { answer: Answer::Saturated { .. }, .. } => "refused, saturated",
            Self::Admit { answer: Answer::Exhausted, .. } => "refused, exhausted",
            Self::Settle { stale: Some(true), .. } => "settled, stale",
            Self::Settle { ending: Ending::Success, .. } => "settled as success",
            Self::Settle { ending: Ending::Failure, .. } => "settled as failure",
            Self::Settle { ending: Ending::Ignored, .. } => "settled as ignored",
            Self::Settle { ending: Ending::Dropped, .. } => "dropped",
            Self::Look { .. } => "looked at",
            Self::Hand { .. } => "forced or released by hand",
            Self::SetLimit { .. } => "limit set",
            Self::SetPolicy { .. } => "policy set",
            Self::Advance { .. } => "clock moved",
            Self::Sweep { .. } => "swept",
        }
    }
}

/// A generator of plans: splitmix64 (Steele, Lea, Flood, 2014).
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % sides.max(1) as u64) as usize
    }
}
