//! A window of time, over the stripes of a target.
//!
//! Each stripe counts its calls in a [`Lane`]; failures and slow calls are [`Marks`] that all share. What must not be lost: if a
//! success on one stripe completes what a failure on another lacked, one of the two sees it. Each writes its own word and then reads
//! the other's (the store-buffer pattern), so both are sequentially consistent: the call's count and the success's look at the
//! sign, and a fence between the failure's sign and its look at the calls. So whoever settles last sees all that settled before.

use super::buckets::{View, Word};
use super::lane::{Again, Lane};
use super::marks::{Marks, is_quiet};
use super::{Counts, Recorded};
use crate::gate;
use crate::sync::{Ordering, Role, fence, role};

/// Sequentially consistent: between what an outcome wrote and what it reads of the other stripes.
const LOOK: Role = role("ring.look", Ordering::SeqCst);

/// The window as a call on one stripe meets it.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'a, L> {
    own: &'a Lane,
    /// Every stripe's, the own among them.
    lanes: L,
    marks: &'a Marks,
}

/// What came of counting a success without a look at the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Counted, and there is nothing to judge.
    Done,
    /// Counted; to be [judged](Ring::judge) by a policy that is read now.
    Judge(Word),
    /// Not counted: another thread was met there.
    Met,
    /// Not counted: the last call's bucket isn't this one's.
    Elsewhere,
}

/// Counts a success of the gate's `generation` where the last call of its stripe was.
#[inline]
pub fn count_at_once(own: &Lane, marks: &Marks, generation: u32, tick: u64) -> Counted {
    let call = match own.count_again(generation, tick) {
        Again::Counted(call) => call,
        Again::Met => return Counted::Met,
        Again::Elsewhere => return Counted::Elsewhere,
    };
    let sign = marks.sign();
    if is_quiet(sign, generation, tick) || own.is_judged(generation, call, sign) {
        return Counted::Done;
    }
    Counted::Judge(sign)
}

impl<'a, L: Iterator<Item = &'a Lane> + Clone> Ring<'a, L> {
    pub const fn new(own: &'a Lane, lanes: L, marks: &'a Marks) -> Self {
        Self { own, lanes, marks }
    }

    /// Counts an outcome.
    pub fn record(&self, view: &View, failed: bool, slow: bool, gate: &gate::Cell) -> Recorded<()> {
        // The call first: whoever sees a failure sees its call.
        let Recorded::Counted(call) = self.own.record(view, gate) else { return Recorded::Stale };
        // A bucket that stands still takes no failures either.
        if (failed || slow) && !call.is_full() {
            self.marks.mark(view, call.start(), failed, slow, gate);
        }
        Recorded::Counted(())
    }

    /// The window as it is once an outcome was counted, within what others record meanwhile; nothing if no rule can be met. `could_meet`
    /// tells by failures, slow calls and some of the calls whether one could.
    #[must_use]
    pub fn look(&self, view: &View, could_meet: impl Fn(Counts) -> bool) -> Option<Counts> {
        fence(LOOK);
        let known = if self.marks.is_quiet(view) {
            Counts { calls: 1, failures: 0, slow: 0 }
        } else {
            let [failures, slow] = self.marks.sums(view);
            // With more calls each rate is lower still, so those that are known without the other stripes are often enough.
            Counts { calls: self.own.calls_at_least(view), failures, slow }
        };
        if !could_meet(known) {
            return None;
        }
        let counts = counts(view, self.marks, &self.lanes);
        self.own.note_calls(view, counts.calls);
        Some(counts).filter(|counts| could_meet(*counts))
    }

    /// As [`Self::look`], for a success that was counted at once and then found `sign`: that no rule can be met its stripe remembers.
    ///
    /// The policy must have been read after the sign: a policy that comes later changes the sign.
    #[must_use]
    pub fn judge(&self, view: &View, sign: Word, could_meet: impl Fn(Counts) -> bool) -> Option<Counts> {
        let counts = self.look(view, could_meet);
        if counts.is_none() {
            self.own.note_judged(view, sign);
        }
        counts
    }
}

/// The sums over the window, each bucket as it is met: outcomes recorded meanwhile may or may not be in them.
#[must_use]
pub fn counts<'a>(view: &View, marks: &Marks, lanes: &(impl Iterator<Item = &'a Lane> + Clone)) -> Counts {
    let mut sums = Counts::default();
    for index in 0..view.buckets() {
        // The parts before the whole, so that a part never exceeds it.
        let marks = marks.at(index);
        // Where one stripe is a lap ahead of another, the newer start is what the bucket is now.
        let (mut start, mut calls) = (0, 0);
        for word in lanes.clone().filter_map(|lane| lane.bucket(index)).filter(|word| view.covers(*word)) {
            if word.start() > start {
                (start, calls) = (word.start(), 0);
            }
            if word.start() == start {
                calls += word.count();
            }
        }
        // A part with another start belongs to the bucket that was here a lap ago.
        let part = |word: Word| if view.covers(word) && word.start() == start { word.count().min(calls) } else { 0 };
        let [failures, slow] = marks.map_or([0; 2], |words| words.map(part));
        sums = Counts { calls: sums.calls + calls, failures: sums.failures + failures, slow: sums.slow + slow };
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::super::buckets::Cell;
    use super::*;
    use crate::time::Now;

    /// A window of ten buckets of a second over two stripes, in generation 1.
    #[derive(Debug)]
    struct Window {
        lanes: [Lane; 2],
        marks: Marks,
        gate: gate::Cell,
    }

    fn at(millis: u64) -> View {
        View::new(1, 0, 1_000, 10, Now::from_millis(millis))
    }

    impl Window {
        fn new() -> Self {
            let gate = gate::Cell::from_bits(gate::Word::closed(1, 0).bits());
            Self { lanes: Default::default(), marks: Marks::default(), gate }
        }

        fn ring(&self, stripe: usize) -> Ring<'_, impl Iterator<Item = &Lane> + Clone> {
            Ring::new(&self.lanes[stripe], self.lanes.iter(), &self.marks)
        }

        /// As an outcome sees it by a rule of half of the calls.
        fn record(&self, stripe: usize, view: &View, failed: bool, slow: bool) -> Recorded<Counts> {
            let ring = self.ring(stripe);
            let Recorded::Counted(()) = ring.record(view, failed, slow, &self.gate) else { return Recorded::Stale };
            let is_half = |counts: Counts| counts.failures * 2 >= counts.calls || counts.slow * 2 >= counts.calls;
            Recorded::Counted(ring.look(view, is_half).unwrap_or_default())
        }

        fn failed(&self, stripe: usize, millis: u64) -> Recorded<Counts> {
            self.record(stripe, &at(millis), true, false)
        }

        fn succeeded(&self, stripe: usize, millis: u64) -> Recorded<Counts> {
            self.record(stripe, &at(millis), false, false)
        }

        fn sums(&self, millis: u64) -> (u64, u64, u64) {
            let Counts { calls, failures, slow } = counts(&at(millis), &self.marks, &self.lanes.iter());
            (calls, failures, slow)
        }
    }

    fn seen(calls: u64, failures: u64) -> Recorded<Counts> {
        Recorded::Counted(Counts { calls, failures, slow: 0 })
    }

    #[test]
    fn an_outcome_is_seen_at_once_and_leaves_with_its_bucket() {
        let window = Window::new();
        assert_eq!(window.failed(0, 0), seen(1, 1));
        assert_eq!((window.sums(9_999), window.sums(10_000)), ((1, 1, 0), (0, 0, 0)));
    }

    #[test]
    fn any_gap_empties_the_whole_window() {
        let window = Window::new();
        let moments = [0, 1_000, 2_000, 3_000, 13_500, 100_000, 1_000_000_000_000];
        for (call, millis) in moments.into_iter().enumerate() {
            let _ = window.record(call % 2, &at(millis), true, true);
        }
        assert_eq!(window.sums(1_000_000_000_000), (1, 1, 1));
    }

    #[test]
    fn every_stripe_sees_the_calls_of_all() {
        let window = Window::new();
        for call in 0..6 {
            assert_eq!(window.succeeded(call % 2, 500 * call as u64), seen(0, 0));
        }
        for failures in 1..=6 {
            let _ = window.failed(failures % 2, 3_000);
        }
        assert_eq!(window.failed(1, 3_000), seen(13, 7));
        for _ in 0..6 {
            let _ = window.record(0, &at(3_000), false, true);
        }
        assert_eq!(window.sums(3_000), (19, 7, 6));
    }

    #[test]
    fn a_stripe_that_is_a_lap_behind_counts_no_more() {
        let window = Window::new();
        let _ = window.failed(0, 500);
        // The same bucket a lap later, on the other stripe.
        let _ = window.failed(1, 10_500);
        // As a reader whose clock lags sees it: one bucket holds one second.
        assert_eq!(window.sums(9_000), (1, 1, 0));
        assert_eq!(window.sums(10_500), (1, 1, 0));
    }

    #[test]
    fn a_success_says_what_it_saw_only_if_a_rule_could_be_met() {
        let window = Window::new();
        let _ = window.failed(0, 0);
        // Half of two; after that less than half, by the own stripe's calls and then by all.
        assert_eq!(window.succeeded(0, 0), seen(2, 1));
        assert_eq!((window.succeeded(0, 0), window.succeeded(1, 0)), (seen(0, 0), seen(0, 0)));
        let _ = window.failed(0, 0);
        let _ = window.failed(0, 0);
        assert_eq!(window.succeeded(1, 0), seen(0, 0));
        let _ = (window.failed(0, 0), window.failed(0, 0));
        assert_eq!(window.succeeded(1, 0), seen(10, 5));
        // The failures have left.
        assert_eq!(window.succeeded(1, 10_000), seen(0, 0));
    }

    #[test]
    fn the_calls_of_all_stripes_are_summed_once_in_a_bucket_if_they_are_many() {
        let window = Window::new();
        for _ in 0..9 {
            let _ = window.succeeded(1, 0);
        }
        let lane = &window.lanes[0];
        // All of its own calls failed, so it has to sum them all; after that it knows enough.
        let _ = (window.failed(0, 0), window.succeeded(0, 0));
        assert_eq!(lane.calls_at_least(&at(0)), 10);
        assert_eq!((lane.calls_at_least(&at(999)), lane.calls_at_least(&at(1_000))), (10, 2));
        assert_eq!(lane.calls_at_least(&View::new(2, 0, 1_000, 10, Now::from_millis(0))), 0);
    }

    #[test]
    fn what_was_judged_once_is_judged_again_after_a_failure_a_new_bucket_or_a_new_policy() {
        let window = Window::new();
        let lane = &window.lanes[0];
        let _ = window.failed(0, 0);
        let is_judged = |millis| {
            let Again::Counted(call) = lane.count_again(1, millis) else { return None };
            Some(lane.is_judged(1, call, window.marks.sign()))
        };
        let judge = |millis, could_meet| window.ring(0).judge(&at(millis), window.marks.sign(), |_| could_meet);
        assert_eq!(is_judged(0), Some(false));
        assert_eq!(judge(0, true), Some(Counts { calls: 2, failures: 1, slow: 0 }));
        assert_eq!(is_judged(0), Some(false));
        assert_eq!((judge(0, false), is_judged(999)), (None, Some(true)));
        let _ = window.failed(1, 0);
        assert_eq!((is_judged(0), judge(0, false), is_judged(0)), (Some(false), None, Some(true)));
        window.marks.stir(1, &window.gate);
        assert_eq!((is_judged(0), judge(0, false), is_judged(0)), (Some(false), None, Some(true)));
        let _ = window.succeeded(0, 1_000);
        assert_eq!(is_judged(1_000), Some(false));
    }

    #[test]
    fn the_sign_lasts_as_long_as_the_last_mark() {
        let window = Window::new();
        let is_quiet = |generation, millis| is_quiet(window.marks.sign(), generation, millis);
        assert!(is_quiet(1, 0));
        let _ = window.record(0, &at(3_500), false, true);
        let _ = window.failed(0, 1_500);
        assert_eq!([12_999, 13_000].map(|millis| is_quiet(1, millis)), [false, true]);
        assert!(is_quiet(2, 5_000));
    }

    #[test]
    fn a_call_is_counted_again_only_where_its_bucket_goes_on() {
        let window = Window::new();
        let lane = &window.lanes[0];
        assert_eq!(lane.count_again(1, 0), Again::Elsewhere);
        let _ = window.succeeded(0, 2_500);
        let counted = [1_999, 2_000, 2_999, 3_000].map(|tick| matches!(lane.count_again(1, tick), Again::Counted(_)));
        assert_eq!(counted, [false, true, true, false]);
        assert_eq!(lane.count_again(2, 2_500), Again::Elsewhere);
        assert_eq!(lane.count_again(17, 2_500), Again::Elsewhere);
        assert_eq!(window.sums(2_500), (3, 0, 0));
    }

    #[test]
    fn finely_cut_windows_count_in_every_bucket() {
        let window = Window::new();
        let view = |millis| View::new(1, 0, 1_000, 64, Now::from_millis(millis));
        for second in 0..128 {
            let _ = window.record(0, &view(second * 1_000), second % 2 == 0, false);
            assert!(matches!(window.lanes[0].count_again(1, second * 1_000 + 1), Again::Counted(_)));
        }
        let sums = counts(&view(127_000), &window.marks, &window.lanes.iter());
        assert_eq!(sums, Counts { calls: 128, failures: 32, slow: 0 });
        assert_eq!(window.lanes[0].newest_start(), Some(127_000));
    }

    #[test]
    fn a_reading_that_lags_counts_in_the_newer_bucket() {
        let window = Window::new();
        let one = |millis| View::new(1, 0, 1_000, 1, Now::from_millis(millis));
        let _ = window.record(0, &one(1_001), false, false);
        let _ = window.record(0, &one(999), true, false);
        let sums = counts(&one(1_001), &window.marks, &window.lanes.iter());
        assert_eq!(sums, Counts { calls: 2, failures: 1, slow: 0 });
    }

    #[test]
    fn a_window_of_another_generation_is_empty_and_its_straggler_stale() {
        let mut window = Window::new();
        let _ = window.failed(0, 500);
        window.gate = gate::Cell::from_bits(gate::Word::closed(2, 100).bits());
        let new = View::new(2, 100, 1_000, 10, Now::from_millis(600));
        assert_eq!(counts(&new, &window.marks, &window.lanes.iter()), Counts::default());
        assert_eq!(window.record(0, &new, true, false), seen(1, 1));
        assert_eq!(window.failed(0, 600), Recorded::Stale);
        assert_eq!(counts(&new, &window.marks, &window.lanes.iter()), Counts { calls: 1, failures: 1, slow: 0 });
    }

    #[test]
    fn a_window_sixteen_generations_later_is_empty() {
        let mut window = Window::new();
        let _ = window.record(0, &at(500), true, true);
        window.gate = gate::Cell::from_bits(gate::Word::closed(17, 900).bits());
        let later = View::new(17, 900, 1_000, 10, Now::from_millis(950));
        assert_eq!(counts(&later, &window.marks, &window.lanes.iter()), Counts::default());
        assert_eq!(window.record(0, &later, true, false), seen(1, 1));
    }

    #[test]
    fn a_full_bucket_stands_still_with_its_failures() {
        let window = Window::new();
        let most = u64::from(super::super::MOST_IN_TIME);
        let full = Cell::from_bits(Word::new(1, 0, most).bits());
        let window = Window { lanes: [Lane::beginning_with(full), Lane::default()], ..window };
        let _ = window.record(0, &at(0), true, true);
        assert_eq!(window.sums(0), (most, 0, 0));
        assert!(matches!(window.lanes[0].count_again(1, 0), Again::Counted(_)));
        assert_eq!(window.sums(0), (most, 0, 0));
    }

    #[test]
    fn the_end_of_ticks_stands_still_and_is_judged() {
        let window = Window::new();
        let view = View::new(1, u64::MAX >> 28, 1, 64, Now::from_nanos(u64::MAX));
        assert_eq!(window.record(0, &view, true, false), seen(1, 1));
        assert!(!is_quiet(window.marks.sign(), 1, view.start()));
        assert_eq!(window.record(0, &view, false, false), seen(2, 1));
    }
}
