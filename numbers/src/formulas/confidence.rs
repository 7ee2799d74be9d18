//! How sure an observed share or count is.

use super::{is_share, poisson_at_least};

/// A range that holds the true value with the confidence asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies within, ends included.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    const NONE: Self = Self { low: f64::NAN, high: f64::NAN };
}

/// Returns the share of which `hits` in `trials` are a sample, with `confidence` (0.95, say): the score interval.
///
/// E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", Journal of the American Statistical Association 22 (1927).
/// Right also for no hits at all, where the usual one has no width; 0 to 1 without trials. NaN if `hits` are more than `trials` or `confidence`
/// isn't between 0 and 1.
#[must_use]
pub fn wilson(hits: u64, trials: u64, confidence: f64) -> Interval {
    if hits > trials || !is_share(confidence) || confidence == 1.0 {
        return Interval::NONE;
    }
    if trials == 0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let z = normal_quantile(0.5 + confidence / 2.0);
    let (n, share) = (trials as f64, hits as f64 / trials as f64);
    let scale = 1.0 + z * z / n;
    let middle = (share + z * z / (2.0 * n)) / scale;
    let half = z / scale * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    // The ends are exact where the sample is.
    let low = if hits == 0 { 0.0 } else { (middle - half).max(0.0) };
    let high = if hits == trials { 1.0 } else { (middle + half).min(1.0) };
    Interval { low, high }
}

/// Returns the mean of which `count` events are a sample, with `confidence`: the exact interval of Poisson tails.
///
/// F. Garwood, "Fiducial Limits for the Poisson Distribution", Biometrika 28 (1936), by bisection. NaN if `confidence` isn't between 0 and 1.
#[must_use]
pub fn poisson_interval(count: u64, confidence: f64) -> Interval {
    if !is_share(confidence) || confidence == 1.0 {
        return Interval::NONE;
    }
    let tail = (1.0 - confidence) / 2.0;
    let highest = count as f64 + 50.0 * (count as f64).sqrt() + 100.0;
    // Both are probabilities that rise with the mean.
    let low = if count == 0 { 0.0 } else { bisect(highest, |mean| poisson_at_least(count, mean) >= tail) };
    Interval { low, high: bisect(highest, |mean| poisson_at_least(count + 1, mean) >= 1.0 - tail) }
}

/// The least number from 0 to `high` that is enough, to its last bits.
fn bisect(mut high: f64, is_enough: impl Fn(f64) -> bool) -> f64 {
    let mut low = 0.0;
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if is_enough(middle) { high = middle } else { low = middle }
    }
    high
}

/// Returns the value under which `share` of a standard normal distribution lies; 1.96 for 0.975. Right to about 1e-9; NaN unless `share` is
/// between 0 and 1.
///
/// P. J. Acklam's rational approximation (2003), relative error 1.15e-9.
#[must_use]
pub fn normal_quantile(share: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] =
        [7.784_695_709_041_462e-3, 3.224_671_290_700_398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416, 1.0];
    const EDGE: f64 = 0.024_25;
    fn polynomial(coefficients: &[f64], x: f64) -> f64 {
        coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
    }
    if !is_share(share) || share == 0.0 || share == 1.0 {
        return f64::NAN;
    }
    let tail = |share: f64| {
        // The same bits everywhere: simulations draw from it.
        let x = (-2.0 * libm::log(share)).sqrt();
        polynomial(&C, x) / polynomial(&D, x)
    };
    if share < EDGE {
        tail(share)
    } else if share > 1.0 - EDGE {
        -tail(1.0 - share)
    } else {
        let x = share - 0.5;
        polynomial(&A, x * x) * x / polynomial(&B, x * x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() <= 1e-4
    }

    #[test]
    fn normal_quantiles_are_those_of_the_tables() {
        for (share, quantile) in
            [(0.5, 0.0), (0.975, 1.959_964), (0.995, 2.575_829), (0.9995, 3.290_527), (0.01, -2.326_348)]
        {
            assert!((normal_quantile(share) - quantile).abs() < 1e-6, "{share}");
        }
        assert!(normal_quantile(0.0).is_nan() && normal_quantile(1.0).is_nan() && normal_quantile(f64::NAN).is_nan());
    }

    #[test]
    fn wilson_intervals_are_those_of_the_literature() {
        // R. G. Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in Medicine 17 (1998), table I, method 3.
        for (hits, trials, low, high) in
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
        {
            let interval = wilson(hits, trials, 0.95);
            assert!(close(interval.low, low) && close(interval.high, high), "{interval:?}");
        }
        assert_eq!(wilson(0, 0, 0.95), Interval { low: 0.0, high: 1.0 });
        assert_eq!(wilson(7, 7, 0.95).high, 1.0);
        assert!(wilson(2, 1, 0.95).low.is_nan() && wilson(1, 2, 1.0).low.is_nan());
    }

    #[test]
    fn poisson_intervals_are_garwoods() {
        for (count, low, high) in
            [(0, 0.0, 3.6889), (1, 0.0253, 5.5716), (10, 4.7954, 18.3904), (100, 81.3640, 121.6270)]
        {
            let interval = poisson_interval(count, 0.95);
            assert!(close(interval.low, low) && (interval.high - high).abs() < 1e-3, "{count}: {interval:?}");
        }
        assert!(poisson_interval(3, 1.0).high.is_nan());
        assert!(poisson_interval(3, 0.9).contains(3.0) && !poisson_interval(3, 0.9).contains(9.0));
    }
}
