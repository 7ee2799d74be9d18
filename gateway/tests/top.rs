//! `portcullis top` in a real terminal, before a real gateway.
#![allow(clippy::unwrap_used)]

mod common;

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use common::{PATIENCE, gateway, nobody, single, state, until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

/// A terminal with the program in it.
struct Terminal {
    child: Child,
    shown: Arc<Mutex<String>>,
}

impl Terminal {
    fn start(admin: &str) -> Self {
        // `script` gives it a terminal of its own.
        let top = format!("stty cols 120 rows 30; exec {} top --admin {admin}", env!("CARGO_BIN_EXE_portcullis"));
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--flush", "--command", &top, "/dev/null"])
            .env("TERM", "xterm-256color")
            .env_remove("PORTCULLIS_ADMIN_TOKEN")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        let shown = Arc::new(Mutex::new(String::new()));
        let all = Arc::clone(&shown);
        tokio::spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = output.read(&mut buffer).await {
                all.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
        });
        Self { child, shown }
    }

    /// Waits for a word: of what is drawn over other text, only the cells that differ are written.
    async fn shows(&self, word: &str) {
        until(word, async || self.shown.lock().unwrap().contains(word)).await;
    }

    async fn keys(&mut self, keys: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(keys.as_bytes()).await.unwrap();
        input.flush().await.unwrap();
    }
}

#[tokio::test]
async fn a_target_is_forced_open_from_a_terminal_and_the_terminal_is_left_as_it_was() {
    let gateway = gateway(&single(nobody().1, "")).await;
    let mut terminal = Terminal::start(&gateway.admin_address().unwrap().to_string());
    terminal.shows("targets").await;
    terminal.keys("o").await;
    terminal.shows("refused").await;
    terminal.keys("y").await;
    until("it is forced", async || state(&gateway, "t").await == "FORCED_OPEN").await;
    // As the stream tells it.
    terminal.shows("FORCED_OPEN").await;
    gateway.shutdown().await;
    terminal.shows("STALE").await;
    terminal.keys("q").await;
    let ended = tokio::time::timeout(PATIENCE, terminal.child.wait()).await.expect("it ends").unwrap();
    assert!(ended.success());
    // The other screen is left, and the cursor is there again.
    terminal.shows("\u{1b}[?1049l").await;
    terminal.shows("\u{1b}[?25h").await;
}

#[tokio::test]
async fn without_a_terminal_it_says_where_scripts_can_read() {
    let output = Command::new(env!("CARGO_BIN_EXE_portcullis")).arg("top").output().await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("top needs a terminal"), "{said}");
}
