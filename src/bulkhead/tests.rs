use super::*;

fn take(bulkhead: &Bulkhead, stripe: usize, times: usize) -> usize {
    (0..times).filter(|_| bulkhead.acquire(stripe).is_ok()).count()
}

#[test]
fn every_limit_admits_exactly_itself() {
    for limit in [0, 1, 2, 3, 127, 128, 200, 1_000] {
        let bulkhead = Bulkhead::new(limit);
        assert_eq!(take(&bulkhead, 0, 1_100), limit as usize);
        assert_eq!(bulkhead.acquire(0), Err(Refused::Full { limit }));
        (0..limit).for_each(|_| bulkhead.release(0));
        assert_eq!(bulkhead.usage(), Usage { in_flight: 0, settled: u64::from(limit) });
        assert_eq!(take(&bulkhead, 0, 1_100), limit as usize);
    }
}

#[test]
fn permits_stashed_in_other_stripes_are_found() {
    let bulkhead = Bulkhead::over(600, Stripes::grown(4));
    for stripe in 0..4 {
        assert_eq!(take(&bulkhead, stripe, 2), 2);
        bulkhead.release(stripe);
        bulkhead.release(stripe);
    }
    assert!(bulkhead.stripes.iter().all(|stripe| stripe.magazine.load().stash() > 0));
    assert_eq!(take(&bulkhead, 0, 700), 600);
}

#[test]
fn a_lowered_limit_holds_whatever_was_stashed() {
    let bulkhead = Bulkhead::over(1_000, Stripes::grown(2));
    assert_eq!(take(&bulkhead, 0, 8) + take(&bulkhead, 1, 8), 16);
    (0..8).for_each(|_| bulkhead.release(1));
    bulkhead.set_limit(3);
    assert_eq!(take(&bulkhead, 1, 1), 0);
    (0..6).for_each(|_| bulkhead.release(0));
    assert_eq!(bulkhead.usage().in_flight, 2);
    assert_eq!(take(&bulkhead, 0, 9), 1);
    bulkhead.set_limit(10);
    assert_eq!(take(&bulkhead, 0, 9), 7);
}

#[test]
fn a_stash_spills_past_its_high_mark() {
    let bulkhead = Bulkhead::new(10_000);
    assert_eq!(take(&bulkhead, 0, 5_000), 5_000);
    (0..5_000).for_each(|_| bulkhead.release(0));
    assert!(bulkhead.magazine(0).load().stash() <= HIGH_MARK);
    assert_eq!(bulkhead.usage().in_flight, 0);
}

#[test]
fn only_an_idle_bulkhead_retires_and_it_comes_back_fresh() {
    let bulkhead = Bulkhead::new(1_000);
    assert_eq!(take(&bulkhead, 0, 1), 1);
    assert!(!bulkhead.retire());
    bulkhead.release(0);
    assert!(bulkhead.retire());
    assert_eq!(bulkhead.acquire(0), Err(Refused::Retired));
    bulkhead.reinstate(1);
    assert_eq!(take(&bulkhead, 0, 2), 1);
}

#[test]
fn magazines_open_from_the_limit_on_that_can_spare_their_batches() {
    fn opens(stripes: usize, limit: u64) -> bool {
        let bulkhead = Bulkhead::over(u32::try_from(limit).unwrap(), Stripes::grown(stripes));
        assert_eq!(take(&bulkhead, 0, 1), 1);
        !bulkhead.magazine(0).load().is_closed()
    }
    assert_eq!((opens(1, 4 * BATCH - 1), opens(1, 4 * BATCH)), (false, true));
    assert_eq!((opens(4, 16 * BATCH - 1), opens(4, 16 * BATCH)), (false, true));
}

#[test]
fn a_refill_brings_a_batch_and_the_permit_itself() {
    let bulkhead = Bulkhead::new(1_000);
    assert_eq!(take(&bulkhead, 0, 2), 2);
    assert_eq!((bulkhead.pool.load().out(), bulkhead.magazine(0).load().stash()), (2 + BATCH, BATCH));
    assert_eq!(bulkhead.usage().in_flight, 2);
}

#[test]
fn settled_calls_go_on_counting_past_the_word() {
    let bulkhead = Bulkhead::new(1_000);
    let _ = bulkhead.magazine(0).give(0, magazine::SETTLED_LAP - 1);
    assert_eq!(take(&bulkhead, 0, 3), 3);
    bulkhead.cancel(0);
    assert_eq!(bulkhead.usage().settled, magazine::SETTLED_LAP - 1);
    bulkhead.release(0);
    assert_eq!(bulkhead.usage().settled, magazine::SETTLED_LAP);
    bulkhead.release(0);
    assert_eq!(bulkhead.usage(), Usage { in_flight: 0, settled: magazine::SETTLED_LAP + 1 });
}

#[test]
fn a_cancelled_permit_is_no_settled_call() {
    let bulkhead = Bulkhead::new(1);
    assert_eq!(take(&bulkhead, 0, 1), 1);
    bulkhead.cancel(0);
    assert_eq!(bulkhead.usage(), Usage { in_flight: 0, settled: 0 });
}

#[test]
fn a_permit_at_hand_is_taken_without_more() {
    let bulkhead = Bulkhead::over(1_000, Stripes::grown(2));
    assert!(!bulkhead.acquire_stashed(0));
    assert_eq!(take(&bulkhead, 0, 2), 2);
    assert!(bulkhead.acquire_stashed(0) && !bulkhead.acquire_stashed(1));
    bulkhead.sweep();
    assert!(!bulkhead.acquire_stashed(0));
    assert_eq!(bulkhead.usage().in_flight, 3);
}

#[test]
fn full_at_a_glance_is_full_without_a_stash_anywhere() {
    let bulkhead = Bulkhead::new(2);
    assert_eq!((bulkhead.limit(), bulkhead.limit_if_full()), (2, None));
    assert_eq!(take(&bulkhead, 0, 1), 1);
    assert_eq!(bulkhead.limit_if_full(), None);
    assert_eq!(take(&bulkhead, 0, 1), 1);
    assert_eq!(bulkhead.limit_if_full(), Some(2));
    bulkhead.set_limit(1);
    assert_eq!(bulkhead.limit_if_full(), Some(1));
    (0..2).for_each(|_| bulkhead.release(0));
    assert!(bulkhead.retire());
    bulkhead.set_limit(0);
    assert_eq!(bulkhead.limit_if_full(), None);

    let stashing = Bulkhead::new(200);
    assert_eq!(take(&stashing, 0, 300), 200);
    stashing.release(0);
    assert_eq!(stashing.limit_if_full(), None);
}

#[test]
fn refusals_add_up_over_the_stripes_by_reason() {
    let bulkhead = Bulkhead::over(1, Stripes::grown(2));
    for thread in [0, 1, 1] {
        bulkhead.count(thread, |refusals| &refusals.open);
        (0..2).for_each(|_| bulkhead.count(thread, |refusals| &refusals.probing));
        (0..3).for_each(|_| bulkhead.count(thread, |refusals| &refusals.saturated));
        (0..4).for_each(|_| bulkhead.count(thread, |refusals| &refusals.shed));
        (0..5).for_each(|_| bulkhead.count(thread, |refusals| &refusals.forced));
    }
    let Refusals { open, probing, saturated, shed, forced } = bulkhead.refusals();
    assert_eq!([open, probing, saturated, shed, forced], [3, 6, 9, 12, 15]);
    assert_eq!(take(&bulkhead, 0, 1), 1);
    bulkhead.release(0);
    assert!(bulkhead.retire());
    bulkhead.reset_counts();
    assert_eq!((bulkhead.refusals().total(), bulkhead.usage().settled), (0, 0));
}

#[test]
fn the_last_stash_past_the_mark_goes_home_by_half() {
    let bulkhead = Bulkhead::new(10_000);
    let most = HIGH_MARK as usize + 40;
    assert_eq!(take(&bulkhead, 0, most), most);
    let mut stash = bulkhead.magazine(0).load().stash();
    while stash < HIGH_MARK {
        bulkhead.release(0);
        stash += 1;
    }
    assert_eq!(bulkhead.magazine(0).load().stash(), HIGH_MARK);
    let out = bulkhead.pool.load().out();
    bulkhead.release(0);
    // One more than the mark; half of that went home.
    let half = HIGH_MARK.div_ceil(2);
    assert_eq!((bulkhead.magazine(0).load().stash(), bulkhead.pool.load().out()), (half + 1, out - half));
}

#[test]
fn raising_a_limit_or_setting_the_same_closes_no_stash() {
    let bulkhead = Bulkhead::new(1_000);
    assert_eq!(take(&bulkhead, 0, 2), 2);
    for limit in [1_000, 2_000] {
        bulkhead.set_limit(limit);
        assert!(bulkhead.acquire_stashed(0), "limit {limit}");
    }
    bulkhead.set_limit(1_999);
    assert!(!bulkhead.acquire_stashed(0));
}

#[test]
fn a_lone_caller_needs_no_second_stripe() {
    let bulkhead = Bulkhead::new(200);
    for _ in 0..100 {
        assert_eq!(take(&bulkhead, 0, 201), 200);
        bulkhead.count(0, |refusals| &refusals.saturated);
        (0..200).for_each(|_| bulkhead.release(0));
    }
    assert_eq!(bulkhead.stripes.count(), 1);
}

#[test]
fn a_refusal_with_one_stripe_leaves_it_open() {
    let bulkhead = Bulkhead::new(200);
    assert_eq!(take(&bulkhead, 0, 201), 200);
    bulkhead.release(0);
    assert!(bulkhead.acquire_stashed(0));
}

#[test]
fn a_spill_that_others_forestalled_leaves_the_stash_alone() {
    let bulkhead = Bulkhead::new(10_000);
    let most = HIGH_MARK as usize;
    assert_eq!(take(&bulkhead, 0, most), most);
    (bulkhead.magazine(0).load().stash()..HIGH_MARK / 2).for_each(|_| bulkhead.release(0));
    assert_eq!(bulkhead.magazine(0).load().stash(), HIGH_MARK / 2);
    let words = || (bulkhead.magazine(0).load(), bulkhead.pool.load());
    let left = words();
    let at_the_mark = magazine::Cell::default();
    assert!(at_the_mark.open(0));
    let _ = at_the_mark.give(HIGH_MARK, 0);
    // What was there when the permit was given, and is taken by the time that half of it should go.
    bulkhead.after_giving(bulkhead.magazine(0), at_the_mark.load(), 0);
    assert_eq!(words(), left);
}

#[test]
fn nothing_is_stashed_near_the_limit() {
    let bulkhead = Bulkhead::over(256, Stripes::grown(2));
    let take = |thread, permits| (0..permits).for_each(|_| assert_eq!(bulkhead.acquire(thread), Ok(())));
    take(0, 180);
    // The last batch left one for each stripe; after it there were none.
    assert_eq!((bulkhead.pool.load().out(), bulkhead.pool.load().open()), (180, 1));
    take(0, 60);
    take(1, 1);
    assert_eq!((bulkhead.pool.load().out(), bulkhead.pool.load().open()), (241, 1));
}
