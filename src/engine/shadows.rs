//! Shadows by key: made, looked at, promoted and taken away under the tenant's lock.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;

use super::{Engine, Key};
use crate::handle::Target;
use crate::outcome::Settled;
use crate::policy::Policy;
use crate::shadow::candidate::{Beginning, Candidate};
use crate::shadow::{MOST, NAME, ShadowError, ShadowSnapshot};
use crate::slot::{Slot, Tenant};
use crate::target::{Ending, Signs, Token};
use crate::time::{AnyReading, Now};

impl<K: Key> Engine<K> {
    /// Has a candidate for the policy of `key` told of each of its calls; see [`Target::shadow`]. The target is never forgotten after that.
    ///
    /// ```
    /// use portcullis::{Engine, Policy};
    ///
    /// let engine: Engine = Engine::builder().build();
    /// engine.shadow("core-banking", "strict", Policy::builder().consecutive_failures(3).build()?)?;
    /// for _ in 0..3 {
    ///     engine.admit("core-banking")?.failure();
    /// }
    /// engine.admit("core-banking")?.success();
    /// let shadow = &engine.shadows("core-banking")[0];
    /// assert_eq!((shadow.asked, shadow.trips, shadow.refused, shadow.refused_but_succeeded), (4, 1, 1, 1));
    ///
    /// let before = engine.promote("core-banking", "strict")?;
    /// assert_eq!(before, Policy::default());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ShadowError`]: the name, too many, or no room for a key that is new.
    pub fn shadow<Q>(&self, key: &Q, name: &str, policy: Policy) -> Result<bool, ShadowError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.target(key)?.shadow(name, policy)
    }

    /// Takes a shadow of `key` away, with its counts; whether there was one.
    pub fn unshadow<Q>(&self, key: &Q, name: &str) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.known(key).is_some_and(|target| target.unshadow(name))
    }

    /// The shadows of `key` as they are now, in the order in which they came; see [`Target::shadows`].
    #[must_use]
    pub fn shadows<Q>(&self, key: &Q) -> Vec<ShadowSnapshot>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.known(key).map_or_else(Vec::new, |target| target.shadows())
    }

    /// Puts a shadow's policy in force for `key`, and takes the shadow away; the policy that was in force. See [`Target::promote`].
    ///
    /// # Errors
    ///
    /// [`ShadowError::Unknown`] if there is no such target, or it has no such shadow.
    pub fn promote<Q>(&self, key: &Q, name: &str) -> Result<Policy, ShadowError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.known(key).ok_or(ShadowError::Unknown)?.promote(name)
    }

    fn known<Q>(&self, key: &Q) -> Option<Target<'_, K>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let slot = self.registry.find(key, |slot| {
            slot.pin();
            slot
        })?;
        Some(Target::pinned(self, slot))
    }

    /// As [`Engine::settle_seen`], for a call that shadows follow.
    #[cold]
    #[inline(never)]
    pub(super) fn settle_followed(
        &self,
        slot: &Slot<K>,
        token: Token,
        signs: Signs,
        ending: Ending,
        at: Option<Now>,
    ) -> Settled {
        let (token, at) = self.told_shadows(slot, token, (signs, ending), at, false);
        self.settle_seen(slot, token, signs, ending, at)
    }

    /// Tells the shadows of a call how it ended, and whether it keeps its permit; the token as the target's own words know it, and
    /// the time if the clock was read.
    pub(super) fn told_shadows(
        &self,
        slot: &Slot<K>,
        token: Token,
        (signs, ending): (Signs, Ending),
        at: Option<Now>,
        is_held: bool,
    ) -> (Token, Option<Now>) {
        let Some(ticket) = token.ticket() else { return (token, at) };
        let read = || at.unwrap_or_else(|| self.read_clock());
        let time = AnyReading::new(&read);
        let desk = slot.words.desk();
        if is_held {
            desk.hold(ticket, signs, ending, &time);
        } else {
            desk.end(ticket, signs, ending, &time);
        }
        (token.with_ticket(None), at.or(time.taken()))
    }

    pub(crate) fn shadow_slot(&self, slot: &Slot<K>, name: &str, policy: Policy) -> Result<bool, ShadowError> {
        if !NAME.contains(&name.len()) || name.chars().any(char::is_control) {
            return Err(ShadowError::Name);
        }
        let tenant = slot.tenant();
        slot.configure();
        let mut all = slot.words.desk().all();
        let place = all.iter().position(|known| known.name == name);
        if place.is_some_and(|place| all[place].policy == policy) {
            return Ok(false);
        }
        if place.is_none() && all.len() == MOST {
            return Err(ShadowError::TooMany { most: MOST });
        }
        let begun = Beginning {
            at: self.read_clock(),
            salt: slot.words.salt(),
            incarnation: tenant.as_ref().map_or(0, Tenant::incarnation),
            refused: slot.words.bulkhead.refusals().total(),
        };
        let new = Arc::new(Candidate::new(name, policy, begun));
        match place {
            Some(place) => all[place] = new,
            None => all.push(new),
        }
        self.show_calls_to(slot, &all);
        Ok(true)
    }

    pub(crate) fn unshadow_slot(&self, slot: &Slot<K>, name: &str) -> bool {
        let _tenant = slot.tenant();
        self.without(slot, name).is_some()
    }

    pub(crate) fn shadows_of(&self, slot: &Slot<K>) -> Vec<ShadowSnapshot> {
        let Some(desk) = slot.words.desk_if_any() else { return Vec::new() };
        let (now, refused) = (self.read_clock(), slot.words.bulkhead.refusals().total());
        desk.all().iter().map(|shadow| shadow.snapshot(refused, now)).collect()
    }

    pub(crate) fn promote_slot(&self, slot: &Slot<K>, name: &str) -> Result<Policy, ShadowError> {
        let (before, report) = {
            let mut tenant = slot.tenant();
            let tenant = tenant.as_mut().ok_or(ShadowError::Unknown)?;
            let shadow = self.without(slot, name).ok_or(ShadowError::Unknown)?;
            let before = self.policy(slot).clone();
            (before, self.put_in_force(slot, tenant, shadow.policy.clone()))
        };
        slot.words.bulkhead.serve();
        self.tell(report);
        Ok(before)
    }

    /// Takes a shadow away, under the tenant's lock.
    fn without(&self, slot: &Slot<K>, name: &str) -> Option<Arc<Candidate>> {
        let mut all = slot.words.desk_if_any()?.all();
        let place = all.iter().position(|known| known.name == name)?;
        let gone = all.remove(place);
        self.show_calls_to(slot, &all);
        Some(gone)
    }

    /// Under the tenant's lock.
    fn show_calls_to(&self, slot: &Slot<K>, all: &[Arc<Candidate>]) {
        // The shadows first: a call that finds the mark finds them. One that doesn't any more, or finds none, goes without.
        slot.words.desk().replace(all);
        slot.words.set_brief(self.policy(slot), !all.is_empty());
    }
}
