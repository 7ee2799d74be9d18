//! A subject ready to be timed on a case. Called by pointer once a sample; inside, all types are known.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::case::{Case, Path};
use super::crew::Crew;
use super::keys::KeySet;
use super::sampler::{self, Plan, Tally};
use super::timed::{Setup, Timed, note};
use crate::subject::{Cannot, Ending};

/// How long a subject may fail before it must have opened; one of them judges nothing in its first second.
const PATIENCE: Duration = Duration::from_secs(10);

type Work = Box<dyn Fn(&Crew, Plan) -> Vec<Tally>>;

pub struct Entrant {
    pub name: String,
    pub note: String,
    pub cannot: Vec<Cannot>,
    work: Work,
}

impl std::fmt::Debug for Entrant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entrant").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Entrant {
    /// Builds the subject, if the case is one for it.
    #[must_use]
    pub fn of<S: Timed>(case: Case, keys: &Arc<KeySet>, seats: usize) -> Option<Self> {
        if !S::takes(case) {
            return None;
        }
        let setup = Setup { case, settings: case.settings(S::basis(case)), keys: Arc::clone(keys), seats };
        // A wait passes once: where it matters, each sample has a subject of its own.
        let kept = (case.path != Path::Probing).then(|| Arc::new(ready::<S>(&setup)));
        let work = move |crew: &Crew, plan: Plan| {
            let subject = kept.clone().unwrap_or_else(|| Arc::new(ready::<S>(&setup)));
            let keys = Arc::clone(&setup.keys);
            crew.run(plan.threads, move |seat| sampler::run(&*subject, &keys, seat, &plan))
        };
        Some(Self { name: S::name(), note: note::<S>(case), cannot: S::cannot(), work: Box::new(work) })
    }

    /// One sample.
    #[must_use]
    pub fn run(&self, crew: &Crew, plan: Plan) -> Vec<Tally> {
        (self.work)(crew, plan)
    }
}

/// Builds a subject and brings it where the path begins.
fn ready<S: Timed>(setup: &Setup) -> S {
    let subject = S::build(setup);
    if matches!(setup.case.path, Path::Open | Path::Probing) {
        open(&subject, setup);
    }
    if setup.case.path == Path::Probing {
        std::thread::sleep(setup.settings.wait + Duration::from_millis(5));
    }
    subject
}

fn open<S: Timed>(subject: &S, setup: &Setup) {
    let (mut caller, start) = (subject.caller(0), Instant::now());
    while S::call(&mut caller, &setup.keys.all[0], Ending::Failure) {
        assert!(start.elapsed() < PATIENCE, "{}: doesn't open", S::name());
    }
}
