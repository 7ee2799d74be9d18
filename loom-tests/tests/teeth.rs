//! The harness must be able to fail: every broken twin here is caught, and by the assertion that is meant to.

use loom_tests::desk::{Desk, build};
use loom_tests::twins::{
    Flaw, Haste, Lapse, Shelf, Slate, Slip, SplitBucket, Tagged, Twin, ask_and_enter_anyway, ask_slot_first,
    trip_blindly,
};
use loom_tests::{model, scenes};
use portcullis::internals::{Bulkhead, Ending, Gate, GateWord, Now, ProbeRules};
use portcullis::{Cause, Outcome, Policy, State};

const RULES: ProbeRules = ProbeRules { max_probes: 1, successes_to_close: 1, lease_s: 10 };
const NOW: Now = Now::from_millis(20_000);

fn elapsed() -> Gate {
    Gate::from_bits(GateWord::open(7, 0, 20_000).bits())
}

fn closed() -> Gate {
    Gate::from_bits(GateWord::closed(1, 0).bits())
}

#[test]
#[should_panic(expected = "two callers probe")]
fn a_caller_that_enters_on_a_lost_cas() {
    model(
        "teeth: a caller that enters on a lost CAS",
        &[[true, false], [false, true]],
        elapsed,
        [|gate: &Gate| ask_and_enter_anyway(gate, NOW, RULES); 2],
        |_, entered| {
            assert!(entered != [true; 2], "two callers probe");
            entered
        },
    );
}

#[test]
#[should_panic(expected = "the window of one generation trips twice")]
fn a_trip_that_looks_at_no_generation() {
    model(
        "teeth: a trip that looks at no generation",
        &[()],
        closed,
        [|gate: &Gate| trip_blindly(gate, 9); 2],
        |gate, _| assert_eq!(gate.load().generation(), 2, "the window of one generation trips twice"),
    );
}

#[test]
#[should_panic(expected = "a full bulkhead spent a probe")]
fn a_probe_slot_taken_before_the_permit() {
    model(
        "teeth: a probe slot taken before the permit",
        &[[true, false], [false, false]],
        || {
            let bulkhead = Bulkhead::new(1);
            assert!(bulkhead.acquire(0).is_ok());
            (elapsed(), bulkhead)
        },
        [
            |(gate, bulkhead): &(Gate, Bulkhead)| ask_slot_first(gate, bulkhead, NOW, RULES),
            |(_, bulkhead)| {
                bulkhead.release(0);
                false
            },
        ],
        |(gate, _), asked| {
            assert!(asked[0] || gate.load().state() == State::Open, "a full bulkhead spent a probe");
            asked
        },
    );
}

#[test]
#[should_panic(expected = "a straggler wiped the new window")]
fn a_window_reset_on_a_gate_read_before_the_word() {
    model(
        "teeth: a window reset on a gate read before the word",
        &[()],
        || (Tagged::new(0), closed()),
        [
            |(window, gate): &(Tagged, Gate)| window.record(1, gate),
            |(window, gate)| {
                let _ = gate.apply(|word| word.restart(Now::default()));
                window.record(2, gate);
            },
        ],
        |(window, _), _| assert_eq!(window.count(2), 1, "a straggler wiped the new window"),
    );
}

#[test]
#[should_panic(expected = "an outcome of the new bucket is lost")]
fn a_bucket_reset_in_one_step_and_counted_in_another() {
    model(
        "teeth: a bucket reset in one step and counted in another",
        &[()],
        || SplitBucket::new(1, 5),
        [|bucket: &SplitBucket| bucket.record(2); 2],
        |bucket, _| assert_eq!(bucket.count(), 2, "an outcome of the new bucket is lost"),
    );
}

#[test]
#[should_panic(expected = "an outcome reached another tenant")]
fn a_permit_given_back_before_its_outcome_is_recorded() {
    model(
        "teeth: a permit given back before its outcome is recorded",
        &[[("recorded", None), ("stays", None)], [("recorded", None), ("by hand", Some(Cause::Forgotten))]],
        || Desk::with_calls(Policy::default(), 1),
        [
            |desk: &Desk| {
                desk.words.release();
                desk.record(desk.granted(0), Ending::Settled(Outcome::Failure), 0)
            },
            |desk| desk.recycle(),
        ],
        |_, said| said,
    );
}

/// What catches the twins of the bulkhead is their flaw: without one, they pass.
#[test]
fn a_twin_without_a_flaw_holds() {
    scenes::a_stash_elsewhere::<Twin<{ Flaw::NONE }>>("teeth: a twin without a flaw, a stash elsewhere");
    scenes::two_openers::<Twin<{ Flaw::NONE }>>("teeth: a twin without a flaw, two openers");
    scenes::lowering::<Twin<{ Flaw::NONE }>>("teeth: a twin without a flaw, lowering");
    scenes::lowering_during_a_refill::<Twin<{ Flaw::NONE }>>("teeth: a twin without a flaw, a refill");
    scenes::spilling::<Twin<{ Flaw::NONE }>>("teeth: a twin without a flaw, spilling");
}

#[test]
fn a_twin_that_grows_without_a_flaw_holds() {
    scenes::a_stash_from_before::<Twin<{ Flaw::NONE_GROWING }>>("teeth: a twin that grows without a flaw, a stash");
    scenes::a_caller_that_makes_a_stripe::<Twin<{ Flaw::NONE_GROWING }>>(
        "teeth: a twin that grows without a flaw, a caller",
    );
    scenes::lowering_while_growing::<Twin<{ Flaw::NONE_GROWING }>>("teeth: a twin that grows without a flaw, lowering");
}

#[test]
#[should_panic(expected = "one permit too many at rest")]
fn a_version_raised_before_the_limit_is_lowered() {
    scenes::lowering::<Twin<{ Flaw::VERSION_FIRST }>>("teeth: a version raised before the limit is lowered");
}

#[test]
#[should_panic(expected = "one permit too many at rest")]
fn a_magazine_stamped_after_its_announcement() {
    scenes::lowering::<Twin<{ Flaw::LATE_STAMP }>>("teeth: a magazine stamped after its announcement");
}

#[test]
#[should_panic(expected = "an idle bulkhead can't be retired")]
fn an_announcement_that_is_never_struck_off() {
    scenes::two_openers::<Twin<{ Flaw::ANNOUNCEMENT_KEPT }>>("teeth: an announcement that is never struck off");
}

#[test]
#[should_panic(expected = "never reached [[false, true]]")]
fn a_refusal_without_a_look_at_the_other_stripes() {
    scenes::a_stash_elsewhere::<Twin<{ Flaw::NO_SWEEP }>>("teeth: a refusal without a look at the other stripes");
}

#[test]
#[should_panic(expected = "in flight at rest")]
fn a_pool_decremented_blindly() {
    scenes::lowering::<Twin<{ Flaw::BLIND_DECREMENT }>>("teeth: a pool decremented blindly");
}

#[test]
#[should_panic(expected = "permits lie idle for good")]
fn a_batch_left_in_a_closed_magazine() {
    scenes::lowering_during_a_refill::<Twin<{ Flaw::BATCH_LEFT }>>("teeth: a batch left in a closed magazine");
}

#[test]
#[should_panic(expected = "more inside than the limit")]
fn a_spill_that_gives_before_it_takes() {
    scenes::spilling::<Twin<{ Flaw::SPILL_FIRST }>>("teeth: a spill that gives before it takes");
}

#[test]
#[should_panic(expected = "never reached [[true, false]]")]
fn a_sweep_that_forgets_the_first_stripe() {
    scenes::a_stash_from_before::<Twin<{ Flaw::FIRST_FORGOTTEN }>>("teeth: a sweep that forgets the first stripe");
}

#[test]
#[should_panic(expected = "never reached [[true, false]]")]
fn a_refusal_that_knows_of_one_stripe() {
    scenes::a_stash_from_before::<Twin<{ Flaw::STILL_ALONE }>>("teeth: a refusal that knows of one stripe");
}

#[test]
#[should_panic(expected = "reached too [[false, true]]")]
fn a_sweep_of_the_stripes_that_were_there_first() {
    scenes::a_caller_that_makes_a_stripe::<Twin<{ Flaw::SEEN_EARLY }>>(
        "teeth: a sweep of the stripes that were there first",
    );
}

#[test]
#[should_panic(expected = "in flight at rest")]
fn a_first_stripe_that_is_closed_for_good() {
    scenes::a_stash_from_before::<Twin<{ Flaw::STASH_LEFT }>>("teeth: a first stripe that is closed for good");
}

#[test]
fn a_slate_without_a_slip_holds() {
    scenes::two_refusals_each::<Slate<{ Slip::NONE }>>("teeth: a slate without a slip");
}

#[test]
#[should_panic(expected = "a refusal is lost")]
fn a_refusal_that_only_tries() {
    scenes::two_refusals_each::<Slate<{ Slip::LOST }>>("teeth: a refusal that only tries");
}

#[test]
#[should_panic(expected = "a refusal is lost")]
fn a_stripe_in_place_of_the_first() {
    scenes::two_refusals_each::<Slate<{ Slip::REPLACED }>>("teeth: a stripe in place of the first");
}

#[test]
#[should_panic(expected = "a refusal is lost")]
fn a_count_that_moves_to_the_new_stripe() {
    scenes::two_refusals_each::<Slate<{ Slip::MOVED }>>("teeth: a count that moves to the new stripe");
}

/// A failure settles while the slot's tenant goes. Gone, it had no failure; with one, it stays.
fn a_failure_meets_an_eviction<const HASTE: u8>(name: &str) {
    model(
        name,
        // Its call was in flight, or its failure known.
        &[false],
        || Shelf::<HASTE>::new(build(Policy::builder().no_window().consecutive_failures(9)), 1),
        [
            |shelf: &Shelf<HASTE>| {
                shelf.desk.settle(shelf.desk.granted(0), Outcome::Failure);
                false
            },
            |shelf| shelf.evict(),
        ],
        |shelf, [_, gone]| {
            assert!(!gone, "a failure went with its target");
            assert_eq!(shelf.desk.window().1, 1);
            gone
        },
    );
}

/// A caller asks while the slot's tenant goes.
fn a_caller_meets_an_eviction<const HASTE: u8>(name: &str) {
    model(
        name,
        // It enters the first tenant's, which stays, or the second's.
        &[(Some(1), false), (Some(2), true)],
        || Shelf::<HASTE>::new(Policy::default(), 0),
        [
            |shelf: &Shelf<HASTE>| {
                let (_, tenant) = shelf.ask().unwrap_or_else(|| panic!("a retired slot refused"));
                shelf.check(tenant);
                (Some(tenant), false)
            },
            |shelf| (None, shelf.evict()),
        ],
        |_, [(tenant, _), (_, gone)]| (tenant, gone),
    );
}

#[test]
fn a_shelf_without_haste_holds() {
    a_failure_meets_an_eviction::<{ Haste::NONE }>("teeth: a shelf without haste, a failure");
    a_caller_meets_an_eviction::<{ Haste::NONE }>("teeth: a shelf without haste, a caller");
}

#[test]
#[should_panic(expected = "a failure went with its target")]
fn a_target_judged_before_it_is_retired() {
    a_failure_meets_an_eviction::<{ Haste::JUDGED_FIRST }>("teeth: a target judged before it is retired");
}

#[test]
#[should_panic(expected = "a permit on a recycled slot")]
fn a_slot_asked_without_its_shard() {
    a_caller_meets_an_eviction::<{ Haste::ASKED_UNLOCKED }>("teeth: a slot asked without its shard");
}

#[test]
#[should_panic(expected = "a retired slot refused")]
fn a_retired_slot_that_refuses() {
    model(
        "teeth: a retired slot that refuses",
        &[()],
        || Shelf::<{ Haste::ASKED_UNLOCKED }>::new(Policy::default(), 0),
        [
            |shelf: &Shelf<{ Haste::ASKED_UNLOCKED }>| assert!(shelf.ask().is_some(), "a retired slot refused"),
            |shelf| {
                shelf.evict();
            },
        ],
        |_, _| (),
    );
}

#[test]
#[should_panic(expected = "a permit on a recycled slot")]
fn a_target_that_goes_with_a_call_in_flight() {
    a_caller_meets_an_eviction::<{ Haste::NOT_RETIRED }>("teeth: a target that goes with a call in flight");
}

#[test]
#[should_panic(expected = "a permit on a recycled slot")]
fn a_slot_known_before_the_permit_that_keeps_it() {
    scenes::a_caller_that_remembers::<{ Lapse::CHECKED_FIRST }>("teeth: a slot known before the permit that keeps it");
}

#[test]
#[should_panic(expected = "a permit on a recycled slot")]
fn an_epoch_raised_when_the_next_is_in() {
    scenes::a_caller_that_remembers::<{ Lapse::EPOCH_LAST }>("teeth: an epoch raised when the next is in");
}

#[test]
#[should_panic(expected = "a refusal was another tenant's")]
fn a_refusal_taken_at_its_word() {
    scenes::a_caller_that_remembers_is_refused::<{ Lapse::REFUSED_UNCHECKED }>("teeth: a refusal taken at its word");
}

#[test]
#[should_panic(expected = "a refusal was another tenant's")]
fn a_limit_of_another_taken_for_ones_own() {
    scenes::a_caller_that_remembers_finds_it_full::<{ Lapse::REFUSED_UNCHECKED }>(
        "teeth: a limit of another taken for one's own",
    );
}

#[test]
#[should_panic(expected = "a tenant found what the last one counted")]
fn a_slot_opened_before_its_counts_start_again() {
    scenes::a_tenant_that_looks("teeth: a slot opened before its counts start again", |bulkhead| {
        bulkhead.reinstate(1);
        bulkhead.reset_counts();
    });
}
