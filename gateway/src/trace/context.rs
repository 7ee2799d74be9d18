//! The trace that a request belongs to, as <https://www.w3.org/TR/trace-context/> has it.
//!
//! One `traceparent` that is in order makes the request's span a part of its trace, and `tracestate` is passed on as it came: the gateway has no
//! entry of its own to put in front. Any other makes it the first span of a new trace, and what `tracestate` says is no part of that.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
static TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Makes a request's span part of the trace that the request belongs to.
pub(super) fn follow(span: &Span, headers: &HeaderMap) {
    if let Some(parent) = parent(headers) {
        // Refused only for spans that have begun to be told, which a new one hasn't, or that nobody exports.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
}

/// Makes what is asked of an upstream part of an attempt's span. Leaves everything as it is where nobody exports spans.
pub(super) fn lead(span: &Span, headers: &mut HeaderMap) {
    let context = span.context();
    let span = context.span();
    let own = span.span_context();
    if !own.is_valid() {
        return;
    }
    // Checked before it is overwritten: a second attempt finds the first one's, which is of the same trace.
    if parent(headers).is_none_or(|parent| parent.trace_id() != own.trace_id()) {
        headers.remove(&TRACESTATE);
    }
    let sampled = u8::from(own.is_sampled());
    if let Ok(value) = HeaderValue::try_from(format!("00-{}-{}-{sampled:02x}", own.trace_id(), own.span_id())) {
        headers.insert(&TRACEPARENT, value);
    }
}

/// The span that a request was made in, if there is exactly one and all of it is as it should be.
fn parent(headers: &HeaderMap) -> Option<SpanContext> {
    let mut lines = headers.get_all(&TRACEPARENT).iter();
    let (line, None) = (lines.next()?, lines.next()) else { return None };
    let [version, trace, span, flags] = fields(line.to_str().ok()?.trim_ascii())?;
    if version == "ff" {
        return None;
    }
    let trace = TraceId::from_hex(trace).ok()?;
    let span = SpanId::from_hex(span).ok()?;
    // Only the sampling flag means anything to this version.
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    let context = SpanContext::new(trace, span, flags, true, state(headers));
    context.is_valid().then_some(context)
}

/// The four fields of version 00. Later ones may have more after them, behind another dash.
fn fields(text: &str) -> Option<[&str; 4]> {
    let (first, rest) = text.split_at_checked(55)?;
    if !rest.is_empty() && (first.starts_with("00") || !rest.starts_with('-')) {
        return None;
    }
    let fields: [&str; 4] = first.split('-').collect::<Vec<_>>().try_into().ok()?;
    let is_hex = |field: &&str| field.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (fields.map(str::len) == [2, 32, 16, 2] && fields.iter().all(is_hex)).then_some(fields)
}

/// What the vendors before have to say, for the export of the span; nothing if it can't be read.
fn state(headers: &HeaderMap) -> TraceState {
    let lines: Vec<&str> = headers.get_all(&TRACESTATE).iter().filter_map(|line| line.to_str().ok()).collect();
    lines.join(",").parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    fn trace_of(traceparent: &str) -> Option<String> {
        parent(&headers(&[("traceparent", traceparent)])).map(|context| context.trace_id().to_string())
    }

    #[test]
    fn what_the_recommendation_allows_is_followed() {
        for right in [
            format!("00-{TRACE}-b7ad6b7169203331-01"),
            format!("  00-{TRACE}-b7ad6b7169203331-00 "),
            format!("00-{TRACE}-b7ad6b7169203331-ff"),
            // Of a later version, with and without more.
            format!("cc-{TRACE}-b7ad6b7169203331-01"),
            format!("cc-{TRACE}-b7ad6b7169203331-01-what-the-future-brings"),
        ] {
            assert_eq!(trace_of(&right).as_deref(), Some(TRACE), "{right}");
        }
    }

    #[test]
    fn anything_else_begins_a_new_trace() {
        for wrong in [
            String::new(),
            format!("ff-{TRACE}-b7ad6b7169203331-01"),
            format!("00-{TRACE}-b7ad6b7169203331-01-more"),
            format!("00-{TRACE}-b7ad6b7169203331-01."),
            format!("cc-{TRACE}-b7ad6b7169203331-01.more"),
            format!("00-{TRACE}-b7ad6b7169203331"),
            format!("00-{TRACE}-b7ad6b7169203331-1"),
            format!("00-{TRACE}-b7ad6b716920333-001"),
            format!("0-{TRACE}-b7ad6b7169203331-001"),
            format!("00-{TRACE}-0000000000000000-01"),
            format!("00-{}-b7ad6b7169203331-01", "0".repeat(32)),
            format!("00-{}-b7ad6b7169203331-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-b7ad6b716920333G-01"),
            format!("00-{TRACE}-b7ad6b7169203331-0G"),
            format!("00-+{}-b7ad6b7169203331-01", &TRACE[1..]),
            format!("00_{TRACE}_b7ad6b7169203331_01"),
            format!("00-{TRACE}-b7ad6b7169203331-01, 00-{TRACE}-b7ad6b7169203331-01"),
        ] {
            assert_eq!(trace_of(&wrong), None, "{wrong}");
        }
        let one = format!("00-{TRACE}-b7ad6b7169203331-01");
        assert!(parent(&headers(&[("traceparent", &one), ("traceparent", &one)])).is_none());
        assert!(parent(&HeaderMap::new()).is_none());
    }

    #[test]
    fn the_lines_of_tracestate_are_one_list() {
        let one = format!("00-{TRACE}-b7ad6b7169203331-01");
        let told = |lines: &[(&'static str, &str)]| {
            let lines: Vec<_> = [("traceparent", one.as_str())].into_iter().chain(lines.iter().copied()).collect();
            parent(&headers(&lines)).unwrap().trace_state().header()
        };
        assert_eq!(told(&[("tracestate", "foo=1"), ("tracestate", "bar=2")]), "foo=1,bar=2");
        assert_eq!(told(&[("tracestate", "this is none")]), "");
    }
}
