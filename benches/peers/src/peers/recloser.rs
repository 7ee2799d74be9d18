//! recloser: its asynchronous form where calls are held open, its blocking form for calls in one piece.

use std::future::ready;

use recloser::{AsyncRecloser, Error, Recloser};

use crate::held::{Failed, HeldCall, Verdict, now};
use crate::subject::{Cannot, Ending, Held, Hook, Rule, Settings, Subject};

const CANNOT: &[Cannot] = &[
    Cannot::Permit,
    Cannot::TimeWindow,
    Cannot::MinCalls,
    Cannot::LimitProbes,
    Cannot::ChooseProbes,
    Cannot::Ignore,
    Cannot::Key,
    Cannot::Observe,
    Cannot::MoveClock,
];
const BETTER: &str =
    "a window of any length; the wait may follow any function of the failures in a row; a lost probe can't wedge it";

/// The breaker that both forms share; the stack composed by hand uses it too.
#[must_use]
pub fn ring(settings: &Settings) -> Recloser {
    let len = match settings.rule {
        Rule::Any => 10,
        Rule::Calls { window, .. } => window,
        Rule::Time { min_calls, .. } => min_calls,
    };
    Recloser::custom()
        .error_rate(0.5)
        .closed_len(len as usize)
        .half_open_len(settings.to_close as usize)
        .open_wait(settings.wait)
        .build()
}

/// What it makes of an answer at once.
pub fn answer(ending: Ending) -> Result<(), Failed> {
    match ending {
        Ending::Success => Ok(()),
        Ending::Failure => Err(Failed::Upstream),
        Ending::Ignored => Err(Failed::Caller),
    }
}

fn is_failure(failed: &Failed) -> bool {
    *failed == Failed::Upstream
}

/// Starts a call whose verdict is still to come.
#[must_use]
pub fn start(recloser: &AsyncRecloser) -> Option<HeldCall<'static>> {
    let verdict = Verdict::default();
    let call = recloser.call_with(is_failure, verdict.call());
    HeldCall::start(verdict, async {
        let _ = call.await;
    })
}

/// Ends a held call. An error that the predicate spares counts as a success, so ignoring is dropping.
pub fn finish(call: HeldCall<'_>, ending: Ending) {
    match ending {
        Ending::Ignored => drop(call),
        told => call.finish(told),
    }
}

/// A call in one piece.
#[must_use]
pub fn once(recloser: &AsyncRecloser, ending: Ending) -> bool {
    !matches!(now(recloser.call_with(is_failure, ready(answer(ending)))), Err(Error::Rejected))
}

#[derive(Debug)]
pub struct Futures(AsyncRecloser);

impl Subject for Futures {
    const NAME: &'static str = "recloser";
    const CRATES: &'static [&'static str] = &["recloser"];
    const CANNOT: &'static [Cannot] = CANNOT;
    const BETTER: &'static str = BETTER;

    fn build(settings: &Settings, _: Option<Hook>) -> Self {
        Self(AsyncRecloser::from(ring(settings)))
    }

    fn once(&self, _: &str, ending: Ending) -> bool {
        once(&self.0, ending)
    }
}

impl Held for Futures {
    type Token<'a> = HeldCall<'a>;

    fn admit(&self, _: &str) -> Option<HeldCall<'_>> {
        start(&self.0)
    }

    fn settle<'a>(&'a self, call: HeldCall<'a>, ending: Ending) {
        finish(call, ending);
    }
}

/// The form whose decisions are worth timing; its calls can't be held open.
#[derive(Debug)]
pub struct Blocking(Recloser);

impl Subject for Blocking {
    const NAME: &'static str = "recloser (blocking)";
    const CRATES: &'static [&'static str] = &["recloser"];
    const CANNOT: &'static [Cannot] = CANNOT;
    const BETTER: &'static str = BETTER;

    fn build(settings: &Settings, _: Option<Hook>) -> Self {
        Self(ring(settings))
    }

    fn once(&self, _: &str, ending: Ending) -> bool {
        !matches!(self.0.call_with(is_failure, || answer(ending)), Err(Error::Rejected))
    }
}
