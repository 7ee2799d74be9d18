//! One run: the upstreams, the gateway, the load, and the script of the outage.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use portcullis::{Observer, State, Transition};
use tokio::time::Instant;

use super::load::{Load, Tally};
use super::meter::Meter;
use super::report::{Change, Measured, Phase, Run, Storm};
use super::timeline::{Scene, Timeline};
use super::upstreams::{Mode, Upstream};
use super::{SICK, WELL};
use crate::{Config, Gateway};

/// Requests per second and target: far below what two cores can do, and far above what a hung target lets go.
pub(super) const RATE: u32 = 150;
/// The most requests in the gateway at once. A hung target alone would hold 150/s × 3 × 0.35 s = 157.
pub(super) const CAP: u32 = 64;
/// The failing target's share of them.
pub(super) const SHARE: u32 = 8;
/// The time that an attempt has to bring the head of its answer.
///
/// Half a period off the requests' own rhythm: a call that is given up ends between two arrivals, so that its upstream has
/// noticed before the next one comes.
pub(super) const TIMEOUT: Duration = Duration::from_millis(350);
/// What a slow upstream takes: it does answer, and nobody can wait for it.
const TOO_SLOW: Duration = Duration::from_millis(700);
/// The most attempts for each request, in both runs.
pub(super) const ATTEMPTS: u32 = 3;
/// The share of calls that may be tried again, with portcullis.
pub(super) const BUDGET: f64 = 0.1;

/// The outage: how the upstream is, from which part of it on.
const OUTAGE: [(Mode, f64); 4] =
    [(Mode::Slow(TOO_SLOW), 0.0), (Mode::Hanging, 0.3), (Mode::Failing, 0.55), (Mode::Refusing, 0.75)];

/// Which of the two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Each target has a policy.
    With,
    /// The targets have no limit and no trip rule; only the cap on the process is left.
    Without,
}

impl Kind {
    fn config(self, sick: &Upstream, well: &Upstream) -> String {
        let (rules, sick_share, well_share) = match self {
            Self::With => (
                format!(
                    "consecutive_failures = 3\nwindow = {{ calls = 20 }}\nfailure_rate = 0.5\n\
                     open_wait = \"400ms\"\nbackoff = 1.5\nopen_wait_max = \"800ms\"\n\
                     probe_timeout = \"300ms\"\nretry_budget = {BUDGET}"
                ),
                SHARE.to_string(),
                (CAP - 2 * SHARE).to_string(),
            ),
            Self::Without => (
                "window = \"none\"\nretry_budget = \"none\"".to_owned(),
                "\"unlimited\"".to_owned(),
                "\"unlimited\"".to_owned(),
            ),
        };
        let mut text = format!("listen = \"127.0.0.1:0\"\nadmin = \"off\"\nmax_concurrent = {CAP}\n");
        text += &format!("[defaults]\ntimeout = \"{}ms\"\n{rules}\n", TIMEOUT.as_millis());
        text += &format!("attempts = {ATTEMPTS}\nretry_backoff = \"10ms\"\nretry_backoff_max = \"20ms\"\n");
        // The last of them is the well one.
        for (name, upstream, share) in [(SICK, sick, sick_share), (WELL, well, well_share)] {
            text += &format!("[[route]]\npath = \"/{name}/\"\ntarget = \"{name}\"\n");
            text += &format!("[target.{name}]\nupstream = [\"{}\"]\nmax_in_flight = {share}\n", upstream.url());
        }
        // It answers at once; a machine that is busy with other things is no failure of its.
        text += "timeout = \"2s\"\n";
        text
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::With => "with portcullis: a limit, a circuit breaker and a retry budget for each target",
            Self::Without => {
                "without: as many retries, but no limit, breaker or budget for any target, only the cap on the process"
            }
        }
    }
}

/// Tells the upstream's meter when its circuit isn't closed.
#[derive(Debug)]
struct Guard(Meter);

impl Observer<String> for Guard {
    fn on_transition(&self, transition: &Transition<String>) {
        if *transition.target == SICK {
            self.0.set_guarded(transition.to != State::Closed);
        }
    }
}

/// Plays a run whose load takes `length`.
pub(super) async fn play(kind: Kind, length: Duration, timeline: &Timeline) -> io::Result<Run> {
    let mut sick = Upstream::start().await?;
    let well = Upstream::start().await?;
    let config: Config = kind.config(&sick, &well).parse().map_err(io::Error::other)?;
    let gateway = Gateway::start(config).await?;
    let engine = gateway.engine();
    let guard = engine.observe(Guard(sick.meter()));
    timeline.title(kind.title());

    let begin = engine.now();
    let start = Instant::now();
    // 4, 7 and 4 parts of 15: the outage is the longest.
    let healthy = [(Mode::Healthy, 0.0)];
    let parts = [("healthy", &healthy[..], 4), ("outage", &OUTAGE[..], 7), ("recovery", &healthy[..], 4)];
    let mut phases = Vec::new();
    let mut storm = Storm::default();
    for (name, modes, part) in parts {
        sick.restart_counts();
        well.restart_counts();
        let before = gateway.calls(SICK).unwrap_or_default();
        let length = length * part / 15;
        let tallies = [Tally::default(), Tally::default()];
        let load = |target: &str| Load::new(gateway.address(), &format!("/{target}/fast"), RATE);
        let (to_sick, to_well) = (load(SICK), load(WELL));
        let now = Instant::now();
        let work = async {
            let script = async {
                for (mode, from) in modes {
                    tokio::time::sleep_until(now + length.mul_f64(*from)).await;
                    sick.set_mode(*mode).await?;
                }
                Ok::<(), io::Error>(())
            };
            // Half a period apart, so that the two loads don't arrive together.
            let half = Duration::from_secs(1) / (2 * RATE);
            let loads = (to_sick.run(now, length, &tallies[0]), to_well.run(now + half, length, &tallies[1]));
            tokio::join!(loads.0, loads.1, script).2
        };
        let scene = Scene { start, phase: name, engine, tallies: &tallies };
        tokio::select! {
            done = work => done?,
            () = timeline.show(&scene) => {}
        }
        let measured = |tally: &Tally, upstream: &Upstream| Measured::new(tally.results(), upstream.counts());
        let targets = BTreeMap::from([(SICK, measured(&tallies[0], &sick)), (WELL, measured(&tallies[1], &well))]);
        phases.push(Phase { name, targets });
        let after = gateway.calls(SICK).unwrap_or_default();
        if name == "outage" {
            storm = Storm {
                requests: after.calls - before.calls,
                attempts: after.attempts - before.attempts,
                retries: after.retries - before.retries,
            };
        }
    }
    drop(guard);
    // What setting the policies brought about isn't part of the play.
    let log = engine.transitions();
    let transitions = log.iter().filter(|entry| entry.at >= begin).map(|entry| change(entry, begin)).collect();
    let max_probes = sick.counts().max_probes;
    gateway.shutdown().await;
    Ok(Run { phases, transitions, max_probes, storm })
}

fn change(transition: &Transition<String>, begin: Duration) -> Change {
    let at = transition.at.saturating_sub(begin);
    Change {
        at_ms: u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
        target: transition.target.to_string(),
        from: transition.from.as_str(),
        to: transition.to.as_str(),
        cause: transition.cause.as_str(),
    }
}
