//! The models that have a twin: it is caught by the very model that the protocol passes.

use portcullis::internals::Bulkhead;
use portcullis::internals::stripe::Stripes;
use portcullis::{Cause, Outcome, Policy, Window};

use crate::desk::{Desk, Said, build};
use crate::model;
use crate::room::{Permits, Room};
use crate::twins::Lodging;

/// The usual conclusion: no permit is lost and none too many, and the racers were told this.
pub fn at_rest<P: Permits, R>(limit: u32) -> impl Fn(&Room<P>, R) -> R {
    move |room, told| {
        room.rest(limit);
        told
    }
}

/// One of 8 permits is idle, in the stash of stripe 0. Whoever asks first gets it, from whichever stripe.
pub fn a_stash_elsewhere<P: Permits>(name: &str) {
    model(
        name,
        &[[true, false], [false, true]],
        || Room::<P>::used(8, 0, 8, 1),
        [|room: &Room<P>| room.enter(0), |room| room.enter(1)],
        at_rest(8),
    );
}

/// Two open the same magazine; one of them finds it open and strikes its announcement off.
pub fn two_openers<P: Permits>(name: &str) {
    model(name, &[[true; 2]], || Room::<P>::new(8), [|room: &Room<P>| room.pass(0); 2], at_rest(8));
}

/// The limit falls from 8 to 1, which one call in flight fills, while another call opens a magazine and stashes its permit.
pub fn lowering<P: Permits>(name: &str) {
    model(
        name,
        &[(true, None), (true, Some(false)), (false, None), (false, Some(false))],
        || Room::<P>::used(8, 1, 1, 0),
        [
            |room: &Room<P>| (room.pass(0), room.enter_lowered(0, 1)),
            |room| {
                room.lower(1);
                (true, room.enter_lowered(1, 1))
            },
        ],
        |room, [first, second]| {
            assert_eq!(second, (true, Some(false)));
            room.rest(1);
            first
        },
    );
}

/// The limit falls from 8 to 3 while a batch is on its way to an open, empty magazine.
pub fn lowering_during_a_refill<P: Permits>(name: &str) {
    model(
        name,
        &[[true, true]],
        || Room::<P>::used(8, 0, 1, 0),
        [
            |room: &Room<P>| room.pass(0),
            |room| {
                room.lower(3);
                true
            },
        ],
        at_rest(3),
    );
}

/// Three of 8 permits lie in stripe 0's stash, past the high mark, and the last to come spills; stripe 1 asks for four.
pub fn spilling<P: Permits>(name: &str) {
    model(
        name,
        // The permit in the spiller's hands is missed if it is looked for just then; a lone caller never misses it.
        &[[0, 2], [0, 3]],
        || Room::<P>::used(8, 0, 8, 2),
        [
            |room: &Room<P>| {
                room.leave(0);
                0
            },
            |room| (0..4).filter(|_| room.enter(1)).count(),
        ],
        at_rest(8),
    );
}

/// One of 8 permits is idle, in the stash of the only stripe, as a second one comes. Whoever asks first gets it, from whichever.
pub fn a_stash_from_before<P: Permits>(name: &str) {
    model(
        name,
        &[[true, false], [false, true]],
        || Room::<P>::used(8, 0, 8, 1),
        [
            |room: &Room<P>| {
                room.permits.meet();
                room.enter(1)
            },
            |room| room.enter(0),
        ],
        at_rest(8),
    );
}

/// One of 8 permits is idle all along, and another is given back. The caller that meets its giver makes a stripe, and its own stash is
/// another one then.
pub fn a_caller_that_makes_a_stripe<P: Permits>(name: &str) {
    model(
        name,
        &[[true, true]],
        || Room::<P>::used(8, 0, 8, 1),
        [
            |room: &Room<P>| room.enter(1),
            |room| {
                room.leave(0);
                true
            },
        ],
        at_rest(8),
    );
}

/// The limit falls from 8 to 1, which one call in flight fills, while a second stripe comes and stashes a permit.
pub fn lowering_while_growing<P: Permits>(name: &str) {
    model(
        name,
        &[(true, None), (true, Some(false)), (false, None), (false, Some(false))],
        || Room::<P>::used(8, 0, 1, 0),
        [
            |room: &Room<P>| {
                room.permits.meet();
                (room.pass(1), room.enter_lowered(0, 1))
            },
            |room| {
                room.lower(1);
                (true, room.enter_lowered(1, 1))
            },
        ],
        |room, [first, second]| {
            assert_eq!(second, (true, Some(false)));
            room.rest(1);
            first
        },
    );
}

/// What counts refusals, on one stripe until threads meet there, then on two.
pub trait Refuses: Send + Sync + 'static {
    fn new() -> Self;
    fn refuse(&self, thread: usize);
    fn refused(&self) -> u64;
    fn has_grown(&self) -> bool;
}

impl Refuses for Bulkhead {
    fn new() -> Self {
        Self::over(0, Stripes::growing())
    }

    fn refuse(&self, thread: usize) {
        self.count(thread, |refusals| &refusals.saturated);
    }

    fn refused(&self) -> u64 {
        self.refusals().saturated
    }

    fn has_grown(&self) -> bool {
        self.stripes() > 1
    }
}

/// Two are refused twice each. Whether they met or not, that makes four.
pub fn two_refusals_each<R: Refuses>(name: &str) {
    model(
        name,
        // The threads may not meet.
        &[(4, false), (4, true)],
        R::new,
        [
            |words: &R| {
                words.refuse(0);
                words.refuse(0);
            },
            |words| {
                words.refuse(1);
                words.refuse(1);
            },
        ],
        |words, _| {
            assert_eq!(words.refused(), 4, "a refusal is lost");
            (words.refused(), words.has_grown())
        },
    );
}

/// One success makes its window clean.
#[must_use]
pub fn short(limit: u32) -> Policy {
    build(Policy::builder().window(Window::calls(1)).no_failure_rate().max_in_flight(limit))
}

/// A caller remembers the slot's tenant, which goes, and the next one makes a call.
pub fn a_caller_that_remembers<const LAPSE: u8>(name: &str) {
    model(
        name,
        &[
            // Its call was before the last look, or under way then.
            (["unchanged", "recorded"], 1),
            (["unchanged", "stays"], 2),
            (["retired", "recorded"], 1),
            // He has the second tenant's only permit for as long as it takes to see whose it is.
            (["retired", "saturated"], 0),
        ],
        || Lodging::<LAPSE>::new(short(1)),
        [
            |slot: &Lodging<LAPSE>| slot.pass(0),
            |slot| {
                if !slot.hand_on() {
                    return "stays";
                }
                let told = slot.pass(1);
                slot.raise_late();
                told
            },
        ],
        |slot, told| {
            let usage = slot.words.bulkhead.usage();
            assert_eq!(usage.in_flight, 0);
            assert_eq!(slot.words.bulkhead.refusals().open, u64::from(told[1] == "stays"));
            (told, usage.settled)
        },
    );
}

/// A caller remembers the slot's tenant, which never refuses; the next one is forced open.
pub fn a_caller_that_remembers_is_refused<const LAPSE: u8>(name: &str) {
    model(
        name,
        &[["unchanged", "stays"], ["unchanged", "gone"], ["retired", "gone"]],
        || Lodging::<LAPSE>::new(short(1)),
        [
            |slot: &Lodging<LAPSE>| slot.pass(0),
            |slot| {
                if !slot.hand_on() {
                    return "stays";
                }
                slot.force_open();
                slot.raise_late();
                "gone"
            },
        ],
        |slot, told| {
            assert!(told[0] != "forced", "a refusal was another tenant's");
            let bulkhead = &slot.words.bulkhead;
            assert_eq!((bulkhead.usage().in_flight, bulkhead.refusals().forced), (0, 0));
            told
        },
    );
}

/// A caller remembers the slot's tenant, which never refuses; the next one is full.
pub fn a_caller_that_remembers_finds_it_full<const LAPSE: u8>(name: &str) {
    model(
        name,
        // The second tenant's caller may find the first's with its permit, as above.
        &[["unchanged", "stays"], ["unchanged", "full"], ["retired", "full"], ["retired", "refused"]],
        || Lodging::<LAPSE>::new(short(1)),
        [
            |slot: &Lodging<LAPSE>| slot.pass(0),
            |slot| {
                if !slot.hand_on() {
                    return "stays";
                }
                let is_full = slot.enter(1);
                slot.raise_late();
                if is_full { "full" } else { "refused" }
            },
        ],
        |slot, told| {
            assert!(told[0] != "saturated", "a refusal was another tenant's");
            let bulkhead = &slot.words.bulkhead;
            let expected = (u64::from(told[1] == "full"), u64::from(told[1] == "refused"));
            assert_eq!((bulkhead.usage().in_flight, bulkhead.refusals().saturated), expected);
            told
        },
    );
}

/// A retired slot whose last tenant settled a call and was refused twice, is opened to the next, whose first call looks around.
pub fn a_tenant_that_looks(name: &str, open: fn(&Bulkhead)) {
    model(
        name,
        &[None, Some((0, 0))],
        move || {
            let bulkhead = Bulkhead::new(1);
            assert!(bulkhead.acquire(0).is_ok());
            bulkhead.refuse(0);
            bulkhead.release(0);
            bulkhead.refuse(0);
            assert!(bulkhead.retire());
            (bulkhead, open)
        },
        [
            |(bulkhead, open): &(Bulkhead, fn(&Bulkhead))| {
                open(bulkhead);
                None
            },
            |(bulkhead, _)| {
                let entered = bulkhead.acquire(0).is_ok();
                entered.then(|| (bulkhead.usage().settled, bulkhead.refused()))
            },
        ],
        |(bulkhead, _), [_, seen]| {
            assert!(seen.is_none_or(|seen| seen == (0, 0)), "a tenant found what the last one counted");
            assert_eq!((bulkhead.usage().settled, bulkhead.refused()), (0, 0));
            seen
        },
    );
}

/// The window is full, with a failure in it, and no rule is met. The success that finds it so says so to those that follow; a policy comes
/// meanwhile that has its rule met.
pub fn a_policy_comes_while_a_success_is_judged(name: &str, succeed: fn(&Desk) -> Said) {
    model(
        name,
        &[("recorded", None), ("recorded", Some(Cause::FailureRate))],
        || {
            let policy = |rate| build(Policy::builder().window(Window::calls(4)).min_calls(4).failure_rate(rate));
            let desk = Desk::with_calls(policy(0.5), 6).or(policy(0.25));
            for outcome in [Outcome::Success, Outcome::Success, Outcome::Failure, Outcome::Success] {
                desk.settle(desk.granted(0), outcome);
            }
            desk
        },
        [succeed, |desk| {
            desk.adopt_next();
            ("adopted", None)
        }],
        |desk, [said, _]| {
            let next = desk.succeed(desk.granted(2));
            assert!(said.1.is_some() || next.1.is_some(), "a policy is in force and judges nothing");
            said
        },
    );
}
