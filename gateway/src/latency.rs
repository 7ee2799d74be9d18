//! How long a target takes to answer, in counts that many threads add to.
//!
//! Fixed buckets, fifteen to the decade from 100 us to 100 s: a quantile is off by a quarter at most, and usually by much less. They are made by the first
//! call, take 744 bytes, and a call costs two additions.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// What the recent past is at least, while somebody looks: it is between this and twice as much.
const RECENT: Duration = Duration::from_secs(5);

/// Hundredths of the decade's begin.
const STEPS: [u64; 15] = [100, 125, 150, 175, 200, 250, 300, 350, 400, 450, 500, 600, 700, 800, 900];
const DECADES: usize = 6;
/// Upper bounds of the buckets but the last, which has none: nanoseconds, themselves included.
const BOUNDS: [u64; DECADES * STEPS.len() + 1] = bounds();
const BUCKETS: usize = BOUNDS.len() + 1;

/// The bounds that are shown to others: every third or so, as others have them, from 500 us to 60 s.
pub(crate) const SHOWN: [u64; 16] = {
    let (ms, s) = (1_000_000, 1_000_000_000);
    let [a, b, c, d, e] = [ms / 2, ms, 5 * ms / 2, 5 * ms, 10 * ms];
    let [f, g, h, i, j] = [25 * ms, 50 * ms, 100 * ms, 250 * ms, 500 * ms];
    [a, b, c, d, e, f, g, h, i, j, s, 5 * s / 2, 5 * s, 10 * s, 25 * s, 60 * s]
};

const fn bounds() -> [u64; DECADES * STEPS.len() + 1] {
    let mut bounds = [0; DECADES * STEPS.len() + 1];
    let (mut n, mut hundredth) = (0, 1_000);
    while n < bounds.len() {
        bounds[n] = STEPS[n % STEPS.len()] * hundredth;
        n += 1;
        if n.is_multiple_of(STEPS.len()) {
            hundredth *= 10;
        }
    }
    bounds
}

/// The latencies of one target.
#[derive(Debug)]
pub(crate) struct Latency {
    counts: OnceLock<Box<Counts>>,
    marks: Mutex<VecDeque<Mark>>,
}

#[derive(Debug)]
struct Counts {
    calls: [AtomicU64; BUCKETS],
    nanos: AtomicU64,
}

/// What had been counted when somebody looked.
#[derive(Debug)]
struct Mark {
    at: Instant,
    counted: Reading,
}

/// Latencies that were counted up to a moment, or between two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    calls: [u64; BUCKETS],
    nanos: u64,
}

impl Latency {
    /// Nothing is counted before `now`.
    pub(crate) fn new(now: Instant) -> Self {
        let marks = VecDeque::from([Mark { at: now, counted: Reading::none() }]);
        Self { counts: OnceLock::new(), marks: Mutex::new(marks) }
    }

    pub(crate) fn record(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|&bound| bound < nanos);
        let counts = self.counts.get_or_init(Counts::none);
        counts.nanos.fetch_add(nanos, Ordering::Relaxed);
        counts.calls[bucket].fetch_add(1, Ordering::Relaxed);
    }

    /// All that was ever counted. A call that ends just now may be in it in part.
    pub(crate) fn total(&self) -> Reading {
        let Some(counts) = self.counts.get() else { return Reading::none() };
        let calls = std::array::from_fn(|bucket| counts.calls[bucket].load(Ordering::Relaxed));
        Reading { calls, nanos: counts.nanos.load(Ordering::Relaxed) }
    }

    /// The last 5 to 10 seconds while somebody looks every second, and what they were; longer ago if nobody looked for longer: nobody keeps time
    /// for those who don't look.
    pub(crate) fn recent(&self, now: Instant) -> (Reading, Duration) {
        let total = self.total();
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        if marks.back().is_none_or(|last| now.saturating_duration_since(last.at) >= RECENT) {
            if marks.len() > 1 {
                marks.pop_front();
            }
            marks.push_back(Mark { at: now, counted: total.clone() });
        }
        match marks.front() {
            Some(mark) => (total.since(&mark.counted), now.saturating_duration_since(mark.at)),
            None => (total, Duration::ZERO),
        }
    }
}

impl Counts {
    fn none() -> Box<Self> {
        Box::new(Self { calls: [const { AtomicU64::new(0) }; BUCKETS], nanos: AtomicU64::new(0) })
    }
}

impl Reading {
    pub(crate) fn none() -> Self {
        Self { calls: [0; BUCKETS], nanos: 0 }
    }

    /// How many calls there were up to each bound of [`SHOWN`] and above the one before; the last above all.
    pub(crate) fn shown(&self) -> [u64; SHOWN.len() + 1] {
        let mut shown = [0; SHOWN.len() + 1];
        for (bucket, calls) in self.calls.iter().enumerate() {
            let bound = BOUNDS.get(bucket).copied().unwrap_or(u64::MAX);
            shown[SHOWN.partition_point(|&shown| shown < bound)] += calls;
        }
        shown
    }

    /// All latencies together.
    pub(crate) fn nanos(&self) -> u64 {
        self.nanos
    }

    /// What was counted after `earlier`, a reading of the same target.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let calls = std::array::from_fn(|bucket| self.calls[bucket].saturating_sub(earlier.calls[bucket]));
        Self { calls, nanos: self.nanos.saturating_sub(earlier.nanos) }
    }

    pub(crate) fn count(&self) -> u64 {
        self.calls.iter().sum()
    }

    /// The latency that `part` of the calls (0 to 1) were no slower than, taking those of a bucket for evenly spread; none without calls. What was
    /// slower than 100 s counts as 100 s.
    pub(crate) fn quantile(&self, part: f64) -> Option<Duration> {
        let count = self.count();
        let rank = part.clamp(0.0, 1.0) * count as f64;
        let mut below = 0.0;
        for (bucket, &calls) in self.calls.iter().enumerate().filter(|&(_, &calls)| calls > 0) {
            let calls = calls as f64;
            if below + calls >= rank {
                let low = bucket.checked_sub(1).map_or(0, |before| BOUNDS[before]);
                let high = BOUNDS.get(bucket).copied().unwrap_or(low);
                let into = (high - low) as f64 * ((rank - below) / calls);
                return Some(Duration::from_nanos(low + into as u64));
            }
            below += calls;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn of(all: impl IntoIterator<Item = Duration>) -> Reading {
        let latency = Latency::new(Instant::now());
        all.into_iter().for_each(|took| latency.record(took));
        latency.total()
    }

    #[test]
    fn bounds_rise_from_100_us_to_100_s_by_a_quarter_at_most() {
        assert_eq!((BOUNDS[0], BOUNDS[BOUNDS.len() - 1]), (100_000, 100_000_000_000));
        assert!(BOUNDS.windows(2).all(|two| two[0] < two[1] && two[1] * 4 <= two[0] * 5));
        assert_eq!(size_of::<Counts>(), 744);
    }

    #[test]
    fn quantiles_of_known_calls_are_off_by_a_quarter_at_most() {
        for scale in [Duration::from_micros(3), Duration::from_micros(110), 7 * MS, 31 * MS] {
            let reading = of((1..=1_000).map(|n| n * scale));
            for part in [0.1, 0.5, 0.9, 0.99] {
                let (told, right) =
                    (reading.quantile(part).unwrap().as_secs_f64(), part * 1_000.0 * scale.as_secs_f64());
                assert!((told / right - 1.0).abs() <= 0.25, "{told} for {right}");
            }
        }
    }

    #[test]
    fn every_bound_that_is_shown_is_one_that_is_counted_by() {
        assert!(SHOWN.iter().all(|shown| BOUNDS.contains(shown)) && SHOWN.is_sorted());
        let shown = of([MS / 2, MS / 2 + Duration::from_nanos(1), 60_000 * MS, 61_000 * MS, Duration::MAX]).shown();
        assert_eq!((shown[0], shown[1], shown[SHOWN.len() - 1], shown[SHOWN.len()]), (1, 1, 1, 2));
    }

    #[test]
    fn without_calls_there_is_no_quantile_and_what_never_ends_is_slow() {
        assert_eq!(of([]).quantile(0.5), None);
        assert_eq!(of([Duration::MAX]).quantile(0.5), Some(Duration::from_secs(100)));
        assert_eq!(of([Duration::ZERO]).quantile(1.0), Some(Duration::from_micros(100)));
    }

    #[test]
    fn who_looks_every_second_sees_the_last_ten_and_no_more() {
        let begin = Instant::now();
        let at = |second: u64| begin + Duration::from_secs(second);
        let latency = Latency::new(begin);
        for second in 1..=60 {
            latency.record(MS);
            let (reading, length) = latency.recent(at(second));
            assert_eq!(reading.count(), length.as_secs());
            assert!(second < 10 || (5..10).contains(&length.as_secs()), "{length:?} at {second}");
        }
        let (reading, length) = latency.recent(at(66));
        assert_eq!((reading.count(), length.as_secs()), (0, 6));
        assert_eq!(latency.total().count(), 60);
    }
}
