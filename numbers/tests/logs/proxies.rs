//! The logs of nginx, Envoy and HAProxy.

use portcullis::Outcome::{self, Failure, Ignored, Success};
use portcullis_numbers::logs::Fault;

use super::support::{Logs, MS, at};

/// What matters of a call.
fn seen(log: &str) -> Vec<(String, u64, u64, u16, Outcome)> {
    let read = Logs::of(log).read().unwrap();
    assert!(read.summary.bad.is_empty(), "{}", read.summary);
    read.calls.into_iter().map(|(target, c)| (target, c.start, c.latency, c.status, c.outcome)).collect()
}

fn call(target: &str, start: f64, millis: u64, status: u16, outcome: Outcome) -> (String, u64, u64, u16, Outcome) {
    (target.to_owned(), at(start), millis * MS, status, outcome)
}

/// 2026-01-31T12:00:00Z.
const NOON: f64 = 1_769_860_800.0;

#[test]
fn nginx_tells_the_end_of_a_request() {
    let log = r#"192.0.2.1 - - [31/Jan/2026:13:00:00 +0100] "GET /a HTTP/1.1" 200 5 "-" "curl" 0.250
192.0.2.1 - al[i]ce [31/Jan/2026:12:00:01 +0000] "GET /a HTTP/1.1" 502 5 "-" "a \"quoted\" agent" 0.300 0.200
192.0.2.1 - - [31/Jan/2026:12:00:02 +0000] "GET /a HTTP/1.1" 499 0 "-" "curl" "192.0.2.7" 0.500 "0.400"
192.0.2.1 - - [31/Jan/2026:12:00:09 +0000] "GET /a HTTP/1.1" 200 5 "-" "curl" 1769860803.123 0.123 0.100
"#;
    let expected = [
        call("access", NOON - 0.25, 250, 200, Success),
        call("access", NOON + 0.7, 200, 502, Failure),
        call("access", NOON + 1.5, 400, 499, Ignored),
        call("access", NOON + 3.0, 100, 200, Success),
    ];
    assert_eq!(seen(log), expected);
}

#[test]
fn nginx_may_name_its_times() {
    let log = r#"192.0.2.1 - - [31/Jan/2026:12:00:00 +0000] "GET /a HTTP/1.1" 200 5 rt=0.250 uct="0.001" urt="0.240" "-" "curl" host=b.example
"#;
    assert_eq!(seen(log), [call("b.example", NOON - 0.25, 240, 200, Success)]);
}

#[test]
fn several_upstreams_of_nginx_are_one_call_and_none_is_no_call() {
    let log = r#"192.0.2.1 - - [31/Jan/2026:12:00:00 +0000] "GET /a HTTP/1.1" 200 61 "-" "curl" 348 0.310 [web-80] [] 10.0.0.1:80, 10.0.0.2:80 61, 100 0.300, 0.004 502, 200 83
192.0.2.1 - - [31/Jan/2026:12:00:01 +0000] "GET /b HTTP/1.1" 503 5 "-" "curl" 91 0.000 [web-80] [] - - - - 83
192.0.2.1 - - [31/Jan/2026:12:00:02 +0000] "GET /b HTTP/1.1" 503 5 "-" "curl" 0.000 -
"#;
    let read = Logs::of(log).read().unwrap();
    assert_eq!(read.calls.len(), 1);
    assert_eq!((read.calls[0].0.as_str(), read.calls[0].1.latency), ("web-80", 304 * MS));
    assert_eq!(read.summary.answered_by_proxy, 2);
}

#[test]
fn nginx_without_request_time_is_refused_with_what_to_write() {
    let log = "192.0.2.1 - - [31/Jan/2026:12:00:00 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"curl\"\n";
    let mut logs = Logs::of(log);
    assert!(logs.refusal().contains("$request_time"), "{}", logs.refusal());
    logs.input.without_latency = true;
    let read = logs.read().unwrap();
    assert_eq!((read.calls[0].1.start, read.calls[0].1.latency), (at(NOON), 0));
}

#[test]
fn nginx_json_is_known_by_its_names() {
    let log = r#"{"msec":"1769860800.250","request_time":"0.250","upstream_response_time":"0.100, 0.140","status":"200","host":"a.example","request_uri":"/x?y"}
{"time_iso8601":"2026-01-31T12:00:01+00:00","request_time":0.1,"upstream_response_time":"-","status":503,"host":"a.example","msec":"1769860801.000"}
"#;
    let read = Logs::of(log).read().unwrap();
    assert_eq!(read.calls.len(), 1);
    let (host, call) = &read.calls[0];
    assert_eq!((host.as_str(), call.start, call.latency), ("a.example", at(NOON), 240 * MS));
    assert_eq!(read.summary.answered_by_proxy, 1);
    let log = r#"{"time":"2026-01-31T13:00:00+01:00","request_time":0.5,"status":200,"server_name":"b.example"}"#;
    assert_eq!(seen(log), [call_of("b.example")]);
    fn call_of(target: &str) -> (String, u64, u64, u16, Outcome) {
        super::proxies::call(target, NOON - 0.5, 500, 200, Success)
    }
}

#[test]
fn envoy_tells_the_start_of_a_request() {
    let log = r#"[2026-01-31T12:00:00.250Z] "GET /a HTTP/1.1" 200 - 0 154 12 11 "-" "curl" "id" "a.example" "10.0.0.1:80"
[2026-01-31T12:00:01.000Z] "GET /a HTTP/2" 503 UF,URX 0 91 40 - "-" "curl" "id" "a.example" "10.0.0.1:80"
[2026-01-31T12:00:02.000Z] "GET /a HTTP/2" 0 DC 0 0 7 - "-" "curl" "id" "a.example" "10.0.0.1:80"
[2026-01-31T12:00:03.000Z] "GET /a HTTP/2" 504 UT 0 24 1000 - "-" "curl" "id" "a.example" "10.0.0.1:80"
[2026-01-31T12:00:04.000Z] "GET /a HTTP/1.1" 200 - via_upstream - "-" 0 5 31 30 "10.0.0.9" "curl" "id" "a.example" "10.0.0.1:80" outbound|80||a.svc 10.0.0.1:4 - - -
"#;
    let expected = [
        call("a.example", NOON + 0.25, 12, 200, Success),
        call("a.example", NOON + 1.0, 40, 0, Failure),
        call("a.example", NOON + 2.0, 7, 0, Ignored),
        call("a.example", NOON + 3.0, 1000, 0, Failure),
        call("outbound|80||a.svc", NOON + 4.0, 31, 200, Success),
    ];
    assert_eq!(seen(log), expected);
}

#[test]
fn what_envoy_refuses_itself_is_no_call() {
    let flags = ["UO", "NR", "RL", "UAEX", "FI", "OM"];
    let line = |flag| {
        format!(
            "[2026-01-31T12:00:00.250Z] \"GET /a HTTP/1.1\" 503 {flag} 0 81 0 - \"-\" \"curl\" \"id\" \"a.example\" \"-\"\n"
        )
    };
    let read = Logs::of(flags.map(line).concat()).read().unwrap();
    assert_eq!((read.calls.len(), read.summary.answered_by_proxy), (0, 6));
    assert!(read.summary.to_string().contains("6 requests were answered by the proxy itself"));
}

#[test]
fn envoy_json_is_known_by_its_names() {
    let log = r#"{"start_time":"2026-01-31T12:00:00.250Z","duration":12,"response_code":200,"response_flags":"-","authority":"a.example","upstream_cluster":"a"}
{"start_time":"2026-01-31T12:00:01.250Z","duration":5,"response_code":503,"response_flags":"UH","authority":"a.example","upstream_cluster":null}
{"start_time":"2026-01-31T12:00:02.250Z","duration":5,"response_code":0,"response_flags":"DC","authority":"a.example","upstream_cluster":"a"}
"#;
    let expected = [
        call("a", NOON + 0.25, 12, 200, Success),
        call("a.example", NOON + 1.25, 5, 0, Failure),
        call("a", NOON + 2.25, 5, 0, Ignored),
    ];
    assert_eq!(seen(log), expected);
}

fn haproxy(timers: &str, status: &str, termination: &str) -> String {
    format!(
        "Jan 31 12:00:00 lb haproxy[7]: 192.0.2.1:33317 [31/Jan/2026:12:00:00.250] http-in~ static/srv1 {timers} {status} 2750 - - {termination} \
         1/1/1/1/0 0/0 {{a.example|Mozilla/5.0 [x] \"y\"}} {{}} \"GET /index.html?a HTTP/1.1\"\n"
    )
}

#[test]
fn a_call_of_haproxy_begins_when_the_request_is_there() {
    assert_eq!(seen(&haproxy("10/0/30/69/109", "200", "----")), [call("static", NOON + 0.26, 99, 200, Success)]);
    assert_eq!(seen(&haproxy("0/0/1/5/+6", "200", "----")), [call("static", NOON + 0.25, 6, 200, Success)]);
}

#[test]
fn haproxy_says_how_a_request_ended() {
    let ends = [
        ("0/0/1/-1/500", "504", "sH--", Some((0, Failure))),
        ("0/0/-1/-1/500", "503", "SC--", Some((0, Failure))),
        ("0/0/1/5/500", "200", "SD--", Some((200, Failure))),
        ("0/0/1/5/500", "200", "CD--", Some((200, Ignored))),
        ("0/0/1/-1/500", "-1", "CHVN", Some((0, Ignored))),
        ("0/0/1/5/6", "502", "PH--", Some((502, Failure))),
        ("0/0/1/5/6", "500", "----", Some((500, Failure))),
        ("-1/-1/-1/-1/500", "408", "cR--", None),
        ("0/500/-1/-1/500", "503", "sQ--", None),
        ("0/-1/-1/-1/0", "403", "PR--", None),
        ("0/-1/-1/-1/0", "301", "LR--", None),
    ];
    for (timers, status, termination, expected) in ends {
        let read = Logs::of(haproxy(timers, status, termination)).read().unwrap();
        let seen = read.calls.first().map(|(_, call)| (call.status, call.outcome));
        assert_eq!(seen, expected, "{termination}");
        assert_eq!(read.summary.answered_by_proxy, u64::from(expected.is_none()), "{termination}");
    }
}

#[test]
fn what_haproxy_says_besides_is_counted() {
    let log = format!("Jan 31 12:00:00 lb haproxy[1]: Proxy http-in started.\n{}", haproxy("0/0/1/5/6", "200", "----"));
    let read = Logs::of(log).read().unwrap();
    assert_eq!((read.calls.len(), read.summary.bad[&Fault::Shape]), (1, 1));
    assert_eq!(read.summary.samples[0].line, 1);
}
