//! The stack that a gateway puts together by hand: a map of keys, and a semaphore and a breaker for each.

use std::hint::black_box;
use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::Semaphore;

use crate::cores::case::{Basis, Path};
use crate::cores::keys::{Key, KeySet};
use crate::cores::timed::{Setup, Single, Timed};
use crate::subject::{Cannot, Ending, Killable, Subject as _};

/// The name that begins those of all its forms.
pub const NAME: &str = "by hand";

#[derive(Debug)]
pub struct Target<P> {
    permits: Arc<Semaphore>,
    breaker: P,
}

#[derive(Debug)]
pub struct ByHand<P> {
    targets: DashMap<Key, Arc<Target<P>>>,
    keys: Arc<KeySet>,
}

impl<P: Single + std::fmt::Debug> Timed for ByHand<P> {
    fn name() -> String {
        format!("{NAME}, {}", P::Adapter::NAME)
    }

    fn cannot() -> Vec<Cannot> {
        let added = [Cannot::Permit, Cannot::Key];
        P::Adapter::CANNOT.iter().copied().filter(|what| !added.contains(what)).collect()
    }

    const BASES: &'static [Basis] = P::BASES;

    fn remark(_: Path) -> &'static str {
        "DashMap + Semaphore"
    }

    type Caller<'a> = &'a DashMap<Key, Arc<Target<P>>>;

    fn build(setup: &Setup) -> Self {
        let target = |key: &Key| {
            let permits = Arc::new(Semaphore::new(setup.settings.limit as usize));
            (key.clone(), Arc::new(Target { permits, breaker: P::build(&setup.settings) }))
        };
        Self { targets: setup.keys.all.iter().map(target).collect(), keys: Arc::clone(&setup.keys) }
    }

    fn caller(&self, _: usize) -> Self::Caller<'_> {
        &self.targets
    }

    #[inline]
    fn call(targets: &mut Self::Caller<'_>, key: &Key, ending: Ending) -> bool {
        // Cloned, so that no shard stays locked while the call runs.
        let Some(target) = targets.get(black_box(key.as_str())).map(|target| Arc::clone(&target)) else {
            return false;
        };
        let Ok(_permit) = target.permits.try_acquire() else { return false };
        target.breaker.call(ending)
    }

    fn hold(&self, home: usize) -> Option<Box<dyn Killable + '_>> {
        let target = self.targets.get(&self.keys.all[home])?;
        let permit = Arc::clone(&target.permits).try_acquire_owned().ok()?;
        Some(Box::new(permit))
    }
}
