use portcullis::call::{CallPolicy, CallPolicyBuilder, Caller, Fallback, FallbackValue};
use portcullis::{Engine, Policy, PolicyError};
use std::sync::Arc;

use crate::common::{ms, secs};

fn refused(builder: CallPolicyBuilder) -> String {
    builder.build().unwrap_err().to_string()
}

#[test]
fn the_documented_defaults_are_the_defaults() {
    let policy = CallPolicy::default();
    assert_eq!((policy.timeout(), policy.probe_timeout(), policy.deadline()), (secs(1), secs(1), secs(1)));
    assert_eq!((policy.attempts(), policy.longest_backoff(1), policy.backoff_max()), (1, ms(50), secs(1)));
    assert_eq!((policy.retry_budget(), policy.replay_limit()), (Some(0.1), 65_536));
    assert_eq!(policy.fallback(), &Fallback::Refuse);
    let settings = format!("{policy:?}");
    assert!(settings.contains("retry_floor: 1,") && settings.contains("retry_memory: 10s"), "{settings}");
}

#[test]
fn every_field_that_can_not_work_is_named_with_its_value_and_what_can() {
    let policy = CallPolicy::builder;
    for (builder, field) in [
        (policy().timeout(secs(0)), "timeout"),
        (policy().timeout(secs(100_000)), "timeout"),
        (policy().timeout(secs(1)).probe_timeout(ms(1_001)), "probe_timeout"),
        (policy().probe_timeout(secs(0)), "probe_timeout"),
        (policy().deadline(secs(0)), "deadline"),
        (policy().deadline(ms(999)), "deadline"),
        (policy().attempts(0), "attempts"),
        (policy().attempts(11), "attempts"),
        (policy().backoff(secs(2)).backoff_max(secs(1)), "backoff"),
        (policy().backoff_max(secs(3_601)), "backoff_max"),
        (policy().retry_budget(-0.1), "retry_budget"),
        (policy().retry_budget(10.1), "retry_budget"),
        (policy().retry_budget(f64::NAN), "retry_budget"),
        (policy().retry_budget(0.0004), "retry_budget"),
        (policy().retry_floor(1_001), "retry_floor"),
        (policy().retry_memory(ms(999)), "retry_memory"),
        (policy().retry_memory(secs(61)), "retry_memory"),
        (policy().replay_limit(u32::MAX), "replay_limit"),
        (policy().fallback(Fallback::Stale { max_age: secs(0) }), "fallback"),
        (policy().fallback(Fallback::Value(FallbackValue { status: 199, ..FallbackValue::default() })), "fallback"),
    ] {
        let error: PolicyError = builder.clone().build().unwrap_err();
        assert_eq!(error.field(), field, "{builder:?}");
        assert!(!error.value().is_empty() && !error.expected().is_empty());
    }
    assert_eq!(
        refused(policy().timeout(secs(1)).probe_timeout(secs(2))),
        "probe_timeout: 2s is out of range: must be 1ms to 1s"
    );
    assert_eq!(refused(policy().attempts(0)), "attempts: 0 is out of range: must be 1 to 10");
}

#[test]
fn a_deadline_that_its_attempts_can_not_keep_is_refused_with_the_sums() {
    let three = CallPolicy::builder().timeout(ms(300)).attempts(3).backoff(ms(100)).backoff_max(ms(200));
    assert_eq!(
        refused(three.clone().deadline(secs(1))),
        "deadline: 1s is out of range: must be at least the worst case, 3 x 300ms + 2 backoffs of at most 100ms + 200ms = 1.2s"
    );
    assert_eq!(three.clone().deadline(ms(1_200)).build().unwrap().deadline(), ms(1_200));
    // Unless set it is the worst case.
    assert_eq!(three.build().unwrap().deadline(), ms(1_200));
    assert_eq!(
        refused(CallPolicy::builder().timeout(secs(2)).deadline(secs(1))),
        "deadline: 1s is out of range: must be at least the worst case, 1 x 2s = 2s"
    );
}

#[test]
fn a_probe_may_not_outlive_its_lease() {
    let engine = |lease| {
        let policy = Policy::builder().open_wait(ms(100)).probe_lease(lease).build().unwrap();
        Arc::new(Engine::<String>::builder().policy(policy).build())
    };
    let build = |timeout, probe_timeout| {
        let policy = CallPolicy::builder().timeout(timeout).probe_timeout(probe_timeout).build().unwrap();
        Caller::builder(engine(secs(2))).policy(policy).build()
    };
    assert!(build(secs(5), ms(1_999)).is_ok());
    let error = build(secs(5), secs(2)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "probe_timeout: 2s is out of range: must be shorter than the engine's probe_lease of 2s"
    );
    let policy = CallPolicy::builder().timeout(secs(3)).build().unwrap();
    let caller = Caller::builder(engine(secs(2))).build().unwrap();
    assert_eq!(caller.set_policy("t".to_owned(), policy.clone()).unwrap_err().field(), "timeout");
    let declared = Caller::builder(engine(secs(2))).target("t".to_owned(), policy.clone()).build();
    assert_eq!(declared.unwrap_err().field(), "timeout");
    // A target's own policy counts, not the default.
    let engine = engine(secs(2));
    engine.set_policy("t", Policy::builder().probe_lease(secs(4)).build().unwrap()).unwrap();
    assert!(Caller::builder(engine).target("t".to_owned(), policy).build().is_ok());
}

#[cfg(feature = "serde")]
#[test]
fn a_policy_is_written_in_words_and_read_back() {
    let text = r#"
        timeout = "300ms"
        probe_timeout = "50ms"
        deadline = "2s"
        attempts = 3
        backoff = "100ms"
        backoff_max = "200ms"
        retry_budget = 0.2
        retry_floor = 3
        retry_memory = "20s"
        replay_limit = 1024
        fallback = { stale = "5m" }
    "#;
    let policy: CallPolicy = toml::from_str(text).unwrap();
    let built = CallPolicy::builder().timeout(ms(300)).probe_timeout(ms(50)).deadline(secs(2)).attempts(3);
    let built = built.backoff(ms(100)).backoff_max(ms(200)).retry_budget(0.2).retry_floor(3).retry_memory(secs(20));
    let built = built.replay_limit(1_024).fallback(Fallback::Stale { max_age: secs(300) }).build().unwrap();
    assert_eq!(policy, built);
    assert_eq!(policy.to_builder().build().unwrap(), policy);
    for written in [toml::to_string(&policy).unwrap(), toml::to_string(&CallPolicy::default()).unwrap()] {
        let read: CallPolicy = toml::from_str(&written).unwrap();
        assert_eq!(toml::to_string(&read).unwrap(), written);
    }
    for (fallback, expected) in [
        (r#""refuse""#, Fallback::Refuse),
        (r#""function""#, Fallback::Function),
        (
            r#"{ value = { status = 404, body = "none" } }"#,
            Fallback::Value(FallbackValue { status: 404, body: "none".to_owned(), ..FallbackValue::default() }),
        ),
    ] {
        let policy: CallPolicy = toml::from_str(&format!("fallback = {fallback}")).unwrap();
        assert_eq!(policy.fallback(), &expected);
        let json = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<CallPolicy>(&json).unwrap(), policy);
    }
    let unbounded: CallPolicy = toml::from_str(r#"retry_budget = "none""#).unwrap();
    assert_eq!(unbounded.retry_budget(), None);
}

#[cfg(feature = "serde")]
#[test]
fn an_error_in_a_file_names_the_field_and_what_would_be_right() {
    for (text, words) in [
        (r#"timeout = 3"#, &["timeout", "string"][..]),
        (r#"timeout = "soon""#, &["timeout", "soon", "\"3s\""]),
        (r#"attempts = "two""#, &["attempts"]),
        (r#"retries = 2"#, &["retries", "attempts"]),
        (r#"retry_budget = "some""#, &["retry_budget", "some", "none"]),
        (r#"fallback = "open""#, &["fallback", "open", "refuse", "stale"]),
        (r#"fallback = { stale = "5m", more = 1 }"#, &["fallback", "stale"]),
        (r#"deadline = "10ms""#, &["deadline", "10ms", "1 x 1s = 1s"]),
    ] {
        let error = toml::from_str::<CallPolicy>(text).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{text}: {error}");
    }
}
