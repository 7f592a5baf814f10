//! Payments as they come to be, for tests: an event of Stripe is taken in, settled and committed.

use std::sync::Arc;

use sekisho_core::change::{Arrival, Ended};
use sekisho_core::event::{DedupeKey, Trust};
use sekisho_core::job::{End, Lease, Outcome};
use sekisho_core::settlement::{self, Cause, Input, References, Terms, decide};
use sekisho_core::source_name::Origin;
use sekisho_core::{Seq, Time};
use sekisho_store::Store;
use serde_json::{Value, json};

pub const NOW: Time = Time::from_ms(1_780_000_000_000);

/// An intent that succeeded, with whatever `more` says beside it.
pub fn paid(order: &str, amount: i64, more: &Value) -> Value {
    let mut intent = json!({
        "id": format!("pi_{order}"), "object": "payment_intent", "status": "succeeded", "amount": amount,
        "amount_received": amount, "currency": "jpy", "metadata": { "order_id": order },
    });
    intent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({
        "id": format!("evt_{order}"), "object": "event", "type": "payment_intent.succeeded",
        "created": NOW.ms() / 1000, "livemode": true, "data": { "object": intent },
    })
}

/// The event comes and is settled; answers the id of its payment or billing.
pub async fn settle(store: &dyn Store, body: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (event_id, event_type) = (text(&body["id"]), text(&body["type"]));
    let object = &body["data"]["object"];
    let joined = store.join(NOW).await.unwrap();
    let mut last = joined.floor.max(Seq::floor_of(NOW)).as_i64();
    let mut next = || {
        last += 1;
        Seq::from_i64(last)
    };
    let seq = next();
    let arrival = Arrival {
        key: DedupeKey::new("stripe", &event_id, None),
        first_body: None,
        seq,
        received_at: NOW,
        source: "stripe".into(),
        event_id,
        event_type,
        created_at: None,
        object: Some((text(&object["object"]), text(&object["id"]))),
        account: None,
        livemode: body["livemode"].as_bool(),
        trust: Trust::Signed,
        headers: r#"[["stripe-signature","t=1,v1=canary_signature"]]"#.into(),
        body: body.to_string().into(),
        held: None,
    };
    store.admit(Arc::new([arrival]), Some(joined.epoch)).await.unwrap();
    let event = store.load_events(vec![seq]).await.unwrap().remove(0);
    let origin = Origin { provider: "stripe", livemode: None };
    let reading = settlement::read(origin, &event, &References::default()).unwrap().unwrap();
    let input = [Input { seq, reading, cause: Cause::of(&event) }];
    let wanted = settlement::names(&input);
    let loaded = store.load(wanted.names.iter().cloned().collect(), Vec::new()).await.unwrap();
    let mut change = decide(&input, &wanted, &loaded, &Terms::at(NOW)).unwrap().remove(0);
    let about = change.about.remove(0);
    let id = about.payment.clone().or(about.billing.clone()).unwrap();
    let mut set = change.into_set(NOW, &mut next);
    let lease = Lease::born(seq, joined.epoch);
    set.ends.push(Ended { about, ..Ended::new(lease, End::Done(Outcome::SUCCESS)) });
    store.commit(vec![set]).await.unwrap();
    id
}
