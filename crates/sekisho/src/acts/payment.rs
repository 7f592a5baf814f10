//! Payments that the app announces before, while or after its customer pays: what it says is joined with what the
//! provider says, whichever comes first.

use sekisho_core::settlement::decide::Aggregate;
use sekisho_core::settlement::order::{self, Order};
use sekisho_core::settlement::payment::{Derived, Facts, MerchantOrder, view};
use sekisho_core::settlement::{Cause, Input, Wanted};
use sekisho_core::state::{Kind, Write};
use sekisho_store::Store;
use serde_json::{Map, Value};

use super::decided::decided;
use super::fields::Fields;
use super::request::{Answered, Request};
use super::typed_state::is_written;
use super::{Actor, Refusal, Result, TRIES, contended, directory, fresh};

/// Creates a payment, or gives one that events have found already its owner.
pub async fn create_payment(
    store: &dyn Store,
    order: Map<String, Value>,
    request: Option<&Request>,
    actor: &Actor<'_>,
) -> Result<Answered> {
    let order = check(order, actor)?;
    for _ in 0..TRIES {
        let (name, role) = (actor.name.to_owned(), actor.role.name().to_owned());
        let cause = Cause { actor: Some(name), role: Some(role), ..Cause::default() };
        let input = order.input(fresh(actor.at), cause);
        let keys = request.map(Request::key).into_iter().collect();
        let besides = Wanted { keys, ..Wanted::default() };
        let (loaded, changes) = decided(store, std::slice::from_ref(&input), besides, actor.at).await?;
        if let Some(answered) = request.map(|request| request.answered(&loaded)).transpose()?.flatten() {
            return Ok(answered);
        }
        if let Some(key) = order::taken(&input, &loaded) {
            let reference = order.ours.reference.as_deref().unwrap_or_default();
            return Err(Refusal::Conflict(format!("the reference {reference:?} belongs to {}", key.id)));
        }
        let Some(change) = changes.into_iter().next() else { return Err(contended()) };
        if let Some(refused) = change.refused {
            return Err(Refusal::Conflict(refused));
        }
        let answer = shown(&change.writes, &input)?;
        let mut set = change.into_set(actor.at, || fresh(actor.at));
        set.writes.extend(request.map(|request| request.write(&answer)));
        if is_written(store, set).await? {
            return Ok(Answered { answer, repeated: false });
        }
    }
    Err(contended())
}

fn check(order: Map<String, Value>, actor: &Actor<'_>) -> Result<Order> {
    let mut fields = Fields::new(order);
    let (amount, currency) = (fields.amount("amount"), fields.currency("currency"));
    let (amount, currency) = (fields.need("amount", amount), fields.need("currency", currency));
    let ours = MerchantOrder {
        amount: amount.unwrap_or_default(),
        currency,
        tenant: fields.id("tenant").or_else(|| actor.tenant.map(str::to_owned)),
        customer: fields.id("customer"),
        purpose: fields.text("purpose", 100),
        reference: fields.text("reference", 200),
        for_all: actor.tenant.is_none(),
        account: fields.id("account"),
        description: fields.text("description", 500),
        metadata: fields.metadata("metadata"),
    };
    let livemode = fields.boolean("livemode");
    fields.finish()?;
    directory::check_tenant(actor, ours.tenant.as_deref())?;
    Ok(Order { ours, livemode })
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
