//! What the tables of a report have in their columns, be they text or HTML.

use std::time::{Duration, UNIX_EPOCH};

use super::report::{Report, Sums, Target, Totals, Under};

/// The columns of a policy over all targets.
pub(super) const POLICY: [&str; 10] =
    ["policy", "admitted", "refused", "had succeeded", "had failed", "cut", "spared", "trips", "reopened", "probes"];

/// What is in them.
pub(super) fn policy(totals: &Totals) -> Vec<String> {
    let mut row = vec![totals.name.clone()];
    row.extend(shared(&totals.sums));
    row
}

/// The columns of a target under a policy.
pub(super) const TARGET: [&str; 18] = [
    "target",
    "policy",
    "calls",
    "failed",
    "p99",
    "admitted",
    "refused",
    "had succeeded",
    "had failed",
    "cut",
    "spared",
    "trips",
    "reopened",
    "probes",
    "first after",
    "open",
    "half-open",
    "peak",
];

/// What is in them; less where there is no policy for the target.
pub(super) fn target(report: &Report, target: &Target, policy: &str, under: Option<&Under>) -> Vec<String> {
    let mut row = vec![target.name.clone(), policy.to_owned(), grouped(target.calls), grouped(target.failures)];
    row.push(format!("{}ms", target.p99_ms.round()));
    let Some(under) = under else {
        row.push("no policy".to_owned());
        return row;
    };
    row.extend(shared(&under.sums));
    row.push(under.first_trip_after_ms.map_or("-".to_owned(), lasting));
    row.extend([under.open_ms, under.half_open_ms].map(|part| share(part, report.log.to_ms - report.log.from_ms)));
    row.push(grouped(under.peak_in_flight.into()));
    row
}

/// What policies and targets have in common.
fn shared(sums: &Sums) -> [String; 9] {
    let Sums { admitted, refused, refused_good, failures_avoided, cut, spared_ms, trips, reopened, probes, .. } = sums;
    [
        grouped(*admitted),
        grouped(*refused),
        grouped(*refused_good),
        grouped(*failures_avoided),
        grouped(*cut),
        lasting(*spared_ms),
        grouped(*trips),
        grouped(*reopened),
        grouped(*probes),
    ]
}

/// 1,234,567.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Two units at most: 2h 5m, 3s 400ms.
pub(super) fn lasting(ms: u64) -> String {
    let whole = humantime::format_duration(Duration::from_millis(ms)).to_string();
    whole.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

pub(super) fn moment(ms: u64) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms)).to_string()
}

/// A part of the time, in per cent to two digits.
pub(super) fn share(part: u64, whole: u64) -> String {
    let bp = if whole == 0 { 0 } else { u128::from(part) * 10_000 / u128::from(whole) };
    format!("{}.{:02}%", bp / 100, bp % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_times_are_short() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 3_400, 7_500_123].map(lasting), ["0s", "3s 400ms", "2h 5m"]);
        assert_eq!((share(1, 3), share(3, 3), share(0, 0)), ("33.33%".into(), "100.00%".into(), "0.00%".into()));
        assert_eq!(moment(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
    }
}
