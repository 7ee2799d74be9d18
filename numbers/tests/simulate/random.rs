//! Scenarios by dice: whatever is asked for, every request ends, everything that was held is given back (which the model asserts in these builds), and
//! the counts add up; whatever is broken in a file, the reader says so.

use portcullis_numbers::simulate::draws::Draws;
use portcullis_numbers::simulate::scenario::Scenario;

use crate::{figure, report, upstream};

struct Dice(Draws);

impl Dice {
    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn below(&mut self, end: usize) -> usize {
        (self.0.share() * end as f64) as usize
    }
}

fn scenario(dice: &mut Dice) -> String {
    let service = dice.of(&[
        "{ constant = \"30ms\" }",
        "{ exponential = \"30ms\" }",
        "{ lognormal = { median = \"20ms\", p99 = \"300ms\" } }",
        "{ pareto = { least = \"5ms\", most = \"2s\", shape = 1.2 } }",
        "{ empirical = [\"1ms\", \"50ms\", \"1s\"] }",
    ]);
    let rest = dice.of(&[
        "",
        "knee = { at = 2, slope = 0.3 }",
        "cold = { for = \"1s\", factor = 20 }",
        "errors = 0.3",
        "cancels = true",
    ]);
    let kind = dice.of(&["\"refuse\"", "\"hang\"", "\"slow\", factor = 30", "\"errors\", share = 0.8"]);
    let every = dice.of(&["", ", every = \"600ms\""]);
    let gateway =
        dice.of(&["", "max_concurrent = 4", "max_concurrent = 4\nbacklog = 6", "max_concurrent = 30\nbacklog = 1"]);
    let arrivals = dice.of(&[
        "{ constant = 100 }",
        "{ poisson = 100 }",
        "{ bursts = { high = 400, low = 0, on = \"100ms\", off = \"300ms\" } }",
    ]);
    let patience = dice.of(&["\"50ms\"", "\"300ms\"", "\"5s\""]);
    let attempts = dice.of(&["1", "2\nbackoff = \"0s\"", "4\nbackoff = \"20ms\""]);
    let admission = dice.of(&[
        "",
        "max_in_flight = 2, ",
        "max_in_flight = 5, max_waiting = 3, max_wait = \"150ms\", deadline = \"10s\", ",
        "consecutive_failures = 2, open_wait = \"50ms\", backoff = 1.0, ",
        "window = { time = \"1s\", buckets = 4 }, max_probes = 3, open_wait = \"100ms\", ",
        "slow_call = \"40ms\", slow_rate = 0.5, max_in_flight = 9, ramp = \"500ms\", open_wait = \"60ms\", ",
        "adaptive = { algorithm = \"gradient\" }, max_in_flight = 20, ",
    ]);
    let call = dice.of(&[
        "timeout = \"40ms\"",
        "timeout = \"1s\"",
        "timeout = \"100ms\", attempts = 3, retry_backoff = \"10ms\"",
        "timeout = \"60ms\", probe_timeout = \"10ms\", attempts = 4, retry_budget = \"none\"",
    ]);
    let servers = 1 + dice.below(8);
    let queue = dice.below(5);
    let isolation = dice.of(&["true", "true", "false"]);
    format!(
        "title = \"t\"\nshows = \"s\"\nduration = \"2s\"\n[gateway]\n{gateway}\n[upstream.core]\nservers = {servers}\nqueue = {queue}\n\
         service = {service}\n{rest}\noutage = [{{ from = \"500ms\", for = \"400ms\", kind = {kind}{every} }}]\n[caller.web]\n\
         upstream = \"core\"\narrivals = {arrivals}\npatience = {patience}\nattempts = {attempts}\n[[variant]]\nname = \"v\"\n\
         isolation = {isolation}\ndefaults = {{ {admission}{call} }}\n"
    )
}

#[test]
fn whatever_is_asked_for_every_request_ends_and_the_counts_add_up() {
    let mut dice = Dice(Draws::new(5, 0));
    let (mut good, mut refused, mut given_up) = (0.0, 0.0, 0.0);
    for _ in 0..300 {
        let text = scenario(&mut dice);
        let json = report(&text, 1).json;
        let of = |key| figure(&json, "v", "core", key);
        let lost = of("refused_tries") + of("failed_tries") + of("given_up_tries");
        // Each request that isn't good lost its last try.
        assert!(
            of("good_percent") <= 100.0 && lost >= of("requests") * (1.0 - of("good_percent") / 100.0) - 0.5,
            "{text}"
        );
        let by_reason = &upstream(&json, "v", "core")["refused_by_reason"][0];
        let reasons: u64 = by_reason.as_object().unwrap().values().filter_map(serde_json::Value::as_u64).sum();
        assert_eq!(reasons as f64, of("refused_tries"), "{text}");
        (good, refused, given_up) =
            (good + of("good_percent"), refused + of("refused_tries"), given_up + of("given_up_tries"));
    }
    // The dice fell on all of it.
    assert!(good > 1_000.0 && refused > 1_000.0 && given_up > 1_000.0);
}

#[test]
fn whatever_is_broken_in_a_file_the_reader_says_so() {
    let shipped = [
        include_str!("../../scenarios/cascade.toml"),
        include_str!("../../scenarios/fleet.toml"),
        include_str!("../../scenarios/slow-target.toml"),
        include_str!("../../scenarios/thundering-recovery.toml"),
    ];
    let mut dice = Dice(Draws::new(6, 0));
    let mut refused = 0;
    for turn in 0..2_000 {
        let mut lines: Vec<String> = shipped[turn % shipped.len()].lines().map(str::to_owned).collect();
        for _ in 0..=dice.below(3) {
            let place = dice.below(lines.len());
            let Some((key, _)) = lines[place].split_once('=') else {
                lines.remove(place);
                continue;
            };
            let value = dice.of(&[
                "",
                "0",
                "-1",
                "1e400",
                "\"\"",
                "\"24h\"",
                "\"1ns\"",
                "{}",
                "[]",
                "[{}]",
                "nan",
                "true",
                "9223372036854775807",
            ]);
            lines[place] = format!("{key}= {value}");
        }
        if let Err(errors) = lines.join("\n").parse::<Scenario>() {
            refused += 1;
            assert!(!errors.to_string().is_empty());
        }
    }
    assert!((1_000..2_000).contains(&refused), "{refused}");
}
