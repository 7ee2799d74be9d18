//! Columns by other names, and targets out of paths.

use super::support::{Logs, MS, at};

#[test]
fn columns_are_named_by_flag() {
    let mut logs = Logs::of("ts,service,duration,code\n1700000000250,core,0.0125,200\n");
    let flags = "time=ts:ms,target=service,latency_ms=duration:s,status=code";
    logs.input.map = flags.split(',').map(str::to_owned).collect();
    let read = logs.read().unwrap();
    let (target, call) = &read.calls[0];
    assert_eq!(
        (target.as_str(), call.start, call.latency, call.status),
        ("core", at(1_700_000_000.25), 12_500_000, 200)
    );
}

#[test]
fn columns_are_named_by_file_and_flags_count_before_it() {
    let mut logs = Logs::of(r#"{"ended":1700000001,"t":"core","took":250,"took_us":1,"status":200}"#);
    logs.input.fields = Some(logs.file("fields.toml", "end = \"ended\"\ntarget = \"t\"\nlatency = \"took_us:us\"\n"));
    logs.input.map = vec!["latency=took".to_owned()];
    let call = logs.read().unwrap().calls[0].1;
    assert_eq!((call.start, call.latency), (at(1_700_000_000.75), 250 * MS));
}

#[test]
fn a_mapping_that_cannot_be_is_refused_with_what_can() {
    let refusal = |map: &str, fields: &str| {
        let mut logs = Logs::of("time,target,latency_ms,status\n");
        logs.input.map = vec![map.to_owned()];
        logs.input.fields = (!fields.is_empty()).then(|| logs.file("fields.toml", fields));
        logs.refusal()
    };
    assert!(refusal("when=ts", "").contains("--map when=ts: there is no field \"when\", but time, end"));
    assert!(refusal("time", "").contains("expected FIELD=COLUMN"));
    assert!(refusal("time=:s", "").contains("expected the name of a column"));
    assert!(refusal("time=ts", "").contains("no column \"ts\", found time, target, latency_ms, status"));
    assert!(refusal("time=time", "time = 5\n").contains("fields.toml: time: expected the name of a column in quotes"));
    assert!(refusal("time=time", "time = \n").contains("fields.toml: TOML parse error at line 1"));
}

#[test]
fn missing_columns_are_named_with_those_that_are_there() {
    let refusal = Logs::of("time,service,latency\n1,a,2\n").refusal();
    for part in
        ["access.log: taken as CSV", "lacks target, latency_ms, status", "found time, service, latency", "--map"]
    {
        assert!(refusal.contains(part), "{refusal}");
    }
    let refusal = Logs::of("{\"a\":1}\n").refusal();
    assert!(refusal.contains("lacks time, target, latency_ms, status") && refusal.contains("found a"), "{refusal}");
}

#[test]
fn the_target_is_taken_out_of_the_path() {
    let line = |path: &str| {
        format!("192.0.2.1 - - [31/Jan/2026:12:00:00 +0000] \"GET {path} HTTP/1.1\" 200 5 \"-\" \"curl\" 0.250\n")
    };
    let mut logs = Logs::of(["/api/core/1?x=/api/no/", "/api/rates", "/static/a.css"].map(line).concat());
    logs.input.target_regex = Some("^/api/([^/]+)".to_owned());
    let read = logs.read().unwrap();
    let targets: Vec<_> = read.calls.iter().map(|(target, _)| target.as_str()).collect();
    assert_eq!((targets, read.summary.unmatched), (vec!["core", "rates"], 1));
    logs.input.target_regex = Some("(".to_owned());
    assert!(logs.refusal().contains("--target-regex: regex parse error"));
}

#[test]
fn an_expression_needs_a_path_and_any_column_can_be_it() {
    let mut logs = Logs::of("time,queue,latency_ms,status\n1,jobs-7,1,200\n");
    logs.input.target_regex = Some("^[a-z]+".to_owned());
    assert!(logs.refusal().contains("lacks path"));
    logs.input.map = vec!["path=queue".to_owned()];
    assert_eq!(logs.read().unwrap().calls[0].0, "jobs");
}

#[test]
fn the_gateways_routes_choose_the_target() {
    let header = "time,host,path,latency_ms,status\n";
    let lines =
        "1,API.example.com:8080,/x,1,200\n2,other,/core/x?y,1,200\n3,[::1]:80,/core/loans/1,1,200\n4,other,/x,1,200\n";
    let mut logs = Logs::of(format!("{header}{lines}"));
    let config = r#"
        listen = "127.0.0.1:8080"
        [[route]]
        host = "api.example.com"
        path = "/"
        target = "api"
        [[route]]
        path = "/core/"
        target = "core"
        [[route]]
        path = "/core/loans/"
        target = "loans"
        [target.core]
        upstream = ["http://127.0.0.1:8110"]
    "#;
    logs.input.config = Some(logs.file("portcullis.toml", config));
    let read = logs.read().unwrap();
    let targets: Vec<_> = read.calls.iter().map(|(target, _)| target.as_str()).collect();
    assert_eq!((targets, read.summary.unmatched), (vec!["api", "core", "loans"], 1));
    logs.input.config = Some(logs.file("none.toml", ""));
    assert!(logs.refusal().contains("none.toml: expected at least one [[route]]"));
}
