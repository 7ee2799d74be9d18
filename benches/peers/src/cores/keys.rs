//! The keys that are asked for, and in which order: drawn before anything is timed.

/// What a target is called by: 38 bytes, host and port.
pub type Key = String;

/// How calls spread over keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// All threads ask for one.
    Hot,
    /// Each thread asks for one of its own. They were made one after another, as the upstreams of one file are.
    Own,
    /// Any of 10,000, each as often.
    Uniform,
    /// Any of a million, each as often.
    Million,
    /// Any of 10,000, the n-th most frequent 1/n as often as the first.
    Zipf,
}

impl Keys {
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Own => "own",
            Self::Uniform => "uniform 10k",
            Self::Million => "uniform 1M",
            Self::Zipf => "zipf 10k",
        }
    }

    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Hot => "one hot key among 10,000",
            Self::Own => "a key per thread among 10,000",
            Self::Uniform => "uniform over 10,000 keys",
            Self::Million => "uniform over 1,000,000 keys",
            Self::Zipf => "Zipf (s = 1) over 10,000 keys",
        }
    }

    /// How many keys are known.
    #[must_use]
    pub fn count(self) -> usize {
        if self == Self::Million { 1_000_000 } else { 10_000 }
    }

    /// Whether a thread asks for more than one key.
    #[must_use]
    pub fn is_spread(self) -> bool {
        !matches!(self, Self::Hot | Self::Own)
    }
}

/// The name of the n-th key.
#[must_use]
pub fn name(number: usize) -> Key {
    format!("core-{number:07}.eu-west-1.example.com:443")
}

/// The keys of a case, and each thread's order of asking.
#[derive(Debug)]
pub struct KeySet {
    pub all: Vec<Key>,
    keys: Keys,
    orders: Vec<Vec<u32>>,
}

impl KeySet {
    #[must_use]
    pub fn new(keys: Keys, seats: usize) -> Self {
        let all = (0..keys.count()).map(name).collect();
        let orders = if keys.is_spread() { (0..seats).map(|seat| order(keys, seat)).collect() } else { Vec::new() };
        Self { all, keys, orders }
    }

    /// The place of the key that a thread resolves, and asks for if it asks for one only.
    #[must_use]
    pub fn home(&self, seat: usize) -> usize {
        if self.keys == Keys::Own { seat } else { 0 }
    }

    /// The places of the keys that a thread asks for, one after another; none if it asks for its home only.
    #[must_use]
    pub fn order(&self, seat: usize) -> Option<&[u32]> {
        self.orders.get(seat).map(Vec::as_slice)
    }
}

/// As many draws as keys at least, so that the caches meet them all.
fn order(keys: Keys, seat: usize) -> Vec<u32> {
    let count = keys.count();
    let mut random = Random(seat as u64);
    let draws = count.next_power_of_two().max(1 << 16);
    if keys != Keys::Zipf {
        return (0..draws).map(|_| random.below(count) as u32).collect();
    }
    // Shuffled alike for all threads: neighbours in frequency aren't neighbours in memory.
    let mut places: Vec<u32> = (0..count as u32).collect();
    let mut shuffle = Random(u64::MAX);
    for place in (1..count).rev() {
        places.swap(place, shuffle.below(place + 1));
    }
    let zipf = Zipf::new(count);
    (0..draws).map(|_| places[zipf.rank(random.unit())]).collect()
}

/// Ranks drawn with a frequency of 1/rank.
#[derive(Debug)]
pub struct Zipf {
    sums: Vec<f64>,
}

impl Zipf {
    #[must_use]
    pub fn new(ranks: usize) -> Self {
        let add = |sum: &mut f64, rank| {
            *sum += 1.0 / rank as f64;
            Some(*sum)
        };
        Self { sums: (1..=ranks).scan(0.0, add).collect() }
    }

    /// The rank, from 0, that a draw from [0, 1) falls on.
    #[must_use]
    pub fn rank(&self, draw: f64) -> usize {
        let end = draw * self.sums.last().copied().unwrap_or_default();
        self.sums.partition_point(|sum| *sum <= end).min(self.sums.len() - 1)
    }
}

/// SplitMix64: the same draws in every run.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, end: usize) -> usize {
        (self.unit() * end as f64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_38_bytes_and_differ() {
        assert_eq!(name(0).len(), "core-banking.eu-west-1.example.com:443".len());
        assert_eq!(name(999_999).len(), 38);
        assert_ne!(name(1), name(2));
    }

    #[test]
    fn zipf_draws_the_first_twice_as_often_as_the_second() {
        let zipf = Zipf::new(10_000);
        let mut random = Random(7);
        let mut counts = vec![0_u32; 10_000];
        for _ in 0..1_000_000 {
            counts[zipf.rank(random.unit())] += 1;
        }
        // The first has 1/H(10,000) of all: 1/9.7876.
        assert!((counts[0] as f64 / 1_000_000.0 - 1.0 / 9.7876).abs() < 0.002, "{}", counts[0]);
        for rank in [2, 10, 100] {
            let share = f64::from(counts[0]) / f64::from(counts[rank - 1]);
            assert!((share / rank as f64 - 1.0).abs() < 0.15, "rank {rank}: {share}");
        }
        assert_eq!((zipf.rank(0.0), zipf.rank(1.0)), (0, 9_999));
    }

    #[test]
    fn uniform_orders_meet_nearly_all_keys_and_differ_between_threads() {
        let keys = KeySet::new(Keys::Uniform, 2);
        let mut met: Vec<u32> = keys.order(0).unwrap().to_vec();
        met.sort_unstable();
        met.dedup();
        assert!(met.len() > 9_900 && met.iter().all(|place| *place < 10_000), "{}", met.len());
        assert_ne!(keys.order(0), keys.order(1));
    }

    #[test]
    fn own_keys_are_one_a_thread() {
        let keys = KeySet::new(Keys::Own, 2);
        assert_eq!((keys.home(0), keys.home(1), keys.order(0)), (0, 1, None));
        assert_eq!(KeySet::new(Keys::Hot, 2).home(1), 0);
    }
}
