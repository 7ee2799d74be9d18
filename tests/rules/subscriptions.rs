//! R20: channels of transitions, ordered, bounded, counting what they lost.

use std::sync::mpsc::{RecvTimeoutError, TryRecvError};

use crate::common::{Bench, T, ms, race, secs, textbook};

#[test]
fn r20_a_subscription_hears_what_comes_after_it_in_order() {
    let bench = Bench::new(textbook());
    let target = bench.engine.target(T).unwrap();
    target.force_open();
    let channel = bench.engine.subscribe(100);
    assert_eq!(channel.try_recv().unwrap_err(), TryRecvError::Empty);
    assert_eq!(channel.recv_timeout(ms(1)).unwrap_err(), RecvTimeoutError::Timeout);
    target.release();
    bench.fail(5);
    bench.advance(secs(30));
    bench.probe().success();
    let numbers: Vec<_> = (0..4).map(|_| channel.recv().unwrap().sequence).collect();
    assert_eq!(numbers, [2, 3, 4, 5]);
}

#[test]
fn r20_a_full_channel_loses_the_newest_and_counts_it() {
    let bench = Bench::new(textbook());
    let (narrow, wide) = (bench.engine.subscribe(3), bench.engine.subscribe(100));
    let target = bench.engine.target(T).unwrap();
    (0..5).for_each(|_| assert!(target.force_open() && target.release()));
    let numbers = |channel: &portcullis::Subscription| -> Vec<u64> {
        std::iter::from_fn(|| channel.try_recv().ok()).map(|transition| transition.sequence).collect()
    };
    assert_eq!((numbers(&narrow), narrow.dropped()), (vec![1, 2, 3], 7));
    assert_eq!((numbers(&wide), wide.dropped()), ((1..=10).collect(), 0));
    target.force_open();
    assert_eq!((numbers(&narrow), narrow.dropped()), (vec![11], 7));
}

#[test]
fn r20_a_capacity_of_none_is_one() {
    let bench = Bench::new(textbook());
    let channel = bench.engine.subscribe(0);
    bench.engine.force_open(T).unwrap();
    assert_eq!(channel.try_recv().unwrap().sequence, 1);
}

#[test]
fn r20_a_channel_ends_with_its_engine_after_what_it_holds() {
    let bench = Bench::new(textbook());
    let channel = bench.engine.subscribe(10);
    bench.engine.force_open(T).unwrap();
    drop(bench);
    assert_eq!(channel.recv().unwrap().sequence, 1);
    assert!(channel.recv().is_err());
    assert_eq!(channel.try_recv().unwrap_err(), TryRecvError::Disconnected);
    assert_eq!(channel.recv_timeout(ms(1)).unwrap_err(), RecvTimeoutError::Disconnected);
}

#[test]
fn r20_a_subscriber_that_went_away_disturbs_nobody() {
    let bench = Bench::new(textbook());
    let (gone, stays) = (bench.engine.subscribe(1), bench.engine.subscribe(10));
    drop(gone);
    let target = bench.engine.target(T).unwrap();
    assert!(target.force_open() && target.release());
    assert_eq!(std::iter::from_fn(|| stays.try_recv().ok()).count(), 2);
}

#[test]
fn r20_a_subscriber_on_another_thread_hears_all_in_order_or_it_is_counted() {
    let bench = Bench::with(textbook(), |builder| builder.log_capacity(1_000_000));
    let channel = bench.engine.subscribe(1_000_000);
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || -> Vec<u64> {
            std::iter::from_fn(|| channel.recv().ok()).map(|transition| transition.sequence).collect()
        });
        let moved = race(4, |_| {
            let target = bench.engine.target(T).unwrap();
            (0..3_000).filter(|step| if step % 2 == 0 { target.force_open() } else { target.release() }).count()
        });
        let dropped = bench.engine.transitions_dropped() as usize;
        drop(bench);
        let heard = reader.join().unwrap();
        assert!(heard.is_sorted_by(|one, next| one < next));
        assert_eq!(heard.len() + dropped, moved.iter().sum::<usize>());
        assert!(heard.len() > 1_000, "{} transitions are too few to collide", heard.len());
    });
}
