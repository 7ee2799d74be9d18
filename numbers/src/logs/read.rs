//! Reads logs, side by side or one without threads.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use super::Call;
use super::input::Input;
use super::merge::{Log, Merge};
use super::names::Names;
use super::progress::Progress;
use super::sniff::Sniffer;
use super::source::{Ahead, Source};
use super::summary::{Error, Summary};

/// Reads the logs and hands over each call, in order of their start.
///
/// Of several logs the one that is furthest behind is read first, so that neither rotated logs nor those of several machines need an order.
/// What is handed over, and in which order, depends on the logs and the input alone, not on threads.
///
/// # Errors
///
/// A log can't be opened, or isn't of its format: nothing has been handed over then. What goes wrong later is in the [`Summary`].
pub fn read(input: &Input, each: impl FnMut(&Call, &Names)) -> Result<Summary, Error> {
    // A pool of its own: one that the caller runs in might wait for itself.
    let pool = rayon::ThreadPoolBuilder::new().build().map_err(|error| Error(format!("no threads: {error}")))?;
    if input.logs.iter().filter(|log| *log == Path::new("-")).count() > 1 {
        return Err(Error("-: standard input can be read only once: must be named once".to_owned()));
    }
    let progress = Progress::new(&input.logs);
    let sniffer = Sniffer::new(input).map_err(Error)?;
    let mut sources = Vec::new();
    for (log, path) in input.logs.iter().enumerate() {
        let source = Source::open(path, &sniffer, &progress).map_err(|error| named(path, &error))?;
        sources.extend(source.map(|source| (log, source)));
    }
    let ahead = pool.current_num_threads() + 1;
    Ok(std::thread::scope(|scope| {
        let mut logs = Vec::new();
        for (log, source) in sources {
            let (sender, pieces) = sync_channel(ahead);
            logs.push(Log::new(log, source.lines, pieces.into_iter().map_while(Ahead::wait)));
            let pool = &pool;
            scope.spawn(move || source.pump(pool, &sender));
        }
        Merge::new(&input.logs, input, &progress, each).run(logs)
    }))
}

/// Reads one log from wherever, in the calling thread, and hands over each call as [`read`] does; what the input says of files is passed over.
///
/// The name stands for it in messages, and for its target if the log tells none.
///
/// # Errors
///
/// The log isn't of its format.
pub fn read_from(
    log: impl Read + Send,
    name: &Path,
    input: &Input,
    each: impl FnMut(&Call, &Names),
) -> Result<Summary, Error> {
    let sniffer = Sniffer::new(input).map_err(Error)?;
    let source = Source::new(log, name, &sniffer).map_err(|error| named(name, &error))?;
    let logs = source.map(|source| Log::new(0, source.lines, source.pieces()));
    let names = [PathBuf::from(name)];
    Ok(Merge::new(&names, input, &Progress::none(), each).run(logs.into_iter().collect()))
}

fn named(log: &Path, error: &str) -> Error {
    Error(format!("{}: {error}", log.display()))
}
