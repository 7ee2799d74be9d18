//! The commands `check` and `serve` on files that are right and wrong: what they print, and what they end with.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use portcullis_gateway::Config;

/// The fields of the last table follow on line 14.
const GOOD: &str = include_str!("common/good.toml");

struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("portcullis-config-{}-{name}.toml", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn portcullis(command: &str, file: &Path) -> Output {
    let binary = env!("CARGO_BIN_EXE_portcullis");
    Command::new(binary).args([command, "--config"]).arg(file).env_remove("PORTCULLIS_ADMIN_TOKEN").output().unwrap()
}

#[test]
fn check_prints_the_effective_policies() {
    let unasked = GOOD.replace("path = \"/core/\"", "path = \"/core/\"\nadmission = false");
    let file = File::new("good", &format!("{unasked}max_in_flight = 3"));
    let output = portcullis("check", &file.0);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("[target.core-banking]\n") && text.contains("max_in_flight = 3\n"), "{text}");
    assert!(text.contains("open_wait = \"5s\"\n") && text.contains("timeout = \"1s\"\n"), "{text}");
    assert!(text.contains("# note: no route leads to claims\n"), "{text}");
    assert!(text.contains("# note: /core/ goes to core-banking unasked"), "{text}");
    assert!(text.contains("# note: claims alone can fill the process"), "{text}");
    assert!(text.parse::<Config>().is_ok(), "{text}");
}

#[test]
fn check_and_serve_end_with_2_on_a_wrong_file() {
    let file = File::new("bad", &format!("{GOOD}failure_rate = 1.5"));
    let missing = std::env::temp_dir().join("portcullis-config-that-is-not-there.toml");
    for command in ["check", "serve"] {
        let output = portcullis(command, &file.0);
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("line 14: target.core-banking.failure_rate: 1.5"), "{text}");
        assert!(text.contains("above 0 and at most 1"), "{text}");
        assert_eq!(portcullis(command, &missing).status.code(), Some(2));
    }
}

#[test]
fn a_public_admin_listener_needs_a_token() {
    let file = File::new("public", &GOOD.replace("127.0.0.1:9090", "0.0.0.0:0").replace("8080", "0"));
    let output = portcullis("serve", &file.0);
    assert!(!output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("admin_token"), "{text}");
}
