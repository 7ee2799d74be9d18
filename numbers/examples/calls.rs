//! Writes the log of a made-up afternoon as CSV, the same at each run: something to plan from whose truth is known.
//!
//! ```text
//! cargo run --release -p portcullis-numbers --example calls > calls.csv
//! ```

#[expect(dead_code, reason = "the tests' own logs, of which this needs a part")]
#[path = "../tests/made/mod.rs"]
mod made;

use std::io::{BufWriter, Write};

use made::Made;

/// Two hours: `core` and `claims` share a database that is down three times, `claims` is down once more by itself, `rates` always fails in one of
/// ten calls, `mail` is hardly called.
const TARGETS: [Made; 4] = [
    Made { name: "core", latency: 0.08, outages: &[(1_000, 1_120), (3_000, 3_240), (5_000, 5_060)], ..USUAL },
    Made { name: "claims", rate: 20.0, latency: 0.1, failing: 0.001, ..USUAL },
    Made { name: "rates", rate: 30.0, latency: 0.12, failing: 0.1, outages: &[], ..USUAL },
    Made { name: "mail", rate: 0.05, latency: 2.0, failing: 0.05, outages: &[], ..USUAL },
];

const USUAL: Made = Made {
    name: "",
    rate: 50.0,
    is_even: false,
    latency: 0.0,
    sigma: 0.4,
    failing: 0.01,
    seconds: 7_200,
    outages: &[(1_000, 1_120), (3_000, 3_240), (5_000, 5_060), (6_000, 6_300)],
};

fn main() -> std::io::Result<()> {
    let (calls, names) = made::log(&TARGETS, 7);
    let mut out = BufWriter::new(std::io::stdout().lock());
    writeln!(out, "time,target,latency_ms,status")?;
    for call in calls {
        let (micros, latency) = (call.start / 1_000, call.latency / 1_000);
        let time = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
        let name = names.name(call.target);
        writeln!(out, "{time},{name},{}.{:03},{}", latency / 1_000, latency % 1_000, call.status)?;
    }
    out.flush()
}
