//! Common mistakes around a breaker: each as code that goes wrong, beside the right one, with what it does in numbers.
//!
//! `cargo run --features call --example mistakes`, or with a name behind `--` for one of them. They run on a clock that is moved by hand, so
//! the numbers are the same in every run; each asserts its own. The chapter `docs::mistakes` explains them.
#![allow(clippy::disallowed_types, reason = "only src/ goes through the facade")]

use std::error::Error;

mod business_errors_as_failures;
mod fallback_inside_the_breaker;
mod fallback_never_exercised;
mod first_sign_at_the_timeout;
mod full_load_after_closing;
mod lab;
mod no_half_open;
mod no_limit;
mod nobody_told;
mod one_breaker_for_all;
mod retries_at_every_layer;
mod retry_inside_the_breaker;
mod retry_of_refusals;
mod retry_of_what_harms_twice;
mod same_numbers_for_all;
mod timeout_outside_the_breaker;

/// What came of doing it wrong, and of doing it right.
pub(crate) struct Lesson {
    pub(crate) wrong: String,
    pub(crate) right: String,
}

pub(crate) type Taught = Result<Lesson, Box<dyn Error>>;

/// A mistake's name, and what shows it.
pub(crate) type Mistake = (&'static str, fn() -> Taught);

/// Every mistake, in the order of the chapter.
pub(crate) const ALL: [Mistake; 15] = [
    ("one_breaker_for_all", one_breaker_for_all::lesson),
    ("same_numbers_for_all", same_numbers_for_all::lesson),
    ("no_limit", no_limit::lesson),
    ("business_errors_as_failures", business_errors_as_failures::lesson),
    ("timeout_outside_the_breaker", timeout_outside_the_breaker::lesson),
    ("first_sign_at_the_timeout", first_sign_at_the_timeout::lesson),
    ("fallback_inside_the_breaker", fallback_inside_the_breaker::lesson),
    ("retry_inside_the_breaker", retry_inside_the_breaker::lesson),
    ("retries_at_every_layer", retries_at_every_layer::lesson),
    ("retry_of_what_harms_twice", retry_of_what_harms_twice::lesson),
    ("retry_of_refusals", retry_of_refusals::lesson),
    ("no_half_open", no_half_open::lesson),
    ("full_load_after_closing", full_load_after_closing::lesson),
    ("nobody_told", nobody_told::lesson),
    ("fallback_never_exercised", fallback_never_exercised::lesson),
];

fn main() -> Result<(), Box<dyn Error>> {
    let wanted = std::env::args().nth(1);
    let mut shown = 0;
    for (name, lesson) in ALL {
        if wanted.as_deref().is_none_or(|wanted| wanted == name) {
            let Lesson { wrong, right } = lesson()?;
            println!("{name}\n  wrong: {wrong}\n  right: {right}");
            shown += 1;
        }
    }
    if shown == 0 {
        let names: Vec<&str> = ALL.into_iter().map(|(name, _)| name).collect();
        return Err(format!("no such mistake; there are {}", names.join(", ")).into());
    }
    println!("{shown} mistakes made and mended");
    Ok(())
}
