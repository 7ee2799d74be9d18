//! Blocking callers: the same policy without a runtime, around a blocking HTTP client.
//!
//! `cargo run --features call --example blocking`
//!
//! The timeout is the client's own: nothing can take a thread out of a blocking read. The call tells it how long it has.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use portcullis::call::{Backup, CallPolicy, Caller, LastGood, ThreadSleep, Verdict};
use portcullis::{Engine, Policy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let upstream = upstream()?;
    let policy = Policy::builder().consecutive_failures(4).open_wait(Duration::from_secs(5)).build()?;
    let engine: Arc<Engine> = Arc::new(Engine::builder().policy(policy).build());
    let call = CallPolicy::builder().timeout(Duration::from_millis(200)).attempts(2).retry_budget(0.5).build()?;
    let caller = Caller::builder(engine).policy(call).build()?;

    // Statuses are answers here, not errors, so that the verdict can tell 404 from 503.
    let agent = ureq::Agent::new_with_config(ureq::Agent::config_builder().http_status_as_error(false).build());
    let kept = LastGood::new(100);
    let judge = |result: &Result<(u16, String), ureq::Error>| match result {
        Ok((status, _)) if *status >= 500 => Verdict::failure().status(*status),
        Ok(_) => Verdict::success(),
        Err(ureq::Error::Timeout(_)) => Verdict::failure().code("E901"),
        Err(_) => Verdict::failure().code("E902"),
    };
    for path in ["/rates", "/missing", "/slow", "/rates", "/other", "/rates"] {
        let url = format!("http://{upstream}{path}");
        let get = |attempt: portcullis::call::Attempt| {
            let request = agent.get(&url).config().timeout_global(Some(attempt.timeout)).build();
            let mut response = request.call()?;
            Ok((response.status().as_u16(), response.body_mut().read_to_string()?))
        };
        let backup = Backup::last_good(&kept, path, Duration::from_secs(60));
        match caller.to("core-banking").idempotent(true).run_blocking_or(backup, judge, &ThreadSleep, get) {
            Ok(answer) => {
                let source = answer.fallback().map_or_else(|| "the target".to_owned(), |kind| kind.to_string());
                println!("{path}: {} {:?} from {source}, {} attempts", answer.0, answer.1, answer.attempts());
            }
            Err(error) => println!("{path}: {error}"),
        }
    }
    println!("{:?}", caller.counts("core-banking"));
    Ok(())
}

/// A target of few words, a thread per connection. From the third on it is down.
fn upstream() -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            std::thread::spawn(move || answer(stream, number < 2));
        }
    });
    Ok(address)
}

fn answer(mut stream: std::net::TcpStream, is_up: bool) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let status = match first.split(' ').nth(1) {
        Some("/rates") if is_up => "200 OK",
        Some("/missing") if is_up => "404 Not Found",
        Some("/slow") => {
            std::thread::sleep(Duration::from_secs(1));
            "200 OK"
        }
        _ => "503 Service Unavailable",
    };
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 4\r\nconnection: close\r\n\r\n1.07")
}
