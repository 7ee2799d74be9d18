//! The window of calls with a sign that it is clean, `begun 32 | marking 16 | signed 16`, where one step about the sign is wrong.

use loom::sync::atomic::{AtomicU64, Ordering};
use portcullis::internals::calls::{Cell, Word};
use portcullis::internals::{Gate, Now, Recorded};

use crate::ledger::{Ledger, Told};

/// The generation that the sign is of, and 1; none if 0.
const SIGNED: u64 = 0xffff;
const MARKING: u64 = 1 << 16;
const BEGUN: u64 = 1 << 32;

/// Which step is wrong.
#[derive(Debug)]
pub struct Fault;

impl Fault {
    /// None: the twin itself is sound.
    pub const NONE: u8 = 0;
    /// A success sets the sign though a failure is on its way to the window.
    pub const SET_WHILE_MARKING: u8 = 1;
    /// A failure is written into the window first, and takes the sign away after.
    pub const MARKED_LATE: u8 = 2;
    /// The sign is set on whatever stands there, not on what the success had seen before it looked at the window.
    pub const SET_BLINDLY: u8 = 3;
    /// A failure leaves no trace but the sign it took: one that came and went isn't seen to have.
    pub const UNCOUNTED: u8 = 4;
    /// A sign is taken for one of whichever generation is asked about.
    pub const OF_ANY_GENERATION: u8 = 5;
}

/// A window with one fault.
#[derive(Debug)]
pub struct Signed<const FAULT: u8> {
    gate: Gate,
    calls: Cell,
    sign: AtomicU64,
    size: u32,
}

impl<const FAULT: u8> Signed<FAULT> {
    fn take_away(&self, marking: u64) {
        let begun = if FAULT == Fault::UNCOUNTED { 0 } else { BEGUN };
        let taken = |word: u64| Some((word & !SIGNED) + marking + begun);
        let _ = self.sign.fetch_update(Ordering::AcqRel, Ordering::Acquire, taken);
    }

    fn set(&self, before: u64, generation: u32) {
        if before & (BEGUN - MARKING) > 0 && FAULT != Fault::SET_WHILE_MARKING {
            return;
        }
        let signed = |word: u64| (word & !SIGNED) | u64::from(generation + 1);
        if FAULT == Fault::SET_BLINDLY {
            let _ = self.sign.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| Some(signed(word)));
        } else {
            let _ = self.sign.compare_exchange(before, signed(before), Ordering::AcqRel, Ordering::Acquire);
        }
    }

    fn end(&self, generation: u32, failed: bool) -> Told {
        if self.gate.load().generation() != generation {
            return Told::Stale;
        }
        let before = self.sign.load(Ordering::Acquire);
        let signed = before & SIGNED;
        if !failed && (signed == u64::from(generation + 1) || (FAULT == Fault::OF_ANY_GENERATION && signed > 0)) {
            return Told::Unchanged;
        }
        if failed && FAULT != Fault::MARKED_LATE {
            self.take_away(MARKING);
        }
        let recorded = self.calls.record(failed, generation, self.size, &self.gate);
        if failed {
            if FAULT == Fault::MARKED_LATE {
                self.take_away(0);
            } else {
                self.sign.fetch_sub(MARKING, Ordering::AcqRel);
            }
        } else if recorded == Recorded::Counted(Word::clean(generation, self.size)) {
            self.set(before, generation);
        }
        if recorded == Recorded::Stale { Told::Stale } else { Told::Recorded }
    }
}

impl<const FAULT: u8> Ledger for Signed<FAULT> {
    fn holding(size: u32, failures: &[bool]) -> Self {
        let ledger = Self { gate: Gate::default(), calls: Cell::default(), sign: AtomicU64::new(0), size };
        for failed in failures {
            ledger.end(0, *failed);
        }
        ledger
    }

    fn take_sign_away(&self) {
        self.take_away(0);
    }

    fn settle(&self, failed: bool) -> Told {
        self.end(0, failed)
    }

    fn begin(&self) {
        let _ = self.gate.apply(|gate| gate.restart(Now::default()));
    }

    fn call(&self, failed: bool) -> Told {
        self.end(self.gate.load().generation(), failed)
    }

    fn counts(&self, newest: u32) -> (u32, u32) {
        self.calls.counts(self.gate.load().generation(), newest)
    }
}
