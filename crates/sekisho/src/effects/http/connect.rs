//! Which address does a request really go to?
//!
//! A name is resolved once per connection, every address found is checked, and only checked ones are connected
//! to: a name that changes its mind in between changes nothing, and a kept connection keeps its address. Hosts
//! that are addresses never pass a resolver and are checked by themselves. Proxies of the environment are not
//! asked: they would connect for us, unchecked.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use anyhow::Context as _;
use http::Uri;
use http::uri::Scheme;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use sekisho_core::delivery::Fault;
use sekisho_core::delivery::address::is_public;
use tokio::net::TcpStream;
use tower::Service;

/// Longest way to a connection: name, TCP and TLS. The caller's own time-out may be shorter.
const CONNECT_MAX: Duration = Duration::from_secs(10);

type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;
type Later<T, E = Unreached> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;
/// Finds the addresses of a name. Port 0 stands for the one in the URL.
type Lookup = fn(Name) -> Later<Vec<SocketAddr>, io::Error>;

/// Why there is no connection.
#[derive(Debug)]
pub struct Unreached(pub Fault);

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Error for Unreached {}

#[derive(Clone, Debug)]
pub struct Connector {
    https: HttpsConnector<HttpConnector<Resolver>>,
    /// The host, when it is an address.
    literal: Option<IpAddr>,
    gate: Gate,
}

impl Connector {
    pub fn new(uri: &Uri, allow_private: bool) -> anyhow::Result<Self> {
        let gate = if allow_private { Gate(|_| true) } else { Gate(is_public) };
        Self::with(uri, Resolver { gate, lookup: ask_the_system })
    }

    fn with(uri: &Uri, resolver: Resolver) -> anyhow::Result<Self> {
        let gate = resolver.gate;
        let mut http = HttpConnector::new_with_resolver(resolver);
        http.enforce_http(false);
        http.set_nodelay(true);
        // Shared by all addresses of a name, so that a dead one leaves time for the next.
        http.set_connect_timeout(Some(CONNECT_MAX));
        let tls =
            if uri.scheme() == Some(&Scheme::HTTPS) { trusting_the_system()? } else { trusting_nobody()? };
        let literal = uri.host().and_then(|host| host.trim_matches(['[', ']']).parse().ok());
        Ok(Self { https: HttpsConnector::from((http, tls)), literal, gate })
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = Unreached;
    type Future = Later<Stream>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Unreached>> {
        self.https.poll_ready(cx).map_err(|error| unreached(&*error))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        if let Some(ip) = self.literal
            && !(self.gate.0)(ip)
        {
            return Box::pin(async move { Err(Unreached(forbidden(&ip.to_string(), ip))) });
        }
        let connecting = self.https.call(uri);
        // A limit of its own: a connection once begun goes on even when nobody waits for it any more.
        Box::pin(async move {
            match tokio::time::timeout(CONNECT_MAX, connecting).await {
                Ok(connected) => connected.map_err(|error| unreached(&*error)),
                Err(_) => Err(Unreached(too_slow())),
            }
        })
    }
}

/// Keeps those addresses of a name that pass.
#[derive(Clone, Debug)]
struct Resolver {
    gate: Gate,
    lookup: Lookup,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Unreached;
    type Future = Later<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unreached>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (Gate(passes), looking) = (self.gate, (self.lookup)(name.clone()));
        Box::pin(async move {
            let found = looking.await.map_err(|error| unresolved(&name, &error))?;
            let passing: Vec<_> = found.iter().copied().filter(|one| passes(one.ip())).collect();
            match (found.first(), passing.is_empty()) {
                (_, false) => Ok(passing.into_iter()),
                (Some(refused), true) => Err(Unreached(forbidden(name.as_str(), refused.ip()))),
                (None, true) => Err(Unreached(Fault::Dns(format!("{name} has no address")))),
            }
        })
    }
}

/// Which addresses may be connected to.
#[derive(Clone, Copy, Debug)]
struct Gate(fn(IpAddr) -> bool);

fn ask_the_system(name: Name) -> Later<Vec<SocketAddr>, io::Error> {
    Box::pin(async move { Ok(tokio::net::lookup_host((name.as_str(), 0)).await?.collect()) })
}

fn forbidden(host: &str, ip: IpAddr) -> Fault {
    Fault::Forbidden(format!("{host} leads to {ip}, which is not a public address"))
}

fn unresolved(name: &Name, error: &io::Error) -> Unreached {
    Unreached(Fault::Dns(format!("{name}: {error}")))
}

fn too_slow() -> Fault {
    Fault::Connect(format!("no connection within {} s", CONNECT_MAX.as_secs()))
}

/// Tells the stages apart by what they return: the resolver our own error, TLS an I/O error, TCP a type that
/// hyper-util keeps to itself.
fn unreached(error: &(dyn Error + Send + Sync + 'static)) -> Unreached {
    if error.is::<io::Error>() {
        return Unreached(Fault::Tls(error.to_string()));
    }
    let mut innermost: &(dyn Error + 'static) = error;
    loop {
        if let Some(Unreached(fault)) = innermost.downcast_ref() {
            return Unreached(fault.clone());
        }
        match innermost.source() {
            Some(source) => innermost = source,
            None => return Unreached(Fault::Connect(innermost.to_string())),
        }
    }
}

/// The certificate authorities of this system, read once for all destinations.
pub fn trusting_the_system() -> anyhow::Result<ClientConfig> {
    static SYSTEM: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(known) = SYSTEM.get() {
        return Ok(known.clone());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let read = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()
        .context("this system's certificate authorities can't be read; is `ca-certificates` installed?")?
        .with_no_client_auth();
    Ok(SYSTEM.get_or_init(|| read).clone())
}

/// For plain HTTP, which must work on systems without any authorities.
fn trusting_nobody() -> anyhow::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}

#[cfg(test)]
mod tests;
