//! A timeout that suits nobody: too short for the report, too long for the cache.

use std::error::Error;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use portcullis::call::{CallPolicy, Caller};

use super::lab::{Lab, five_in_a_row, grouped, ms, paused, secs};
use super::{Lesson, Taught};

/// 20 reports, 2.5 s each as ever: how many came. 20 looks into a cache that takes 2 ms and hangs today: what they waited in all.
fn hour(report: Duration, cache: Duration) -> Result<(u32, Duration), Box<dyn Error>> {
    let lab = Lab::new(five_in_a_row())?;
    let timeout = |timeout| CallPolicy::builder().timeout(timeout).build();
    let caller = Caller::builder(Arc::clone(&lab.engine))
        .target("reports".to_owned(), timeout(report)?)
        .target("cache".to_owned(), timeout(cache)?)
        .build()?;
    let counted = paused(&lab, async {
        let mut reports = 0;
        for _ in 0..20 {
            let write = || async {
                tokio::time::sleep(ms(2_500)).await;
                Ok::<_, ()>(())
            };
            reports += u32::from(caller.call("reports", write).await.is_ok());
        }
        let started = tokio::time::Instant::now();
        for _ in 0..20 {
            assert!(caller.call("cache", pending::<Result<(), ()>>).await.is_err());
        }
        (reports, started.elapsed())
    })?;
    Ok(counted)
}

pub(crate) fn lesson() -> Taught {
    // WRONG: the default, for whatever is called.
    let wrong = hour(secs(1), secs(1))?;
    // RIGHT: twice what the slowest of a hundred reports takes, ten times what the cache does.
    let right = hour(secs(5), ms(20))?;

    assert_eq!((wrong, right), ((0, ms(5_000)), (20, ms(100))));
    Ok(Lesson {
        wrong: format!(
            "1 s for both: {} of 20 reports came, and a hung cache held its callers for {} ms",
            wrong.0,
            grouped(wrong.1.as_millis())
        ),
        right: format!(
            "5 s and 20 ms: {} of 20 reports came, and the cache held them for {} ms",
            right.0,
            right.1.as_millis()
        ),
    })
}
