//! How much a request matters.

use http::{HeaderMap, HeaderName};

use crate::priority::Priority;

/// What a client may say of a request: `critical`, `normal` or `sheddable`.
pub const PRIORITY_HEADER: HeaderName = HeaderName::from_static("x-request-priority");

/// Tells how much a request matters. Any `Fn(&Req) -> Priority` does.
pub trait PriorityFor<Req> {
    /// The request's priority.
    fn priority(&self, request: &Req) -> Priority;
}

impl<Req, F: Fn(&Req) -> Priority> PriorityFor<Req> for F {
    fn priority(&self, request: &Req) -> Priority {
        self(request)
    }
}

/// Takes every request for critical, as the plain [`admit`](crate::Engine::admit) does.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllCritical;

impl<Req> PriorityFor<Req> for AllCritical {
    fn priority(&self, _: &Req) -> Priority {
        Priority::Critical
    }
}

/// The priority that [`x-request-priority`](PRIORITY_HEADER) asks for, but at most this one: a client may say that its request matters less than
/// others of its kind, never that it matters more. A header that is missing, or names none, says nothing; of several the lowest counts.
///
/// ```
/// use http::HeaderMap;
/// use portcullis::Priority;
/// use portcullis::tower::requested_priority;
///
/// let mut headers = HeaderMap::new();
/// assert_eq!(requested_priority(&headers, Priority::Normal), Priority::Normal);
/// headers.insert("x-request-priority", "critical".parse()?);
/// assert_eq!(requested_priority(&headers, Priority::Normal), Priority::Normal);
/// headers.insert("x-request-priority", "sheddable".parse()?);
/// assert_eq!(requested_priority(&headers, Priority::Normal), Priority::Sheddable);
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[must_use]
pub fn requested_priority(headers: &HeaderMap, at_most: Priority) -> Priority {
    let named = headers.get_all(PRIORITY_HEADER).iter();
    let named = named.filter_map(|value| Priority::from_name(value.to_str().ok()?.trim()));
    named.fold(at_most, Ord::min)
}
