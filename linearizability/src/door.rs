//! The way to the engine. [`Honest`] goes straight; the twins each do one thing wrong.

use portcullis::{Engine, Outcome, Permit, Rejection, Settled, State, Target};

use crate::plan::{Answer, Call, Ending, Shown};
use crate::shape::Shape;

/// The right to run one call, in a thread's hands.
#[derive(Debug)]
pub struct Ticket<'e> {
    pub call: Call,
    pub key: u8,
    pub probe: bool,
    /// None where a twin let a call in that the engine refused.
    pub permit: Option<Permit<'e, u8>>,
}

/// What an admission gives: an answer, and the permit if there is one.
pub type Admitted<'e> = (Answer, Option<Permit<'e, u8>>);

/// What the threads ask and settle through.
pub trait Door<'e>: Sync {
    fn honest(&self) -> &Honest<'e>;

    fn admit(&self, key: u8) -> Admitted<'e> {
        self.honest().admit(key)
    }

    /// Whether the outcome was stale; none if it wasn't told.
    fn settle(&self, ticket: Ticket<'e>, ending: Ending) -> Option<bool> {
        self.honest().settle(ticket, ending)
    }

    /// False if there is no room for the key.
    fn set_limit(&self, key: u8, limit: u32) -> bool {
        self.honest().set_limit(key, limit)
    }

    /// Whether that changed anything; none if there is no room for the key.
    fn by_hand(&self, key: u8, to: Shown) -> Option<bool> {
        self.honest().by_hand(key, to)
    }

    /// Called once by each thread before it ends.
    fn leave(&self) {}
}

/// The engine as it is.
#[derive(Debug)]
pub struct Honest<'e> {
    pub engine: &'e Engine<u8>,
    pub shape: &'static Shape,
    /// The handles, where the shape resolves its targets once.
    targets: Vec<Target<'e, u8>>,
}

impl<'e> Honest<'e> {
    /// # Panics
    ///
    /// If an empty engine has no room for the shape's targets.
    #[must_use]
    pub fn new(engine: &'e Engine<u8>, shape: &'static Shape) -> Self {
        let resolved = if shape.keyed { 0 } else { shape.keys };
        let resolve =
            |key| engine.target(&key).unwrap_or_else(|error| panic!("no room for a resolved target: {error}"));
        Self { engine, shape, targets: (0..resolved).map(resolve).collect() }
    }

    /// Does something with a target; none if there is no room for it.
    pub fn with<R>(&self, key: u8, act: impl FnOnce(&Target<'e, u8>) -> R) -> Option<R> {
        match self.targets.get(usize::from(key)) {
            Some(target) => Some(act(target)),
            None => self.engine.target(&key).ok().map(|target| act(&target)),
        }
    }

    /// Puts the shape's rules of this index in force.
    #[must_use]
    pub fn set_policy(&self, key: u8, rules: usize) -> bool {
        let Some(rules) = self.shape.rules.get(rules) else { return false };
        self.engine.set_policy(&key, rules.policy()).is_ok()
    }

    #[must_use]
    pub fn look(&self, key: u8) -> Option<Shown> {
        let state = self.with(key, Target::state)?;
        Some(match state {
            State::Open => Shown::Open,
            State::HalfOpen => Shown::HalfOpen,
            State::ForcedOpen => Shown::ForcedOpen,
            State::Disabled => Shown::Disabled,
            _ => Shown::Closed,
        })
    }
}

impl<'e> Door<'e> for Honest<'e> {
    fn honest(&self) -> &Honest<'e> {
        self
    }

    fn admit(&self, key: u8) -> Admitted<'e> {
        let answer = match self.targets.get(usize::from(key)) {
            Some(target) => target.admit(),
            None => self.engine.admit(&key),
        };
        match answer {
            Ok(permit) => {
                let granted = Answer::Granted { probe: permit.is_probe(), generation: permit.generation() };
                (granted, Some(permit))
            }
            Err(Rejection::Open { .. }) => (Answer::Open, None),
            Err(Rejection::Probing { .. }) => (Answer::Probing, None),
            Err(Rejection::ForcedOpen) => (Answer::Forced, None),
            Err(Rejection::Saturated { limit }) => (Answer::Saturated { limit }, None),
            Err(_) => (Answer::Exhausted, None),
        }
    }

    fn settle(&self, ticket: Ticket<'e>, ending: Ending) -> Option<bool> {
        let permit = ticket.permit?;
        let settled = match ending {
            Ending::Success => permit.settle(Outcome::Success),
            Ending::Failure => permit.settle(Outcome::Failure),
            Ending::Ignored => permit.settle(Outcome::Ignored),
            Ending::Dropped => {
                drop(permit);
                return None;
            }
        };
        Some(settled == Settled::Stale)
    }

    fn set_limit(&self, key: u8, limit: u32) -> bool {
        self.with(key, |target| target.set_limit(limit)).is_some()
    }

    fn by_hand(&self, key: u8, to: Shown) -> Option<bool> {
        self.with(key, |target| match to {
            Shown::ForcedOpen => target.force_open(),
            Shown::Disabled => target.disable(),
            _ => target.release(),
        })
    }
}
