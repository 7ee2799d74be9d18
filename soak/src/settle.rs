//! The end of a round, with nobody else about: the invariants.

use std::time::Duration;

use portcullis::{Cause, Rejection, Settled, Snapshot, State, Target};

use crate::plan::{FORGET_AFTER, LIMITS, LONGEST_LEASE, LONGEST_WAIT, MAX_TARGETS, PINNED, Random};
use crate::seat::conserved;
use crate::stage::{Counts, Stage};

/// Invariant 4: with nothing but successes a target closes in this time, rounded up to the lease's second.
const RECOVERY: Duration =
    LONGEST_WAIT.saturating_mul(2).saturating_add(LONGEST_LEASE).saturating_add(Duration::from_secs(1));

/// What the load left, before anything else is done: invariants 2 and 7.
pub(crate) fn at_rest(stage: &Stage) {
    let faults = &stage.faults;
    stage.time.catch_up();
    let all = stage.engine.snapshots();
    faults.equal("targets in the map and counted", all.len(), stage.engine.len());
    faults.check(all.len() <= MAX_TARGETS, || format!("{} targets", all.len()));
    for (name, now) in &all {
        conserved(name, now, stage.seat_of(name).map_or(0, crate::seat::Seat::leaked), faults);
    }
    for seat in &stage.seats[..PINNED] {
        match stage.engine.snapshot(&seat.name) {
            Some(now) => seat.compare(&now, faults),
            None => faults.add(format!("{} is gone though its handle is held", seat.name)),
        }
    }
    faults.equal("exhausted", stage.engine.exhausted(), Counts::get(&stage.counts.exhausted));
    let panicked = Counts::get(&stage.counts.observers_panicked);
    faults.equal("panics of observers", stage.engine.observer_panics(), panicked);
}

/// Each target opened, asked, closed and filled once more: invariants 3, 4, 7 and 9.
pub(crate) fn each_target(stage: &Stage, random: &mut Random) {
    for (name, _) in stage.engine.snapshots() {
        let Some(target) = stage.noted(stage.engine.target(&*name)) else {
            stage.faults.add(format!("{name} can't be resolved"));
            continue;
        };
        let seat = stage.seat_of(&name);
        target.release();
        if seat.is_some_and(|seat| seat.steady.is_none()) {
            target.set_limit(*random.pick(&LIMITS[3..]));
        }
        let check = Check { stage, name: &name, target: &target, leaked: seat.map_or(0, crate::seat::Seat::leaked) };
        check.hint_is_honest();
        check.closes();
        check.opens();
        check.hint_is_honest();
        check.closes();
        check.stale_says_nothing();
        check.holds_its_limit();
        conserved(&name, &target.snapshot(), check.leaked, &stage.faults);
    }
}

/// Everybody goes who may, and the chains of events are whole: invariants 8 and 11.
pub(crate) fn all_told(stage: &Stage) {
    let (engine, faults) = (&stage.engine, &stage.faults);
    let kept = |seat: &&crate::seat::Seat| seat.leaked() > 0 || seat.steady.is_none();
    let kept = stage.seats[..PINNED].iter().filter(kept).count();
    let before = engine.len();
    engine.sweep();
    stage.time.advance(FORGET_AFTER + LONGEST_WAIT + Duration::from_secs(20));
    let went = engine.sweep();
    faults.equal("targets that nothing keeps are forgotten", engine.len(), kept);
    faults.equal("evictions counted", before - went, engine.len());

    stage.witness.check(engine, faults);
    let (heard, accounted) = (stage.witness.heard(), stage.accounted());
    let (logged, lost) = (engine.transitions().len() as u64, engine.transitions_dropped());
    faults.equal("events logged or owned up to", logged + lost, heard);
    // Without overwriting what is lost is holes: events that came too late to be put in order.
    let holes = if stage.logs_all { lost..=lost } else { 0..=lost };
    faults.check(holes.contains(&heard.wrapping_sub(accounted)), || {
        format!("{heard} events, the subscription accounts for {accounted}, {lost} are owned up to")
    });
    let counts = &stage.counts;
    Counts::add(&counts.events, heard);
    Counts::add(&counts.takeovers, stage.witness.heard_of(Cause::LeaseExpired));
    Counts::add(&counts.evicted, stage.witness.heard_of(Cause::Forgotten) + went as u64);
}

struct Check<'a> {
    stage: &'a Stage,
    name: &'a str,
    target: &'a Target<'a>,
    leaked: u32,
}

impl Check<'_> {
    fn is(&self, holds: bool, what: &str) {
        self.stage.faults.check(holds, || format!("{}: {what}: {:?}", self.name, self.now()));
    }

    fn now(&self) -> Snapshot {
        self.target.snapshot()
    }

    /// A refusal that says `d` isn't repeated for the same reason at now + d.
    fn hint_is_honest(&self) {
        let Err(refusal) = self.target.admit().map(portcullis::Permit::ignore) else { return };
        let Some(retry_after) = refusal.retry_after() else {
            return self.is(false, &format!("refused at rest: {refusal}"));
        };
        self.is(!retry_after.is_zero(), "it says to come back at once");
        self.stage.time.advance(retry_after);
        let again = self.target.admit().map(portcullis::Permit::ignore);
        let same = again.is_err_and(|again| again.reason() == refusal.reason());
        self.is(!same, &format!("refused again after {refusal}"));
        Counts::add(&self.stage.counts.hints, 1);
    }

    fn closes(&self) {
        let mut passed = Duration::ZERO;
        for _ in 0..10_000 {
            if self.now().state == State::Closed {
                return self.is(passed <= RECOVERY, &format!("it took {passed:?} to close"));
            }
            match self.target.admit() {
                Ok(permit) => drop(permit.success()),
                Err(refusal) => {
                    let by = refusal.retry_after().unwrap_or(Duration::from_millis(100));
                    self.stage.time.advance(by);
                    passed += by;
                }
            }
        }
        self.is(false, &format!("still not closed after {passed:?}"));
    }

    fn opens(&self) {
        for _ in 0..1_000 {
            match self.target.admit() {
                Ok(permit) => drop(permit.failure()),
                Err(Rejection::Open { .. }) => return,
                Err(refusal) => return self.is(false, &format!("failures led to {refusal}")),
            }
        }
        self.is(false, "a thousand failures don't open it");
    }

    /// A permit of before a transition changes nothing but the count of stale ones.
    fn stale_says_nothing(&self) {
        let Ok(permit) = self.target.admit() else { return self.is(false, "closed, and refuses") };
        self.target.force_open();
        self.is(matches!(self.target.admit(), Err(Rejection::ForcedOpen)), "forced open, and lets in");
        self.target.release();
        let before = self.now();
        let settled = permit.failure();
        let after = self.now();
        let is_untouched = after.window.unwrap_or_default().calls == 0 && after.streak == 0;
        self.is(settled == Settled::Stale && is_untouched, "a stale failure counted");
        self.is(after.totals.stale == before.totals.stale + 1, "a stale failure wasn't counted as such");
        self.is((after.state, after.generation) == (before.state, before.generation), "a stale failure moved it");
    }

    /// Exactly as many get in as the limit leaves, and all of it comes back.
    fn holds_its_limit(&self) {
        let limit = self.now().limit;
        let mut permits = Vec::new();
        let refusal = loop {
            match self.target.admit() {
                Ok(permit) => permits.push(permit),
                Err(refusal) => break refusal,
            }
            if permits.len() > 1_000 {
                return self.is(false, "no limit is met");
            }
        };
        self.is(refusal == Rejection::Saturated { limit }, &format!("full, it says {refusal}"));
        self.is(permits.len() as u32 + self.leaked == limit, &format!("{} got in", permits.len()));
        drop(permits);
        self.is(self.now().in_flight == self.leaked, "permits are missing");
    }
}
