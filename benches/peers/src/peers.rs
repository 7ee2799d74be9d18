//! The subjects, a file each. Each is set up as its documentation shows, and says what it can't do.

pub mod breaker;
pub mod composed;
pub mod failsafe;
pub mod ferryman;
pub mod governor;
pub mod portcullis;
pub mod recloser;
pub mod seatbelt;
pub mod semaphore;
pub mod throttle_net;
pub mod tower_resilience;
