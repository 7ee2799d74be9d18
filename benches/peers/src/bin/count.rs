//! Makes so many decisions of one subject on one thread, to be counted by callgrind: `benches/peers/count`.

use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use portcullis_peers::cores::case::{Basis, Case, Path};
use portcullis_peers::cores::keys::{KeySet, Keys};
use portcullis_peers::cores::subjects::by_hand::ByHand;
use portcullis_peers::cores::subjects::controls::Map;
use portcullis_peers::cores::subjects::portcullis::{Keyed, Owned, Precise, Resolved};
use portcullis_peers::cores::subjects::singles::Recloser;
use portcullis_peers::cores::timed::{Setup, Timed};
use portcullis_peers::subject::Ending;

/// Calls that fill a window.
const FILLED: usize = 101;

/// Decisions to be counted.
#[derive(Debug, Parser)]
struct Options {
    /// resolved, keyed, owned, by-hand or map.
    subject: String,
    /// hot, zipf or uniform.
    keys: String,
    /// healthy, open or full.
    path: String,
    decisions: usize,
}

/// What callgrind collects in.
#[inline(never)]
fn counted<S: Timed>(caller: &mut S::Caller<'_>, keys: &KeySet, order: &[u32], decisions: usize) -> usize {
    let draws = order.iter().cycle().take(decisions);
    draws.filter(|place| S::call(caller, &keys.all[**place as usize], Ending::Success)).count()
}

fn run<S: Timed>(case: Case, decisions: usize) {
    let keys = Arc::new(KeySet::new(case.keys, 1));
    let settings = case.settings(S::basis(case));
    let subject = S::build(&Setup { case, settings, keys: Arc::clone(&keys), seats: 1 });
    let mut caller = subject.caller(0);
    let held: Vec<_> =
        if case.path == Path::Full { std::iter::from_fn(|| subject.hold(0)).collect() } else { Vec::new() };
    if case.path == Path::Open {
        for _ in 0..100 {
            S::call(&mut caller, &keys.all[0], Ending::Failure);
        }
    }
    let order = keys.order(0).unwrap_or(&[0]);
    if case.path.admits() {
        let asked = if case.keys.is_spread() { &keys.all[..] } else { &keys.all[..1] };
        for key in asked.iter().flat_map(|key| std::iter::repeat_n(key, FILLED)) {
            S::call(&mut caller, key, Ending::Success);
        }
    }
    // Once before, for what is learnt of the order itself.
    for place in order {
        S::call(&mut caller, &keys.all[*place as usize], Ending::Success);
    }
    let admitted = counted::<S>(&mut caller, &keys, order, decisions);
    assert_eq!(admitted, if case.path.admits() { decisions } else { 0 });
    black_box(held);
}

fn main() -> ExitCode {
    let options = Options::parse();
    let keys = match options.keys.as_str() {
        "hot" => Keys::Hot,
        "zipf" => Keys::Zipf,
        "uniform" => Keys::Uniform,
        _ => return ExitCode::from(2),
    };
    let path = match options.path.as_str() {
        "healthy" => Path::Healthy(Basis::Calls),
        "open" => Path::Open,
        "full" => Path::Full,
        _ => return ExitCode::from(2),
    };
    let run = match options.subject.as_str() {
        "resolved" => run::<Resolved<Precise>>,
        "keyed" => run::<Keyed<Precise>>,
        "owned" => run::<Owned>,
        "by-hand" => run::<ByHand<Recloser>>,
        "map" => run::<Map<rustc_hash::FxBuildHasher>>,
        _ => return ExitCode::from(2),
    };
    run(Case { path, keys }, options.decisions);
    ExitCode::SUCCESS
}
