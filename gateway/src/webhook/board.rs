//! What a webhook has yet to be told: few things about each target, and the last of them in any case.
//!
//! Within an interval a target's first transitions are told one by one. Those that follow, and those that come while a few of its wait to be told
//! already, are counted, and the last of them is kept: it is told with the count once the interval is over. So a target that flaps for an hour, or a
//! receiver that is down for one, costs no more than `at_most` + 1 entries.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use portcullis::{State, Transition};
use tokio::time::Instant;

/// How much is told of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    /// Transitions one by one.
    pub(super) at_most: u32,
    /// Within that.
    pub(super) interval: Duration,
}

/// One thing to be told.
#[derive(Clone, Debug)]
pub(super) struct Notice {
    /// The transition; the last, if it stands for more.
    pub(super) last: Arc<Transition>,
    /// The transitions that it stands for.
    pub(super) count: u64,
    /// Those of them that opened the target.
    pub(super) opened: u64,
    /// When the first of them was.
    pub(super) since: SystemTime,
}

impl Notice {
    fn of(transition: Arc<Transition>) -> Self {
        let (opened, since) = (u64::from(opens(&transition)), transition.wall);
        Self { last: transition, count: 1, opened, since }
    }

    fn add(&mut self, transition: Arc<Transition>) {
        self.count += 1;
        self.opened += u64::from(opens(&transition));
        self.last = transition;
    }
}

fn opens(transition: &Transition) -> bool {
    transition.to == State::Open
}

type Name = Arc<String>;

/// The notices of one webhook.
#[derive(Debug, Default)]
pub(super) struct Board {
    lines: HashMap<Name, Line>,
    // Targets in the order in which their notices came, each as often as it has some.
    ready: VecDeque<Name>,
    // Those of which something is held back, by the end of their interval.
    held: BTreeSet<(Instant, Name)>,
}

/// What is to be told of one target.
#[derive(Debug)]
struct Line {
    ends: Instant,
    told: u32,
    waiting: VecDeque<Notice>,
    held: Option<Notice>,
}

impl Board {
    /// Takes note of a transition.
    pub(super) fn note(&mut self, transition: Arc<Transition>, rate: Rate, now: Instant) {
        let name = Arc::clone(&transition.target);
        let line = self.lines.entry(Arc::clone(&name)).or_insert_with(|| Line::new(rate, now));
        if let Some(held) = &mut line.held {
            held.add(transition);
            return;
        }
        if line.waiting.is_empty() && line.ends <= now {
            *line = Line::new(rate, now);
        }
        if line.told < rate.at_most && line.waiting.len() < rate.at_most as usize {
            line.told += 1;
            line.waiting.push_back(Notice::of(transition));
            self.ready.push_back(name);
        } else {
            line.held = Some(Notice::of(transition));
            self.held.insert((line.ends, name));
        }
    }

    /// The next thing to be told, if it is time for one.
    pub(super) fn next(&mut self, rate: Rate, now: Instant) -> Option<Notice> {
        self.release(rate, now);
        let name = self.ready.pop_front()?;
        self.lines.get_mut(&name)?.waiting.pop_front()
    }

    /// When something that is held back is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.held.first().map(|&(ends, _)| ends)
    }

    /// Whether nothing is left to be told.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.held.is_empty()
    }

    /// Holds nothing back any longer.
    pub(super) fn hurry(&mut self, rate: Rate, now: Instant) {
        for (_, name) in std::mem::take(&mut self.held) {
            self.let_go(name, rate, now);
        }
    }

    fn release(&mut self, rate: Rate, now: Instant) {
        while let Some((ends, name)) = self.held.pop_first() {
            if ends > now {
                self.held.insert((ends, name));
                return;
            }
            // Who hasn't been told the last ones isn't told more: it would only get longer.
            if self.lines.get(&name).is_some_and(|line| !line.waiting.is_empty()) {
                self.held.insert((now + rate.interval, name));
            } else {
                self.let_go(name, rate, now);
            }
        }
    }

    /// What is held back of a target takes its place behind what waits, as the first of a new interval.
    fn let_go(&mut self, name: Name, rate: Rate, now: Instant) {
        let Some(line) = self.lines.get_mut(&name) else { return };
        let Some(held) = line.held.take() else { return };
        *line = Line { told: 1, waiting: std::mem::take(&mut line.waiting), ..Line::new(rate, now) };
        line.waiting.push_back(held);
        self.ready.push_back(name);
    }
}

impl Line {
    fn new(rate: Rate, now: Instant) -> Self {
        Self { ends: now + rate.interval, told: 0, waiting: VecDeque::new(), held: None }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use portcullis::Engine;

    use super::*;

    const RATE: Rate = Rate { at_most: 2, interval: Duration::from_secs(60) };

    /// The transitions of a target that is forced open and released that often.
    fn flaps(target: &str, times: usize) -> Vec<Arc<Transition>> {
        let engine: Engine = Engine::builder().build();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let _guard = engine.observe(move |moved: &Transition| noted.lock().unwrap().push(Arc::new(moved.clone())));
        for _ in 0..times {
            engine.force_open(target).unwrap();
            engine.release(target).unwrap();
        }
        seen.lock().unwrap().clone()
    }

    fn told(board: &mut Board, now: Instant) -> Vec<(String, u64, u64)> {
        let next = std::iter::from_fn(|| board.next(RATE, now));
        next.map(|notice| (notice.last.target.to_string(), notice.last.sequence, notice.count)).collect()
    }

    #[test]
    fn a_target_that_flaps_is_told_twice_and_then_once_for_all_the_rest() {
        let (mut board, begin) = (Board::default(), Instant::now());
        for moved in flaps("a", 50) {
            board.note(moved, RATE, begin);
        }
        assert_eq!(told(&mut board, begin), [("a".into(), 1, 1), ("a".into(), 2, 1)]);
        let due = board.due().unwrap();
        assert_eq!(due, begin + RATE.interval);
        assert_eq!(told(&mut board, due - Duration::from_nanos(1)), []);
        assert_eq!(told(&mut board, due), [("a".into(), 100, 98)]);
        assert!(board.is_empty() && board.due().is_none());
    }

    #[test]
    fn what_was_told_together_is_the_first_of_the_next_interval() {
        let (mut board, begin) = (Board::default(), Instant::now());
        let mut all = flaps("a", 10).into_iter();
        all.by_ref().take(5).for_each(|moved| board.note(moved, RATE, begin));
        told(&mut board, begin);
        let later = begin + RATE.interval;
        assert_eq!(told(&mut board, later), [("a".into(), 5, 3)]);
        all.by_ref().take(3).for_each(|moved| board.note(moved, RATE, later));
        assert_eq!(told(&mut board, later), [("a".into(), 6, 1)]);
        assert_eq!(told(&mut board, later + RATE.interval), [("a".into(), 8, 2)]);
        // A quiet interval later all is as in the beginning.
        let quiet = later + 3 * RATE.interval;
        all.by_ref().take(2).for_each(|moved| board.note(moved, RATE, quiet));
        assert_eq!(told(&mut board, quiet), [("a".into(), 9, 1), ("a".into(), 10, 1)]);
    }

    #[test]
    fn one_target_that_flaps_holds_up_no_other() {
        let (mut board, begin) = (Board::default(), Instant::now());
        flaps("a", 50).into_iter().for_each(|moved| board.note(moved, RATE, begin));
        flaps("b", 1).into_iter().for_each(|moved| board.note(moved, RATE, begin));
        let told = told(&mut board, begin);
        assert_eq!(told, [("a".into(), 1, 1), ("a".into(), 2, 1), ("b".into(), 1, 1), ("b".into(), 2, 1)]);
    }

    #[test]
    fn a_receiver_that_is_down_for_days_costs_no_more_than_one_for_minutes() {
        let (mut board, begin) = (Board::default(), Instant::now());
        let mut in_hand = 0;
        for (n, moved) in flaps("a", 500).into_iter().enumerate() {
            let now = begin + RATE.interval * u32::try_from(n).unwrap();
            board.note(moved, RATE, now);
            // It takes one now and then, less than there is to tell.
            if n % 100 == 99 {
                in_hand += board.next(RATE, now).map_or(0, |notice| notice.count);
            }
            assert!(board.lines[&"a".to_owned()].waiting.len() <= RATE.at_most as usize + 1);
        }
        board.hurry(RATE, begin);
        let rest = told(&mut board, begin);
        assert_eq!(rest.last().unwrap().1, 1_000);
        assert_eq!(rest.iter().map(|(_, _, count)| count).sum::<u64>() + in_hand, 1_000);
        assert!(board.is_empty());
    }

    #[test]
    fn a_notice_for_many_says_how_often_it_opened_and_since_when() {
        let (mut board, now) = (Board::default(), Instant::now());
        let all = flaps("a", 4);
        all.iter().for_each(|moved| board.note(Arc::clone(moved), RATE, now));
        board.hurry(RATE, now);
        let last = std::iter::from_fn(|| board.next(RATE, now)).last().unwrap();
        assert_eq!((last.count, last.opened, last.since), (6, 0, all[2].wall));
    }
}
