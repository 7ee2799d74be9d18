//! Chapters: the words, whole calls, when to use a breaker, mistakes, the orderings, the operator's view, metrics, the limits.

pub mod adaptive;
pub mod calls;
pub mod limitations;
pub mod metrics;
pub mod mistakes;
pub mod operations;
pub mod orderings;
pub mod shadows;
pub mod whether;
pub mod words;
