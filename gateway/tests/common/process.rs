//! The real binary with a configuration file, told what to do by signals.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::{PATIENCE, until};

/// A gateway in a process of its own.
pub struct Process {
    child: Child,
    log: Arc<Mutex<String>>,
    file: PathBuf,
    pub proxy: SocketAddr,
    pub admin: SocketAddr,
}

impl Process {
    /// Starts it and waits for its listeners. `name` makes the file's name unique among the tests.
    pub async fn start(name: &str, config: &str) -> Self {
        Self::start_with(name, config, None).await
    }

    /// The same, with these variables in its environment.
    pub async fn start_in(environment: &[(&str, &str)], name: &str, config: &str) -> Self {
        Self::begin(name, config, None, environment).await
    }

    /// The same, with another limit of open descriptors than the tests have.
    pub async fn start_with(name: &str, config: &str, descriptors: Option<u64>) -> Self {
        Self::begin(name, config, descriptors, &[]).await
    }

    async fn begin(name: &str, config: &str, descriptors: Option<u64>, environment: &[(&str, &str)]) -> Self {
        let file = std::env::temp_dir().join(format!("portcullis-{name}-{}.toml", std::process::id()));
        std::fs::write(&file, config).unwrap();
        let binary = env!("CARGO_BIN_EXE_portcullis");
        let mut command = match descriptors {
            None => Command::new(binary),
            Some(limit) => {
                // The limit is the shell's own and stays when the gateway takes its place.
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("ulimit -n {limit} && exec \"$0\" \"$@\""), binary]);
                shell
            }
        };
        let mut child = command
            .args(["serve", "--config"])
            .arg(&file)
            .env_remove("PORTCULLIS_ADMIN_TOKEN")
            .env("RUST_LOG", "info")
            .envs(environment.iter().copied())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let written = Arc::clone(&log);
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                *written.lock().unwrap() += &(line + "\n");
            }
        });
        until("it listens", async || log.lock().unwrap().contains("admin listening")).await;
        let text = log.lock().unwrap().clone();
        let address = |what: &str| {
            let line = text.lines().find(|line| line.contains(what)).unwrap();
            line.rsplit_once("address=").unwrap().1.trim().parse().unwrap()
        };
        let (proxy, admin) = (address("proxy listening"), address("admin listening"));
        Self { child, log, file, proxy, admin }
    }

    pub fn rewrite(&self, config: &str) {
        std::fs::write(&self.file, config).unwrap();
    }

    pub async fn signal(&self, signal: &str) {
        let id = self.child.id().unwrap();
        // Every shell has it; not every machine has it as a program.
        let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {id}")]).status().await.unwrap();
        assert!(sent.success());
    }

    /// Waits until the log says something for the given time.
    pub async fn logged(&self, what: &str, times: usize) {
        until(what, async || self.log.lock().unwrap().matches(what).count() >= times).await;
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Open descriptors.
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id().unwrap())).unwrap().count()
    }

    /// KiB of memory that are in use.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id().unwrap())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> ExitStatus {
        tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it ends").unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}
