//! The text that Prometheus reads, version 0.0.4.

use std::fmt::{Display, Write as _};

use portcullis::metrics::{Family, Kind, Series};

use crate::latency::SHOWN;

/// What the text is.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A page in the making: metrics one after the other, each with all of its series.
#[derive(Debug, Default)]
pub(super) struct Page {
    text: String,
    family: &'static str,
}

/// A value as the format has it.
pub(super) trait Value {
    fn write(self, text: &mut String);
}

macro_rules! whole {
    ($($kind:ty),*) => {
        $(impl Value for $kind {
            fn write(self, text: &mut String) {
                put(text, self);
            }
        })*
    };
}

whole!(i32, u32, u64, usize);

impl Value for f64 {
    fn write(self, text: &mut String) {
        if self == f64::INFINITY {
            text.push_str("+Inf");
        } else {
            put(text, self);
        }
    }
}

fn put(text: &mut String, value: impl Display) {
    // A string takes whatever is written to it.
    let _ = write!(text, "{value}");
}

impl Page {
    /// Begins a metric, unless it is the one that is on.
    pub(super) fn begin(&mut self, family: &Family) {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        self.head(family.name, family.help, kind);
    }

    pub(super) fn begin_histogram(&mut self, name: &'static str, help: &str) {
        self.head(name, help, "histogram");
    }

    fn head(&mut self, name: &'static str, help: &str, kind: &str) {
        if self.family != name {
            self.family = name;
            put(&mut self.text, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        }
    }

    /// A series of a target; its label is escaped already.
    pub(super) fn series(&mut self, series: &Series, target: &str, value: impl Value) {
        put(&mut self.text, format_args!("{}{{target=\"{target}\"", series.family.name));
        for (name, value) in series.labels {
            put(&mut self.text, format_args!(",{name}=\"{value}\""));
        }
        self.text.push('}');
        self.value(value);
    }

    /// A target's latencies: how many there were in each bucket, then the sum of all in nanoseconds.
    pub(super) fn histogram(&mut self, name: &str, target: &str, counted: &[u64]) {
        let Some((nanos, buckets)) = counted.split_last() else { return };
        let bounds = SHOWN.iter().map(|nanos| (*nanos as f64 / 1e9).to_string()).chain(["+Inf".to_owned()]);
        let mut count = 0;
        for (bound, calls) in bounds.zip(buckets) {
            count += calls;
            self.plain(&format!("{name}_bucket{{target=\"{target}\",le=\"{bound}\"}}"), count);
        }
        self.plain(&format!("{name}_sum{{target=\"{target}\"}}"), *nanos as f64 / 1e9);
        self.plain(&format!("{name}_count{{target=\"{target}\"}}"), count);
    }

    /// A metric with a single series.
    pub(super) fn only(&mut self, family: &Family, value: impl Value) {
        self.begin(family);
        self.plain(family.name, value);
    }

    /// A series as it is written.
    pub(super) fn plain(&mut self, series: &str, value: impl Value) {
        self.text.push_str(series);
        self.value(value);
    }

    fn value(&mut self, value: impl Value) {
        self.text.push(' ');
        value.write(&mut self.text);
        self.text.push('\n');
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

/// A label's value between its quotes.
pub(super) fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_label_is_escaped() {
        assert_eq!(escaped("a\"b\\c\nd<script>\u{e9}"), "a\\\"b\\\\c\\nd<script>\u{e9}");
    }

    #[test]
    fn a_metric_has_one_head_and_all_its_series() {
        let mut page = Page::default();
        let family = Family::gauge("limit", "The limit.");
        for (target, value) in [("a", f64::INFINITY), ("b", 2.5)] {
            page.begin(&family);
            page.series(&Series::new(family, &[("of", "x")]), target, value);
        }
        page.only(&Family::counter("refused_total", "Refused."), 7_u64);
        let expected = "# HELP limit The limit.\n# TYPE limit gauge\nlimit{target=\"a\",of=\"x\"} +Inf\nlimit{target=\"b\",of=\"x\"} 2.5\n\
                        # HELP refused_total Refused.\n# TYPE refused_total counter\nrefused_total 7\n";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn buckets_of_a_histogram_hold_those_below() {
        let mut page = Page::default();
        let mut counted = [0; SHOWN.len() + 2];
        (counted[0], counted[1], counted[SHOWN.len()], counted[SHOWN.len() + 1]) = (2, 3, 1, 1_500_000_000);
        page.histogram("l", "t", &counted);
        let text = page.into_text();
        for line in [
            "le=\"0.0005\"} 2",
            "le=\"0.001\"} 5",
            "le=\"60\"} 5",
            "le=\"+Inf\"} 6",
            "l_sum{target=\"t\"} 1.5",
            "l_count{target=\"t\"} 6",
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line} in {text}");
        }
    }
}
