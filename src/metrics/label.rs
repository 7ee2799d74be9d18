//! A key as the value of a label.

use std::fmt::Debug;
use std::hash::Hasher;

use crate::event::name;

/// The most bytes of a name; what is longer is cut.
const LONGEST: usize = 128;

/// The name under which those targets are summed up that have no series of their own. A target that has this very name is among them.
pub const OTHER: &str = "other";

/// The label of a key: as it is, or where it is longer than 128 bytes as much of it as fits with a hash of the whole, so that two don't become one.
/// Escaping is for whoever writes it down.
pub(super) fn label<K: Debug + 'static>(key: &K) -> String {
    let name = name(key);
    if name.len() <= LONGEST {
        return name;
    }
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(name.as_bytes());
    let mark = format!("...{:016x}", hasher.finish());
    // Not in the midst of a letter.
    let end = name.floor_char_boundary(LONGEST - mark.len());
    format!("{}{mark}", &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_between_letters_and_stays_another_than_its_neighbour() {
        assert_eq!(label(&"\u{e9}".repeat(64)), "\u{e9}".repeat(64));
        for letter in ["x", "\u{e9}", "\u{20ac}", "\u{1f6f0}"] {
            let long = letter.repeat(200);
            let (one, two) = (label(&long), label(&format!("{long}2")));
            assert!(one != two && one.len() <= LONGEST && one.len() > LONGEST - 4, "{one}");
            assert!(one.starts_with(&letter.repeat(20)));
        }
    }

    #[test]
    fn keys_that_are_no_strings_are_shown_as_debug_shows_them() {
        assert_eq!(label(&("eu", 7)), "(\"eu\", 7)");
        assert_eq!(label(&"a\"b\\c\nd<script>"), "a\"b\\c\nd<script>");
    }
}
