//! A payment's evidence: made by the running server, or by the command itself.

use anyhow::Context as _;
use serde_json::Value;

use super::Door;
use super::notifications::{encoded, path};
use crate::cli::amount::Mode;
use crate::cli::payments::{choose, find};
use crate::{now, view};

impl Door<'_> {
    pub async fn prove(&self, called: &str, account: Option<&str>, mode: &Mode) -> anyhow::Result<Value> {
        match self {
            Self::Server(server) => {
                let mut query = vec![("reference", called)];
                query.extend(account.map(|account| ("account", account)));
                let found = server.items(&format!("/v1/payments?{}", encoded(&query))).await?;
                let each = found
                    .iter()
                    .filter_map(|one| Some((one["id"].as_str()?.to_owned(), one["livemode"].as_bool())));
                let id = choose(each, called, account, mode)?;
                server.get(&path(&["v1", "payments", &id, "proof"])?).await
            }
            Self::Own(store, _) => {
                let state = find(&**store, called, account, mode).await?;
                let report = view::proof(&**store, &state.key.id, now()).await?;
                report.with_context(|| format!("{} is gone", state.key.id))
            }
        }
    }
}
