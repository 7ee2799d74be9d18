//! How failures cling together while all is well: what a trip rule must not take for an outage.

/// As many calls as a window of the last calls can hold.
pub const LONGEST_STRETCH: u32 = 100;

/// The shares of failures whose longest stretches are looked for, in tenths.
pub const STRETCHES: [u32; 2] = [5, 8];

/// The worst that was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noise {
    /// The most failures in a row.
    pub run: u32,
    /// The most calls in a row of which at least the share in [`STRETCHES`] failed; [`LONGEST_STRETCH`] if a window can't be longer.
    pub stretch: [u32; STRETCHES.len()],
}

impl Noise {
    pub(super) fn or(self, other: Self) -> Self {
        Self { run: self.run.max(other.run), stretch: std::array::from_fn(|n| self.stretch[n].max(other.stretch[n])) }
    }
}

/// The last calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    /// One bit a call, newest last, 1 for a failure.
    bits: u128,
    held: u32,
    run: u32,
}

impl Tail {
    /// Takes in a call and tells how bad it looks now.
    pub(super) fn push(&mut self, failed: bool) -> Noise {
        self.bits = ((self.bits << 1) | u128::from(failed)) & ((1 << LONGEST_STRETCH) - 1);
        self.held = (self.held + 1).min(LONGEST_STRETCH);
        self.run = if failed { self.run.saturating_add(1) } else { 0 };
        if self.bits == 0 {
            return Noise::default();
        }
        Noise { run: self.run, stretch: STRETCHES.map(|tenths| self.stretch(tenths)) }
    }

    fn stretch(&self, tenths: u32) -> u32 {
        // With so many failures in all, no longer stretch can hold its share.
        let most = (self.bits.count_ones() * 10 / tenths).min(self.held);
        let holds = |calls: &u32| (self.bits & ((1 << calls) - 1)).count_ones() * 10 >= calls * tenths;
        (1..=most).rev().find(holds).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(calls: &str) -> Noise {
        let mut tail = Tail::default();
        calls.bytes().fold(Noise::default(), |worst, call| worst.or(tail.push(call == b'x')))
    }

    #[test]
    fn runs_and_stretches_are_the_longest_there_were() {
        assert_eq!(worst("....."), Noise { run: 0, stretch: [0, 0] });
        assert_eq!(worst("..x.."), Noise { run: 1, stretch: [2, 1] });
        assert_eq!(worst(".xxx...x"), Noise { run: 3, stretch: [8, 3] });
        assert_eq!(worst("xxxx.xxxx"), Noise { run: 4, stretch: [9, 9] });
    }

    #[test]
    fn a_stretch_is_no_longer_than_a_window() {
        let noise = worst(&"x".repeat(300));
        assert_eq!(noise, Noise { run: 300, stretch: [LONGEST_STRETCH; 2] });
    }
}
