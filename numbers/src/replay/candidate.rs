//! One policy file at work: its engines on a clock of their own, and the calls in flight.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use portcullis::{Engine, ObserverGuard, Outcome, OwnedPermit, Policy, Snapshot, Transition};

use super::lane::{Asked, Ending, Lane};
use super::series::Scale;
use crate::policies::Policies;

/// Makes the jitter of waits the same in every run.
const SEED: u64 = 0x706f_7274_6375_6c6c;
/// As many as an engine can tell apart. Nothing is ever forgotten, so there must be room for all.
const MOST_TARGETS: usize = u32::MAX as usize;
const NEVER: std::time::Duration = std::time::Duration::MAX;

type Permit = OwnedPermit<Arc<Engine>>;

/// A call in flight; the one that ends first is the greatest.
struct Running {
    ending: Ending,
    /// Breaks ties as the calls came.
    number: u64,
    lane: usize,
    permit: Permit,
}

impl Running {
    fn order(&self) -> impl Ord + use<> {
        Reverse((self.ending.at, self.number))
    }
}

impl PartialEq for Running {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Running {}

impl PartialOrd for Running {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Running {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

/// What the engines reported since the last look.
#[derive(Clone, Debug, Default)]
struct News(Arc<Mutex<Vec<Transition>>>);

impl News {
    fn take(&self) -> Vec<Transition> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A policy file at work.
pub(super) struct Candidate {
    pub(super) name: String,
    pub(super) policies: Policies,
    /// One for all targets with the same policy: they don't know of each other.
    engines: HashMap<Policy, Arc<Engine>>,
    _observers: Vec<ObserverGuard>,
    news: News,
    time: Arc<quanta::Mock>,
    now: u64,
    /// By the target's number; none where the file has no policy for it.
    pub(super) lanes: Vec<Option<Lane>>,
    running: BinaryHeap<Running>,
    number: u64,
    scale: Scale,
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate").field("name", &self.name).field("now", &self.now).finish_non_exhaustive()
    }
}

impl Candidate {
    pub(super) fn new(name: String, policies: Policies) -> Self {
        let (clock, time) = quanta::Clock::mock();
        let news = News::default();
        let mut engines = HashMap::new();
        let mut observers = Vec::new();
        // All at once, so that each one's time is the replay's.
        for terms in policies.all() {
            engines.entry(terms.policy.clone()).or_insert_with(|| {
                let builder = Engine::builder().policy(terms.policy.clone()).clock(clock.clone()).seed(SEED);
                let engine: Engine =
                    builder.max_targets(MOST_TARGETS).idle_after(NEVER).forget_after(NEVER).log_capacity(1).build();
                let inbox = news.clone();
                observers.push(engine.observe(move |transition: &Transition| {
                    inbox.0.lock().unwrap_or_else(PoisonError::into_inner).push(transition.clone());
                }));
                Arc::new(engine)
            });
        }
        Self {
            name,
            policies,
            engines,
            _observers: observers,
            news,
            time,
            now: 0,
            lanes: Vec::new(),
            running: BinaryHeap::new(),
            number: 0,
            scale: Scale::default(),
        }
    }

    /// Makes room for a target that is met for the first time.
    pub(super) fn meet(&mut self, name: &str) {
        let lane = self.policies.of(name).and_then(|terms| {
            let engine = self.engines.get(&terms.policy)?;
            Some(Lane::new(Arc::clone(engine), name.to_owned(), terms))
        });
        self.lanes.push(lane);
    }

    pub(super) fn widen(&mut self, scale: Scale) {
        for lane in self.lanes.iter_mut().flatten() {
            lane.series.widen(self.scale, scale);
        }
        self.scale = scale;
    }

    /// Asks for a call, once all that ended by then has been settled.
    pub(super) fn ask(&mut self, target: usize, call: Asked) {
        self.settle_until(call.at);
        self.move_to(call.at);
        let Some(Some(lane)) = self.lanes.get_mut(target) else { return };
        match lane.engine.admit_async(lane.name.as_str()) {
            Ok(permit) => {
                let ending = lane.admit(call, permit.is_probe(), self.scale);
                self.number += 1;
                self.running.push(Running { ending, number: self.number, lane: target, permit });
            }
            Err(why) => lane.refuse(call, why, self.scale),
        }
        self.hear(target);
    }

    /// Settles all calls that end up to then, in order.
    pub(super) fn settle_until(&mut self, at: u64) {
        while self.running.peek().is_some_and(|first| first.ending.at <= at) {
            let Some(Running { ending, lane: target, permit, .. }) = self.running.pop() else { return };
            self.move_to(ending.at);
            match ending.outcome {
                // Its client went away: what that means is the policy's word.
                Outcome::Ignored => drop(permit),
                outcome => {
                    permit.settle(outcome);
                }
            }
            if let Some(Some(lane)) = self.lanes.get_mut(target) {
                lane.end(ending);
            }
            self.hear(target);
        }
    }

    /// Settles all that is in flight, and counts the time in the last states.
    pub(super) fn finish(&mut self, end: u64) {
        self.settle_until(u64::MAX);
        let end = end.max(self.now);
        self.lanes.iter_mut().flatten().for_each(|lane| lane.pass(end));
    }

    pub(super) fn snapshot(&self, target: usize) -> Option<Snapshot> {
        let lane = self.lanes.get(target)?.as_ref()?;
        lane.engine.snapshot(lane.name.as_str())
    }

    fn move_to(&mut self, at: u64) {
        if at > self.now {
            self.time.increment(at - self.now);
            self.now = at;
        }
    }

    /// Hands what was reported of the target that was just asked or settled to its lane: nothing else can have changed.
    fn hear(&mut self, target: usize) {
        let news = self.news.take();
        if let Some(Some(lane)) = self.lanes.get_mut(target) {
            news.iter().for_each(|transition| lane.note(transition));
        }
    }
}
