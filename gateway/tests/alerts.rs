//! The alerts, the runbook and the dashboard speak of what there is.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;

use common::{gateway_to, get, upstream};

const RULES: &str = include_str!("../alerts/portcullis.rules.yml");
const RUNBOOK: &str = include_str!("../RUNBOOK.md");
const DASHBOARD: &str = include_str!("../grafana/portcullis.json");

/// The words in a text that are names of metrics.
fn metrics(text: &str) -> BTreeSet<&str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("portcullis_") || word.starts_with("process_")).collect()
}

/// The values of a key in the rules.
fn values(key: &str) -> impl Iterator<Item = &str> {
    RULES.lines().filter_map(move |line| line.trim_start_matches([' ', '-']).strip_prefix(key)).map(str::trim)
}

fn expressions() -> Vec<String> {
    let dashboard: serde_json::Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter().filter_map(|panel| panel["targets"].as_array());
    let queries = panels.flatten().map(|target| target["expr"].as_str().unwrap().to_owned());
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let variables = variables.filter_map(|variable| Some(variable["query"]["query"].as_str()?.to_owned()));
    queries.chain(variables).collect()
}

#[tokio::test]
async fn rules_and_dashboard_ask_only_for_series_that_are_there() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "").await;
    let page = get(gateway.admin_address().unwrap(), "/metrics").await;
    let page = std::str::from_utf8(&page.body).unwrap();
    let there = metrics(page);
    let queries = expressions();
    assert!(queries.len() >= 20, "{queries:?}");
    for text in queries.iter().map(String::as_str).chain([RULES, RUNBOOK]) {
        let asked = metrics(text);
        assert!(asked.is_subset(&there), "{:?} in {text}", asked.difference(&there));
    }
    // Nor for labels of other names.
    let labels = [
        "target", "state", "reason", "outcome", "kind", "from", "to", "when", "probe", "le", "version", "job",
        "instance",
    ];
    for query in queries {
        let inside = query.split('{').skip(1).filter_map(|part| part.split('}').next());
        let names = inside.flat_map(|part| part.split("\",")).filter_map(|part| part.split(['=', '!']).next());
        names.for_each(|name| assert!(labels.contains(&name.trim()), "{name} in {query}"));
    }
}

#[test]
fn each_alert_leads_to_its_heading_in_the_runbook() {
    let alerts: Vec<&str> = values("alert:").collect();
    let links: Vec<&str> = values("runbook_url:").collect();
    assert_eq!((alerts.len(), links.len()), (15, 15));
    for (alert, link) in alerts.iter().zip(links) {
        let (page, anchor) = link.split_once('#').unwrap();
        assert!(page.ends_with("/RUNBOOK.md"), "{link}");
        assert_eq!(anchor, alert.to_lowercase());
        assert!(RUNBOOK.lines().any(|line| line == format!("## {alert}")), "{alert}");
    }
    let headings = RUNBOOK.lines().filter_map(|line| line.strip_prefix("## "));
    headings.for_each(|heading| assert!(alerts.contains(&heading), "no alert leads to {heading}"));
}
