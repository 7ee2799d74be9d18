//! What a reading holds doesn't grow with the log.
#![allow(clippy::unwrap_used)]

use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use peak_alloc::PeakAlloc;
use portcullis_numbers::logs::{self, Input};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// A log that is made as it is read: one call a millisecond, up to a second out of order, and a bad line in ten.
struct Endless {
    lines: u64,
    line: Vec<u8>,
    at: usize,
    n: u64,
}

impl Endless {
    fn new(lines: u64) -> Self {
        Self { lines, line: b"time,target,latency_ms,status\n".to_vec(), at: 0, n: 0 }
    }
}

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.line.len() {
            if self.n == self.lines {
                return Ok(0);
            }
            self.n += 1;
            let millis = 1_700_000_000_000 + self.n - self.n * 7919 % 1000;
            let status = if self.n.is_multiple_of(10) { "bad" } else { "200" };
            self.line = format!("{}.{:03},target-{},1,{status}\n", millis / 1000, millis % 1000, self.n).into_bytes();
            self.at = 0;
        }
        let read = (&self.line[self.at..]).read(into)?;
        self.at += read;
        Ok(read)
    }
}

/// The most bytes that were held during a reading, above what was held before.
fn peak(lines: u64) -> usize {
    let mut input = Input::new(Vec::new());
    (input.reorder, input.max_targets) = (Duration::from_secs(5), 1_000);
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let summary = logs::read_from(Endless::new(lines), Path::new("endless"), &input, |_, _| {}).unwrap();
    assert_eq!((summary.lines, summary.calls), (lines + 1, lines - lines / 10));
    assert_eq!(summary.names.len(), 1_000);
    MEMORY.peak_usage() - before
}

#[test]
fn ten_times_the_log_takes_no_more_memory() {
    let (short, long) = (peak(20_000), peak(200_000));
    assert!(long < short + short / 10, "{short} bytes for a log, {long} for one ten times as long");
    assert!(long < 8 << 20, "{long} bytes");
}
