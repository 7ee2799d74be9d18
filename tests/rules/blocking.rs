//! Calls without a runtime that wait for a permit.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portcullis::{Permit, PolicyBuilder, Priority, Rejection};

use crate::common::{Bench, T, ms, race, secs, textbook};

/// One in flight, two may wait.
fn queued() -> PolicyBuilder {
    textbook().max_in_flight(1).max_waiting(2)
}

#[test]
fn a_blocked_thread_is_let_in_when_there_is_room_and_gives_up_when_its_time_is_over() {
    let bench = Bench::new(queued().max_wait(secs(3_600)));
    let held = bench.enter();
    std::thread::scope(|scope| {
        let waits =
            scope.spawn(|| bench.engine.admit_blocking(T, Priority::Critical, Duration::MAX).map(Permit::success));
        while bench.snapshot().waiting == 0 {
            std::thread::yield_now();
        }
        held.success();
        assert!(waits.join().unwrap().is_ok());
    });
    let _held = bench.enter();
    let target = bench.engine.target(T).unwrap();
    std::thread::scope(|scope| {
        // On the engine's clock, which another moves; it is looked at every 2 ms of the machine's.
        let waits = scope.spawn(|| target.admit_blocking(Priority::Critical, ms(2)).map(drop));
        while bench.snapshot().waiting == 0 {
            std::thread::yield_now();
        }
        bench.advance(ms(2));
        assert_eq!(waits.join().unwrap(), Err(Rejection::Saturated { limit: 1 }));
    });
    assert_eq!(bench.snapshot().waiting, 0);
}

#[test]
fn calls_of_many_threads_wait_and_all_get_in() {
    let bench = Bench::new(queued().max_in_flight(2).max_waiting(8).max_wait(secs(3_600)));
    let inside = AtomicUsize::new(0);
    race(6, |_| {
        for _ in 0..500 {
            let permit = bench.engine.admit_blocking(T, Priority::Critical, Duration::MAX).unwrap();
            assert!(inside.fetch_add(1, Ordering::SeqCst) < 2);
            std::thread::yield_now();
            inside.fetch_sub(1, Ordering::SeqCst);
            permit.success();
        }
    });
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.totals.success, snapshot.in_flight, snapshot.waiting), (3_000, 0, 0));
    assert!(snapshot.waited > 0, "nobody ever waited: this looked at nothing");
    assert_eq!(snapshot.refusals.total(), 0);
}
