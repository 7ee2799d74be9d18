//! Chapters: the words, the orderings, the operator's view, the limits.

pub mod adaptive;
pub mod limitations;
pub mod operations;
pub mod orderings;
pub mod words;
