//! Which targets there are, and who may be forgotten (R19).

use std::collections::BTreeMap;
use std::rc::Rc;

use portcullis::{Priority, Rejection};

use crate::Twin;
use crate::target::{NANOS_PER_MS, News, Phase, Target, Terms, Token};

/// Places that the sweeper visits when a key is new.
const STEP: usize = 16;

pub(crate) struct Engine {
    twin: Twin,
    pub(crate) now: u64,
    max_targets: usize,
    idle_after: u64,
    forget_after: u64,
    pub(crate) default: Rc<Terms>,
    /// Where each key's target is.
    pub(crate) keys: BTreeMap<u8, usize>,
    /// Tenants, present and last.
    pub(crate) places: Vec<Target>,
    /// Places without a tenant, the latest last.
    vacant: Vec<usize>,
    /// The place that the sweeper visits next.
    cursor: usize,
    incarnations: u64,
    pub(crate) exhausted: u64,
    pub(crate) news: Vec<News>,
}

impl Engine {
    /// Both patiences in seconds.
    pub(crate) fn new(twin: Twin, default: Rc<Terms>, max_targets: usize, idle_s: u64, forget_s: u64) -> Self {
        Self {
            twin,
            now: 0,
            max_targets,
            idle_after: idle_s * 1_000 * NANOS_PER_MS,
            forget_after: forget_s * 1_000 * NANOS_PER_MS,
            default,
            keys: BTreeMap::new(),
            places: Vec::new(),
            vacant: Vec::new(),
            cursor: 0,
            incarnations: 0,
            exhausted: 0,
            news: Vec::new(),
        }
    }

    /// The target of a key, made if it is new; before that the sweeper goes one step.
    pub(crate) fn target(&mut self, key: u8) -> Result<&mut Target, Rejection> {
        if let Some(&place) = self.keys.get(&key) {
            return Ok(&mut self.places[place]);
        }
        self.step(STEP);
        if self.keys.len() >= self.max_targets {
            self.exhausted += 1;
            return Err(Rejection::Exhausted { max_targets: self.max_targets });
        }
        self.incarnations += 1;
        let terms = Rc::clone(&self.default);
        let place = self.vacant.pop().unwrap_or(self.places.len());
        if let Some(last) = self.places.get_mut(place) {
            *last = last.next(key, self.incarnations, terms);
        } else {
            self.places.push(Target::new(self.twin, key, place, self.incarnations, terms));
        }
        self.keys.insert(key, place);
        Ok(&mut self.places[place])
    }

    pub(crate) fn admit(&mut self, key: u8, is_async: bool, priority: Priority) -> Result<Token, Rejection> {
        let now = self.now;
        self.on_target(key, |target| target.admit(now, is_async, priority))?
    }

    /// Does something to the target of a key, and takes what it has to report.
    pub(crate) fn on_target<R>(&mut self, key: u8, act: impl FnOnce(&mut Target) -> R) -> Result<R, Rejection> {
        let target = self.target(key)?;
        let answer = act(target);
        let news = std::mem::take(&mut target.news);
        self.news.extend(news);
        Ok(answer)
    }

    /// The same for the target at a place, which a permit pins.
    pub(crate) fn at<R>(&mut self, place: usize, act: impl FnOnce(&mut Target) -> R) -> R {
        let answer = act(&mut self.places[place]);
        let news = std::mem::take(&mut self.places[place].news);
        self.news.extend(news);
        answer
    }

    pub(crate) fn sweep(&mut self) -> usize {
        self.step(self.places.len())
    }

    fn step(&mut self, visits: usize) -> usize {
        let places = self.places.len();
        if places == 0 {
            return 0;
        }
        let from = self.cursor;
        self.cursor = (from + visits) % places;
        (0..visits.min(places)).filter(|step| self.visit((from + step) % places)).count()
    }

    /// Lets the tenant of a place go if it may.
    fn visit(&mut self, place: usize) -> bool {
        let now = self.now;
        let target = &mut self.places[place];
        let is_pinned = target.handles > 0 && self.twin != Twin::EvictsPinned;
        if self.keys.get(&target.key) != Some(&place) || is_pinned || !self.is_idle(place) {
            return false;
        }
        self.at(place, |target| target.forget(now));
        self.keys.remove(&self.places[place].key);
        self.vacant.push(place);
        true
    }

    fn is_idle(&mut self, place: usize) -> bool {
        let (now, idle_after, forget_after) = (self.now, self.idle_after, self.forget_after);
        let target = &mut self.places[place];
        let moved = target.settled + target.refusals.total();
        let since = match target.sighting {
            Some((seen, since)) if seen == moved && target.in_flight == 0 => since,
            _ => {
                target.sighting = Some((moved, now));
                return false;
            }
        };
        if target.is_configured {
            return false;
        }
        let rules = &target.terms.rules;
        let patience = match &target.phase {
            Phase::ForcedOpen | Phase::Disabled => return false,
            Phase::Closed(window) => {
                let counts = window.counts(rules.shape, now / NANOS_PER_MS);
                let ramps = target.ramp.is_some() && !target.is_ramp_due(now);
                let holds_evidence = ramps || counts.failures > 0 || counts.slow > 0 || window.streak > 0;
                if holds_evidence { None } else { Some(idle_after) }
            }
            Phase::Open { .. } | Phase::HalfOpen { .. } => None,
        };
        now - since >= patience.unwrap_or(forget_after.max(rules.memory_ms() * NANOS_PER_MS))
    }

    /// When something is due at a target, if that is to come.
    pub(crate) fn due(&self, key: u8) -> Option<u64> {
        let target = &self.places[*self.keys.get(&key)?];
        target.due(self.now).filter(|due| *due > self.now)
    }
}
