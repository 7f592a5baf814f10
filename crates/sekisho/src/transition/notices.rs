//! Notices: written down before they are sent, resent when a person asks, and the reminders of a day.

use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::event::Stored;
use sekisho_core::notification::directory::{Customer, Day, Staff, Subject, Tenant};
use sekisho_core::notification::post::{self, post};
use sekisho_core::notification::reminder::Run;
use sekisho_core::notification::{MailAddress, Notice, Parties, Person, Place, Status, Step, To};
use sekisho_core::settlement::payment;
use sekisho_core::state::{Key, Kind, State};
use sekisho_core::{Seq, Time};
use sekisho_store::{FIND_MAX, StateFilter, Store};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Actor, Refusal, Result, TRIES, contended, fresh};
use crate::config::Notifications;

/// Notices written down in one commit.
const PIECE: usize = 100;
/// Most members of staff, or subjects, of one tenant that are looked at.
const OF_TENANT_MAX: usize = 100_000;

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
        if let [Committed::Applied { .. }] = &*store.commit(vec![set]).await? {
            return Ok(posted);
        }
    }
    Err(contended())
}

/// Who an event is about, as far as a rule needs to know.
pub async fn parties(store: &dyn Store, to: To, event: &Stored) -> sekisho_store::Result<Parties> {
    let body: Value = serde_json::from_slice(&event.body).unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let tenant = text(&body["tenant"]).or_else(|| text(&body["data"]["tenant"]));
    let customer = text(&body["data"]["customer"]).or_else(|| text(&body["customer"]));
    let payment = text(&body["data"]["id"]).filter(|_| body["data"]["object"] == "payment");
    let key = |kind, id: &Option<String>| id.as_ref().map(|id| Key::new(kind, id));
    let keys = [key(Kind::Tenant, &tenant), key(Kind::Customer, &customer), key(Kind::Payment, &payment)];
    let loaded = store.load(Vec::new(), keys.into_iter().flatten().collect()).await?;
    let find = |kind, id: &Option<String>| {
        key(kind, id).and_then(|key| loaded.states.get(&key)).filter(|state| state.is_shown())
    };
    let mut parties = Parties::default();
    if let Some(id) = tenant {
        let known: Tenant = find(Kind::Tenant, &Some(id.clone())).and_then(read).unwrap_or_default();
        parties.tenant = Some(Place::of_tenant(&id, &known));
    }
    let known = find(Kind::Customer, &customer).and_then(read::<Customer>);
    let mut person =
        customer.as_ref().map(|id| Person::of_customer(id, &known.unwrap_or_default())).unwrap_or_default();
    if person.address.is_none() {
        // Whoever is not in the directory is known by what was typed at the till.
        person.address = find(Kind::Payment, &payment).and_then(email_of);
    }
    parties.customer = Some(person);
    if let (To::Staff, Some(place)) = (to, &parties.tenant) {
        let staff = of_tenant::<Staff>(store, Kind::Staff, &place.id).await?;
        parties.staff = staff.iter().map(|(id, staff)| Person::of_staff(id, staff)).collect();
    }
    Ok(parties)
}

fn email_of(payment: &State) -> Option<MailAddress> {
    read::<payment::Facts>(payment)?.email().cloned()
}

fn read<T: DeserializeOwned>(state: &State) -> Option<T> {
    serde_json::from_str(&state.facts).ok()
}

/// Everything of a kind that belongs to a tenant, with its id.
async fn of_tenant<T: DeserializeOwned>(
    store: &dyn Store,
    kind: Kind,
    tenant: &str,
) -> sekisho_store::Result<Vec<(String, T)>> {
    let mut filter = StateFilter { tenant: Some(tenant.to_owned()), ..StateFilter::all(kind, FIND_MAX) };
    let mut all = Vec::new();
    while all.len() < OF_TENANT_MAX {
        let page = store.find_states(filter.clone()).await?;
        filter.before = page.last().map(|last| last.key.id.clone());
        let shown = page.iter().filter(|state| state.is_shown());
        all.extend(shown.filter_map(|state| Some((state.key.id.clone(), read(state)?))));
        if page.len() < FIND_MAX {
            break;
        }
    }
    Ok(all)
}

/// The reminders of a day that one office gets.
pub async fn reminders(
    store: &dyn Store,
    notifications: &Notifications,
    tenant: &str,
    today: Day,
    at: Time,
) -> Result<Vec<Notice>> {
    let Some(channel) = &notifications.reminders else {
        let cure = "write the name of a mail channel: [notifications] reminders = \"mail\"";
        return Err(Refusal::Wrong(format!("no channel is configured for reminders; {cure}")));
    };
    let key = Key::new(Kind::Tenant, tenant);
    let loaded = store.load(Vec::new(), vec![key.clone()]).await?;
    let known = loaded.states.get(&key).filter(|state| state.is_shown());
    let known = known.ok_or_else(|| Refusal::Missing(format!("there is no tenant {tenant}")))?;
    let office = Place::of_tenant(tenant, &read::<Tenant>(known).unwrap_or_default());
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

/// Sends a notice once more, to its old address or another.
pub async fn resend(
    store: &dyn Store,
    id: &str,
    to: Option<MailAddress>,
    actor: &Actor<'_>,
) -> Result<Value> {
    let key = Key::new(Kind::Notice, id);
    for _ in 0..TRIES {
        let loaded = store.load(Vec::new(), vec![key.clone()]).await?;
        let missing = || Refusal::Missing(format!("there is no notice {id}"));
        let state = loaded.states.get(&key).ok_or_else(missing)?;
        let mut notice: Notice = read(state).ok_or_else(missing)?;
        if !actor.may_touch(notice.tenant.as_deref()) {
            return Err(missing());
        }
        let status = notice.status();
        if !status.is_over() {
            return Err(Refusal::Conflict(format!("the notice {id} is {}: it is on its way", status.name())));
        }
        if let Some(to) = &to {
            notice.to = Some(to.clone());
        }
        notice.again += 1;
        let before = json!({ "status": status, "to": notice.to.as_ref().map(MailAddress::masked) });
        let notice =
            notice.with(Step::new(actor.at, Status::Queued).noting(format!("resent by {}", actor.name)));
        let entry = actor.entry(notice.tenant.as_deref(), "notice.resent", ("notice", id), before);
        let set = ChangeSet {
            writes: vec![post::write(id, state.version, &notice)],
            jobs: vec![post::send_job(id, &notice, fresh(actor.at), actor.at)],
            audit: vec![entry],
            ..ChangeSet::nothing(actor.at)
        };
        if let [Committed::Applied { .. }] = &*store.commit(vec![set]).await? {
            return Ok(post::view(id, &notice, false));
        }
    }
    Err(contended())
}
