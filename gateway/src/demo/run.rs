//! One run: the upstreams, the gateway, the load, and the script of the outage.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use portcullis::{Observer, State, Transition};
use tokio::time::Instant;

use super::load::{Load, Tally};
use super::meter::Meter;
use super::report::{Change, Measured, Phase, Run};
use super::timeline::{Scene, Timeline};
use super::upstreams::{Mode, Upstream};
use super::{SICK, WELL};
use crate::{Config, Gateway};

/// Requests per second and target: far below what two cores can do, and far above what a hung target lets go.
pub(super) const RATE: u32 = 150;
/// The most requests in the gateway at once. A hung target alone would hold 150/s × 0.75 s = 112.
pub(super) const CAP: u32 = 64;
/// The failing target's share of them.
pub(super) const SHARE: u32 = 8;
/// The time that a call has to bring the head of its answer.
///
/// Half a period off the requests' own rhythm: a call that is given up ends between two arrivals, so that its upstream has
/// noticed before the next one comes.
pub(super) const TIMEOUT: Duration = Duration::from_millis(750);

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
                "consecutive_failures = 3\nwindow = { calls = 20 }\nfailure_rate = 0.5\n\
                 open_wait = \"400ms\"\nbackoff = 1.5\nopen_wait_max = \"800ms\"",
                SHARE.to_string(),
                (CAP - 2 * SHARE).to_string(),
            ),
            Self::Without => ("window = \"none\"", "\"unlimited\"".to_owned(), "\"unlimited\"".to_owned()),
        };
        let mut text = format!("listen = \"127.0.0.1:0\"\nadmin = \"off\"\nmax_concurrent = {CAP}\n");
        text += &format!("[defaults]\ntimeout = \"{}ms\"\n{rules}\n", TIMEOUT.as_millis());
        for (name, upstream, share) in [(SICK, sick, sick_share), (WELL, well, well_share)] {
            text += &format!("[[route]]\npath = \"/{name}/\"\ntarget = \"{name}\"\n");
            text += &format!("[target.{name}]\nupstream = [\"{}\"]\nmax_in_flight = {share}\n", upstream.url());
        }
        text
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::With => "with portcullis: a limit and a circuit breaker for each target",
            Self::Without => "without: no limit and no breaker for any target, only the cap on the process",
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
    // 4, 7 and 4 parts of 15: the outage is the longest, half of it and a bit hung, the rest refused.
    let parts = [("healthy", Mode::Healthy, 4), ("outage", Mode::Hanging, 7), ("recovery", Mode::Healthy, 4)];
    let mut phases = Vec::new();
    for (name, mode, part) in parts {
        sick.restart_counts();
        well.restart_counts();
        sick.set_mode(mode).await?;
        let length = length * part / 15;
        let tallies = [Tally::default(), Tally::default()];
        let load = |target: &str| Load::new(gateway.address(), &format!("/{target}/fast"), RATE);
        let (to_sick, to_well) = (load(SICK), load(WELL));
        let now = Instant::now();
        let work = async {
            let script = async {
                if mode == Mode::Hanging {
                    tokio::time::sleep(length.mul_f64(0.6)).await;
                    sick.set_mode(Mode::Refusing).await?;
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
    }
    drop(guard);
    // What setting the policies brought about isn't part of the play.
    let log = engine.transitions();
    let transitions = log.iter().filter(|entry| entry.at >= begin).map(|entry| change(entry, begin)).collect();
    let max_probes = sick.counts().max_probes;
    gateway.shutdown().await;
    Ok(Run { phases, transitions, max_probes })
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
