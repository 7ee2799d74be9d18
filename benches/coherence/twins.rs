//! What the counter counts where the count is known by hand, and what the engine is known to do: before its figures are believed.

use std::sync::atomic::{AtomicUsize, Ordering};

use portcullis::internals::trace::{AtomicU64, Kind};

use super::caches::{Caches, Cost};
use super::patterns::{Alone, SingleWord};
use super::subject::{self, Load, Resolved, Subject, limited};
use super::tally::Tally;
use super::world::{self, Order, Phase, Seat};

/// Two words on one line.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Together([AtomicU64; 2]);

/// How many there are.
pub(crate) const COUNT: usize = 12;

/// Ends the process's run if one of them is off; how many agreed.
pub(crate) fn check() -> usize {
    let twins: [(&str, u64, u64); COUNT] = [
        ("a lone core's own line, once from memory", alone(), 0),
        ("two cores write one word in turns", writers_of_one_word(2), 2 * ROUNDS - 1),
        ("64 cores write one word in turns", writers_of_one_word(64), 64 * ROUNDS - 1),
        ("64 cores write own lines", writers_of_own_lines(64), 0),
        ("two cores write two words of one line in turns", writers_of_one_line(), 2 * ROUNDS - 1),
        ("two cores read what one wrote", readers_of_one_write(), 2),
        ("a core writes what two have read", writer_after_readers(), 4),
        ("a lost compare-and-swap asks for the line", loser(), 1),
        ("one core reads and another writes, in turns", reader_and_writer(), 2 * ROUNDS - 1),
        ("two cores take turns over a word that is read and then written", single_word(), 6 * ROUNDS - 3),
        ("a decision of the engine writes twice", engine_alone().0, 2 * ROUNDS),
        ("and on one core costs nothing", engine_alone().1, 0),
    ];
    for (name, counted, known) in twins {
        assert_eq!(counted, known, "{name}");
    }
    twins.len()
}

const ROUNDS: u64 = 100;

/// The transfers of cores that take turns at each access.
fn transfers(cores: usize, work: &(dyn Fn(usize) + Sync)) -> u64 {
    let seats = AtomicUsize::new(0);
    let phases = [Phase { order: Order::Turns, decisions: u64::MAX }];
    let tallies = world::run(cores, &phases, &|_: &Seat| work(seats.fetch_add(1, Ordering::Relaxed)));
    tallies.iter().map(|tally| tally.transfers).sum()
}

fn write(word: &AtomicU64) {
    word.fetch_add(1, Ordering::Relaxed);
}

fn alone() -> u64 {
    let mut caches = Caches::default();
    let costs = [Kind::Load, Kind::Swap, Kind::Store, Kind::Load].map(|kind| caches.access(0, 8, kind));
    assert_eq!(costs, [Cost::Memory, Cost::Hit, Cost::Hit, Cost::Hit]);
    costs.iter().filter(|cost| **cost == Cost::Transfer).count() as u64
}

fn writers_of_one_word(cores: usize) -> u64 {
    let word = Alone::default();
    transfers(cores, &|_| (0..ROUNDS).for_each(|_| write(&word.0)))
}

fn writers_of_own_lines(cores: usize) -> u64 {
    let words: Vec<Alone> = (0..cores).map(|_| Alone::default()).collect();
    transfers(cores, &|core| (0..ROUNDS).for_each(|_| write(&words[core].0)))
}

fn writers_of_one_line() -> u64 {
    let words = Together::default();
    transfers(2, &|core| (0..ROUNDS).for_each(|_| write(&words.0[core])))
}

/// What a script of accesses to one line costs.
fn scripted(script: &[(usize, Kind)]) -> u64 {
    let mut caches = Caches::default();
    let costs = script.iter().map(|(core, kind)| caches.access(*core, 64, *kind));
    costs.filter(|cost| *cost == Cost::Transfer).count() as u64
}

fn readers_of_one_write() -> u64 {
    let again = [(1, Kind::Load), (2, Kind::Load)].repeat(50);
    scripted(&[&[(0, Kind::Store)], &again[..]].concat())
}

fn writer_after_readers() -> u64 {
    // From memory; to 1; 0 takes it from both; back to 1 and to 2.
    let script = [(0, Kind::Load), (1, Kind::Load), (0, Kind::Swap), (0, Kind::Swap), (1, Kind::Load), (2, Kind::Load)];
    scripted(&script)
}

fn loser() -> u64 {
    scripted(&[(0, Kind::Store), (1, Kind::Lost), (1, Kind::Load)])
}

fn reader_and_writer() -> u64 {
    let word = Alone::default();
    transfers(2, &|core| {
        for _ in 0..ROUNDS {
            if core == 0 {
                write(&word.0);
            } else {
                word.0.load(Ordering::Relaxed);
            }
        }
    })
}

/// Each admission reads, loses to the other core's, and wins: three accesses, each of which finds the line elsewhere. Three don't: the very
/// first admission needn't lose, its read is from memory, and the very last to win has the line from having lost.
fn single_word() -> u64 {
    let word = SingleWord::new(2 * ROUNDS);
    transfers(2, &|_| {
        for _ in 0..ROUNDS {
            let _ = word.admit();
        }
    })
}

/// The writes and the transfers of healthy decisions on a machine of one core.
fn engine_alone() -> (u64, u64) {
    let target = Resolved::new(limited(1_000));
    let phases = [200, ROUNDS].map(|decisions| Phase { order: Order::Each, decisions });
    let tallies = subject::run(&target, 1, &Load { depth: 4, ..Load::default() }, &phases);
    let last = tallies.last().cloned().unwrap_or_else(Tally::default);
    assert_eq!((last.decisions, last.lost, last.locks), (ROUNDS, 0, 0));
    (last.writes, last.transfers)
}
