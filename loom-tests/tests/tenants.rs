//! A slot that goes from one tenant to the next: what callers find that remember the first, and what the second counts.

use loom_tests::model;
use loom_tests::room::{Growing, Striped};
use loom_tests::scenes;
use loom_tests::twins::{Lapse, Lodging};
use portcullis::internals::Bulkhead;
use portcullis::internals::magazine::SETTLED_LAP;

#[test]
fn a_caller_that_remembers_enters_its_own_tenants_or_none() {
    scenes::a_caller_that_remembers::<{ Lapse::NONE }>(
        "tenants: a caller that remembers enters its own tenant's or none",
    );
}

#[test]
fn a_caller_that_remembers_is_never_refused_for_the_next() {
    scenes::a_caller_that_remembers_is_refused::<{ Lapse::NONE }>(
        "tenants: a caller that remembers is never refused for the next",
    );
}

#[test]
fn a_caller_that_remembers_never_finds_the_next_full() {
    scenes::a_caller_that_remembers_finds_it_full::<{ Lapse::NONE }>(
        "tenants: a caller that remembers never finds the next full",
    );
}

/// Large enough for stashes: the caller may take what the second tenant's call left in one.
#[test]
fn a_caller_that_remembers_gives_back_what_it_took_from_a_stash() {
    model(
        "tenants: a caller that remembers gives back what it took from a stash",
        &[("unchanged", "stays", 2), ("unchanged", "recorded", 1), ("retired", "recorded", 1)],
        || Lodging::<{ Lapse::NONE }>::new(scenes::short(4)),
        [|slot: &Lodging<{ Lapse::NONE }>| slot.pass(0), |slot| if slot.hand_on() { slot.pass(1) } else { "stays" }],
        |slot, [first, second]| {
            let usage = slot.words.bulkhead.usage();
            assert_eq!(usage.in_flight, 0);
            (first, second, usage.settled)
        },
    );
}

/// Whose call it was.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Call {
    /// Settled with one tenant or the other.
    Settled,
    Retired,
    /// A slot in use stays.
    Kept,
    /// Handed on.
    Gone,
}

/// Ends a call if it is let in, whoever the tenant is.
fn pass(bulkhead: &Bulkhead, thread: usize) -> Call {
    match bulkhead.acquire(thread) {
        Ok(()) => {
            bulkhead.release(thread);
            Call::Settled
        }
        Err(_) => Call::Retired,
    }
}

fn hand_on(bulkhead: &Bulkhead, limit: u32) -> Call {
    if !bulkhead.retire() {
        return Call::Kept;
    }
    bulkhead.reset_counts();
    bulkhead.reinstate(limit);
    Call::Gone
}

#[test]
fn a_straggler_is_counted_with_the_tenant_that_let_it_in() {
    model(
        "tenants: a straggler is counted with the tenant that let it in",
        &[
            (Call::Settled, Call::Kept, SETTLED_LAP),
            (Call::Settled, Call::Gone, 0),
            (Call::Settled, Call::Gone, 1),
            (Call::Retired, Call::Gone, 0),
        ],
        || Bulkhead::with_settled(1, SETTLED_LAP - 1),
        [|bulkhead: &Bulkhead| pass(bulkhead, 0), |bulkhead| hand_on(bulkhead, 1)],
        |bulkhead, [straggler, evictor]| {
            let usage = bulkhead.usage();
            assert_eq!(usage.in_flight, 0);
            (straggler, evictor, usage.settled)
        },
    );
}

#[test]
fn a_straggler_at_a_stash_is_counted_with_the_tenant_that_let_it_in() {
    model(
        "tenants: a straggler at a stash is counted with the tenant that let it in",
        &[
            (Call::Settled, Call::Kept, 2),
            (Call::Settled, Call::Gone, 0),
            (Call::Settled, Call::Gone, 1),
            (Call::Retired, Call::Gone, 0),
        ],
        || {
            let bulkhead = Striped::<2>::new(8);
            assert_eq!(pass(&bulkhead, 0), Call::Settled);
            bulkhead
        },
        [|bulkhead: &Striped<2>| pass(bulkhead, 0), |bulkhead| hand_on(bulkhead, 8)],
        |bulkhead, [straggler, evictor]| {
            let usage = bulkhead.usage();
            assert_eq!(usage.in_flight, 0);
            (straggler, evictor, usage.settled)
        },
    );
}

/// Whoever retires a slot sees the stripes that its calls made.
#[test]
fn a_stripe_that_came_with_the_last_call_starts_again_too() {
    model(
        "tenants: a stripe that came with the last call starts again, too",
        &[
            (Call::Settled, Call::Kept, 2),
            (Call::Settled, Call::Gone, 0),
            (Call::Settled, Call::Gone, 1),
            (Call::Retired, Call::Gone, 0),
        ],
        || {
            let bulkhead = Growing::new(1);
            assert_eq!(pass(&bulkhead, 0), Call::Settled);
            bulkhead
        },
        [
            |bulkhead: &Growing| {
                bulkhead.meet();
                pass(bulkhead, 1)
            },
            |bulkhead| hand_on(bulkhead, 1),
        ],
        |bulkhead, [straggler, evictor]| {
            let usage = bulkhead.usage();
            assert_eq!(usage.in_flight, 0);
            (straggler, evictor, usage.settled)
        },
    );
}

/// The call that wraps its magazine's count has given its permit back before it counts the lap. If the slot is handed on in between, which
/// takes a target that was seen idle twice meanwhile, the lap is the next tenant's.
#[test]
fn a_lap_counted_over_an_eviction_is_counted_with_the_next_tenant() {
    model(
        "tenants: a lap counted over an eviction is counted with the next tenant",
        &[
            (Call::Settled, Call::Kept, SETTLED_LAP),
            (Call::Settled, Call::Gone, SETTLED_LAP),
            (Call::Settled, Call::Gone, 0),
            (Call::Settled, Call::Gone, 1),
            (Call::Retired, Call::Gone, 0),
        ],
        || Bulkhead::with_settled(4, SETTLED_LAP - 1),
        [|bulkhead: &Bulkhead| pass(bulkhead, 0), |bulkhead| hand_on(bulkhead, 4)],
        |bulkhead, [straggler, evictor]| {
            let usage = bulkhead.usage();
            assert_eq!(usage.in_flight, 0);
            (straggler, evictor, usage.settled)
        },
    );
}

#[test]
fn the_first_call_of_a_tenant_finds_nothing_counted() {
    scenes::a_tenant_that_looks("tenants: the first call of a tenant finds nothing counted", |bulkhead| {
        bulkhead.reset_counts();
        bulkhead.reinstate(1);
    });
}
