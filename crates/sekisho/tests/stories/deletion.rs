//! D8: what is deleted is gone for whoever looks, and takes neither events nor the audit log with it.

use serde_json::{Value, json};

use crate::support::{Gateway, Provider, each_store, wait_until};

/// A subscription of the tenant's, as Stripe tells it.
fn subscription(event: &str, id: &str, status: &str) -> String {
    json!({
        "id": event, "object": "event", "type": "customer.subscription.updated", "livemode": false,
        "created": sekisho::now().ms() / 1_000,
        "data": { "object": {
            "object": "subscription", "id": id, "customer": "cus_1", "status": status, "currency": "jpy",
            "metadata": { "tenant_id": "office" },
        } },
    })
    .to_string()
}

fn charge() -> String {
    json!({
        "id": "evt_charge", "object": "event", "type": "charge.succeeded", "livemode": false,
        "created": sekisho::now().ms() / 1_000,
        "data": { "object": {
            "object": "charge", "id": "ch_1", "status": "succeeded", "paid": true, "captured": true, "amount": 500,
            "amount_captured": 500, "amount_refunded": 0, "currency": "jpy",
            "metadata": { "tenant_id": "office", "customer_id": "ann" },
        } },
    })
    .to_string()
}

fn send(gateway: &Gateway, body: &str) {
    assert_eq!(gateway.send(&Provider::stripe().body(body)).status, 204);
    wait_until("it is settled", || gateway.events().iter().all(|event| event["status"] == "success"));
}

fn about(gateway: &Gateway, event: &str) -> Value {
    let shown = gateway.type_in(&["events", "show", event, "--json"]).done().lines().remove(0);
    let listed = gateway.events().into_iter().find(|one| one["event_id"] == event).unwrap();
    assert_eq!(shown["about"], listed["about"]);
    shown["about"].clone()
}

fn list(gateway: &Gateway, words: &[&str]) -> Vec<Value> {
    gateway.type_in(&[words, &["--json"]].concat()).done().lines()
}

#[test]
fn d8_a_deleted_billing_record_is_gone_until_something_new_is_subscribed_to() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        send(&gateway, &subscription("evt_1", "sub_1", "active"));
        let billing = list(&gateway, &["billing", "office"]).remove(0);
        let id = billing["id"].as_str().unwrap();
        assert_eq!(about(&gateway, "evt_1")["billing"], id);

        let words = ["billing", "delete", "office", "--yes"];
        gateway.type_in(&words).done().mentions(&[
            "Deleted billing of office",
            "It was active",
            "at the provider",
        ]);
        gateway.type_in(&words).failed(1).mentions(&["there is no billing of office"]);
        gateway.type_in(&["billing", "office"]).failed(1).mentions(&["no billing of office"]);
        assert!(list(&gateway, &["billing"]).is_empty());
        assert_eq!(place.sql("SELECT count(*) FROM billings"), "0");

        // What is said of it later is kept, and changes nothing for whoever looks.
        send(&gateway, &subscription("evt_2", "sub_1", "canceled"));
        assert!(list(&gateway, &["billing"]).is_empty());
        for event in ["evt_1", "evt_2"] {
            let links = json!({ "payment": null, "billing": null, "tenant": "office" });
            assert_eq!(about(&gateway, event), links, "{event} stays, its link is null");
        }
        assert_eq!(
            place.sql("SELECT count(*) FROM webhook_events WHERE source = 'stripe' AND billing_id IS NULL"),
            "2"
        );
        let entries = list(&gateway, &["audit", "--target", id]);
        let deleted = entries.iter().find(|entry| entry["action"] == "billing.deleted").unwrap();
        assert_eq!((&deleted["role"], &deleted["tenant"]), (&json!("operator"), &json!("office")));
        assert_eq!(deleted["details"]["before"]["status"], "active");
        gateway.type_in(&["audit", "verify"]).done().mentions(&["nothing was changed"]);

        send(&gateway, &subscription("evt_3", "sub_2", "active"));
        let back = list(&gateway, &["billing", "office"]).remove(0);
        assert_eq!((&back["id"], &back["status"]), (&billing["id"], &json!("active")));
        assert_eq!(about(&gateway, "evt_1")["billing"], id, "and its links lead there again");
    });
}

#[test]
fn d8_a_deleted_tenant_takes_no_payment_with_it() {
    each_store(|place| {
        let mut gateway = Gateway::open(place);
        send(&gateway, &charge());
        gateway.type_in(&["tenants", "create", "office", "--name", "Office"]).done();
        gateway.type_in(&["customers", "create", "ann", "--tenant", "office"]).done();
        // The same id of no tenant is somebody else, whom nothing here is about.
        gateway.type_in(&["customers", "create", "ann"]).done();
        gateway.type_in(&["customers", "delete", "ann"]).done();
        let links = "SELECT coalesce(tenant_id, '-') || coalesce(customer_id, '-') FROM payments";
        assert_eq!(place.sql(links), "officeann");

        gateway.type_in(&["tenants", "delete", "office"]).done().mentions(&["Deleted tenant office."]);
        // Who belonged to it went with it. The same without a server.
        gateway.server.terminate().unwrap();
        let of_office = ["customers", "delete", "ann", "--tenant", "office"];
        gateway.type_in(&of_office).failed(1).mentions(&["there is no customer ann"]);
        assert!(list(&gateway, &["tenants"]).is_empty() && list(&gateway, &["customers"]).is_empty());
        assert_eq!(place.sql(links), "--");
        let payment = list(&gateway, &["payments"]).remove(0);
        assert_eq!((&payment["amount_received"], &payment["status"]), (&json!(500), &json!("paid")));
        assert_eq!((&payment["tenant"], &payment["customer"]), (&Value::Null, &Value::Null));
        assert_eq!(about(&gateway, "evt_charge")["tenant"], Value::Null);
        let actions = list(&gateway, &["audit", "--action", "*.deleted"]);
        assert!(actions.is_empty(), "a star stands at the end only");
        for (target, action) in [("office", "tenant.deleted"), ("ann", "customer.deleted")] {
            let entry = list(&gateway, &["audit", "--target", target]).remove(0);
            assert_eq!((&entry["action"], &entry["role"]), (&json!(action), &json!("operator")));
        }
        gateway.type_in(&["books", "check"]).done();
        gateway.type_in(&["tenants", "create", "office"]).done();
        assert_eq!(list(&gateway, &["payments"])[0]["tenant"], "office");
    });
}
