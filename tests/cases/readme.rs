//! Holds the table in README.md against the tests.

use std::collections::BTreeSet;

const README: &str = include_str!("README.md");
const SOURCES: [&str; 27] = [
    include_str!("cf.rs"),
    include_str!("ev.rs"),
    include_str!("ev_order.rs"),
    include_str!("in_classify.rs"),
    include_str!("in_tower.rs"),
    include_str!("invariants.rs"),
    include_str!("invariants_race.rs"),
    include_str!("km.rs"),
    include_str!("km_eviction.rs"),
    include_str!("pf.rs"),
    include_str!("pm.rs"),
    include_str!("pm_waiting.rs"),
    include_str!("sm_probes.rs"),
    include_str!("sm_probes_more.rs"),
    include_str!("sm_stale.rs"),
    include_str!("sm_table.rs"),
    include_str!("tm.rs"),
    include_str!("tm_deadlines.rs"),
    include_str!("wm_counts.rs"),
    include_str!("wm_rings.rs"),
    include_str!("wm_time.rs"),
    include_str!("readme.rs"),
    include_str!("../call/budget.rs"),
    include_str!("../call/integration.rs"),
    include_str!("../call/layer.rs"),
    include_str!("../call/retries.rs"),
    include_str!("../call/timeouts.rs"),
];
/// Cases by section: their numbers have gaps where reports were merged.
const SECTIONS: [(&str, usize); 9] =
    [("SM", 29), ("WM", 17), ("PM", 17), ("TM", 11), ("KM", 11), ("EV", 13), ("CF", 7), ("IN", 13), ("PF", 6)];

/// Functions under `#[test]`, or tokio's, that are named after a case.
fn tests() -> BTreeSet<&'static str> {
    let mut names = BTreeSet::new();
    for source in SOURCES {
        let lines: Vec<&str> = source.lines().map(str::trim).collect();
        for two in lines.windows(2) {
            let line = two[1].strip_prefix("async ").unwrap_or(two[1]);
            let Some(name) = line.strip_prefix("fn ").and_then(|rest| rest.split('(').next()) else { continue };
            let is_test = two[0] == "#[test]" || two[0].starts_with("#[tokio::test");
            if is_test && name.as_bytes().get(2).is_some_and(u8::is_ascii_digit) {
                names.insert(name);
            }
        }
    }
    names
}

/// The rows of the first table: case, tests, remark.
fn rows() -> Vec<(&'static str, Vec<&'static str>, &'static str)> {
    let cells = |line: &'static str| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>();
    let cases = README.lines().take_while(|line| !line.starts_with("## Invariants")).map(cells);
    cases
        .filter(|cells| cells.len() == 3 && cells[0].as_bytes().get(2) == Some(&b'-') && !cells[0].starts_with('-'))
        .map(|cells| {
            let names = cells[1].split(", ").filter(|name| *name != "-").map(|name| name.trim_matches('`')).collect();
            (cells[0], names, cells[2])
        })
        .collect()
}

#[test]
fn every_case_has_a_test_or_a_reason() {
    let (rows, tests) = (rows(), tests());
    let mut named = BTreeSet::new();
    for (case, names, remark) in &rows {
        assert!(!names.is_empty() || remark.len() > 10, "{case} has neither a test nor a reason");
        for name in names {
            assert!(tests.contains(name), "{case} names `{name}`, which is no test");
            let number = case.replace('-', "").to_lowercase();
            assert!(name.starts_with(&format!("{number}_")), "{case} names `{name}`");
            assert!(named.insert(*name), "`{name}` is named twice");
        }
    }
    let nowhere: Vec<_> = tests.difference(&named).collect();
    assert!(nowhere.is_empty(), "in no row: {nowhere:?}");
    for (section, count) in SECTIONS {
        let cases: BTreeSet<_> = rows.iter().filter(|row| row.0.starts_with(section)).map(|row| row.0).collect();
        assert_eq!(cases.len(), count, "{section}");
    }
    assert_eq!(rows.len(), 124);
}

#[test]
fn every_invariant_names_tests_that_there_are() {
    let (_, invariants) = README.split_once("## Invariants").unwrap();
    let tests = tests();
    let named: Vec<&str> =
        invariants.split('`').filter(|word| word.as_bytes().get(2).is_some_and(u8::is_ascii_digit)).collect();
    assert!(named.len() >= 13 && named.iter().all(|name| tests.contains(name)), "{named:?}");
}
