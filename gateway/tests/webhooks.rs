//! Notifications, as those get them who asked for them.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use common::process::Process;
use common::{field, gateway, get, nobody, scripted, single, until};
use portcullis_gateway::{Config, Gateway};
use serde_json::Value;

const SECRET: &str = "0123456789abcdef-secret";

/// A post as it came.
#[derive(Clone, Debug)]
struct Post {
    head: String,
    body: Vec<u8>,
}

impl Post {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Target, number, and state of the last transition that it tells.
    fn tells(&self) -> (String, u64, String) {
        let transition = &self.json()["transition"];
        let text = |key: &str| transition[key].as_str().unwrap().to_owned();
        (text("target"), transition["sequence"].as_u64().unwrap(), text("to"))
    }

    fn id(&self) -> String {
        let id = self.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(field(&self.head, "idempotency-key"), Some(id.as_str()));
        id
    }

    /// Whether the signature is right, in the opinion of another program.
    fn is_signed_with(&self, secret: &str) -> bool {
        let signature = field(&self.head, "x-portcullis-signature").expect("a signature");
        let (time, signed) = signature.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
        let mut openssl = Command::new("openssl")
            .args(["dgst", "-sha256", "-hmac", secret])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = openssl.stdin.take().unwrap();
        input.write_all(format!("{time}.").as_bytes()).unwrap();
        input.write_all(&self.body).unwrap();
        drop(input);
        let output = String::from_utf8(openssl.wait_with_output().unwrap().stdout).unwrap();
        output.trim().ends_with(signed) && signed.len() == 64
    }
}

/// Somebody who wants to hear of transitions, and answers each post by its number, from 0, with a status; with nothing if there is none.
struct Receiver {
    address: SocketAddr,
    posts: Arc<Mutex<Vec<Post>>>,
}

impl Receiver {
    async fn start(answer: impl Fn(usize) -> Option<&'static str> + Send + Sync + 'static) -> Self {
        let posts = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (Arc::clone(&posts), Arc::new(answer));
        let address = scripted(move |mut raw| {
            let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
            async move {
                while let Some(head) = raw.next_head().await {
                    let length = field(&head.to_ascii_lowercase(), "content-length").unwrap().parse().unwrap();
                    let body = raw.take(length).await;
                    let number = {
                        let mut seen: std::sync::MutexGuard<'_, Vec<Post>> = seen.lock().unwrap();
                        seen.push(Post { head, body });
                        seen.len() - 1
                    };
                    match answer(number) {
                        Some(status) => raw.send(&format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n")).await,
                        None => drop(raw.read_all().await),
                    }
                }
            }
        })
        .await;
        Self { address, posts }
    }

    async fn content() -> Self {
        Self::start(|_| Some("204 No Content")).await
    }

    /// The posts, once there are that many.
    async fn posts(&self, count: usize) -> Vec<Post> {
        until("posts", async || self.posts.lock().unwrap().len() >= count).await;
        let posts = self.posts.lock().unwrap().clone();
        assert_eq!(posts.len(), count, "{posts:?}");
        posts
    }

    fn webhook(&self, lines: &str) -> String {
        format!("[[webhook]]\nurl = \"http://{}/hidden-path?key=hidden-key\"\n{lines}\n", self.address)
    }
}

fn targets() -> String {
    let (_, upstream) = nobody();
    single(upstream, "") + &format!("[target.other]\nupstream = [\"http://{upstream}\"]\n")
}

async fn told_of(hooks: &str) -> Gateway {
    gateway(&format!("{hooks}{}", targets())).await
}

/// The count of what became of transitions, of the first webhook.
async fn count(gateway: &Gateway, name: &str) -> u64 {
    get(gateway.admin_address().unwrap(), "/webhooks").await.json()[0][name].as_u64().unwrap()
}

#[tokio::test]
async fn a_transition_is_posted_once_and_signed() {
    let receiver = Receiver::content().await;
    let gateway = told_of(&receiver.webhook(&format!("secret = \"{SECRET}\""))).await;
    gateway.engine().force_open("t").unwrap();
    gateway.engine().release("t").unwrap();
    let posts = receiver.posts(2).await;
    assert_eq!(posts[0].tells(), ("t".into(), 1, "FORCED_OPEN".into()));
    assert_eq!(posts[1].tells(), ("t".into(), 2, "CLOSED".into()));
    assert_ne!(posts[0].id(), posts[1].id());
    for post in &posts {
        assert!(post.head.starts_with("POST /hidden-path?key=hidden-key HTTP/1.1\r\n"), "{}", post.head);
        assert!(post.is_signed_with(SECRET), "{post:?}");
        assert!(!post.is_signed_with("0123456789abcdef"), "{post:?}");
    }
    let body = posts[0].json();
    assert_eq!((&body["version"], &body["dropped"], body.get("summary")), (&1.into(), &0.into(), None));
    assert_eq!(body["text"], "t: CLOSED to FORCED_OPEN, forced open");
    assert_eq!(body["transition"]["cause"], "forced_open");
    until("it is counted", async || count(&gateway, "told").await == 2).await;
    assert_eq!((count(&gateway, "posts").await, count(&gateway, "waiting").await), (2, 0));
}

#[tokio::test]
async fn what_isnt_taken_is_tried_again_in_the_same_words_and_in_order() {
    let receiver = Receiver::start(|number| match number {
        0 => Some("503 Service Unavailable"),
        // It never answers.
        1 => None,
        _ => Some("200 OK"),
    })
    .await;
    let gateway = told_of(&receiver.webhook("timeout = \"100ms\"\nsecret = \"0123456789abcdef\"")).await;
    gateway.engine().force_open("t").unwrap();
    gateway.engine().release("t").unwrap();
    let posts = receiver.posts(4).await;
    assert_eq!(posts.iter().map(|post| post.tells().1).collect::<Vec<_>>(), [1, 1, 1, 2]);
    assert!(posts[..3].iter().all(|post| post.body == posts[0].body && post.id() == posts[0].id()));
    assert!(posts.iter().all(|post| post.is_signed_with("0123456789abcdef")));
    assert_eq!((count(&gateway, "retries").await, count(&gateway, "given_up").await), (2, 0));
}

#[tokio::test]
async fn a_target_that_flaps_doesnt_page_a_hundred_times_and_its_last_state_is_told() {
    let receiver = Receiver::content().await;
    let gateway = told_of(&receiver.webhook("at_most = 2\ninterval = \"1s\"")).await;
    for _ in 0..100 {
        gateway.engine().force_open("t").unwrap();
        gateway.engine().release("t").unwrap();
    }
    gateway.engine().disable("t").unwrap();
    gateway.engine().force_open("other").unwrap();
    let posts = receiver.posts(4).await;
    let mut told: Vec<_> = posts.iter().map(Post::tells).collect();
    assert_eq!(told.pop(), Some(("t".into(), 201, "DISABLED".into())));
    assert!(told.contains(&("other".into(), 1, "FORCED_OPEN".into())), "{told:?}");
    let last = posts[3].json();
    assert_eq!(last["summary"]["transitions"], 199);
    assert!(last["text"].as_str().unwrap().starts_with("t: 199 transitions since "), "{last}");
    until("all are told", async || count(&gateway, "told").await == 202).await;
}

#[tokio::test]
async fn what_is_refused_for_good_is_given_up_and_confessed_in_the_next_body() {
    let receiver = Receiver::start(|number| match number {
        0 => Some("307 Temporary Redirect\r\nlocation: /elsewhere"),
        1 => Some("410 Gone"),
        _ => Some("200 OK"),
    })
    .await;
    let gateway = told_of(&receiver.webhook("")).await;
    for change in [1, 2] {
        gateway.engine().force_open("t").unwrap();
        gateway.engine().release("t").unwrap();
        receiver.posts(2 * change).await;
    }
    let posts = receiver.posts(4).await;
    let told: Vec<_> = posts.iter().map(|post| (post.tells().1, post.json()["dropped"].as_u64().unwrap())).collect();
    assert_eq!(told, [(1, 0), (2, 1), (3, 2), (4, 0)]);
    assert!(posts.iter().all(|post| field(&post.head, "x-portcullis-signature").is_none()));
    assert_eq!(count(&gateway, "given_up").await, 2);
    let shown = get(gateway.admin_address().unwrap(), "/webhooks").await.json();
    assert_eq!(shown[0]["last_error"], "it answered 410 Gone");
}

#[tokio::test]
async fn only_what_is_asked_for_is_told() {
    let receiver = Receiver::content().await;
    let gateway = told_of(&receiver.webhook("targets = [\"other\"]\nstates = [\"CLOSED\"]")).await;
    for target in ["t", "other"] {
        gateway.engine().force_open(target).unwrap();
        gateway.engine().release(target).unwrap();
    }
    assert_eq!(receiver.posts(1).await[0].tells(), ("other".into(), 2, "CLOSED".into()));
    assert_eq!(count(&gateway, "waiting").await, 0);
}

#[tokio::test]
async fn a_reload_changes_secrets_ends_what_is_gone_and_keeps_what_waits() {
    let (first, second) = (Receiver::start(|_| Some("503 Busy")).await, Receiver::content().await);
    let parse = |text: &str| format!("{text}{}", targets()).parse::<Config>().unwrap();
    let before = second.webhook("at_most = 1\ninterval = \"1h\"\nsecret = \"0123456789abcdef-old\"");
    let mut gateway = told_of(&(first.webhook("") + &before)).await;
    gateway.engine().force_open("t").unwrap();
    gateway.engine().release("t").unwrap();
    assert!(second.posts(1).await[0].is_signed_with("0123456789abcdef-old"));
    until("it was tried", async || !first.posts.lock().unwrap().is_empty()).await;

    gateway.reload(&parse(&before.replace("-old", "-new"))).unwrap();
    assert_eq!(get(gateway.admin_address().unwrap(), "/webhooks").await.json().as_array().unwrap().len(), 1);
    gateway.engine().force_open("other").unwrap();
    let posts = second.posts(2).await;
    assert_eq!(posts[1].tells().0, "other");
    assert!(posts[1].is_signed_with("0123456789abcdef-new"));

    // What was held back is told before the end, whatever the interval.
    gateway.shutdown().await;
    let posts = second.posts(3).await;
    assert_eq!(posts[2].tells(), ("t".into(), 2, "CLOSED".into()));
}

#[tokio::test]
async fn who_is_taken_away_by_a_reload_is_told_what_waits() {
    let receiver = Receiver::start(|number| Some(if number == 0 { "503 Busy" } else { "200 OK" })).await;
    let mut gateway = told_of(&receiver.webhook("at_most = 1\ninterval = \"1h\"")).await;
    gateway.engine().force_open("t").unwrap();
    gateway.engine().release("t").unwrap();
    until("it was tried", async || count(&gateway, "retries").await == 1).await;
    gateway.reload(&targets().parse().unwrap()).unwrap();
    assert_eq!(get(gateway.admin_address().unwrap(), "/webhooks").await.json().as_array().unwrap().len(), 0);
    let posts = receiver.posts(3).await;
    assert_eq!(posts.iter().map(|post| post.tells().1).collect::<Vec<_>>(), [1, 1, 2]);
}

#[tokio::test]
async fn what_a_reload_takes_from_who_doesnt_listen_is_logged() {
    let (busy, hung) = (Receiver::start(|_| Some("503 Busy")).await, Receiver::start(|_| None).await);
    let with = |hooks: &str| format!("listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n{hooks}{}", targets());
    let hooks = busy.webhook("") + &hung.webhook("timeout = \"1h\"");
    let mut gateway = Process::start("webhook-gone", &with(&hooks)).await;
    assert_eq!(common::post(gateway.admin, "/targets/t/force-open").await.status, 200);
    hung.posts(1).await;
    until("it was tried", async || !busy.posts.lock().unwrap().is_empty()).await;
    gateway.rewrite(&with(""));
    gateway.signal("HUP").await;
    gateway.logged("reloaded", 1).await;
    // The end of the process cuts none of it short.
    gateway.signal("TERM").await;
    assert!(gateway.ended().await.success());
    gateway.logged("a webhook wasn't told all transitions", 2).await;
    for receiver in [busy, hung] {
        let line = format!("host=\"{}\" untold=1 dropped=0", receiver.address);
        assert!(gateway.log().contains(&line), "{line} in {}", gateway.log());
    }
}

#[tokio::test]
async fn a_receiver_that_hangs_delays_no_end_for_long_and_what_it_missed_is_logged() {
    let hung = Receiver::start(|_| None).await;
    let config =
        format!("listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n{}{}", hung.webhook("timeout = \"1h\""), targets());
    let mut gateway = Process::start("webhook-hung", &config).await;
    assert_eq!(common::post(gateway.admin, "/targets/t/force-open").await.status, 200);
    hung.posts(1).await;
    gateway.signal("TERM").await;
    assert!(gateway.ended().await.success());
    gateway.logged("a webhook wasn't told all transitions", 1).await;
    assert!(gateway.log().contains("untold=1"), "{}", gateway.log());
}

#[tokio::test]
async fn nobody_is_shown_the_secret_or_where_it_is_posted_to() {
    let refuses = Receiver::start(|_| Some("404 Not Found")).await;
    let text = refuses.webhook("secret_env = \"PORTCULLIS_TEST_HOOK_SECRET\"");
    let config = format!("listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n{text}{}", targets());
    let environment = [("PORTCULLIS_TEST_HOOK_SECRET", SECRET), ("RUST_LOG", "trace,hyper=info,hyper_util=info")];
    let gateway = Process::start_in(&environment, "webhook-secret", &config).await;
    common::post(gateway.admin, "/targets/t/force-open").await;
    assert!(refuses.posts(1).await[0].is_signed_with(SECRET));
    gateway.logged("a notification was given up", 1).await;
    let shown = String::from_utf8(get(gateway.admin, "/webhooks").await.body.to_vec()).unwrap();
    let parsed: Config =
        config.replace("secret_env", "secret").replace("PORTCULLIS_TEST_HOOK_SECRET", SECRET).parse().unwrap();
    for text in [gateway.log(), shown, format!("{parsed:?}")] {
        assert!(!text.contains(SECRET) && !text.contains("hidden-"), "{text}");
    }
}

#[test]
fn what_is_wrong_about_a_webhook_is_told_and_no_secret_with_it() {
    let error = |lines: &str| {
        let text = format!("[[webhook]]\nurl = \"http://h/\"\n{lines}\n{}", targets());
        text.parse::<Config>().unwrap_err().to_string()
    };
    for (lines, says) in [
        ("secret = \"hidden\"", "webhook[0].secret: the secret is out of range"),
        ("at_most = 0", "webhook[0].at_most: 0 is out of range: must be a whole number from 1 to 1000"),
        ("interval = \"0s\"", "webhook[0].interval"),
        ("timeout = \"2h\"", "webhook[0].timeout"),
        ("targets = [\"nobody\"]", "webhook[0].targets[0]: \"nobody\" is no target"),
        ("targets = []", "webhook[0].targets"),
        ("states = [\"open\"]", "webhook[0].states[0]"),
        ("secret = \"0123456789abcdef\"\nsecret_env = \"X\"", "webhook[0].secret_env"),
        ("method = \"PUT\"", "webhook[0].method: unknown field"),
        ("[[webhook]]\nurl = \"http://h/\"", "webhook[1]: the same url as webhook[0]"),
        ("[[webhook]]", "webhook[1].url: missing"),
        ("[[webhook]]\nurl = \"https://hidden/\"", "webhook[1].url: https isn't spoken"),
        ("[[webhook]]\nurl = \"http://user:hidden@h/\"", "webhook[1].url: the url is refused"),
    ] {
        let error = error(lines);
        assert!(error.contains(says) && !error.contains("hidden"), "{says:?} not in {error:?}");
    }
    let right =
        format!("[[webhook]]\nurl = \"http://h:1/p?q=1\"\nstates = [\"OPEN\"]\ntargets = [\"t\"]\n{}", targets());
    let config: Config = right.parse().unwrap();
    assert_eq!(config.to_string().parse::<Config>().unwrap(), config);
}
