//! What the threads of a round share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use portcullis::{Engine, Rejection};

use crate::faults::Faults;
use crate::plan::{FORGET_AFTER, IDLE_AFTER, LOOSE, MAX_TARGETS, PINNED, Planned, Random};
use crate::seat::Seat;
use crate::time::Time;
use crate::witness::{Reader, Witness};

/// A round's engine, clock and bookkeeping.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) engine: Arc<Engine>,
    pub(crate) time: Time,
    /// The pinned keys, then the loose ones.
    pub(crate) seats: Vec<Seat>,
    pub(crate) plans: Vec<Planned>,
    pub(crate) witness: Arc<Witness>,
    pub(crate) reader: Mutex<Reader>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) counts: Arc<Counts>,
    /// Whether the log has room for all, so that holes can be told from what fell out of it.
    pub(crate) logs_all: bool,
}

/// What was done and met, over all rounds: a run that met too little proves nothing.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) operations: AtomicU64,
    pub(crate) exhausted: AtomicU64,
    pub(crate) observers_panicked: AtomicU64,
    pub(crate) probes: AtomicU64,
    pub(crate) stale: AtomicU64,
    pub(crate) panics: AtomicU64,
    pub(crate) leaked: AtomicU64,
    pub(crate) saturated: AtomicU64,
    pub(crate) evicted: AtomicU64,
    pub(crate) hints: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) takeovers: AtomicU64,
}

impl Counts {
    pub(crate) fn add(counter: &AtomicU64, more: u64) {
        counter.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }

    /// Adds a round to the whole run.
    pub(crate) fn absorb(&self, round: &Self) {
        for ((_, sum), (_, more)) in self.named().into_iter().zip(round.named()) {
            Self::add(sum, Self::get(more));
        }
    }

    /// Each counter with its name.
    #[must_use]
    pub(crate) fn named(&self) -> [(&'static str, &AtomicU64); 12] {
        [
            ("operations", &self.operations),
            ("probes", &self.probes),
            ("stale outcomes", &self.stale),
            ("panics while holding", &self.panics),
            ("panics of observers", &self.observers_panicked),
            ("permits leaked", &self.leaked),
            ("saturated", &self.saturated),
            ("exhausted", &self.exhausted),
            ("evictions", &self.evicted),
            ("transitions", &self.events),
            ("leases taken over", &self.takeovers),
            ("hints tested", &self.hints),
        ]
    }
}

impl Stage {
    #[must_use]
    pub(crate) fn new(seed: u64, round: u64) -> Self {
        let mut random = Random::new(seed, round, u64::MAX);
        let plans = crate::plan::policies();
        let planned = random.pick(&plans).clone();
        let (clock, time) = Time::new(round % 4 == 3);
        let logs_all = round.is_multiple_of(2);
        let engine = Engine::builder().policy(planned.policy.clone()).clock(clock).max_targets(MAX_TARGETS).seed(seed);
        let engine = engine.idle_after(IDLE_AFTER).forget_after(FORGET_AFTER);
        let engine: Arc<Engine> = Arc::new(engine.log_capacity(if logs_all { 1 << 22 } else { 256 }).build());
        let witness = Arc::new(Witness::default());
        let hears = Arc::clone(&witness);
        engine.observe(move |transition: &portcullis::Transition| hears.hear(transition)).forever();
        let reader = Mutex::new(Reader::new(engine.subscribe(1 << 14)));
        // Every other pinned key is changed by hand.
        let seat = |number: usize| {
            let steady = (number >= PINNED || number.is_multiple_of(2)).then(|| planned.clone());
            Seat::new(format!("{}-{number}", if number < PINNED { "pinned" } else { "loose" }), steady)
        };
        let seats = (0..PINNED + LOOSE).map(seat).collect();
        let (faults, counts) = (Arc::default(), Arc::default());
        Self { engine, time, seats, plans, witness, reader, faults, counts, logs_all }
    }

    /// Counts refusals for want of room; everything that can make a target comes by here.
    pub(crate) fn noted<T>(&self, answer: Result<T, Rejection>) -> Option<T> {
        note(&self.counts, answer)
    }

    pub(crate) fn drain(&self) {
        if let Ok(mut reader) = self.reader.try_lock() {
            reader.drain(&self.faults);
        }
    }

    /// Events that the subscription accounts for, once all are in.
    #[must_use]
    pub(crate) fn accounted(&self) -> u64 {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        reader.drain(&self.faults);
        reader.accounted()
    }

    #[must_use]
    pub(crate) fn seat_of(&self, name: &str) -> Option<&Seat> {
        self.seats.iter().find(|seat| seat.name == name)
    }
}

/// As [`Stage::noted`], for observers, which outlive no stage.
pub(crate) fn note<T>(counts: &Counts, answer: Result<T, Rejection>) -> Option<T> {
    if let Err(Rejection::Exhausted { .. }) = answer {
        Counts::add(&counts.exhausted, 1);
    }
    answer.ok()
}
