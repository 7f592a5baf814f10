//! What a start waits for and makes sure of, before anything is served.

use std::net::SocketAddr;
use std::time::Duration;

use sekisho_core::Time;
use sekisho_core::link::LinkKeys;
use sekisho_store::{OpenError, Store};
use tokio::net::TcpSocket;
use tokio::time::Instant;

use crate::acts::{self, Refusal};
use crate::config::Config;
use crate::queries;

/// While the database is away at a start, it is asked this often,
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// and said this often that it is awaited.
const SAY_AGAIN: Duration = Duration::from_secs(30);

/// Waits for a database that is away: it starts, stops, changes hands, or comes up after us. Nothing but a signal ends that;
/// what waiting can't heal is an error at once.
pub async fn when_the_database_is_there<T>(
    mut act: impl AsyncFnMut() -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut said: Option<Instant> = None;
    loop {
        match act().await {
            Err(error) if is_passing(&error) => {
                if said.is_none_or(|at| at.elapsed() >= SAY_AGAIN) {
                    tracing::warn!(
                        error_type = "store_unavailable",
                        reason = format!("{error:#}"),
                        "the database is unavailable; waiting for it before accepting requests"
                    );
                    said = Some(Instant::now());
                }
                tokio::time::sleep(ASK_AGAIN).await;
            }
            Ok(done) => {
                if said.is_some() {
                    tracing::info!("the database is available");
                }
                return Ok(done);
            }
            failed => return failed,
        }
    }
}

fn is_passing(error: &anyhow::Error) -> bool {
    if let Some(error) = error.downcast_ref::<OpenError>() {
        return error.is_passing();
    }
    let own = match error.downcast_ref::<Refusal>() {
        Some(Refusal::Store(own)) => Some(own),
        _ => error.downcast_ref::<sekisho_store::Error>(),
    };
    own.is_some_and(sekisho_store::Error::is_passing)
}

/// Takes the port. Nobody is let in yet.
pub fn bind(address: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// What links and tokens are signed with.
pub async fn link_keys(store: &dyn Store, config: &Config, at: Time) -> acts::Result<LinkKeys> {
    if config.pages.secrets.is_empty() {
        return Ok(LinkKeys::new(vec![acts::house_key(store, at).await?]));
    }
    Ok(LinkKeys::new(config.pages.secrets.clone()))
}

/// What the audit log says of a name should be said of one key.
pub async fn warn_of_names(store: &dyn Store, config: &Config) {
    let made = queries::list_keys(store).await.unwrap_or_default();
    for key in made.iter().filter(|key| key.revoked_at.is_none()) {
        if config.keys.iter().any(|known| known.name == key.name) {
            tracing::warn!(
                error_type = "same_name",
                name = key.name,
                "a [[key]] of the configuration and an API key that was created later have the same name; rename or revoke one"
            );
        }
    }
}
