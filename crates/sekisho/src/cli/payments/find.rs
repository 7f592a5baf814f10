//! Which payment is meant: by our id, or by anything that a provider or the app calls it.

use anyhow::bail;
use sekisho_core::settlement::reading::mode;
use serde::Deserialize;

use crate::cli::amount::Mode;
use crate::cli::client::{Client, Query};

#[derive(Deserialize)]
struct Found {
    id: String,
    livemode: Option<bool>,
}

/// The id of the one that can be meant.
pub async fn find(
    client: &Client,
    called: &str,
    account: Option<&str>,
    wanted: &Mode,
) -> anyhow::Result<String> {
    let query = Query::new().with("reference", Some(called)).with("account", account);
    let mut found: Vec<Found> = client.items("/v1/payments", &query).await?;
    found.retain(|one| wanted.allows(one.livemode));
    match &found[..] {
        [] => {
            let more = ". An order of a connected account is found with --account ID";
            let more = if account.is_none() { more } else { "" };
            bail!("no payment is called {called}; `sekisho payments list` lists them{more}")
        }
        [_] => Ok(found.remove(0).id),
        several => {
            let each: Vec<_> =
                several.iter().map(|one| format!("{} ({})", one.id, mode(one.livemode))).collect();
            bail!(
                "{called} means {} payments: {}. Choose one by its id, or with --live or --test",
                several.len(),
                each.join(", ")
            )
        }
    }
}
