//! Priorities and waits in the configuration: what is read, refused and noted.
#![allow(clippy::unwrap_used)]

use portcullis::Priority;
use portcullis_gateway::Config;

/// The fields of the last table follow on line 14.
const GOOD: &str = include_str!("common/good.toml");

/// The only error, which must be on this line, about this field, and say this.
fn only(text: &str, line: usize, field: &str, says: &[&str]) {
    let refused = text.parse::<Config>().expect_err(text);
    let [error] = refused.errors() else { panic!("not one error but {refused} in\n{text}") };
    assert_eq!((error.line, error.field.as_str()), (Some(line), field), "{error} in\n{text}");
    for words in says {
        assert!(error.message.contains(words), "{words:?} not in {error}");
    }
}

#[test]
fn routes_say_how_much_their_requests_matter() {
    let route = |lines: &str| GOOD.replace("path = \"/core/\"", &format!("path = \"/core/\"\n{lines}"));
    let read = |lines: &str| {
        let config: Config = route(lines).parse().unwrap();
        assert_eq!(config.to_string().parse::<Config>().unwrap(), config);
        (config.routes[0].priority, config.routes[0].priority_header)
    };
    assert_eq!(read(""), (Priority::Critical, false));
    assert_eq!(read("priority_header = true"), (Priority::Critical, true));
    assert_eq!(read("priority = \"normal\"\npriority_header = true"), (Priority::Normal, true));
    assert_eq!(read("priority = \"sheddable\"\npriority_header = false"), (Priority::Sheddable, false));
    for value in ["\"high\"", "\"Normal\"", "\"\"", "1", "true"] {
        let names = ["\"critical\", \"normal\" or \"sheddable\""];
        only(&route(&format!("priority = {value}")), 9, "route[0].priority", &names);
    }
    only(&route("priority_header = \"yes\""), 9, "route[0].priority_header", &["true or false"]);
    let lowest = route("priority = \"sheddable\"\npriority_header = true");
    only(&lowest, 10, "route[0].priority_header", &["can't matter less"]);
    let unasked = route("admission = false\npriority = \"normal\"");
    only(&unasked, 10, "route[0].priority", &["no effect with admission = false"]);
}

#[test]
fn priorities_that_come_to_nothing_are_noted() {
    let notes = |route: &str, target: &str| {
        let text = format!(
            "{}max_in_flight = 9\n{target}",
            GOOD.replace("path = \"/core/\"", &format!("path = \"/core/\"\n{route}"))
        );
        let all = text.parse::<Config>().unwrap().notes();
        // The other target's are none of ours.
        all.into_iter().filter(|note| !note.contains("claims")).collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    assert_eq!(notes("", ""), none);
    assert_eq!(
        notes("", "normal_share = 0.5"),
        ["core-banking has a normal_share, but no route to it has normal requests"]
    );
    let both = "normal_share = 0.5\nsheddable_share = 0.2";
    assert_eq!(notes("", both).len(), 2);
    assert_eq!(notes("priority_header = true", both), none);
    assert_eq!(
        notes("priority = \"normal\"", both),
        ["core-banking has a sheddable_share, but no route to it has sheddable requests"]
    );
    assert_eq!(
        notes("priority = \"sheddable\"", ""),
        ["requests of /core/ are sheddable, but core-banking has no sheddable_share to stop them at"]
    );
    assert_eq!(notes("", "max_waiting = 5"), none);
    assert_eq!(
        notes("priority = \"normal\"", "normal_share = 0.5\nmax_waiting = 5"),
        ["core-banking has max_waiting, but only critical requests wait, and no route to it has any"]
    );
    // Who isn't asked can't wait.
    let unasked = notes("admission = false", "max_waiting = 5");
    assert!(unasked.iter().any(|note| note.contains("no route to it has any")), "{unasked:?}");
    assert_eq!(
        notes("", "max_waiting = 512"),
        ["core-banking alone can fill the process: its max_waiting isn't under max_concurrent"]
    );
}

#[test]
fn a_deadline_must_hold_the_wait_for_a_place_too() {
    let waits = "max_in_flight = 9\nmax_waiting = 5\nmax_wait = \"500ms\"";
    assert!(format!("{GOOD}{waits}\ndeadline = \"1500ms\"").parse::<Config>().is_ok());
    let sums = "max_wait and the worst case: 500ms + 1s = 1.5s";
    only(&format!("{GOOD}{waits}\ndeadline = \"1499ms\""), 17, "target.core-banking.deadline", &["1.499s", sums]);
    let inherited = GOOD.replace("timeout = \"1s\"", "deadline = \"1s\"");
    only(&format!("{inherited}{waits}"), 5, "target.core-banking.deadline", &[sums, "set in defaults"]);
}
