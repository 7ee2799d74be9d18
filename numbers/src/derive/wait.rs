//! How long to stay open: a part of an outage, so that its end isn't overslept.

use std::time::Duration;

use super::rule::outages;
use super::{Entry, Value, say};
use crate::observe::Observed;

/// What a median length needs.
pub const OUTAGES: usize = 3;
/// The first wait is this part of the median outage, and the longest is that one.
const FIRST: u32 = 20;
const LONGEST: u32 = 10;
/// What the first wait may be, and the longest: shorter ones are no rest, longer ones nobody waits for.
const BOUNDS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
const LONGEST_MOST: Duration = Duration::from_mins(5);

/// Derives `open_wait` and `open_wait_max`.
#[must_use]
pub fn derive(seen: &Observed) -> Vec<Entry> {
    let lengths = &seen.outages.lengths;
    let Some(median) = seen.outages.median().filter(|_| lengths.len() >= OUTAGES) else {
        return vec![Entry::missing("open_wait", missing(seen))];
    };
    let first = say::round_down(median / FIRST).clamp(BOUNDS.0, BOUNDS.1);
    let longest = say::round_down(median / LONGEST).clamp(first, LONGEST_MOST);
    // Whatever the distribution, the median is outside of all lengths only if all fell on one side of it.
    let sure = 1.0 - libm::exp2(1.0 - lengths.len() as f64);
    let (shortest, last) = (lengths.first().copied().unwrap_or_default(), lengths.last().copied().unwrap_or_default());
    let why = format!(
        "1/{FIRST} of the median of {} with a beginning and an end: {} ({}: {} to {}), within {} and {}",
        outages(lengths.len() as u64),
        say::time(median),
        say::share(sure),
        say::time(shortest),
        say::time(last),
        say::time(BOUNDS.0),
        say::time(BOUNDS.1),
    );
    let longest_why = format!(
        "1/{LONGEST} of the median: its end is overslept by {} at most",
        say::share(longest.as_secs_f64() / median.as_secs_f64())
    );
    vec![
        Entry::new("open_wait", Value::Time(first), why),
        Entry::new("open_wait_max", Value::Time(longest), longest_why),
    ]
}

fn missing(seen: &Observed) -> String {
    let whole = seen.outages.lengths.len();
    let more = if whole == 0 {
        "a log that holds some".to_owned()
    } else {
        format!("a log of about {}", say::seconds(seen.span.as_secs_f64() * OUTAGES as f64 / whole as f64))
    };
    format!(
        "{} with a beginning and an end in {}: the wait needs {OUTAGES}, so {more}; the default stays",
        outages(whole as u64),
        say::time(seen.span)
    )
}
