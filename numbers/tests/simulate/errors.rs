//! What is wrong with a scenario: field, line, and what would be right.

use portcullis_numbers::simulate::scenario::Scenario;

const SOUND: &str = r#"title = "t"
shows = "s"
duration = "10s"
[upstream.core]
service = { constant = "10ms" }
outage = [{ from = "1s", for = "1s", kind = "hang" }]
[caller.web]
upstream = "core"
arrivals = { poisson = 10 }
[[variant]]
name = "v"
defaults = { timeout = "1s" }
"#;

fn errors(from: &str, to: &str) -> String {
    assert!(SOUND.contains(from), "{from}");
    SOUND.replacen(from, to, 1).parse::<Scenario>().unwrap_err().to_string()
}

#[test]
fn the_scenario_that_the_others_are_broken_from_is_sound() {
    assert!(SOUND.parse::<Scenario>().is_ok());
}

#[test]
fn the_readmes_scenario_is_one() {
    let readme = include_str!("../../README.md");
    let text = readme.split("```toml\ntitle").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let scenario: Scenario = format!("title{text}").parse().unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(scenario.variants.len(), 2);
}

#[test]
fn an_error_names_field_line_and_range() {
    let cases = [
        ("duration = \"10s\"", "duration = 10", "line 3: duration: 10 is out of range: must be a duration from"),
        ("duration = \"10s\"", "", "duration: missing: how long callers come, such as \"60s\", is needed"),
        ("title = \"t\"", "", "title: missing: a text is needed"),
        (
            "poisson = 10",
            "poisson = -1",
            "line 9: caller.web.arrivals.poisson: -1 is out of range: must be a number from 0 to 1000000",
        ),
        (
            "poisson = 10",
            "poison = 10",
            "line 9: caller.web.arrivals: { poison = 10 } is out of range: must be { poisson = 50 }",
        ),
        (
            "upstream = \"core\"",
            "upstream = \"cor\"",
            "line 8: caller.web.upstream: \"cor\" is out of range: must be one of the upstreams: core",
        ),
        ("upstream = \"core\"", "", "caller.web.upstream: missing: must be one of the upstreams: core"),
        (
            "constant = \"10ms\"",
            "constant = \"0s\"",
            "upstream.core.service.constant: \"0s\" is out of range: must be a duration from",
        ),
        (
            "constant = \"10ms\"",
            "pareto = { least = \"1s\", most = \"1s\", shape = 1 }",
            "most: \"1s\" is out of range: must be above least",
        ),
        (
            "constant = \"10ms\"",
            "empirical = []",
            "upstream.core.service.empirical: [] is out of range: must be a list of durations",
        ),
        ("constant = \"10ms\"", "empirical = [\"1s\", 2]", "upstream.core.service.empirical[1]: 2 is out of range"),
        (
            "kind = \"hang\"",
            "kind = \"hangs\"",
            "line 6: upstream.core.outage[0].kind: \"hangs\" is out of range: must be \"refuse\"",
        ),
        ("kind = \"hang\"", "kind = \"slow\"", "upstream.core.outage[0].factor: missing: must be a number, such as 10"),
        (
            "kind = \"hang\"",
            "kind = \"hang\", every = \"500ms\"",
            "upstream.core.outage[0].every: \"500ms\" is out of range",
        ),
        (
            "kind = \"hang\" }",
            "kind = \"hang\" }, { from = \"1500ms\", for = \"1s\", kind = \"refuse\" }",
            "must end before the next, from 1.5 s",
        ),
        ("name = \"v\"", "", "variant[0].name: missing: must be a text"),
        (
            "timeout = \"1s\"",
            "timeout = \"1s\", failure_rate = 1.5",
            "variant[0].defaults.failure_rate: 1.5 is out of range: must be",
        ),
        ("timeout = \"1s\"", "timeot = \"1s\"", "variant[0].defaults.timeot: unknown field: must be one of"),
        ("defaults = {", "target.cor = {", "variant[0].target.cor: unknown upstream: must be one of core"),
        ("[caller.web]", "[callers.web]", "line 7: callers: unknown field: must be one of title"),
    ];
    for (from, to, expected) in cases {
        let errors = errors(from, to);
        assert!(errors.contains(expected), "{to}: {errors}");
    }
}

#[test]
fn too_much_to_simulate_is_said_before_it_is_tried() {
    let text = SOUND.replace("poisson = 10", "poisson = 1000000").replace("\"10s\"", "\"60s\"");
    let errors = text.parse::<Scenario>().unwrap_err().to_string();
    assert!(errors.contains("line 7: caller: up to 60000000 tries in all: must be at most 5000000"), "{errors}");
}

#[test]
fn upstreams_are_bounded() {
    let more: String = (0..100).map(|n| format!("[upstream.u{n}]\nservice = {{ constant = \"1ms\" }}\n")).collect();
    let errors = errors("[caller.web]", &format!("{more}[caller.web]"));
    assert!(errors.contains("upstream: 101 are too many: must be at most 100"), "{errors}");
}

#[test]
fn every_error_is_told_at_once() {
    let text = SOUND
        .replace("poisson = 10", "poisson = -1")
        .replace("kind = \"hang\"", "kind = \"no\"")
        .replace("name = \"v\"", "");
    let errors = text.parse::<Scenario>().unwrap_err().to_string();
    assert_eq!(errors.lines().count(), 3, "{errors}");
}

#[test]
fn a_fleet_stands_alone() {
    let fleet = "[fleet]\ngateways = 10\ntargets = 10\ncalls_per_second = 100\nlatency = \"10ms\"\n";
    let text = SOUND.replace("[upstream.core]", &format!("{fleet}[upstream.core]"));
    let errors = text.parse::<Scenario>().unwrap_err().to_string();
    assert!(errors.contains("upstream: must be left out beside a fleet"), "{errors}");
    let zero = format!(
        "title = \"t\"\nshows = \"s\"\n{}[[variant]]\nname = \"v\"\n",
        fleet.replace("gateways = 10", "gateways = 0")
    );
    let errors = zero.parse::<Scenario>().unwrap_err().to_string();
    assert!(errors.contains("line 4: fleet.gateways: 0 is out of range: must be a whole number from 1"), "{errors}");
}
