//! Histories, each of a fresh engine, lone calls that set the scene, threads that race, lone calls that look at what they left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use portcullis::{Clock, Engine};

use crate::door::{Door, Honest, Ticket};
use crate::history::{Entry, History};
use crate::plan::{Act, Answer, Call, Dice, Done, Shown};
use crate::shape::Shape;

/// Makes the door of a history.
pub type MakeDoor = for<'e> fn(Honest<'e>) -> Box<dyn Door<'e> + 'e>;

/// The honest way.
#[must_use]
pub fn honest<'e>(honest: Honest<'e>) -> Box<dyn Door<'e> + 'e> {
    Box::new(honest)
}

/// Runs some histories of `shape` with the same 2 to 4 threads, 3 or 4 acts each, behind a barrier for each history.
///
/// The threads stay for all of them: two that have a core each just now then race through many, also on a busy machine.
#[must_use]
pub fn run(shape: &'static Shape, make: MakeDoor, seed: u64, histories: usize) -> Vec<History> {
    let mut dice = Dice::new(seed);
    let scenes: Vec<_> = (0..histories).map(|_| scene(shape)).collect();
    let doors: Vec<_> = scenes.iter().map(|(engine, _)| make(Honest::new(engine, shape))).collect();
    let stage = |(door, (_, clock)): (_, &'_ (_, Arc<_>))| Stage {
        door,
        clock: Arc::clone(clock),
        sequence: AtomicU64::new(0),
    };
    let stages: Vec<Stage<'_, '_>> = doors.iter().map(|door| &**door).zip(&scenes).map(stage).collect();
    let mut lone: Vec<Actor<'_, '_>> = stages.iter().map(|stage| Actor::new(stage, 0, Vec::new())).collect();

    let threads = [2, 3, 3, 4][dice.roll(4)];
    let mut casts: Vec<Vec<Actor<'_, '_>>> = (0..threads).map(|_| Vec::with_capacity(histories)).collect();
    for actor in &mut lone {
        shape.prelude.iter().for_each(|act| actor.act(*act));
        let mut hands: Vec<Vec<Ticket<'_>>> = (0..threads).map(|_| Vec::new()).collect();
        for (place, ticket) in actor.hands.drain(..).enumerate() {
            hands[place % threads].push(ticket);
        }
        for ((thread, cast), hands) in (1_u8..).zip(&mut casts).zip(hands) {
            cast.push(Actor::new(actor.stage, thread, hands));
        }
    }
    let ready = AtomicUsize::new(0);
    let casts: Vec<_> = casts.into_iter().map(|cast| (cast, Dice::new(dice.roll(usize::MAX) as u64))).collect();
    let raced: Vec<Vec<Vec<Entry>>> = std::thread::scope(|scope| {
        let play = |(cast, dice)| scope.spawn(|| race(cast, dice, &ready, threads));
        let handles: Vec<_> = casts.into_iter().map(play).collect();
        handles.into_iter().map(|handle| handle.join().unwrap_or_else(|_| panic!("a racer panicked"))).collect()
    });
    let mut ends: Vec<Vec<Entry>> = lone.into_iter().map(|actor| look_again(actor, shape)).collect();
    for entries in raced {
        ends.iter_mut().zip(entries).for_each(|(end, entries)| end.extend(entries));
    }
    ends.into_iter().map(|entries| History { shape, entries }).collect()
}

fn scene(shape: &Shape) -> (Engine<u8>, Arc<quanta::Mock>) {
    let (clock, mock) = Clock::mock();
    let builder = Engine::<u8>::builder().clock(clock).max_targets(shape.max_targets).idle_after(Duration::ZERO);
    let builder = shape.rules.iter().take(1).fold(builder, |builder, rules| builder.policy(rules.policy()));
    (builder.build(), mock)
}

/// One thread's part in all histories.
fn race(cast: Vec<Actor<'_, '_>>, mut dice: Dice, ready: &AtomicUsize, threads: usize) -> Vec<Vec<Entry>> {
    let play = |(history, mut actor): (usize, Actor<'_, '_>)| {
        let acts = actor.stage.door.honest().shape.acts;
        ready.fetch_add(1, Ordering::AcqRel);
        let mut spins = 0_u32;
        while ready.load(Ordering::Acquire) < threads * (history + 1) {
            std::hint::spin_loop();
            spins += 1;
            // With more threads than cores the last one would wait for a whole time slice.
            if spins.is_multiple_of(256) {
                std::thread::yield_now();
            }
        }
        for _ in 0..3 + dice.roll(2) {
            let act = acts[dice.roll(acts.len())];
            actor.pause(&mut dice);
            actor.act(act);
        }
        actor.leave()
    };
    cast.into_iter().enumerate().map(play).collect()
}

/// Asks, alone, what the threads left.
fn look_again(mut actor: Actor<'_, '_>, shape: &Shape) -> Vec<Entry> {
    for key in 0..shape.keys {
        actor.act(Act::Look(key));
        actor.act(Act::Admit(key));
        actor.act(Act::Admit(key));
    }
    actor.leave()
}

/// What the threads of a history share.
struct Stage<'s, 'e> {
    door: &'s (dyn Door<'e> + 'e),
    clock: Arc<quanta::Mock>,
    sequence: AtomicU64,
}

/// One thread, its permits, and its record.
struct Actor<'s, 'e> {
    stage: &'s Stage<'s, 'e>,
    thread: u8,
    hands: Vec<Ticket<'e>>,
    entries: Vec<Entry>,
}

impl<'s, 'e> Actor<'s, 'e> {
    fn new(stage: &'s Stage<'s, 'e>, thread: u8, hands: Vec<Ticket<'e>>) -> Self {
        Self { stage, thread, hands, entries: Vec::with_capacity(8) }
    }

    /// Moves the threads against each other.
    fn pause(&self, dice: &mut Dice) {
        match dice.roll(8) {
            0 => std::thread::yield_now(),
            1 | 2 => (0..dice.roll(64)).for_each(|_| std::hint::spin_loop()),
            _ => {}
        }
    }

    fn act(&mut self, act: Act) {
        let name = Call::from(self.thread) << 8 | Call::try_from(self.entries.len()).unwrap_or(Call::MAX);
        // Nothing to settle: ask instead.
        let act = match act {
            Act::Settle(_) if self.hands.is_empty() => Act::Admit(0),
            act => act,
        };
        // Acquire: pairs with the Release below, so that an act that comes after a return sees what was done before it.
        let invoked = self.stage.sequence.load(Ordering::Acquire);
        let done = self.perform(name, act);
        let returned = self.stage.sequence.fetch_add(1, Ordering::AcqRel);
        self.entries.push(Entry { thread: self.thread, act: name, done, invoked, returned });
    }

    fn perform(&mut self, name: Call, act: Act) -> Done {
        let door = self.stage.door;
        let honest = door.honest();
        match act {
            Act::Admit(key) => {
                let (answer, permit) = door.admit(key);
                if let Answer::Granted { probe, .. } = answer {
                    self.hands.push(Ticket { call: name, key, probe, permit });
                }
                Done::Admit { key, answer }
            }
            Act::Settle(ending) => {
                let ticket = self.hands.remove(0);
                let (call, key, probe) = (ticket.call, ticket.key, ticket.probe);
                let stale = door.settle(ticket, ending);
                Done::Settle { call, key, probe, ending, stale }
            }
            // A key that there is no room for has no state to look at.
            Act::Look(key) => match honest.look(key) {
                Some(shown) => Done::Look { key, shown },
                None => Done::Hand { key, to: Shown::Closed, changed: None },
            },
            Act::ForceOpen(key) => Self::by_hand(door, key, Shown::ForcedOpen),
            Act::Disable(key) => Self::by_hand(door, key, Shown::Disabled),
            Act::Release(key) => Self::by_hand(door, key, Shown::Closed),
            Act::SetLimit(key, limit) => Done::SetLimit { key, limit, done: door.set_limit(key, limit) },
            Act::SetPolicy(key, rules) => Done::SetPolicy { key, rules, done: honest.set_policy(key, rules) },
            Act::Advance(ms) => {
                self.stage.clock.increment(Duration::from_millis(ms));
                Done::Advance { ms }
            }
            Act::Sweep => Done::Sweep { gone: honest.engine.sweep() },
        }
    }

    fn by_hand(door: &dyn Door<'_>, key: u8, to: Shown) -> Done {
        Done::Hand { key, to, changed: door.by_hand(key, to) }
    }

    /// Ends the thread. Permits still in its hands stay in flight: giving them back would be acts that nobody recorded.
    fn leave(self) -> Vec<Entry> {
        self.stage.door.leave();
        self.hands.into_iter().for_each(std::mem::forget);
        self.entries
    }
}
