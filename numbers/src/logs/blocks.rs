//! Cuts a log into blocks of whole records.

use std::io::{ErrorKind, Read};

use super::record::{End, Records};

/// How much is read before a log's format is decided, and the size of its first block: heads of many logs are held at once.
pub(super) const HEAD: usize = 64 << 10;

/// What blocks grow to.
const USUAL: usize = 256 << 10;

/// What no block is larger than, and so no record.
pub(super) const LARGEST: usize = 1 << 20;

/// How much of a record that fits no block is kept to be shown.
const SHOWN: usize = 256;

/// Whole records in a row.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) data: Vec<u8>,
    /// The beginning of one line that fits no block.
    pub(super) too_long: bool,
}

/// A log's blocks, in order. Where they are cut depends on the log's bytes alone.
pub(super) struct Blocks<R> {
    log: R,
    records: Records,
    data: Vec<u8>,
    size: usize,
    ended: bool,
    damage: Option<std::io::Error>,
}

impl<R: Read> Blocks<R> {
    /// Reads the head of the log.
    pub(super) fn open(log: R) -> Self {
        let mut blocks =
            Self { log, records: Records::Lines, data: Vec::new(), size: HEAD, ended: false, damage: None };
        blocks.fill(HEAD);
        blocks
    }

    /// The log's first bytes.
    pub(super) fn head(&self) -> &[u8] {
        &self.data
    }

    /// Says how records end, and passes over the first `skip` bytes of the head.
    pub(super) fn begin(&mut self, records: Records, skip: usize) {
        self.records = records;
        self.data.drain(..skip);
    }

    /// Why the log ended before its end.
    pub(super) fn damage(&self) -> Option<&std::io::Error> {
        self.damage.as_ref()
    }

    /// The next block.
    pub(super) fn next(&mut self) -> Option<Block> {
        loop {
            self.fill(self.size);
            let whole = if self.ended { self.data.len() } else { self.records.whole(&self.data) };
            if whole > 0 {
                self.size = (self.size * 2).clamp(HEAD, USUAL);
                return Some(Block { data: self.cut(whole), too_long: false });
            }
            if self.ended {
                return None;
            }
            if self.data.len() >= LARGEST {
                return Some(self.misfit());
            }
            self.size = (self.size * 2).min(LARGEST);
        }
    }

    /// One line that fits no block, or that opens a quote which isn't closed within one.
    fn misfit(&mut self) -> Block {
        if self.records.end(&self.data) == End::Quote
            && let Some(newline) = memchr::memchr(b'\n', &self.data)
        {
            return Block { data: self.cut(newline + 1), too_long: false };
        }
        let mut data = std::mem::take(&mut self.data);
        data.truncate(SHOWN);
        loop {
            self.fill(HEAD);
            match memchr::memchr(b'\n', &self.data) {
                Some(newline) => {
                    self.data.drain(..=newline);
                    break;
                }
                None if self.ended => {
                    self.data.clear();
                    break;
                }
                None => self.data.clear(),
            }
        }
        Block { data, too_long: true }
    }

    /// Takes the first `whole` bytes and leaves the rest.
    fn cut(&mut self, whole: usize) -> Vec<u8> {
        let rest = self.data[whole..].to_vec();
        let mut data = std::mem::replace(&mut self.data, rest);
        data.truncate(whole);
        data
    }

    /// Reads until there are `size` bytes, or the log ends.
    fn fill(&mut self, size: usize) {
        let mut at = self.data.len();
        if self.ended || at >= size {
            return;
        }
        self.data.resize(size, 0);
        while at < size {
            match self.log.read(&mut self.data[at..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(read) => at += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    self.damage = Some(error);
                    self.ended = true;
                    break;
                }
            }
        }
        self.data.truncate(at);
    }
}
