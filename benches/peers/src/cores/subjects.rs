//! The subjects as they are timed: on their real clocks, by the shortest way that their documentation shows.

pub mod by_hand;
pub mod controls;
pub mod portcullis;
pub mod seatbelt;
pub mod singles;
pub mod tower_resilience;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::case::Case;
use super::entrant::Entrant;
use super::keys::KeySet;
use super::timed::Alone;
use crate::peers::failsafe::{Consecutive, Rate};

/// All that a case is one for, ours first.
#[must_use]
pub fn all(case: Case, keys: &Arc<KeySet>, seats: usize) -> Vec<Entrant> {
    use portcullis::{Coarse, Precise};
    use singles::{Breaker, Failsafe, Ferryman, Permits, Recloser, ThrottleNet};
    let makers = [
        Entrant::of::<portcullis::Resolved<Precise>>,
        Entrant::of::<portcullis::Resolved<Coarse>>,
        Entrant::of::<portcullis::Keyed<Precise>>,
        Entrant::of::<portcullis::Keyed<Coarse>>,
        Entrant::of::<portcullis::Static>,
        Entrant::of::<portcullis::Owned>,
        Entrant::of::<by_hand::ByHand<Recloser>>,
        Entrant::of::<by_hand::ByHand<Failsafe<Consecutive>>>,
        Entrant::of::<by_hand::ByHand<Failsafe<Rate>>>,
        Entrant::of::<tower_resilience::TowerResilience>,
        Entrant::of::<Alone<ThrottleNet>>,
        Entrant::of::<Alone<Failsafe<Consecutive>>>,
        Entrant::of::<Alone<Failsafe<Rate>>>,
        Entrant::of::<Alone<Recloser>>,
        Entrant::of::<Alone<Ferryman>>,
        Entrant::of::<Alone<Breaker>>,
        Entrant::of::<seatbelt::Seatbelt>,
        Entrant::of::<controls::Governor>,
        Entrant::of::<Alone<Permits>>,
        Entrant::of::<controls::Map<rustc_hash::FxBuildHasher>>,
        Entrant::of::<controls::Map<ahash::RandomState>>,
        Entrant::of::<controls::Floor>,
        Entrant::of::<controls::PreciseClock>,
        Entrant::of::<controls::CoarseClock>,
        Entrant::of::<controls::StdClock>,
        Entrant::of::<controls::Nothing>,
    ];
    makers.into_iter().filter_map(|make| make(case, keys, seats)).collect()
}

/// How long a lock may be waited for awake.
const AWAKE: Duration = Duration::from_micros(20);

/// Runs a future that waits for nothing but its subject's own locks and timers.
#[inline]
fn finish<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => wait(future),
    }
}

/// Awake at first: a lock is free in a moment, and to park would be timed as the subject's. Then asleep: what takes longer is a timer,
/// and the thread that drives it may need the core.
#[cold]
fn wait<T>(mut future: Pin<&mut impl Future<Output = T>>) -> T {
    thread_local! {
        static WAKER: Waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    }
    WAKER.with(|waker| {
        let (mut context, start) = (Context::from_waker(waker), Instant::now());
        loop {
            match future.as_mut().poll(&mut context) {
                Poll::Ready(value) => return value,
                Poll::Pending if start.elapsed() < AWAKE => std::hint::spin_loop(),
                Poll::Pending => std::thread::park(),
            }
        }
    })
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
