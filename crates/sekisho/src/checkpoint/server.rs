//! The accept loop: a cap on connections, time-outs for slow clients, and a stop that lets requests finish.
//! (axum's own `serve` sets neither cap nor header time-out.)

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prometheus_client::metrics::gauge::Gauge;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower::ServiceExt;

use super::patience::{Patient, Phase, Phases};
use super::{Checkpoint, receive};
use crate::config::Server;
use crate::env::Env;
use crate::http::RemotePeer;
use crate::limits::caller;
use crate::stop::Stop;
use crate::telemetry::LineContext;

/// Most bytes of request line and headers together; more is answered 431. All connections together can make us hold this
/// much each, before anything is known of them.
const HEADER_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 128;
/// Where sources are, unless a source says otherwise.
const WEBHOOKS: &str = "/webhooks/";
/// Pause when the system has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

pub type AnswerBody = Either<Full<Bytes>, axum::body::Body>;

/// What answers a request, whatever it is.
pub trait Handler: Send + Sync + 'static {
    fn answer(
        &self,
        peer: SocketAddr,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<AnswerBody>> + Send;
}

/// The product's handler: webhooks by their path, everything else to the pages.
pub struct Front {
    pub checkpoint: Checkpoint,
    pub pages: Router,
}

impl Handler for Front {
    async fn answer(&self, peer: SocketAddr, request: Request<Incoming>) -> Response<AnswerBody> {
        self.take(peer, request).await
    }
}

impl Front {
    /// Whatever the request's body came over.
    pub async fn take<B>(&self, peer: SocketAddr, request: Request<B>) -> Response<AnswerBody>
    where
        B: hyper::body::Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<axum::BoxError>,
    {
        if let Some(source) = self.checkpoint.sources.get(request.uri().path()) {
            return receive::receive(&self.checkpoint, source, peer.ip(), request).await.map(Either::Left);
        }
        let named = caller(peer.ip(), request.headers(), self.checkpoint.server.trusted_proxies);
        if !self.checkpoint.sources.is_empty() && request.uri().path().starts_with(WEBHOOKS) {
            return receive::no_door(&self.checkpoint, named, request.uri().path()).map(Either::Left);
        }
        let mut request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(RemotePeer { socket: peer.ip(), named });
        let node = &self.checkpoint.node;
        let context = LineContext::of_request(node.next_seq(node.env.wall()), None, None);
        let Ok(answer) = context.around(self.pages.clone().oneshot(request)).await;
        answer.map(Either::Right)
    }
}

/// Accepts until told to stop, then waits for the requests under way, no longer than the configured time.
pub async fn run(
    listener: TcpListener,
    settings: Server,
    connections: Gauge,
    handler: Arc<impl Handler>,
    env: Env,
    stop: Stop,
) {
    let room = Arc::new(Semaphore::new(settings.connections_max));
    let settings = Arc::new(settings);
    loop {
        let accepted = async {
            let permit = Arc::clone(&room).acquire_owned().await.expect("the semaphore is never closed");
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            biased;
            () = stop.told() => break,
            accepted = accepted => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(error_type = "accept_failed", %error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let (settings, handler, connections) =
            (Arc::clone(&settings), Arc::clone(&handler), connections.clone());
        let stop = stop.clone();
        env.spawn(async move {
            connections.inc();
            serve(stream, peer, &settings, &*handler, stop).await;
            connections.dec();
            drop(permit);
        });
    }
    drop(listener);
    let idle = room.acquire_many(settings.connections_max as u32);
    if tokio::time::timeout(settings.shutdown_timeout, idle).await.is_err() {
        tracing::warn!(
            error_type = "stop_timeout",
            "some requests did not finish in time; their senders will retry"
        );
    }
}

async fn serve(stream: TcpStream, peer: SocketAddr, settings: &Server, handler: &impl Handler, stop: Stop) {
    let _ = stream.set_nodelay(true);
    let phases = Phases::default();
    let stream = Patient::new(stream, phases.clone(), settings.header_timeout, settings.idle_timeout);
    let service = service_fn(async |request| {
        phases.set(Phase::Answer);
        let answer = handler.answer(peer, request).await;
        phases.set(Phase::Next);
        Ok::<_, Infallible>(answer)
    });
    let mut connection = pin!(
        http1::Builder::new()
            .header_read_timeout(None)
            .max_buf_size(HEADER_BYTES_MAX)
            .max_headers(HEADERS_MAX)
            .serve_connection(TokioIo::new(stream), service)
    );
    // A broken connection is the client's affair: whatever it had sent and got acknowledged is stored.
    tokio::select! {
        biased;
        () = stop.told() => {}
        _ = connection.as_mut() => return,
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}
