//! Drills, with the real binary on both sides: what callers got is told, and the target is released whatever happens.
#![allow(clippy::unwrap_used)]

mod common;

use std::net::SocketAddr;
use std::process::{Output, Stdio};

use common::process::Process;
use common::{get, post, upstream};
use portcullis_gateway::demo::upstreams::Upstream;
use portcullis_gateway::drill::Drill;
use tokio::process::{Child, Command};

const VALUE: &str = "fallback = { value = { body = \"plan B\" } }";

async fn gateway(name: &str, core: &Upstream, lines: &str) -> Process {
    let text = format!("listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n{}", common::single(core.address(), lines));
    Process::start(name, &text).await
}

fn drill(admin: SocketAddr, seconds: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .args(["drill", "--target", "t", "--seconds", seconds, "--admin", &admin.to_string()])
        .env_remove("PORTCULLIS_ADMIN_TOKEN")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

async fn ended(drill: Child) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = drill.wait_with_output().await.unwrap();
    (status.code(), String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap())
}

async fn shown(process: &Process) -> serde_json::Value {
    get(process.admin, "/targets/t").await.json()
}

async fn until_drilled(process: &Process) {
    common::until("the drill begins", async || shown(process).await["state"] == "FORCED_OPEN").await;
}

#[tokio::test]
async fn callers_that_got_the_fallback_are_counted_and_the_target_is_released() {
    let core = upstream().await;
    let process = gateway("drill-value", &core, VALUE).await;
    assert_eq!(get(process.proxy, "/fast").await.status, 200);
    let drill = drill(process.admin, "2");
    until_drilled(&process).await;
    assert!(shown(&process).await["drill_ms"].as_u64().unwrap() > 0);
    for _ in 0..7 {
        assert_eq!(&get(process.proxy, "/fast").await.body[..], b"plan B");
    }
    let (code, text) = ended(drill).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("got a fallback value        7\n") && text.contains("got an error                0\n"),
        "{text}"
    );
    assert!(text.contains("passed: every caller got the fallback (value)"), "{text}");
    assert_eq!(shown(&process).await["state"], "CLOSED");
    assert_eq!(&get(process.proxy, "/fast").await.body[..], b"fast\n");
    assert_eq!(core.counts().calls, 2);
}

#[tokio::test]
async fn a_drill_in_which_callers_got_errors_fails() {
    let core = upstream().await;
    // Nothing is kept yet.
    let process = gateway("drill-stale", &core, "fallback = { stale = \"5m\" }").await;
    let drill = drill(process.admin, "2");
    until_drilled(&process).await;
    for _ in 0..3 {
        assert_eq!(get(process.proxy, "/fast").await.code(), "E904");
    }
    let (code, text) = ended(drill).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("failed: 3 callers got an error, though there is a fallback (stale)"), "{text}");
}

#[tokio::test]
async fn refusals_are_as_configured_where_there_is_no_fallback() {
    let core = upstream().await;
    let process = gateway("drill-refuse", &core, "").await;
    let drill = drill(process.admin, "2");
    until_drilled(&process).await;
    assert_eq!(get(process.proxy, "/fast").await.code(), "E904");
    let (code, text) = ended(drill).await;
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("got an error                1\n") && text.contains("as configured"), "{text}");
}

#[tokio::test]
async fn nobody_called_is_nothing_shown_and_an_interrupt_releases() {
    let core = upstream().await;
    let process = gateway("drill-nobody", &core, VALUE).await;
    let drill = drill(process.admin, "300");
    until_drilled(&process).await;
    let id = drill.id().unwrap();
    let sent = Command::new("sh").args(["-c", &format!("kill -INT {id}")]).status().await.unwrap();
    assert!(sent.success());
    let (code, text) = ended(drill).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("ended early") && text.contains("nobody called, so nothing was shown"), "{text}");
    assert_eq!(shown(&process).await["state"], "CLOSED");
}

#[tokio::test]
async fn only_a_closed_target_is_drilled_and_the_tool_says_why_not() {
    let core = upstream().await;
    let process = gateway("drill-closed", &core, "").await;
    post(process.admin, "/targets/t/disable").await;
    let (code, text) = ended(drill(process.admin, "1")).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("t is DISABLED: only a target that is CLOSED is drilled"), "{text}");
    assert_eq!(shown(&process).await["state"], "DISABLED");

    let (_claim, nobody) = common::nobody();
    let (code, text) = ended(drill(nobody, "1")).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("the admin listener can't be asked"), "{text}");
}

#[tokio::test]
async fn a_lease_ends_by_itself_and_an_operator_ends_it_at_once() {
    let core = upstream().await;
    let process = gateway("drill-lease", &core, "").await;
    for wrong in ["", "?seconds=0", "?seconds=601", "?seconds=x", "?second=1"] {
        assert_eq!(post(process.admin, &format!("/targets/t/drill{wrong}")).await.status, 400, "{wrong}");
    }
    assert_eq!(post(process.admin, "/targets/nobody/drill?seconds=1").await.status, 404);
    assert_eq!(get(process.admin, "/targets/t/drill?seconds=1").await.status, 405);

    // As by a tool that died.
    assert_eq!(post(process.admin, "/targets/t/drill?seconds=1").await.status, 200);
    assert_eq!(post(process.admin, "/targets/t/drill?seconds=1").await.status, 409);
    common::until("the lease ends", async || shown(&process).await["state"] == "CLOSED").await;
    process.logged("a drill's time is over", 1).await;

    // What an operator does afterwards isn't undone by it.
    assert_eq!(post(process.admin, "/targets/t/drill?seconds=1").await.status, 200);
    assert_eq!(post(process.admin, "/targets/t/force-open").await.status, 200);
    assert!(shown(&process).await.get("drill_ms").is_none());
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    assert_eq!(shown(&process).await["state"], "FORCED_OPEN");
}

/// Somebody acts after the last look of all.
#[tokio::test]
async fn an_end_that_comes_too_late_undoes_nothing() {
    let admin = common::Answering::start(|n, head| {
        let body = if head.contains("/end-drill") {
            "{\"changed\":false,\"state\":\"FORCED_OPEN\"}".to_owned()
        } else {
            let forced = u8::from(n > 0);
            format!("{{\"state\":\"FORCED_OPEN\",\"drill_ms\":9,\"refusals\":{{\"forced\":{forced}}}}}")
        };
        common::answer("200 OK", "", &body)
    })
    .await;
    let length = std::time::Duration::from_millis(20);
    let drill = Drill { target: "t".to_owned(), length, admin: admin.address.to_string(), token: None };
    let report = portcullis_gateway::drill::run(&drill).await.unwrap();
    assert!(!report.is_passed() && report.to_string().contains("somebody else"), "{report}");

    let core = upstream().await;
    let process = gateway("drill-end", &core, "").await;
    assert_eq!(post(process.admin, "/targets/t/force-open").await.status, 200);
    assert_eq!(post(process.admin, "/targets/t/end-drill").await.json()["changed"], false);
    assert_eq!(shown(&process).await["state"], "FORCED_OPEN");
    assert_eq!(post(process.admin, "/targets/t/release").await.status, 200);
    assert_eq!(post(process.admin, "/targets/t/drill?seconds=600").await.status, 200);
    assert_eq!(post(process.admin, "/targets/t/end-drill").await.json()["changed"], true);
    assert_eq!(shown(&process).await["state"], "CLOSED");
}

/// Somebody acts after the last look but one: here there is only the last one.
#[tokio::test]
async fn what_an_operator_does_in_the_last_moment_is_left_alone() {
    let shown = |state: &str, forced: u8| format!("{{\"state\":{state},\"refusals\":{{\"forced\":{forced}}}}}");
    for (last, releases) in
        [("\"FORCED_OPEN\"", 0), ("\"OPEN\"", 0), ("\"CLOSED\"", 1), ("\"FORCED_OPEN\",\"drill_ms\":9", 1)]
    {
        let admin = common::Answering::start(move |n, _| {
            let body = if n == 0 { shown("\"FORCED_OPEN\",\"drill_ms\":9", 0) } else { shown(last, 1) };
            common::answer("200 OK", "", &body)
        })
        .await;
        let length = std::time::Duration::from_millis(20);
        let drill = Drill { target: "t".to_owned(), length, admin: admin.address.to_string(), token: None };
        let report = portcullis_gateway::drill::run(&drill).await.unwrap();
        assert_eq!(report.is_passed(), releases == 1, "{last} {report}");
        assert_eq!(report.to_string().contains("somebody else"), releases == 0, "{last} {report}");
        let asked = admin.heads();
        assert_eq!(asked.iter().filter(|head| head.contains("/end-drill")).count(), releases, "{last} {asked:?}");
    }
}

#[tokio::test]
async fn a_drill_that_somebody_else_ends_fails() {
    let core = upstream().await;
    let process = gateway("drill-ended", &core, "").await;
    let drill = drill(process.admin, "300");
    until_drilled(&process).await;
    get(process.proxy, "/fast").await;
    post(process.admin, "/targets/t/disable").await;
    let (code, text) = ended(drill).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("failed: somebody else ended the drill"), "{text}");
    assert_eq!(shown(&process).await["state"], "DISABLED", "it is left as they want it");
}
