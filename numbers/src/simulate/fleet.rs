//! A fleet, computed: what so many gateways do to so many targets when some of them are down.
//!
//! Nothing is run. Each line names its formula, and all of them are of the mean: callers are spread evenly over gateways and targets, and
//! come at random.

mod settings;

use serde_json::json;
use settings::Settings;

use super::Report;
use super::scenario::{Fleet, Scenario, Variant};
use crate::formulas::{CallsWindow, Rules, TimeWindow, little, streak_trips_per_call};
use crate::report::table::Table;
use crate::report::{escape, page};

const DAY: f64 = 86_400.0;
/// Of a target with a failure in its window, beside its key and the map's entry: `docs::operations` of the engine, "Memory".
const BYTES_PER_TARGET: f64 = 256.0 + 192.0;

const NOTE: &str = "This is arithmetic on means, not a run: a fleet of this size can't be simulated call by call. \
                    The formulas stand beside the numbers. A policy that has no such number has \"-\"; false trips are exact for streaks, a bound for windows.";

/// A number of each variant, with how it comes about.
struct Line {
    what: &'static str,
    formula: &'static str,
    value: fn(&Case<'_>) -> Cell,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Cell {
    Number(f64),
    Never,
    None,
}

/// A variant in a fleet.
struct Case<'a> {
    fleet: &'a Fleet,
    /// None without isolation.
    settings: Option<Settings>,
    timeout: f64,
}

const LINES: &[Line] = &[
    Line {
        what: "calls/s of one gateway to one target",
        formula: "r = R / (G T)",
        value: |case| Cell::Number(case.rate()),
    },
    Line {
        what: "failed calls until one gateway opens",
        formula: "n: the streak, or what the window needs",
        value: |case| case.calls_to_open(),
    },
    Line {
        what: "seconds until it opens",
        formula: "n / r + timeout",
        value: |case| case.calls_to_open().map(|calls| calls / case.rate() + case.timeout),
    },
    Line {
        what: "failed calls per target until all are open",
        formula: "G n",
        value: |case| case.calls_to_open().map(|calls| calls * f64::from(case.fleet.gateways)),
    },
    Line {
        what: "calls/s that reach a target which is down",
        formula: "G / (wait + 1/r + timeout) once open, else R / T",
        value: |case| Cell::Number(case.probes_per_second() * f64::from(case.fleet.gateways)),
    },
    Line {
        what: "calls of one gateway that hang on such targets",
        formula: "Little: D x those calls/s of one gateway x timeout",
        value: |case| Cell::Number(f64::from(case.fleet.down) * little(case.probes_per_second(), case.timeout)),
    },
    Line {
        what: "state changes/s, all gateways",
        formula: "2 D G / (wait + 1/r + timeout)",
        value: |case| {
            case.if_opens(2.0 * f64::from(case.fleet.down) * f64::from(case.fleet.gateways) * case.probes_per_second())
        },
    },
    Line {
        what: "seconds from recovery to the mean gateway's return",
        formula: "wait / 2 + successes_to_close x (1/r + latency)",
        value: |case| case.if_opens(case.seconds_to_close()),
    },
    Line {
        what: "refused calls per target meanwhile",
        formula: "R / T x those seconds",
        value: |case| case.if_opens(case.of_a_target() * case.seconds_to_close()),
    },
    Line {
        what: "calls at once at a target, on average",
        formula: "Little: R / T x latency",
        value: |case| Cell::Number(little(case.of_a_target(), case.fleet.latency)),
    },
    Line {
        what: "calls at once at a target, at most",
        formula: "G x max_in_flight",
        value: |case| match case.settings.as_ref().and_then(|settings| settings.limit) {
            Some(limit) => Cell::Number(f64::from(case.fleet.gateways) * limit),
            None => Cell::None,
        },
    },
    Line {
        what: "false trips per day, all gateways",
        formula: "86,400 R x trips per call",
        value: |case| case.false_trips_per_day(),
    },
    Line {
        what: "MB for one gateway's targets",
        formula: "T x 448 bytes, and keys",
        value: |case| match case.settings {
            Some(_) => Cell::Number(f64::from(case.fleet.targets) * BYTES_PER_TARGET / 1e6),
            None => Cell::None,
        },
    },
];

impl Cell {
    fn map(self, change: impl FnOnce(f64) -> f64) -> Self {
        if let Self::Number(number) = self { Self::Number(change(number)) } else { self }
    }

    /// Three digits that say something.
    fn text(self) -> String {
        match self {
            Self::Never => "never".to_owned(),
            Self::None => "-".to_owned(),
            Self::Number(number) if number == 0.0 || (0.01..1e6).contains(&number) => {
                let digits = if number >= 100.0 || number == 0.0 {
                    0
                } else if number >= 1.0 {
                    1
                } else {
                    3
                };
                format!("{number:.digits$}")
            }
            Self::Number(number) => format!("{number:.2e}"),
        }
    }
}

impl Case<'_> {
    fn of<'a>(fleet: &'a Fleet, variant: &Variant) -> Case<'a> {
        let terms = variant.terms.first().filter(|_| variant.isolation);
        let timeout = variant.terms.first().map_or(1.0, |terms| terms.call.timeout().as_secs_f64());
        Case { fleet, settings: terms.map(|terms| Settings::of(&terms.policy)), timeout }
    }

    fn of_a_target(&self) -> f64 {
        self.fleet.calls_per_second / f64::from(self.fleet.targets)
    }

    /// Of one gateway to one target.
    fn rate(&self) -> f64 {
        self.of_a_target() / f64::from(self.fleet.gateways)
    }

    /// Of calls that all fail, to a target that was well before.
    fn calls_to_open(&self) -> Cell {
        let Some(settings) = &self.settings else { return Cell::Never };
        let rules = settings.rules();
        let by_window = settings.calls.and_then(|calls| rules.fewest(calls.into())).map(|fewest| fewest as f64);
        let by_time = settings.time.and_then(|(seconds, _)| {
            let held = little(self.rate(), seconds);
            rules.fewest(held as u64).map(|fewest| fewest as f64)
        });
        let by_streak = settings.streak.map(f64::from);
        let fewest = [by_window, by_time, by_streak].into_iter().flatten().min_by(f64::total_cmp);
        fewest.map_or(Cell::Never, Cell::Number)
    }

    fn if_opens(&self, number: f64) -> Cell {
        if matches!(self.calls_to_open(), Cell::Number(_)) { Cell::Number(number) } else { Cell::None }
    }

    /// Calls that one gateway sends to a target that is down: probes, if it opens.
    fn probes_per_second(&self) -> f64 {
        match &self.settings {
            Some(settings) if matches!(self.calls_to_open(), Cell::Number(_)) => {
                1.0 / (settings.longest_wait + 1.0 / self.rate() + self.timeout)
            }
            _ => self.rate(),
        }
    }

    fn seconds_to_close(&self) -> f64 {
        self.settings.as_ref().map_or(0.0, |settings| {
            settings.longest_wait / 2.0 + settings.successes_to_close * (1.0 / self.rate() + self.fleet.latency)
        })
    }

    fn false_trips_per_day(&self) -> Cell {
        let Some(settings) = &self.settings else { return Cell::None };
        let (rules, failure) = (settings.rules(), self.fleet.failure);
        let by_streak = settings.streak.map_or(0.0, |streak| streak_trips_per_call(failure, streak));
        let by_calls = settings.calls.map_or(0.0, |calls| CallsWindow { calls, rules }.trips_per_call(failure));
        let by_time = settings.time.map_or(0.0, |(seconds, buckets)| {
            let window = TimeWindow { seconds, buckets, rules };
            window.trips_per_second(self.rate(), failure)
                * f64::from(self.fleet.gateways)
                * f64::from(self.fleet.targets)
        });
        Cell::Number(DAY * ((by_streak + by_calls) * self.fleet.calls_per_second + by_time))
    }
}

impl Settings {
    fn rules(&self) -> Rules {
        Rules { min_calls: self.min_calls, failure_rate: self.failure_rate, failures: self.failures }
    }
}

/// The report of a fleet.
pub(super) fn report(scenario: &Scenario, fleet: &Fleet) -> Report {
    let cases: Vec<Case<'_>> = scenario.variants.iter().map(|variant| Case::of(fleet, variant)).collect();
    let names = || scenario.variants.iter().map(|variant| variant.name.clone());
    let head = ["".to_owned(), "formula".to_owned()].into_iter().chain(names()).collect();
    let row = |line: &Line| {
        let words = [line.what, line.formula].map(str::to_owned).into_iter();
        words.chain(cases.iter().map(|case| (line.value)(case).text())).collect()
    };
    let table = Table { head, rows: LINES.iter().map(row).collect(), text: 2 };
    let Fleet { gateways, targets, calls_per_second, latency, failure, down } = fleet;
    let given = format!(
        "G = {gateways} gateways, T = {targets} targets, R = {calls_per_second} calls/s in all, {latency} s each, of which {failure} fail as \
         they always do; D = {down} targets are down at once"
    );
    let lines = LINES.iter().map(|line| {
        let value = |case: &Case<'_>| match (line.value)(case) {
            Cell::Number(number) => json!(number),
            Cell::Never => json!("never"),
            Cell::None => serde_json::Value::Null,
        };
        let values: serde_json::Map<_, _> = names().zip(cases.iter().map(value)).collect();
        json!({ "what": line.what, "formula": line.formula, "values": values })
    });
    let json = json!({
        "title": scenario.title,
        "shows": scenario.shows,
        "arithmetic": true,
        "given": given,
        "lines": lines.collect::<Vec<_>>(),
    });
    let body = format!(
        "<p>{}</p>\n<p class=\"note\">{}</p>\n<p>{}.</p>\n{}",
        escape(&scenario.shows),
        escape(NOTE),
        escape(&given),
        table.html("Variants side by side")
    );
    Report {
        text: format!("{}\n{}\n\n{NOTE}\n{given}.\n\n{table}", scenario.title, scenario.shows),
        json,
        html: page(&scenario.title, &body),
        svg: String::new(),
    }
}
