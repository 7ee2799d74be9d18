//! A drill from outside: forces a target open through the admin listener for a while, and tells what its callers got meanwhile.
//!
//! A fallback that nobody has seen at work is a hope. So a drill that nobody called in is a failure, too: it showed nothing.

mod report;

use std::fmt;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

pub use crate::operator::Error;
pub use report::Report;

use http::Method;

use crate::hidden::Hidden;
use crate::operator::{Operator, path};

/// The longest drill.
pub const LONGEST: Duration = crate::admin::LONGEST;

/// How often the target is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// What the lease outlasts the drill by: the tool releases first, unless it died.
const LEASE: Duration = Duration::from_secs(5);

/// What to drill. Its token isn't shown by `Debug`.
#[derive(Clone)]
pub struct Drill {
    /// The target.
    pub target: String,
    /// How long.
    pub length: Duration,
    /// The admin listener, host and port.
    pub admin: String,
    /// Its token, if it has one.
    pub token: Option<String>,
}

impl fmt::Debug for Drill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, length, admin, token } = self;
        let token = Hidden::of(token.as_deref());
        f.debug_struct("Drill")
            .field("target", target)
            .field("length", length)
            .field("admin", admin)
            .field("token", &token)
            .finish()
    }
}

/// Forces the target open, waits, releases it, and counts. SIGINT and SIGTERM end the drill early; the target is released then, too.
///
/// # Errors
///
/// The admin listener can't be reached or refuses: the target is unknown, isn't closed, or the token is wrong.
pub async fn run(drill: &Drill) -> Result<Report, Error> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let admin = Operator::new(&drill.admin, drill.token.as_deref())?;
    let target = path(&drill.target);
    // Longer than the drill, but no longer than what is allowed.
    let lease = (drill.length + LEASE).min(LONGEST).max(drill.length);
    let start = Instant::now();
    let before = admin.ask(Method::POST, &format!("{target}/drill?seconds={}", lease.as_secs())).await?;
    let end = start + drill.length;
    let mut is_foreign = false;
    let is_cut = loop {
        tokio::select! {
            () = tokio::time::sleep_until(end.min(Instant::now() + LOOK)) => {}
            _ = interrupt.recv() => break true,
            _ = terminate.recv() => break true,
        }
        if Instant::now() >= end {
            break false;
        }
        // One look that fails is no reason to end it: the lease does, if nothing else.
        if admin.ask(Method::GET, &target).await.is_ok_and(|target| !report::is_drilled(&target)) {
            is_foreign = true;
            break true;
        }
    };
    let after = admin.ask(Method::GET, &target).await;
    // Between two looks somebody may have acted, and between the last one and the end.
    is_foreign |= after.as_ref().is_ok_and(report::is_foreign);
    if !is_foreign {
        let ended = admin.ask(Method::POST, &format!("{target}/end-drill")).await?;
        is_foreign = ended["changed"] == false && report::is_foreign(&ended);
    }
    let lasted = start.elapsed();
    Ok(Report::new(&drill.target, lasted, is_cut, is_foreign, &before, &after?))
}
