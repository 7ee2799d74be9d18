//! What can be done to an engine.

use arbitrary::Arbitrary;

use crate::rules::Draft;

/// An engine and what is done to it.
#[derive(Arbitrary, Clone, Debug)]
pub struct Case {
    /// The policies that the case knows; the first is every target's at first.
    pub drafts: [Draft; 4],
    /// One less than the most targets, up to 19: more than one step of the sweeper visits.
    pub targets: u8,
    /// How long a target must lie still before it may go.
    pub idle: Patience,
    pub forget: Patience,
    pub ops: Vec<Op>,
}

#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    None,
    Second,
    Minute,
    Hour,
}

impl Patience {
    pub(crate) fn seconds(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
        }
    }
}

/// What a caller says about its call.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Success,
    Failure,
    Ignored,
}

/// How a permit is asked for and held.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grip {
    /// By key, borrowing the engine.
    Borrowed,
    /// By key, owning a pointer to the engine.
    Owned,
    /// As `Owned`, for a future that may be dropped.
    Async,
    /// Through a handle, if the target has one.
    Handle,
}

/// How far the clock moves.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    Nanos(u32),
    Millis(u16),
    Seconds(u16),
    Days(u16),
    /// To the end of a target's wait or lease, to when its next call has stalled, or to the end of its present bucket.
    Until(u8),
    /// One nanosecond less than that.
    Before(u8),
}

/// One operation. Keys, permits and policies are numbers that the driver takes modulo what there is.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Admit {
        key: u8,
        grip: Grip,
    },
    Settle {
        permit: u8,
        verdict: Verdict,
    },
    ComeBack {
        permit: u8,
        seconds: u8,
    },
    Drop {
        permit: u8,
    },
    Forget {
        permit: u8,
    },
    Panic {
        permit: u8,
    },
    Touch {
        permit: u8,
    },
    Record {
        permit: u8,
        verdict: Verdict,
    },
    Unhold {
        held: u8,
    },
    ForgetHeld {
        held: u8,
    },
    Advance {
        span: Span,
    },
    SetPolicy {
        key: u8,
        policy: u8,
    },
    SetLimit {
        key: u8,
        limit: u8,
    },
    ForceOpen {
        key: u8,
    },
    Disable {
        key: u8,
    },
    Release {
        key: u8,
    },
    Resolve {
        key: u8,
    },
    Unresolve {
        handle: u8,
    },
    Sweep,
    Snapshots,
    /// Asks for a call that matters less than others.
    AdmitBelow {
        key: u8,
        grip: Grip,
        is_sheddable: bool,
    },
    /// As `Advance`, and nobody looks before the next operation.
    Leap {
        span: Span,
    },
}

/// The names of the operations, in the order of [`Op::kind`].
pub const KINDS: [&str; 22] = [
    "admit",
    "settle",
    "drop",
    "forget",
    "panic",
    "touch",
    "record",
    "unhold",
    "forget held",
    "advance",
    "set policy",
    "set limit",
    "force open",
    "disable",
    "release",
    "resolve",
    "unresolve",
    "sweep",
    "snapshots",
    "admit below",
    "leap",
    "come back",
];

impl Op {
    pub(crate) fn kind(self) -> usize {
        match self {
            Self::Admit { .. } => 0,
            Self::Settle { .. } => 1,
            Self::Drop { .. } => 2,
            Self::Forget { .. } => 3,
            Self::Panic { .. } => 4,
            Self::Touch { .. } => 5,
            Self::Record { .. } => 6,
            Self::Unhold { .. } => 7,
            Self::ForgetHeld { .. } => 8,
            Self::Advance { .. } => 9,
            Self::SetPolicy { .. } => 10,
            Self::SetLimit { .. } => 11,
            Self::ForceOpen { .. } => 12,
            Self::Disable { .. } => 13,
            Self::Release { .. } => 14,
            Self::Resolve { .. } => 15,
            Self::Unresolve { .. } => 16,
            Self::Sweep => 17,
            Self::Snapshots => 18,
            Self::AdmitBelow { .. } => 19,
            Self::Leap { .. } => 20,
            Self::ComeBack { .. } => 21,
        }
    }
}
