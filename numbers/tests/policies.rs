//! Policy files: a gateway's own, and those that say policies only.

use std::time::Duration;

use portcullis_numbers::policies::{ConfigError, Policies};

fn read(text: &str) -> Policies {
    text.parse().unwrap_or_else(|errors| panic!("{errors}"))
}

fn errors(text: &str) -> Vec<ConfigError> {
    text.parse::<Policies>().err().map(|errors| errors.errors().to_vec()).unwrap_or_default()
}

#[test]
fn a_gateways_configuration_is_a_policy_file() {
    let policies = read(&format!(
        "{}\n[target.claims.shadow.strict]\nfailures = 3",
        include_str!("../../gateway/portcullis.example.toml")
    ));
    assert_eq!(policies.targets().map(|(name, _)| name).collect::<Vec<_>>(), ["claims", "core-banking"]);
    let claims = policies.of("claims").unwrap();
    assert_eq!((claims.policy.max_in_flight(), claims.timeout), (64, Some(Duration::from_millis(250))));
}

#[test]
fn a_target_without_a_table_has_the_defaults() {
    let policies = read("[defaults]\nmax_in_flight = 7\nattempts = 2\n[target.a]\nmax_in_flight = 3\n");
    let (a, b) = (policies.of("a").unwrap(), policies.of("b").unwrap());
    assert_eq!((a.policy.max_in_flight(), a.call.attempts()), (3, 2));
    assert_eq!((b.policy.max_in_flight(), b.call.attempts()), (7, 2));
    assert!(policies.has("a") && !policies.has("b"));
}

#[test]
fn an_empty_file_is_the_engines_own_defaults_and_no_timeout() {
    let policies = read("");
    let terms = policies.of("any").unwrap();
    assert_eq!((&terms.policy, terms.timeout), (&portcullis::Policy::default(), None));
}

#[test]
fn a_streams_timeout_cuts_no_call() {
    let policies = read("[defaults]\ntimeout = \"1s\"\n[target.a]\nstream = true\n[target.b]\n");
    assert_eq!(policies.of("a").unwrap().timeout, None);
    assert_eq!(policies.of("b").unwrap().timeout, Some(Duration::from_secs(1)));
}

#[test]
fn defaults_may_need_what_each_target_adds() {
    let policies = read("[defaults]\nramp = \"10s\"\n[target.a]\nmax_in_flight = 5\n");
    assert!(policies.of("a").is_some());
    assert!(policies.of("b").is_none());
}

#[test]
fn defaults_that_stand_alone_must_work() {
    assert_eq!(errors("[defaults]\nfailure_rate = 1.5\n").len(), 1);
    assert_eq!(errors("[defaults]\nramp = \"10s\"\n").len(), 1);
}

#[test]
fn a_timeout_among_the_defaults_is_judged_once_whoever_has_it() {
    let told = errors("[defaults]\ntimeout = \"2h\"\nstream = 1\n[target.a]\n[target.b]\n");
    assert_eq!(
        told.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(),
        ["defaults.timeout", "defaults.stream"]
    );
    assert_eq!(errors("[defaults]\ntimeout = \"2h\"\n").len(), 1);
}

#[test]
fn an_error_names_line_field_value_and_range() {
    let told: Vec<String> = errors("lisen = 1\n[target.a]\nfailure_rate = 1.5\nmin_cals = 3\ntimeout = \"2h\"\n")
        .iter()
        .map(ToString::to_string)
        .collect();
    let [unknown, rate, field, timeout] = told.as_slice() else { panic!("{told:?}") };
    assert!(unknown.starts_with("line 1: lisen: unknown field: must be one of listen, "), "{unknown}");
    assert_eq!(
        rate,
        "line 3: target.a.failure_rate: 1.5 is out of range: must be above 0 and at most 1, in steps of 0.0001"
    );
    assert!(field.starts_with("line 4: target.a.min_cals: unknown field: must be one of upstream, "), "{field}");
    assert!(
        timeout.starts_with("line 5: target.a.timeout: \"2h\" is out of range: must be a duration from"),
        "{timeout}"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let error = Policies::load("no/such/policy.toml".as_ref()).unwrap_err().to_string();
    assert!(error.starts_with("no/such/policy.toml: can't be read: "), "{error}");
}
