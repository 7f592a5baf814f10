//! E2, D6: what anybody may have sent is only a hint. Where the provider can be asked, its own answer makes it a payment.

use sekisho_lab::app::Reply;
use sekisho_lab::providers::{line_pay, mollie};
use serde_json::{Value, json};

use crate::support::{Gateway, Letter, each_store, wait_until};

const KEY: &str = "canary-read-key-0123456789";

fn open(place: &crate::support::Place, sources: &str) -> Gateway {
    let key = "[[key]]\nname = \"LOOKER\"\nsecret = \"env:LOOKER\"\nscopes = [\"read\"]\n";
    Gateway::with_env(place, &format!("{sources}{key}"), &[("LOOKER", KEY)])
}

fn payments(gateway: &Gateway) -> Vec<Value> {
    let headers = [("authorization", &*format!("Bearer {KEY}"))];
    let answer = sekisho_lab::http::request(gateway.address(), "GET", "/v1/payments", &headers, b"").unwrap();
    let page: Value = serde_json::from_slice(&answer.body).unwrap();
    page["items"].as_array().unwrap().clone()
}

#[test]
fn e2_a_hint_of_mollies_is_confirmed_by_mollie_and_only_then_money() {
    each_store(|place| {
        let fake = mollie::start().unwrap();
        fake.put(
            "payment",
            json!({
                "resource": "payment", "id": "tr_real", "mode": "test", "status": "paid",
                "amount": { "value": "75.00", "currency": "EUR" }, "metadata": { "order_id": "order-7" },
            }),
        );
        let gateway = open(
            place,
            &format!(
                "[[source]]\nname = \"mollie\"\nprovider = \"mollie_classic\"\napi_key = \"{}\"\napi_url = \"{}\"\n",
                mollie::KEY,
                fake.url()
            ),
        );
        let hint = |id: &str| {
            let letter = Letter::unsigned("/webhooks/mollie", &format!("id={id}"));
            gateway.send(&letter.with_header("content-type", "application/x-www-form-urlencoded"))
        };
        assert!(hint("tr_invented").status < 300 && hint("tr_real").status < 300);
        wait_until("the payment", || payments(&gateway).iter().any(|one| one["status"] == "paid"));
        let all = payments(&gateway);
        assert_eq!(all.len(), 1, "what nobody at Mollie knows is nothing: {all:?}");
        assert_eq!((&all[0]["amount_received"], &all[0]["reference"]), (&json!(7_500), &json!("order-7")));
        assert_eq!(all[0]["livemode"], false);
        assert!(gateway.type_in(&["dead", "list", "--json"]).done().lines().is_empty());
        gateway.type_in(&["books", "check"]).done();
    });
}

#[test]
fn e2_a_callback_of_line_pays_is_confirmed_by_line_pay() {
    each_store(|place| {
        let fake = line_pay::start().unwrap();
        fake.put(
            "payment",
            json!({
                "transactionId": 2_021_121_600_698_709_510_u64, "transactionType": "PAYMENT", "currency": "JPY",
                "payInfo": [{ "method": "CREDIT_CARD", "amount": 1_200 }], "orderId": "order-9", "payStatus": "CAPTURE",
            }),
        );
        let gateway = open(
            place,
            &format!(
                "[[source]]\nname = \"linepay\"\nprovider = \"line_pay\"\nclient_id = \"{}\"\napi_key = \"{}\"\napi_url = \"{}\"\nlivemode = true\n",
                line_pay::CHANNEL,
                line_pay::KEY,
                fake.url()
            ),
        );
        let path = "/webhooks/linepay?transactionId=2021121600698709510&orderId=order-9";
        let callback = Letter { method: "GET".into(), ..Letter::unsigned(path, "") };
        assert!(gateway.send(&callback).status < 300);
        wait_until("the payment", || payments(&gateway).iter().any(|one| one["status"] == "paid"));
        let paid = &payments(&gateway)[0];
        assert_eq!((&paid["amount_received"], &paid["reference"]), (&json!(1_200), &json!("order-9")));

        // What LINE Pay does not take for an id of its own is asked about once, and is nobody's trouble.
        let asked = fake.calls().len();
        let refusal = json!({ "returnCode": "2101", "returnMessage": "Parameter error" });
        fake.order(Reply::status(200).with_body(&refusal.to_string()));
        let invented = Letter { path: path.replace("2021121600698709510", "7"), ..callback };
        assert!(gateway.send(&invented).status < 300);
        let skipped = || place.sql("SELECT note FROM outcome WHERE note LIKE '%knows no payment 7'");
        wait_until("it is skipped", || !skipped().trim().is_empty());
        assert_eq!(fake.calls().len(), asked + 1);
        assert!(gateway.type_in(&["dead", "list", "--json"]).done().lines().is_empty());
    });
}
