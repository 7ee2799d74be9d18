//! The screen for fixed tellings: what is drawn, and what the keys do.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

use super::feed::Heard;
use super::screen::{Act, Do, Mode, Screen};
use super::text::{harmless, span};
use super::view;

const NOW: u64 = 1_764_500_000_000;

fn target(name: &str, state: &str, more: &Value) -> Value {
    let mut target = json!({
        "name": name, "configured": true, "state": state, "since_ms": NOW - 125_000, "cause": "failure_rate", "in_flight": 2, "limit": 3,
        "totals": { "admitted": 1000, "success": 900, "failure": 100 }, "refusals": { "open": 7, "saturated": 0 },
        "latency": { "count": 9, "p50_ms": 4.25, "p99_ms": 180.0 },
    });
    for (key, value) in more.as_object().unwrap() {
        target[key] = value.clone();
    }
    target
}

fn state(targets: &[Value]) -> Heard {
    let moved = json!({ "target": "core", "from": "CLOSED", "to": "OPEN", "cause": "failure_rate", "wall": "2025-11-30T10:53:20.000Z" });
    Heard::State(json!({
        "now_ms": NOW, "version": "1.2.3", "health": { "status": "ok", "in_flight": 4, "max_concurrent": 512 },
        "targets": targets, "transitions": [moved],
    }))
}

fn change(seconds: u64, targets: &[Value], gone: &[&str]) -> Heard {
    let health = json!({ "status": "ok", "in_flight": 4, "max_concurrent": 512 });
    Heard::Change(
        json!({ "now_ms": NOW + seconds * 1_000, "health": health, "targets": targets, "gone": gone, "transitions": [] }),
    )
}

/// One target in trouble among others.
fn three() -> Screen {
    let mut screen = Screen::default();
    screen.hear(state(&[
        target("alpha", "CLOSED", &json!({})),
        target("core", "OPEN", &json!({ "reopen_at_ms": NOW + 2_400 })),
        target("mail", "HALF_OPEN", &json!({ "limit": null, "latency": null })),
    ]));
    screen
}

/// The screen as lines of text.
fn drawn(screen: &mut Screen, width: u16, height: u16, now_ms: u64) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(frame, screen, now_ms)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

fn press(screen: &mut Screen, code: KeyCode) -> Option<Do> {
    screen.key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn the_worst_target_is_the_first_and_its_probe_is_counted_down() {
    let mut screen = three();
    let lines = drawn(&mut screen, 160, 20, NOW);
    assert!(
        lines[0].starts_with(" portcullis 1.2.3  4 of 512 in flight  3 targets  1 OPEN  1 HALF_OPEN"),
        "{}",
        lines[0]
    );
    let titles =
        ["TARGET", "STATE", "FOR", "NEXT", "CALLS/s", "FAIL", "IN", "FLIGHT", "P50", "P99", "RECENT", "REFUSED"];
    assert_eq!(words(&lines[1]), titles);
    assert_eq!(
        words(&lines[2]),
        [">", "core", "OPEN", "2m05s", "probe", "3s", "-", "-", "2/3", "4.2ms", "180ms", "open", "7"]
    );
    assert_eq!(words(&lines[3])[..2], ["mail", "HALF_OPEN"]);
    assert_eq!(words(&lines[4])[..2], ["alpha", "CLOSED"]);
    assert_eq!(lines[14], " 10:53:20Z  core  CLOSED to OPEN  failure rate");
    // Without a word from the gateway the countdown goes on.
    assert!(drawn(&mut screen, 160, 20, NOW + 1_500)[2].contains("probe 1s"));
    assert!(drawn(&mut screen, 160, 20, NOW + 2_400)[2].contains("probe due"));
}

#[test]
fn the_pace_is_told_by_two_tellings_and_is_nothing_where_nothing_changed() {
    let mut screen = three();
    let totals = json!({ "admitted": 1100, "success": 975, "failure": 125 });
    screen.hear(change(2, &[json!({ "name": "alpha", "totals": totals, "in_flight": 0 })], &["mail"]));
    let pace = screen.model.targets["alpha"].pace;
    assert_eq!((pace.admitted, pace.ended, pace.failed, pace.failure_share()), (50.0, 50.0, 12.5, Some(0.25)));
    assert_eq!(screen.names(), ["core", "alpha"]);
    // What wasn't told again is as it was.
    assert_eq!((screen.model.targets["alpha"].seen.in_flight, screen.model.targets["alpha"].seen.limit), (0, Some(3)));
    screen.hear(change(3, &[target("new", "CLOSED", &json!({}))], &[]));
    assert_eq!(screen.model.targets["alpha"].pace.admitted, 0.0);
    assert_eq!(screen.model.targets["new"].pace.admitted, 0.0);
}

#[test]
fn nothing_is_done_without_a_yes_and_then_to_the_target_that_was_asked_about() {
    let mut screen = three();
    for (key, act) in [('o', Act::ForceOpen), ('d', Act::Disable), ('r', Act::Release)] {
        press(&mut screen, KeyCode::Char(key));
        assert_eq!(screen.mode, Mode::Confirm(act, "core".into()));
        assert!(drawn(&mut screen, 100, 20, NOW).join("\n").contains("Target: core"));
        assert_eq!(press(&mut screen, KeyCode::Enter), None);
        assert_eq!(screen.message, "nothing was done");
        press(&mut screen, KeyCode::Char(key));
        // Another target becomes the worst meanwhile.
        screen.hear(change(1, &[json!({ "name": "alpha", "state": "OPEN" })], &[]));
        assert_eq!(press(&mut screen, KeyCode::Char('y')), Some(Do::Act(act, "core".into())));
        assert_eq!(screen.mode, Mode::Table);
    }
}

#[test]
fn what_is_old_says_so_and_isnt_acted_on() {
    let mut screen = three();
    screen.hear(Heard::Lost("connection refused".into()));
    let lines = drawn(&mut screen, 100, 20, NOW);
    assert!(lines[0].starts_with(" STALE  connection refused"), "{}", lines[0]);
    assert!(lines[2].contains("core"), "{}", lines[2]);
    press(&mut screen, KeyCode::Char('o'));
    assert_eq!(screen.mode, Mode::Table);
    assert!(screen.message.starts_with("not while the gateway isn't heard"));
    screen.hear(state(&[target("core", "CLOSED", &json!({}))]));
    assert!(drawn(&mut screen, 100, 20, NOW)[0].starts_with(" portcullis"));
    screen.hear(Heard::Change(json!({ "targets": "none" })));
    assert!(drawn(&mut screen, 100, 20, NOW)[0].starts_with(" STALE  what it tells isn't understood"));
}

#[test]
fn search_and_order_keep_the_selection_where_it_can_be_kept() {
    let mut screen = three();
    press(&mut screen, KeyCode::Down);
    assert_eq!(screen.selected.as_deref(), Some("mail"));
    press(&mut screen, KeyCode::Char('s'));
    assert_eq!((screen.names(), screen.selected.as_deref()), (vec!["alpha", "core", "mail"], Some("mail")));
    press(&mut screen, KeyCode::Char('/'));
    "AL".chars().for_each(|letter| drop(press(&mut screen, KeyCode::Char(letter))));
    assert_eq!((screen.names(), screen.selected.as_deref()), (vec!["alpha"], Some("alpha")));
    press(&mut screen, KeyCode::Enter);
    assert!(drawn(&mut screen, 100, 20, NOW)[19].contains("/AL"));
    press(&mut screen, KeyCode::Esc);
    press(&mut screen, KeyCode::End);
    assert_eq!((screen.names().len(), screen.selected.as_deref()), (3, Some("mail")));
    press(&mut screen, KeyCode::Char('/'));
    "open".chars().for_each(|letter| drop(press(&mut screen, KeyCode::Char(letter))));
    assert_eq!(screen.names(), ["core"], "the name of a state finds what is in it");
    press(&mut screen, KeyCode::Char('?'));
    assert_eq!((screen.names(), screen.selected.as_deref()), (vec![], None));
    assert!(drawn(&mut screen, 60, 12, NOW).join("\n").contains("no target matches"));
}

#[test]
fn details_show_policy_and_evidence_and_scroll() {
    let mut screen = three();
    assert_eq!(press(&mut screen, KeyCode::Enter), Some(Do::Look("core".into())));
    assert!(drawn(&mut screen, 100, 20, NOW).join("\n").contains("asking..."));
    screen.told("another", json!({ "policy": "wrong" }));
    screen.told(
        "core",
        json!({ "policy": { "open_wait": "5s" }, "trip": { "evidence": { "failures": 12 } }, "recent": [], "x": null }),
    );
    let lines = drawn(&mut screen, 100, 20, NOW);
    assert!(lines[1].starts_with(" core  OPEN for 2m05s, failure rate  probe 3s  refused: open 7"), "{}", lines[1]);
    assert_eq!(lines[2..5], [" policy.open_wait: 5s", " trip.evidence.failures: 12", ""]);
    press(&mut screen, KeyCode::Down);
    assert_eq!(drawn(&mut screen, 100, 20, NOW)[2], " trip.evidence.failures: 12");
    for _ in 0..9 {
        press(&mut screen, KeyCode::PageDown);
    }
    assert_eq!(drawn(&mut screen, 100, 20, NOW)[2], " trip.evidence.failures: 12");
    assert_eq!(press(&mut screen, KeyCode::Char('q')), None);
    assert_eq!(press(&mut screen, KeyCode::Char('q')), Some(Do::Quit));
}

#[test]
fn names_do_nothing_to_the_terminal() {
    let name = "\u{1b}[2J\u{202e}evil\r\n\u{9b}31m\u{200b}";
    assert_eq!(harmless(name), "\u{fffd}[2J\u{fffd}evil\u{fffd}\u{fffd}\u{fffd}31m\u{fffd}");
    let mut screen = Screen::default();
    screen.hear(state(&[target(name, "OPEN", &json!({ "cause": name, "state": name, "refusals": { name: 1 } }))]));
    let moved = json!({ "target": name, "from": name, "to": name, "cause": name, "wall": name });
    let health = json!({ "status": name });
    screen.hear(Heard::Change(json!({ "now_ms": NOW, "health": health, "transitions": [moved] })));
    screen.message = name.to_owned();
    press(&mut screen, KeyCode::Enter);
    screen.told(name, json!({ name: name }));
    for mode in [None, Some(Mode::Table), Some(Mode::Confirm(Act::Release, name.to_owned()))] {
        if let Some(mode) = mode {
            screen.mode = mode;
        }
        let all = drawn(&mut screen, 160, 20, NOW).join("");
        let unseen = |c: char| c.is_control() || matches!(c, '\u{202e}' | '\u{200b}');
        assert!(all.contains("evil") && !all.contains(unseen), "{all:?}");
    }
}

#[test]
fn thousands_of_targets_and_small_terminals_are_drawn() {
    let mut screen = Screen::default();
    let targets: Vec<Value> = (0..3_000).map(|n| target(&format!("target-{n:04}"), "CLOSED", &json!({}))).collect();
    screen.hear(state(&targets));
    press(&mut screen, KeyCode::Char('s'));
    for (width, height) in [(1, 1), (8, 3), (20, 5), (40, 12), (80, 24), (300, 100)] {
        drawn(&mut screen, width, height, NOW);
        screen.mode = Mode::Confirm(Act::Disable, "target-0000".into());
        drawn(&mut screen, width, height, NOW);
        screen.mode = Mode::Table;
    }
    press(&mut screen, KeyCode::End);
    let lines = drawn(&mut screen, 40, 12, NOW);
    assert!(lines[10].starts_with("> target-2999"), "{lines:?}");
    press(&mut screen, KeyCode::PageUp);
    assert!(drawn(&mut screen, 40, 12, NOW).iter().any(|line| line.starts_with("> target-2990")));
}

#[test]
fn spans_have_two_units_at_most() {
    let told = [59_999, 60_000, 3_599_000, 3_600_000, 90_061_000].map(span);
    assert_eq!(told, ["59s", "1m00s", "59m59s", "1h00m", "1d01h"]);
}
