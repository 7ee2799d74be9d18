//! Both engines side by side, one operation after the other.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use portcullis::{Clock, Held, OwnedHeld, OwnedPermit, Permit, Transition};

use crate::Twin;
use crate::compare;
use crate::engine::Engine;
use crate::op::{Case, Op};
use crate::rules::{Rules, Shape};
use crate::tally::Tally;
use crate::target::{NANOS_PER_MS, News, Terms, Token};

/// Transitions in the log: few, so that it runs over.
const LOG: usize = 32;
pub(crate) const YEAR: u64 = 365 * 24 * 3_600 * 1_000 * NANOS_PER_MS;
/// Half of what 64 bits of nanoseconds hold, less a little: past that the engine takes the clock to have stepped back.
const LAST: u64 = 290 * YEAR;
type Real = portcullis::Engine<u8>;

pub(crate) enum Pass<'e> {
    Borrowed(Permit<'e, u8>),
    Owned(OwnedPermit<Arc<Real>, u8>),
}

#[expect(dead_code, reason = "held for what dropping them does")]
pub(crate) enum Stay<'e> {
    Borrowed(Held<'e, u8>),
    Owned(OwnedHeld<Arc<Real>, u8>),
}

pub(crate) struct Driver<'e> {
    pub(crate) real: &'e Arc<Real>,
    pub(crate) time: Arc<quanta::Mock>,
    pub(crate) naive: Engine,
    pub(crate) last: u64,
    pub(crate) terms: Vec<Rc<Terms>>,
    pub(crate) permits: Vec<(Pass<'e>, Token)>,
    pub(crate) held: Vec<(Stay<'e>, Token)>,
    pub(crate) handles: Vec<(portcullis::Target<'e, u8>, u8)>,
    pub(crate) heard: Arc<Mutex<Vec<Transition<u8>>>>,
    /// Forgotten, but an owned one forgotten for good would keep the engine's memory: these are dropped when all is compared.
    pub(crate) buried: Vec<Pass<'e>>,
    pub(crate) buried_held: Vec<Stay<'e>>,
    /// What the log must hold.
    last_told: VecDeque<News>,
    pub(crate) tally: Tally,
}

/// Runs a case on both engines.
///
/// # Panics
///
/// If they differ in anything.
pub fn check(case: &Case) -> Tally {
    check_twin(case, Twin::None)
}

/// As [`check`], with a naive engine that breaks a rule.
///
/// # Panics
///
/// If they differ in anything.
pub fn check_twin(case: &Case, twin: Twin) -> Tally {
    let rules = case.drafts.map(|draft| Rules::new(&draft));
    // Windows of time stand still where ticks end, and are promised no further.
    let times = rules.iter().any(|rules| matches!(rules.shape, Shape::Time { .. }));
    let last = if times { 2 * YEAR } else { LAST };
    let terms: Vec<_> = rules.into_iter().map(|rules| Rc::new(Terms { policy: rules.policy(), rules })).collect();
    let (clock, time) = Clock::mock();
    let (idle_s, forget_s, targets) = (case.idle.seconds(), case.forget.seconds(), usize::from(case.targets) % 19 + 1);
    let real = Real::builder()
        .policy(terms[0].policy.clone())
        .clock(clock)
        .max_targets(targets)
        .idle_after(Duration::from_secs(idle_s))
        .forget_after(Duration::from_secs(forget_s))
        .log_capacity(LOG)
        .seed(7)
        .build();
    let real = Arc::new(real);
    let heard = Arc::<Mutex<Vec<Transition<u8>>>>::default();
    let ears = Arc::clone(&heard);
    let _listening = real.observe(move |transition: &Transition<u8>| {
        ears.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(transition.clone());
    });
    let mut driver = Driver {
        real: &real,
        time,
        naive: Engine::new(twin, Rc::clone(&terms[0]), targets, idle_s, forget_s),
        last,
        terms,
        permits: Vec::new(),
        held: Vec::new(),
        handles: Vec::new(),
        heard,
        buried: Vec::new(),
        buried_held: Vec::new(),
        last_told: VecDeque::new(),
        tally: Tally::default(),
    };
    case.ops.iter().for_each(|op| driver.step(*op));
    driver.end();
    driver.tally
}

impl<'e> Driver<'e> {
    /// Does one operation on both and compares all that can be seen.
    fn step(&mut self, op: Op) {
        if self.act(op).is_none() {
            return; // Nothing there to do it to.
        }
        self.tally.kinds[op.kind()] += 1;
        // Whoever looks judges, so the looks come before what was heard is compared.
        let looks = !matches!(op, Op::Leap { .. });
        let places: Vec<_> = self.naive.keys.clone().into_iter().filter(|_| looks).collect();
        let now = self.naive.now;
        let look = |(key, place): &(u8, usize)| {
            self.naive.at(*place, |target| target.judge_running(now));
            self.real.snapshot(key).unwrap_or_else(|| panic!("{key} is unknown"))
        };
        let snapshots: Vec<_> = places.iter().map(look).collect();
        let heard: Vec<_> = std::mem::take(&mut *self.heard.lock().expect("no listener panics"));
        let told = std::mem::take(&mut self.naive.news);
        compare::transitions(&heard, &told);
        self.last_told.extend(told.iter().cloned());
        self.last_told.drain(..self.last_told.len().saturating_sub(LOG));
        for news in &told {
            *self.tally.causes.entry(news.cause.as_str()).or_default() += 1;
        }
        for ((_, place), snapshot) in places.into_iter().zip(snapshots) {
            let target = &mut self.naive.places[place];
            target.learn(snapshot.reopen_in, now);
            compare::snapshot(&snapshot, target, now);
        }
        assert_eq!(self.real.len(), self.naive.keys.len(), "targets");
        assert_eq!(self.real.exhausted(), self.naive.exhausted, "exhausted");
    }

    /// Gives everything back and compares what is left, and the log with what was heard.
    fn end(&mut self) {
        (0..self.permits.len()).for_each(|_| self.step(Op::Drop { permit: 0 }));
        (0..self.held.len()).for_each(|_| self.step(Op::Unhold { held: 0 }));
        (0..self.handles.len()).for_each(|_| self.step(Op::Unresolve { handle: 0 }));
        let changes: u64 = self.tally.causes.values().sum();
        let log = self.real.transitions();
        assert_eq!(log.len() as u64 + self.real.transitions_dropped(), changes, "the log");
        let last = self.last_told.iter().map(|news| (news.key, news.sequence, news.cause));
        let shown = log.iter().map(|transition| (*transition.target, transition.sequence, transition.cause));
        assert!(shown.eq(last), "the log");
    }
}
