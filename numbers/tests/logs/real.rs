//! Logs that were written elsewhere; `tests/data/README.md` says where.

use std::path::PathBuf;

use portcullis::Outcome;
use portcullis_numbers::logs::{Fault, Input};

use super::support::{MS, Read, read};

fn data(name: &str) -> Input {
    Input::new(vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)])
}

/// How many calls went to each target.
fn counts(read: &Read) -> Vec<(&str, usize)> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for (target, _) in &read.calls {
        match counts.iter_mut().find(|(name, _)| name == target) {
            Some((_, count)) => *count += 1,
            None => counts.push((target, 1)),
        }
    }
    counts.sort_unstable();
    counts
}

fn failures(read: &Read) -> usize {
    read.calls.iter().filter(|(_, call)| call.outcome == Outcome::Failure).count()
}

#[test]
fn haproxy() {
    let read = read(&data("haproxy.log")).unwrap();
    assert_eq!(counts(&read), [("bk_admin", 2), ("bk_ktest_kt", 6), ("bk_ktest_sonst", 5)]);
    assert_eq!((read.summary.lines, read.summary.bad[&Fault::Shape], failures(&read)), (17, 4, 0));
    assert_eq!(read.calls.iter().map(|(_, call)| call.latency).max(), Some(2707 * MS));
}

#[test]
fn ingress_nginx() {
    let read = read(&data("ingress-nginx.log")).unwrap();
    let expected =
        [("default-web-8080", 7), ("default-web2-8080", 3), ("esmon-esmon-es-http-9200", 1), ("localhost-8080", 1)];
    assert_eq!(counts(&read), expected);
    assert_eq!((read.summary.answered_by_proxy, failures(&read)), (2, 1));
    assert_eq!(read.calls.iter().map(|(_, call)| call.latency).max(), Some(104 * MS));
    assert!(read.summary.bad.is_empty());
}

#[test]
fn jmeter() {
    let mut input = data("jmeter.csv.gz");
    let all = read(&input).unwrap();
    assert_eq!((all.calls.len(), all.summary.names.len(), all.summary.bad.len()), (313, 9, 0));
    // Sums over several requests have no URL.
    input.target_regex = Some("^/([a-z-]+)".to_owned());
    let read = read(&input).unwrap();
    assert_eq!(counts(&read), JMETER);
    assert_eq!(read.summary.unmatched, 313 - read.summary.calls);
}

const JMETER: [(&str, usize); 3] = [("blog", 74), ("search", 33), ("wp-admin", 70)];

#[test]
fn apache() {
    let mut input = data("apache.log.gz");
    assert!(read(&input).unwrap_err().to_string().contains("$request_time"));
    input.without_latency = true;
    let read = read(&input).unwrap();
    assert_eq!((counts(&read), failures(&read)), (vec![("apache", 5000)], 2));
    assert!(read.summary.bad.is_empty(), "{}", read.summary);
}

#[test]
fn a_shop() {
    let mut input = data("shop.log.gz");
    input.without_latency = true;
    input.target_regex = Some("^/([a-z]+)".to_owned());
    let read = read(&input).unwrap();
    assert_eq!(counts(&read).iter().find(|(target, _)| *target == "image"), Some(&("image", 401)));
    assert_eq!(read.summary.calls + read.summary.unmatched, 1000);
}
