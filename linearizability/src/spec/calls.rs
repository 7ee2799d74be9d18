//! The steps of admissions and settlements.

use super::{Flight, Gate, Settlement, World};
use crate::plan::{Answer, Call, Ending, Shown};

impl World {
    pub(super) fn pass(&mut self, call: Call, key: u8, probe: bool, generation: u32) -> Option<()> {
        let now = self.clock(call);
        let tells_generations = !self.shape()?.evicts();
        let rules = self.rules_of(key)?;
        let taken = self.flights.get(&call).is_some_and(|flight| flight.taken);
        let target = self.target(key)?;
        if probe {
            // R1: the permit first, then the probe slot.
            if !taken || !target.probes(now, rules) {
                return None;
            }
            target.take_probe(now, rules);
        } else if !target.enters() {
            return None;
        }
        if tells_generations && target.generation != generation {
            return None;
        }
        let generation = target.generation;
        let flight = self.flights.entry(call).or_default();
        *flight = Flight { key, generation, is_probe: probe, passed: true, ..flight.clone() };
        Some(())
    }

    pub(super) fn take(&mut self, call: Call, key: u8) -> Option<()> {
        self.makes_room(key)?;
        let target = self.target(key)?;
        if !target.has_room() {
            return None;
        }
        target.in_flight += 1;
        let flight = self.flights.entry(call).or_default();
        (flight.key, flight.taken) = (key, true);
        Some(())
    }

    /// The clock may have been read on the other side of a move of it that overlaps: `drift` in all.
    pub(super) fn refuse(&mut self, key: u8, answer: Answer, drift: u64) -> Option<()> {
        self.makes_room(key)?;
        let earliest = self.now_ms.saturating_sub(drift);
        let rules = self.rules_of(key)?;
        let target = self.target(key)?;
        let is_so = match (answer, target.gate) {
            (Answer::Open, Gate::Open { .. }) | (Answer::Probing, Gate::HalfOpen { .. }) => {
                !target.probes(earliest, rules)
            }
            (Answer::Forced, Gate::ForcedOpen) => true,
            _ => false,
        };
        is_so.then_some(())
    }

    pub(super) fn look(&mut self, key: u8, shown: Shown, drift: u64) -> Option<()> {
        let (earliest, latest) = (self.now_ms.saturating_sub(drift), self.now_ms + drift);
        let is_so = match (self.target(key)?.gate, shown) {
            (Gate::Closed, Shown::Closed)
            | (Gate::HalfOpen { .. }, Shown::HalfOpen)
            | (Gate::ForcedOpen, Shown::ForcedOpen)
            | (Gate::Disabled, Shown::Disabled) => true,
            // R14: an elapsed wait shows as ready to probe.
            (Gate::Open { reopen_at_ms }, Shown::Open) => earliest < reopen_at_ms,
            (Gate::Open { reopen_at_ms }, Shown::HalfOpen) => latest >= reopen_at_ms,
            _ => false,
        };
        is_so.then_some(())
    }

    pub(super) fn record(&mut self, act: Call, call: Call, ending: Ending, stale: Option<bool>) -> Option<()> {
        let flight = self.flights.get(&call)?.clone();
        let in_force = self.target(flight.key)?.rules;
        let index = self.terms.remove(&act).unwrap_or(in_force);
        let rules = self.rules(index)?;
        let is_stale = self.target(flight.key)?.generation != flight.generation;
        if !(flight.passed && flight.taken) || stale.is_some_and(|stale| stale != is_stale) {
            return None;
        }
        let mut settlement = Settlement { rules: index, met: false, counted: false, tripped: false };
        if is_stale {
            // R5: it changes nothing.
        } else if flight.is_probe {
            let now = self.clock(act);
            self.target(flight.key)?.probe_ended(ending, now, rules);
        } else if let (Gate::Closed, Some(failed)) = (self.target(flight.key)?.gate, failed(ending)) {
            let target = self.target(flight.key)?;
            settlement.counted = true;
            settlement.met = target.count(failed, rules);
            if rules.window.is_none() {
                settlement.met = target.lengthen(failed, rules);
            }
        }
        self.flights.get_mut(&call)?.settlement = Some(settlement);
        Some(())
    }

    pub(super) fn record_streak(&mut self, call: Call, ending: Ending) -> Option<()> {
        let flight = self.flights.get(&call)?.clone();
        let mut settlement = flight.settlement?;
        if settlement.tripped {
            return None;
        }
        let rules = self.rules(settlement.rules)?;
        let target = self.target(flight.key)?;
        if let (true, Some(failed)) = (settlement.counted && target.generation == flight.generation, failed(ending)) {
            settlement.met |= target.lengthen(failed, rules);
        }
        self.flights.get_mut(&call)?.settlement = Some(settlement);
        Some(())
    }

    pub(super) fn trip(&mut self, act: Call, call: Call) -> Option<()> {
        let flight = self.flights.get(&call)?.clone();
        let mut settlement = flight.settlement?;
        let rules = self.rules(settlement.rules)?;
        let now = self.clock(act);
        if settlement.met {
            self.target(flight.key)?.trip(flight.generation, now, rules);
        }
        settlement.tripped = true;
        self.flights.get_mut(&call)?.settlement = Some(settlement);
        Some(())
    }
}

/// What an ending says of the target's health, if anything (R11).
fn failed(ending: Ending) -> Option<bool> {
    match ending {
        Ending::Success => Some(false),
        Ending::Failure => Some(true),
        Ending::Ignored | Ending::Dropped => None,
    }
}
