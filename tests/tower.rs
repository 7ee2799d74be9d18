//! The middleware: admission in `call`, verdicts at the end of the body, and stacks of layers.
#![cfg(feature = "tower")]
#![allow(clippy::unwrap_used, reason = "clippy doesn't take helpers of tests for tests")]

mod common;
mod tower {
    mod body;
    mod future;
    mod grpc;
    mod http;
    mod keys;
    mod priorities;
    mod respond;
    mod service;
    mod stack;
    mod streams;
    mod support;
}
