//! The model itself: against closed forms, and to the byte.

use portcullis_numbers::formulas::{attempts_per_call, erlang_b, little};

use crate::{figure, report, upstream};

fn lone(service: &str, arrivals: &str, patience: &str, rest: &str, variant: &str) -> String {
    format!(
        "title = \"t\"\nshows = \"s\"\nduration = \"200s\"\nbucket = \"1s\"\n[upstream.core]\nservers = 10000\nservice = {service}\n{rest}\n\
         [caller.web]\nupstream = \"core\"\narrivals = {arrivals}\npatience = \"{patience}\"\n[[variant]]\nname = \"v\"\n{variant}\n"
    )
}

const POISSON: &str = "{ poisson = 100 }";

#[test]
fn a_limit_refuses_as_many_as_erlang_b_says() {
    let variant = "defaults = { max_in_flight = 12, window = \"none\" }";
    let json = report(&lone("{ exponential = \"100ms\" }", POISSON, "9s", "", variant), 5).json;
    let refused = figure(&json, "v", "core", "refused_tries") / figure(&json, "v", "core", "requests");
    let expected = erlang_b(little(100.0, 0.1), 12);
    assert!((refused / expected - 1.0).abs() < 0.05, "{refused} for {expected}");
    assert_eq!(figure(&json, "v", "core", "most_in_flight"), 12.0);
}

#[test]
fn a_queue_of_the_engine_makes_calls_wait_instead() {
    let variant = "defaults = { max_in_flight = 12, window = \"none\", max_waiting = 1000, max_wait = \"8s\", timeout = \"1s\" , deadline = \"9s\" }";
    let json = report(&lone("{ constant = \"100ms\" }", POISSON, "9s", "", variant), 1).json;
    assert_eq!(figure(&json, "v", "core", "good_percent"), 100.0);
    assert_eq!(figure(&json, "v", "core", "most_in_flight"), 12.0);
    assert!(figure(&json, "v", "core", "p99_ms") > 110.0 && figure(&json, "v", "core", "p50_ms") >= 100.0);
}

#[test]
fn a_wait_for_a_permit_ends_with_its_time() {
    let variant = "defaults = { max_in_flight = 1, window = \"none\", max_waiting = 50, max_wait = \"200ms\", timeout = \"100ms\", deadline = \"1s\" }";
    let json = report(&lone("{ constant = \"90ms\" }", POISSON, "9s", "", variant), 1).json;
    let core = upstream(&json, "v", "core");
    assert!(core["refused_by_reason"][0]["saturated"].as_u64().unwrap() > 1_000);
    // A wait of 200 ms at most, and the call.
    let p99 = figure(&json, "v", "core", "p99_ms");
    assert!((200.0..=290.1).contains(&p99), "{p99}");
}

#[test]
fn retries_make_as_many_attempts_as_the_sum_says() {
    let variant = "isolation = false\ndefaults = { attempts = 3, retry_backoff = \"1ms\", retry_budget = \"none\" }";
    let json = report(&lone("{ constant = \"10ms\" }", POISSON, "9s", "errors = 0.3", variant), 1).json;
    let attempts = figure(&json, "v", "core", "attempts_per_request");
    assert!((attempts / attempts_per_call(0.3, 3) - 1.0).abs() < 0.01, "{attempts}");
    let good = figure(&json, "v", "core", "good_percent");
    assert!((good - 97.3).abs() < 0.5, "{good}");
}

#[test]
fn bursts_come_as_often_as_their_mean_says_and_constant_arrivals_exactly() {
    let bursts = "{ bursts = { high = 300, low = 50, on = \"1s\", off = \"4s\" } }";
    let json = report(&lone("{ constant = \"1ms\" }", bursts, "9s", "", ""), 7).json;
    let requests = figure(&json, "v", "core", "requests");
    assert!((requests / 20_000.0 - 1.0).abs() < 0.15, "{requests}");
    // One at most where nothing comes for long: no request of the high rate is left over when it ends.
    let rare = "{ bursts = { high = 0.001, low = 0, on = \"1ms\", off = \"1s\" } }";
    let json = report(&lone("{ constant = \"1ms\" }", rare, "9s", "", ""), 7).json;
    assert!(figure(&json, "v", "core", "requests") <= 1.0);
    let json = report(&lone("{ constant = \"1ms\" }", "{ constant = 10 }", "9s", "", ""), 1).json;
    assert_eq!(figure(&json, "v", "core", "requests"), 1_999.0);
    assert_eq!(figure(&json, "v", "core", "good_percent"), 100.0);
}

#[test]
fn a_knee_makes_each_call_slower_the_more_there_are() {
    let rest = "knee = { at = 5, slope = 0.1 }";
    let json = report(&lone("{ constant = \"100ms\" }", "{ constant = 40 }", "9s", rest, "isolation = false"), 1).json;
    // 40/s x 0.1 s are four: under the knee.
    assert_eq!(figure(&json, "v", "core", "p99_ms"), 100.0);
    let json = report(&lone("{ constant = \"100ms\" }", "{ constant = 80 }", "9s", rest, "isolation = false"), 1).json;
    // n = 80/s x 0.1 s x (1 + 0.1 (n - 5)) is 20, in 250 ms.
    let p50 = figure(&json, "v", "core", "p50_ms");
    assert!((p50 - 250.0).abs() < 15.0, "{p50}");
}

#[test]
fn callers_who_hang_up_leave_work_behind_unless_the_upstream_notices() {
    // Six erlangs on five servers: what is given up has to be worked off, or not.
    let run = |rest| {
        let text = lone(
            "{ exponential = \"300ms\" }",
            "{ poisson = 20 }",
            "1s",
            rest,
            "isolation = false\ndefaults = { timeout = \"5s\" }",
        );
        report(&text.replace("servers = 10000", "servers = 5"), 1).json
    };
    let (deaf, notices) = (run("cancels = false"), run("cancels = true"));
    let good = |json| figure(json, "v", "core", "good_percent");
    assert!(good(&deaf) < 30.0 && good(&notices) > 60.0, "{} and {}", good(&deaf), good(&notices));
}

#[test]
fn a_seed_means_the_same_bytes_on_one_core_and_on_many() {
    let text = include_str!("../../scenarios/cascade.toml").replace("duration = \"60s\"", "duration = \"30s\"");
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let report = pool.install(|| report(&text, 2));
        (report.text, report.json.to_string(), report.html, report.svg)
    };
    let (one, many) = (run(1), run(4));
    assert!(one == many);
    assert_ne!(one.0, report(&text.replace("seed = 1", "seed = 2"), 2).text);
}

#[test]
fn a_report_is_one_page_with_every_name_as_text() {
    let text = lone("{ constant = \"10ms\" }", POISSON, "9s", "", "").replace("\"v\"", "\"<script>alert(1)</script>\"");
    let report = report(&text.replace("200s", "20s").replace("title = \"t\"", "title = \"<b>\""), 1);
    assert!(!report.html.contains("<script") && !report.html.contains("<h1><b>"));
    assert!(report.html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!report.html.contains("href=") && !report.html.contains("src="));
    assert_eq!(report.html.matches("<figure>").count(), 5);
    assert!(report.svg.starts_with("<svg xmlns=") && report.svg.matches("<svg ").count() == 6);
}
