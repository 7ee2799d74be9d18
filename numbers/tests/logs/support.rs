//! Logs that are written for one test.

use std::io::Write;
use std::path::PathBuf;

use portcullis_numbers::logs::{self, Call, Error, Input, Summary};
use tempfile::TempDir;

/// What a reading handed over, with the names of the targets.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) calls: Vec<(String, Call)>,
    pub(crate) summary: Summary,
}

/// Logs in a directory of their own.
#[derive(Debug)]
pub(crate) struct Logs {
    dir: TempDir,
    pub(crate) input: Input,
}

impl Logs {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), input: Input::new(Vec::new()) }
    }

    /// One log of these bytes.
    pub(crate) fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self::new().and("access.log", bytes)
    }

    /// One more.
    pub(crate) fn and(mut self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.input.logs.push(self.file(name, bytes));
        self
    }

    /// A file that is none of the logs.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::File::create(&path).unwrap().write_all(bytes.as_ref()).unwrap();
        path
    }

    pub(crate) fn read(&self) -> Result<Read, Error> {
        read(&self.input)
    }

    /// What is wrong with the logs as a whole.
    pub(crate) fn refusal(&self) -> String {
        self.read().expect_err("the logs are refused").to_string()
    }
}

/// Reads, and checks what holds for every reading.
pub(crate) fn read(input: &Input) -> Result<Read, Error> {
    let mut calls = Vec::new();
    let summary = logs::read(input, |call, names| calls.push((names.name(call.target).to_owned(), *call)))?;
    assert_eq!(summary.calls, calls.len() as u64);
    assert!(calls.is_sorted_by_key(|(_, call)| call.start), "calls are in order of their start");
    Ok(Read { calls, summary })
}

/// Nanoseconds of whole and thousandth seconds.
pub(crate) fn at(seconds: f64) -> u64 {
    (seconds * 1e3).round() as u64 * 1_000_000
}

pub(crate) const MS: u64 = 1_000_000;
