//! The adaptive limit: on a simulated upstream with a knee (`adaptive_sim` has the model), and step by step.

use portcullis::{Adaptive, Permit, Policy, PolicyBuilder, Rejection, Settled, Snapshot, UNLIMITED};

use super::adaptive_sim::{Service, World, bench};
use crate::common::{Bench, T, ms, secs, take, textbook};

fn gradient() -> PolicyBuilder {
    Policy::builder().max_in_flight(1_000).adaptive(Adaptive::gradient())
}

fn aimd(millis: u64) -> PolicyBuilder {
    Policy::builder().max_in_flight(1_000).adaptive(Adaptive::aimd(ms(millis)))
}

/// Asserts that a limit is within 20 % of the knee, and that the upstream is kept busy.
#[track_caller]
fn at_the_knee(world: &World<'_>, (limit, done): (f64, f64), what: &str) {
    let knee = world.workers as f64;
    let busy = done / world.capacity();
    assert!((0.8..=1.2).contains(&(limit / knee)), "{what}: a limit of {limit:.1} where the knee is {knee}");
    assert!(busy > 0.9, "{what}: {busy:.2} of the capacity");
}

/// A minute to find the knee, twenty seconds to follow it; judged by the mean over the twenty seconds after that. The load is one and a half times
/// the capacity throughout, from 20 calls at the start.
fn finds_and_follows(policy: fn() -> PolicyBuilder, workers: usize, kind: Service, seed: u64) {
    let bench = bench(policy());
    let mut world = World::new(&bench, seed, workers);
    world.kind = kind;
    let what = format!("{workers} workers, {kind:?}, seed {seed}");
    world.run(secs(60));
    let found = world.run(secs(20));
    at_the_knee(&world, found, &format!("{what}, found"));
    world.workers = workers / 2;
    world.run(secs(20));
    let followed = world.run(secs(20));
    at_the_knee(&world, followed, &format!("{what}, halved"));
    world.workers = workers;
    world.run(secs(20));
    let back = world.run(secs(20));
    at_the_knee(&world, back, &format!("{what}, back"));
}

#[test]
fn the_gradient_finds_the_knee_within_a_fifth_and_follows_it_down_and_up() {
    for seed in 1..=3 {
        finds_and_follows(gradient, 40, Service::Exponential, seed);
    }
    finds_and_follows(gradient, 100, Service::Exponential, 4);
    finds_and_follows(gradient, 60, Service::Even, 5);
}

#[test]
fn aimd_does_if_its_bound_is_right() {
    finds_and_follows(|| aimd(23), 40, Service::Exponential, 1);
    finds_and_follows(|| aimd(23), 60, Service::Even, 2);
}

#[test]
fn the_gradient_has_its_limit_back_where_the_target_is_slower_and_not_smaller() {
    for seed in 1..=3 {
        let bench = bench(gradient());
        let mut world = World::new(&bench, seed, 40);
        world.run(secs(60));
        world.service *= 2.0;
        world.load(1.5);
        world.run(secs(30));
        let found = world.run(secs(20));
        at_the_knee(&world, found, &format!("seed {seed}"));
    }
}

/// The least and the most.
fn span(figures: impl IntoIterator<Item = f64>) -> (f64, f64) {
    figures.into_iter().fold((f64::MAX, f64::MIN), |(least, most), figure| (least.min(figure), most.max(figure)))
}

/// The table in `docs::adaptive`, with `--nocapture`. Within a fifth, and within three tenths where what calls take has changed for all of them.
#[test]
fn thirty_runs_find_the_knee_and_follow_it() {
    type Change = fn(&mut World<'_>);
    let changes: [(&str, f64, Change); 4] = [
        ("the start", 1.2, |_| {}),
        ("half of the workers go", 1.2, |world| world.workers /= 2),
        ("they come back", 1.25, |world| world.workers *= 2),
        ("four times as slow", 1.3, |world| {
            world.service *= 4.0;
            world.load(1.5);
        }),
    ];
    let mut figures = vec![Vec::new(); changes.len()];
    for (workers, seed) in [20, 40, 100].into_iter().flat_map(|workers| (101..=110).map(move |seed| (workers, seed))) {
        let bench = bench(gradient());
        let mut world = World::new(&bench, seed, workers);
        for ((_, _, change), figures) in changes.iter().zip(&mut figures) {
            change(&mut world);
            let (first, _) = world.run(secs(5));
            world.run(secs(15));
            let (limit, done) = world.run(secs(20));
            let knee = world.workers as f64;
            figures.push([limit / knee, first / knee, done / world.capacity()]);
        }
    }
    for ((what, bound, _), runs) in changes.iter().zip(&figures) {
        let of = |column: usize| span(runs.iter().map(|figures| figures[column]));
        let (limit, first, busy) = (of(0), of(1), of(2));
        let above = runs.iter().filter(|figures| figures[0] > 1.2).count();
        let share = |(least, most)| format!("{least:.2} to {most:.2}");
        println!("| {what} | {} | {above} of 30 | {} | {} |", share(limit), share(first), share(busy));
        assert!(limit.0 >= 0.8 && limit.1 <= *bound && busy.0 > 0.85, "{what}: {limit:?}, {busy:?}");
    }
}

#[test]
fn a_target_with_calls_to_spare_keeps_a_limit_near_what_it_uses() {
    for (policy, seed) in [(gradient(), 1), (gradient(), 2), (aimd(23), 3)] {
        let bench = bench(policy);
        let mut world = World::new(&bench, seed, 100);
        // 30 calls in flight on average.
        world.load(0.3);
        world.run(secs(60));
        let (limit, done) = world.run(secs(60));
        assert!((30.0..=100.0).contains(&limit), "seed {seed}: {limit}");
        assert!(done > 0.97 * world.rate, "seed {seed}: {done} of {} calls per second", world.rate);
    }
}

#[test]
fn outliers_and_failures_below_a_tenth_do_no_harm() {
    let bench = bench(gradient());
    let mut world = World::new(&bench, 5, 60);
    // One in a thousand takes two seconds, a hundred times the mean; one in thirty fails.
    (world.outliers, world.fails) = (1_000, 30);
    world.load(1.5);
    world.run(secs(60));
    let (limit, _) = world.run(secs(20));
    assert!((48.0..=72.0).contains(&limit), "{limit}");
}

#[test]
fn few_calls_move_nothing() {
    let bench = bench(gradient().adaptive(Adaptive::gradient().start(50)));
    let mut world = World::new(&bench, 1, 100);
    world.rate = 1.0;
    world.run(secs(300));
    assert_eq!(world.limit(), 25, "the first probe goes on");
    world.run(secs(1_200));
    assert_eq!(world.limit(), 50);
}

/// So many calls at once that take so long; those that there is no room for are refused.
fn wave(bench: &Bench, calls: usize, millis: u64) {
    let permits: Vec<_> = (0..calls).filter_map(|_| bench.admit().ok()).collect();
    bench.advance(ms(millis));
    for permit in permits {
        permit.success();
    }
}

fn limit(bench: &Bench) -> u32 {
    bench.engine.target(T).unwrap().snapshot().limit
}

/// Waves that use the limit until it has moved; where it is then.
fn moved(bench: &Bench, millis: u64) -> u32 {
    let before = limit(bench);
    for _ in 0..1_000 {
        wave(bench, before as usize, millis);
        if limit(bench) != before {
            break;
        }
    }
    limit(bench)
}

#[test]
fn a_limit_begins_at_its_start_and_moves_by_what_calls_take() {
    let bench = Bench::new(aimd(20));
    wave(&bench, 1, 10);
    assert_eq!(limit(&bench), 20);
    assert_eq!([moved(&bench, 20), moved(&bench, 20), moved(&bench, 21)], [21, 22, 19]);
    let Snapshot { adaptive: Some(adaptive), .. } = bench.snapshot() else { panic!("the policy is adaptive") };
    assert_eq!((adaptive.baseline, adaptive.by_hand), (None, false));
    // Of the wave that ended the window before, some were left over.
    assert!(adaptive.latency.is_some_and(|latency| latency > ms(20) && latency < ms(21)), "{adaptive:?}");
    assert_eq!(Bench::new(textbook()).engine.target(T).unwrap().snapshot().adaptive, None);
}

#[test]
fn r17_a_limit_that_fell_admits_nobody_until_the_count_is_under_it() {
    let bench = Bench::new(aimd(20));
    let mut held = take(&bench, 20);
    let end_one = |held: &mut Vec<Permit<'_>>| {
        bench.advance(ms(50));
        held.remove(0).success();
    };
    loop {
        end_one(&mut held);
        if limit(&bench) < 20 {
            break;
        }
        held.push(bench.enter());
    }
    assert_eq!((limit(&bench), bench.snapshot().in_flight), (18, 19));
    assert_eq!(bench.refusal(), Rejection::Saturated { limit: 18 });
    end_one(&mut held);
    assert_eq!(bench.refusal(), Rejection::Saturated { limit: 18 });
    end_one(&mut held);
    bench.enter().success();
}

#[test]
fn a_limit_set_by_hand_stays_until_it_is_released() {
    let bench = Bench::new(aimd(20));
    assert_eq!(moved(&bench, 10), 21);
    for by_hand in [30, 0] {
        let early = bench.enter();
        bench.engine.set_limit(T, by_hand).unwrap();
        early.success();
        for _ in 0..100 {
            wave(&bench, 30, 10);
        }
        assert_eq!(limit(&bench), by_hand);
        assert!(bench.snapshot().adaptive.unwrap().by_hand);
        // A policy that says the same about the limit doesn't release it either.
        bench.engine.set_policy(T, aimd(20).jitter(f64::from(by_hand) / 100.0).build().unwrap()).unwrap();
        assert_eq!(limit(&bench), by_hand);
        assert_eq!((bench.engine.release_limit(T), bench.engine.release_limit(T)), (Ok(true), Ok(false)));
        assert_eq!(limit(&bench), 20);
        assert_eq!(moved(&bench, 10), 21);
    }
    // Without adaptation it is the policy's.
    let bench = Bench::new(textbook().max_in_flight(7));
    bench.engine.set_limit(T, 3).unwrap();
    assert_eq!((bench.engine.release_limit(T), limit(&bench)), (Ok(true), 7));
}

#[test]
fn r17_another_policy_bounds_the_limit_starts_it_anew_or_stops_it() {
    let bench = Bench::new(aimd(20));
    let adopt = |policy: PolicyBuilder| {
        bench.engine.set_policy(T, policy.build().unwrap()).unwrap();
        limit(&bench)
    };
    assert_eq!((moved(&bench, 10), moved(&bench, 10)), (21, 22));
    assert_eq!(adopt(aimd(20).failures(3)), 22);
    assert_eq!(adopt(aimd(20).max_in_flight(21)), 21);
    assert_eq!(adopt(aimd(20).adaptive(Adaptive::aimd(ms(20)).min(40).start(50))), 40);
    assert_eq!((moved(&bench, 10), adopt(aimd(30))), (41, 20));
    assert_eq!((adopt(aimd(30).no_adaptive()), bench.snapshot().adaptive), (1_000, None));
    let permit = bench.enter();
    assert_eq!(adopt(gradient()), 20);
    // Its start wasn't noted: it says nothing.
    assert_eq!(permit.success(), Settled::Recorded);
    assert_eq!(bench.snapshot().adaptive.unwrap().latency, None);
}

#[test]
fn equal_bounds_hold_the_limit() {
    let bench = Bench::new(gradient().max_in_flight(12).adaptive(Adaptive::gradient().min(12)));
    for round in 0..2_000 {
        wave(&bench, 12, 10 + round % 40);
        assert_eq!(limit(&bench), 12);
    }
    assert!(bench.snapshot().adaptive.unwrap().baseline.is_some());
}

#[test]
fn ignored_calls_probes_and_stale_ones_say_nothing() {
    let bench = Bench::new(aimd(20).no_window().consecutive_failures(1).jitter(0.0).successes_to_close(1));
    let latency = || bench.snapshot().adaptive.unwrap().latency;
    for _ in 0..500 {
        let permit = bench.enter();
        bench.advance(ms(10));
        permit.ignore();
        let permit = bench.enter();
        bench.advance(ms(10));
        drop(permit);
    }
    assert_eq!((latency(), limit(&bench)), (None, 20));
    for _ in 0..500 {
        let stale = bench.enter();
        bench.fail(1);
        bench.advance(secs(60));
        assert_eq!(stale.success(), Settled::Stale);
        let probe = bench.probe();
        bench.advance(ms(10));
        probe.success();
    }
    // The failures did, which took no time: 500 of them are two windows.
    assert_eq!((latency(), limit(&bench)), (Some(std::time::Duration::from_nanos(1)), 16));
}

#[test]
fn a_clock_that_steps_back_stops_nothing() {
    let bench = Bench::new(aimd(20));
    bench.advance(secs(3_600));
    assert_eq!(moved(&bench, 10), 21);
    bench.time.decrement(secs(3_600));
    assert_eq!(moved(&bench, 10), 22);
    assert_eq!(moved(&bench, 60), 19);
}

#[test]
fn another_tenant_of_the_slot_begins_anew() {
    let bench = Bench::with(aimd(20), |engine| engine.max_targets(1).idle_after(secs(1)));
    assert_eq!((moved(&bench, 10), moved(&bench, 10)), (21, 22));
    bench.engine.sweep();
    bench.advance(secs(2));
    assert_eq!(bench.engine.sweep(), 1);
    bench.engine.admit("next").unwrap().success();
    let next = bench.engine.snapshot("next").unwrap();
    assert_eq!((next.limit, next.adaptive.unwrap().latency), (20, None));
}

#[test]
fn r18_settings_that_cannot_work_are_refused_with_their_range() {
    let refused = |policy: PolicyBuilder| {
        let error = policy.build().unwrap_err();
        (error.field().to_owned(), error.value().to_owned(), error.expected().to_owned())
    };
    let told = |field: &str, value: &str, expected: &str| (field.to_owned(), value.to_owned(), expected.to_owned());
    let p = |adaptive| Policy::builder().max_in_flight(100).adaptive(adaptive);
    let g = Adaptive::gradient;
    assert_eq!(refused(p(g().min(0))), told("adaptive.min", "0", "1 to 100"));
    assert_eq!(refused(p(g().min(101))), told("adaptive.min", "101", "1 to 100"));
    assert_eq!(refused(p(g().min(9).start(8))), told("adaptive.start", "8", "9 to 100"));
    assert_eq!(refused(p(g().start(101))), told("adaptive.start", "101", "1 to 100"));
    assert_eq!(refused(p(g().start(UNLIMITED)).unlimited()), told("adaptive.start", "16777215", "1 to 16777214"));
    for tolerance in [1.0, 4.1, f64::NAN] {
        assert_eq!(refused(p(g().tolerance(tolerance))).0, "adaptive.tolerance");
    }
    let aimd = |millis| Adaptive::aimd(ms(millis));
    assert_eq!(refused(p(aimd(10).tolerance(1.5))).2, "left out: aimd has none");
    assert_eq!(refused(p(aimd(16_001))), told("adaptive.latency", "16.001s", "1µs to 16s"));
    assert_eq!(refused(p(aimd(0))).0, "adaptive.latency");
    // What a limit below the usual start does to it.
    let few = Policy::builder().max_in_flight(5).adaptive(g()).build().unwrap();
    assert_eq!(few, Policy::builder().max_in_flight(5).adaptive(g().start(5).min(1).tolerance(1.15)).build().unwrap());
    assert_eq!(few.to_builder().build().unwrap(), few);
    let many = Policy::builder().adaptive(g().min(50));
    assert_eq!(many.clone().build(), many.adaptive(g().min(50).start(50)).build());
}
