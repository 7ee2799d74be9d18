//! Every mistake of the example goes wrong as its chapter says, in the very numbers.
#![cfg(feature = "call")]

#[path = "../examples/mistakes/main.rs"]
#[allow(dead_code, reason = "`main` is the example's")]
mod mistakes;

use std::collections::BTreeSet;

/// The chapter as running text.
fn chapter() -> String {
    let source = include_str!("../src/docs/mistakes.rs");
    let words = source.lines().filter_map(|line| line.strip_prefix("//!")).flat_map(str::split_whitespace);
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_chapter_has_every_mistake_with_its_numbers() {
    let chapter = chapter();
    let mut rest = &*chapter;
    for (name, lesson) in mistakes::ALL {
        let mistakes::Lesson { wrong, right } = lesson().expect(name);
        let said = format!("- Wrong: {wrong} - Right: {right} `{name}`");
        let (_, after) =
            rest.split_once(&said).unwrap_or_else(|| panic!("not in the chapter, or not in its place: {said}"));
        rest = after;
    }
    assert_eq!(chapter.matches("- Wrong: ").count(), mistakes::ALL.len(), "and no other");
}

#[test]
fn every_file_of_the_example_is_run() {
    let files =
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/mistakes")).expect("the example is here");
    let files = files.map(|file| file.expect("readable").file_name().into_string().expect("a plain name"));
    let run = mistakes::ALL.into_iter().map(|(name, _)| format!("{name}.rs"));
    let others = ["main.rs", "lab.rs"].map(str::to_owned);
    assert_eq!(files.collect::<BTreeSet<_>>(), run.chain(others).collect());
}
