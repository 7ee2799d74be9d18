use std::time::Duration;

use portcullis::{Held, Outcome, Permit, Rejection, Settled, State};

use super::kit::done;
use super::model::{Answer, Model, Phase, Settings};
use crate::common::{Bench, T, ms};

const SETTINGS: [Settings; 5] = {
    let textbook = Settings {
        limit: 50,
        window: 10,
        min_calls: 5,
        streak: 4,
        wait_ms: 3_000,
        wait_max_ms: 20_000,
        probes: 1,
        successes: 1,
        lease_s: 5,
        ignored: 10,
    };
    [
        textbook,
        Settings { probes: 3, successes: 3, lease_s: 2, ignored: 2, ..textbook },
        Settings { limit: 6, probes: 2, successes: 5, wait_ms: 1, wait_max_ms: 1_000, lease_s: 1, ..textbook },
        Settings { limit: 400, window: 100, min_calls: 20, streak: 50, probes: 31, successes: 31, ..textbook },
        Settings { window: 1, min_calls: 1, streak: 1, ignored: 1, successes: 2, ..textbook },
    ]
};

pub(super) struct Random(pub(super) u64);

impl Random {
    /// 0 to `below` - 1 (xorshift64*).
    pub(super) fn draw(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below
    }
}

#[derive(Debug, Default)]
struct Seen {
    probes: u64,
    stale: u64,
    moves: u64,
    takeovers: u64,
    saturated: u64,
}

struct Walk<'e> {
    bench: &'e Bench,
    model: Model,
    random: Random,
    permits: Vec<(Permit<'e>, u64)>,
    held: Vec<Held<'e>>,
    leaked: u32,
    seen: Seen,
}

impl<'e> Walk<'e> {
    fn new(bench: &'e Bench, settings: Settings, seed: u64) -> Self {
        let (permits, held) = (Vec::new(), Vec::new());
        let (model, random) = (Model::new(settings), Random(seed));
        Self { bench, model, random, permits, held, leaked: 0, seen: Seen::default() }
    }

    fn admit(&mut self) {
        let expected = self.model.admit();
        let answer = self.bench.engine.admit(T);
        let ms_of = |duration: Duration| duration.as_millis() as u64;
        let got = match &answer {
            Ok(permit) => Answer::Permit { is_probe: permit.is_probe(), generation: permit.generation().into() },
            Err(Rejection::Open { retry_after }) => Answer::Open { retry_ms: ms_of(*retry_after) },
            Err(Rejection::Probing { retry_after }) => Answer::Probing { retry_ms: ms_of(*retry_after) },
            Err(Rejection::Saturated { .. }) => Answer::Saturated,
            Err(Rejection::ForcedOpen) => Answer::Forced,
            Err(other) => panic!("{other}"),
        };
        assert_eq!(got, expected, "{:?}", self.model);
        self.seen.saturated += u64::from(expected == Answer::Saturated);
        if let Answer::Permit { is_probe, generation } = expected {
            self.seen.probes += u64::from(is_probe);
            self.permits.extend(answer.map(|permit| (permit, generation)));
        }
    }

    fn end_one(&mut self) {
        if self.permits.is_empty() {
            return;
        }
        let (permit, generation) = self.permits.swap_remove(self.random.draw(self.permits.len() as u64) as usize);
        let outcome = match self.random.draw(10) {
            0..=4 => Outcome::Failure,
            5..=7 => Outcome::Success,
            _ => Outcome::Ignored,
        };
        let way = self.random.draw(40);
        if way == 0 && self.leaked < 3 {
            std::mem::forget(permit);
            self.leaked += 1;
            return;
        }
        if way < 6 {
            self.model.record(generation, Outcome::Ignored, true);
            self.model.in_flight -= 1;
            drop(permit);
            return;
        }
        let fate = if self.model.record(generation, outcome, false) { Settled::Recorded } else { Settled::Stale };
        if way < 12 {
            let held = permit.record(outcome);
            assert_eq!(held.settled(), fate);
            self.held.push(held);
        } else {
            assert_eq!(permit.settle(outcome), fate);
            self.model.in_flight -= 1;
        }
    }

    fn step(&mut self) {
        match self.random.draw(100) {
            0..40 => self.admit(),
            40..80 => self.end_one(),
            80..84 => {
                self.model.in_flight -= u32::from(self.held.pop().is_some());
            }
            84..96 => {
                let by = [0, 1, 7, 999, 1_000, 2_500, 30_000][self.random.draw(7) as usize];
                self.bench.advance(ms(by));
                self.model.now_ms += by;
            }
            96 => match self.random.draw(4) {
                0 => {
                    self.bench.engine.force_open(T).unwrap();
                    self.model.force(Phase::ForcedOpen);
                }
                1 => {
                    self.bench.engine.disable(T).unwrap();
                    self.model.force(Phase::Disabled);
                }
                _ => {
                    self.bench.engine.release(T).unwrap();
                    self.model.release();
                }
            },
            97 => {
                self.model.limit = [4, 6, 50, 400][self.random.draw(4) as usize];
                self.bench.engine.set_limit(T, self.model.limit).unwrap();
            }
            _ => {
                self.bench.engine.release(T).unwrap();
                self.model.release();
            }
        }
    }

    /// Invariants 1, 2, 3, 7 and 8, and everything that the model knows.
    fn check(&mut self) {
        let Some(snapshot) = self.bench.engine.snapshot(T) else { return };
        let model = &self.model;
        assert_eq!((snapshot.state, u64::from(snapshot.generation)), (model.shown(), model.generation), "{model:?}");
        assert_eq!((snapshot.in_flight, snapshot.reopens), (model.in_flight, model.reopens), "{model:?}");
        let totals = snapshot.totals;
        assert_eq!((totals.admitted, totals.stale), (model.admitted, model.stale), "{model:?}");
        let window = snapshot.window.unwrap_or_default();
        match &model.phase {
            Phase::Closed { window: calls, streak } => {
                let failures = calls.iter().filter(|failed| **failed).count() as u64;
                let expected = (calls.len() as u64, failures, *streak);
                assert_eq!((window.calls, window.failures, snapshot.streak), expected);
            }
            Phase::HalfOpen { probes, successes, .. } => {
                assert_eq!((snapshot.probes_in_flight, snapshot.probe_successes), (*probes, *successes));
            }
            _ => assert_eq!((window.calls, snapshot.streak), (0, 0)),
        }
        let ended = totals.success + totals.failure + totals.ignored + totals.abandoned + totals.stale;
        let open_ended = self.permits.len() as u64 + u64::from(self.leaked);
        // A held success may be counted when it is recorded or when its slot is given back.
        let held = self.held.len() as u64;
        assert!((totals.admitted - open_ended - held..=totals.admitted - open_ended).contains(&ended), "{totals:?}");
    }

    /// Invariant 4 (SM-42): with nothing but successes it closes within twice the wait and a lease, rounded up to its second.
    fn recover(&mut self, settings: Settings) {
        self.bench.engine.release(T).unwrap();
        self.bench.engine.set_limit(T, 1_000).unwrap();
        let allowed = 2 * settings.wait_max_ms + settings.lease_s * 1_000 + 1_000;
        let mut passed = 0;
        while self.bench.state() != State::Closed {
            assert!(passed <= allowed, "still {} after {passed} ms", self.bench.snapshot());
            for _ in 0..settings.successes {
                if let Ok(permit) = self.bench.engine.admit(T) {
                    permit.success();
                }
            }
            self.bench.advance(ms(100));
            passed += 100;
        }
    }

    fn note(&mut self) {
        self.seen.stale += self.model.stale;
        self.seen.moves += self.model.moves.len() as u64;
        let takeover = |moved: &&(State, State)| **moved == (State::HalfOpen, State::HalfOpen);
        self.seen.takeovers += self.model.moves.iter().filter(takeover).count() as u64;
    }
}

fn chain(subscription: &portcullis::Subscription, model: &Model) {
    let mut moves = Vec::new();
    while let Ok(transition) = subscription.try_recv() {
        moves.push((transition.from, transition.to));
        assert_eq!(transition.sequence, moves.len() as u64);
    }
    assert_eq!(moves, model.moves);
}

#[test]
fn sm42_a_long_walk_is_what_the_model_says() {
    for (number, settings) in SETTINGS.into_iter().enumerate() {
        let bench = Bench::new(settings.policy());
        let subscription = bench.engine.subscribe(100_000);
        let mut walk = Walk::new(&bench, settings, 0x9e37_79b9 + number as u64);
        for _ in 0..40_000 {
            walk.step();
            walk.check();
        }
        walk.note();
        chain(&subscription, &walk.model);
        let Seen { probes, stale, moves, saturated, .. } = walk.seen;
        assert!(probes > 100 && stale > 100 && moves > 300, "it didn't get about: {:?}, {settings:?}", walk.seen);
        assert!(saturated > 0, "{settings:?}");
        walk.recover(settings);
        let (permits, held) = (std::mem::take(&mut walk.permits), std::mem::take(&mut walk.held));
        drop((permits, held));
        assert_eq!(bench.snapshot().in_flight, walk.leaked);
        let totals = bench.snapshot().totals;
        let ended = totals.success + totals.failure + totals.ignored + totals.abandoned + totals.stale;
        assert_eq!(ended + u64::from(walk.leaked), totals.admitted, "every permit ended once: {totals:?}");
    }
}

#[test]
fn sm42_from_wherever_a_walk_ends_the_breaker_closes_again() {
    let mut takeovers = 0;
    for seed in 1..=1_000_u64 {
        let settings = SETTINGS[seed as usize % SETTINGS.len()];
        let bench = Bench::new(settings.policy());
        let mut walk = Walk::new(&bench, settings, seed);
        for _ in 0..100 {
            walk.step();
        }
        walk.check();
        walk.note();
        takeovers += walk.seen.takeovers;
        // What hangs goes on hanging.
        walk.recover(settings);
    }
    assert!(takeovers > 0, "no lease ever ended");
}

/// Invariant 9: a refusal that says `d` isn't repeated for the same reason at now + d, whatever came before.
#[test]
fn tm13_retry_after_is_honest_from_every_state() {
    let mut asked = [0_u32; 2];
    for seed in 1..=1_500_u64 {
        let settings = SETTINGS[seed as usize % SETTINGS.len()];
        let bench = Bench::new(settings.policy().jitter(0.3));
        let mut random = Random(seed);
        let mut permits = Vec::new();
        for _ in 0..random.draw(60) {
            bench.time.increment(random.draw(1_500_000_000));
            permits.extend(bench.engine.admit(T));
            if random.draw(3) > 0 && !permits.is_empty() {
                let permit = permits.swap_remove(random.draw(permits.len() as u64) as usize);
                done(if random.draw(3) == 0 { permit.success() } else { permit.failure() });
            }
        }
        let Err(refusal) = bench.engine.admit(T) else { continue };
        let Some(retry_after) = refusal.retry_after() else { continue };
        assert!(!retry_after.is_zero());
        bench.advance(retry_after);
        let again = bench.engine.admit(T).map(|permit| permit.is_probe()).map_err(|refusal| refusal.reason());
        assert_ne!(again, Err(refusal.reason()), "seed {seed}: {refusal}");
        asked[usize::from(refusal.reason() == "probing")] += 1;
    }
    assert!(asked.iter().all(|times| *times > 20), "{asked:?}");
}
