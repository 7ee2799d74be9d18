//! Runs the reported faults on every subject, side by side.
//!
//! Prints a table, or with `--json` what it writes to `target/faults/faults.json` in any case. Ends with code 1 if one of
//! portcullis' own answers isn't the right one.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use portcullis_peers::alloc::Counting;
use portcullis_peers::faults::{self, Scenario};
use portcullis_peers::peers::failsafe::{Consecutive, Failsafe, Rate};
use portcullis_peers::peers::{
    breaker, composed, ferryman, governor, portcullis, recloser, seatbelt, semaphore, throttle_net, tower_resilience,
};
use portcullis_peers::report::{self, Column};
use portcullis_peers::subject::Held;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn column<P: Held>() -> Column {
    let start = Instant::now();
    let cells = faults::column::<P>();
    eprintln!("{:<24} {:>5.1} s", P::NAME, start.elapsed().as_secs_f64());
    Column::of::<P>(cells)
}

/// Ours first; the report sets it beside all others.
fn columns() -> Vec<Column> {
    vec![
        column::<portcullis::Portcullis>(),
        column::<Failsafe<Consecutive>>(),
        column::<Failsafe<Rate>>(),
        column::<recloser::Futures>(),
        column::<tower_resilience::TowerResilience>(),
        column::<throttle_net::ThrottleNet>(),
        column::<ferryman::Ferryman>(),
        column::<breaker::Breaker>(),
        column::<seatbelt::Seatbelt>(),
        column::<composed::Composed>(),
        column::<governor::Governor>(),
        column::<semaphore::Permits>(),
    ]
}

fn write(json: &serde_json::Value) -> std::io::Result<()> {
    let path = Path::new("target/faults/faults.json");
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::write(path, format!("{json:#}\n"))
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let is_json = match (args.next().as_deref(), args.next()) {
        (None, None) => false,
        (Some("--json"), None) => true,
        _ => {
            eprintln!("usage: faults [--json]");
            return ExitCode::from(2);
        }
    };
    let scenarios: Vec<Scenario> =
        faults::rows::<portcullis::Portcullis>().into_iter().map(|(scenario, _)| scenario).collect();
    let columns = columns();
    let json = report::json(&scenarios, &columns);
    if is_json {
        println!("{json:#}");
    } else {
        print!("{}", report::table(&scenarios, &columns));
    }
    if let Err(error) = write(&json) {
        eprintln!("target/faults/faults.json: {error}");
        return ExitCode::from(2);
    }
    if columns.first().is_some_and(Column::is_right) {
        ExitCode::SUCCESS
    } else {
        eprintln!("portcullis: not every answer is the right one");
        ExitCode::FAILURE
    }
}
