//! Binomial and Poisson probabilities, right to about 13 digits at any size.
//!
//! The probability of one value is C. Loader's saddle-point expansion ("Fast and Accurate Computation of Binomial Probabilities", 2000), which
//! loses no digits where logarithms of factorials would; a tail is the sum from its largest term on, in about as many steps as the deviation is
//! long.

use std::f64::consts::TAU;

use super::{is_amount, is_share};

/// Returns the probability of exactly `hits` in `trials` independent trials of probability `share`; NaN unless that is 0 to 1.
#[must_use]
pub fn binomial_pmf(hits: u64, trials: u64, share: f64) -> f64 {
    if !is_share(share) {
        return f64::NAN;
    }
    if hits > trials {
        return 0.0;
    }
    let (n, k, misses) = (trials as f64, hits as f64, (trials - hits) as f64);
    if trials == 0 {
        return 1.0;
    }
    if hits == 0 {
        return libm::exp(n * libm::log1p(-share));
    }
    if misses == 0.0 {
        return libm::pow(share, n);
    }
    if share == 0.0 || share == 1.0 {
        return 0.0;
    }
    let exponent = stirling_error(trials)
        - stirling_error(hits)
        - stirling_error(trials - hits)
        - deviance(k, n * share)
        - deviance(misses, n * (1.0 - share));
    (n / (TAU * k * misses)).sqrt() * libm::exp(exponent)
}

/// Returns the probability of at least `hits` in `trials` independent trials of probability `share`; NaN unless that is 0 to 1.
#[must_use]
pub fn binomial_at_least(hits: u64, trials: u64, share: f64) -> f64 {
    if !is_share(share) {
        return f64::NAN;
    }
    if hits == 0 || hits > trials {
        return if hits == 0 { 1.0 } else { 0.0 };
    }
    let odds = share / (1.0 - share);
    if hits as f64 > trials as f64 * share {
        let up = |k: u64| (trials - k) as f64 / (k + 1) as f64 * odds;
        sum(binomial_pmf(hits, trials, share), hits..trials, up)
    } else {
        let down = |k: u64| k as f64 / (trials - k + 1) as f64 / odds;
        1.0 - sum(binomial_pmf(hits - 1, trials, share), (1..hits).rev(), down)
    }
}

/// Returns the probability of exactly `count` events where `mean` are expected; NaN unless that is finite and at least 0.
#[must_use]
pub fn poisson_pmf(count: u64, mean: f64) -> f64 {
    if !is_amount(mean) {
        return f64::NAN;
    }
    if count == 0 || mean == 0.0 {
        return if count == 0 { libm::exp(-mean) } else { 0.0 };
    }
    libm::exp(-stirling_error(count) - deviance(count as f64, mean)) / (TAU * count as f64).sqrt()
}

/// Returns the probability of at least `count` events where `mean` are expected; NaN unless that is finite and at least 0.
#[must_use]
pub fn poisson_at_least(count: u64, mean: f64) -> f64 {
    if !is_amount(mean) {
        return f64::NAN;
    }
    if count == 0 {
        return 1.0;
    }
    if count as f64 > mean {
        sum(poisson_pmf(count, mean), count..u64::MAX, |k| mean / (k + 1) as f64)
    } else {
        1.0 - sum(poisson_pmf(count - 1, mean), (1..count).rev(), |k| k as f64 / mean)
    }
}

/// The sum of terms that shrink, each from the one before by a ratio, until what is left can't change it.
fn sum(first: f64, steps: impl Iterator<Item = u64>, ratio: impl Fn(u64) -> f64) -> f64 {
    let (mut total, mut term) = (first, first);
    for step in steps {
        term *= ratio(step);
        total += term;
        if term <= total * 1e-18 {
            break;
        }
    }
    total.min(1.0)
}

/// ln(n!) less Stirling's approximation of it, for n above 0.
fn stirling_error(n: u64) -> f64 {
    let x = n as f64;
    if n <= 15 {
        let factorial: f64 = (1..=n).map(|factor| factor as f64).product();
        return libm::log(factorial) - (x + 0.5) * libm::log(x) + x - 0.5 * libm::log(TAU);
    }
    let squared = x * x;
    (1.0 / 12.0
        - (1.0 / 360.0 - (1.0 / 1260.0 - (1.0 / 1680.0 - 1.0 / 1188.0 / squared) / squared) / squared) / squared)
        / x
}

/// x ln(x / mean) + mean - x, without cancellation where both are near.
fn deviance(x: f64, mean: f64) -> f64 {
    if (x - mean).abs() >= 0.1 * (x + mean) {
        return x * libm::log(x / mean) + mean - x;
    }
    let ratio = (x - mean) / (x + mean);
    let (mut total, mut term) = ((x - mean) * ratio, 2.0 * x * ratio);
    // At most 0.1 squared smaller with each.
    for odd in (3..40).step_by(2) {
        term *= ratio * ratio;
        total += term / f64::from(odd);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64, relative: f64) -> bool {
        (left - right).abs() <= relative * right.abs()
    }

    /// Pascal's triangle: the same by additions of positive numbers only.
    fn rows(trials: usize, share: f64) -> Vec<f64> {
        (0..trials).fold(vec![1.0], |row, _| {
            let mut next = vec![0.0; row.len() + 1];
            for (hits, weight) in row.iter().enumerate() {
                next[hits] += weight * (1.0 - share);
                next[hits + 1] += weight * share;
            }
            next
        })
    }

    #[test]
    fn binomials_are_those_of_pascals_triangle() {
        for (trials, share) in [(1, 0.3), (10, 0.1), (40, 0.5), (100, 0.001), (100, 0.9)] {
            let row = rows(trials, share);
            for hits in 0..=trials {
                assert!(close(binomial_pmf(hits as u64, trials as u64, share), row[hits], 1e-12), "{hits} of {trials}");
                let tail: f64 = row[hits..].iter().rev().sum();
                assert!(close(binomial_at_least(hits as u64, trials as u64, share), tail, 1e-11), "{hits} of {trials}");
            }
        }
    }

    #[test]
    fn small_tails_are_as_exact_as_large_ones() {
        // C(100, 50) 0.001^50 0.999^50 and what is above it.
        assert!(close(binomial_pmf(50, 100, 0.001), 9.596_841_48e-122, 1e-7));
        assert!(close(poisson_at_least(100, 1.0), 3.981_281e-159, 1e-6));
        assert!(close(poisson_pmf(1_000_000, 1e6), 1.0 / (TAU * 1e6).sqrt(), 1e-7));
        assert!(close(
            binomial_at_least(500_000, 1_000_000, 0.5),
            0.5 + 0.5 * binomial_pmf(500_000, 1_000_000, 0.5),
            1e-12
        ));
    }

    #[test]
    fn the_ends_are_exact() {
        assert_eq!((binomial_pmf(0, 0, 1.0), binomial_pmf(0, 5, 0.0), binomial_pmf(5, 5, 1.0)), (1.0, 1.0, 1.0));
        assert_eq!((binomial_pmf(0, 5, 1.0), binomial_pmf(2, 5, 0.0), binomial_pmf(6, 5, 0.5)), (0.0, 0.0, 0.0));
        assert_eq!(
            (binomial_at_least(0, 5, 0.1), binomial_at_least(5, 5, 1.0), binomial_at_least(1, 5, 0.0)),
            (1.0, 1.0, 0.0)
        );
        assert_eq!((binomial_at_least(3, 5, 1.0), poisson_at_least(0, 0.0), poisson_at_least(1, 0.0)), (1.0, 1.0, 0.0));
        assert!(binomial_pmf(1, 2, 1.1).is_nan() && binomial_at_least(1, 2, f64::NAN).is_nan());
        assert!(poisson_pmf(1, -1.0).is_nan() && poisson_at_least(1, f64::INFINITY).is_nan());
    }
}
