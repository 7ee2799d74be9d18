//! Calls over HTTP: the tower layer, request bodies that can be sent again, answers that say where they come from.

mod answer;
mod fallback;
mod judge;
mod layer;
mod once;
mod replay;
mod respond;
mod service;
mod stale;

pub use answer::CallBody;
pub use judge::{judge_response, retry_after};
pub use layer::{AnyError, CallLayer, Failure, JudgeError, Scope};
pub use replay::{ReplayBody, ReplayError};
pub use respond::{respond, respond_grpc};
pub use service::CallService;
