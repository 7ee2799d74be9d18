//! Any bytes of a client reach the upstreams as well-formed requests or not at all: none is smuggled, changed, lost or left behind.
//!
//! The input is what the client sends; the byte 0xff is a pause. After the preface of HTTP/2 come the lines of requests, which are
//! made into frames. An input that begins with NUL chooses among pieces of requests.
#![no_main]

mod answers;
mod client;
mod compare;
mod compose;
mod h2;
mod idle;
mod strict;
mod upstream;

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex};

use libfuzzer_sys::fuzz_target;
use portcullis_gateway::{Config, Gateway};
use tokio::runtime::Runtime;

use client::Client;
use compare::Asked;
use upstream::{Log, OWN_HOST, Target};

/// No piece of text.
const PAUSE: u8 = 0xff;

/// What is being sent, for those who look at a crash: composed inputs don't show it.
static SENT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

static WORLD: LazyLock<World> = LazyLock::new(World::start);

struct World {
    runtime: Runtime,
    gateway: Gateway,
    log: Arc<Log>,
}

fuzz_target!(|input: &[u8]| {
    let composed = input.strip_prefix(&[0]).map(compose::compose);
    let sent = composed.as_deref().unwrap_or(input);
    // What fits into a frame, and into the socket's buffer at once.
    if sent.len() <= 1 << 14 {
        sent.clone_into(&mut SENT.lock().expect("a panic ends the process"));
        WORLD.runtime.block_on(WORLD.ask(sent));
    }
});

impl World {
    fn start() -> Self {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            eprintln!("sent: {}", SENT.lock().map(|sent| sent.escape_ascii().to_string()).unwrap_or_default());
            hook(panic);
        }));
        let (runtime, log) = (idle::runtime(), Arc::<Log>::default());
        let gateway = runtime.block_on(async {
            let mut at = Vec::new();
            for target in Target::ALL {
                at.push(target.start(&log).await);
            }
            Gateway::start(config(&at)).await.expect("a gateway")
        });
        Self { runtime, gateway, log }
    }

    async fn ask(&self, input: &[u8]) {
        let mut client = Client::connect(self.gateway.address());
        match input.strip_prefix(h2::PREFACE) {
            Some(text) => self.ask_http2(&mut client, text).await,
            None => self.ask_http1(&mut client, input).await,
        }
        self.log.clear();
        client.until("nothing is left", |_| self.is_idle()).await;
    }

    async fn ask_http1(&self, client: &mut Client, input: &[u8]) {
        let mut parts = input.split(|&byte| byte == PAUSE);
        client.send(parts.next().unwrap_or_default());
        for part in parts {
            idle::settle(|| client.take()).await;
            client.send(part);
        }
        if client.sent.starts_with(h2::PREFACE) {
            // A pause within it, and frames after it.
            return client.end().await;
        }
        let asked = Asked::new(&client.sent);
        let to_head = client.sent.windows(4).any(|part| part == b"HEAD");
        // A client that ends now would cut off its answers.
        client
            .until("all answers have come", |client| {
                let answers = answers::read(&client.received, to_head);
                answers.is_some_and(|answers| !asked.waits(&answers, &self.log.seen()))
            })
            .await;
        client.end().await;
        let answers = answers::read(&client.received, to_head).expect("whole answers");
        asked.check(&answers, &self.log.seen());
    }

    async fn ask_http2(&self, client: &mut Client, text: &[u8]) {
        client.send(&h2::frames(text));
        client
            .until("all answers have come", |client| {
                let answered = self.log.seen().iter().filter(|seen| seen.answered).count();
                client.ended || answered == h2::passed_on(&client.received)
            })
            .await;
        client.end().await;
    }

    /// Whether nothing is held, and each call has ended once. No input is the fault of an upstream.
    fn is_idle(&self) -> bool {
        self.gateway.in_flight() == 0
            && self.gateway.engine().snapshots().iter().all(|(_, target)| {
                let totals = target.totals;
                assert_eq!((totals.failure, totals.stale), (0, 0), "{target:?}");
                target.in_flight == 0 && totals.admitted == totals.success + totals.ignored + totals.abandoned
            })
    }
}

/// Routes by host, by prefix and for all that is left. The timeouts are as in earnest, since no time passes.
fn config(upstreams: &[SocketAddr]) -> Config {
    let mut text = format!(
        "listen = \"127.0.0.1:0\"\nadmin = \"off\"
         [[route]]\nhost = \"{OWN_HOST}\"\npath = \"/\"\ntarget = \"Named\"
         [[route]]\npath = \"/core/\"\ntarget = \"Core\"
         [[route]]\npath = \"/core/early/\"\ntarget = \"Early\"
         [[route]]\npath = \"/\"\ntarget = \"Any\"\n"
    );
    for (target, address) in Target::ALL.iter().zip(upstreams) {
        text += &format!("[target.{target:?}]\nupstream = [\"http://{address}\"]\n");
    }
    text.parse().unwrap_or_else(|errors| panic!("{errors}"))
}
