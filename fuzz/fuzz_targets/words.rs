//! Any bits decode, step, and stay within their fields: gate, streak, calls, buckets, pool, magazine.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use portcullis::internals::{
    Admission, Counts, Gate, GateWord, Now, ProbeRules, Recorded, Step, buckets, calls, lane, magazine, marks, pool,
    ring, streak,
};

#[derive(Arbitrary, Debug)]
struct Input {
    gate: u64,
    now: u64,
    generation: u32,
    max_probes: u8,
    successes: u8,
    lease: u32,
    wait: u64,
    streak: u64,
    calls: u128,
    size: u8,
    failed: bool,
    bucket: u64,
    start: u64,
    width: u32,
    buckets: u8,
    pool: u64,
    permits: u8,
    limit: u32,
    magazine: u64,
    version: u64,
}

fuzz_target!(|input: Input| {
    gate(&input);
    windows(&input);
    bulkhead(&input);
});

fn gate(input: &Input) {
    let word = GateWord::from_bits(input.gate);
    let now = Now::from_nanos(input.now);
    let rules = ProbeRules {
        max_probes: u32::from(input.max_probes % 31) + 1,
        successes_to_close: u32::from(input.successes % 31) + 1,
        lease_s: u64::from(input.lease) + 1,
    };
    let _ = format!("{word:?}");
    if let Admission::Probe(next) = word.admit(now, rules) {
        assert!(next.probes() >= 1 && next.lease_end() >= now.second().min((1 << 26) - 1));
    }
    let generation = if input.failed { word.generation() } else { input.generation & 0xf_ffff };
    let steps = [
        word.trip(generation, input.wait),
        word.probe_succeeded(generation, now, rules),
        word.probe_failed(generation, now, |_| input.wait),
        word.probe_returned(generation),
        word.release(now),
        word.restart(now),
        word.forget(now),
    ];
    for (index, step) in steps.into_iter().enumerate() {
        match step {
            Step::Stale => {}
            // Events of another generation write nothing; those done by hand ask for none.
            Step::Stay(next) => assert_eq!((next.generation(), generation), (word.generation(), word.generation())),
            Step::Move(next) => {
                assert_eq!(next.generation(), word.generation().wrapping_add(1) & 0xf_ffff);
                assert!(index >= 4 || generation == word.generation());
            }
        }
    }
}

fn windows(input: &Input) {
    let word = streak::Word::from_bits(input.streak);
    assert!(word.raised().count() >= word.count() && word.raised().generation() == word.generation());
    let size = u32::from(input.size % 100) + 1;
    let word = calls::Word::from_bits(input.calls);
    let next = word.recorded(input.failed, size);
    let (held, failures) = next.counts(size);
    assert!(held >= 1 && held <= size && failures <= held && failures >= u32::from(input.failed));
    assert_eq!(next.generation(), word.generation());
    let word = buckets::Word::from_bits(input.bucket);
    let next = word.recorded(input.generation, input.start);
    assert!(next.count() >= 1 && next.start() >= word.start());
    let view = buckets::View::new(
        input.generation,
        input.start % (1 << 36),
        u64::from(input.width) + 1,
        u32::from(input.buckets % 64) + 1,
        Now::from_nanos(input.now),
    );
    // Whatever the moment, a call is counted once, and found again by its bucket; a new word is of generation 0.
    let (lane, marks, gate) = (lane::Lane::default(), marks::Marks::default(), Gate::default());
    let window = || ring::counts(&view, &marks, &std::iter::once(&lane));
    assert_eq!(window(), Counts::default());
    let recorded = ring::Ring::new(&lane, std::iter::once(&lane), &marks).record(&view, input.failed, false, &gate);
    assert_eq!(recorded != Recorded::Stale, input.generation.is_multiple_of(16));
    if recorded != Recorded::Stale {
        assert_eq!((window().calls, window().failures), (1, u64::from(input.failed)));
        let is_again = match lane.count_again(input.generation, Now::from_nanos(input.now).tick()) {
            lane::Again::Counted(_) => 1,
            lane::Again::Met | lane::Again::Elsewhere => 0,
        };
        assert_eq!(window().calls, 1 + is_again);
    }
}

fn bulkhead(input: &Input) {
    let word = pool::Word::from_bits(input.pool);
    if let Some(next) = word.taken(u64::from(input.permits)) {
        assert!(next.out() <= next.limit() && !next.is_retired() && !next.is_waiting());
        assert_eq!((next.limit(), next.open()), (word.limit(), word.open()));
    }
    if let Some(next) = word.announced() {
        assert_eq!((next.out(), next.open()), (word.out() + 1, word.open() + 1));
    }
    if let Some(next) = word.granted(input.failed) {
        assert!(word.is_waiting() && next.is_waiting() != input.failed);
        assert_eq!((next.out(), next.open(), next.limit()), (word.out() + 1, word.open(), word.limit()));
    }
    if let Some(next) = word.awaited() {
        assert!(next.is_waiting() && word.taken(1).is_none() && next.deserted() == word.deserted());
    }
    let limited = word.limited(input.limit);
    assert_eq!((limited.out(), limited.open(), limited.is_retired()), (word.out(), word.open(), word.is_retired()));
    let word = magazine::Word::from_bits(input.magazine);
    if let Some(next) = word.taken(u64::from(input.permits)) {
        assert_eq!(next.stash() + u64::from(input.permits), word.stash());
        assert_eq!((next.settled(), next.version()), (word.settled(), word.version()));
    }
    assert!(word.opened(input.version).is_open_under(input.version));
    let closed = word.closed();
    assert_eq!((closed.stash(), closed.is_closed(), closed.settled()), (0, true, word.settled()));
}
