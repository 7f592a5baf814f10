//! The accept loop: a cap on connections, time-outs for slow clients, and a stop that lets requests finish.
//! (axum's own `serve` sets neither cap nor header time-out.)

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt;

use super::{Checkpoint, receive};
use crate::told_to_stop;

/// Most bytes of request line and headers together; more is answered 431.
const HEADER_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 128;
/// Pause when the system has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

type Body = Either<Full<Bytes>, axum::body::Body>;

/// Accepts until told to stop, then waits for the requests under way, no longer than the configured time.
pub async fn run(
    listener: TcpListener,
    checkpoint: Arc<Checkpoint>,
    pages: Router,
    mut stop: watch::Receiver<bool>,
) {
    let most = checkpoint.server.connections_max;
    let room = Arc::new(Semaphore::new(most));
    loop {
        let permit = Arc::clone(&room).acquire_owned().await.expect("the semaphore is never closed");
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
            () = told_to_stop(&mut stop) => break,
        };
        let (checkpoint, pages, stop) = (Arc::clone(&checkpoint), pages.clone(), stop.clone());
        tokio::spawn(async move {
            checkpoint.metrics.connections.inc();
            serve(stream, peer, &checkpoint, pages, stop).await;
            checkpoint.metrics.connections.dec();
            drop(permit);
        });
    }
    drop(listener);
    let idle = room.acquire_many(most as u32);
    if tokio::time::timeout(checkpoint.server.shutdown_timeout, idle).await.is_err() {
        tracing::warn!("some requests did not finish in time; their senders will send again");
    }
}

async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    checkpoint: &Checkpoint,
    pages: Router,
    mut stop: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| answer(checkpoint, &pages, peer, request));
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(checkpoint.server.header_timeout)
            .max_buf_size(HEADER_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .serve_connection(TokioIo::new(stream), service)
    );
    // A broken connection is the client's affair: whatever it had sent and got acknowledged is stored.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = told_to_stop(&mut stop) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

async fn answer(
    checkpoint: &Checkpoint,
    pages: &Router,
    peer: SocketAddr,
    request: http::Request<Incoming>,
) -> Result<http::Response<Body>, Infallible> {
    if let Some(door) = checkpoint.doors.get(request.uri().path()) {
        return receive::receive(checkpoint, door, peer.ip(), request)
            .await
            .map(|answer| answer.map(Either::Left));
    }
    let request = request.map(axum::body::Body::new);
    pages.clone().oneshot(request).await.map(|answer| answer.map(Either::Right))
}
