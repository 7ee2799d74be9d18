//! A target without an engine around it, for callers with one destination.

use crate::engine::Engine;
use crate::handle::Target;
use crate::permit::Permit;
use crate::policy::Policy;
use crate::priority::Admit;
use crate::rejection::Rejection;
use crate::slot::Slot;
use crate::time::Clock;

/// One target that stands alone: an [`Engine`] that never holds another, resolved for good.
///
/// ```
/// use portcullis::{Policy, Standalone};
///
/// let ledger = Standalone::new("ledger", Policy::default());
/// match ledger.admit() {
///     Ok(permit) => { permit.success(); }
///     Err(rejection) => eprintln!("{}: {rejection}", rejection.code()),
/// }
/// ```
#[derive(Debug)]
pub struct Standalone {
    engine: Engine<String>,
}

impl Standalone {
    /// Makes the target, with a precise clock.
    #[must_use]
    pub fn new(name: impl Into<String>, policy: Policy) -> Self {
        Self::with_clock(name, policy, Clock::default())
    }

    /// Makes the target, with a clock of yours.
    #[must_use]
    pub fn with_clock(name: impl Into<String>, policy: Policy, clock: impl Into<Clock>) -> Self {
        let engine = Engine::builder().policy(policy).clock(clock).max_targets(1).build();
        if let Ok(target) = engine.target(name.into().as_str()) {
            // The handle's count stays: this target is never forgotten.
            std::mem::forget(target);
        }
        Self { engine }
    }

    /// Decides whether a call may start; see [`Target::admit`].
    ///
    /// # Errors
    ///
    /// [`Rejection`] says why not, and when to come back.
    #[inline]
    pub fn admit(&self) -> Result<Permit<'_>, Rejection> {
        self.engine.admit_slot(self.slot()?, false)
    }

    /// Decides whether a call may start that matters more or less than others; see [`Engine::admit_with`].
    ///
    /// # Errors
    ///
    /// [`Rejection`], as for [`Engine::admit_with`].
    pub fn admit_with(&self, how: impl Into<Admit>) -> Result<Permit<'_>, Rejection> {
        self.engine.admit_slot_as(self.slot()?, how.into())
    }

    /// The target, with everything that one can do with it.
    ///
    /// # Errors
    ///
    /// None in fact: the target lives as long as this.
    pub fn target(&self) -> Result<Target<'_>, Rejection> {
        let slot = self.slot()?;
        slot.pin();
        Ok(Target::pinned(&self.engine, slot))
    }

    /// The engine around it: observers, subscriptions and the log are there.
    #[must_use]
    pub fn engine(&self) -> &Engine<String> {
        &self.engine
    }

    #[inline]
    fn slot(&self) -> Result<&Slot<String>, Rejection> {
        self.engine.slot(0).ok_or(Rejection::Exhausted { max_targets: 1 })
    }
}
