//! The configuration file: what it means, and that each thing that is wrong with it is told with line, field and range.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use portcullis_gateway::{Config, ConfigError};

/// The shape of the file, as it is documented. The fields of the last table follow on line 14.
const GOOD: &str = include_str!("common/good.toml");

fn errors(text: &str) -> Vec<ConfigError> {
    match text.parse::<Config>() {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(errors) => errors.errors().to_vec(),
    }
}

/// The only error, which must be on this line, about this field or a part of it, and say this.
fn only(text: &str, line: usize, field: &str, says: &[&str]) {
    let all = errors(text);
    let [error] = all.as_slice() else { panic!("not one error but {all:?} in\n{text}") };
    let part = error.field.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    assert!(part && error.line == Some(line), "not line {line}, {field} but {error} in\n{text}");
    for words in says {
        assert!(error.message.contains(words), "{words:?} not in {error}");
    }
}

#[test]
fn the_documented_file_is_read() {
    let config: Config = format!("{GOOD}max_in_flight = 3").parse().unwrap();
    assert_eq!((config.listen.port(), config.admin.unwrap().port(), config.max_concurrent), (8080, 9090, 512));
    assert_eq!(config.routes[0].host.as_deref(), Some("api.example.com"));
    assert_eq!((config.routes[0].path.as_str(), config.routes[0].target.as_str()), ("/core/", "core-banking"));
    let names: Vec<&str> = config.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["claims", "core-banking"]);
    assert_eq!(config.targets[1].timeout, Duration::from_secs(1));
    assert_eq!(config.targets[1].upstream[0].as_str(), "127.0.0.1:8110");
    assert_eq!(config.targets[1].policy.max_in_flight(), 3);
}

#[test]
fn a_target_overrides_single_fields_of_the_defaults() {
    let text = "[defaults]\ntimeout = \"2s\"\nstream = true\nmin_calls = 7\nwindow = { calls = 20 }\njitter = 0.0
[[route]]\npath = \"/\"\ntarget = \"a\"
[target.a]\nupstream = [\"http://127.0.0.1:1\"]\nmin_calls = 9
[target.b]\nupstream = [\"http://127.0.0.1:2\", \"http://[::1]:3/\"]\ntimeout = \"250ms\"\nstream = false
window = { time = \"10s\", buckets = 5 }";
    let config: Config = text.parse().unwrap();
    let shown = config.to_string();
    let (a, b) = (&config.targets[0], &config.targets[1]);
    assert_eq!(
        (a.timeout, a.stream, b.timeout, b.stream),
        (Duration::from_secs(2), true, Duration::from_millis(250), false)
    );
    assert_eq!(shown.matches("min_calls = 9\n").count(), 1, "{shown}");
    assert_eq!(shown.matches("min_calls = 7\n").count(), 1, "{shown}");
    assert_eq!(shown.matches("calls = 20").count(), 1, "{shown}");
    assert_eq!(shown.matches("buckets = 5").count(), 1, "{shown}");
}

#[test]
fn what_is_shown_means_the_same() {
    let quoted = GOOD.replace("claims", "\"clai.ms \\\" \u{200b}é\"");
    let flags = GOOD.replace("path = \"/core/\"", "path = \"/core/\"\nstream = true\nadmission = false");
    for text in [GOOD.to_owned(), quoted, flags, GOOD.replace("127.0.0.1:9090", "off")] {
        let config: Config =
            format!("{text}failures = 3\nslow_call = \"1s\"\non_abandon = \"failure\"").parse().unwrap();
        let again: Config = config.to_string().parse().unwrap();
        assert_eq!(again, config);
    }
}

#[test]
#[cfg(not(feature = "otlp"))]
fn a_collector_is_refused_where_the_gateway_was_built_without_it() {
    only(&format!("otlp = {{}}\n{GOOD}max_in_flight = 3"), 1, "otlp", &["--features otlp"]);
}

#[test]
#[cfg(feature = "otlp")]
fn what_is_wrong_about_a_collector_is_told_with_its_line() {
    let with = |line: &str| format!("otlp = {{ {line} }}\n{GOOD}max_in_flight = 3");
    for endpoint in ["https://collector", "http://", "127.0.0.1:4318", "http://collector?x=1", "http://collector#x", ""]
    {
        only(&with(&format!("endpoint = \"{endpoint}\"")), 1, "otlp.endpoint", &["http:// URL"]);
    }
    only(&with("traces = \"yes\""), 1, "otlp.traces", &["true or false"]);
    only(&with("logs = true"), 1, "otlp.logs", &["endpoint, traces, metrics"]);
    let config: Config = with("endpoint = \"http://127.0.0.1:4318/\"").parse().unwrap();
    assert_eq!(config.otlp.as_ref().unwrap().endpoint.as_deref(), Some("http://127.0.0.1:4318"));
    assert_eq!(config.to_string().parse::<Config>().unwrap(), config);
}

#[test]
fn every_policy_field_out_of_range_is_told_with_its_line_and_range() {
    for (field, values, range) in [
        (
            "max_in_flight",
            &["0", "-1", "16777216", "99999999999999999999", "\"many\"", "1.5", "true"][..],
            "1 to 16777214",
        ),
        ("consecutive_failures", &["0", "-1", "4294967296", "\"x\""], "1 to 4294967295"),
        ("window", &["{ calls = 0 }", "{ calls = -1 }", "\"all\"", "{}", "7", "{ tries = 3 }"], "100"),
        ("window", &["{ calls = 101 }"], "window of time"),
        ("window", &["{ time = \"0s\", buckets = 1 }", "{ time = \"10s\", buckets = 0 }"], ""),
        ("window", &["{ time = \"10s\", buckets = 65 }", "{ time = \"48h\", buckets = 10 }"], ""),
        ("window", &["{ time = \"1s\", buckets = 3 }", "{ time = \"soon\", buckets = 3 }"], ""),
        ("normal_share", &["0", "0.0", "-0.5", "1.5", "nan", "\"half\""], "above 0"),
        ("max_waiting", &["65536", "-1", "1.5"], "0 to 65535"),
        ("max_wait", &["\"soon\"", "3", "\"1s\""], ""),
        ("min_calls", &["0", "-3", "101", "\"x\""], "1 to "),
        ("failure_rate", &["0", "0.0", "-0.5", "1.5", "nan", "inf", "0.00001", "\"half\""], "above 0"),
        ("failures", &["0", "101", "-1", "[]"], "1 to "),
        ("slow_call", &["\"0s\"", "\"soon\"", "-1", "3"], "above 0"),
        ("open_wait", &["\"0s\"", "\"366d\"", "\"-1s\"", "5", "\"\""], " to "),
        ("backoff", &["0.5", "0", "1001", "nan", "\"x\"", "-2.0"], "1 to 1000"),
        ("open_wait_max", &["\"1s\"", "\"999d\"", "60", "{}"], " to "),
        ("jitter", &["-0.1", "1.1", "nan", "\"x\""], "0 to 1"),
        ("max_probes", &["0", "32", "-1", "0.5"], "1 to 31"),
        ("successes_to_close", &["0", "32", "\"x\""], "1 to 31"),
        ("probe_lease", &["\"0s\"", "\"999ms\"", "\"400d\"", "10"], ""),
        ("on_abandon", &["\"maybe\"", "7", "{ failure_after = 5 }", "{ after = \"1s\" }"], "ignore"),
        ("ignored_probes", &["0", "1000001", "-1"], "1 to 1000000"),
        ("adaptive", &["\"all\"", "7", "{}", "{ algorithm = \"vegas\" }", "{ algorithm = \"aimd\" }"], "gradient"),
        (
            "adaptive",
            &["{ algorithm = \"gradient\", min = 0 }", "{ algorithm = \"gradient\", tolerance = 9.0 }"],
            " to ",
        ),
        ("ramp", &["5", "\"soon\"", "{}", "true"], "24h"),
        ("ramp_failures", &["\"x\"", "-1", "0.5"], "1 to 1000"),
    ] {
        for value in values {
            // Line 14, after two that are right.
            let own = format!("{GOOD}{field} = {value}");
            only(&own, 14, &format!("target.core-banking.{field}"), &[range]);
            let inherited = GOOD.replace("timeout = \"1s\"", &format!("{field} = {value}"));
            let all = errors(&inherited);
            assert!(all.iter().all(|error| error.line == Some(5)), "{all:?}");
            assert!(all.iter().all(|error| error.field.contains(field) && error.message.contains(range)), "{all:?}");
        }
    }
    let both = format!("{GOOD}slow_call = \"3s\"\nslow_rate = 1.5");
    only(&both, 15, "target.core-banking.slow_rate", &["1.5", "above 0"]);
    let ramp = |lines: &str| format!("{GOOD}{lines}");
    only(&ramp("ramp = \"0s\""), 14, "target.core-banking.ramp", &["1ms to 86400s"]);
    only(&ramp("ramp = \"5s\""), 14, "target.core-banking.ramp", &["5s", "max_in_flight"]);
    only(
        &ramp("max_in_flight = 9\nramp = \"5s\"\nramp_failures = 1001"),
        16,
        "target.core-banking.ramp_failures",
        &["1 to 1000"],
    );
    only(&ramp("ramp_failures = 3"), 14, "target.core-banking.ramp_failures", &["together with ramp"]);
    only(&format!("{GOOD}slow_rate = 0.5"), 14, "target.core-banking.slow_rate", &["0.5", "slow_call"]);
    only(&format!("{GOOD}stalled_calls = 2"), 14, "target.core-banking.stalled_calls", &["2", "stall_after"]);
    only(&format!("{GOOD}stall_after = \"1ms\""), 14, "target.core-banking.stall_after", &["1ms", "50ms"]);
}

#[test]
fn a_probe_may_time_out_before_its_lease_ends() {
    let config: Config = format!("{GOOD}timeout = \"30s\"").parse().unwrap();
    assert!(config.targets[1].to_string().contains("probe_lease = \"31s\"\n"), "{}", config.targets[1]);
    assert!(config.targets[0].to_string().contains("probe_lease = \"10s\"\n"), "{}", config.targets[0]);
    let short = format!("{GOOD}timeout = \"30s\"\nprobe_lease = \"30s\"");
    only(&short, 15, "target.core-banking.probe_lease", &["30s is out of range", "more than the timeout"]);
    let inherited = GOOD.replace("timeout = \"1s\"", "probe_lease = \"1s\"");
    only(&inherited, 5, "target.claims.probe_lease", &["more than the timeout", "set in defaults"]);
}

#[test]
fn a_value_that_is_wrong_is_shown() {
    only(
        &format!("{GOOD}failure_rate = 1.5"),
        14,
        "target.core-banking.failure_rate",
        &["1.5 is out of range: must be above 0 and at most 1"],
    );
    only(&format!("{GOOD}min_calls = \"many\""), 14, "target.core-banking.min_calls", &["\"many\" is out of range"]);
}

#[test]
fn the_gateways_own_fields_out_of_range() {
    let top = |from: &str, to: &str| GOOD.replace(from, to);
    for listen in ["\"localhost\"", "\"127.0.0.1\"", "\"127.0.0.1:99999\"", "\":80\"", "8080", "\"\""] {
        only(&top("\"127.0.0.1:8080\"", listen), 1, "listen", &["port from 0 to 65535"]);
        only(&top("\"127.0.0.1:9090\"", listen), 2, "admin", &["port from 0 to 65535"]);
    }
    only(&top("9090", "8080"), 2, "admin", &["another address"]);
    for cap in ["0", "-1", "1000001", "\"512\"", "5.0"] {
        only(&top("max_concurrent = 512", &format!("max_concurrent = {cap}")), 3, "max_concurrent", &["1 to 1000000"]);
    }
    for targets in ["-1", "10001", "\"all\""] {
        only(&format!("metrics_targets = {targets}\n{GOOD}"), 1, "metrics_targets", &["0 to 10000"]);
    }
    for wait in ["\"0s\"", "\"2h\"", "\"soon\"", "1", "\"-1s\"", "\"99999999999999999999s\""] {
        for field in ["header_timeout", "write_timeout", "shutdown_timeout"] {
            only(&format!("{field} = {wait}\n{GOOD}"), 1, field, &["1ms", "1h"]);
        }
        only(&top("timeout = \"1s\"", &format!("timeout = {wait}")), 5, "defaults.timeout", &["1ms", "1h"]);
        only(&format!("{GOOD}timeout = {wait}"), 14, "target.core-banking.timeout", &["1ms", "1h"]);
    }
    only(&format!("{GOOD}stream = 1"), 14, "target.core-banking.stream", &["true or false"]);
    for token in ["short", "with a blank in the middle"] {
        let text = format!("admin_token = \"{token}\"\n{GOOD}");
        only(&text, 1, "admin_token", &["16 to 256"]);
        assert!(!errors(&text)[0].message.contains(token), "a token is a secret");
    }
}

#[test]
fn upstreams_that_are_none() {
    let with = |list: &str| GOOD.replace("[\"http://127.0.0.1:8110\"]", list);
    for list in ["[]", "\"http://127.0.0.1:8110\"", "7"] {
        only(&with(list), 13, "target.core-banking.upstream", &["1 to 64"]);
    }
    for url in [
        "",
        "127.0.0.1:8110",
        "ftp://127.0.0.1",
        "http://",
        "http:///x",
        "http://127.0.0.1:8110/base",
        "http://127.0.0.1:8110/?x=1",
        "http://127.0.0.1:8110/#x",
        "http://user:secret@127.0.0.1:8110",
        "http://127.0.0.1:0",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:",
        "http://a b/",
        "http://:80",
    ] {
        only(&with(&format!("[\"{url}\"]")), 13, "target.core-banking.upstream[0]", &["must be an http:// URL"]);
    }
    only(&with("[\"https://127.0.0.1\"]"), 13, "target.core-banking.upstream[0]", &["https", "not supported"]);
    only(&with("[\"http://a\", \"http://a/\"]"), 13, "target.core-banking.upstream[1]", &["twice"]);
    only(&GOOD.replace("upstream = [\"http://127.0.0.1:8110\"]", ""), 12, "target.core-banking.upstream", &["missing"]);
    only(&GOOD.replace("timeout = \"1s\"", "upstream = []"), 5, "defaults.upstream", &["belongs to a target"]);
}

#[test]
fn routes_that_lead_nowhere() {
    let with = |from: &str, to: &str| GOOD.replace(from, to);
    for path in ["", "core/", "/a b", "/a?b", "/a#b", "*"] {
        only(&with("\"/core/\"", &format!("\"{path}\"")), 8, "route[0].path", &["begins with \"/\""]);
    }
    for host in ["", "a:80", "a/b", "a b", "user@a", "http://a"] {
        only(&with("\"api.example.com\"", &format!("\"{host}\"")), 7, "route[0].host", &["without port"]);
    }
    only(&with("target = \"core-banking\"", "target = \"nobody\""), 9, "route[0].target", &["nobody", "no target"]);
    only(&with("target = \"core-banking\"", ""), 6, "route[0].target", &["missing"]);
    only(&with("path = \"/core/\"", ""), 6, "route[0].path", &["missing"]);
    only(
        &with("target = \"core-banking\"", "target = \"claims\"\nadmission = 0"),
        10,
        "route[0].admission",
        &["true or false"],
    );
    let second = "[[route]]\nhost = \"API.example.com\"\npath = \"/core/\"\ntarget = \"claims\"\n[target.claims]";
    only(&with("[target.claims]", second), 10, "route[1]", &["same host and path as route[0]"]);
    only(&with("[[route]]", "[route]"), 6, "route", &["list of tables"]);
    let none = "[target.a]\nupstream = [\"http://a\"]";
    assert_eq!(errors(none)[0].to_string(), "route: missing: at least one [[route]] is needed");
    let text = errors("").iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert!(text.contains("[[route]]") && text.contains("[target.NAME]"), "{text}");
}

#[test]
fn unknown_fields_are_refused_everywhere() {
    only(&format!("maxconcurrent = 5\n{GOOD}"), 1, "maxconcurrent", &["unknown field", "max_concurrent"]);
    only(&GOOD.replace("timeout = \"1s\"", "time_out = \"1s\""), 5, "defaults.time_out", &["unknown field", "timeout"]);
    only(&GOOD.replace("host =", "hosts ="), 7, "route[0].hosts", &["unknown field", "host"]);
    only(
        &format!("{GOOD}max_inflight = 3"),
        14,
        "target.core-banking.max_inflight",
        &["unknown field", "max_in_flight"],
    );
    only(&format!("{GOOD}[target.core-banking.nested]\nx = 1"), 14, "target.core-banking.nested", &["unknown field"]);
}

#[test]
fn duplicates_are_refused() {
    for text in [
        format!("{GOOD}[target.core-banking]\nupstream = [\"http://a\"]"),
        format!("{GOOD}[target.\"core-banking\"]\nupstream = [\"http://a\"]"),
    ] {
        let all = errors(&text);
        assert!(all.iter().any(|error| error.line == Some(14) && error.message.contains("duplicate")), "{all:?}");
    }
    let all = errors(&format!("{GOOD}timeout = \"1s\"\ntimeout = \"2s\""));
    assert!(all.iter().any(|error| error.line == Some(15) && error.message.contains("duplicate")), "{all:?}");
}

#[test]
fn names_of_targets_have_bounds() {
    let named = |name: &str| GOOD.replace("[target.claims]", &format!("[target.\"{name}\"]"));
    assert!(named(&"x".repeat(200)).parse::<Config>().is_ok());
    let long = "x".repeat(65_536);
    for name in ["", long.as_str(), "a\\u0007b"] {
        only(&named(name), 10, "target", &["1 to 200 bytes"]);
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let text = GOOD.replace("512", "0").replace("\"1s\"", "\"0s\"").replace("/core/", "core");
    let all = errors(&format!("{text}failure_rate = 2\nmax_probes = 99\nbogus = 1\nopen_wait = \"1s\"\nbackoff = 0.1"));
    let lines: Vec<Option<usize>> = all.iter().map(|error| error.line).collect();
    assert_eq!(lines, [3, 5, 8, 14, 15, 16, 18].map(Some), "{all:?}");
}

#[test]
fn broken_toml_is_told_with_its_lines() {
    for text in
        ["[", "listen = ", "a = 1\na = 2", "\u{0}", "[[route]]\npath = \"/\n", "= 1", "x = 1979-05-27T07:32:61Z"]
    {
        let all = errors(text);
        assert!(all.iter().all(|error| error.line.is_some() && !error.message.is_empty()), "{text:?}: {all:?}");
    }
    // Not deep enough to be a danger, deep enough to be refused.
    assert!(!errors(&format!("x = {}1{}", "[".repeat(20_000), "]".repeat(20_000))).is_empty());
}

#[test]
fn the_example_shows_the_defaults() {
    let example: Config = include_str!("../portcullis.example.toml").parse().unwrap();
    assert_eq!(example.targets.len(), 2);
    let bare = "[[route]]\npath = \"/\"\ntarget = \"a\"\n[target.a]\nupstream = [\"http://a\"]";
    let bare: Config = bare.parse().unwrap();
    let as_default = example.targets[0].policy.to_builder().unlimited().build().unwrap();
    assert_eq!(as_default, bare.targets[0].policy);
    assert_eq!(example.targets[0].timeout, bare.targets[0].timeout);
    assert_eq!(
        (example.listen, example.admin, example.max_concurrent, example.header_timeout, example.shutdown_timeout),
        (bare.listen, bare.admin, bare.max_concurrent, bare.header_timeout, bare.shutdown_timeout)
    );
    assert_eq!((example.write_timeout, example.metrics_targets), (bare.write_timeout, bare.metrics_targets));
    assert_eq!((&example.targets[0].call, example.targets[0].connect_timeout), (&bare.targets[0].call, None));
    // Those that stand there as comments are fields, too, and what is in them is the default.
    let text = include_str!("../portcullis.example.toml");
    let fields = ["connect_timeout", "probe_timeout", "deadline", "retry_backoff_max"];
    let set = |text: String, field: &&str| text.replace(&format!("# {field} ="), &format!("{field} ="));
    let text = fields.iter().fold(text.to_owned(), set).replace("timeout = \"250ms\"", "");
    let set: Config = text.parse().unwrap();
    let (call, default) = (&set.targets[0].call, &bare.targets[0].call);
    assert_eq!((call.probe_timeout(), call.deadline()), (default.probe_timeout(), default.deadline()));
    assert_eq!(
        (call.backoff_max(), set.targets[0].connect_timeout),
        (default.backoff_max(), Some(example.targets[0].timeout))
    );
}
