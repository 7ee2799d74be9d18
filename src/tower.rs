//! The admission decision as tower middleware.
//!
//! [`AdmissionLayer`] wraps a service: each request is admitted under the key that it is for, and settled with what its
//! classifier makes of the response. Put it outside the timeout (a timeout is then a failure of the target) and inside
//! the retry (each attempt is admitted and settled by itself).
//!
//! - Admission happens in `call`, never in `poll_ready`, which is always ready: a clone that is ready and idle holds nothing, and an
//!   open target refuses at once, whatever state the inner service is in.
//! - The inner service is made ready inside the future, on the very clone that is called. An error there settles the permit.
//! - With [`HttpClassifier`] and [`GrpcClassifier`] the permit lives until the response body has ended or is dropped, and an error in
//!   the body is a failure. What failed by its status is judged at the headers: callers who retry drop its body unread. Probes, and responses declared to be streams, take their verdict at the headers and only hold
//!   their bulkhead slot to the end of the body.
//! - A failure that says when to come back is believed: `Retry-After`, `grpc-retry-pushback-ms` or the `RetryInfo` in
//!   `grpc-status-details-bin` of the failure that opens the target is the least that it stays open, within `open_wait_max`.
//! - A response future or body that is dropped is an abandoned call: a failure if the target had been silent for 500 ms, unless the policy
//!   says otherwise.
//! - Two of these layers around one service are two breakers in a row: the inner one's refusals are errors to the outer. Let the outer's
//!   classifier ignore [`Error::Rejected`], or both wait for each other's probes.
//!
//! Requests are critical unless [`AdmissionLayer::priority`] says otherwise, and none of them waits for a permit: the decision is made in `call`. Where
//! critical ones should, see [`Engine::admit_waiting`](crate::Engine::admit_waiting) or, with the feature `call`, `call::CallLayer`.
//!
//! Through the layer a call allocates what the inner service allocates, and nothing else.

mod body;
mod classify;
pub(crate) mod come_back;
mod error;
mod future;
mod key;
mod layer;
mod priority;
mod respond;
mod retry_info;
mod service;

pub use body::GuardedBody;
pub use classify::{Classify, ClassifyFn, GrpcClassifier, HttpClassifier, classify_fn};
pub use error::Error;
pub use future::AdmissionFuture;
pub use key::{ByAuthority, KeyFor};
pub use layer::AdmissionLayer;
pub use priority::{AllCritical, PRIORITY_HEADER, PriorityFor, requested_priority};
pub use respond::{CODE_HEADER, respond, respond_grpc};
#[cfg(feature = "call")]
pub(crate) use respond::{grpc, json};
pub use service::Admission;

use std::sync::Arc;

use crate::engine::Engine;
use crate::permit::{OwnedHeld, OwnedPermit};

/// The permit of one request.
pub type RequestPermit<K = String> = OwnedPermit<Arc<Engine<K>>, K>;

/// The bulkhead slot of a request whose outcome is recorded.
pub type RequestHeld<K = String> = OwnedHeld<Arc<Engine<K>>, K>;
