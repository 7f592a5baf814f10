//! F2–F5: customers hear of their orders, each thing once and with their link; whoever was woken hears when it is over.

use sekisho_lab::chat::{Chat, ROUTING_KEY, Service};
use sekisho_lab::smtp::{Mail, Smtp, SmtpBehaviour};
use serde_json::{Value, json};

use crate::notices::{FAST, mail};
use crate::reservations::{Shop, id_of, json_of};
use crate::support::{each_store, wait_until};

const PAGES: &str = "[pages]\nurl = \"http://127.0.0.1:9\"\n";
const CUSTOMERS: &str = "[notifications]\ncustomers = \"mail\"\n";

fn subjects(smtp: &Smtp, to: &str, words: &str) -> Vec<Mail> {
    let is_it =
        |mail: &Mail| mail.to == [to] && mail.header("subject").is_some_and(|text| text.contains(words));
    smtp.accepted().into_iter().filter(is_it).collect()
}

/// The mail with these words in its subject, once it is there.
fn heard(smtp: &Smtp, to: &str, words: &str) -> Mail {
    wait_until(&format!("{to} hears {words}"), || !subjects(smtp, to, words).is_empty());
    subjects(smtp, to, words).remove(0)
}

/// The link of an order in a mail, as a path.
fn link(mail: &Mail) -> String {
    let text = mail.part("text/plain").unwrap();
    let at = text.find("http://127.0.0.1:9/o/").unwrap_or_else(|| panic!("no link in {text}"));
    let url = text[at..].split_whitespace().next().unwrap();
    assert!(mail.part("text/html").unwrap().contains(url), "the same in HTML");
    url.strip_prefix("http://127.0.0.1:9").unwrap().to_owned()
}

fn fail_run(shop: &Shop, id: &str, run: u32) {
    let result = json!({ "run": run, "status": "failed", "error": "out of memory" });
    shop.post(&format!("/v1/fulfilments/{id}/result"), &result);
}

#[test]
fn f2_customers_hear_of_their_orders_each_thing_once_in_their_language_with_their_link() {
    each_store(|place| {
        let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
        let more = "[reservations]\ngrace = \"1s\"\n[fulfilment]\nattempts = 1\n";
        let shop = Shop::open(place, &format!("{PAGES}{CUSTOMERS}{more}{}", mail(&smtp, FAST)));
        shop.post("/v1/slots", &json!({ "id": "dome", "livemode": false, "title": "Southern Stars" }));
        let starts_at = sekisho::now().plus_ms(10 * 86_400_000).to_string();
        let order = json!({ "email": "taro@example.jp", "language": "ja", "starts_at": starts_at,
            "fulfilment": { "kind": "video", "name": "星空" } });
        let held = shop.hold_with("dome", "T-1", order);
        let id = id_of(&held);
        shop.pay("T-1");
        let confirmed = heard(&smtp, "taro@example.jp", "ご予約が確定しました");
        let text = confirmed.part("text/plain").unwrap();
        for words in ["Southern Stars", "T-1", "4,800円", &*id] {
            assert!(text.contains(words), "{words} in {text}");
        }
        let page = shop.gateway.get(&link(&confirmed));
        assert!(page.status == 200 && page.text().contains("T-1"), "{}", page.text());

        fail_run(&shop, json_of(&held)["fulfilment"].as_str().unwrap(), 1);
        let unmade = heard(&smtp, "taro@example.jp", "動画の生成に問題");
        link(&unmade);
        assert!(unmade.part("text/plain").unwrap().contains("自動返金の期限"), "{unmade:?}");
        shop.post(&format!("/v1/reservations/{id}/cancel"), &json!({ "reason": "ill" }));
        link(&heard(&smtp, "taro@example.jp", "キャンセルされました"));
        shop.wait_for_refund(&id);
        shop.hear();
        link(&heard(&smtp, "taro@example.jp", "返金のお手続き"));

        // Another customer does not pay, in English.
        let late = json!({ "email": "ann@example.com", "language": "en", "hold": "1s" });
        id_of(&shop.hold_with("other", "T-2", late));
        heard(&smtp, "ann@example.com", "has expired");

        let count = smtp.accepted().len();
        shop.gateway.type_in(&["events", "replay", "--all", "--reason", "again"]).done();
        std::thread::sleep(std::time::Duration::from_secs(1));
        assert_eq!(smtp.accepted().len(), count, "nobody hears it twice");
        let per = |to: &str| smtp.accepted().iter().filter(|mail| mail.to == [to]).count();
        assert_eq!((per("taro@example.jp"), per("ann@example.com")), (4, 1));
        // A link is a key: it is in the mail and nowhere else.
        assert_eq!(
            place.sql("SELECT count(*) FROM state WHERE kind = 'notice' AND facts LIKE '%:9/o/%'"),
            "0"
        );
        assert!(!shop.gateway.server.log().contains(&link(&confirmed)));
    });
}

#[test]
fn f3_a_refund_that_fails_is_told_to_its_customer_and_is_a_case_until_the_money_is_back() {
    each_store(|place| {
        let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
        let shop = Shop::open(place, &format!("{PAGES}{CUSTOMERS}{}", mail(&smtp, FAST)));
        let id =
            id_of(&shop.hold_with("dome", "R-1", json!({ "email": "ann@example.com", "language": "en" })));
        let sold = shop.stripe.sell(4_800, "jpy", json!({ "order_id": "R-1" }));
        shop.hear();
        shop.wait_for(&id, "confirmed");
        shop.post(&format!("/v1/reservations/{id}/cancel"), &json!({ "reason": "ill" }));
        shop.wait_for_refund(&id);
        shop.hear();
        let refund = shop.stripe.refunds_of(&sold.payment_intent)[0]["id"].as_str().unwrap().to_owned();
        shop.stripe.finish_refund(&refund, "failed");
        shop.hear();
        let case = wait_for_case(&shop, "REFUND_FAILED", "open");
        assert_eq!((&case["level"], &case["payment"].is_string()), (&json!(2), &true), "{case}");
        let told = heard(&smtp, "ann@example.com", "About your refund");
        link(&told);
        shop.stripe.refund_by_hand(&sold.payment_intent, None).unwrap();
        shop.hear();
        let closed = wait_for_case(&shop, "REFUND_FAILED", "resolved");
        assert_eq!(closed["resolved"]["how"], "cleared", "{closed}");

        // Nobody here ordered it: it is a case all the same.
        let plain = shop.stripe.sell(900, "jpy", json!({}));
        let made = shop.stripe.refund_by_hand(&plain.payment_intent, None).unwrap();
        shop.hear();
        shop.stripe.finish_refund(made["id"].as_str().unwrap(), "failed");
        shop.hear();
        let second = wait_for_case(&shop, "REFUND_FAILED", "open");
        let path = format!("/v1/cases/{}", second["id"].as_str().unwrap());
        shop.post(&format!("{path}/resolve"), &json!({ "how": "by_hand", "note": "paid in cash" }));
        assert_eq!(shop.get(&path)["resolved"]["how"], "by_hand");
    });
}

/// The newest case of a trigger with this status, once there is one.
fn wait_for_case(shop: &Shop, trigger: &str, status: &str) -> Value {
    let mut found = Value::Null;
    wait_until(&format!("a case {trigger} to be {status}"), || {
        let cases = shop.get(&format!("/v1/cases?status={status}"));
        let own = cases["items"].as_array().unwrap().iter().find(|case| case["trigger"] == trigger);
        found = own.cloned().unwrap_or_default();
        !found.is_null()
    });
    found
}

#[test]
fn f5_a_pager_that_was_told_of_a_case_hears_once_when_it_is_over_and_not_when_it_is_acknowledged() {
    each_store(|place| {
        let chat = Chat::start().unwrap();
        let channel = format!(
            "[[channel]]\nname = \"pager\"\nkind = \"pagerduty\"\nurl = \"{}\"\nrouting_key = \"{ROUTING_KEY}\"\n\
             allow_private = true\n",
            chat.url()
        );
        let rule = "[[compensation]]\nname = \"WAKE\"\nwhen = 'fulfilment.status == \"failed\"'\nlevel = 3\ntell = [\"pager\"]\n";
        let shop = Shop::open(place, &format!("[fulfilment]\nattempts = 1\n{channel}{rule}"));
        let failed = |reference: &str| {
            let made = json!({ "fulfilment": { "kind": "video" } });
            let held = shop.hold_with(reference, reference, made);
            let id = json_of(&held)["fulfilment"].as_str().unwrap().to_owned();
            shop.pay(reference);
            shop.wait_for(&id_of(&held), "confirmed");
            wait_until("it is being made", || {
                shop.get(&format!("/v1/fulfilments/{id}"))["status"] == "processing"
            });
            fail_run(&shop, &id, 1);
            id
        };
        let pages = || -> Vec<Value> {
            let all = chat.received().into_iter().filter(|got| got.service == Service::PagerDuty);
            all.map(|got| got.json()).collect()
        };
        let resolves = || pages().iter().filter(|page| page["event_action"] == "resolve").count();

        // A person resolves it.
        failed("P-1");
        wait_until("the pager rings", || chat.open_incidents().len() == 1);
        let case = wait_for_case(&shop, "WAKE", "open")["id"].as_str().unwrap().to_owned();
        shop.post(&format!("/v1/cases/{case}/acknowledge"), &json!({ "note": "looking" }));
        wait_until("it is announced", || {
            let events = shop.get("/v1/events?source=sekisho&type=case.acknowledged");
            events["items"].as_array().is_some_and(|items| items.len() == 1)
        });
        assert_eq!((chat.open_incidents().len(), resolves()), (1, 0), "it is still to be done");
        shop.post(&format!("/v1/cases/{case}/resolve"), &json!({ "how": "fixed" }));
        wait_until("the pager hears that it is over", || chat.open_incidents().is_empty());
        assert_eq!(pages()[0]["dedup_key"], pages()[1]["dedup_key"]);

        // It clears by itself.
        let id = failed("P-2");
        wait_until("the pager rings", || chat.open_incidents().len() == 1);
        shop.post(&format!("/v1/fulfilments/{id}/retry"), &json!({ "reason": "more memory" }));
        shop.post(&format!("/v1/fulfilments/{id}/result"), &json!({ "run": 2, "status": "done" }));
        wait_until("the pager hears that it is over", || chat.open_incidents().is_empty());
        shop.gateway.type_in(&["events", "replay", "--all", "--reason", "again"]).done();
        std::thread::sleep(std::time::Duration::from_secs(1));
        assert_eq!((pages().len(), resolves()), (4, 2), "each once");
    });
}
