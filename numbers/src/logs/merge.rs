//! Hands over the calls of several logs in one order.

use std::path::PathBuf;

use super::fault::{Fault, Sample};
use super::input::Input;
use super::names::{Interner, Names};
use super::order::{self, Order};
use super::parse::Parsed;
use super::progress::Progress;
use super::source::Piece;
use super::summary::Summary;
use super::{Call, TargetId};

/// How much of a bad line is shown, in characters.
const SHOWN: usize = 120;

/// One of the logs.
pub(super) struct Log<'l> {
    /// Which.
    log: usize,
    /// How many of its lines were taken.
    lines: u64,
    pieces: Box<dyn Iterator<Item = Piece> + 'l>,
    /// The latest start that was met in it, save for leaps.
    reached: u64,
    /// A start that is further ahead than calls may be out of order, and not confirmed by another one yet.
    leap: Option<u64>,
}

impl<'l> Log<'l> {
    /// A log of which `lines` were taken as its header.
    pub(super) fn new(log: usize, lines: u64, pieces: impl Iterator<Item = Piece> + 'l) -> Self {
        Self { log, lines, pieces: Box::new(pieces), reached: 0, leap: None }
    }

    /// Notes a start. One wrong time far in the future must not make all that follows it late, so time leaps only with two calls in a row, and
    /// no further than the earlier of them.
    fn reach(&mut self, start: u64, window: u64) {
        let is_leap = |start: u64, from: u64| start > from.saturating_add(window);
        if !is_leap(start, self.reached) {
            self.reached = self.reached.max(start);
            self.leap = None;
        } else if let Some(other) = self.leap.replace(start) {
            let (near, far) = (start.min(other), start.max(other));
            (self.reached, self.leap) = if is_leap(far, near) { (near, Some(far)) } else { (far, None) };
        }
    }
}

/// Several logs on their way to be one.
pub(super) struct Merge<'i, F> {
    names: &'i [PathBuf],
    progress: &'i Progress,
    window: u64,
    order: Order,
    interner: Interner,
    summary: Summary,
    each: F,
}

impl<'i, F: FnMut(&Call, &Names)> Merge<'i, F> {
    /// Of logs with these names.
    pub(super) fn new(names: &'i [PathBuf], input: &Input, progress: &'i Progress, each: F) -> Self {
        let window = u64::try_from(input.reorder.as_nanos()).unwrap_or(u64::MAX);
        let interner = Interner::new(usize::try_from(input.max_targets).unwrap_or(usize::MAX));
        let (order, summary) = (Order::new(window, order::MOST), Summary::of(names));
        Self { names, progress, window, order, interner, summary, each }
    }

    pub(super) fn run(mut self, mut logs: Vec<Log<'_>>) -> Summary {
        self.summary.lines = logs.iter().map(|log| log.lines).sum();
        while let Some(behind) = (0..logs.len()).min_by_key(|&log| logs[log].reached) {
            match logs[behind].pieces.next() {
                Some(Piece::Block(parsed)) => self.take(&mut logs[behind], &parsed),
                Some(Piece::Damaged(error)) => {
                    let log = self.names[logs[behind].log].display();
                    self.summary.damaged.push(format!("{log}: {error}, after line {}", logs[behind].lines));
                }
                None => drop(logs.remove(behind)),
            }
            let horizon = logs.iter().map(|log| log.reached).min().unwrap_or(0).saturating_sub(self.window);
            self.summary.held = self.summary.held.max(self.order.held());
            let (names, each) = (self.interner.names(), &mut self.each);
            self.summary.squeezed |= self.order.release(horizon, |call| each(call, names));
            self.progress.show(self.summary.lines);
        }
        self.progress.finish();
        let Self { order, interner, mut summary, mut each, .. } = self;
        order.finish(|call| each(call, interner.names()));
        summary.names = interner.into_names();
        summary
    }

    fn take(&mut self, log: &mut Log<'_>, parsed: &Parsed) {
        let ids: Vec<(TargetId, bool)> = parsed.names.iter().map(|name| self.interner.id(name)).collect();
        for (line, call) in &parsed.calls {
            let (target, past) = ids[call.target.0 as usize];
            log.reach(call.start, self.window);
            if self.order.push(Call { target, ..*call }) {
                self.summary.calls += 1;
                self.summary.others += u64::from(past);
            } else {
                let (log, line) = (log.log, log.lines + u64::from(*line) + 1);
                self.summary.bad(Fault::Late, || Sample { log, line, fault: Fault::Late, text: String::new() });
            }
        }
        for bad in &parsed.bad {
            let (log, line) = (log.log, log.lines + u64::from(bad.line) + 1);
            let text = || excerpt(&parsed.data[bad.text.clone()]);
            self.summary.bad(bad.fault, || Sample { log, line, fault: bad.fault, text: text() });
        }
        self.summary.refused += parsed.refused;
        self.summary.answered_by_proxy += parsed.answered_by_proxy;
        self.summary.unmatched += parsed.unmatched;
        self.summary.lines += u64::from(parsed.lines);
        log.lines += u64::from(parsed.lines);
    }
}

/// The beginning of a line, with what can't be printed escaped.
fn excerpt(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(4 * SHOWN)]);
    text.chars().take(SHOWN).flat_map(char::escape_debug).collect()
}
