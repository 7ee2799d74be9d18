//! A log being read, block by block.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use flate2::bufread::MultiGzDecoder;
use rayon::ThreadPool;

use super::blocks::Blocks;
use super::parse::{Parsed, Parser};
use super::progress::{Counted, Progress};
use super::sniff::Sniffer;

/// How much is taken from a file at once.
const CHUNK: usize = 128 << 10;

/// How files begin that are packed otherwise, and what unpacks them.
const PACKED: [(&[u8], &str); 5] = [
    (b"\x28\xB5\x2F\xFD", "zstd -dc"),
    (b"\xFD7zXZ\0", "xz -dc"),
    (b"BZh", "bzip2 -dc"),
    (b"PK\x03\x04", "unzip -p"),
    (b"\xFF\xFE", "iconv -f UTF-16 -t UTF-8"),
];

/// A log whose format is known.
pub(super) struct Source<'r> {
    blocks: Blocks<Box<dyn Read + Send + 'r>>,
    parser: Arc<Parser>,
    /// How many lines were taken as its header.
    pub(super) lines: u64,
}

/// What comes of a log, in order.
#[derive(Debug)]
pub(super) enum Piece {
    /// A block that is parsed.
    Block(Parsed),
    /// It ended before its end.
    Damaged(String),
}

impl<'r> Source<'r> {
    /// Opens a log and looks at its head; none if it is empty.
    pub(super) fn open(log: &Path, sniffer: &Sniffer<'_>, progress: &Progress) -> Result<Option<Self>, String> {
        let raw: Box<dyn Read + Send> = if log == Path::new("-") {
            Box::new(io::stdin())
        } else {
            let file = File::open(log).map_err(|error| error.to_string())?;
            if file.metadata().is_ok_and(|about| about.is_dir()) {
                return Err("is a directory".to_owned());
            }
            Box::new(file)
        };
        Self::new(Counted::new(raw, progress), log, sniffer)
    }

    /// The same for what is open already.
    pub(super) fn new(raw: impl Read + Send + 'r, log: &Path, sniffer: &Sniffer<'_>) -> Result<Option<Self>, String> {
        let mut blocks = Blocks::open(unpacked(raw)?);
        if blocks.head().trim_ascii().is_empty() {
            return match blocks.damage() {
                Some(error) => Err(error.to_string()),
                None => Ok(None),
            };
        }
        let sniffed = sniffer.sniff(blocks.head(), &name(log))?;
        blocks.begin(sniffed.parser.lines.records(), sniffed.skip);
        Ok(Some(Self { blocks, parser: Arc::new(sniffed.parser), lines: sniffed.lines }))
    }

    /// Its pieces, parsed by whoever takes them.
    pub(super) fn pieces(mut self) -> impl Iterator<Item = Piece> + 'r {
        let mut ended = false;
        std::iter::from_fn(move || match self.blocks.next() {
            Some(block) => Some(Piece::Block(self.parser.parse(block))),
            None if ended => None,
            None => {
                ended = true;
                self.blocks.damage().map(|error| Piece::Damaged(error.to_string()))
            }
        })
    }
}

/// A piece that may still be worked on.
#[derive(Debug)]
pub(super) enum Ahead {
    Block(Receiver<Parsed>),
    Damaged(String),
}

impl Ahead {
    /// The piece, when it is there.
    pub(super) fn wait(self) -> Option<Piece> {
        match self {
            Self::Block(parsed) => parsed.recv().ok().map(Piece::Block),
            Self::Damaged(error) => Some(Piece::Damaged(error)),
        }
    }
}

impl Source<'_> {
    /// Reads it to its end, or until nobody takes its pieces any more; they are parsed in the pool.
    pub(super) fn pump(mut self, pool: &ThreadPool, pieces: &SyncSender<Ahead>) {
        while let Some(block) = self.blocks.next() {
            let (done, parsed) = sync_channel(1);
            let parser = Arc::clone(&self.parser);
            pool.spawn(move || drop(done.send(parser.parse(block))));
            if pieces.send(Ahead::Block(parsed)).is_err() {
                return;
            }
        }
        if let Some(error) = self.blocks.damage() {
            drop(pieces.send(Ahead::Damaged(error.to_string())));
        }
    }
}

/// As much as tells how a log is packed.
const MAGIC: u64 = 6;

/// The bytes of a log as they were before it was packed.
fn unpacked<'r>(mut raw: impl Read + Send + 'r) -> Result<Box<dyn Read + Send + 'r>, String> {
    let mut start = Vec::new();
    // A pipe may bring them one by one.
    raw.by_ref().take(MAGIC).read_to_end(&mut start).map_err(|error| error.to_string())?;
    if let Some((_, unpack)) = PACKED.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Err(format!("is neither text nor gzip; {unpack} makes it text, and - reads that from standard input"));
    }
    let is_gzip = start.starts_with(&[0x1F, 0x8B]);
    let raw = BufReader::with_capacity(CHUNK, io::Cursor::new(start).chain(raw));
    Ok(if is_gzip { Box::new(MultiGzDecoder::new(raw)) } else { Box::new(raw) })
}

/// What a log is called without its folder and endings.
fn name(log: &Path) -> String {
    let name = log.file_name().map_or_else(|| "stdin".into(), |name| name.to_string_lossy());
    match name.split('.').next() {
        _ if name == "-" => "stdin".to_owned(),
        None | Some("") => name.into_owned(),
        Some(stem) => stem.to_owned(),
    }
}
