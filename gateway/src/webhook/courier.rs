//! The task of one webhook: takes transitions in, and posts one notice after the other until it is taken.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use http::{HeaderName, Request, StatusCode, header};
use http_body_util::Full;
use portcullis::{Subscription, Transition};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::board::{Board, Notice, Rate};
use super::message::{Message, signature};
use super::{Counts, Poster, host};
use crate::config::Webhook;
use crate::story::wall_ms;

static SIGNATURE: HeaderName = HeaderName::from_static("x-portcullis-signature");
static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What the task is to do.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) webhook: Webhook,
    /// Whether it ends once it has told, or tried to tell, what is left.
    pub(super) is_last: bool,
}

impl Order {
    fn rate(&self) -> Rate {
        Rate { at_most: self.webhook.at_most, interval: self.webhook.interval }
    }

    fn wants(&self, transition: &Transition) -> bool {
        let names = self.webhook.targets.as_ref();
        self.webhook.states.contains(&transition.to) && names.is_none_or(|names| names.contains(&transition.target))
    }
}

/// Why a notice wasn't taken.
#[derive(Debug)]
enum Refused {
    /// It may be, the next time.
    ForNow(String),
    /// It never will.
    ForGood(String),
}

#[derive(Debug)]
pub(super) struct Courier {
    client: Poster,
    subscription: Subscription,
    moved: Arc<Notify>,
    orders: watch::Receiver<Order>,
    counts: Arc<Counts>,
    board: Board,
    boot: u64,
    // Of the lost, those that a body has told of.
    confessed: u64,
}

impl Courier {
    pub(super) fn new(
        client: Poster,
        subscription: Subscription,
        moved: Arc<Notify>,
        orders: watch::Receiver<Order>,
        counts: Arc<Counts>,
        boot: u64,
    ) -> Self {
        Self { client, subscription, moved, orders, counts, board: Board::default(), boot, confessed: 0 }
    }

    /// Works until the last order is done, or nobody gives any more.
    pub(super) async fn run(mut self) {
        loop {
            self.take_in();
            let order = self.orders.borrow_and_update().clone();
            let now = Instant::now();
            if order.is_last {
                self.board.hurry(order.rate(), now);
            }
            match self.board.next(order.rate(), now) {
                Some(notice) => {
                    if !self.deliver(&notice).await {
                        return;
                    }
                }
                None if order.is_last => return,
                None => {
                    let due = self.board.due().unwrap_or(now + Duration::from_hours(1));
                    tokio::select! {
                        () = self.moved.notified() => {}
                        () = tokio::time::sleep_until(due) => {}
                        given = self.orders.changed() => if given.is_err() { return },
                    }
                }
            }
        }
    }

    /// Moves what the engine told to the board.
    fn take_in(&mut self) {
        let (order, now) = (self.orders.borrow().clone(), Instant::now());
        while let Ok(transition) = self.subscription.try_recv() {
            if order.wants(&transition) {
                self.counts.noted.fetch_add(1, Ordering::Relaxed);
                self.board.note(transition, order.rate(), now);
            }
        }
        self.counts.dropped.store(self.subscription.dropped(), Ordering::Relaxed);
    }

    /// Posts a notice until it is taken, or never will be. False once nobody gives orders any more.
    async fn deliver(&mut self, notice: &Notice) -> bool {
        let lost = self.subscription.dropped() + self.counts.given_up.load(Ordering::Relaxed);
        let message = Message::new(notice, self.boot, lost - self.confessed);
        let mut waits = ExponentialBuilder::new()
            .with_min_delay(Duration::from_millis(500))
            .with_max_delay(Duration::from_mins(1))
            .without_max_times()
            .with_jitter()
            .build();
        loop {
            let order = self.orders.borrow_and_update().clone();
            let why = match self.tried(&order.webhook, &message).await {
                Ok(()) => {
                    self.counts.posts.fetch_add(1, Ordering::Relaxed);
                    self.counts.told.fetch_add(notice.count, Ordering::Relaxed);
                    self.confessed = lost;
                    return true;
                }
                Err(Refused::ForNow(why)) if !order.is_last => why,
                Err(Refused::ForNow(why) | Refused::ForGood(why)) => {
                    self.counts.failed(&why);
                    self.counts.given_up.fetch_add(notice.count, Ordering::Relaxed);
                    tracing::warn!(host = host(&order.webhook), id = message.id, why, "a notification was given up");
                    return true;
                }
            };
            if self.counts.retries.fetch_add(1, Ordering::Relaxed) == 0 {
                tracing::warn!(
                    host = host(&order.webhook),
                    why,
                    "a webhook isn't reached; its last_error at /webhooks"
                );
            }
            self.counts.failed(&why);
            if !self.waited(waits.next().unwrap_or(Duration::from_mins(1))).await {
                return false;
            }
        }
    }

    /// One try, while transitions are taken in.
    async fn tried(&mut self, webhook: &Webhook, message: &Message) -> Result<(), Refused> {
        let (client, moved) = (self.client.clone(), Arc::clone(&self.moved));
        let mut answer = std::pin::pin!(post(&client, webhook, message));
        loop {
            tokio::select! {
                answer = answer.as_mut() => return answer,
                () = moved.notified() => self.take_in(),
            }
        }
    }

    /// Waits for the next try, or another order. False if there won't be one.
    async fn waited(&mut self, wait: Duration) -> bool {
        let moved = Arc::clone(&self.moved);
        let mut over = std::pin::pin!(tokio::time::sleep(wait));
        loop {
            tokio::select! {
                () = over.as_mut() => return true,
                given = self.orders.changed() => return given.is_ok(),
                () = moved.notified() => self.take_in(),
            }
        }
    }
}

async fn post(client: &Poster, webhook: &Webhook, message: &Message) -> Result<(), Refused> {
    let mut request = Request::post(webhook.url.clone())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, concat!("portcullis/", env!("CARGO_PKG_VERSION")))
        .header(&IDEMPOTENCY_KEY, &message.id);
    if let Some(secret) = &webhook.secret {
        // When it is sent, so that a receiver can refuse what somebody kept and sends again.
        let seconds = wall_ms(SystemTime::now()) / 1_000;
        request = request.header(&SIGNATURE, signature(secret, seconds, &message.body));
    }
    let body = Full::new(message.body.clone());
    let request = request.body(body).map_err(|error| Refused::ForGood(error.to_string()))?;
    let answer = tokio::time::timeout(webhook.timeout, client.request(request)).await;
    let answer = answer.map_err(|_| Refused::ForNow(format!("no answer within {:?}", webhook.timeout)))?;
    // What else it says is of no interest, and isn't waited for.
    judged(answer.map_err(|error| Refused::ForNow(crate::upstream::causes(&error)))?.status())
}

fn judged(status: StatusCode) -> Result<(), Refused> {
    let again = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS];
    if status.is_success() {
        Ok(())
    } else if status.is_server_error() || again.contains(&status) {
        Err(Refused::ForNow(format!("it answered {status}")))
    } else if status.is_redirection() {
        Err(Refused::ForGood(format!("it answered {status}: redirects aren't followed")))
    } else {
        Err(Refused::ForGood(format!("it answered {status}")))
    }
}
