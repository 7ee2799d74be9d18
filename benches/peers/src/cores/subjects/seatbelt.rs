//! seatbelt: a breaker per key behind one layer, on its real clock.

use std::hint::black_box;
use std::sync::Arc;

use ::seatbelt::breaker::{Breaker, BreakerId, HalfOpenMode};
use ::seatbelt::{RecoveryInfo, ResilienceContext};
use layered::{Service, Stack};

use super::finish;
use crate::cores::case::{Basis, Path};
use crate::cores::keys::{Key, KeySet};
use crate::cores::timed::{Setup, Timed, answer};
use crate::held::{Failed, HeldCall, Verdict};
use crate::peers::{seatbelt, tower_resilience};
use crate::subject::{Cannot, Ending, Killable, Rule, Subject as _};

type Answer = Result<(), Failed>;

/// A call: the breaker that it is for, and its answer, ready or still to come.
#[derive(Debug)]
struct Call {
    breaker: BreakerId,
    ending: Ending,
    held: Option<Verdict>,
}

impl Call {
    /// By the hash of the key: quicker than by its text, says the documentation, and nothing is allocated.
    #[inline]
    fn new(key: &Key, ending: Ending, held: Option<Verdict>) -> Self {
        Self { breaker: BreakerId::hashed(key, "upstream"), ending, held }
    }
}

#[derive(Debug)]
struct Upstream;

impl Service<Call> for Upstream {
    type Out = Answer;

    #[inline]
    async fn execute(&self, call: Call) -> Answer {
        match call.held {
            None => answer(call.ending).map_err(|_| Failed::Upstream),
            Some(verdict) => verdict.call().await,
        }
    }
}

pub struct Seatbelt {
    service: Breaker<Call, Answer, Upstream>,
    keys: Arc<KeySet>,
}

impl std::fmt::Debug for Seatbelt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seatbelt").finish_non_exhaustive()
    }
}

/// Its service, behind a name of our own.
#[derive(Clone, Copy)]
pub struct Caller<'a>(&'a Breaker<Call, Answer, Upstream>);

impl std::fmt::Debug for Caller<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Caller").finish_non_exhaustive()
    }
}

impl Timed for Seatbelt {
    fn name() -> String {
        seatbelt::Seatbelt::NAME.to_owned()
    }

    fn cannot() -> Vec<Cannot> {
        seatbelt::Seatbelt::CANNOT.to_vec()
    }

    const BASES: &'static [Basis] = &[Basis::Time];

    fn remark(_: Path) -> &'static str {
        "its quick clock"
    }

    type Caller<'a> = Caller<'a>;

    fn build(setup: &Setup) -> Self {
        let settings = &setup.settings;
        let Rule::Time { window, min_calls } = settings.rule else { unreachable!("it judges by time only") };
        let _timers = tower_resilience::runtime().enter();
        let clock = tick::Clock::new_tokio().with_fast_instant(true);
        let context = ResilienceContext::<Call, Answer>::new(clock).name("cores");
        let layer = Breaker::layer("upstream", &context)
            .recovery_with(|answer: &Answer, _| match answer {
                Err(Failed::Upstream) => RecoveryInfo::retry(),
                _ => RecoveryInfo::never(),
            })
            .rejected_input_error(|_, _| Failed::Refused)
            .failure_threshold(0.5)
            .min_throughput(min_calls)
            .sampling_duration(window)
            .break_duration(settings.wait)
            .half_open_mode(HalfOpenMode::quick())
            .breaker_id(|call: &Call| call.breaker.clone());
        let timed = Self { service: (layer, Upstream).into_service(), keys: Arc::clone(&setup.keys) };
        for key in &setup.keys.all {
            assert!(Self::call(&mut timed.caller(0), key, Ending::Success), "a new key is admitted");
        }
        timed
    }

    fn caller(&self, _: usize) -> Caller<'_> {
        Caller(&self.service)
    }

    #[inline]
    fn call(caller: &mut Caller<'_>, key: &Key, ending: Ending) -> bool {
        finish(caller.0.execute(Call::new(black_box(key), ending, None))) != Err(Failed::Refused)
    }

    fn hold(&self, home: usize) -> Option<Box<dyn Killable + '_>> {
        let verdict = Verdict::default();
        let call = Call::new(&self.keys.all[home], Ending::Success, Some(verdict.clone()));
        let held = HeldCall::start(verdict, async move {
            let _ = self.service.execute(call).await;
        });
        held.map(|call| Box::new(call) as Box<dyn Killable>)
    }
}
