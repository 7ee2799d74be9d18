use portcullis::{Permit, Settled, State};

use super::kit::c0;
use crate::common::{Bench, T, secs};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Success,
    Failure,
    Ignored,
    Abandoned,
}

use End::{Abandoned, Failure, Ignored, Success};
use State::{Closed, Disabled, ForcedOpen, HalfOpen, Open};

/// State, then what it becomes by each ending of a permit of its own generation; none where it grants no permits.
const CURRENT: [(State, [Option<State>; 4]); 5] = [
    (Closed, [Some(Closed), Some(Open), Some(Closed), Some(Closed)]),
    (Open, [None; 4]),
    (HalfOpen, [Some(Closed), Some(Open), Some(HalfOpen), Some(HalfOpen)]),
    (ForcedOpen, [None; 4]),
    (Disabled, [Some(Disabled), Some(Disabled), Some(Disabled), Some(Disabled)]),
];

/// A target in a state, and a permit of that generation or of an earlier one.
fn arrange(bench: &Bench, state: State, is_current: bool) -> Option<Permit<'_>> {
    let old = bench.engine.admit(T).unwrap();
    if state == Closed {
        // An earlier closed period than the present one.
        bench.engine.disable(T).unwrap();
        bench.engine.release(T).unwrap();
    }
    match state {
        Open => bench.fail(1),
        HalfOpen => {
            bench.fail(1);
            bench.advance(secs(30));
            let probe = bench.engine.admit(T).unwrap();
            if is_current {
                return Some(probe);
            }
            std::mem::forget(probe);
        }
        ForcedOpen => assert!(bench.engine.force_open(T).unwrap()),
        Disabled => assert!(bench.engine.disable(T).unwrap()),
        _ => {}
    }
    if is_current { bench.engine.admit(T).ok() } else { Some(old) }
}

fn end(permit: Permit<'_>, ending: End) -> Option<Settled> {
    match ending {
        Success => Some(permit.success()),
        Failure => Some(permit.failure()),
        Ignored => Some(permit.ignore()),
        Abandoned => {
            drop(permit);
            None
        }
    }
}

/// SM-25: every state, ending, generation and side of the deadline: 5 x 4 x 2 x 2 rows, none left out.
#[test]
fn sm25_the_written_table_is_what_happens() {
    let mut rows = 0;
    for (state, becomes) in CURRENT {
        for (ending, becomes) in [Success, Failure, Ignored, Abandoned].into_iter().zip(becomes) {
            for is_current in [true, false] {
                for is_elapsed in [true, false] {
                    let bench = Bench::new(c0().window(portcullis::Window::calls(1)).min_calls(1));
                    let permit = arrange(&bench, state, is_current);
                    if is_elapsed {
                        // Past the wait of OPEN, and past the lease of HALF_OPEN that nobody else asks for.
                        bench.advance(secs(100));
                    }
                    let shown = if state == Open && is_elapsed { HalfOpen } else { state };
                    assert_eq!(bench.state(), shown);
                    let (events, stale) = (bench.log().len(), bench.snapshot().totals.stale);
                    let row = format!("{state} {ending:?} {is_current} {is_elapsed}");
                    let expected = if is_current { becomes } else { Some(shown) };
                    let Some(permit) = permit else {
                        assert_eq!(expected, None, "{row}");
                        rows += 1;
                        continue;
                    };
                    let settled = end(permit, ending);
                    assert_eq!(Some(bench.state()), expected, "{row}");
                    let fate = if is_current { Settled::Recorded } else { Settled::Stale };
                    assert!(settled.is_none_or(|settled| settled == fate), "{row}");
                    let moved = usize::from(expected != Some(shown));
                    assert_eq!(bench.log().len(), events + moved, "{row}");
                    assert_eq!(bench.snapshot().totals.stale - stale, u64::from(!is_current), "{row}");
                    rows += 1;
                }
            }
        }
    }
    assert_eq!(rows, 5 * 4 * 2 * 2);
}

/// The other way around: what each state answers to a caller, before and after its deadline.
#[test]
fn sm25_each_state_answers_as_written() {
    use portcullis::Rejection;
    let cases: [(State, bool, Result<bool, &str>); 10] = [
        (Closed, false, Ok(false)),
        (Closed, true, Ok(false)),
        (Open, false, Err("open")),
        (Open, true, Ok(true)),
        (HalfOpen, false, Err("probing")),
        (HalfOpen, true, Ok(true)),
        (ForcedOpen, false, Err("forced")),
        (ForcedOpen, true, Err("forced")),
        (Disabled, false, Ok(false)),
        (Disabled, true, Ok(false)),
    ];
    for (state, is_elapsed, expected) in cases {
        let bench = Bench::new(c0().window(portcullis::Window::calls(1)).min_calls(1));
        std::mem::forget(arrange(&bench, state, true));
        if is_elapsed {
            bench.advance(secs(100));
        }
        let answer =
            bench.engine.admit(T).map(|permit| permit.is_probe()).map_err(|refused: Rejection| refused.reason());
        assert_eq!(answer, expected, "{state} {is_elapsed}");
    }
}
