//! Random operations on the real engine and the naive one: a million in a release build, within seconds; a tenth of that in a debug build.
//!
//! `ORACLE_OPERATIONS=20000000 cargo test --release` does more. What fails is shrunk to the operations that matter.

mod cases;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use oracle::{Case, Draft, Grip, KINDS, Op, Patience, Tally, Twin, Verdict, check, check_twin};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestError, TestRunner};

const OPERATIONS: u64 = if cfg!(debug_assertions) { 100_000 } else { 1_000_000 };
const THREADS: u64 = 2;
/// Cases between two looks at how many operations were done.
const ROUND: u32 = 100;
/// Cases within which a broken twin must be caught.
const PATIENCE: u32 = 5_000;

const CAUSES: [&str; 17] = [
    "consecutive_failures",
    "failure_rate",
    "failures",
    "slow_rate",
    "stalled_calls",
    "stalled_share",
    "relapse",
    "probe_failed",
    "probe_slow",
    "probes_succeeded",
    "wait_elapsed",
    "lease_expired",
    "forced_open",
    "disabled",
    "released",
    "policy_changed",
    "forgotten",
];
const REJECTIONS: [&str; 6] = ["open", "probing", "saturated", "shed", "forced", "exhausted"];

thread_local! {
    static IS_SEARCHING: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the panics of a search, one for every step of its shrinking, off the screen: the last is reported with its case.
fn search<R>(work: impl FnOnce() -> R) -> R {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IS_SEARCHING.get() {
                loud(info);
            }
        }));
    });
    IS_SEARCHING.set(true);
    let result = work();
    IS_SEARCHING.set(false);
    result
}

/// Why a case fails, if it does.
fn failure(case: &Case, twin: Twin) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| check_twin(case, twin))).err()?;
    Some(panic.downcast::<String>().map_or_else(|_| "no reason given".into(), |reason| *reason))
}

/// Leaves out every operation that a failing case can do without; proptest's own shrinking goes over them once only.
fn reduce(mut case: Case) -> (Case, String) {
    let mut reason = failure(&case, Twin::None).unwrap_or_else(|| "it doesn't fail again".into());
    let mut index = 0;
    while index < case.ops.len() {
        let mut shorter = case.clone();
        shorter.ops.remove(index);
        match failure(&shorter, Twin::None) {
            Some(now) => (case, reason, index) = (shorter, now, 0),
            None => index += 1,
        }
    }
    (case, reason)
}

#[test]
fn the_engine_answers_like_the_oracle() {
    let asked = std::env::var("ORACLE_OPERATIONS").ok();
    let operations = asked.map_or(OPERATIONS, |asked| asked.parse().expect("ORACLE_OPERATIONS is a number"));
    let run = || {
        let tally = RefCell::new(Tally::default());
        while tally.borrow().operations() < operations.div_ceil(THREADS) {
            let config =
                Config { cases: ROUND, failure_persistence: None, max_shrink_iters: 50_000, ..Config::default() };
            let mut runner = TestRunner::new(config);
            let checked = |case: Case| {
                let done = check(&case);
                tally.borrow_mut().add(&done);
                Ok(())
            };
            match search(|| runner.run(&cases::case(), checked).map_err(Box::new)).map_err(|error| *error) {
                Ok(()) => {}
                Err(TestError::Fail(_, case)) => {
                    let (case, reason) = search(|| reduce(case));
                    panic!("{reason}\nafter {case:?}");
                }
                Err(error) => panic!("{error}"),
            }
        }
        tally.into_inner()
    };
    let mut total = Tally::default();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..THREADS).map(|_| scope.spawn(run)).collect();
        for thread in running {
            total.add(&thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
    });
    println!("oracle: {} operations compared, {} outcomes stale", total.operations(), total.stale);
    for (kind, count) in KINDS.iter().zip(total.kinds) {
        println!("  {kind}: {count}");
        assert!(count > 0, "never did: {kind}");
    }
    for (names, counts) in [(&CAUSES[..], &total.causes), (&REJECTIONS[..], &total.rejections)] {
        for name in names {
            println!("  {name}: {}", counts.get(name).unwrap_or(&0));
            assert!(counts.contains_key(name), "never came about: {name}");
        }
        assert_eq!(counts.len(), names.len(), "unknown among {counts:?}");
    }
    assert!(total.operations() >= operations && total.stale > 0);
}

#[test]
fn every_broken_oracle_is_caught() {
    for twin in Twin::BROKEN {
        let mut runner = TestRunner::deterministic();
        let mut draw = || cases::case().new_tree(&mut runner).expect("a case").current();
        let mut caught = (1..=PATIENCE).filter_map(|case| Some((case, search(|| failure(&draw(), twin))?)));
        let (case, reason) = caught.next().unwrap_or_else(|| panic!("{twin:?} was never told from the real engine"));
        let reason: String = reason.lines().next().unwrap_or_default().chars().take(80).collect();
        println!("oracle: {twin:?} caught by case {case}: {reason}");
        // By a difference, not by a slip of its own.
        assert!(!reason.contains("overflow"), "{twin:?}: {reason}");
    }
}

#[test]
fn an_oracle_with_nothing_broken_is_not_caught() {
    let mut runner = TestRunner::deterministic();
    for _ in 0..ROUND {
        check(&cases::case().new_tree(&mut runner).expect("a case").current());
    }
}

/// More transitions of one target than the gate's 20 bits of generation tell apart; a permit of the first lap comes due in the second.
#[test]
fn the_generation_wraps_and_the_sequence_does_not() {
    const LAP: usize = 1 << 20;
    let draft = Draft { window: 1, size: 7, streak: 15, limit: 2, ..Draft::default() };
    let admit = Op::Admit { key: 0, grip: Grip::Borrowed };
    let mut ops = vec![admit, admit];
    ops.extend([Op::Disable { key: 0 }, Op::Release { key: 0 }].into_iter().cycle().take(LAP - 2));
    // Granted in the first generation, and stale still; then it comes round.
    ops.push(Op::Settle { permit: 0, verdict: Verdict::Failure });
    ops.extend([Op::Disable { key: 0 }, Op::Release { key: 0 }]);
    ops.push(Op::Settle { permit: 0, verdict: Verdict::Failure });
    ops.extend([Op::Disable { key: 0 }, Op::Release { key: 0 }, admit, Op::Snapshots]);
    let case = Case { drafts: [draft; 4], targets: 0, idle: Patience::Hour, forget: Patience::Hour, ops };
    let tally = check(&case);
    assert_eq!((tally.stale, tally.causes["released"]), (1, (LAP / 2) as u64 + 1));
}
