//! What the threads did, as it was recorded, and the steps that the checker puts in order.

use std::collections::BTreeSet;
use std::fmt;

use crate::plan::{Answer, Call, Done, Ending};
use crate::shape::Shape;
use crate::spec::Step;

/// An act of one thread, from its invocation to its return.
///
/// An invocation reads the shared sequence, and a return counts it on: one write to a shared line per act, at its end. Whoever
/// reads the count that a return left, or a later one, came after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// 0 is the lone caller before and after the threads.
    pub thread: u8,
    /// Thread and number: the name of the act, and of the call that it admits.
    pub act: Call,
    pub done: Done,
    pub invoked: u64,
    pub returned: u64,
}

impl Entry {
    fn is_before(&self, other: &Self) -> bool {
        self.returned < other.invoked
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.thread != other.thread && !self.is_before(other) && !other.is_before(self)
    }

    /// Whether they can disturb each other: about one target, or about all.
    fn meets(&self, other: &Self) -> bool {
        match (self.done.key(), other.done.key()) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        }
    }
}

/// A step and the whole act that it may happen in.
#[derive(Clone, Debug)]
pub struct Span {
    pub invoked: u64,
    pub returned: u64,
    pub step: Step,
}

#[derive(Debug)]
pub struct History {
    pub shape: &'static Shape,
    pub entries: Vec<Entry>,
}

impl History {
    /// Whether two threads were in acts on one target at once.
    #[must_use]
    pub fn has_overlap(&self) -> bool {
        self.entries.iter().any(|entry| self.rivals(entry).any(|rival| rival.done.key().is_some()))
    }

    /// The most acts that overlap with one.
    #[must_use]
    pub fn width(&self) -> usize {
        self.entries.iter().map(|entry| self.rivals(entry).count() + 1).max().unwrap_or(0)
    }

    fn rivals<'a>(&'a self, entry: &'a Entry) -> impl Iterator<Item = &'a Entry> {
        self.entries.iter().filter(move |other| entry.overlaps(other) && entry.meets(other))
    }

    /// The steps of all acts.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        self.entries
            .iter()
            .flat_map(|entry| {
                let Entry { invoked, returned, .. } = *entry;
                self.steps(entry).into_iter().map(move |step| Span { invoked, returned, step })
            })
            .collect()
    }

    fn steps(&self, entry: &Entry) -> Vec<Step> {
        let drift = self.rivals(entry).map(|rival| if let Done::Advance { ms } = rival.done { ms } else { 0 }).sum();
        let act = entry.act;
        // Only where the clock or the policy changes meanwhile does it matter when they were read.
        let read_clock = (drift > 0).then_some(Step::ReadClock { act });
        match entry.done {
            Done::Admit { key, answer: Answer::Granted { probe, generation } } => {
                let steps = [Step::Take { call: act, key }, Step::Pass { call: act, key, probe, generation }];
                read_clock.filter(|_| probe).into_iter().chain(steps).collect()
            }
            Done::Admit { key, answer: Answer::Saturated { limit } } => {
                let (passing, raced) = (self.passing(entry), self.rivals(entry).next().is_some());
                vec![Step::Ask { call: act, key, drift }, Step::Full { call: act, key, limit, passing, raced }]
            }
            Done::Admit { key, answer: Answer::Exhausted }
            | Done::Hand { key, changed: None, .. }
            | Done::SetLimit { key, done: false, .. }
            | Done::SetPolicy { key, done: false, .. } => {
                vec![Step::Exhausted { key, others: self.others(entry, key) }]
            }
            Done::Admit { key, answer } => vec![Step::Refuse { key, answer, drift }],
            Done::Settle { call, key, probe, ending, stale } => {
                let policies = self.rivals(entry).any(|rival| matches!(rival.done, Done::SetPolicy { .. }));
                let rules = &self.shape.rules;
                let has_two = rules.iter().any(|rules| rules.streak.is_some() && rules.window.is_some());
                let counts = !probe && matches!(ending, Ending::Success | Ending::Failure) && stale != Some(true);
                let mut steps = vec![Step::Record { act, call, ending, stale }];
                steps.extend(policies.then_some(Step::ReadRules { act, key }));
                steps.extend((counts && has_two).then_some(Step::RecordStreak { call, ending }));
                if counts {
                    steps.push(Step::Trip { act, call });
                }
                steps.extend(read_clock.filter(|_| counts || probe));
                steps.push(Step::Free { call });
                steps
            }
            Done::Look { key, shown } => vec![Step::Look { key, shown, drift }],
            Done::Hand { key, to, changed: Some(changed) } => vec![Step::Hand { key, to, changed }],
            Done::SetLimit { key, limit, .. } => vec![Step::SetLimit { act, key, limit }, Step::LimitSet { act, key }],
            Done::SetPolicy { key, rules, .. } => {
                vec![
                    Step::SetPolicy { act, key, rules },
                    Step::SetPolicyLimit { act, key },
                    Step::LimitSet { act, key },
                ]
            }
            Done::Advance { ms } => vec![Step::Advance { ms }],
            // What it lets go can't be told from what stays.
            Done::Sweep { .. } => Vec::new(),
        }
    }

    /// Overlapping admissions that the gate refused: each may have held a permit for a moment, and is then giving it back (R1, R21).
    fn passing(&self, entry: &Entry) -> u32 {
        let is_passing = |rival: &&Entry| {
            matches!(rival.done, Done::Admit { answer: Answer::Open | Answer::Probing | Answer::Forced, .. })
        };
        u32::try_from(self.rivals(entry).filter(is_passing).count()).unwrap_or(u32::MAX)
    }

    /// Targets that may take up room while this key is refused: other keys that anybody asked for before this act returned, and the
    /// key itself while an overlapping act may be forgetting it, which empties its place before the room is given back.
    fn others(&self, entry: &Entry, key: u8) -> usize {
        let asked = self.entries.iter().filter(|other| other.invoked <= entry.returned);
        let others = asked.filter_map(|other| other.done.key()).filter(|other| *other != key);
        let is_forgetting = self.entries.iter().any(|other| entry.overlaps(other) && self.may_forget(other));
        others.collect::<BTreeSet<u8>>().len() + usize::from(is_forgetting)
    }

    /// A sweep may, and whatever may be about a new key.
    fn may_forget(&self, entry: &Entry) -> bool {
        !matches!(entry.done, Done::Settle { .. } | Done::Advance { .. }) && self.shape.evicts()
    }
}

impl fmt::Display for History {
    /// One line per act, in the order of invocations, with a bar that shows what it overlaps.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {:?}", self.shape.name, self.shape.rules)?;
        let mut entries: Vec<&Entry> = self.entries.iter().collect();
        entries.sort_by_key(|entry| (entry.invoked, entry.returned));
        for entry in entries {
            let Entry { thread, act, done, invoked, returned } = entry;
            let bar: String = (0..=*returned).map(|at| if at < *invoked { ' ' } else { '=' }).collect();
            writeln!(f, "  thread {thread} act {act:#06x} {invoked:>3}..{returned:<3} {bar:<32} {done:?}")?;
        }
        Ok(())
    }
}
