//! A tonic client whose calls are whole calls: the health service of a real server, which goes down and is refused.
//!
//! `cargo run --features call --example grpc`

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use portcullis::call::{CallError, CallLayer, CallPolicy, Caller, ReplayBody, respond_grpc};
use portcullis::tower::GrpcClassifier;
use portcullis::{Engine, Policy};
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;
use tower::ServiceBuilder;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (_reporter, health) = tonic_health::server::health_reporter();
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let (shut_down, is_shut_down) = tokio::sync::oneshot::channel::<()>();
    let until = async move { is_shut_down.await.unwrap_or_default() };
    let server = Server::builder().add_service(health).serve_with_incoming_shutdown(incoming, until);
    let server = tokio::spawn(server);

    let policy = Policy::builder().consecutive_failures(3).open_wait(Duration::from_secs(5)).jitter(0.0).build()?;
    let engine: Arc<Engine> = Arc::new(Engine::builder().policy(policy).build());
    let call = CallPolicy::builder().timeout(Duration::from_millis(300)).attempts(2).build()?;
    let caller = Caller::builder(engine).policy(call).build()?;

    // All calls of gRPC are POST: which of them do no harm twice is known by their path.
    let layer = CallLayer::new(caller.clone(), |_: &http::Request<Body>| "health".to_owned(), GrpcClassifier::new())
        .idempotent(|request| request.uri.path() == "/grpc.health.v1.Health/Check");
    let channel: Channel = Endpoint::from_shared(format!("http://{address}"))?.connect_lazy();
    let service = ServiceBuilder::new()
        // Refusals, timeouts and deadlines as a status that says when to come back.
        .map_result(answered)
        .layer(layer)
        .map_request(|request: http::Request<ReplayBody<Body>>| request.map(Body::new))
        .service(channel);
    let mut client = HealthClient::with_origin(service, format!("http://{address}").parse()?);

    let mut going_down = Some((shut_down, server));
    for call in 0..5 {
        if let Some((shut_down, server)) = going_down.take_if(|_| call == 2) {
            drop(shut_down);
            server.await??;
        }
        let mut request = tonic::Request::new(HealthCheckRequest::default());
        request.set_timeout(Duration::from_secs(2));
        match client.check(request).await {
            Ok(response) => println!("{call}: {:?}", response.into_inner().status()),
            Err(status) => {
                let after = status.get_details_retry_info().and_then(|info| info.retry_delay);
                println!("{call}: {:?}, {:?}, retry after {after:?}", status.code(), status.message());
            }
        }
    }
    println!("{:?}", caller.counts("health"));
    Ok(())
}

/// Always an answer: a failure is one by its status.
fn answered<B, E>(result: Result<http::Response<B>, CallError<E>>) -> Result<http::Response<Body>, CallError<E>>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    Ok(match result {
        Ok(response) => response.map(Body::new),
        Err(error) => respond_grpc(&error).map(|body| Body::new(Full::<Bytes>::from(body))),
    })
}
