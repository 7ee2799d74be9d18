//! seatbelt: a breaker per key behind one layer, with its quick mode of one probe, on a clock that tests may move.

use std::time::Duration;

use layered::{Service, Stack};
use seatbelt::breaker::{Breaker, BreakerId, HalfOpenMode};
use seatbelt::{RecoveryInfo, ResilienceContext};
use tick::ClockControl;

use crate::held::{Failed, HeldCall, Verdict, now};
use crate::subject::{Cannot, Ending, Held, Hook, Rule, Settings, Subject};

type Answer = Result<(), Failed>;

/// A call, with the key that its breaker is chosen by.
#[derive(Debug)]
pub struct Call {
    key: String,
    verdict: Verdict,
}

/// The upstream behind the layer.
#[derive(Debug)]
struct Upstream;

impl Service<Call> for Upstream {
    type Out = Answer;

    async fn execute(&self, call: Call) -> Answer {
        call.verdict.call().await
    }
}

pub struct Seatbelt {
    service: Breaker<Call, Answer, Upstream>,
    clock: ClockControl,
}

impl std::fmt::Debug for Seatbelt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seatbelt").finish_non_exhaustive()
    }
}

impl Subject for Seatbelt {
    const NAME: &'static str = "seatbelt";
    const CRATES: &'static [&'static str] = &["seatbelt", "layered", "tick"];
    const CANNOT: &'static [Cannot] = &[
        Cannot::Permit,
        Cannot::CallsWindow,
        // Its progressive mode sends a growing share of calls as probes; here it is set to one probe at a time.
        Cannot::ChooseProbes,
        Cannot::CountSuccesses,
        Cannot::Ignore,
        Cannot::BoundKeys,
    ];
    const BETTER: &'static str = "lets traffic back in by growing shares (its default mode, not the one set here); three policies for abandoned calls; telemetry";

    fn build(settings: &Settings, hook: Option<Hook>) -> Self {
        let (window, min_calls) = match settings.rule {
            Rule::Any => (Duration::from_secs(60), 10),
            Rule::Time { window, min_calls } => (window, min_calls),
            Rule::Calls { min_calls, .. } => (Duration::from_secs(60), min_calls),
        };
        let clock = ClockControl::new();
        let context = ResilienceContext::<Call, Answer>::new(clock.to_clock()).name("faults");
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
            .breaker_id(|call: &Call| BreakerId::from(call.key.clone()));
        let layer = match hook {
            Some(hook) => {
                let opened = hook.clone();
                layer.on_opened(move |_, _| opened()).on_closed(move |_, _| hook())
            }
            None => layer,
        };
        Self { service: (layer, Upstream).into_service(), clock }
    }

    fn once(&self, key: &str, ending: Ending) -> bool {
        let call = Call { key: key.to_owned(), verdict: Verdict::ready(ending) };
        now(self.service.execute(call)) != Err(Failed::Refused)
    }
}

impl Held for Seatbelt {
    const WAIT: Duration = Duration::from_secs(5);
    const WINDOW: Duration = Duration::from_secs(10);
    const SILENCE: Duration = Duration::from_secs(1);

    type Token<'a> = HeldCall<'a>;

    fn admit(&self, key: &str) -> Option<HeldCall<'_>> {
        let verdict = Verdict::default();
        let call = Call { key: key.to_owned(), verdict: verdict.clone() };
        HeldCall::start(verdict, async move {
            let _ = self.service.execute(call).await;
        })
    }

    fn settle<'a>(&'a self, call: HeldCall<'a>, ending: Ending) {
        match ending {
            Ending::Ignored => drop(call),
            told => call.finish(told),
        }
    }

    fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}
