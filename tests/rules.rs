//! The rules of the design, each under its number.

mod common;
mod rules {
    mod admission;
}
