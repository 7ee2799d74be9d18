//! Histories written by hand: what the specification allows in a race, and that it allows no more.

use linearizability::check::is_linearizable;
use linearizability::history::{Entry, History};
use linearizability::plan::{Answer, Done, Ending, Shown};
use linearizability::shape::SHAPES;

const GRANTED: Answer = Answer::Granted { probe: false, generation: 0 };

fn admit(answer: Answer) -> Done {
    Done::Admit { key: 0, answer }
}

fn settle(call: u16, ending: Ending, stale: bool) -> Done {
    Done::Settle { call, key: 0, probe: false, ending, stale: Some(stale) }
}

/// Acts as `(thread, name, invoked, returned, done)`.
fn is_allowed(shape: &str, acts: &[(u8, u16, u64, u64, Done)]) -> bool {
    let shape = SHAPES.iter().find(|other| other.name == shape).unwrap_or_else(|| panic!("no shape {shape}"));
    let entries =
        acts.iter().map(|&(thread, act, invoked, returned, done)| Entry { thread, act, done, invoked, returned });
    is_linearizable(&History { shape, entries: entries.collect() })
}

#[test]
fn r21_saturated_is_exact_for_a_lone_caller() {
    let full = admit(Answer::Saturated { limit: 1 });
    let held = [(1, 0x100, 0, 0, admit(GRANTED)), (2, 0x200, 1, 1, full)];
    assert!(is_allowed("streak, limit 1", &held));
    let idle = [(2, 0x200, 0, 0, full)];
    assert!(!is_allowed("streak, limit 1", &idle));
    let released = [
        (1, 0x100, 0, 0, admit(GRANTED)),
        (1, 0x101, 1, 1, settle(0x100, Ending::Success, false)),
        (2, 0x200, 2, 2, full),
    ];
    assert!(!is_allowed("streak, limit 1", &released));
}

#[test]
fn r21_saturated_may_be_said_while_another_gives_back_though_its_outcome_shows() {
    let full = admit(Answer::Saturated { limit: 2 });
    // Thread 3's failure trips only on top of thread 1's, and thread 2 asks after that has shown and the clock has moved.
    let acts = |end| {
        [
            (1, 0x100, 0, 0, admit(GRANTED)),
            (3, 0x300, 1, 1, admit(GRANTED)),
            (1, 0x101, 2, end, settle(0x100, Ending::Failure, false)),
            (3, 0x301, 2, 9, settle(0x300, Ending::Failure, false)),
            (2, 0x200, 3, 3, Done::Look { key: 0, shown: Shown::Open }),
            (2, 0x201, 4, 4, Done::Advance { ms: 100 }),
            (2, 0x202, 5, 5, full),
        ]
    };
    assert!(is_allowed("streak, limit 2", &acts(8)));
    // As soon as one of them has returned there is room.
    assert!(!is_allowed("streak, limit 2", &acts(4)));
}

#[test]
fn r21_another_admission_is_no_excuse_for_saturated() {
    let acts = [
        (1, 0x100, 0, 5, admit(Answer::Granted { probe: false, generation: 0 })),
        (2, 0x200, 1, 1, admit(Answer::Saturated { limit: 2 })),
    ];
    assert!(!is_allowed("streak, limit 2", &acts));
}

#[test]
fn stashes_excuse_saturated_only_in_a_race() {
    use Answer::Saturated;
    let limits = |returned| {
        [
            (1, 0x100, 0, returned, Done::SetLimit { key: 0, limit: 1, done: true }),
            (2, 0x200, 2, 2, admit(Saturated { limit: 1 })),
        ]
    };
    assert!(is_allowed("limits with and without stashes", &limits(3)));
    assert!(!is_allowed("limits with and without stashes", &limits(1)));
}

#[test]
fn r02_two_callers_at_the_end_of_the_wait_are_one_probe() {
    let probe = |generation| admit(Answer::Granted { probe: true, generation });
    let trip = [
        (0, 0x000, 0, 0, admit(GRANTED)),
        (0, 0x001, 1, 1, settle(0x000, Ending::Failure, false)),
        (0, 0x002, 2, 2, Done::Advance { ms: 100 }),
    ];
    let and = |one, other| [&trip[..], &[(1, 0x100, 3, 5, one), (2, 0x200, 3, 4, other)]].concat();
    let name = "one probe at the end of the wait";
    assert!(is_allowed(name, &and(probe(2), admit(Answer::Probing))));
    assert!(!is_allowed(name, &and(probe(2), probe(2))));
    assert!(!is_allowed(name, &and(probe(3), admit(Answer::Probing))));
    assert!(!is_allowed(name, &and(admit(Answer::Probing), admit(Answer::Probing))));
}

#[test]
fn r10_an_outcome_shows_once_its_call_has_returned() {
    let acts = |returned, shown| {
        [
            (1, 0x100, 0, 0, admit(GRANTED)),
            (1, 0x101, 1, returned, settle(0x100, Ending::Failure, false)),
            (2, 0x200, 2, 2, Done::Look { key: 0, shown }),
        ]
    };
    let name = "forced by hand";
    assert!(is_allowed(name, &acts(3, Shown::Closed)) && is_allowed(name, &acts(3, Shown::Open)));
    assert!(is_allowed(name, &acts(1, Shown::Open)) && !is_allowed(name, &acts(1, Shown::Closed)));
}

#[test]
fn r05_a_stale_outcome_changes_nothing() {
    let acts = |stale, shown| {
        [
            (1, 0x100, 0, 0, admit(GRANTED)),
            (2, 0x200, 1, 1, Done::Hand { key: 0, to: Shown::ForcedOpen, changed: Some(true) }),
            (2, 0x201, 2, 2, Done::Hand { key: 0, to: Shown::Closed, changed: Some(true) }),
            (1, 0x101, 3, 3, settle(0x100, Ending::Failure, stale)),
            (2, 0x202, 4, 4, Done::Look { key: 0, shown }),
        ]
    };
    assert!(is_allowed("forced by hand", &acts(true, Shown::Closed)));
    assert!(!is_allowed("forced by hand", &acts(false, Shown::Closed)));
    assert!(!is_allowed("forced by hand", &acts(true, Shown::Open)));
}

#[test]
fn r19_a_key_with_a_failure_is_never_exhausted() {
    let ending = Ending::Success;
    let other = Done::Settle { call: 0x102, key: 1, probe: false, ending, stale: Some(false) };
    let acts = |ending| {
        [
            (1, 0x100, 0, 0, admit(GRANTED)),
            (1, 0x101, 1, 1, settle(0x100, ending, false)),
            (1, 0x102, 2, 2, Done::Admit { key: 1, answer: GRANTED }),
            (1, 0x103, 3, 3, other),
            (1, 0x104, 4, 4, Done::Admit { key: 2, answer: GRANTED }),
            (1, 0x105, 5, 5, admit(Answer::Exhausted)),
        ]
    };
    assert!(is_allowed("more keys than targets", &acts(Ending::Success)));
    assert!(!is_allowed("more keys than targets", &acts(Ending::Failure)));
}
