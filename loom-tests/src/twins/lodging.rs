//! A slot whose tenant callers know by its epoch, as a thread's memory of keys does, with one step of asking or handing on done wrong.

use std::sync::atomic::{AtomicU32, Ordering};

use portcullis::internals::{Ending, Glance, Now, Reading, Refused, Signs, Terms, Token, Words};
use portcullis::{Cause, Outcome, Policy, State};

/// Which step is wrong.
#[derive(Debug)]
pub struct Lapse;

impl Lapse {
    /// None: asked and handed on as the engine does.
    pub const NONE: u8 = 0;
    /// Whose the slot is is looked at before the permit is taken, which would keep it.
    pub const CHECKED_FIRST: u8 = 1;
    /// A refusal is taken at its word.
    pub const REFUSED_UNCHECKED: u8 = 2;
    /// The epoch is raised when the next tenant has moved in.
    pub const EPOCH_LAST: u8 = 3;
}

/// One slot and what is known of it.
#[derive(Debug)]
pub struct Lodging<const LAPSE: u8> {
    pub words: Words,
    policy: Policy,
    /// The epoch of the tenant, in the order of the execution; plain std, as the counts of a `Room` are.
    tenant: AtomicU32,
}

impl<const LAPSE: u8> Lodging<LAPSE> {
    /// Its first tenant has settled one call, and was refused once.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        let lodging = Self { words: Words::new(&policy), policy, tenant: AtomicU32::new(0) };
        lodging.pass(0);
        lodging.words.bulkhead.count(0, |refusals| &refusals.open);
        lodging
    }

    fn reading() -> Reading<impl Fn() -> Now> {
        Reading::new(Now::default)
    }

    fn is_of(&self, epoch: u64) -> bool {
        self.words.epoch() == epoch
    }

    fn ask(&self, epoch: u64) -> Result<Token, Refused> {
        let admit = || self.words.admit(&self.policy, false, &Self::reading()).0;
        match LAPSE {
            Lapse::CHECKED_FIRST => {
                if !self.is_of(epoch) {
                    return Err(Refused::Retired);
                }
                admit()
            }
            Lapse::REFUSED_UNCHECKED => {
                let token = admit()?;
                if self.is_of(epoch) {
                    return Ok(token);
                }
                self.words.bulkhead.cancel(0);
                Err(Refused::Retired)
            }
            _ => self.words.admit_remembered(&self.policy, epoch, &Self::reading()).0,
        }
    }

    /// Makes a successful call to the tenant of `epoch`; `retired` if it isn't there any more.
    ///
    /// # Panics
    ///
    /// If the permit is another tenant's.
    pub fn pass(&self, epoch: u64) -> &'static str {
        let token = match self.ask(epoch) {
            Ok(token) => token,
            Err(Refused::Retired) => return "retired",
            Err(Refused::Rejected(rejection)) => return rejection.reason(),
        };
        // The permit keeps the tenant, from before the answer until it is given back.
        assert_eq!(u64::from(self.tenant.load(Ordering::Relaxed)), epoch, "a permit on a recycled slot");
        let ending = Ending::Settled(Outcome::Success);
        if self.words.glance(token, ending) == Glance::Unchanged {
            self.words.release();
            return "unchanged";
        }
        let terms = Terms { policy: &self.policy, policy_version: 0 };
        let _ = self.words.record(token, Signs::default(), ending, || terms, &Self::reading());
        self.words.release();
        "recorded"
    }

    /// Takes a permit of the tenant of `epoch` and keeps it.
    pub fn enter(&self, epoch: u64) -> bool {
        self.ask(epoch).is_ok()
    }

    pub fn force_open(&self) {
        let _ =
            self.words.by_hand(Cause::ForcedOpen, Now::default(), |gate| gate.force(State::ForcedOpen, Now::default()));
    }

    /// Hands the slot to another tenant if nothing is in flight, in the order of the registry.
    pub fn hand_on(&self) -> bool {
        if !self.words.bulkhead.retire() {
            return false;
        }
        self.tenant.fetch_add(1, Ordering::Relaxed);
        if LAPSE != Lapse::EPOCH_LAST {
            self.words.next_epoch();
        }
        let _ = self.words.by_hand(Cause::Forgotten, Now::default(), |gate| gate.forget(Now::default()));
        self.words.recycle(&self.policy, 0);
        self.words.bulkhead.reinstate(self.policy.max_in_flight());
        true
    }

    /// If the epoch wasn't raised in time.
    pub fn raise_late(&self) {
        if LAPSE == Lapse::EPOCH_LAST {
            self.words.next_epoch();
        }
    }
}
