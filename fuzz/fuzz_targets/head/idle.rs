//! When nothing more happens by itself: gateway, upstreams and client share one thread and a clock that stands still, so every step is
//! caused by another one or by a socket.

use std::cell::Cell;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

/// Woken whenever no task has anything to do. One who waits for it keeps the thread from sleeping, and with that the clock from
/// leaping to the next timer.
static IDLE: Notify = Notify::const_new();

thread_local! {
    /// Counts what has come in at this end: a hint that there may be more.
    static MOVES: Cell<u64> = const { Cell::new(0) };
}

/// The loopback hands over within the call that sends, so what was sent is there one look at the sockets later. The longest way
/// without a step at this end is two looks: a connection is accepted, and an upstream is connected to.
const LOOKS: u32 = 4;

pub fn runtime() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().start_paused(true).on_thread_park(|| IDLE.notify_one()).build().expect("a runtime")
}

/// Something has come in.
pub fn moved() {
    MOVES.set(MOVES.get() + 1);
}

/// Waits until nobody has anything to do any more. `look` takes what has come, and is asked again and again.
pub async fn settle(mut look: impl FnMut()) {
    let mut quiet = 0;
    while quiet < LOOKS {
        let before = MOVES.get();
        IDLE.notified().await;
        look();
        quiet = if MOVES.get() == before { quiet + 1 } else { 0 };
    }
}
