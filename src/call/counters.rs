//! What is counted of a target's calls.

use crate::counters::Counter;

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What became of a target's calls, as it was at a moment. Each number only rises.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct CallCounts {
            $($(#[$doc])* pub $name: u64,)*
        }

        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $(pub(super) $name: Counter,)*
        }

        impl Counters {
            pub(super) fn read(&self) -> CallCounts {
                CallCounts { $($name: self.$name.get(),)* }
            }
        }
    };
}

counts! {
    /// Whole calls, those among them whose caller left.
    calls,
    /// Attempts that were admitted.
    attempts,
    /// Attempts among them that weren't their call's first.
    retries,
    /// Calls that failed, whatever their callers got.
    failed,
    /// Attempts that had no answer within their timeout.
    timeouts,
    /// Timeouts among them of probes.
    probe_timeouts,
    /// Calls whose deadline had passed on arrival: nothing was tried.
    deadline_refused,
    /// Attempts that the call's deadline cut short.
    deadline_cut,
    /// Calls that ended with a refusal by the engine.
    rejected,
    /// Retries that the budget refused.
    budget_refused,
    /// Retries that couldn't end before the deadline.
    deadline_kept,
    /// Retries that weren't made because the body was longer than what is kept.
    not_replayable,
    /// Failures answered by a value.
    fallback_value,
    /// Failures answered by a function.
    fallback_function,
    /// Failures answered by the last good answer.
    fallback_stale,
    /// Fallbacks that failed, too.
    fallback_failed,
}
