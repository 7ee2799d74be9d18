//! Control: tokio's semaphore, permits and nothing else.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::subject::{Cannot, Ending, Held, Hook, Settings, Subject};

#[derive(Debug)]
pub struct Permits(Semaphore);

impl Subject for Permits {
    const NAME: &'static str = "tokio Semaphore";
    const CRATES: &'static [&'static str] = &["tokio"];
    const CANNOT: &'static [Cannot] = &[Cannot::Break, Cannot::Key, Cannot::Observe];
    const BETTER: &'static str = "waits for permits, in order; takes many at once";

    fn build(settings: &Settings, _: Option<Hook>) -> Self {
        Self(Semaphore::new(settings.limit as usize))
    }

    fn once(&self, _: &str, _: Ending) -> bool {
        self.0.try_acquire().is_ok()
    }
}

impl Held for Permits {
    type Token<'a> = SemaphorePermit<'a>;

    fn admit(&self, _: &str) -> Option<SemaphorePermit<'_>> {
        self.0.try_acquire().ok()
    }

    fn settle<'a>(&'a self, permit: SemaphorePermit<'a>, _: Ending) {
        drop(permit);
    }
}
