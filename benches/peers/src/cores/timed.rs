//! What a subject offers to be timed: a decision with all its types known, so that nothing is boxed or dispatched that its users
//! wouldn't box or dispatch.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::case::{Basis, Case, Path};
use super::keys::{Key, KeySet, Keys};
use crate::subject::{Cannot, Ending, Killable, Settings, Subject};

/// What a subject is built for.
#[derive(Clone, Debug)]
pub struct Setup {
    pub case: Case,
    pub settings: Settings,
    pub keys: Arc<KeySet>,
    /// Threads at most.
    pub seats: usize,
}

/// A subject in a loop, by the shortest way that its documentation shows.
pub trait Timed: Sized + Send + Sync + 'static {
    fn name() -> String;

    fn cannot() -> Vec<Cannot>;

    /// What it can judge by, its own choice first.
    const BASES: &'static [Basis];

    /// Whether it counts what it refuses, without a listener of the caller's.
    const COUNTS_REFUSALS: bool = false;

    /// What a reader should know besides.
    fn remark(_: Path) -> &'static str {
        ""
    }

    /// What a thread keeps from call to call: a handle, a clone of a service.
    type Caller<'a>;

    fn build(setup: &Setup) -> Self;

    /// A caller for the key at the place `home`.
    fn caller(&self, home: usize) -> Self::Caller<'_>;

    /// Asks, and if admitted ends the call at once. Whether it was admitted. Subjects without keys, and resolved ones, ask for their home.
    fn call(caller: &mut Self::Caller<'_>, key: &Key, ending: Ending) -> bool;

    /// Asks for `home`, and if admitted leaves the call open; whoever drops it ends it.
    fn hold(&self, _home: usize) -> Option<Box<dyn Killable + '_>> {
        None
    }

    fn takes(case: Case) -> bool {
        offers::<Self>(case) && (!case.keys.is_spread() || !Self::cannot().contains(&Cannot::Key))
    }

    /// What it judges by in a case: as all others if it can, else by its own choice.
    fn basis(case: Case) -> Basis {
        let wanted = case.path.basis();
        let own = Self::BASES.first().copied().unwrap_or(wanted);
        if Self::BASES.contains(&wanted) { wanted } else { own }
    }
}

/// Whether a subject has what a path is about. All breakers are on the path of healthy calls and that of refusals in OPEN, each by
/// its nearest rule, which its note says.
fn offers<S: Timed>(case: Case) -> bool {
    let can = |what| !S::cannot().contains(&what);
    match case.path {
        Path::Floor => false,
        Path::Healthy(Basis::Calls) => true,
        Path::Healthy(basis) | Path::Failing(basis, _) => S::BASES.contains(&basis),
        Path::Open => can(Cannot::Break),
        Path::Full => can(Cannot::Permit),
        Path::Probing => can(Cannot::Break) && can(Cannot::LimitProbes),
    }
}

/// What an answer must be able to do to be the same answer: the features that are needed on a path.
#[must_use]
pub fn needed(case: Case, is_keyed: bool) -> Vec<Cannot> {
    let basis = match case.path.basis() {
        Basis::Streak => None,
        Basis::Calls => Some(Cannot::CallsWindow),
        Basis::Time => Some(Cannot::TimeWindow),
    };
    let probes = (case.path == Path::Probing).then_some(Cannot::LimitProbes);
    let always = [Cannot::Break, Cannot::Permit];
    always.into_iter().chain(basis).chain(probes).chain(is_keyed.then_some(Cannot::Key)).collect()
}

/// What a row can't do, in few words, and what it does instead.
#[must_use]
pub fn note<S: Timed>(case: Case) -> String {
    let (cannot, basis) = (S::cannot(), S::basis(case));
    let is_measured_against = case.path == Path::Floor;
    let lacks = needed(case, true).into_iter().filter(|what| !is_measured_against && cannot.contains(what));
    let instead = (basis != case.path.basis()).then(|| format!("judges by {}", basis.id()));
    let uncounted = (!case.path.admits() && !S::COUNTS_REFUSALS).then(|| "not counted".to_owned());
    let remark = Some(S::remark(case.path)).filter(|remark| !remark.is_empty()).map(str::to_owned);
    let all = lacks.filter_map(lack).map(str::to_owned).chain(instead).chain(uncounted).chain(remark);
    all.collect::<Vec<_>>().join(", ")
}

fn lack(what: Cannot) -> Option<&'static str> {
    match what {
        Cannot::Break => Some("no breaker"),
        Cannot::Permit => Some("no permits"),
        Cannot::Key => Some("no keys"),
        _ => None,
    }
}

/// A peer that is one circuit without keys, or one semaphore.
pub trait Single: Sized + Send + Sync + 'static {
    /// Whose features and name it shares.
    type Adapter: Subject;

    const BASES: &'static [Basis];

    fn remark(_: Path) -> &'static str {
        ""
    }

    fn build(settings: &Settings) -> Self;

    fn call(&self, ending: Ending) -> bool;

    fn hold(&self) -> Option<Box<dyn Killable + '_>> {
        None
    }
}

/// One for all threads, or each thread its own where keys would be.
pub struct Alone<P> {
    /// Padded, so that those of two threads never share a line.
    each: Box<[CachePadded<P>]>,
}

impl<P> std::fmt::Debug for Alone<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Alone").field("each", &self.each.len()).finish()
    }
}

impl<P: Single> Timed for Alone<P> {
    fn name() -> String {
        P::Adapter::NAME.to_owned()
    }

    fn cannot() -> Vec<Cannot> {
        P::Adapter::CANNOT.to_vec()
    }

    const BASES: &'static [Basis] = P::BASES;

    fn remark(path: Path) -> &'static str {
        P::remark(path)
    }

    type Caller<'a> = &'a P;

    fn build(setup: &Setup) -> Self {
        let count = if setup.case.keys == Keys::Own { setup.seats } else { 1 };
        Self { each: (0..count).map(|_| CachePadded::new(P::build(&setup.settings))).collect() }
    }

    fn caller(&self, home: usize) -> &P {
        &self.each[home]
    }

    #[inline]
    fn call(single: &mut &P, _: &Key, ending: Ending) -> bool {
        single.call(ending)
    }

    fn hold(&self, home: usize) -> Option<Box<dyn Killable + '_>> {
        self.each[home].hold()
    }
}

/// What the upstream answers, at once.
#[inline]
pub fn answer(ending: Ending) -> Result<(), Failure> {
    if ending == Ending::Failure { Err(Failure) } else { Ok(()) }
}

/// An upstream's failure.
#[derive(Clone, Copy, Debug)]
pub struct Failure;

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the upstream failed")
    }
}

impl std::error::Error for Failure {}
