//! The two servers the real one is compared with. Both read the whole body; neither stores anything.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Incoming;
use prometheus_client::metrics::gauge::Gauge;
use sekisho_core::Secret;
use sekisho_core::provider::{self, Scheme, Setup};
use tokio::net::TcpListener;

use super::{PATH, SECRET};
use crate::checkpoint::server::{self, AnswerBody, Handler};
use crate::config::Config;
use crate::env::Env;
use crate::now;
use crate::stop::Stop;

#[derive(clap::Args)]
pub struct Args {
    kind: Kind,
    #[arg(long)]
    listen: SocketAddr,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Kind {
    /// axum, 204, nothing else
    Bare,
    /// Sekisho's own accept loop, signature and reading, then 204
    VerifyOnly,
}

pub async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let listener = TcpListener::bind(args.listen).await?;
    match args.kind {
        Kind::Bare => {
            let answer = async |_: Bytes| StatusCode::NO_CONTENT;
            let router =
                Router::new().route(PATH, post(answer)).route("/health/ready", get(async || "ready"));
            axum::serve(listener, router).await?;
        }
        Kind::VerifyOnly => {
            let setup = Setup { secrets: vec![Secret::new(SECRET)], ..Setup::default() };
            let stripe = provider::find("stripe").expect("Stripe is a provider");
            let handler = Arc::new(VerifyOnly(stripe.open(&setup)?));
            let (settings, env) = (Config::default().server, Env::system());
            server::run(listener, settings, Gauge::default(), handler, env, Stop::never()).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

struct VerifyOnly(Box<dyn Scheme>);

impl Handler for VerifyOnly {
    async fn answer(&self, _peer: SocketAddr, request: Request<Incoming>) -> Response<AnswerBody> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let mut answer = Response::new(Either::Left(Full::default()));
        *answer.status_mut() =
            if parts.uri.path() == PATH { self.judge(&parts, &body) } else { StatusCode::OK };
        answer
    }
}

impl VerifyOnly {
    fn judge(&self, parts: &http::request::Parts, body: &[u8]) -> StatusCode {
        let request = provider::Request {
            method: &parts.method,
            headers: &parts.headers,
            query: "",
            body,
            certificate: None,
        };
        let verified = provider::verify(&*self.0, request, now());
        match verified.map(|verified| provider::read(&*self.0, &verified).is_ok()) {
            Ok(true) => StatusCode::NO_CONTENT,
            _ => StatusCode::BAD_REQUEST,
        }
    }
}
