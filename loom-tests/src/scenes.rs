//! The bulkhead's models that have a twin: it is caught by the very model that the protocol passes.

use crate::model;
use crate::room::{Permits, Room};

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
