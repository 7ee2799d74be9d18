//! Calls whose request is still being sent: who hangs up in the middle of it says nothing about the target.
//!
//! A call that is dropped looks to the engine like a target that was too slow for its client. For a client that breaks off
//! its own upload that is wrong, so its call isn't dropped but ends by itself, at once: the upload fails. If it turns out to be whole
//! after all, since its last piece came with the farewell, the call is dropped then.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::body::Progress;

struct Running<T> {
    task: JoinHandle<Option<T>>,
    progress: Arc<Progress>,
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        if self.progress.is_clients_turn() || self.progress.has_failed() {
            self.progress.orphan();
        } else {
            self.task.abort();
        }
    }
}

/// Awaits a call. If this is dropped while the client owes a part of the body, the call goes on to the error that follows.
pub(crate) async fn finish<T: Send + 'static>(
    progress: Arc<Progress>,
    call: impl Future<Output = T> + Send + 'static,
) -> T {
    let watched = Arc::clone(&progress);
    let task = tokio::spawn(async move {
        tokio::select! {
            done = call => Some(done),
            () = watched.sent_and_orphaned() => None,
        }
    });
    let mut running = Running { task, progress };
    match (&mut running.task).await {
        Ok(Some(done)) => done,
        // Only where nobody awaits this.
        Ok(None) => std::future::pending().await,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and this future with it.
            Err(_) => std::future::pending().await,
        },
    }
}
