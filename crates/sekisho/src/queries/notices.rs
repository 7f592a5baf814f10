//! Notices, and who an event is about as far as those that tell of it need to know.

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::directory::{Tenant, own_id};
use sekisho_core::event::Stored;
use sekisho_core::mail_address::MailAddress;
use sekisho_core::notification::{Named, Notice, NoticeStatus, Parties, To};
use sekisho_core::state::{Key, Kind, State};
use sekisho_core::{Seq, Time};
use sekisho_store::{FIND_MAX, StateFilter, Store};
use serde::de::DeserializeOwned;

use super::states::{self, all_pages, load};
use crate::refusal::{Refusal, Result};

/// One notice, as it is stored and as it reads.
pub async fn notice(store: &dyn Store, id: &str) -> Result<Option<(State, Notice)>> {
    let Some(state) = load(store, &Key::new(Kind::Notice, id)).await? else { return Ok(None) };
    let notice = states::read(&state)?;
    Ok(Some((state, notice)))
}

/// Which notices are meant. Whom, status and tenant the store finds by itself; for the rest they are looked through.
#[derive(Clone, Debug, Default)]
pub struct NoticeQuery {
    pub to: Option<MailAddress>,
    pub status: Option<NoticeStatus>,
    pub tenant: Option<String>,
    pub template: Option<String>,
    pub channel: Option<String>,
    pub payment: Option<String>,
    pub batch: Option<String>,
    /// Written down not before, and before.
    pub since: Option<Time>,
    pub until: Option<Time>,
}

/// Notices with their ids, the newest first. With `next` it goes on, however few these are.
#[derive(Debug, Default)]
pub struct NoticePage {
    pub notices: Vec<(String, Notice)>,
    pub next: Option<String>,
}

/// Notices that are looked through for one page, and for one question to the store.
const LOOKED_MAX: usize = 20_000;
const LOOKED_AT_ONCE: usize = 200;
/// From a payment to its reservation, from there to its slot.
const LEADS_MAX: usize = 2;
/// What the id of a notice begins with.
const TAG: &str = "ntc_";

impl NoticeQuery {
    /// One page, after what `before` names.
    pub async fn page(
        &self,
        store: &dyn Store,
        before: Option<String>,
        limit: usize,
    ) -> sekisho_store::Result<NoticePage> {
        // Ids are made in the order of time.
        let floor = |time: Time| Seq::floor_of(time).tagged(TAG);
        let since = self.since.map(floor);
        let mut before = before.into_iter().chain(self.until.map(floor)).min();
        let piece = if self.is_indexed() { limit } else { limit.max(LOOKED_AT_ONCE) }.min(FIND_MAX);
        let (mut notices, mut looked) = (Vec::new(), 0);
        while looked < LOOKED_MAX {
            let states = store.find_states(self.filter(before.clone(), piece)).await?;
            looked += states.len();
            for state in &states {
                if since.as_ref().is_some_and(|since| state.key.id < *since) {
                    return Ok(NoticePage { notices, next: None });
                }
                before = Some(state.key.id.clone());
                let notice = states::read(state)?;
                if self.matches(&notice) {
                    notices.push((state.key.id.clone(), notice));
                }
                if notices.len() == limit {
                    return Ok(NoticePage { notices, next: before });
                }
            }
            if states.len() < piece {
                return Ok(NoticePage { notices, next: None });
            }
        }
        Ok(NoticePage { notices, next: before })
    }

    fn filter(&self, before: Option<String>, limit: usize) -> StateFilter {
        StateFilter {
            status: self.status.map(|status| status.name().to_owned()),
            tenant: self.tenant.clone(),
            customer: self.to.as_ref().map(|to| to.whole().to_owned()),
            before,
            ..StateFilter::all(Kind::Notice, limit)
        }
    }

    fn is_indexed(&self) -> bool {
        [&self.template, &self.channel, &self.payment, &self.batch].into_iter().all(Option::is_none)
    }

    fn matches(&self, notice: &Notice) -> bool {
        let is =
            |wanted: &Option<String>, found: Option<&str>| wanted.is_none() || wanted.as_deref() == found;
        is(&self.template, Some(&notice.template))
            && is(&self.channel, Some(&notice.channel))
            && is(&self.payment, notice.payment.as_deref())
            && is(&self.batch, notice.batch.as_deref())
    }
}

/// Who an event is about, as far as a rule needs to know.
pub async fn parties(store: &dyn Store, to: To, event: &Stored) -> sekisho_store::Result<Parties> {
    parties_with(store, to, event, &BTreeMap::new()).await
}

/// The same, where some things are as `drafts` say, whatever the store has of them.
pub async fn parties_with(
    store: &dyn Store,
    to: To,
    event: &Stored,
    drafts: &BTreeMap<Key, State>,
) -> sekisho_store::Result<Parties> {
    let named = Named::by(event);
    let keys = named.keys();
    let mut known = store.load(Vec::new(), keys.clone()).await?;
    let drafted = keys.iter().filter_map(|key| drafts.get_key_value(key));
    known.states.extend(drafted.map(|(key, state)| (key.clone(), state.clone())));
    for _ in 0..LEADS_MAX {
        let more: Vec<_> = named.leads_to(&known).into_iter().filter(|_| to == To::Customer).collect();
        if more.iter().all(|key| known.states.contains_key(key)) {
            break;
        }
        known.states.extend(store.load(Vec::new(), more.clone()).await?.states);
        let drafted = more.iter().filter_map(|key| drafts.get_key_value(key));
        known.states.extend(drafted.map(|(key, state)| (key.clone(), state.clone())));
    }
    let staff = match (to, &named.tenant) {
        (To::Staff, Some(tenant)) => of_tenant(store, Kind::Staff, tenant).await?,
        (To::Customer | To::Staff | To::Operators | To::Place, _) => Vec::new(),
    };
    Ok(named.parties(&known, &staff))
}

/// Those of the addresses to which a notice was written down, whatever became of it.
pub async fn mailed(
    store: &dyn Store,
    addresses: &[(MailAddress, Option<String>)],
) -> sekisho_store::Result<BTreeSet<MailAddress>> {
    let mut mailed = BTreeSet::new();
    for (address, _) in addresses {
        let customer = Some(address.whole().to_owned());
        let filter = StateFilter { customer, ..StateFilter::all(Kind::Notice, 1) };
        if !store.find_states(filter).await?.is_empty() {
            mailed.insert(address.clone());
        }
    }
    Ok(mailed)
}

/// Everything of a kind that belongs to a tenant, with its id.
pub(super) async fn of_tenant<T: DeserializeOwned>(
    store: &dyn Store,
    kind: Kind,
    tenant: &str,
) -> sekisho_store::Result<Vec<(String, T)>> {
    let filter = StateFilter { tenant: Some(tenant.to_owned()), ..StateFilter::all(kind, FIND_MAX) };
    all_pages(store, filter).await?.iter().map(read).collect()
}

/// Every office, or the one that is named.
pub async fn offices(store: &dyn Store, only: Option<&str>) -> Result<Vec<(String, Tenant)>> {
    let states = match only {
        None => all_pages(store, StateFilter::all(Kind::Tenant, FIND_MAX)).await?,
        Some(id) => {
            let known = load(store, &Key::new(Kind::Tenant, id)).await?;
            let missing = || Refusal::Missing(format!("there is no tenant {id}"));
            vec![known.filter(State::is_shown).ok_or_else(missing)?]
        }
    };
    Ok(states.iter().map(read).collect::<sekisho_store::Result<_>>()?)
}

/// What is kept, under the id that the app uses.
fn read<T: DeserializeOwned>(state: &State) -> sekisho_store::Result<(String, T)> {
    Ok((own_id(&state.key).to_owned(), states::read(state)?))
}
