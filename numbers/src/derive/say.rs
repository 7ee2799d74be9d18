//! Numbers as people read them, the same on every machine.

use std::time::Duration;

/// A count with its thousands apart.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number to three digits, without zeros that say nothing.
#[must_use]
pub fn number(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let size = libm::log10(number.abs()).floor();
    if size >= 3.0 {
        return count(number.round() as u64);
    }
    if size < -4.0 {
        return format!("{number:.1e}");
    }
    let text = format!("{number:.*}", (2.0 - size) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A share in per cent.
#[must_use]
pub fn share(share: f64) -> String {
    format!("{} %", number(share * 100.0))
}

/// A length of time to three digits of its unit.
#[must_use]
pub fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let units = [(86_400.0, "d"), (3_600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "us")];
    let (unit, name) = units.into_iter().find(|(unit, _)| seconds >= *unit).unwrap_or((1.0, "s"));
    format!("{} {name}", number(seconds / unit))
}

/// Seconds, as [`time`].
#[must_use]
pub fn seconds(seconds: f64) -> String {
    Duration::try_from_secs_f64(seconds).map_or_else(|_| format!("{} s", number(seconds)), time)
}

/// Calls per second.
#[must_use]
pub fn rate(per_second: f64) -> String {
    if per_second >= 0.1 {
        return format!("{} calls/s", number(per_second));
    }
    let per_hour = per_second * 3_600.0;
    if per_hour >= 1.0 {
        format!("{} calls/h", number(per_hour))
    } else {
        format!("{} calls/day", number(per_hour * 24.0))
    }
}

/// Two digits of a length of time, rounded up to whole milliseconds.
#[must_use]
pub fn round_up(time: Duration) -> Duration {
    round(time, u64::div_ceil)
}

/// Two digits of a length of time, rounded down; 1 ms at least.
#[must_use]
pub fn round_down(time: Duration) -> Duration {
    round(time, |time, step| time / step)
}

fn round(time: Duration, divide: fn(u64, u64) -> u64) -> Duration {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX / 2);
    // Beyond a minute in whole seconds, so that it reads well.
    let unit = if micros >= 60_000_000 { 1_000_000 } else { 1_000 };
    let units = divide(micros, unit).max(1);
    let step = 10_u64.pow(units.ilog10().saturating_sub(1));
    Duration::from_micros(divide(units, step).saturating_mul(step).saturating_mul(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_matter() {
        let told: Vec<String> = [0.0, 0.5, 12.0, 99.95, 1_234.6, 0.012_345, 2.8e-5, 100.0].map(number).to_vec();
        assert_eq!(told, ["0", "0.5", "12", "100", "1,235", "0.0123", "2.8e-5", "100"]);
        let powers = [0.0001, 0.001, 0.01, 0.1, 1.0, 10.0, 1_000.0, 1e6].map(number);
        assert_eq!(powers, ["0.0001", "0.001", "0.01", "0.1", "1", "10", "1,000", "1,000,000"]);
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(share(0.0123), "1.23 %");
    }

    #[test]
    fn times_and_rates_have_the_unit_that_fits() {
        let told = [90.0, 0.2, 0.000_25, 7_200.0, 0.0].map(seconds).to_vec();
        assert_eq!(told, ["1.5 min", "200 ms", "250 us", "2 h", "0 s"]);
        assert_eq!([100.0, 0.01, 0.0001].map(rate).to_vec(), ["100 calls/s", "36 calls/h", "8.64 calls/day"]);
    }

    #[test]
    fn rounded_times_have_two_digits() {
        let ms = Duration::from_millis;
        assert_eq!([ms(121), ms(1), ms(1_234), ms(400_500)].map(round_up), [ms(130), ms(1), ms(1_300), ms(410_000)]);
        assert_eq!([ms(129), ms(0), ms(1_299), ms(400_500)].map(round_down), [ms(120), ms(1), ms(1_200), ms(400_000)]);
        assert_eq!(round_up(Duration::from_micros(120_001)), ms(130));
        assert_eq!(round_up(Duration::ZERO), ms(1));
    }
}
