use super::*;

const RULES: ProbeRules = ProbeRules { max_probes: 1, successes_to_close: 2, lease_s: 10 };
const ALL: [State; 5] = [State::Closed, State::Open, State::HalfOpen, State::ForcedOpen, State::Disabled];
const NOW: Now = Now::from_millis(20_000);
const GENERATION: u32 = 7;

/// A word of `state`; `over` says whether its wait or lease has ended by `NOW`.
fn word(state: State, over: bool) -> Word {
    match state {
        State::Open => Word::open(GENERATION, 2, if over { 20_000 } else { 20_001 }),
        State::HalfOpen => Word::half_open(GENERATION, 2, 1, 1, if over { 20 } else { 21 }),
        other => Word::with(other, GENERATION, 0).ticked(5),
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Succeeded,
    Failed,
    Ignored,
    Tripped,
}

fn step(word: Word, event: Event, generation: u32) -> Step {
    match event {
        Event::Succeeded => word.probe_succeeded(generation, NOW, RULES),
        Event::Failed => word.probe_failed(generation, NOW, |reopens| u64::from(reopens) * 1_000),
        Event::Ignored => word.probe_returned(generation),
        Event::Tripped => word.trip(generation, 25_000),
    }
}

/// SM-25: every state, event, generation and side of the deadline, no row left out.
#[test]
fn r03_r05_r16_every_row_of_the_table() {
    let mut rows = 0;
    for state in ALL {
        for over in [false, true] {
            for event in [Event::Succeeded, Event::Failed, Event::Ignored, Event::Tripped] {
                for generation in [GENERATION - 1, GENERATION, GENERATION + 1] {
                    let before = word(state, over);
                    let expected = match (state, event) {
                        _ if generation != GENERATION => Step::Stale,
                        (State::Closed, Event::Tripped) => Step::Move(Word::open(8, 0, 25_000)),
                        (State::HalfOpen, Event::Succeeded) => Step::Move(Word::closed(8, 20_000)),
                        (State::HalfOpen, Event::Failed) => Step::Move(Word::open(8, 3, 23_000)),
                        (State::HalfOpen, Event::Ignored) => {
                            Step::Stay(Word::half_open(GENERATION, 2, 0, 1, before.lease_end()))
                        }
                        _ => Step::Stale,
                    };
                    assert_eq!(step(before, event, generation), expected, "{before:?} {event:?} {generation}");
                    rows += 1;
                }
            }
        }
    }
    assert_eq!(rows, 5 * 2 * 4 * 3);
}

#[test]
fn r01_r02_r04_every_answer_to_a_caller() {
    let probe = Word::half_open(8, 2, 1, 0, 30);
    let expected = [
        (State::Closed, Admission::Enter, Admission::Enter),
        (State::Open, Admission::Refuse(Refusal::Open { reopen_at: 20_001 }), Admission::Probe(probe)),
        (State::HalfOpen, Admission::Refuse(Refusal::Probing { lease_end: 21 }), Admission::Probe(probe)),
        (State::ForcedOpen, Admission::Refuse(Refusal::ForcedOpen), Admission::Refuse(Refusal::ForcedOpen)),
        (State::Disabled, Admission::Enter, Admission::Enter),
    ];
    for (state, before, after) in expected {
        assert_eq!(word(state, false).admit(NOW, RULES), before, "{state}");
        assert_eq!(word(state, true).admit(NOW, RULES), after, "{state}");
    }
}

#[test]
fn r04_a_free_slot_is_granted_before_any_takeover_and_extends_the_lease() {
    let two = ProbeRules { max_probes: 2, ..RULES };
    let free = Word::half_open(GENERATION, 0, 1, 1, 1);
    assert_eq!(free.admit(NOW, two), Admission::Probe(Word::half_open(GENERATION, 0, 2, 1, 30)));
}

#[test]
fn r03_a_success_short_of_enough_frees_its_slot() {
    let first = Word::half_open(GENERATION, 0, 1, 0, 30);
    let after = Word::half_open(GENERATION, 0, 0, 1, 30);
    assert_eq!(first.probe_succeeded(GENERATION, NOW, RULES), Step::Stay(after));
}

#[test]
fn r07_reopens_stand_still_and_closing_resets_them() {
    let late = Word::half_open(GENERATION, 31, 1, 1, 30);
    let Step::Move(open) = late.probe_failed(GENERATION, NOW, |_| 1) else { panic!("reopens") };
    assert_eq!(open.reopens(), 31);
    let Step::Move(closed) = late.probe_succeeded(GENERATION, NOW, RULES) else { panic!("closes") };
    assert_eq!(closed.reopens(), 0);
}

/// What a ramping word does that a plain CLOSED doesn't; all else is CLOSED's.
#[test]
fn a_ramping_word_is_closed_and_keeps_what_was_reopened() {
    let ramping = Word::ramping(GENERATION, 20_000, 2);
    assert_eq!((ramping.state(), ramping.is_ramping(), ramping.lets_pass()), (State::Closed, true, false));
    assert_eq!((ramping.generation(), ramping.tick(), ramping.reopens()), (GENERATION, 20_000, 2));
    assert_eq!((ramping.admit(NOW, RULES), ramping.state_at(NOW)), (Admission::Enter, State::Closed));
    for state in ALL {
        let plain = word(state, true);
        assert!(!plain.is_ramping(), "{state}");
        assert_eq!(plain.lets_pass(), matches!(state, State::Closed | State::Disabled));
        let wait = |reopens| u64::from(reopens) * 1_000;
        assert_eq!((plain.ramped(), plain.relapse(GENERATION, NOW, wait)), (Step::Stale, Step::Stale), "{state}");
    }

    let half_open = Word::half_open(GENERATION - 1, 2, 1, 1, 30);
    assert_eq!(half_open.probe_succeeded_to_ramp(GENERATION - 1, NOW, RULES), Step::Move(ramping));
    assert_eq!(half_open.probe_succeeded_to_ramp(GENERATION, NOW, RULES), Step::Stale);
    let one = Word::half_open(GENERATION, 2, 1, 0, 30);
    assert_eq!(one.probe_succeeded_to_ramp(GENERATION, NOW, RULES), one.probe_succeeded(GENERATION, NOW, RULES));

    assert_eq!(ramping.ramped(), Step::Stay(Word::closed(GENERATION, 20_000)));
    let wait = |reopens| u64::from(reopens) * 1_000;
    assert_eq!(ramping.relapse(GENERATION, NOW, wait), Step::Move(Word::open(GENERATION + 1, 3, 23_000)));
    assert_eq!(ramping.relapse(GENERATION - 1, NOW, wait), Step::Stale);
    let last = Word::ramping(GENERATION, 20_000, 31).relapse(GENERATION, NOW, wait);
    assert_eq!(last, Step::Move(Word::open(GENERATION + 1, 31, 51_000)));
    // The plain trip knows of no ramp.
    assert_eq!(ramping.trip(GENERATION, 5), Step::Move(Word::open(GENERATION + 1, 0, 5)));
    let later = Now::from_millis(21_000);
    assert_eq!(ramping.restart(later), Step::Move(Word::ramping(GENERATION + 1, 21_000, 2)));
    assert_eq!(ramping.forget(later), Step::Move(Word::closed(GENERATION + 1, 21_000)));
    let forced = ramping.force(State::Disabled, NOW);
    assert!(matches!(forced, Step::Move(word) if !word.is_ramping() && word.reopens() == 0));
    assert_eq!(ramping.release(NOW), Step::Stale);
}

#[test]
fn r14_an_elapsed_open_shows_as_half_open() {
    for state in ALL {
        for over in [false, true] {
            let expected = if state == State::Open && over { State::HalfOpen } else { state };
            assert_eq!(word(state, over).state_at(NOW), expected);
        }
    }
}

#[test]
fn r16_forced_states_are_entered_and_left_by_hand() {
    for state in ALL {
        let before = word(state, true);
        let forced = matches!(state, State::ForcedOpen | State::Disabled);
        assert_eq!(matches!(before.release(NOW), Step::Move(_)), forced);
        assert_eq!(matches!(before.restart(NOW), Step::Move(_)), state == State::Closed);
        for to in [State::ForcedOpen, State::Disabled] {
            match before.force(to, NOW) {
                Step::Move(word) => assert_eq!((word.state(), word.generation()), (to, GENERATION + 1)),
                step => assert_eq!((step, state), (Step::Stale, to)),
            }
        }
    }
}

#[test]
fn the_generation_wraps_and_touches_nothing_else() {
    let last = Word::closed((1 << GENERATION_BITS) - 1, 9);
    assert_eq!(last.trip(last.generation(), 50), Step::Move(Word::open(0, 0, 50)));
}

#[test]
fn the_end_of_ticks_wedges_nothing() {
    let end = Now::from_nanos(u64::MAX);
    let Step::Move(open) = Word::closed(1, 0).trip(1, end.tick_after(1_000)) else { panic!("trips") };
    let Admission::Probe(half_open) = open.admit(end, RULES) else { panic!("the wait is over") };
    assert!(matches!(half_open.admit(end, RULES), Admission::Probe(_)), "the lease is over");
}

/// TM-07: no deadline reads as another state, or as none.
#[test]
fn any_bits_decode_and_step() {
    for state_bits in 0..8_u64 {
        for low in [0, 1, (1 << 61) - 1, (1 << 36) - 1, ((1 << 36) - 1) << 20] {
            let word = Word::from_bits(state_bits << 61 | low);
            let generation = word.generation();
            for now in [Now::default(), NOW, Now::from_nanos(u64::MAX)] {
                let _ = (word.admit(now, RULES), word.forget(now), format!("{word:?}"));
                for event in [Event::Succeeded, Event::Failed, Event::Ignored, Event::Tripped] {
                    match step(word, event, generation) {
                        Step::Stale => {}
                        Step::Stay(next) => assert_eq!(next.generation(), generation),
                        Step::Move(next) => assert_ne!(next.generation(), generation),
                    }
                }
            }
        }
    }
}
