//! Packed fields of a 64-bit word.
//!
//! A word declares its fields from the lowest up, each after the one before, so shifts and masks follow from the widths
//! and can't overlap. The last field of a word states that it fits in a const assert beside it.

/// A run of bits in a `u64`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    shift: u32,
    width: u32,
}

impl Field {
    /// The lowest `width` bits.
    #[must_use]
    pub(crate) const fn lowest(width: u32) -> Self {
        Self { shift: 0, width }
    }

    /// The `width` bits right above this field.
    #[must_use]
    pub(crate) const fn above(self, width: u32) -> Self {
        Self { shift: self.end(), width }
    }

    /// The lowest bit of this field.
    #[must_use]
    pub(crate) const fn start(self) -> u32 {
        self.shift
    }

    /// The first bit above this field; 64 for the last field of a full word.
    #[must_use]
    pub(crate) const fn end(self) -> u32 {
        self.shift + self.width
    }

    /// The largest value that fits.
    #[must_use]
    pub(crate) const fn max(self) -> u64 {
        u64::MAX >> (64 - self.width)
    }

    /// What to add to a word to raise this field by one.
    #[must_use]
    pub(crate) const fn one(self) -> u64 {
        1 << self.start()
    }

    /// Reads the field.
    #[must_use]
    pub(crate) const fn get(self, word: u64) -> u64 {
        (word >> self.shift) & self.max()
    }

    /// The word with this field replaced; a value that doesn't fit becomes the largest that does.
    #[must_use]
    pub(crate) const fn set(self, word: u64, value: u64) -> u64 {
        let value = if value > self.max() { self.max() } else { value };
        (word & !(self.max() << self.shift)) | (value << self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::Field;

    const LOW: Field = Field::lowest(5);
    const HIGH: Field = LOW.above(59);
    const _: () = assert!(HIGH.end() == 64);

    #[test]
    fn fields_do_not_touch_each_other() {
        let word = HIGH.set(LOW.set(0, 21), 7);
        assert_eq!((LOW.get(word), HIGH.get(word)), (21, 7));
        assert_eq!(LOW.get(HIGH.set(word, u64::MAX)), 21);
    }

    #[test]
    fn a_value_too_large_saturates() {
        assert_eq!(LOW.get(LOW.set(0, 32)), 31);
        assert_eq!(HIGH.get(LOW.set(0, u64::MAX)), 0);
    }
}
