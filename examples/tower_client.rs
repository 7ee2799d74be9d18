//! A tower stack around an HTTP client over real loopback sockets: the target dies, the stack refuses, the target is untouched.
//!
//! `cargo run --features tower --example tower_client`

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use portcullis::tower::{AdmissionLayer, ByAuthority, Error, HttpClassifier};
use portcullis::{Engine, Policy};
use tokio::net::TcpListener;
use tower::{Service, ServiceBuilder, ServiceExt};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let upstream = upstream().await?;
    let policy = Policy::builder().consecutive_failures(3).open_wait(Duration::from_secs(5)).build()?;
    let engine: Arc<Engine> = Arc::new(Engine::builder().policy(policy).build());

    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let mut service = ServiceBuilder::new()
        .layer(AdmissionLayer::new(Arc::clone(&engine), ByAuthority, HttpClassifier::new()))
        .service(client);

    for path in ["/ok", "/broken", "/broken", "/broken", "/ok"] {
        let request = Request::get(format!("http://{upstream}{path}")).body(Empty::new())?;
        match service.ready().await?.call(request).await {
            Ok(response) => {
                let status = response.status();
                // The permit is held, and the verdict given, at the end of the body.
                let bytes = response.into_body().collect().await?.to_bytes();
                println!("{path}: {status}, {} bytes", bytes.len());
            }
            Err(Error::Rejected(rejection)) => println!("{path}: {}, {rejection}", rejection.code()),
            Err(Error::Inner(error)) => println!("{path}: {error}"),
        }
    }
    for (target, snapshot) in engine.snapshots() {
        println!("{target}: {snapshot}");
    }
    Ok(())
}

/// A target that answers 500 under /broken.
async fn upstream() -> std::io::Result<std::net::SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = service_fn(|request: Request<Incoming>| async move {
                let status =
                    if request.uri().path() == "/broken" { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
                let mut response = Response::new("hello\n".to_owned());
                *response.status_mut() = status;
                Ok::<_, Infallible>(response)
            });
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
        }
    });
    Ok(address)
}
