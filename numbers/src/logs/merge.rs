//! Reads logs side by side and hands over their calls in one order.

use std::sync::mpsc::{Receiver, sync_channel};

use super::fault::{Fault, Sample};
use super::input::Input;
use super::names::{Interner, Names};
use super::order::{self, Order};
use super::parse::Parsed;
use super::progress::Progress;
use super::sniff::Sniffer;
use super::source::{Piece, Source};
use super::summary::{Error, Summary};
use super::{Call, TargetId};

/// How much of a bad line is shown, in characters.
const SHOWN: usize = 120;

/// Reads the logs and hands over each call, in order of their start.
///
/// Of several logs the one that is furthest behind is read first, so that neither rotated logs nor those of several machines need an order.
/// What is handed over, and in which order, depends on the logs and the input alone, not on threads.
///
/// # Errors
///
/// A log can't be opened, or isn't of its format: nothing has been handed over then. What goes wrong later is in the [`Summary`].
pub fn read(input: &Input, each: impl FnMut(&Call, &Names)) -> Result<Summary, Error> {
    let pool = rayon::ThreadPoolBuilder::new().build().map_err(|error| Error(format!("no threads: {error}")))?;
    let progress = Progress::new(&input.logs);
    let sniffer = Sniffer::new(input).map_err(Error)?;
    let mut sources = Vec::new();
    for (log, path) in input.logs.iter().enumerate() {
        let source = Source::open(path, &sniffer, &progress);
        sources
            .extend(source.map_err(|error| Error(format!("{}: {error}", path.display())))?.map(|source| (log, source)));
    }
    let ahead = pool.current_num_threads() + 1;
    Ok(std::thread::scope(|scope| {
        let mut logs = Vec::new();
        for (log, source) in sources {
            let (sender, pieces) = sync_channel(ahead);
            logs.push(Log { log, lines: source.lines, pieces, reached: 0, leap: None });
            let pool = &pool;
            scope.spawn(move || source.pump(pool, &sender));
        }
        Merge::new(input, &progress, each).run(logs)
    }))
}

/// One of the logs.
struct Log {
    /// Which.
    log: usize,
    /// How many of its lines were taken.
    lines: u64,
    pieces: Receiver<Piece>,
    /// The latest start that was met in it, save for leaps.
    reached: u64,
    /// A start that is further ahead than calls may be out of order, and not confirmed by the next one.
    leap: Option<u64>,
}

impl Log {
    /// Notes a start. One wrong time far in the future must not make all that follows it late, so time leaps only with two calls in a row.
    fn reach(&mut self, start: u64, window: u64) {
        if start > self.reached.saturating_add(window) {
            match self.leap.replace(start) {
                Some(other) if other.abs_diff(start) <= window => self.reached = start.max(other),
                _ => return,
            }
        } else {
            self.reached = self.reached.max(start);
        }
        self.leap = None;
    }
}

struct Merge<'i, F> {
    input: &'i Input,
    progress: &'i Progress,
    window: u64,
    order: Order,
    interner: Interner,
    summary: Summary,
    each: F,
}

impl<'i, F: FnMut(&Call, &Names)> Merge<'i, F> {
    fn new(input: &'i Input, progress: &'i Progress, each: F) -> Self {
        let window = u64::try_from(input.reorder.as_nanos()).unwrap_or(u64::MAX);
        let interner = Interner::new(usize::try_from(input.max_targets).unwrap_or(usize::MAX));
        let (order, summary) = (Order::new(window, order::MOST), Summary::of(&input.logs));
        Self { input, progress, window, order, interner, summary, each }
    }

    fn run(mut self, mut logs: Vec<Log>) -> Summary {
        self.summary.lines = logs.iter().map(|log| log.lines).sum();
        while let Some(behind) = (0..logs.len()).min_by_key(|&log| logs[log].reached) {
            match logs[behind].pieces.recv() {
                Ok(Piece::Block(parsed)) => {
                    if let Ok(parsed) = parsed.recv() {
                        self.take(&mut logs[behind], &parsed);
                    }
                }
                Ok(Piece::Damaged(error)) => {
                    let log = self.input.logs[logs[behind].log].display();
                    self.summary.damaged.push(format!("{log}: {error}, after line {}", logs[behind].lines));
                }
                Err(_) => drop(logs.remove(behind)),
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

    fn take(&mut self, log: &mut Log, parsed: &Parsed) {
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
