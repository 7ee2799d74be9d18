//! What a call of a healthy target must know of its policy, in one word:
//! `shadowed | watched | sheds sheddable | sheds normal | adaptive | calls | streak | timed`.
//!
//! Beside the policy itself, so that the usual call, a success that changes nothing, needn't look it up.

use super::Policy;
use crate::bits::Field;
use crate::priority::Priority;
use crate::window::Geometry;

const TIMED: Field = Field::lowest(1);
const STREAK: Field = TIMED.above(1);
const CALLS: Field = STREAK.above(7);
const ADAPTIVE: Field = CALLS.above(1);
const SHEDS_NORMAL: Field = ADAPTIVE.above(1);
const SHEDS_SHEDDABLE: Field = SHEDS_NORMAL.above(1);
const WATCHED: Field = SHEDS_SHEDDABLE.above(1);
/// Of the target, not of its policy: whether candidates for another follow its calls.
const SHADOWED: Field = WATCHED.above(1);
const _: () = assert!(SHADOWED.end() <= 32);

/// No number of calls: the policy must be asked.
const ASK: u64 = CALLS.max();
/// Neither: a window of time.
const TIME: u64 = ASK - 1;
const _: () = assert!(TIME > crate::window::MOST_CALLS as u64);

/// A policy's brief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Brief(u32);

/// What a success must look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clean {
    /// None that a success could change.
    Nothing,
    /// The last so many calls, without a failure.
    Calls(u32),
    /// A window of time, among whose calls it counts.
    Time,
    /// Only the policy can tell.
    Ask,
}

impl Brief {
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    /// Whether a call's start must be stamped.
    #[inline]
    pub(crate) const fn is_timed(self) -> bool {
        TIMED.get(self.0 as u64) == 1
    }

    /// The same, for a target whose calls are followed by shadows or not.
    pub(crate) const fn shadowed(self, is_shadowed: bool) -> Self {
        Self(SHADOWED.set(self.0 as u64, is_shadowed as u64) as u32)
    }

    #[inline]
    pub(crate) const fn is_shadowed(self) -> bool {
        SHADOWED.get(self.0 as u64) == 1
    }

    #[inline]
    pub(crate) const fn is_timed_or_shadowed(self) -> bool {
        self.0 as u64 & (TIMED.one() | SHADOWED.one()) != 0
    }

    /// Whether calls are counted while they run; they are timed then.
    #[inline]
    pub(crate) const fn is_watched(self) -> bool {
        WATCHED.get(self.0 as u64) == 1
    }

    /// The same, but that calls aren't counted while they run.
    #[inline]
    pub(crate) const fn unwatched(self) -> Self {
        Self(self.0 & !(WATCHED.one() as u32))
    }

    /// Whether a success takes a look at more than its window: at failures in a row, or it is counted as running.
    #[inline]
    pub(crate) const fn has_streak_or_is_watched(self) -> bool {
        self.0 as u64 & (STREAK.one() | WATCHED.one()) != 0
    }

    /// Whether the limit follows what calls take.
    #[inline]
    pub(crate) const fn is_adaptive(self) -> bool {
        ADAPTIVE.get(self.0 as u64) == 1
    }

    /// Whether calls of this priority stop at a share of the limit, be it in the eyes of a shadow.
    #[inline]
    pub(crate) const fn sheds(self, priority: Priority) -> bool {
        match priority {
            Priority::Critical => false,
            Priority::Normal => self.0 as u64 & (SHEDS_NORMAL.one() | SHADOWED.one()) != 0,
            Priority::Sheddable => self.0 as u64 & (SHEDS_SHEDDABLE.one() | SHADOWED.one()) != 0,
        }
    }

    #[inline]
    pub(crate) const fn clean(self) -> Clean {
        match CALLS.get(self.0 as u64) {
            0 => Clean::Nothing,
            ASK => Clean::Ask,
            TIME => Clean::Time,
            calls => Clean::Calls(calls as u32),
        }
    }
}

impl From<&Policy> for Brief {
    fn from(policy: &Policy) -> Self {
        let calls = match policy.geometry {
            // How long a success took must be seen.
            _ if policy.slow_call_nanos.is_some() || policy.adaptive.is_some() => ASK,
            None => 0,
            Some(Geometry::Calls(calls)) => calls.into(),
            Some(Geometry::Time { .. }) => TIME,
        };
        let bits = WATCHED.set(TIMED.set(0, policy.times_calls().into()), policy.stall.is_some().into());
        let sheds = |priority| policy.share(priority).is_some().into();
        let bits = SHEDS_NORMAL.set(bits, sheds(Priority::Normal));
        let bits = SHEDS_SHEDDABLE.set(bits, sheds(Priority::Sheddable));
        let bits = CALLS.set(STREAK.set(bits, policy.counts_streaks().into()), calls);
        Self(ADAPTIVE.set(bits, policy.adaptive.is_some().into()) as u32)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{OnAbandon, PolicyBuilder, Window};

    fn brief(policy: PolicyBuilder) -> (bool, bool, Clean) {
        let brief = Brief::from(&policy.build().unwrap());
        (brief.is_timed(), brief.unwatched().has_streak_or_is_watched(), brief.clean())
    }

    #[test]
    fn a_brief_says_what_its_policy_does() {
        let policy = Policy::builder;
        let second = Duration::from_secs(1);
        assert_eq!(brief(policy()), (false, false, Clean::Calls(100)));
        assert_eq!(brief(policy().window(Window::calls(1))), (false, false, Clean::Calls(1)));
        assert_eq!(brief(policy().no_window().consecutive_failures(3)), (false, true, Clean::Nothing));
        assert_eq!(brief(policy().max_in_flight(9).ramp(second)), (false, true, Clean::Calls(100)));
        assert_eq!(brief(policy().window(Window::time(second))), (false, false, Clean::Time));
        assert_eq!(brief(policy().slow_call(second)), (true, false, Clean::Ask));
        let adaptive = policy().adaptive(crate::Adaptive::gradient());
        assert!(Brief::from(&adaptive.clone().build().unwrap()).is_adaptive());
        assert!(!Brief::from(&policy().build().unwrap()).is_adaptive());
        assert_eq!(brief(adaptive), (true, false, Clean::Ask));
        let abandoned = policy().on_abandon(OnAbandon::FailureAfter(second));
        assert_eq!(brief(abandoned), (true, false, Clean::Calls(100)));
        let stalls = || policy().stall_after(second).stalled_calls(1);
        assert_eq!(brief(stalls()), (true, false, Clean::Calls(100)));
        let is_watched = |policy: PolicyBuilder| Brief::from(&policy.build().unwrap()).is_watched();
        assert!(is_watched(stalls()) && !is_watched(policy().slow_call(second)));
        assert!(Brief::from(&stalls().build().unwrap()).has_streak_or_is_watched());
        let plain = Brief::from(&policy().build().unwrap());
        let shadowed = plain.shadowed(true);
        assert!(shadowed.is_shadowed() && shadowed.is_timed_or_shadowed() && !plain.is_timed_or_shadowed());
        assert_eq!((shadowed.clean(), shadowed.shadowed(false)), (plain.clean(), plain));
    }

    #[test]
    fn a_brief_knows_who_is_shed() {
        let sheds = |policy: PolicyBuilder| {
            let brief = Brief::from(&policy.build().unwrap());
            [Priority::Critical, Priority::Normal, Priority::Sheddable].map(|priority| brief.sheds(priority))
        };
        assert_eq!(sheds(Policy::builder()), [false; 3]);
        let shadowed = Brief::from(&Policy::default()).shadowed(true);
        assert_eq!([Priority::Critical, Priority::Normal].map(|priority| shadowed.sheds(priority)), [false, true]);
        assert_eq!(sheds(Policy::builder().sheddable_share(0.5)), [false, false, true]);
        assert_eq!(sheds(Policy::builder().normal_share(0.9)), [false, true, true]);
    }
}
