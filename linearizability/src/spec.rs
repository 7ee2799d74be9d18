//! The sequential specification: what an engine is, to callers that come one after the other.
//!
//! An act of the engine that touches one word is one [`Step`]. One that touches several takes effect in several steps, and other
//! threads' steps may come between: an admission asks the gate and takes a permit; a settlement records, trips, and gives the
//! permit back. Each step has the whole act to happen in, and the specification holds the steps of an act in order. That is
//! what is claimed: atomic steps, not atomic acts.
//!
//! Targets here are never forgotten. An engine that forgets some must not be told apart, since only what holds no evidence may go (R19).

mod calls;
mod step;
pub mod target;

use std::collections::BTreeMap;

use todc_utils::specifications::Specification;

use crate::plan::Call;
use crate::shape::{Rules, Shape};
pub use step::Step;
use target::{Gate, Target};

/// A call in flight, or about to be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Flight {
    key: u8,
    generation: u32,
    is_probe: bool,
    passed: bool,
    taken: bool,
    /// What its settlement found: none before.
    settlement: Option<Settlement>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Settlement {
    rules: usize,
    /// Whether a rule was met by what was recorded.
    met: bool,
    counted: bool,
    tripped: bool,
}

/// The engine. Nothing in it depends on how the real one does it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct World {
    shape: Option<usize>,
    now_ms: u64,
    targets: Vec<Target>,
    flights: BTreeMap<Call, Flight>,
    /// Admissions that the gate would let in, asking the bulkhead.
    asking: Vec<Call>,
    /// Changes of a limit under way.
    setting: Vec<Call>,
    /// What acts read of the clock, and of the policy.
    clocks: BTreeMap<Call, u64>,
    terms: BTreeMap<Call, usize>,
}

/// The specification as the checker wants it.
#[derive(Debug)]
pub struct Engine;

impl Specification for Engine {
    type State = World;
    type Operation = Step;

    fn init() -> World {
        World::default()
    }

    fn apply(step: &Step, world: &World) -> (bool, World) {
        let mut next = world.clone();
        if next.step(step).is_some() { (true, next) } else { (false, world.clone()) }
    }
}

impl World {
    fn shape(&self) -> Option<&'static Shape> {
        crate::shape::SHAPES.get(self.shape?)
    }

    fn rules(&self, index: usize) -> Option<&'static Rules> {
        self.shape()?.rules.get(index)
    }

    /// The rules in force for a key.
    fn rules_of(&self, key: u8) -> Option<&'static Rules> {
        self.rules(self.targets.get(usize::from(key))?.rules)
    }

    fn target(&mut self, key: u8) -> Option<&mut Target> {
        self.targets.get_mut(usize::from(key))
    }

    /// What an act knows of the time: what it read, if the clock moved meanwhile.
    fn clock(&mut self, act: Call) -> u64 {
        self.clocks.remove(&act).unwrap_or(self.now_ms)
    }

    /// Takes a step, or none if that can't happen here.
    pub fn step(&mut self, step: &Step) -> Option<()> {
        match *step {
            Step::Begin(shape) => self.begin(shape),
            Step::Pass { call, key, probe, generation } => self.pass(call, key, probe, generation),
            Step::Take { call, key } => self.take(call, key),
            Step::Ask { call, key, drift } => {
                let now = self.now_ms + drift;
                let rules = self.rules_of(key)?;
                let target = self.target(key)?;
                (target.enters() || target.probes(now, rules)).then(|| self.asking.push(call))
            }
            Step::Full { call, key, limit, passing, raced } => {
                let asked = self.asking.iter().position(|asking| *asking == call)?;
                self.asking.remove(asked);
                self.makes_room(key)?;
                let target = self.target(key)?;
                let is_full = target.in_flight + passing >= target.limit;
                (target.limit == limit && (is_full || raced && target.has_stashes)).then_some(())
            }
            Step::Refuse { key, answer, drift } => self.refuse(key, answer, drift),
            Step::Exhausted { key, others } => {
                let capacity = self.shape()?.max_targets;
                (others >= capacity && !self.target(key)?.must_stay()).then_some(())
            }
            Step::ReadClock { act } => self.clocks.insert(act, self.now_ms).is_none().then_some(()),
            Step::ReadRules { act, key } => {
                let rules = self.target(key)?.rules;
                self.terms.insert(act, rules).is_none().then_some(())
            }
            Step::Record { act, call, ending, stale } => self.record(act, call, ending, stale),
            Step::RecordStreak { call, ending } => self.record_streak(call, ending),
            Step::Trip { act, call } => self.trip(act, call),
            Step::Free { call } => {
                let flight = self.flights.remove(&call)?;
                flight.settlement?;
                self.target(flight.key)?.in_flight -= 1;
                Some(())
            }
            Step::Look { key, shown, drift } => self.look(key, shown, drift),
            Step::Hand { key, to, changed } => {
                self.makes_room(key)?;
                (self.target(key)?.by_hand(to) == changed).then_some(())
            }
            Step::SetLimit { act, key, limit } => {
                self.setting.push(act);
                let target = self.target(key)?;
                target.set_limit(limit);
                target.is_configured = true;
                Some(())
            }
            Step::LimitSet { act, key } => {
                let set = self.setting.iter().position(|setting| *setting == act)?;
                self.setting.remove(set);
                self.target(key)?.lowering_from = None;
                Some(())
            }
            Step::SetPolicy { act, key, rules } => {
                self.setting.push(act);
                self.set_policy(key, rules)
            }
            Step::SetPolicyLimit { act, key } => {
                self.setting.iter().find(|setting| **setting == act)?;
                let target = self.target(key)?;
                if let Some(limit) = target.limit_to_come.take() {
                    target.set_limit(limit);
                }
                Some(())
            }
            Step::Advance { ms } => {
                self.now_ms += ms;
                Some(())
            }
        }
    }

    fn begin(&mut self, shape: &'static Shape) -> Option<()> {
        let limit = shape.rules.first()?.limit;
        self.shape = crate::shape::SHAPES.iter().position(|other| other.name == shape.name);
        self.targets = (0..shape.keys).map(|_| Target::new(limit)).collect();
        Some(())
    }

    /// A limit set by hand stays, unless the new policy's differs from the old one's (R17).
    fn set_policy(&mut self, key: u8, index: usize) -> Option<()> {
        let after = self.rules(index)?;
        let before = self.rules_of(key)?;
        let target = self.target(key)?;
        target.rules = index;
        target.is_configured = true;
        target.limit_to_come = (before.limit != after.limit).then_some(after.limit);
        Some(())
    }

    /// A key can be there only if at most `max_targets` - 1 others have to be.
    fn makes_room(&self, key: u8) -> Option<()> {
        let others = self.targets.iter().enumerate().filter(|(other, _)| *other != usize::from(key));
        (others.filter(|(_, target)| target.must_stay()).count() < self.shape()?.max_targets).then_some(())
    }
}
