//! What decisions are measured against: the floor, clocks, a plain map, a rate limiter, and the loop itself.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use ::governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::cores::case::{Basis, Case, Path};
use crate::cores::control::{Private, pair};
use crate::cores::keys::Key;
use crate::cores::timed::{Setup, Timed};
use crate::peers::governor;
use crate::subject::{Cannot, Ending, Subject as _};

/// The name that begins those of all maps.
pub const MAP: &str = "HashMap::get";
/// The names that the gate asks for.
pub const CACHE_MAP: &str = "HashMap::get, fx";
pub const CLOCK: &str = "reading of the clock";
pub const NOTHING: &str = "the loop itself";

/// What no control can.
const NONE: [Cannot; 2] = [Cannot::Break, Cannot::Permit];

/// governor, by key.
#[derive(Debug)]
pub struct Governor(DefaultKeyedRateLimiter<Key>);

impl Timed for Governor {
    fn name() -> String {
        governor::Governor::NAME.to_owned()
    }

    fn cannot() -> Vec<Cannot> {
        governor::Governor::CANNOT.to_vec()
    }

    const BASES: &'static [Basis] = &[];

    fn remark(_: Path) -> &'static str {
        "a rate limiter"
    }

    type Caller<'a> = &'a DefaultKeyedRateLimiter<Key>;

    fn build(setup: &Setup) -> Self {
        // A rate that no loop reaches.
        let limiter = RateLimiter::keyed(Quota::per_second(NonZeroU32::MAX));
        for key in &setup.keys.all {
            assert!(limiter.check_key(key).is_ok(), "a new key is admitted");
        }
        Self(limiter)
    }

    fn caller(&self, _: usize) -> Self::Caller<'_> {
        &self.0
    }

    #[inline]
    fn call(limiter: &mut Self::Caller<'_>, key: &Key, _: Ending) -> bool {
        limiter.check_key(black_box(key)).is_ok()
    }
}

/// A hasher of the engine's.
pub trait Hasher: BuildHasher + Default + Send + Sync + 'static {
    const NAME: &'static str;
    /// Where the engine has it.
    const PLACE: &'static str;
}

impl Hasher for rustc_hash::FxBuildHasher {
    const NAME: &'static str = CACHE_MAP;
    const PLACE: &'static str = "the hasher of a thread's known keys";
}

impl Hasher for ahash::RandomState {
    const NAME: &'static str = "HashMap::get, ahash";
    const PLACE: &'static str = "the hasher of the engine's map";
}

/// A map that nobody writes to: the least that a look-up by key costs.
#[derive(Debug)]
pub struct Map<H>(HashMap<Key, u32, H>);

impl<H: Hasher> Timed for Map<H> {
    fn name() -> String {
        H::NAME.to_owned()
    }

    fn cannot() -> Vec<Cannot> {
        NONE.to_vec()
    }

    const BASES: &'static [Basis] = &[];

    fn remark(_: Path) -> &'static str {
        H::PLACE
    }

    type Caller<'a> = &'a HashMap<Key, u32, H>;

    fn build(setup: &Setup) -> Self {
        Self(setup.keys.all.iter().cloned().zip(0..).collect())
    }

    fn caller(&self, _: usize) -> Self::Caller<'_> {
        &self.0
    }

    #[inline]
    fn call(map: &mut Self::Caller<'_>, key: &Key, _: Ending) -> bool {
        map.get(black_box(key.as_str())).is_some()
    }
}

/// A control of the first group: it needs no key, and admits everybody.
macro_rules! control {
    ($type:ident, $name:expr, $caller:ty, $make:expr, $turn:expr) => {
        #[derive(Debug)]
        pub struct $type;

        impl Timed for $type {
            fn name() -> String {
                $name.to_owned()
            }

            fn cannot() -> Vec<Cannot> {
                NONE.to_vec()
            }

            const BASES: &'static [Basis] = &[];

            type Caller<'a> = $caller;

            fn build(_: &Setup) -> Self {
                Self
            }

            fn caller(&self, _: usize) -> $caller {
                $make
            }

            #[inline]
            fn call(caller: &mut $caller, _: &Key, _: Ending) -> bool {
                let turn: fn(&mut $caller) = $turn;
                turn(caller);
                true
            }

            fn takes(case: Case) -> bool {
                case.path == Path::Floor
            }
        }
    };
}

control!(Floor, "two read-modify-writes, own line", Private, Private::default(), |word| pair(word));
control!(PreciseClock, CLOCK, quanta::Clock, quanta::Clock::new(), |clock| {
    black_box(clock.raw());
});
control!(CoarseClock, "reading of a coarse clock", Upkept, Upkept::new(), |clock| {
    black_box(clock.0.recent());
});
control!(StdClock, "Instant::now", (), (), |()| {
    black_box(Instant::now());
});
control!(Nothing, NOTHING, (), (), |()| {
    black_box(());
});

/// A clock whose cached time somebody refreshes: portcullis' own upkeep, of which there is one for the process.
#[derive(Debug)]
pub struct Upkept(quanta::Clock);

impl Upkept {
    fn new() -> Self {
        let upkeep = ::portcullis::Clock::coarse(Duration::from_millis(5));
        assert!(upkeep.is_ok(), "the upkeep starts");
        Self(quanta::Clock::new())
    }
}
