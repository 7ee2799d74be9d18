use super::super::Adaptive;
use super::*;

const MS: u64 = 1_000_000;

/// Windows of calls, one after the other.
struct Bed {
    rules: Rules,
    samples: Samples,
    control: Control,
    now: u64,
}

impl Bed {
    fn new(adaptive: Adaptive, max: u32) -> Self {
        let rules = adaptive.rules(max).unwrap();
        let (samples, now) = (Samples::default(), 5 * MS);
        let control = Control::begin(&rules, &samples, Now::from_nanos(now));
        Self { rules, samples, control, now }
    }

    fn gradient() -> Self {
        Self::new(Adaptive::gradient().start(100), 1_000)
    }

    fn limit(&self) -> u32 {
        self.control.limit(&self.rules)
    }

    /// A second with that many calls in flight, of that many milliseconds; the limit after it.
    fn second(&mut self, in_flight: u64, millis: u64, failed: bool) -> u32 {
        for _ in 0..in_flight * 1_000 / millis {
            self.samples.add(0, false, failed, millis * MS);
        }
        self.now += 1_000 * MS;
        assert!(self.control.close(&self.rules, &self.samples, Now::from_nanos(self.now)));
        self.limit()
    }

    /// Past the first probe, with a baseline of 10 ms.
    fn probed() -> Self {
        let mut bed = Self::gradient();
        assert_eq!((bed.limit(), bed.second(50, 10, false), bed.control.baseline()), (50, 100, Some(10 * MS)));
        assert_eq!(bed.second(100, 99, false), 100, "the calls of the limit before");
        bed
    }
}

#[test]
fn it_begins_with_a_probe_at_half_of_the_limit() {
    let mut bed = Bed::probed();
    assert_eq!([bed.second(100, 10, false), bed.second(130, 11, false)], [130, 169]);
    // Twice the baseline: halfway to half of it, and no more haste from there on.
    assert_eq!(bed.second(169, 20, false), 126);
    assert_eq!([bed.second(126, 30, false), bed.second(126, 11, false)], [126, 131]);
    assert_eq!((bed.control.latency(), bed.control.baseline()), (Some(11 * MS), Some(10 * MS)));
}

#[test]
fn a_window_goes_on_until_it_holds_enough() {
    let mut bed = Bed::gradient();
    let ends = bed.now + SHORTEST;
    assert!(!bed.control.close(&bed.rules, &bed.samples, Now::from_nanos(ends - 1)));
    for call in 1..=ENOUGH_TO_PROBE {
        assert_eq!(bed.control.baseline(), None, "{call} calls");
        bed.samples.add(0, false, false, 4 * MS);
        bed.now += SHORTEST;
        assert!(bed.control.close(&bed.rules, &bed.samples, Now::from_nanos(bed.now)));
    }
    assert_eq!(bed.control.baseline(), Some(4 * MS));
}

#[test]
fn a_probe_is_due_after_twenty_times_what_the_last_took_and_replaces_the_baseline() {
    let mut bed = Bed::probed();
    let mut limits: Vec<u32> = (0..19).map(|_| bed.second(bed.limit().into(), 10, false)).collect();
    let half = limits.pop().unwrap();
    assert_eq!((limits.last(), half), (Some(&1_000), 500));
    // Dropped, then measured.
    assert_eq!((bed.second(500, 77, false), bed.second(500, 8, false)), (500, 1_000));
    assert_eq!(bed.control.baseline(), Some(8 * MS));
}

#[test]
fn a_limit_that_has_halved_is_given_back_if_the_target_is_slower_without_a_queue() {
    let mut bed = Bed::probed();
    assert_eq!(bed.second(100, 40, false), 75);
    assert_eq!(bed.second(75, 40, false), 75, "dropped");
    assert_eq!(bed.second(75, 40, false), 56);
    assert_eq!(bed.second(56, 40, false), 56, "dropped");
    assert_eq!(bed.second(56, 40, false), 31, "three quarters of 42, which is less than half");
    // Dropped, too few, measured.
    assert_eq!([40; 3].map(|millis| bed.second(31, millis, false)), [31, 31, 100]);
    assert_eq!(bed.control.baseline(), Some(40 * MS));
    // And stays down where it was a queue.
    let mut bed = Bed::probed();
    let limits: Vec<u32> = [40, 40, 40, 40, 40, 10, 10].map(|millis| bed.second(60, millis, false)).into();
    assert_eq!(limits[4..], [31, 31, 42]);
}

#[test]
fn a_target_with_calls_to_spare_keeps_its_limit_and_needs_no_probe() {
    let mut bed = Bed::probed();
    for second in 0..60 {
        assert_eq!(bed.second(49, if second < 30 { 11 } else { 90 }, false), 100);
    }
    let baseline = bed.control.baseline().unwrap();
    assert!((10_900_000..=11_000_000).contains(&baseline), "tolerable ones are followed: {baseline}");
}

#[test]
fn failures_back_off_and_quick_ones_are_no_latency() {
    let mut bed = Bed::probed();
    for _ in 0..2_000 {
        bed.samples.add(0, false, true, MS / 1_000);
    }
    assert_eq!(bed.second(90, 10, false), 90, "2,000 of 11,000");
    assert_eq!(bed.control.latency(), Some(10 * MS));
    let mut bed = Bed::probed();
    assert_eq!(bed.second(80, 100, true), 75, "slow ones are");
    assert_eq!(bed.control.baseline(), Some(10 * MS));
}

#[test]
fn a_probe_without_successes_goes_on() {
    let mut bed = Bed::gradient();
    assert_eq!((bed.second(50, 10, true), bed.control.baseline()), (50, None));
    assert_eq!((bed.second(50, 10, false), bed.control.baseline()), (100, Some(10 * MS)));
}

#[test]
fn a_much_lower_latency_is_the_baseline_at_once() {
    let mut bed = Bed::probed();
    bed.second(100, 9, false);
    assert_eq!(bed.control.baseline(), Some(9 * MS), "11,111 calls: by 4 % it can't be chance");
    bed.now -= 990 * MS;
    bed.samples.end_at(0);
    bed.second(2, 8, false);
    assert_eq!(bed.control.baseline(), Some(9 * MS), "250 calls: by 11 % it can");
}

#[test]
fn the_limit_stays_within_its_bounds() {
    let mut bed = Bed::new(Adaptive::aimd(std::time::Duration::from_millis(20)).min(10).start(11), 12);
    let limits: Vec<u32> = [10, 10, 10].map(|millis| bed.second(12, millis, false)).into();
    assert_eq!(limits, [12, 12, 12]);
    let limits: Vec<u32> = [21, 10, 21, 10, 21, 10].map(|millis| bed.second(50, millis, false)).into();
    assert_eq!(limits, [10, 10, 10, 10, 10, 11]);
    assert_eq!(bed.control.baseline(), None);
}

#[test]
fn a_clock_that_steps_back_or_stands_still_ends_no_window_and_divides_by_nothing() {
    let mut bed = Bed::probed();
    let before = bed.now;
    bed.now = 0;
    assert!(!bed.control.close(&bed.rules, &bed.samples, Now::default()));
    bed.samples.end_at(0);
    for _ in 0..1_000 {
        bed.samples.add(0, false, false, 0);
    }
    assert!(bed.control.close(&bed.rules, &bed.samples, Now::default()));
    assert_eq!((bed.limit(), bed.control.latency()), (130, Some(1)));
    bed.now = before;
    bed.samples.end_at(u64::MAX);
    assert!(bed.control.close(&bed.rules, &bed.samples, Now::from_nanos(u64::MAX - 1)) || bed.limit() == 130);
}
