//! Failures as responses, read by somebody else's code.

use portcullis::call::{Backup, BoxError, CallError, FALLBACK_HEADER, Verdict, respond, respond_grpc};
use portcullis::{Policy, Rejection};
use tonic_types::StatusExt;

use super::support::{World, patient, three};
use crate::common::{T, ms, secs};

async fn failed(world: &World, verdict: Verdict) -> CallError<&'static str> {
    let call =
        world.caller.to(T).run_or(Backup::refuse(), |_: &Result<(), _>| verdict, |_| async { Err("\"secret\"") });
    call.await.unwrap_err()
}

/// Status, code, and what gRPC says.
fn said<E>(error: &CallError<E>) -> (u16, String, i32) {
    let response = respond(error);
    let grpc = respond_grpc(error);
    let status = tonic::Status::from_header_map(grpc.headers()).unwrap();
    let code = response.headers()["x-portcullis-code"].to_str().unwrap().to_owned();
    assert_eq!(grpc.headers()["x-portcullis-code"], code);
    assert!(!response.body().contains("secret") && !status.message().contains("secret"));
    let body = response.body();
    assert!(body.starts_with(&format!("{{\"code\":\"{code}\",\"reason\":\"{}\"", error.reason())), "{body}");
    (response.status().as_u16(), code, status.code().into())
}

#[tokio::test(start_paused = true)]
async fn each_cause_has_its_status_in_http_and_in_grpc() {
    let world = World::new(patient(), three());
    let late = world.caller.to(T).deadline(ms(0)).run(|_| async { Ok::<_, ()>(()) }).await.unwrap_err();
    assert_eq!(said(&late), (504, "E901".into(), 4));
    let hung = world.caller.call(T, std::future::pending::<Result<(), ()>>).await.unwrap_err();
    assert_eq!(said(&hung), (504, "E901".into(), 4));
    assert_eq!(said(&failed(&world, Verdict::failure()).await), (500, "E500".into(), 13));
    assert_eq!(said(&failed(&world, Verdict::failure().code("E902")).await), (502, "E902".into(), 14));
    assert_eq!(said(&failed(&world, Verdict::failure().code("E901")).await), (504, "E901".into(), 4));
    let full = World::new(patient().max_in_flight(1), three());
    let _held = full.engine.admit(T).unwrap();
    assert_eq!(said(&failed(&full, Verdict::failure()).await), (503, "E905".into(), 14));
}

#[tokio::test(start_paused = true)]
async fn when_to_come_back_is_retry_info() {
    let open = Policy::builder().no_window().consecutive_failures(1).open_wait(secs(5)).jitter(0.0);
    let world = World::standing(open, three());
    let _ = world.engine.admit(T).unwrap().failure();
    let error = failed(&world, Verdict::failure()).await;
    let status = tonic::Status::from_header_map(respond_grpc(&error).headers()).unwrap();
    assert_eq!(status.code(), tonic::Code::Unavailable);
    let details = status.check_error_details().unwrap();
    assert_eq!(details.retry_info().unwrap().retry_delay, Some(secs(5)));
    assert_eq!(status.message(), format!("E904: {}", error.rejection().unwrap()));
    assert_eq!(respond(&error).headers()["retry-after"], "5");
}

#[tokio::test(start_paused = true)]
async fn a_fallback_that_failed_too_is_told_of() {
    let world = World::new(Policy::builder().no_window().consecutive_failures(1), three());
    // A failure, and the refusal that comes of it.
    for _ in 0..2 {
        let failing = Backup::compute(|_: &CallError<&str>| Err(BoxError::from("no cache either")));
        let call = world.caller.to(T).run_or(failing, Verdict::of, |_| async { Err::<(), _>("broken") });
        let error = call.await.unwrap_err();
        for response in [respond(&error), respond_grpc(&error)] {
            assert_eq!(response.headers()[FALLBACK_HEADER], "failed", "{error}");
        }
        let error = failed(&world, Verdict::failure()).await;
        for response in [respond(&error), respond_grpc(&error)] {
            assert!(!response.headers().contains_key(FALLBACK_HEADER), "{error}");
        }
    }
}

#[test]
fn any_wait_is_read_back() {
    for after in [ms(0), ms(1), ms(1_500), secs(127), secs(128), secs(1 << 40), std::time::Duration::from_nanos(1)] {
        let response = portcullis::tower::respond_grpc(&Rejection::Open { retry_after: after });
        let status = tonic::Status::from_header_map(response.headers()).unwrap();
        let read = status.check_error_details().unwrap().retry_info().unwrap().retry_delay;
        // The most that a protobuf duration holds is 10,000 years.
        assert_eq!(read.unwrap_or_default(), after.min(secs(315_576_000_000)), "{after:?}");
    }
    let none = portcullis::tower::respond_grpc(&Rejection::Saturated { limit: 3 });
    assert!(!none.headers().contains_key("grpc-status-details-bin"));
}
