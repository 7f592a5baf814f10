//! Payments that the app announces before, while or after its customer pays: what it says is joined with what the
//! provider says, whichever comes first.

use std::slice;

use sekisho_core::actor::Actor;
use sekisho_core::change::ChangeSet;
use sekisho_core::settlement::decide::Aggregate;
use sekisho_core::settlement::follow::OrderPolicy;
use sekisho_core::settlement::order::{self, MerchantRequest};
use sekisho_core::settlement::payment::{Derived, Facts, MerchantOrder, view};
use sekisho_core::settlement::{Cause, Input, Terms, decide, names};
use sekisho_core::state::{Key, Kind, Wanted, Write};
use sekisho_store::Store;
use serde_json::{Map, Value};

use super::fields::Fields;
use super::request::{Answered, OnceKey};
use crate::env::Env;
use crate::refusal::{Refusal, Result};
use crate::transact::{Decision, TransactError, transact_in_steps};

/// Creates a payment, or gives one that events have found already its owner.
pub async fn create_payment(
    store: &dyn Store,
    env: &Env,
    orders: &OrderPolicy,
    order: Map<String, Value>,
    request: Option<&OnceKey>,
    actor: &Actor<'_>,
) -> Result<Answered> {
    let order = parse(order, actor)?;
    let (name, role) = (actor.name.to_owned(), actor.role.of_entry());
    let cause = Cause { actor: Some(name), role, ..Cause::default() };
    let draw = || order.input(env.fresh_seq(actor.at), cause.clone());
    let mut input = draw();
    let mut wanted = wanted_by(&input);
    wanted.extend(Wanted::keys(request.map(OnceKey::key)));
    let created = transact_in_steps(store, wanted.clone(), |loaded| -> Result<_> {
        if let Some(answered) = OnceKey::repeated(request, loaded)? {
            return Ok(Decision::Write(ChangeSet::nothing(actor.at), answered));
        }
        if loaded.states.contains_key(&own_key(&input)) {
            // Another payment was given the same id in the same millisecond.
            input = draw();
            let more = wanted_by(&input);
            wanted.extend(more.clone());
            return Ok(Decision::Load(more));
        }
        let changes = match decide(slice::from_ref(&input), &wanted, loaded, &Terms::of(actor.at, orders)) {
            Ok(changes) => changes,
            Err(more) => {
                wanted.extend(more.clone());
                return Ok(Decision::Load(more));
            }
        };
        if let Some(key) = order::taken(&input, loaded) {
            let reference = order.ours.reference.as_deref().unwrap_or_default();
            return Err(Refusal::Conflict(format!("the reference {reference:?} belongs to {}", key.id)));
        }
        let change = changes.into_iter().next().ok_or(TransactError::<Refusal>::Contended)?;
        if let Some(refused) = change.refused {
            return Err(Refusal::Conflict(refused));
        }
        let answer = shown(&change.writes, &input)?;
        let mut set = change.into_set(actor.at, || env.fresh_seq(actor.at));
        set.writes.extend(request.map(|request| request.write(&answer)));
        Ok(Decision::Write(set, Answered { answer, repeated: false }))
    });
    created.await.map_err(Refusal::from)
}

/// What must be known of what it names, and whether its id is free.
fn wanted_by(input: &Input) -> Wanted {
    let mut wanted = names(slice::from_ref(input));
    wanted.extend(Wanted::keys([own_key(input)]));
    wanted
}

fn own_key(input: &Input) -> Key {
    Key::new(Kind::Payment, input.seq.tagged(Facts::TAG))
}

fn parse(order: Map<String, Value>, actor: &Actor<'_>) -> Result<MerchantRequest> {
    let mut fields = Fields::new(order);
    let (amount, currency) = (fields.take("amount").amount(), fields.take("currency").currency());
    let (amount, currency) = (fields.need("amount", amount), fields.need("currency", currency));
    let ours = MerchantOrder {
        amount: amount.unwrap_or_default(),
        currency,
        tenant: fields.take("tenant").id().or_else(|| actor.tenant.map(str::to_owned)),
        customer: fields.take("customer").id(),
        purpose: fields.take("purpose").text(100),
        reference: fields.take("reference").text(200),
        for_all: actor.tenant.is_none(),
        account: fields.take("account").id(),
        description: fields.take("description").text(500),
        metadata: fields.take("metadata").metadata(),
    };
    let livemode = fields.take("livemode").boolean();
    fields.finish()?;
    actor.check_tenant(ours.tenant.as_deref())?;
    Ok(MerchantRequest { ours, livemode })
}

/// The payment as it will be.
fn shown(writes: &[Write], input: &Input) -> Result<Value> {
    let broken = |error| Refusal::Conflict(format!("what would be kept can't be read back: {error}"));
    let id = input.seq.tagged(Facts::TAG);
    for write in writes.iter().filter(|write| write.key.kind == Kind::Payment) {
        let facts = Facts::parse(&write.facts).map_err(broken)?;
        if facts.ours.contains_key(&id) {
            return Ok(view(&write.key.id, &facts, &Derived::of(&facts)));
        }
    }
    Err(Refusal::Conflict("nothing would change".into()))
}
