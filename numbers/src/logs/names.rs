//! The targets that a reading meets, as small numbers.

use std::collections::HashMap;

/// A target's number within one reading, from 0, in the order in which targets were met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetId(pub u32);

/// The names of the targets met so far.
#[derive(Clone, Debug, Default)]
pub struct Names {
    names: Vec<String>,
    /// What stands for all targets past the bound.
    rest: Option<TargetId>,
}

impl Names {
    /// The name of a target of this reading.
    #[must_use]
    pub fn name(&self, target: TargetId) -> &str {
        self.names.get(target.0 as usize).map_or("", String::as_str)
    }

    /// How many targets were met.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether none was met.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether it is no target, but stands for all those past the bound.
    #[must_use]
    pub fn is_rest(&self, target: TargetId) -> bool {
        self.rest == Some(target)
    }
}

impl<S: Into<String>> FromIterator<S> for Names {
    /// Numbers the names in their order.
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        Self { names: names.into_iter().map(Into::into).collect(), rest: None }
    }
}

/// The name under which all targets past the bound are one.
pub(super) const OTHER: &str = "other";

/// Gives targets their numbers, and no more of them than it may.
#[derive(Debug)]
pub(super) struct Interner {
    names: Names,
    ids: HashMap<String, TargetId, ahash::RandomState>,
    most: usize,
}

impl Interner {
    pub(super) fn new(most: usize) -> Self {
        Self { names: Names::default(), ids: HashMap::default(), most }
    }

    pub(super) fn names(&self) -> &Names {
        &self.names
    }

    pub(super) fn into_names(self) -> Names {
        self.names
    }

    /// The number of a target, and whether it had to become [`OTHER`].
    pub(super) fn id(&mut self, name: &str) -> (TargetId, bool) {
        if let Some(&id) = self.ids.get(name) {
            return (id, false);
        }
        // The last number is for all that find no number of their own.
        let past = name != OTHER && self.names.len() + 1 >= self.most && !self.ids.contains_key(OTHER)
            || self.names.len() >= self.most;
        let name = if past { OTHER } else { name };
        if let Some(&id) = self.ids.get(name) {
            self.names.rest = self.names.rest.or(past.then_some(id));
            return (id, past);
        }
        // 32 bits: `most` is one, too.
        let id = TargetId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.names.push(name.to_owned());
        self.ids.insert(name.to_owned(), id);
        self.names.rest = self.names.rest.or(past.then_some(id));
        (id, past)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_past_the_bound_are_one() {
        let mut interner = Interner::new(3);
        let ids: Vec<_> = ["a", "b", "c", "a", "d", "other"].iter().map(|name| interner.id(name)).collect();
        let expected = [(0, false), (1, false), (2, true), (0, false), (2, true), (2, false)];
        assert_eq!(ids, expected.map(|(id, past)| (TargetId(id), past)));
        assert_eq!(interner.names().names, ["a", "b", "other"]);
        assert_eq!([0, 1, 2].map(|id| interner.names().is_rest(TargetId(id))), [false, false, true]);
    }

    #[test]
    fn a_target_that_is_called_other_takes_no_number_from_the_rest() {
        let mut interner = Interner::new(2);
        assert_eq!(interner.id("other"), (TargetId(0), false));
        assert_eq!(interner.id("a"), (TargetId(1), false));
        assert!(!interner.names().is_rest(TargetId(0)));
        assert_eq!(interner.id("b"), (TargetId(0), true));
        assert!(interner.names().is_rest(TargetId(0)));
        assert_eq!(interner.names().len(), 2);
    }
}
