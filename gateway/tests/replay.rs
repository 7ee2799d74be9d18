//! The command `replay`: what it ends with, and that its bytes are the same each time.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Files of one test, gone with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("portcullis-replay-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn with(self, file: &str, text: &str) -> Self {
        std::fs::write(self.0.join(file), text).unwrap();
        self
    }

    fn replay(&self, threads: u32, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        command.current_dir(&self.0).env("RAYON_NUM_THREADS", threads.to_string());
        command.arg("replay").args(arguments).output().unwrap()
    }

    fn read(&self, file: impl AsRef<Path>) -> String {
        std::fs::read_to_string(self.0.join(file)).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const POLICY: &str = "[defaults]\nconsecutive_failures = 5\nmax_in_flight = 4\nopen_wait = \"1s\"\n";
const OTHER: &str = "[defaults]\nmin_calls = 20\ntimeout = \"100ms\"\n[target.claims]\nfailure_rate = 0.2\n";

/// A call each 10 ms; `<script>` fails for 5 s, and then answers slowly.
fn log() -> String {
    let mut log = String::from("time,target,latency_ms,status\n");
    for n in 0..6_000_u32 {
        let (target, is_sick) = if n % 2 == 0 { ("<script>alert(1)</script>", true) } else { ("claims", false) };
        let status = if is_sick && (2_000..2_500).contains(&n) { 503 } else { 200 };
        let latency = if is_sick && (2_500..3_000).contains(&n) { 150 } else { 5 };
        writeln!(log, "{}.{:02},{target},{latency},{status}", 1_700_000_000 + n / 100, n % 100).unwrap();
    }
    log
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn folder(name: &str) -> Folder {
    Folder::new(name).with("log.csv", &log()).with("one.toml", POLICY).with("two.toml", OTHER)
}

#[test]
fn the_same_log_and_policies_are_the_same_bytes() {
    let folder = folder("bytes");
    let run = |threads, page| {
        let both = ["log.csv", "--policy", "one.toml", "--policy", "two.toml"];
        let table = folder.replay(threads, &[&both[..], &["--html", page]].concat());
        let json = folder.replay(threads, &[&both[..], &["--json"]].concat());
        assert_eq!((table.status.code(), json.status.code()), (Some(0), Some(0)), "{}", text(table.stderr));
        (text(table.stdout), text(json.stdout), folder.read(page))
    };
    let first = run(1, "a.html");
    assert_eq!(first, run(4, "b.html"));
    assert!(first.0.starts_with("6,000 calls to 2 targets, 2023-11-14T22:13:20.000Z to "), "{}", first.0);
}

#[test]
fn the_page_and_the_json_have_the_tables_numbers() {
    let folder = folder("twins");
    let output = folder.replay(2, &["log.csv", "--policy", "strict=one.toml", "--json", "--html", "page.html"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let page = folder.read("page.html");
    let sums = &report["policies"][0];
    assert_eq!((&sums["name"], &sums["trips"]), (&"strict".into(), &1.into()));
    assert_eq!(sums["admitted"].as_u64().unwrap() + sums["refused"].as_u64().unwrap(), 6_000);
    assert_eq!((&report["log"]["lines"], &report["log"]["calls"]), (&6_001.into(), &6_000.into()));
    // In the order of the columns.
    let cells: Vec<u64> = ["refused", "refused_good", "failures_avoided"].map(|key| sums[key].as_u64().unwrap()).into();
    let row: String = cells.iter().map(|number| format!("<td>{number}</td>")).collect();
    assert!(page.contains(&row), "{row}");
    assert!(page.contains("<title>OPEN 2023-11-14T22:13:40.085Z to "), "the timeline tells when");
}

#[test]
fn the_page_runs_nothing_and_asks_for_nothing() {
    let folder = folder("page");
    folder.replay(1, &["log.csv", "--policy", "a<b=one.toml", "--html", "page.html"]);
    let page = folder.read("page.html");
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("a&lt;b") && !page.contains("a<b"));
    let addresses = page.matches("://").count();
    assert_eq!(
        addresses,
        page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count(),
        "names of a format, no addresses"
    );
    assert!(!page.contains(" src=") && !page.contains("url("));
}

#[test]
fn what_cannot_be_used_ends_with_2_and_is_named() {
    let folder = folder("wrong").with("bad.toml", "[defaults]\nfailure_rate = 1.5\n");
    let refused = |arguments: &[&str]| {
        let output = folder.replay(1, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty());
        text(output.stderr)
    };
    let error = refused(&["log.csv", "--policy", "bad.toml"]);
    assert!(
        error.starts_with("bad.toml: line 2: defaults.failure_rate: 1.5 is out of range: must be above 0"),
        "{error}"
    );
    let error = refused(&["log.csv", "--policy", "gone.toml"]);
    assert!(error.starts_with("gone.toml: can't be read: "), "{error}");
    let error = refused(&["gone.csv", "--policy", "one.toml"]);
    assert!(error.contains("gone.csv"), "{error}");
    let error = refused(&["log.csv", "--policy", "one.toml", "--policy", "one=two.toml"]);
    assert!(error.contains("there is one named one already"), "{error}");
    let error = refused(&["log.csv", "--policy", "one.toml", "--html", "no/such/folder.html"]);
    assert!(error.starts_with("no/such/folder.html: can't be written: "), "{error}");
    assert!(refused(&["log.csv"]).contains("--policy"));
}

#[test]
fn bad_lines_are_told_and_stop_nothing() {
    let folder = folder("lines").with("torn.csv", &(log() + "1700000061,claims,oops,200\n"));
    let output = folder.replay(1, &["torn.csv", "--policy", "one.toml"]);
    assert_eq!(output.status.code(), Some(0));
    let told = text(output.stderr);
    assert!(told.contains("torn.csv:6002"), "{told}");
    assert!(text(output.stdout).starts_with("6,000 calls"));
}

#[test]
fn the_readmes_figures_are_those_of_its_command() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let readme = std::fs::read_to_string(root.join("numbers/README.md")).unwrap();
    let arguments = readme.lines().find_map(|line| line.split_once(" -- replay ")).unwrap().1;
    let arguments = arguments.split_once(" --html").unwrap().0.split(' ');
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    let output = command.current_dir(root).arg("replay").args(arguments).output().unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let printed: Vec<_> = text(output.stdout).lines().map(words).collect();
    let table =
        readme.lines().skip_while(|line| !line.starts_with("target        policy")).take_while(|line| *line != "```");
    let rows: Vec<_> = table.skip(1).map(words).collect();
    assert_eq!(rows.len(), 6);
    for row in rows {
        assert!(printed.iter().any(|line| line.starts_with(&row)), "{row:?} isn't printed: {printed:?}");
    }
}

/// Two hours of a target that always fails one call in 50, and all of them in the minutes that begin at these seconds.
const OUTAGES: [u64; 3] = [900, 2_700, 5_000];

fn two_hours() -> String {
    let mut log = String::from("time,target,latency_ms,status\n");
    for n in 0..144_000_u64 {
        let ms = n * 50;
        // By chance, but for the seed: the upper bits of a product with an odd number, as in Fibonacci hashing.
        let chance = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let is_down = OUTAGES.iter().any(|begin| (begin * 1_000..(begin + 60) * 1_000).contains(&ms));
        let status = if is_down || chance.is_multiple_of(50) { 503 } else { 200 };
        let at = 1_700_000_000_000 + ms;
        writeln!(log, "{}.{:03},core,{},{status}", at / 1_000, at % 1_000, 20 + chance % 60).unwrap();
    }
    log
}

#[test]
fn what_plan_writes_trips_in_every_outage_and_never_else() {
    let folder = Folder::new("planned").with("log.csv", &two_hours());
    let mut plan = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    let planned = plan.current_dir(&folder.0).args(["plan", "log.csv", "--out", "plan.toml"]).output().unwrap();
    assert!(planned.status.success(), "{}", text(planned.stderr));
    let output = folder.replay(2, &["log.csv", "--policy", "plan.toml", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let under = &report["targets"][0]["under"][0];
    let trips = under["transitions"].as_array().unwrap().iter().filter(|change| change["evidence"].is_object());
    let at: Vec<u64> = trips.map(|change| change["at_ms"].as_u64().unwrap() / 1_000 - 1_700_000_000).collect();
    let of_outages: Vec<_> =
        at.iter().map(|at| OUTAGES.iter().find(|begin| (**begin..**begin + 60).contains(at))).collect();
    assert_eq!(of_outages, OUTAGES.each_ref().map(Some), "trips at {at:?}\n{}", folder.read("plan.toml"));
    let spared = under["failures_avoided"].as_u64().unwrap();
    assert!(under["refused_good"].as_u64().unwrap() * 5 < spared && spared > 3_000, "{under}");
}
