//! How far a reading is: a bar with rate and time left, on a terminal.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bar, and the bytes that it counts.
pub(super) struct Progress {
    bar: ProgressBar,
    /// As they lie on the disk: of what is packed, the packed ones.
    read: Arc<AtomicU64>,
}

impl Progress {
    /// A bar as long as the logs, or one that only counts if it can't be known how long they are.
    pub(super) fn new(logs: &[PathBuf]) -> Self {
        let length = logs.iter().map(|log| length(log)).sum();
        let (bar, style) = match length {
            Some(length) => (ProgressBar::new(length), "{bar:30} {percent:>3}% {msg}, {eta} left"),
            None => (ProgressBar::no_length(), "{bytes} {msg}"),
        };
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        let is_seen = io::stderr().is_terminal();
        bar.set_draw_target(if is_seen { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() });
        Self { bar, read: Arc::default() }
    }

    /// No bar.
    pub(super) fn none() -> Self {
        Self { bar: ProgressBar::hidden(), read: Arc::default() }
    }

    /// Shows how much has been read.
    pub(super) fn show(&self, lines: u64) {
        if self.bar.is_hidden() {
            return;
        }
        // Relaxed: a count that is only shown.
        self.bar.set_position(self.read.load(Ordering::Relaxed));
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate to be read by people"
        )]
        let rate = (lines as f64 / self.bar.elapsed().as_secs_f64().max(0.001)) as u64;
        self.bar.set_message(format!("{} lines, {}/s", HumanCount(lines), HumanCount(rate)));
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// How long a log is; none if it isn't a file.
fn length(log: &Path) -> Option<u64> {
    let about = if log == Path::new("-") { return None } else { std::fs::metadata(log).ok()? };
    about.is_file().then_some(about.len())
}

/// Counts what is read.
pub(super) struct Counted<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R> Counted<R> {
    pub(super) fn new(inner: R, progress: &Progress) -> Self {
        Self { inner, read: Arc::clone(&progress.read) }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
