//! The gateway of portcullis: a reverse proxy in which a dead target hurts nobody else.
//!
//! The way of a request: [`Config`] names the routes, `route` picks the target, `proxy` asks the process-wide cap and then
//! the target's `stack`, which asks the engine before one attempt at an `upstream`; where a target has a deadline, retries or a fallback, or a
//! request a deadline, as a `whole` call. `admin` is the
//! operator's listener, `server` the accept loop of both, [`demo`] the demonstration.
//!
//! # What it doesn't do
//!
//! - TLS, in or out: put it behind something that ends TLS, and keep the upstreams on a network that needs none.
//! - Upgrades (WebSocket) and tunnels, and transfer codings but chunked: refused with 501.
//! - Trailers of requests: dropped. Those of answers are passed on.
//! - Retries and fallbacks of answers that break off in their body: what a client has begun to read can't be taken back. What a client says of its
//!   deadline, too, is for the head of the answer.
//! - Retries and fallbacks where a route is without admission.
//! - Buffering: a client that sends or reads slowly holds a place of its target for as long. It isn't held against the
//!   target, but it counts against its limit. One that takes nothing at all is cut off after `write_timeout`; over HTTP/2 only
//!   one that leaves its whole connection unread, since a stream without window doesn't show there.
//! - A bound on slow upstreams without a `deadline`: only their silence is bounded, by `timeout`. With one, an answer that isn't a stream is
//!   broken off once the target has taken that long.
#![warn(missing_docs)]

mod admin;
mod body;
mod cap;
mod client;
mod config;
#[cfg(test)]
mod costs;
pub mod demo;
pub mod drill;
mod gateway;
mod headers;
mod hidden;
mod latency;
mod log;
mod metrics;
mod operator;
#[cfg(feature = "otlp")]
mod otlp;
mod paced;
mod proxy;
mod reply;
mod route;
pub mod serve;
mod server;
mod shadows;
mod shared;
mod stack;
mod story;
pub mod top;
mod trace;
mod uploading;
mod upstream;
mod watch;
mod webhook;
mod whole;

pub use config::{Config, ConfigError, ConfigErrors, Otlp, Route, Target, Webhook};
pub use gateway::Gateway;
