//! A key with what the threads know of it: their own count of everything, to be compared with the engine's.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use portcullis::{Outcome, Rejection, Settled, Snapshot};

use crate::faults::Faults;
use crate::plan::{MOST_LEAKED, Planned};

#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) name: String,
    /// The policy and limit that it keeps all round; none if they are changed by hand.
    pub(crate) steady: Option<Planned>,
    pub(crate) tally: Tally,
    /// Permits that threads know to hold: raised after the admission, lowered before the release.
    live: AtomicU32,
    /// The same of probes, by generation.
    probes: Mutex<HashMap<u32, u32>>,
    leaked: AtomicU32,
}

/// Calls and refusals as their callers saw them. What the caller can't know is counted apart.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    admitted: AtomicU64,
    /// Successes, failures and ignored that were said to be recorded.
    recorded: [AtomicU64; 3],
    /// The same through `call`, which doesn't say.
    judged: [AtomicU64; 3],
    stale: AtomicU64,
    dropped: AtomicU64,
    panicked: AtomicU64,
    /// By reason: open, probing, saturated, forced.
    refused: [AtomicU64; 4],
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn index(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Success => 0,
        Outcome::Failure => 1,
        _ => 2,
    }
}

impl Tally {
    pub(crate) fn settled(&self, outcome: Outcome, settled: Settled) {
        add(if settled == Settled::Recorded { &self.recorded[index(outcome)] } else { &self.stale });
    }

    pub(crate) fn judged(&self, outcome: Outcome) {
        add(&self.judged[index(outcome)]);
    }

    pub(crate) fn dropped(&self) {
        add(&self.dropped);
    }

    pub(crate) fn panicked(&self) {
        add(&self.panicked);
    }

    pub(crate) fn refused(&self, rejection: Rejection) {
        match rejection {
            Rejection::Open { .. } => add(&self.refused[0]),
            Rejection::Probing { .. } => add(&self.refused[1]),
            Rejection::Saturated { .. } => add(&self.refused[2]),
            Rejection::ForcedOpen => add(&self.refused[3]),
            _ => {}
        }
    }

    /// Admissions that nobody takes a permit of, such as those of `call`.
    pub(crate) fn passed(&self) {
        add(&self.admitted);
    }
}

impl Seat {
    #[must_use]
    pub(crate) fn new(name: String, steady: Option<Planned>) -> Self {
        let (live, probes, leaked) = (AtomicU32::new(0), Mutex::default(), AtomicU32::new(0));
        Self { name, steady, tally: Tally::default(), live, probes, leaked }
    }

    /// Invariants 1 and 7, as seen by whoever was let in. `probe` is the generation of a probe.
    pub(crate) fn entered(&self, probe: Option<u32>, faults: &Faults) {
        self.tally.passed();
        let live = self.live.fetch_add(1, Ordering::SeqCst) + 1;
        let limit = self.steady.as_ref().map_or(u32::MAX, |planned| planned.limit);
        faults.check(live <= limit, || format!("{}: {live} in flight, limit {limit}", self.name));
        if let Some(generation) = probe {
            let most = self.steady.as_ref().map_or(31, |planned| planned.max_probes);
            let mut probes = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
            let probes = probes.entry(generation).or_default();
            *probes += 1;
            faults.check(*probes <= most, || format!("{}: {probes} probes of {generation}, most {most}", self.name));
        }
    }

    /// Before a probe is settled.
    pub(crate) fn leaves_probe(&self, probe: Option<u32>) {
        if let Some(generation) = probe {
            let mut probes = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(probes) = probes.get_mut(&generation) {
                *probes -= 1;
            }
        }
    }

    /// Before a permit is given back.
    pub(crate) fn leaves(&self) {
        self.live.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether one more permit may be leaked.
    pub(crate) fn may_leak(&self) -> bool {
        let more = |leaked| (leaked < MOST_LEAKED).then_some(leaked + 1);
        self.leaked.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more).is_ok()
    }

    #[must_use]
    pub(crate) fn leaked(&self) -> u32 {
        self.leaked.load(Ordering::SeqCst)
    }

    /// Invariant 2: the engine's totals are what the callers saw. For keys that stayed all round, at rest.
    pub(crate) fn compare(&self, now: &Snapshot, faults: &Faults) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (totals, refusals, tally) = (now.totals, now.refusals, &self.tally);
        let what = |field| format!("{} {field}", self.name);
        faults.equal(&what("admitted"), totals.admitted, get(&tally.admitted));
        let refused = [refusals.open, refusals.probing, refusals.saturated, refusals.forced];
        faults.equal(&what("refused"), refused, [0, 1, 2, 3].map(|n| get(&tally.refused[n])));
        let least = [0, 1, 2].map(|n| get(&tally.recorded[n]));
        let judged = [0, 1, 2].map(|n| get(&tally.judged[n]));
        let (dropped, panicked, stale) = (get(&tally.dropped), get(&tally.panicked), get(&tally.stale));
        let unsaid: u64 = judged.iter().sum::<u64>() + dropped + panicked;
        let ranges = [
            ("success", totals.success, least[0], judged[0]),
            ("failure", totals.failure, least[1], judged[1] + panicked),
            ("ignored", totals.ignored, least[2], judged[2]),
            ("abandoned", totals.abandoned, 0, dropped),
            ("stale", totals.stale, stale, unsaid),
        ];
        for (field, got, least, more) in ranges {
            faults.check((least..=least + more).contains(&got), || {
                format!("{}: {got}, expected {least} and at most {more} more", what(field))
            });
        }
    }
}

/// Invariant 2 for any target: whoever was let in has ended once, or is still there.
pub(crate) fn conserved(name: &str, now: &Snapshot, leaked: u32, faults: &Faults) {
    let totals = now.totals;
    let ended = totals.success + totals.failure + totals.ignored + totals.abandoned + totals.stale;
    faults.equal(&format!("{name} in flight"), now.in_flight, leaked);
    faults.equal(&format!("{name} ended"), ended + u64::from(leaked), totals.admitted);
}

#[cfg(test)]
mod tests {
    use portcullis::{Engine, State};

    use super::*;

    fn found(wrong: impl FnOnce(&Seat)) -> u64 {
        let (engine, faults) = (Engine::<String>::builder().build(), Faults::default());
        let seat = Seat::new("t".to_owned(), None);
        let permit = engine.admit("t").unwrap();
        seat.entered(None, &faults);
        seat.tally.settled(Outcome::Success, permit.success());
        wrong(&seat);
        let now = engine.snapshot("t").unwrap();
        assert_eq!(now.state, State::Closed);
        seat.compare(&now, &faults);
        conserved("t", &now, seat.leaked(), &faults);
        faults.found()
    }

    #[test]
    fn what_one_side_only_saw_is_found() {
        assert_eq!(found(|_| ()), 0);
        assert!(found(|seat| seat.tally.passed()) > 0);
        assert!(found(|seat| seat.tally.refused(Rejection::ForcedOpen)) > 0);
        assert!(found(|seat| seat.tally.settled(Outcome::Success, Settled::Recorded)) > 0);
        assert!(found(|seat| assert!(seat.may_leak())) > 0);
    }

    #[test]
    fn more_than_the_limit_or_the_probes_is_found() {
        let planned = crate::plan::policies().remove(0);
        let (seat, faults) = (Seat::new("t".to_owned(), Some(planned)), Faults::default());
        seat.entered(Some(7), &faults);
        seat.entered(Some(8), &faults);
        assert_eq!(faults.found(), 0);
        seat.entered(Some(8), &faults);
        assert_eq!(faults.found(), 1, "a second probe of one generation");
        seat.entered(None, &faults);
        assert_eq!(faults.found(), 2, "a fourth of three");
    }
}
