//! What is done about notices: through the running server, or by the command itself.

use anyhow::bail;
use sekisho_core::id::Sequence;
use sekisho_core::mail_address::MailAddress;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Door, Server, operator, os_actor};
use crate::acts::{self, Remind, RemindReport, Resumed, Turned};
use crate::now;
use crate::view::{self, Outlet};

/// What is to be done with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Suppress,
    Release,
}

impl Door<'_> {
    pub async fn resend(&self, id: &str, to: Option<&MailAddress>) -> anyhow::Result<Value> {
        match self {
            Self::Server(server) => {
                let order = json!({ "to": to.map(MailAddress::whole) });
                server.post(&path(&["v1", "notices", id, "resend"])?, &order).await
            }
            Self::Own(store, _) => {
                let actor = os_actor();
                let actor = operator(&actor);
                let resent = acts::resend(&**store, id, to.cloned(), &actor).await?;
                Ok(view::notice(id, &resent, false))
            }
        }
    }

    pub async fn turn(&self, turn: Turn, address: &MailAddress, reason: &str) -> anyhow::Result<Value> {
        let order = json!({ "address": address.whole(), "reason": reason });
        let store = match self {
            Self::Server(server) => {
                let path = match turn {
                    Turn::Suppress => "/v1/suppressions",
                    Turn::Release => "/v1/suppressions/release",
                };
                return server.post(path, &order).await;
            }
            Self::Own(store, _) => &**store,
        };
        let order: Map<_, _> = order.as_object().cloned().unwrap_or_default();
        let Turned { address, reason } = Turned::read(order)?;
        let actor = os_actor();
        let actor = operator(&actor);
        Ok(match turn {
            Turn::Suppress => acts::suppress(store, &address, &reason, &actor).await?,
            Turn::Release => acts::release(store, &address, &reason, &actor).await?,
        })
    }

    pub async fn channels(&self) -> anyhow::Result<Vec<Value>> {
        match self {
            Self::Server(server) => server.items("/v1/channels").await,
            Self::Own(store, context) => {
                Ok(view::channels(&Outlet::all(&context.load()?.config), &**store, now()).await?)
            }
        }
    }

    pub async fn resume(&self, channel: &str) -> anyhow::Result<Resumed> {
        match self {
            Self::Server(server) => server.post(&path(&["v1", "channels", channel, "resume"])?, &()).await,
            Self::Own(store, context) => {
                let config = context.load()?.config;
                if !config.channels.iter().any(|known| known.name == channel) {
                    let names: Vec<_> = config.channels.iter().map(|known| known.name.as_str()).collect();
                    bail!("there is no channel {channel}; configured are: {}", names.join(", "));
                }
                let actor = os_actor();
                let actor = operator(&actor);
                Ok(acts::resume(&**store, channel, &actor).await?)
            }
        }
    }

    pub async fn remind(&self, order: &Remind) -> anyhow::Result<RemindReport> {
        match self {
            Self::Server(server) => server.post("/v1/reminders", order).await,
            Self::Own(store, context) => {
                let config = context.load()?.config;
                let actor = os_actor();
                let actor = operator(&actor);
                // Servers on other machines may run beside this: the ids must be nobody else's.
                let joined = store.join(actor.at).await?;
                let mut ids = Sequence::new(joined.epoch, joined.floor);
                let next_seq = || ids.next(actor.at);
                let run = acts::run_reminders(&**store, &config.notifications, order, &actor, next_seq).await;
                store.leave(joined.epoch).await?;
                Ok(run?)
            }
        }
    }

    /// How a day's reminders stand, of one office or all.
    pub async fn reminders(&self, date: &str, tenant: Option<&str>) -> anyhow::Result<Value> {
        match self {
            Self::Server(server) => {
                let query = tenant.map(|tenant| format!("?{}", encoded(&[("tenant", tenant)])));
                let path = path(&["v1", "reminders", date])?;
                server.get(&format!("{path}{}", query.unwrap_or_default())).await
            }
            Self::Own(store, _) => Ok(acts::reminders_summary(&**store, date, tenant, now()).await?),
        }
    }
}

impl Server {
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.ask(self.client.get(format!("{}{path}", self.url))).await
    }
}

/// A path whose parts are taken as they are, whatever letters they have: what is no name leads to no other path.
pub(super) fn path(parts: &[&str]) -> anyhow::Result<String> {
    if let Some(part) = parts.iter().find(|part| matches!(**part, "" | "." | "..")) {
        bail!("{part:?} is no name");
    }
    let mut url = reqwest::Url::parse("http://localhost")?;
    url.path_segments_mut().expect("http has a path").extend(parts);
    Ok(url.path().to_owned())
}

pub(super) fn encoded(pairs: &[(&str, &str)]) -> String {
    let mut url = reqwest::Url::parse("http://localhost").expect("it is one");
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2_what_is_no_name_leads_to_no_other_path() {
        let cases = [
            ("ntc_1", Some("/v1/notices/ntc_1/resend")),
            ("a/../b?c#d", Some("/v1/notices/a%2F..%2Fb%3Fc%23d/resend")),
            ("社", Some("/v1/notices/%E7%A4%BE/resend")),
            ("..", None),
            ("", None),
        ];
        for (id, expected) in cases {
            assert_eq!(path(&["v1", "notices", id, "resend"]).ok().as_deref(), expected, "{id}");
        }
        assert_eq!(encoded(&[("tenant", "a&b c")]), "tenant=a%26b+c");
    }
}
