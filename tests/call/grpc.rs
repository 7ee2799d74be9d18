//! A real gRPC client and server around the layer.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use portcullis::call::{CallError, CallLayer, CallPolicy, Caller, ReplayBody, respond_grpc};
use portcullis::tower::GrpcClassifier;
use portcullis::{Engine, Policy, State};
use tonic::body::Body;
use tonic::transport::{Endpoint, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;
use tower::ServiceBuilder;

use crate::common::{T, ms, secs};

type Request<B> = http::Request<B>;

fn answered<B, E>(result: Result<http::Response<B>, CallError<E>>) -> Result<http::Response<Body>, CallError<E>>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<portcullis::call::BoxError>,
{
    Ok(match result {
        Ok(response) => response.map(Body::new),
        Err(error) => respond_grpc(&error).map(|body| Body::new(Full::<Bytes>::from(body))),
    })
}

#[tokio::test]
async fn a_grpc_client_is_admitted_retried_and_refused_with_retry_info() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (reporter, health) = tonic_health::server::health_reporter();
    reporter.set_service_status("core", tonic_health::ServingStatus::Serving).await;
    let (down, is_down) = tokio::sync::oneshot::channel::<()>();
    let until = async move { is_down.await.unwrap_or_default() };
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let server = tokio::spawn(Server::builder().add_service(health).serve_with_incoming_shutdown(incoming, until));

    let policy = Policy::builder().no_window().consecutive_failures(3).open_wait(secs(9)).jitter(0.0);
    let engine: Arc<Engine> = Arc::new(Engine::builder().policy(policy.build().unwrap()).build());
    let call = CallPolicy::builder().timeout(secs(5)).attempts(2).backoff(ms(1)).build().unwrap();
    let caller = Caller::builder(Arc::clone(&engine)).policy(call).build().unwrap();
    let layer = CallLayer::new(caller.clone(), |_: &Request<Body>| T.to_owned(), GrpcClassifier::new())
        .idempotent(|request| request.uri.path().ends_with("/Check"));
    let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();
    let service = ServiceBuilder::new().map_result(answered).layer(layer);
    let service = service.map_request(|request: Request<ReplayBody<Body>>| request.map(Body::new)).service(channel);
    let mut client = HealthClient::with_origin(service, format!("http://{address}").parse().unwrap());

    let check = |service: &str| HealthCheckRequest { service: service.to_owned() };
    assert!(client.check(check("core")).await.is_ok());
    // A refusal of the service's is an answer, told in the trailers or the headers.
    assert_eq!(client.check(check("unknown")).await.unwrap_err().code(), tonic::Code::NotFound);
    let totals = engine.snapshot(T).unwrap().totals;
    assert_eq!((totals.success, totals.failure, engine.snapshot(T).unwrap().in_flight), (2, 0, 0));
    // Its deadline is the caller's own.
    let mut late = tonic::Request::new(check("core"));
    late.metadata_mut().insert("x-request-deadline-ms", "0".parse().unwrap());
    assert_eq!(client.check(late).await.unwrap_err().code(), tonic::Code::DeadlineExceeded);

    drop(down);
    server.await.unwrap().unwrap();
    let status = client.check(check("core")).await.unwrap_err();
    assert_eq!((status.code(), caller.counts(T).unwrap().retries), (tonic::Code::Unavailable, 1));
    let status = client.check(check("core")).await.unwrap_err();
    assert_eq!(engine.snapshot(T).unwrap().state, State::Open);
    // The third failure in a row opened it, and the second attempt was refused.
    let delay = status.get_details_retry_info().unwrap().retry_delay.unwrap();
    assert!(delay > secs(8) && delay <= secs(9), "{delay:?}");
    assert!(status.message().starts_with("E904"), "{status:?}");
}
