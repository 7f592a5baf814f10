//! Payments that the app announces before, while or after its customer pays: what it says is joined with what the
//! provider says, whichever comes first.

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::settlement::payment::{Derived, Facts, Ours, view};
use sekisho_core::settlement::reading::order_name;
use sekisho_core::settlement::{Cause, Input, Part, Reading, decide, names};
use sekisho_core::state::{Key, Kind, Loaded, Write};
use sekisho_store::Store;
use serde_json::{Map, Value};

use super::directory;
use super::fields::{FieldError, Fields};
use super::request::{Answered, Request};
use super::{Actor, Refusal, Result, TRIES, contended, fresh};

/// What an order to create a payment says, checked.
struct NewPayment {
    ours: Ours,
    livemode: Option<bool>,
}

/// Creates a payment, or gives one that events have found already its owner.
pub async fn create_payment(
    store: &dyn Store,
    order: Map<String, Value>,
    request: Option<&Request>,
    actor: &Actor<'_>,
) -> Result<Answered> {
    let new = check(order, actor)?;
    for _ in 0..TRIES {
        let loaded = load(store, &new, request).await?;
        if let Some(answered) = request.map(|request| request.answered(&loaded)).transpose()?.flatten() {
            return Ok(answered);
        }
        directory::check_customer(&loaded, new.ours.customer.as_deref(), new.ours.tenant.as_deref(), actor)?;
        let id = fresh(actor.at);
        let input = input(&new, id.tagged("pay_"), &loaded, actor)?;
        let input = Input { seq: id, ..input };
        let Some(change) = decide(&[input], &loaded, &|_| false, actor.at).pop() else {
            return Err(contended());
        };
        if let Some(refused) = change.refused {
            return Err(Refusal::Conflict(refused));
        }
        let answer = shown(&change.writes)?;
        let mut set = ChangeSet {
            writes: change.writes,
            names: change.names,
            postings: change.postings,
            audit: change.audit,
            events: change.announcements.into_iter().map(|told| told.arrival(fresh(actor.at))).collect(),
            ..ChangeSet::nothing(actor.at)
        };
        set.writes.extend(request.map(|request| request.write(&answer)));
        if let [Committed::Applied { .. }] = &*store.commit(vec![set]).await? {
            return Ok(Answered { answer, repeated: false });
        }
    }
    Err(contended())
}

fn check(order: Map<String, Value>, actor: &Actor<'_>) -> Result<NewPayment> {
    let mut fields = Fields::new(order);
    let (amount, currency) = (fields.amount("amount"), fields.currency("currency"));
    let (amount, currency) = (fields.need("amount", amount), fields.need("currency", currency));
    let ours = Ours {
        amount: amount.unwrap_or_default(),
        currency,
        tenant: fields.id("tenant").or_else(|| actor.tenant.map(str::to_owned)),
        customer: fields.id("customer"),
        purpose: fields.text("purpose", 100),
        reference: fields.text("reference", 200),
        account: fields.id("account"),
        description: fields.text("description", 500),
        metadata: fields.metadata("metadata"),
    };
    let livemode = fields.boolean("livemode");
    fields.finish()?;
    directory::check_tenant(actor, ours.tenant.as_deref())?;
    Ok(NewPayment { ours, livemode })
}

/// The names under which the provider's objects may have brought an order already, or will, by mode. An order whose mode
/// nobody said takes that of the first who brings it: live before test, never both.
fn order_names(new: &NewPayment, reference: &str) -> BTreeSet<String> {
    let modes = match new.livemode {
        Some(mode) => vec![None, Some(mode)],
        None => vec![None, Some(true), Some(false)],
    };
    let account = new.ours.account.as_deref();
    modes.into_iter().map(|mode| order_name(mode, account, reference)).collect()
}

async fn load(store: &dyn Store, new: &NewPayment, request: Option<&Request>) -> Result<Loaded> {
    let part = |names| Part { names, facts: Facts::default() };
    let wanted = new.ours.reference.iter().flat_map(|reference| order_names(new, reference)).collect();
    let reading = Reading { payment: Some(part(wanted)), billing: None };
    let wanted = Input { seq: sekisho_core::Seq::ZERO, reading, cause: Cause::default() };
    let mut keys: Vec<_> = new.ours.customer.iter().map(|id| Key::new(Kind::Customer, id)).collect();
    keys.extend(request.map(Request::key));
    Ok(store.load(names(&[wanted]).into_iter().collect(), keys).await?)
}

fn input(new: &NewPayment, id: String, loaded: &Loaded, actor: &Actor<'_>) -> Result<Input> {
    if let Some(reference) = &new.ours.reference {
        for name in order_names(new, reference) {
            check_free(new, reference, &name, loaded, actor)?;
        }
    }
    // Our own id is as good a reference as the app's.
    let references = new.ours.reference.as_deref().into_iter().chain([&*id]);
    let own = references.flat_map(|reference| order_names(new, reference)).collect();
    let facts =
        Facts { livemode: new.livemode, ours: BTreeMap::from([(id, new.ours.clone())]), ..Facts::default() };
    let part = Part { names: own, facts };
    let cause = Cause { actor: Some(actor.name.to_owned()), ..Cause::default() };
    Ok(Input { seq: sekisho_core::Seq::ZERO, reading: Reading { payment: Some(part), billing: None }, cause })
}

/// A reference names one payment of the app's, in a mode.
fn check_free(
    new: &NewPayment,
    reference: &str,
    name: &str,
    loaded: &Loaded,
    actor: &Actor<'_>,
) -> Result<()> {
    let Some(key) = loaded.names.get(&format!("p:{name}")) else { return Ok(()) };
    let facts = loaded.states.get(key).and_then(|state| serde_json::from_str::<Facts>(&state.facts).ok());
    let owner = facts.as_ref().and_then(|facts| Derived::of(facts).tenant);
    if actor.tenant.is_some() && owner.as_deref() != actor.tenant {
        let detail = format!("the reference {reference:?} belongs to another tenant");
        return Err(Refusal::Foreign(FieldError::new("reference", detail)));
    }
    let is_taken = facts.is_some_and(|facts| {
        let both = facts.livemode.zip(new.livemode);
        !facts.ours.is_empty() && both.is_none_or(|(known, wanted)| known == wanted)
    });
    if is_taken {
        return Err(Refusal::Conflict(format!("the reference {reference:?} belongs to {}", key.id)));
    }
    Ok(())
}

/// The payment as it will be.
fn shown(writes: &[Write]) -> Result<Value> {
    let written = writes.iter().rfind(|write| write.key.kind == Kind::Payment);
    let written = written.ok_or_else(|| Refusal::Conflict("nothing would change".into()))?;
    let broken = |error| Refusal::Conflict(format!("what would be kept can't be read back: {error}"));
    let facts: Facts = serde_json::from_str(&written.facts).map_err(broken)?;
    Ok(view(&written.key.id, &facts, &Derived::of(&facts)))
}
