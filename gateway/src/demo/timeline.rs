//! The run while it goes on: a line every half second.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use portcullis::{Engine, State};
use tokio::time::Instant;

use super::load::{Results, Tally};
use super::{SICK, WELL};

const STEP: Duration = Duration::from_millis(500);

/// Where the lines go.
#[derive(Clone, Copy, Debug)]
enum Out {
    Nowhere,
    Stdout,
    Stderr,
}

/// The terminal, as far as this needs one.
#[derive(Debug)]
pub(super) struct Timeline {
    out: Out,
    color: bool,
}

/// What is going on.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) start: Instant,
    pub(super) phase: &'a str,
    pub(super) engine: &'a Engine<String>,
    pub(super) tallies: &'a [Tally; 2],
}

impl Timeline {
    /// Standard output belongs to the JSON if there is any.
    pub(super) fn new(json: bool) -> Self {
        if json {
            Self { out: Out::Stderr, color: std::io::stderr().is_terminal() }
        } else {
            Self { out: Out::Stdout, color: std::io::stdout().is_terminal() }
        }
    }

    pub(super) fn silent() -> Self {
        Self { out: Out::Nowhere, color: false }
    }

    pub(super) fn title(&self, title: &str) {
        self.line(&format!("\n{title}\n"));
        let head = format!("{:>5} {:>5} {:>7} {:>6}", "ok", "held", "refused", "failed");
        self.line(&format!("{:>6}  {:9} {SICK:12} {head}   {WELL:12} {head}", "s", "phase"));
    }

    /// Shows a scene until it is dropped.
    pub(super) async fn show(&self, scene: &Scene<'_>) {
        let mut last = [Results::default(), Results::default()];
        let mut ticks = tokio::time::interval_at(Instant::now() + STEP, STEP);
        loop {
            ticks.tick().await;
            let now = [scene.tallies[0].results(), scene.tallies[1].results()];
            let sick = self.column(scene.engine, SICK, &last[0], &now[0]);
            let well = self.column(scene.engine, WELL, &last[1], &now[1]);
            let time = scene.start.elapsed().as_secs_f64();
            self.line(&format!("{time:6.1}  {:9} {sick}   {well}", scene.phase));
            last = now;
        }
    }

    /// State, and what the last half second brought.
    fn column(&self, engine: &Engine<String>, target: &str, last: &Results, now: &Results) -> String {
        let (state, held) = match engine.snapshot(target) {
            Some(snapshot) => (self.painted(snapshot.state), snapshot.in_flight),
            None => (format!("{:12}", "-"), 0),
        };
        let refused = now.refused() - last.refused();
        let failed = now.lost() - last.lost() - refused;
        format!("{state} {:5} {held:5} {refused:7} {failed:6}", now.ok - last.ok)
    }

    fn painted(&self, state: State) -> String {
        let word = state.as_str();
        let color = match state {
            State::Closed => 32,
            State::HalfOpen => 33,
            _ => 31,
        };
        if self.color { format!("\x1b[{color}m{word:12}\x1b[0m") } else { format!("{word:12}") }
    }

    fn line(&self, line: &str) {
        // A reader that went away ends the show, not the run.
        let _ = match self.out {
            Out::Nowhere => Ok(()),
            Out::Stdout => writeln!(std::io::stdout(), "{line}"),
            Out::Stderr => writeln!(std::io::stderr(), "{line}"),
        };
    }
}
