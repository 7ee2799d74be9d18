//! Values of a scenario, read with their range.

use std::ops::RangeInclusive;
use std::time::Duration;

use toml::de::DeTable;

use super::Nanos;
use crate::policies::reader::{Field, Report, fields, join};

/// The longest time in a scenario.
pub(super) const LONGEST: Duration = Duration::from_hours(24);
const SHORTEST: Duration = Duration::from_micros(1);

/// A number, whole or not, within a range.
pub(super) fn number(report: &mut Report<'_>, field: &Field<'_>, range: RangeInclusive<f64>) -> Option<f64> {
    let whole = field.value.as_integer().map(toml::de::DeInteger::as_str);
    let text = whole.or_else(|| field.value.as_float().map(toml::de::DeFloat::as_str));
    let number = text.and_then(|text| text.parse().ok()).filter(|number| range.contains(number));
    if number.is_none() {
        field.refuse(report, &format!("a number from {} to {}", range.start(), range.end()));
    }
    number
}

/// A duration of at least a microsecond, in nanoseconds.
pub(super) fn nanos(report: &mut Report<'_>, field: &Field<'_>) -> Option<Nanos> {
    field.duration(report, SHORTEST..=LONGEST).map(in_nanos)
}

/// The same, or nothing at all.
pub(super) fn nanos_or_zero(report: &mut Report<'_>, field: &Field<'_>) -> Option<Nanos> {
    field.duration(report, Duration::ZERO..=LONGEST).map(in_nanos)
}

/// A duration of at least a microsecond, in seconds.
pub(super) fn seconds(report: &mut Report<'_>, field: &Field<'_>) -> Option<f64> {
    field.duration(report, SHORTEST..=LONGEST).map(|duration| duration.as_secs_f64())
}

pub(super) fn in_nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The one key of a table that names a choice, such as `{ poisson = 50 }`.
pub(super) fn choice<'d>(report: &mut Report<'_>, field: &Field<'d>, allowed: &str) -> Option<(&'d str, Field<'d>)> {
    let table = field.value.as_table().filter(|table| table.len() == 1);
    let only = table.and_then(|table| table.iter().next());
    if only.is_none() {
        field.refuse(report, allowed);
    }
    only.map(|(key, value)| (key.get_ref().as_ref(), Field::new(join(&field.name, key.get_ref()), value)))
}

/// The fields of a table, of which each is known.
pub(super) fn within<'d>(
    report: &mut Report<'_>,
    whole: &Field<'d>,
    known: &[&str],
) -> Option<impl Fn(&str) -> Option<Field<'d>> + use<'d>> {
    let table = whole.table(report)?;
    Some(fields(report, table, &whole.name, known))
}

/// A field that must be there.
pub(super) fn needed<'d>(
    report: &mut Report<'_>,
    whole: &Field<'_>,
    get: &impl Fn(&str) -> Option<Field<'d>>,
    key: &str,
    allowed: &str,
) -> Option<Field<'d>> {
    let field = get(key);
    if field.is_none() {
        report.add(&whole.span, join(&whole.name, key), format!("missing: must be {allowed}"));
    }
    field
}

/// The tables in a table, by name, in the order of the file.
pub(super) fn tables<'d>(
    report: &mut Report<'_>,
    field: Option<Field<'d>>,
) -> Vec<(String, Field<'d>, &'d DeTable<'d>)> {
    let Some(field) = field else { return Vec::new() };
    let Some(table) = field.table(report) else { return Vec::new() };
    let named =
        |(key, value): (&toml::Spanned<std::borrow::Cow<'d, str>>, &'d toml::Spanned<toml::de::DeValue<'d>>)| {
            let field = Field::new(join(&field.name, key.get_ref()), value);
            let table = field.table(report)?;
            Some((key.get_ref().clone().into_owned(), field, table))
        };
    table.iter().filter_map(named).collect()
}
