//! Calls in flight, and servers that are all busy.

use super::{is_amount, is_share, poisson_at_least, poisson_pmf};

/// Returns the mean number of calls in flight: `per_second` × `seconds`.
///
/// Exact for any arrivals and any distribution of times, in a system that is neither filling nor emptying. J. D. C. Little, "A Proof for the
/// Queuing Formula: L = λW", Operations Research 9 (1961). Both at least 0, else NaN.
///
/// ```
/// assert_eq!(portcullis_numbers::formulas::little(100.0, 0.2), 20.0);
/// ```
#[must_use]
pub fn little(per_second: f64, seconds: f64) -> f64 {
    if is_amount(per_second) && is_amount(seconds) { per_second * seconds } else { f64::NAN }
}

/// Returns a limit by Little's law with head-room: the mean number in flight × `headroom`, rounded up, at least 1.
///
/// `headroom` is a factor of at least 1. None outside of the domain or above what an engine's limit holds (16,777,214).
///
/// ```
/// use portcullis_numbers::formulas::limit;
/// assert_eq!((limit(100.0, 0.2, 2.0), limit(50.0, 0.2, 2.0), limit(60.0, 0.05, 2.0)), (Some(40), Some(20), Some(6)));
/// ```
#[must_use]
pub fn limit(per_second: f64, seconds: f64, headroom: f64) -> Option<u32> {
    let mean = little(per_second, seconds);
    // 40.000000000000007 is 40: what the product's rounding adds is no call.
    let calls = (mean * headroom * (1.0 - 1e-12)).ceil().max(1.0);
    let fits = headroom >= 1.0 && calls < f64::from(portcullis::UNLIMITED);
    (!mean.is_nan() && fits).then_some(calls as u32)
}

/// Returns the fewest calls such that the number in flight is at most that for `share` of the time, if nothing bounds it but arrivals.
///
/// The number in flight of Poisson arrivals without a limit is Poisson distributed around Little's mean, whatever the distribution of the
/// times (M/G/∞: L. Takács, "Introduction to the Theory of Queues", 1962). Bursts or a common cause of slowness make it larger. `share` is 0
/// to below 1; none outside of the domain or above 100 million calls.
#[must_use]
pub fn in_flight_quantile(per_second: f64, seconds: f64, share: f64) -> Option<u64> {
    let mean = little(per_second, seconds);
    if mean.is_nan() || mean > 1e8 || !(0.0..1.0).contains(&share) {
        return None;
    }
    let above = 1.0 - share;
    // From ten deviations below, where hardly anything lies.
    let mut calls = (mean - 10.0 * mean.sqrt()).max(0.0) as u64;
    let mut beyond = poisson_at_least(calls + 1, mean);
    while beyond > above {
        calls += 1;
        beyond = if poisson_pmf(calls, mean) < beyond * 0.5 {
            beyond - poisson_pmf(calls, mean)
        } else {
            poisson_at_least(calls + 1, mean)
        };
    }
    Some(calls)
}

/// Returns the share of Poisson arrivals that find all of `servers` busy and are refused: Erlang's B, M/G/c/c.
///
/// That is a bulkhead without a queue. Exact for any distribution of the times. A. K. Erlang, "Solution of some Problems in the Theory of
/// Probabilities of Significance in Automatic Telephone Exchanges" (1917); by the recursion B(n) = a B(n-1) / (n + a B(n-1)), which is stable for
/// any size, in as many steps as there are servers. `erlangs` is rate × mean time, at least 0, else NaN.
#[must_use]
pub fn erlang_b(erlangs: f64, servers: u32) -> f64 {
    if !is_amount(erlangs) {
        return f64::NAN;
    }
    (1..=servers).fold(1.0, |before, server| erlangs * before / (f64::from(server) + erlangs * before))
}

/// Returns the share of Poisson arrivals that have to wait for one of `servers`: Erlang's C, M/M/c.
///
/// That is a pool with a queue that has no bound, and exponential times; 1 where the servers can't keep up (`erlangs` ≥ `servers`). Same source
/// as [`erlang_b`], from which it follows: C = cB / (c - a(1 - B)). `erlangs` is at least 0, else NaN.
///
/// ```
/// use portcullis_numbers::formulas::{erlang_c, servers_for};
/// // 20 connections pooled for four targets, or 5 for each: what a share of its own costs.
/// let pooled = erlang_c(5.0, 20);
/// assert!((pooled - 3.5216e-7).abs() < 5e-12 && (erlang_c(1.25, 5) - 9.7092e-3).abs() < 5e-8);
/// assert_eq!(servers_for(1.25, pooled), Some(11));
/// ```
#[must_use]
pub fn erlang_c(erlangs: f64, servers: u32) -> f64 {
    let blocked = erlang_b(erlangs, servers);
    if blocked.is_nan() {
        return f64::NAN;
    }
    let servers = f64::from(servers);
    if erlangs >= servers { 1.0 } else { servers * blocked / (servers - erlangs * (1.0 - blocked)) }
}

/// Returns the fewest servers with which at most `share` of the arrivals have to wait: the inverse of [`erlang_c`].
///
/// `erlangs` is 0 to 10 million, `share` above 0 to 1; else none.
#[must_use]
pub fn servers_for(erlangs: f64, share: f64) -> Option<u32> {
    if !(0.0..=1e7).contains(&erlangs) || !is_share(share) || share == 0.0 {
        return None;
    }
    // The recursion of B once through, with C at each step.
    let mut blocked = 1.0;
    for server in 1..u32::MAX {
        let servers = f64::from(server);
        blocked = erlangs * blocked / (servers + erlangs * blocked);
        if erlangs < servers && servers * blocked / (servers - erlangs * (1.0 - blocked)) <= share {
            return Some(server);
        }
    }
    None
}

/// Returns the share of Poisson arrivals that wait longer than `seconds` for one of `servers`, served in order of arrival, in exponential times of
/// mean `service_seconds`: C × e^(-(c - a) t / s).
///
/// L. Kleinrock, "Queueing Systems" I (1975), 3.5 and 5.12. 1 where the servers can't keep up. All at least 0, `service_seconds` above 0, else NaN.
#[must_use]
pub fn waits_longer(erlangs: f64, servers: u32, service_seconds: f64, seconds: f64) -> f64 {
    if !is_amount(erlangs) || !is_amount(seconds) || !is_amount(service_seconds) || service_seconds == 0.0 {
        return f64::NAN;
    }
    let spare = f64::from(servers) - erlangs;
    if spare <= 0.0 { 1.0 } else { erlang_c(erlangs, servers) * libm::exp(-spare * seconds / service_seconds) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64, relative: f64) -> bool {
        (left - right).abs() <= relative * right.abs()
    }

    #[test]
    fn a_share_of_ones_own_costs_more_connections_than_a_pool() {
        let pooled = erlang_c(5.0, 20);
        assert!(close(pooled, 3.5216e-7, 2e-5), "{pooled:e}");
        assert!(close(erlang_c(1.25, 5), 9.7092e-3, 1e-5));
        assert!(close(erlang_c(1.25, 11), 9.43e-8, 1e-3));
        assert!(erlang_c(1.25, 10) > pooled);
        let own = servers_for(1.25, pooled).unwrap();
        assert_eq!((own, 4 * own), (11, 44));
    }

    #[test]
    fn limits_are_the_mean_doubled() {
        assert_eq!(limit(100.0, 0.2, 2.0), Some(40));
        assert_eq!(limit(50.0, 0.2, 2.0), Some(20));
        assert_eq!(limit(60.0, 0.05, 2.0), Some(6));
        assert_eq!(limit(0.001, 0.05, 1.0), Some(1));
        assert_eq!(limit(100.0, 0.2, 1.01), Some(21));
    }

    #[test]
    fn erlang_b_is_the_sum_it_stands_for() {
        let (erlangs, servers) = (7.3, 9_u32);
        let weights: Vec<f64> = (0..=servers)
            .scan(1.0, |weight, n| {
                *weight *= if n == 0 { 1.0 } else { erlangs / f64::from(n) };
                Some(*weight)
            })
            .collect();
        let direct = weights[servers as usize] / weights.iter().sum::<f64>();
        assert!(close(erlang_b(erlangs, servers), direct, 1e-13));
        // Known: 10 erlangs on 10 servers.
        assert!(close(erlang_b(10.0, 10), 0.214_582_343, 1e-8));
    }

    #[test]
    fn many_servers_neither_overflow_nor_lose_digits() {
        let blocked = erlang_b(1e6, 1_000_000);
        // For as many servers as erlangs, B tends to sqrt(2 / (pi n)).
        assert!(close(blocked, (2.0 / (std::f64::consts::PI * 1e6)).sqrt(), 1e-3));
        let servers = servers_for(1e6, 1e-6).unwrap();
        assert!(erlang_c(1e6, servers) <= 1e-6 && erlang_c(1e6, servers - 1) > 1e-6);
    }

    #[test]
    fn the_number_in_flight_stays_under_its_quantile() {
        let quantile = in_flight_quantile(100.0, 0.2, 0.999).unwrap();
        assert!(poisson_at_least(quantile + 1, 20.0) <= 0.001 && poisson_at_least(quantile, 20.0) > 0.001);
        assert_eq!(in_flight_quantile(0.0, 1.0, 0.5), Some(0));
        let large = in_flight_quantile(1e6, 1.0, 0.99).unwrap();
        assert!(close(large as f64, 1e6 + 2.326 * 1e3, 1e-5));
    }

    #[test]
    fn a_wait_is_as_long_as_the_spare_servers_are_few() {
        assert!(close(waits_longer(5.0, 6, 0.1, 0.0), erlang_c(5.0, 6), 1e-15));
        assert!(close(waits_longer(5.0, 6, 0.1, 0.1), erlang_c(5.0, 6) / std::f64::consts::E, 1e-12));
        assert_eq!(waits_longer(6.0, 6, 0.1, 9.0), 1.0);
    }

    #[test]
    fn outside_of_the_domain_there_is_no_number() {
        for bad in [f64::NAN, -1.0, f64::INFINITY] {
            assert!(little(bad, 1.0).is_nan() && little(1.0, bad).is_nan());
            assert!(erlang_b(bad, 3).is_nan() && erlang_c(bad, 3).is_nan());
            assert!(waits_longer(bad, 3, 1.0, 1.0).is_nan());
            assert_eq!(
                (limit(bad, 1.0, 2.0), servers_for(bad, 0.1), in_flight_quantile(bad, 1.0, 0.5)),
                (None, None, None)
            );
        }
        assert_eq!((limit(1.0, 1.0, 0.9), limit(1e9, 1.0, 2.0), limit(1.0, 1.0, f64::NAN)), (None, None, None));
        assert_eq!((servers_for(1.0, 0.0), in_flight_quantile(1.0, 1.0, 1.0)), (None, None));
        assert_eq!((erlang_b(1.0, 0), erlang_c(1.0, 0), erlang_c(0.0, 0)), (1.0, 1.0, 1.0));
    }
}
