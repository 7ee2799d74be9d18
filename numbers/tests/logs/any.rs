//! Whatever a log holds.

use std::path::Path;

use portcullis_numbers::logs::{self, Format, Input};

/// A line of each format, under a header where it needs one.
const LOGS: [(Format, &str); 6] = [
    (
        Format::Csv,
        "time,target,latency_ms,status,code\n1700000000.25,core,12.5,200,\n2023-11-14T22:13:21.5Z,\"a \"\"b\"\"\n\",1e3,-,E904\n",
    ),
    (Format::Json, r#"{"time":1700000000.25,"target":"c\u006fre","latency_ms":0.25,"status":null,"more":{"a":[1]}}"#),
    (
        Format::Nginx,
        r#"192.0.2.1 - - [31/Jan/2026:12:00:00 +0000] "GET /a HTTP/1.1" 200 61 "-" "curl" 348 0.310 [web-80] [] 10.0.0.1:80, 10.0.0.2:80 61, 100 0.300, 0.004 502, 200 83"#,
    ),
    (
        Format::Envoy,
        r#"[2026-01-31T12:00:04.000Z] "GET /a HTTP/1.1" 503 UF,URX - - "-" 0 5 31 30 "10.0.0.9" "curl" "id" "a.example" "10.0.0.1:80" outbound|80||a.svc -"#,
    ),
    (
        Format::Haproxy,
        r#"lb haproxy[7]: 192.0.2.1:33317 [31/Jan/2026:12:00:00.250] in~ static/srv1 10/0/30/69/109 200 2750 - - sD-- 1/1/1/1/0 0/0 {a} {} "GET /a HTTP/1.1""#,
    ),
    (
        Format::Json,
        r#"{"msec":"1769860800.250","request_time":"0.250","upstream_response_time":"0.100, 0.140","status":"499","host":"a.example","request_uri":"/x?y"}"#,
    ),
];

/// What a byte is changed into.
const BYTES: &[u8] = b"\0\n\r\t \"',.:;-+/\\[]{}0199eTZ\xFF\xC3";

/// The xorshift of Marsaglia, 64 bits.
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) as usize
}

#[test]
fn each_line_is_accounted_for() {
    let (mut state, mut calls, mut bad) = (1, 0, 0);
    for n in 0..1_200 {
        let (format, line) = LOGS[n % LOGS.len()];
        let mut log = line.as_bytes().to_vec();
        for _ in 0..=next(&mut state) % 3 {
            let at = next(&mut state) % log.len();
            match next(&mut state) % 3 {
                0 => log[at] = BYTES[next(&mut state) % BYTES.len()],
                1 => drop(log.remove(at)),
                _ => log.insert(at, BYTES[next(&mut state) % BYTES.len()]),
            }
        }
        let mut input = Input::new(Vec::new());
        input.format = format;
        // A header or object that was hit may be refused, with a reason.
        match logs::read_from(&*log, Path::new("log"), &input, |_, _| {}) {
            Ok(summary) => {
                let faults: u64 = summary.bad.values().sum();
                let read = summary.calls + faults + summary.refused + summary.answered_by_proxy;
                assert!(
                    read <= summary.lines && summary.lines <= 8,
                    "{:?}: {summary:?}",
                    String::from_utf8_lossy(&log)
                );
                (calls, bad) = (calls + summary.calls, bad + faults);
            }
            Err(error) => assert!(error.to_string().starts_with("log: ")),
        }
    }
    assert!(calls > 400 && bad > 200, "{calls} calls, {bad} bad lines");
}
