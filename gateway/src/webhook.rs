//! Notifications: transitions posted to those who want to hear of them, off the way of requests.
//!
//! Each webhook has a task, which takes transitions from a subscription of the engine and posts them one after the other: those of a target come in order.
//! What isn't taken is tried again, 0.5 s later and then after twice as long each time, up to a minute, for as long as the process runs and the
//! configuration has it; meanwhile the [`board`] keeps little of each target, and the last in any case. The body is described in the README.

mod board;
mod courier;
mod message;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use portcullis::{Engine, ObserverGuard, Transition};
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::config::Webhook;
use crate::story::wall_ms;
use courier::{Courier, Order};

/// Transitions that may come while a task doesn't look: 256 KiB of places for each webhook.
const ROOM: usize = 1 << 15;
/// How long receivers have at the end of the process, or once a reload takes them away.
const FAREWELL: Duration = Duration::from_secs(3);

type Poster = Client<HttpConnector, Full<Bytes>>;

/// All webhooks.
#[derive(Debug)]
pub(crate) struct Webhooks {
    client: Poster,
    // Sequence numbers begin again with each process.
    boot: u64,
    hooks: Mutex<Hooks>,
}

#[derive(Debug, Default)]
struct Hooks {
    at_work: Vec<Hook>,
    // Those that tell what is left, and end.
    leaving: JoinSet<()>,
}

/// A webhook at work. Dropping it ends it once its try is over.
#[derive(Debug)]
struct Hook {
    orders: watch::Sender<Order>,
    counts: Arc<Counts>,
    task: JoinHandle<()>,
    _observes: ObserverGuard,
}

/// What became of transitions.
#[derive(Debug, Default)]
struct Counts {
    noted: AtomicU64,
    posts: AtomicU64,
    told: AtomicU64,
    retries: AtomicU64,
    given_up: AtomicU64,
    // As the subscription counts them.
    dropped: AtomicU64,
    last_error: Mutex<Option<String>>,
}

impl Default for Webhooks {
    fn default() -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { client, boot: wall_ms(SystemTime::now()), hooks: Mutex::default() }
    }
}

impl Webhooks {
    /// Puts other webhooks in force. One with the same URL goes on with what it has still to tell;
    /// one that is gone has [`FAREWELL`] for that.
    pub(crate) fn apply(&self, engine: &Engine<String>, wanted: &[Webhook]) {
        let mut hooks = self.lock();
        let mut before = std::mem::take(&mut hooks.at_work);
        for webhook in wanted {
            let same = before.iter().position(|hook| hook.orders.borrow().webhook.url == webhook.url);
            let order = Order { webhook: webhook.clone(), is_last: false };
            hooks.at_work.push(match same.map(|n| before.swap_remove(n)) {
                Some(hook) => {
                    hook.orders.send_replace(order);
                    hook
                }
                None => self.start(engine, order),
            });
        }
        while hooks.leaving.try_join_next().is_some() {}
        for gone in before {
            hooks.leaving.spawn(gone.leave());
        }
    }

    fn start(&self, engine: &Engine<String>, order: Order) -> Hook {
        let (moved, counts) = (Arc::new(Notify::new()), Arc::new(Counts::default()));
        // The subscription has a transition before an observer hears of it.
        let subscription = engine.subscribe(ROOM);
        let hears = Arc::clone(&moved);
        let observes = engine.observe(move |_: &Transition| hears.notify_one());
        let (orders, heard) = watch::channel(order);
        let courier = Courier::new(self.client.clone(), subscription, moved, heard, Arc::clone(&counts), self.boot);
        Hook { orders, counts, task: tokio::spawn(courier.run()), _observes: observes }
    }

    /// What became of what was to be told.
    pub(crate) fn told(&self) -> Value {
        self.lock().at_work.iter().map(|hook| hook.counts.told(&hook.orders.borrow().webhook)).collect()
    }

    /// Tells what is left, without waiting for anybody for longer than [`FAREWELL`].
    pub(crate) async fn shutdown(&self) {
        let Hooks { at_work, mut leaving } = std::mem::take(&mut *self.lock());
        for hook in at_work {
            leaving.spawn(hook.leave());
        }
        while leaving.join_next().await.is_some() {}
    }

    fn lock(&self) -> MutexGuard<'_, Hooks> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hook {
    /// Tells what is left, for [`FAREWELL`] at most, and says what wasn't told in all.
    async fn leave(self) {
        let Self { orders, counts, mut task, _observes } = self;
        orders.send_modify(|order| order.is_last = true);
        if tokio::time::timeout(FAREWELL, &mut task).await.is_err() {
            task.abort();
        }
        let untold = counts.waiting() + counts.given_up.load(Ordering::Relaxed);
        let dropped = counts.dropped.load(Ordering::Relaxed);
        if untold + dropped > 0 {
            let host = host(&orders.borrow().webhook);
            tracing::warn!(host, untold, dropped, "a webhook wasn't told all transitions");
        }
    }
}

/// Whom logs and pages may name: what follows the host may be what only those two should know.
fn host(webhook: &Webhook) -> String {
    webhook.url.authority().map(ToString::to_string).unwrap_or_default()
}

impl Counts {
    /// Transitions that are still to be told.
    fn waiting(&self) -> u64 {
        let [noted, told, given_up] =
            [&self.noted, &self.told, &self.given_up].map(|count| count.load(Ordering::Relaxed));
        noted.saturating_sub(told + given_up)
    }

    fn told(&self, webhook: &Webhook) -> Value {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        json!({
            "host": host(webhook),
            "is_signed": webhook.secret.is_some(),
            "posts": count(&self.posts),
            "told": count(&self.told),
            "waiting": self.waiting(),
            "retries": count(&self.retries),
            "given_up": count(&self.given_up),
            "dropped": count(&self.dropped),
            "last_error": *self.last_error.lock().unwrap_or_else(PoisonError::into_inner),
        })
    }

    fn failed(&self, why: &str) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.to_owned());
    }
}
