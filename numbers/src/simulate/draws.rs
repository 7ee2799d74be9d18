//! Random numbers by seed: the same on every machine, for ever.
//!
//! ChaCha with 8 rounds gives the bits, inverse distribution functions the rest, with logarithms and powers by libm: no platform's own, and no
//! table that a new version of a library could change.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::formulas::normal_quantile;

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Draws(ChaCha8Rng);

impl Draws {
    /// Starts the sequence of a seed; each `stream` of it is a sequence of its own.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut bits = ChaCha8Rng::seed_from_u64(seed);
        bits.set_stream(stream);
        Self(bits)
    }

    /// Draws evenly between 0 and 1, neither included.
    pub fn share(&mut self) -> f64 {
        // The middles of 2^52 equal parts.
        ((self.0.next_u64() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// Draws true with a probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// Draws from an exponential distribution.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.share())
    }
}

/// A distribution of times, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Times {
    /// Always the same.
    Constant(f64),
    /// Without memory, by its mean.
    Exponential(f64),
    /// Its logarithm is normal: by its median and 99th percentile.
    Lognormal {
        /// Half are shorter.
        median: f64,
        /// One in a hundred is longer.
        p99: f64,
    },
    /// A power law from `least` to `most`: few are very long.
    Pareto {
        /// The shortest.
        least: f64,
        /// The longest.
        most: f64,
        /// How fast long ones get rare; below 2 they rule the variance.
        shape: f64,
    },
    /// Any of these, equally often.
    Empirical(Vec<f64>),
}

impl Times {
    /// Draws a time, in seconds.
    pub fn draw(&self, draws: &mut Draws) -> f64 {
        match self {
            Self::Constant(time) => *time,
            Self::Exponential(mean) => draws.exponential(*mean),
            Self::Lognormal { median, p99 } => {
                let deviation = libm::log(p99 / median) / normal_quantile(0.99);
                median * libm::exp(deviation * normal_quantile(draws.share()))
            }
            Self::Pareto { least, most, shape } => {
                let beyond = 1.0 - libm::pow(least / most, *shape);
                least * libm::pow(1.0 - draws.share() * beyond, -1.0 / shape)
            }
            Self::Empirical(times) => {
                let place = (draws.share() * times.len() as f64) as usize;
                times.get(place).copied().unwrap_or(0.0)
            }
        }
    }

    /// Returns the mean, in seconds.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Constant(time) => *time,
            Self::Exponential(mean) => *mean,
            Self::Lognormal { median, p99 } => {
                let deviation = libm::log(p99 / median) / normal_quantile(0.99);
                median * libm::exp(deviation * deviation / 2.0)
            }
            Self::Pareto { least, most, shape } => {
                let beyond = 1.0 - libm::pow(least / most, *shape);
                let sum = if (shape - 1.0).abs() < 1e-9 {
                    libm::log(most / least) * least
                } else {
                    shape / (shape - 1.0) * (least - most * libm::pow(least / most, *shape))
                };
                sum / beyond
            }
            Self::Empirical(times) => times.iter().sum::<f64>() / times.len().max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_for_ever() {
        let mut draws = Draws::new(7, 0);
        let drawn: Vec<u64> = (0..3).map(|_| draws.share().to_bits()).collect();
        assert_eq!(drawn, SEVEN);
        assert_ne!(Draws::new(7, 1).share().to_bits(), SEVEN[0]);
        assert_ne!(Draws::new(8, 0).share().to_bits(), SEVEN[0]);
    }

    const SEVEN: [u64; 3] = [0x3fc4_32a9_9a11_eba4, 0x3fc5_80ac_e997_4d94, 0x3fe6_896e_1728_a493];

    #[test]
    fn times_have_the_mean_and_the_percentiles_that_they_are_named_by() {
        let kinds = [
            Times::Constant(0.1),
            Times::Exponential(0.1),
            Times::Lognormal { median: 0.05, p99: 0.2 },
            Times::Pareto { least: 0.01, most: 1.0, shape: 1.5 },
            Times::Pareto { least: 0.01, most: 1.0, shape: 1.0 },
            Times::Empirical(vec![0.1, 0.2, 0.6]),
        ];
        for times in kinds {
            let mut draws = Draws::new(1, 2);
            let mut drawn: Vec<f64> = (0..200_000).map(|_| times.draw(&mut draws)).collect();
            let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
            assert!((mean / times.mean() - 1.0).abs() < 0.02, "{times:?}: {mean} for {}", times.mean());
            drawn.sort_by(f64::total_cmp);
            if let Times::Lognormal { median, p99 } = times {
                assert!((drawn[100_000] / median - 1.0).abs() < 0.02 && (drawn[198_000] / p99 - 1.0).abs() < 0.03);
            }
            if let Times::Pareto { least, most, .. } = times {
                assert!(drawn[0] >= least && drawn[199_999] <= most);
            }
        }
    }
}
