//! Notices: written down before they are sent, found again, resent when a person asks, and the reminders of a day.

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::calendar::Day;
use sekisho_core::change::ChangeSet;
use sekisho_core::directory::{Staff, Subject, Tenant, own_id};
use sekisho_core::event::Stored;
use sekisho_core::mail_address::MailAddress;
use sekisho_core::notification::post::{self, post};
use sekisho_core::notification::reminder::Run;
use sekisho_core::notification::{Named, Notice, Parties, Place, Status, Step, Suppression, To};
use sekisho_core::state::{Key, Kind, State};
use sekisho_core::{Seq, Time};
use sekisho_store::{FIND_MAX, StateFilter, Store};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::all_pages::all_pages;
use super::fields::FieldError;
use super::suppressions::suppression;
use super::typed_state::{self, is_written, load};
use super::{Actor, Refusal, Result, TRIES, contended, fresh};
use crate::config::Notifications;

/// Notices written down in one commit.
const PIECE: usize = 100;

/// Writes down those that are not there yet, and queues them; says how many. What is there already stays as it is.
pub async fn post_notices(
    store: &dyn Store,
    notices: &[Notice],
    at: Time,
    mut next_id: impl FnMut() -> Seq,
) -> Result<usize> {
    let mut posted = 0;
    for piece in notices.chunks(PIECE) {
        posted += post_piece(store, piece, at, &mut next_id).await?;
    }
    Ok(posted)
}

async fn post_piece(
    store: &dyn Store,
    piece: &[Notice],
    at: Time,
    next_id: &mut impl FnMut() -> Seq,
) -> Result<usize> {
    for _ in 0..TRIES {
        let known = store.load(piece.iter().map(post::name).collect(), Vec::new()).await?;
        let mut set = ChangeSet::nothing(at);
        let posted = post(&mut set, piece, &known, &mut *next_id);
        if posted == 0 {
            return Ok(0);
        }
        if is_written(store, set).await? {
            return Ok(posted);
        }
    }
    Err(contended())
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
async fn of_tenant<T: DeserializeOwned>(
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
    Ok((own_id(&state.key).to_owned(), typed_state::read(state)?))
}

/// The reminders of a day that one office gets.
pub async fn reminders(
    store: &dyn Store,
    notifications: &Notifications,
    tenant: &str,
    today: Day,
    at: Time,
) -> Result<Vec<Notice>> {
    let channel = notifications.reminders.as_ref().ok_or_else(no_channel)?;
    let (id, office) = offices(store, Some(tenant)).await?.remove(0);
    let office = Place::of_tenant(&id, &office);
    let staff = of_tenant::<Staff>(store, Kind::Staff, tenant).await?;
    let subjects: Vec<_> = of_tenant::<Subject>(store, Kind::Subject, tenant)
        .await?
        .into_iter()
        .map(|(_, subject)| subject)
        .collect();
    let house = &notifications.house;
    let run = Run { today, channel, dashboard_url: notifications.dashboard_url.as_deref(), house };
    Ok(run.reminders(&office, &staff, &subjects, at))
}

pub fn no_channel() -> Refusal {
    let cure = "write the name of a mail channel: [notifications] reminders = \"mail\"";
    Refusal::Invalid(format!("no channel is configured for reminders; {cure}"))
}

/// Sends a notice once more, to its old address or another.
pub async fn resend(
    store: &dyn Store,
    id: &str,
    to: Option<MailAddress>,
    actor: &Actor<'_>,
) -> Result<Notice> {
    for _ in 0..TRIES {
        let missing = || Refusal::Missing(format!("there is no notice {id}"));
        let (state, mut notice) = notice(store, id).await?.ok_or_else(missing)?;
        if !actor.may_touch(notice.tenant.as_deref()) {
            return Err(missing());
        }
        let status = notice.status();
        if !status.is_over() {
            return Err(Refusal::Conflict(format!("the notice {id} is {}: it is on its way", status.name())));
        }
        if status == Status::Off && to.is_none() {
            let cure = "switch them on, or say where with `--to`";
            return Err(Refusal::Conflict(format!("notifications are switched off for this person: {cure}")));
        }
        if actor.tenant.is_some() && to.is_some() && to != notice.to {
            let detail = "this key belongs to a tenant: it can resend a notice, but not to another address";
            return Err(Refusal::Forbidden(FieldError::new("to", detail.to_owned())));
        }
        let before = json!({ "status": status, "to": notice.to.as_ref().map(MailAddress::masked) });
        let after = to.as_ref().map(MailAddress::masked);
        notice.to = to.clone().or(notice.to);
        // Which addresses are suppressed is not for a tenant to find out: the record of the notice says it.
        if actor.tenant.is_none() {
            check_address(store, notice.to.as_ref()).await?;
        }
        notice.again += 1;
        let job = fresh(actor.at);
        let old = notice.message.replace(job.as_message().to_string());
        let notice =
            notice.with(Step::new(actor.at, Status::Queued).noting(format!("resent by {}", actor.name)));
        let details = json!({ "before": before, "to": after });
        let entry = actor.entry(notice.tenant.as_deref(), "notice.resent", ("notice", id), details);
        let set = ChangeSet {
            writes: vec![post::write(id, state.version, &notice)],
            jobs: vec![post::send_job(id, &notice, job, actor.at)],
            audit: vec![entry],
            ..ChangeSet::nothing(actor.at)
        };
        if is_written(store, set).await? {
            // Whoever waited for a person among the dead letters has got one.
            if let Some(old) = old.and_then(|old| old.parse().ok()) {
                store.discard(vec![old], actor.act(&format!("sent again as {}", job.as_message()))).await?;
            }
            return Ok(notice);
        }
    }
    Err(contended())
}

/// What would only be suppressed again is not queued.
async fn check_address(store: &dyn Store, to: Option<&MailAddress>) -> Result<()> {
    let Some(address) = to else { return Ok(()) };
    let known = suppression(store, address).await?;
    match known.as_ref().and_then(Suppression::cause) {
        None => Ok(()),
        Some(turn) => Err(Refusal::Conflict(format!(
            "{address} is on the suppression list ({}): release it first, with `sekisho suppressions release`",
            turn.cause.name()
        ))),
    }
}

/// One notice, as it is stored and as it reads.
pub async fn notice(store: &dyn Store, id: &str) -> Result<Option<(State, Notice)>> {
    let Some(state) = load(store, &Key::new(Kind::Notice, id)).await? else { return Ok(None) };
    let notice = typed_state::read(&state)?;
    Ok(Some((state, notice)))
}

/// Which notices are meant. Whom, status and tenant the store finds by itself; for the rest they are looked through.
#[derive(Clone, Debug, Default)]
pub struct NoticeQuery {
    pub to: Option<MailAddress>,
    pub status: Option<Status>,
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
                let notice = typed_state::read(state)?;
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
