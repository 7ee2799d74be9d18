//! Latencies, counted in bins that are narrow against what they hold.

/// Bins of an octave.
const PARTS: u64 = 16;

/// How often each latency was met: exact below 16 ns, in bins of a sixteenth of an octave above, so that a quantile is right within 3.2 %.
///
/// Only bins that were met take room, 16 bytes each: calls to one target fill some twenty of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies {
    /// In order of the bin.
    bins: Vec<(u16, u64)>,
}

impl Latencies {
    pub(crate) fn add(&mut self, nanos: u64) {
        self.count(bin(nanos), 1);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (bin, calls) in &other.bins {
            self.count(*bin, *calls);
        }
    }

    fn count(&mut self, bin: u16, calls: u64) {
        match self.bins.binary_search_by_key(&bin, |(bin, _)| *bin) {
            Ok(place) => self.bins[place].1 += calls,
            Err(place) => self.bins.insert(place, (bin, calls)),
        }
    }

    /// The latency in nanoseconds that a share of the calls, in thousandths, didn't exceed; none without calls.
    pub(crate) fn quantile(&self, milli: u64) -> Option<u64> {
        let calls: u64 = self.bins.iter().map(|(_, calls)| calls).sum();
        let rank = (u128::from(calls) * u128::from(milli)).div_ceil(1_000).max(1);
        let mut below = 0_u128;
        let reached = self.bins.iter().find(|(_, calls)| {
            below += u128::from(*calls);
            below >= rank
        });
        reached.map(|(bin, _)| middle(*bin))
    }
}

fn bin(nanos: u64) -> u16 {
    if nanos < PARTS {
        return nanos as u16;
    }
    let octave = u64::from(nanos.ilog2());
    let part = (nanos >> (octave - 4)) % PARTS;
    ((octave - 3) * PARTS + part) as u16
}

fn middle(bin: u16) -> u64 {
    let (octave, part) = (u64::from(bin) / PARTS, u64::from(bin) % PARTS);
    if octave == 0 {
        return part;
    }
    let width = 1_u64 << (octave - 1);
    (PARTS + part) * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_holds_its_middle_and_is_narrow() {
        for nanos in (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) + (1 << bit) / 3]).chain([0, u64::MAX]) {
            let middle = middle(bin(nanos));
            assert_eq!(bin(middle), bin(nanos), "{nanos}");
            assert!(middle.abs_diff(nanos) as f64 <= nanos as f64 * 0.032, "{nanos}: {middle}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_calls() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(500), None);
        (0..10).for_each(|nanos| latencies.add(nanos));
        assert_eq!([0, 500, 501, 900, 1_000].map(|milli| latencies.quantile(milli).unwrap()), [0, 4, 5, 8, 9]);
        let mut twice = latencies.clone();
        twice.merge(&latencies);
        assert_eq!(twice.quantile(500), Some(4));
    }
}
