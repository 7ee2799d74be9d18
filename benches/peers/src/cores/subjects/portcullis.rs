//! portcullis: by a resolved target, by key, by a static engine, and by permits that own their engine.

use std::hint::black_box;
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use portcullis::{Clock, Engine, Target};

use crate::cores::case::{Basis, Case, Path};
use crate::cores::keys::{Key, KeySet, Keys};
use crate::cores::timed::{Setup, Timed};
use crate::peers::portcullis::policy;
use crate::subject::{Cannot, Ending, Killable};

/// The name that begins those of all forms.
pub const NAME: &str = "portcullis";
/// The names that the gate asks for.
pub const RESOLVED: &str = "portcullis resolved";
pub const RESOLVED_COARSE: &str = "portcullis resolved, coarse clock";
pub const KEYED: &str = "portcullis keyed";
pub const STATIC: &str = "portcullis static";

const ALL: &[Basis] = &[Basis::Calls, Basis::Streak, Basis::Time];

/// Which clock an engine reads.
pub trait Watch: Send + Sync + 'static {
    /// What it adds to a name.
    const SUFFIX: &'static str;
    const IS_COARSE: bool;

    fn clock() -> Clock;
}

#[derive(Debug)]
pub struct Precise;

impl Watch for Precise {
    const SUFFIX: &'static str = "";
    const IS_COARSE: bool = false;

    fn clock() -> Clock {
        Clock::precise()
    }
}

#[derive(Debug)]
pub struct Coarse;

impl Watch for Coarse {
    const SUFFIX: &'static str = ", coarse clock";
    const IS_COARSE: bool = true;

    fn clock() -> Clock {
        Clock::coarse(Duration::from_millis(5)).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Which clock it is matters only where one is read.
fn clock_matters<W: Watch>(case: Case) -> bool {
    let reads =
        matches!(case.path, Path::Healthy(Basis::Time) | Path::Failing(Basis::Time, _) | Path::Open | Path::Probing);
    !W::IS_COARSE || reads
}

fn engine<W: Watch>(setup: &Setup) -> Engine {
    let engine = Engine::builder().policy(policy(&setup.settings)).clock(W::clock()).max_targets(setup.settings.keys);
    let engine = engine.build();
    meet(&engine, &setup.keys);
    engine
}

/// Lets the engine know all keys.
fn meet(engine: &Engine, keys: &KeySet) {
    for key in &keys.all {
        match engine.admit(key.as_str()) {
            Ok(permit) => permit.success(),
            Err(rejection) => panic!("there is room for all keys: {rejection}"),
        };
    }
}

/// Settles a permit by the word that callers use. A macro, since permits are of two types.
macro_rules! settle {
    ($permit:expr, $ending:expr) => {
        match $ending {
            Ending::Success => $permit.success(),
            Ending::Failure => $permit.failure(),
            Ending::Ignored => $permit.ignore(),
        }
    };
}

fn hold<'a>(engine: &'a Engine, keys: &KeySet, home: usize) -> Option<Box<dyn Killable + 'a>> {
    engine.admit(keys.all[home].as_str()).ok().map(|permit| Box::new(permit) as Box<dyn Killable>)
}

/// A target resolved once, by each thread.
#[derive(Debug)]
pub struct Resolved<W> {
    engine: Engine,
    keys: Arc<KeySet>,
    watch: PhantomData<W>,
}

impl<W: Watch> Timed for Resolved<W> {
    fn name() -> String {
        format!("{RESOLVED}{}", W::SUFFIX)
    }

    fn cannot() -> Vec<Cannot> {
        Vec::new()
    }

    const BASES: &'static [Basis] = ALL;

    const COUNTS_REFUSALS: bool = true;

    type Caller<'a> = Target<'a>;

    fn build(setup: &Setup) -> Self {
        Self { engine: engine::<W>(setup), keys: Arc::clone(&setup.keys), watch: PhantomData }
    }

    fn caller(&self, home: usize) -> Target<'_> {
        let target = self.engine.target(self.keys.all[home].as_str());
        target.unwrap_or_else(|rejection| panic!("the target is known: {rejection}"))
    }

    #[inline]
    fn call(target: &mut Target<'_>, _: &Key, ending: Ending) -> bool {
        match target.admit() {
            Ok(permit) => {
                settle!(permit, ending);
                true
            }
            Err(_) => false,
        }
    }

    fn hold(&self, home: usize) -> Option<Box<dyn Killable + '_>> {
        hold(&self.engine, &self.keys, home)
    }

    fn takes(case: Case) -> bool {
        case.path != Path::Floor && !case.keys.is_spread() && clock_matters::<W>(case)
    }
}

/// By key at each call.
#[derive(Debug)]
pub struct Keyed<W> {
    engine: Engine,
    keys: Arc<KeySet>,
    watch: PhantomData<W>,
}

impl<W: Watch> Timed for Keyed<W> {
    fn name() -> String {
        format!("{KEYED}{}", W::SUFFIX)
    }

    fn cannot() -> Vec<Cannot> {
        Vec::new()
    }

    const BASES: &'static [Basis] = ALL;

    const COUNTS_REFUSALS: bool = true;

    type Caller<'a> = &'a Engine;

    fn build(setup: &Setup) -> Self {
        Self { engine: engine::<W>(setup), keys: Arc::clone(&setup.keys), watch: PhantomData }
    }

    fn caller(&self, _: usize) -> &Engine {
        &self.engine
    }

    #[inline]
    fn call(engine: &mut &Engine, key: &Key, ending: Ending) -> bool {
        match engine.admit(black_box(key.as_str())) {
            Ok(permit) => {
                settle!(permit, ending);
                true
            }
            Err(_) => false,
        }
    }

    fn hold(&self, home: usize) -> Option<Box<dyn Killable + '_>> {
        hold(&self.engine, &self.keys, home)
    }

    fn takes(case: Case) -> bool {
        case.path != Path::Floor && clock_matters::<W>(case)
    }
}

/// By key, of an engine that is a `static`: its permits live as long as the process.
#[derive(Debug)]
pub struct Static;

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let case = Case { path: Path::Healthy(Basis::Calls), keys: Keys::Uniform };
    Engine::builder().policy(policy(&case.settings(Basis::Calls))).build()
});

impl Timed for Static {
    fn name() -> String {
        STATIC.to_owned()
    }

    fn cannot() -> Vec<Cannot> {
        Vec::new()
    }

    const BASES: &'static [Basis] = ALL;

    const COUNTS_REFUSALS: bool = true;

    type Caller<'a> = ();

    fn build(setup: &Setup) -> Self {
        meet(&ENGINE, &setup.keys);
        Self
    }

    fn caller(&self, _: usize) {}

    #[inline]
    fn call((): &mut (), key: &Key, ending: Ending) -> bool {
        match ENGINE.admit(black_box(key.as_str())) {
            Ok(permit) => {
                settle!(permit, ending);
                true
            }
            Err(_) => false,
        }
    }

    fn takes(case: Case) -> bool {
        // One engine for the process has one policy, and 10,000 keys.
        case.path == Path::Healthy(Basis::Calls) && case.keys != Keys::Million
    }
}

/// By key, with permits that own a reference to the engine and may go into a task.
#[derive(Debug)]
pub struct Owned(Arc<Engine>);

impl Timed for Owned {
    fn name() -> String {
        format!("{NAME} owned")
    }

    fn cannot() -> Vec<Cannot> {
        Vec::new()
    }

    const BASES: &'static [Basis] = ALL;

    const COUNTS_REFUSALS: bool = true;

    fn remark(_: Path) -> &'static str {
        "counts in an Arc"
    }

    type Caller<'a> = &'a Arc<Engine>;

    fn build(setup: &Setup) -> Self {
        Self(Arc::new(engine::<Precise>(setup)))
    }

    fn caller(&self, _: usize) -> &Arc<Engine> {
        &self.0
    }

    #[inline]
    fn call(engine: &mut &Arc<Engine>, key: &Key, ending: Ending) -> bool {
        match engine.admit_owned(black_box(key.as_str())) {
            Ok(permit) => {
                settle!(permit, ending);
                true
            }
            Err(_) => false,
        }
    }

    fn takes(case: Case) -> bool {
        case.path == Path::Healthy(Basis::Calls) && case.keys != Keys::Million
    }
}
