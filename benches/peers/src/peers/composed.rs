//! What a gateway puts together by hand today: a map of keys, and a breaker and a semaphore for each.

use std::sync::Arc;

use dashmap::DashMap;
use recloser::AsyncRecloser;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::recloser::{finish, once, ring, start};
use crate::held::HeldCall;
use crate::subject::{Cannot, Ending, Held, Hook, Settings, Subject};

struct Target {
    breaker: AsyncRecloser,
    permits: Arc<Semaphore>,
}

pub struct Composed {
    targets: DashMap<String, Arc<Target>>,
    settings: Settings,
}

impl std::fmt::Debug for Composed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Composed").field("targets", &self.targets.len()).finish_non_exhaustive()
    }
}

impl Composed {
    fn target(&self, key: &str) -> Arc<Target> {
        if let Some(target) = self.targets.get(key) {
            return Arc::clone(&target);
        }
        let made = self.targets.entry(key.to_owned()).or_insert_with(|| {
            let permits = Arc::new(Semaphore::new(self.settings.limit as usize));
            Arc::new(Target { breaker: AsyncRecloser::from(ring(&self.settings)), permits })
        });
        Arc::clone(&made)
    }
}

/// A call of the breaker, and the permit behind it.
#[derive(Debug)]
pub struct Token<'a> {
    call: HeldCall<'a>,
    _permit: OwnedSemaphorePermit,
}

impl Subject for Composed {
    const NAME: &'static str = "by hand";
    const CRATES: &'static [&'static str] = &["dashmap", "recloser", "tokio"];
    const CANNOT: &'static [Cannot] = &[
        Cannot::TimeWindow,
        Cannot::MinCalls,
        Cannot::LimitProbes,
        Cannot::ChooseProbes,
        Cannot::Ignore,
        Cannot::BoundKeys,
        Cannot::Observe,
        Cannot::MoveClock,
    ];
    const BETTER: &'static str = "every part can be exchanged, and each is known to many";

    fn build(settings: &Settings, _: Option<Hook>) -> Self {
        Self { targets: DashMap::new(), settings: *settings }
    }

    fn once(&self, key: &str, ending: Ending) -> bool {
        let target = self.target(key);
        let Ok(_permit) = target.permits.try_acquire() else { return false };
        once(&target.breaker, ending)
    }
}

impl Held for Composed {
    type Token<'a> = Token<'a>;

    fn admit(&self, key: &str) -> Option<Token<'_>> {
        let target = self.target(key);
        let permit = Arc::clone(&target.permits).try_acquire_owned().ok()?;
        let call = start(&target.breaker)?;
        Some(Token { call, _permit: permit })
    }

    fn settle<'a>(&'a self, token: Token<'a>, ending: Ending) {
        finish(token.call, ending);
    }
}
