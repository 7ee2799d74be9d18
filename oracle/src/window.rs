//! The calls that a CLOSED target remembers.

use std::collections::VecDeque;

use crate::rules::Shape;

#[derive(Clone, Copy, Debug)]
struct Call {
    /// When its bucket began, in ms; 0 for windows of calls.
    start_ms: u64,
    failed: bool,
    slow: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) calls: u64,
    pub(crate) failures: u64,
    pub(crate) slow: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// Where its first bucket begins.
    pub(crate) begun_ms: u64,
    calls: VecDeque<Call>,
    /// Failures with no success between them.
    pub(crate) streak: u64,
}

impl Window {
    pub(crate) fn new(begun_ms: u64) -> Self {
        Self { begun_ms, calls: VecDeque::new(), streak: 0 }
    }

    fn bucket(&self, shape: Shape, now_ms: u64) -> u64 {
        match shape {
            Shape::None | Shape::Calls(_) => 0,
            Shape::Time { width_ms, .. } => self.begun_ms + now_ms.saturating_sub(self.begun_ms) / width_ms * width_ms,
        }
    }

    /// When the present bucket ends.
    pub(crate) fn bucket_end(&self, shape: Shape, now_ms: u64) -> Option<u64> {
        match shape {
            Shape::None | Shape::Calls(_) => None,
            Shape::Time { width_ms, .. } => Some(self.bucket(shape, now_ms) + width_ms),
        }
    }

    /// Counts a call; the beginning of its bucket, if it has one.
    pub(crate) fn record(&mut self, shape: Shape, now_ms: u64, failed: bool, slow: bool) -> Option<u64> {
        let start_ms = self.bucket(shape, now_ms);
        match shape {
            Shape::None => return None,
            Shape::Calls(most) => {
                self.calls.push_back(Call { start_ms, failed, slow });
                if self.calls.len() > most {
                    self.calls.pop_front();
                }
                return None;
            }
            Shape::Time { .. } => self.calls.push_back(Call { start_ms, failed, slow }),
        }
        Some(start_ms)
    }

    pub(crate) fn counts(&self, shape: Shape, now_ms: u64) -> Counts {
        let present = self.bucket(shape, now_ms);
        let mut counts = Counts::default();
        for call in &self.calls {
            let is_in = match shape {
                Shape::None => false,
                Shape::Calls(_) => true,
                Shape::Time { .. } => call.start_ms + shape.length_ms() > present,
            };
            if is_in {
                counts.calls += 1;
                counts.failures += u64::from(call.failed);
                counts.slow += u64::from(call.slow);
            }
        }
        counts
    }

    /// Whether it ever held a call.
    pub(crate) fn is_untouched(&self) -> bool {
        self.calls.is_empty() && self.streak == 0
    }

    pub(crate) fn forget_calls(&mut self) {
        self.calls.clear();
    }

    pub(crate) fn forget_slow(&mut self) {
        self.calls.iter_mut().for_each(|call| call.slow = false);
    }
}
