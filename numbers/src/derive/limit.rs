//! How many calls may be in flight: Little's law with head-room.

use super::{Entry, Value, say};
use crate::formulas::{erlang_b, limit, little};
use crate::observe::Observed;

/// What Little's number is multiplied with.
const HEADROOM: f64 = 2.0;
/// The share of calls that may find the target full in its busiest second, if they come as they like.
pub const REFUSED: f64 = 1e-4;
/// The busiest second is this quantile: one in a thousand.
pub const BUSY: f64 = 0.999;
/// What a mean time needs.
const CALLS: u64 = 1_000;
const SECONDS: u64 = 60;
/// Beyond this a policy knows only "unlimited".
const MOST: u32 = 16_777_214;

/// Derives `max_in_flight`.
#[must_use]
pub fn derive(seen: &Observed) -> Entry {
    const FIELD: &str = "max_in_flight";
    let (_, calls) = seen.calm.busy;
    if calls < CALLS || seen.span.as_secs() < SECONDS {
        let why = format!(
            "{} calls outside outages in {}: Little's law needs {} over {SECONDS} s",
            say::count(calls),
            say::time(seen.span),
            say::count(CALLS),
        );
        return Entry::missing(FIELD, why);
    }
    let (busiest, mean) = (seen.calm.seconds.at(BUSY) as f64, seen.calm.mean_latency());
    let erlangs = little(busiest, mean);
    if erlangs <= 0.0 {
        return Entry::missing(FIELD, "the log has no latencies but zero: Little's law needs them".to_owned());
    }
    let (Some(doubled), Some(rarely)) = (limit(busiest, mean, HEADROOM), rarely_full(erlangs)) else {
        let why = format!("{} calls in flight are more than a limit can be", say::number(erlangs));
        return Entry::missing(FIELD, why);
    };
    let held = u32::try_from(seen.calm.in_flight.at(BUSY)).unwrap_or(MOST);
    let chosen = doubled.max(rarely).max(held.saturating_add(1)).min(MOST);
    let reason = if chosen == doubled {
        "doubled".to_owned()
    } else if chosen == rarely {
        format!("doubled {doubled} would be too few")
    } else {
        format!(
            "doubled {doubled}, but calls come in bursts, and {held} were in flight for the busiest 0.1 % of the time"
        )
    };
    let why = format!(
        "Little's law: {} calls in the busiest second of a thousand x {} mean latency = {} in flight; {reason}. Erlang B: {} of calls refused at \
         that rate, at most {} wanted. Measured: mean {} in flight, peak {}",
        say::number(busiest),
        say::seconds(mean),
        say::number(erlangs),
        say::share(erlang_b(erlangs, chosen)),
        say::share(REFUSED),
        say::number(seen.calm.in_flight.mean()),
        say::count(seen.peak),
    );
    Entry::new(FIELD, Value::Count(chosen), why)
}

/// The fewest places of which all are taken for so few arrivals as wanted.
fn rarely_full(erlangs: f64) -> Option<u32> {
    let is_enough = |places: &u32| erlang_b(erlangs, *places) <= REFUSED;
    let mut high = (1..24).map(|bits| 1_u32 << bits).find(is_enough)?;
    let mut low = high / 2;
    while low < high {
        let middle = u32::midpoint(low, high);
        if is_enough(&middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_places_are_found() {
        for erlangs in [0.001, 0.5, 1.0, 20.0, 333.3] {
            let places = rarely_full(erlangs).unwrap();
            assert!(erlang_b(erlangs, places) <= REFUSED, "{erlangs}");
            assert!(erlang_b(erlangs, places - 1) > REFUSED, "{erlangs}");
        }
        assert_eq!(rarely_full(1e9), None);
    }
}
