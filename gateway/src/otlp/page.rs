//! The page that Prometheus reads, as OTLP's metrics: so that both have the same series, and there is one list of them.

use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};

/// Since when it was counted, and when it was read: in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) began: u64,
    pub(super) now: u64,
}

/// A line of the page.
struct Line<'p> {
    name: &'p str,
    labels: Vec<(&'p str, String)>,
    value: f64,
}

/// The metrics of a page. What isn't a line of its format is passed over.
pub(super) fn metrics(page: &str, times: Times) -> Vec<Metric> {
    let mut all: Vec<Metric> = Vec::new();
    for text in page.lines() {
        if let Some(help) = text.strip_prefix("# HELP ") {
            let (name, description) = help.split_once(' ').unwrap_or((help, ""));
            all.push(Metric { name: name.to_owned(), description: description.to_owned(), ..Metric::default() });
        } else if let Some(metric) = all.last_mut() {
            match text.strip_prefix("# TYPE ") {
                Some(kind) => metric.data = empty(kind.rsplit(' ').next().unwrap_or_default()),
                None => drop(line(text).and_then(|line| add(metric, line, times))),
            }
        }
    }
    all
}

fn empty(kind: &str) -> Option<Data> {
    let cumulative = AggregationTemporality::Cumulative.into();
    match kind {
        "counter" => {
            Some(Data::Sum(Sum { is_monotonic: true, aggregation_temporality: cumulative, data_points: Vec::new() }))
        }
        "gauge" => Some(Data::Gauge(Gauge::default())),
        "histogram" => {
            Some(Data::Histogram(Histogram { aggregation_temporality: cumulative, data_points: Vec::new() }))
        }
        _ => None,
    }
}

fn add(metric: &mut Metric, line: Line<'_>, times: Times) -> Option<()> {
    match metric.data.as_mut()? {
        Data::Sum(sum) => sum.data_points.push(point(line, times)),
        Data::Gauge(gauge) => gauge.data_points.push(point(line, times)),
        Data::Histogram(histogram) => measured(&metric.name, &mut histogram.data_points, line, times)?,
        _ => {}
    }
    Some(())
}

fn point(line: Line<'_>, times: Times) -> NumberDataPoint {
    NumberDataPoint {
        attributes: attributes(line.labels),
        start_time_unix_nano: times.began,
        time_unix_nano: times.now,
        value: Some(Value::AsDouble(line.value)),
        ..NumberDataPoint::default()
    }
}

/// A line of a histogram. A page counts in each bucket those of the ones below as well, OTLP doesn't.
fn measured(name: &str, points: &mut Vec<HistogramDataPoint>, mut line: Line<'_>, times: Times) -> Option<()> {
    let part = line.name.strip_prefix(name)?;
    let bound = line.labels.iter().position(|&(label, _)| label == "le").map(|at| line.labels.remove(at).1);
    let attributes = attributes(line.labels);
    if points.last().is_none_or(|point| point.attributes != attributes) {
        points.push(HistogramDataPoint {
            attributes,
            start_time_unix_nano: times.began,
            time_unix_nano: times.now,
            ..HistogramDataPoint::default()
        });
    }
    let point = points.last_mut()?;
    let whole = line.value as u64;
    match (part, bound) {
        ("_bucket", Some(bound)) => {
            let below: u64 = point.bucket_counts.iter().sum();
            point.bucket_counts.push(whole.saturating_sub(below));
            // The last one has none.
            if bound != "+Inf" {
                point.explicit_bounds.push(bound.parse().ok()?);
            }
        }
        ("_sum", None) => point.sum = Some(line.value),
        ("_count", None) => point.count = whole,
        _ => {}
    }
    Some(())
}

fn attributes(labels: Vec<(&str, String)>) -> Vec<KeyValue> {
    let attribute = |(name, value): (&str, String)| {
        let value = Some(AnyValue { value: Some(Any::StringValue(value)) });
        KeyValue { key: name.to_owned(), value, ..KeyValue::default() }
    };
    labels.into_iter().map(attribute).collect()
}

/// `name{label="value",...} number`
fn line(text: &str) -> Option<Line<'_>> {
    let end = text.find(['{', ' '])?;
    let (name, mut rest) = text.split_at(end);
    let mut labels = Vec::new();
    if let Some(list) = rest.strip_prefix('{') {
        rest = list;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = unescaped(after)?;
            labels.push((label.trim_start_matches(','), value));
            rest = after;
        }
        rest = &rest[1..];
    }
    Some(Line { name, labels, value: rest.trim().parse().ok()? })
}

/// A label's value to its closing quote, and what is behind that.
fn unescaped(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match letters.next()?.1 {
                'n' => '\n',
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { began: 1, now: 2 };

    #[test]
    fn series_keep_name_kind_labels_and_value() {
        let page = "# HELP refused_total Refused, by reason.\n# TYPE refused_total counter\n\
                    refused_total{target=\"a\\\"b\\\\c\\nd}, e\",reason=\"open\"} 7\nrefused_total 2\n\
                    # HELP limit The limit.\n# TYPE limit gauge\nlimit{target=\"t\"} +Inf\nnonsense\nlimit{target=\"t 1\n";
        let all = metrics(page, TIMES);
        assert_eq!(all.iter().map(|metric| &*metric.name).collect::<Vec<_>>(), ["refused_total", "limit"]);
        assert_eq!(all[0].description, "Refused, by reason.");
        let Some(Data::Sum(sum)) = &all[0].data else { panic!("{all:?}") };
        assert!(sum.is_monotonic && sum.aggregation_temporality() == AggregationTemporality::Cumulative);
        let point = &sum.data_points[0];
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (1, 2));
        assert_eq!(point.value, Some(Value::AsDouble(7.0)));
        let labels = vec![("target", "a\"b\\c\nd}, e".to_owned()), ("reason", "open".to_owned())];
        assert_eq!(point.attributes, attributes(labels));
        assert!(sum.data_points.len() == 2 && sum.data_points[1].attributes.is_empty());
        let Some(Data::Gauge(gauge)) = &all[1].data else { panic!("{all:?}") };
        assert_eq!(gauge.data_points.len(), 1);
        assert_eq!(gauge.data_points[0].value, Some(Value::AsDouble(f64::INFINITY)));
    }

    #[test]
    fn buckets_of_a_histogram_hold_only_their_own() {
        let mut page = "# HELP l Latency.\n# TYPE l histogram\n".to_owned();
        for target in ["a", "b"] {
            for (bound, count) in [("0.001", 2), ("0.01", 5), ("+Inf", 6)] {
                page += &format!("l_bucket{{target=\"{target}\",le=\"{bound}\"}} {count}\n");
            }
            page += &format!("l_sum{{target=\"{target}\"}} 1.5\nl_count{{target=\"{target}\"}} 6\n");
        }
        let all = metrics(&page, TIMES);
        let Some(Data::Histogram(histogram)) = &all[0].data else { panic!("{all:?}") };
        assert_eq!(histogram.data_points.len(), 2);
        for point in &histogram.data_points {
            assert_eq!((&*point.bucket_counts, &*point.explicit_bounds), (&[2, 3, 1][..], &[0.001, 0.01][..]));
            assert_eq!((point.count, point.sum), (6, Some(1.5)));
        }
    }
}
