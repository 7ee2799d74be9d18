//! A log being read: its blocks are parsed side by side, ahead of whoever takes them.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rayon::ThreadPool;

use super::blocks::Blocks;
use super::input::Input;
use super::parse::{Parsed, Parser};
use super::sniff;

/// A log whose format is known.
pub(super) struct Source {
    blocks: Blocks<Box<dyn Read + Send>>,
    parser: Arc<Parser>,
    /// How many lines were taken as its header.
    pub(super) lines: u64,
}

/// What comes of a log, in order.
#[derive(Debug)]
pub(super) enum Piece {
    /// A block, as soon as it is parsed.
    Block(Receiver<Parsed>),
    /// It ended before its end.
    Damaged(String),
}

impl Source {
    /// Opens a log and looks at its head; none if it is empty.
    pub(super) fn open(log: &Path, input: &Input) -> Result<Option<Self>, String> {
        let reader: Box<dyn Read + Send> = if log == Path::new("-") {
            Box::new(std::io::stdin())
        } else {
            Box::new(File::open(log).map_err(|error| error.to_string())?)
        };
        let mut blocks = Blocks::open(reader);
        if blocks.head().is_empty() && blocks.damage().is_none() {
            return Ok(None);
        }
        let sniffed = sniff::sniff(blocks.head(), input)?;
        blocks.begin(sniffed.parser.records(), sniffed.skip);
        Ok(Some(Self { blocks, parser: Arc::new(sniffed.parser), lines: sniffed.lines }))
    }

    /// Reads it to its end, or until nobody takes its pieces any more.
    pub(super) fn pump(mut self, pool: &ThreadPool, pieces: &SyncSender<Piece>) {
        while let Some(block) = self.blocks.next() {
            let (done, parsed) = sync_channel(1);
            let parser = Arc::clone(&self.parser);
            pool.spawn(move || drop(done.send(parser.parse(block))));
            if pieces.send(Piece::Block(parsed)).is_err() {
                return;
            }
        }
        if let Some(error) = self.blocks.damage() {
            drop(pieces.send(Piece::Damaged(error.to_string())));
        }
    }
}
