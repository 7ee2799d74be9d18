//! Broken twins: doors to the real engine that do one thing wrong. Each must be caught.

mod late;

use std::sync::atomic::{AtomicU32, Ordering};

use crate::door::{Admitted, Door, Honest, Ticket};
use crate::drive::MakeDoor;
use crate::plan::{Answer, Ending, Shown};

/// A twin, the shape that it is hammered in, and its door.
#[derive(Debug)]
pub struct Twin {
    pub name: &'static str,
    pub shape: &'static str,
    pub make: MakeDoor,
}

/// Every twin.
pub static TWINS: &[Twin] = &[
    Twin {
        name: "whoever loses the race for the probe enters anyway",
        shape: "one probe at the end of the wait",
        make: |honest| Box::new(SecondProbe(honest)),
    },
    Twin {
        name: "a stale failure counts in the new window",
        shape: "forced by hand",
        make: |honest| Box::new(StaleCounts(honest)),
    },
    Twin {
        name: "one call more than the limit, in a race",
        shape: "streak, limit 2",
        make: |honest| Box::new(CheckThenAct { honest, in_flight: AtomicU32::new(0) }),
    },
    Twin {
        name: "an outcome is recorded after its call has returned",
        shape: "streak, limit 2",
        make: |honest| Box::new(late::RecordsLate::new(honest)),
    },
    Twin {
        name: "a success doesn't end the streak",
        shape: "streak, limit 2",
        make: |honest| Box::new(KeepsStreak(honest)),
    },
    Twin {
        name: "a success completing min_calls is no call",
        shape: "window of calls",
        make: |honest| Box::new(KeepsStreak(honest)),
    },
    Twin {
        name: "Saturated is said with room, racing or not",
        shape: "limits that change",
        make: |honest| Box::new(SaysFull { honest, asked: AtomicU32::new(0) }),
    },
    Twin {
        name: "Saturated is said because another thread asks too",
        shape: "two keys",
        make: |honest| Box::new(ShyOfOthers { honest, asking: AtomicU32::new(0) }),
    },
    Twin {
        name: "a lower limit is in force after set_limit has returned",
        shape: "limits that change",
        make: |honest| Box::new(late::LimitsLate::new(honest)),
    },
    Twin {
        name: "forgetting drops a failure",
        shape: "more keys than targets",
        make: |honest| Box::new(Forgetful(honest)),
    },
];

struct SecondProbe<'e>(Honest<'e>);

impl<'e> Door<'e> for SecondProbe<'e> {
    fn honest(&self) -> &Honest<'e> {
        &self.0
    }

    fn admit(&self, key: u8) -> Admitted<'e> {
        let was_free = self.0.with(key, |target| {
            let snapshot = target.snapshot();
            snapshot.probes_in_flight == 0 && snapshot.state == portcullis::State::HalfOpen
        });
        match self.0.admit(key) {
            (Answer::Probing, None) if was_free == Some(true) => {
                let generation = self.0.with(key, |target| target.snapshot().generation).unwrap_or(0);
                (Answer::Granted { probe: true, generation }, None)
            }
            answer => answer,
        }
    }
}

struct StaleCounts<'e>(Honest<'e>);

impl<'e> Door<'e> for StaleCounts<'e> {
    fn honest(&self) -> &Honest<'e> {
        &self.0
    }

    fn settle(&self, ticket: Ticket<'e>, ending: Ending) -> Option<bool> {
        let key = ticket.key;
        let stale = self.0.settle(ticket, ending);
        if stale == Some(true)
            && ending == Ending::Failure
            && let (_, Some(permit)) = self.0.admit(key)
        {
            permit.failure();
        }
        stale
    }
}

struct CheckThenAct<'e> {
    honest: Honest<'e>,
    in_flight: AtomicU32,
}

impl<'e> Door<'e> for CheckThenAct<'e> {
    fn honest(&self) -> &Honest<'e> {
        &self.honest
    }

    fn admit(&self, key: u8) -> Admitted<'e> {
        let limit = self.honest.shape.rules.first().map_or(0, |rules| rules.limit);
        self.honest.set_limit(key, portcullis::UNLIMITED);
        if self.in_flight.load(Ordering::SeqCst) >= limit {
            return (Answer::Saturated { limit }, None);
        }
        let answer = self.honest.admit(key);
        if answer.1.is_some() {
            self.in_flight.fetch_add(1, Ordering::SeqCst);
        }
        answer
    }

    fn settle(&self, ticket: Ticket<'e>, ending: Ending) -> Option<bool> {
        let stale = self.honest.settle(ticket, ending);
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        stale
    }
}

struct KeepsStreak<'e>(Honest<'e>);

impl<'e> Door<'e> for KeepsStreak<'e> {
    fn honest(&self) -> &Honest<'e> {
        &self.0
    }

    fn settle(&self, ticket: Ticket<'e>, ending: Ending) -> Option<bool> {
        let ending = if ending == Ending::Success && !ticket.probe { Ending::Ignored } else { ending };
        self.0.settle(ticket, ending)
    }
}

struct SaysFull<'e> {
    honest: Honest<'e>,
    asked: AtomicU32,
}

impl<'e> Door<'e> for SaysFull<'e> {
    fn honest(&self) -> &Honest<'e> {
        &self.honest
    }

    fn admit(&self, key: u8) -> Admitted<'e> {
        if self.asked.fetch_add(1, Ordering::SeqCst) % 8 == 7
            && let Some(limit) = self.honest.with(key, |target| target.snapshot().limit)
        {
            return (Answer::Saturated { limit }, None);
        }
        self.honest.admit(key)
    }
}

struct ShyOfOthers<'e> {
    honest: Honest<'e>,
    asking: AtomicU32,
}

impl<'e> Door<'e> for ShyOfOthers<'e> {
    fn honest(&self) -> &Honest<'e> {
        &self.honest
    }

    fn admit(&self, key: u8) -> Admitted<'e> {
        let others = self.asking.fetch_add(1, Ordering::SeqCst);
        let limit = self.honest.with(key, |target| target.snapshot().limit);
        let answer = match limit {
            Some(limit) if others > 0 => (Answer::Saturated { limit }, None),
            _ => self.honest.admit(key),
        };
        self.asking.fetch_sub(1, Ordering::SeqCst);
        answer
    }
}

/// Forgets by force: what a hand closes and releases has an empty window.
struct Forgetful<'e>(Honest<'e>);

impl<'e> Door<'e> for Forgetful<'e> {
    fn honest(&self) -> &Honest<'e> {
        &self.0
    }

    fn settle(&self, ticket: Ticket<'e>, ending: Ending) -> Option<bool> {
        let key = ticket.key;
        let stale = self.0.settle(ticket, ending);
        if ending == Ending::Failure && stale == Some(false) {
            self.0.by_hand(key, Shown::Disabled);
            self.0.by_hand(key, Shown::Closed);
        }
        stale
    }
}
