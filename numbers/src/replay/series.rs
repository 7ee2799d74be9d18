//! What happened over time, in a bounded number of buckets however long the log is.

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;
const HOUR: u64 = 3_600 * SECOND;

/// The widths of buckets in nanoseconds: round ones, each of which divides the next, so that buckets only ever merge.
const WIDTHS: [u64; 21] = [
    MILLISECOND,
    2 * MILLISECOND,
    10 * MILLISECOND,
    20 * MILLISECOND,
    100 * MILLISECOND,
    200 * MILLISECOND,
    SECOND,
    2 * SECOND,
    10 * SECOND,
    30 * SECOND,
    60 * SECOND,
    300 * SECOND,
    600 * SECOND,
    1_800 * SECOND,
    HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    24 * HOUR,
    168 * HOUR,
    336 * HOUR,
];

/// Buckets that all targets' series may have together.
const ALL: u64 = 300_000;
/// And that one may have: two pixels of a plot each.
const MOST: u64 = 300;
/// As few tell nothing any more.
const LEAST: u64 = 30;

/// Which bucket a moment is in: one scale for all series of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scale {
    step: usize,
}

impl Scale {
    pub(crate) fn width(self) -> u64 {
        WIDTHS[self.step.min(WIDTHS.len() - 1)]
    }

    /// The bucket of a moment, in nanoseconds since the beginning.
    pub(crate) fn bucket(self, at: u64) -> u32 {
        u32::try_from(at / self.width()).unwrap_or(u32::MAX)
    }

    /// The narrowest scale, no narrower than this one, on which series of so many targets may last from `begin` to `end`.
    pub(crate) fn fit(self, begin: u64, end: u64, targets: usize) -> Self {
        let most = (ALL / (targets as u64).max(1)).clamp(LEAST, MOST);
        let fits = |step: &usize| end / WIDTHS[*step] - begin / WIDTHS[*step] < most;
        let step = (self.step..WIDTHS.len()).find(fits).unwrap_or(WIDTHS.len() - 1);
        Self { step }
    }
}

/// What can be said of a longer time by two shorter ones.
pub(crate) trait Merge {
    /// Adds what came later.
    fn merge(&mut self, later: &Self);
}

/// Buckets in which something happened, in order.
#[derive(Clone, Debug)]
pub(crate) struct Series<T> {
    points: Vec<(u32, T)>,
}

impl<T> Default for Series<T> {
    fn default() -> Self {
        Self { points: Vec::new() }
    }
}

impl<T: Merge> Series<T> {
    /// The point of a bucket that is not before any other, made of `new` if it isn't there.
    pub(crate) fn at(&mut self, bucket: u32, new: impl FnOnce() -> T) -> &mut T {
        let is_there = self.points.last().is_some_and(|(last, _)| *last >= bucket);
        if !is_there {
            self.points.push((bucket, new()));
        }
        let last = self.points.len() - 1;
        &mut self.points[last].1
    }

    /// Moves everything to a wider scale.
    pub(crate) fn widen(&mut self, from: Scale, to: Scale) {
        let factor = u32::try_from(to.width() / from.width()).unwrap_or(u32::MAX);
        if factor <= 1 {
            return;
        }
        self.points.dedup_by(|(bucket, later), (kept, earlier)| {
            let is_same = *bucket / factor == *kept / factor;
            if is_same {
                earlier.merge(later);
            }
            is_same
        });
        self.points.iter_mut().for_each(|(bucket, _)| *bucket /= factor);
        self.points.shrink_to_fit();
    }

    pub(crate) fn points(&self) -> &[(u32, T)] {
        &self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Merge for u64 {
        fn merge(&mut self, later: &Self) {
            *self += later;
        }
    }

    #[test]
    fn each_width_divides_the_next() {
        assert!(WIDTHS.windows(2).all(|pair| pair[1] > pair[0] && pair[1] % pair[0] == 0));
    }

    #[test]
    fn a_scale_widens_only_as_far_as_it_must() {
        let scale = Scale::default();
        assert_eq!(scale.fit(0, 299 * MILLISECOND, 1).width(), MILLISECOND);
        assert_eq!(scale.fit(0, 300 * MILLISECOND, 1).width(), 2 * MILLISECOND);
        assert_eq!(scale.fit(24 * HOUR, 25 * HOUR, 1).width(), 30 * SECOND);
        assert_eq!(scale.fit(0, 24 * HOUR, 1).width(), 300 * SECOND);
        assert_eq!(scale.fit(0, 24 * HOUR, 1_000_000).width(), HOUR);
        assert_eq!(scale.fit(0, u64::MAX, 1).width(), 336 * HOUR);
        let wide = scale.fit(0, 24 * HOUR, 1);
        assert_eq!(wide.fit(0, 1, 1), wide);
    }

    #[test]
    fn buckets_merge_and_lose_nothing() {
        let narrow = Scale::default();
        let wide = narrow.fit(0, 2_999 * MILLISECOND, 1);
        assert_eq!(wide.width(), 10 * MILLISECOND);
        let mut series = Series::default();
        for at in [0_u64, 4, 9, 9, 10, 37] {
            *series.at(narrow.bucket(at * MILLISECOND), || 0) += 1;
        }
        assert_eq!(series.points(), [(0, 1), (4, 1), (9, 2), (10, 1), (37, 1)]);
        series.widen(narrow, wide);
        assert_eq!(series.points(), [(0, 4), (1, 1), (3, 1)]);
        // One that is narrower changes nothing.
        series.widen(wide, wide);
        assert_eq!(series.points().len(), 3);
    }
}
