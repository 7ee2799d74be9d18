//! How many lines of a log are read in a second: `cargo run --release -p portcullis-numbers --example lines`.
//!
//! Under `taskset -c 0` that is on one core, reading, parsing and handing over together. The formats are those of the same calls.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Instant;

use portcullis_numbers::logs::{self, Input};

/// Lines of each log, unless an argument says otherwise.
const LINES: u64 = 2_000_000;

/// Runs of each log, of which the middle one counts.
const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let lines = std::env::args().nth(1).map_or(Ok(LINES), |lines| lines.parse())?;
    for (format, header, line) in FORMATS {
        let mut log = tempfile::NamedTempFile::new()?;
        let mut text = header.to_owned();
        for n in 0..lines {
            line(&mut text, n);
        }
        log.write_all(text.as_bytes())?;
        let width = text.len() as u64 / lines;
        drop(text);
        let input = Input::new(vec![log.path().to_owned()]);
        let mut seconds = Vec::new();
        for _ in 0..RUNS {
            let begin = Instant::now();
            let summary = logs::read(&input, |_, _| {})?;
            seconds.push(begin.elapsed().as_secs_f64());
            assert_eq!(summary.calls, lines, "{summary}");
        }
        seconds.sort_by(f64::total_cmp);
        #[allow(clippy::cast_precision_loss, reason = "a rate to be read by people")]
        let rate = lines as f64 / seconds[RUNS / 2] / 1e6;
        println!("{format:<28} {width:>4} bytes a line {rate:>6.2} million lines/s");
    }
    Ok(())
}

/// A format's name, its header, and how a line of it is written.
type Format = (&'static str, &'static str, fn(&mut String, u64));

const FORMATS: [Format; 4] = [
    ("CSV", "time,target,latency_ms,status,id\n", |text, n| {
        // A call each millisecond, written at its end.
        let (time, latency) = (1_700_000_000_000 + n, n * 7919 % 977);
        let (seconds, millis, target) = (time / 1000, time % 1000, n % 40);
        let _ = writeln!(text, "{seconds}.{millis:03},backend-{target:02},{latency}.25,200,{n:020x}");
    }),
    ("CSV, RFC 3339", "time,target,latency_ms,status\n", |text, n| {
        let (minute, second, millis, target) = (n / 60_000 % 60, n / 1000 % 60, n % 1000, n % 40);
        let hour = n / 3_600_000;
        let _ = writeln!(
            text,
            "2026-01-31T{hour:02}:{minute:02}:{second:02}.{millis:03}Z,backend-{target:02},{}.25,200",
            n % 977
        );
    }),
    ("JSON", "", |text, n| {
        let (time, latency, target) = (1_700_000_000_000 + n, n * 7919 % 977, n % 40);
        let (seconds, millis) = (time / 1000, time % 1000);
        let _ = writeln!(
            text,
            r#"{{"time":{seconds}.{millis:03},"target":"backend-{target:02}","latency_ms":{latency}.25,"status":200,"id":"{n:020x}"}}"#
        );
    }),
    ("nginx", "", |text, n| {
        let (minute, second, target, time) = (n / 60_000 % 60, n / 1000 % 60, n % 40, n % 977);
        let _ = writeln!(
            text,
            r#"192.0.2.1 - - [31/Jan/2026:{:02}:{minute:02}:{second:02} +0000] "GET /a/{n} HTTP/1.1" 200 512 "-" "curl/8.5" 90 0.{time:03} [backend-{target:02}] [] 10.0.0.1:80 512 0.{time:03} 200 {n:032x}"#,
            n / 3_600_000
        );
    }),
];
