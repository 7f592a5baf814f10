//! D7, D8, H2: money, keys and the audit log at the command line, beside a running server and without one. What somebody
//! changes behind our back in the database is found, and named.

use serde_json::{Value, json};

use crate::support::{Gateway, Place, Provider, each_store, wait_until};

/// Stripe says that an order was paid, with whatever `metadata` says beside it.
fn pay(gateway: &Gateway, order: &str, amount: i64, metadata: Value) {
    let mut labels = json!({ "order_id": order });
    labels.as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    let body = json!({
        "id": format!("evt_{order}"), "object": "event", "type": "payment_intent.succeeded",
        "created": 2_100_000_000, "livemode": false,
        "data": { "object": {
            "id": format!("pi_{order}"), "object": "payment_intent", "status": "succeeded", "amount": amount,
            "amount_received": amount, "currency": "jpy", "metadata": labels,
        } },
    });
    assert_eq!(gateway.send(&Provider::stripe().body(&body.to_string())).status, 204);
    wait_until("it is paid", || {
        let said = gateway.type_in(&["payments", "show", order, "--json"]);
        said.code == 0 && said.lines()[0]["status"] == "paid"
    });
}

/// Three payments: two sales and what fills a customer's balance.
fn with_payments(place: &Place) -> Gateway {
    let gateway = Gateway::open(place);
    pay(&gateway, "o_1", 1200, json!({ "tenant_id": "acme" }));
    pay(&gateway, "o_2", 500, json!({}));
    pay(&gateway, "o_3", 3000, json!({ "customer_id": "c_1", "purpose": "balance" }));
    gateway
}

fn stop(gateway: &mut Gateway) {
    assert!(gateway.server.terminate().unwrap().success());
}

fn status(gateway: &Gateway, key: &str) -> u16 {
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str())];
    sekisho_lab::http::request(gateway.address(), "GET", "/v1/events", &headers, b"").unwrap().status
}

/// The key alone, as a shell would take it.
fn make_key(gateway: &Gateway, name: &str) -> String {
    let said = gateway.type_in(&["keys", "create", "--scopes", "read", "--name", name]).done();
    assert!(said.stderr.contains("only now"), "{}", said.stderr);
    let key = said.stdout.strip_suffix('\n').unwrap();
    assert!(key.starts_with("sk_") && !key.contains(char::is_whitespace), "{key}");
    key.to_owned()
}

fn make_and_revoke(gateway: &mut Gateway, between: impl Fn(&mut Gateway), before: impl Fn(&mut Gateway)) {
    before(gateway);
    let key = make_key(gateway, "reader");
    gateway
        .type_in(&["keys", "create", "--scopes", "read", "--name", "reader"])
        .failed(1)
        .mentions(&["already"]);
    let made = &gateway.type_in(&["keys", "create", "--scopes", "read,write", "--json"]).done().lines()[0];
    assert_eq!(made["scopes"], json!(["read", "write"]));
    assert_eq!(made["name"], format!("key-{}", made["hint"].as_str().unwrap()));
    let said = gateway.type_in(&["keys"]).done().mentions(&["reader", &key[..9], "read,write"]);
    assert!(!said.all().contains(&key), "a list shows no key");
    between(gateway);
    assert_eq!((status(gateway, &key), status(gateway, made["key"].as_str().unwrap())), (200, 200));
    assert_eq!(status(gateway, "sk_0123456789"), 401);
    before(gateway);
    gateway.type_in(&["keys", "revoke", "reader"]).done().mentions(&["reader", "revoked"]);
    gateway.type_in(&["keys", "revoke", "reader"]).failed(1).mentions(&["no key is named reader"]);
    between(gateway);
    assert_eq!((status(gateway, &key), status(gateway, made["key"].as_str().unwrap())), (401, 200));
    let said = gateway.type_in(&["audit", "--action", "api_key.*"]).done();
    assert!(!said.all().contains(&key));
    said.mentions(&["api_key.created", "api_key.revoked", "cli:"]);
}

#[test]
fn h2_a_key_made_with_no_server_opens_the_api_until_it_is_revoked() {
    each_store(|place| {
        let mut gateway = Gateway::open(place);
        make_and_revoke(&mut gateway, |gateway| gateway.server.start_again().unwrap(), stop);
    });
}

#[test]
fn h2_a_key_made_beside_a_server_opens_the_api_until_it_is_revoked() {
    each_store(|place| make_and_revoke(&mut Gateway::open(place), |_| {}, |_| {}));
}

/// Announces an order, twice, and hears the same.
fn announce(gateway: &Gateway) -> String {
    let words = [
        "payments",
        "create",
        "--amount",
        "1200",
        "--currency",
        "JPY",
        "--reference",
        "o_1",
        "--tenant",
        "acme",
        "--customer",
        "c_1",
        "--metadata",
        "colour=blue",
    ];
    let keyed = [&words[..], &["--idempotency-key", "one", "--json"]].concat();
    let created = gateway.type_in(&keyed).done().lines().remove(0);
    assert_eq!((&created["status"], &created["amount"]), (&"unpaid".into(), &1200.into()));
    assert_eq!(gateway.type_in(&keyed).done().lines()[0], created, "once");
    gateway.type_in(&words).failed(1).mentions(&["o_1", "belongs to", created["id"].as_str().unwrap()]);
    gateway.type_in(&["tenants", "create", "acme", "--name", "Acme"]).done().mentions(&["acme"]);
    gateway.type_in(&["customers", "create", "c_1", "--tenant", "acme"]).done().mentions(&["c_1"]);
    let long = "x".repeat(201);
    gateway.type_in(&["tenants", "create", &long]).failed(2).mentions(&["id: ", "200 characters"]);
    created["id"].as_str().unwrap().to_owned()
}

/// What was announced is what events pay.
fn is_paid(gateway: &Gateway, id: &str) {
    pay(gateway, "o_1", 1200, json!({}));
    let show = |words: &[&str]| gateway.type_in(&[&["payments", "show"], words].concat());
    for called in [id, "o_1", "pi_o_1"] {
        let shown = &show(&[called, "--json"]).done().lines()[0];
        assert_eq!((&shown["id"], &shown["status"]), (&id.into(), &"paid".into()), "{called}");
        assert_eq!(shown["metadata"], json!({ "colour": "blue" }));
    }
    let page = show(&["o_1"]).done();
    page.mentions(&[
        "1200 jpy",
        "acme",
        "colour=blue",
        "pi_o_1",
        "payment.found",
        "payment.changed",
        "evt_o_1",
    ]);
    show(&["pi_o_1", "--live"]).failed(1).mentions(&["no payment is called pi_o_1", "--account"]);
    let cases: [(&[&str], usize); 9] = [
        (&[], 1),
        (&["--status", "paid"], 1),
        (&["--status", "unpaid"], 0),
        (&["--tenant", "acme"], 1),
        (&["--tenant", "other"], 0),
        (&["--customer", "c_1", "--test"], 1),
        (&["--live"], 0),
        (&["--attention"], 0),
        (&["--attention", "unlinked"], 0),
    ];
    for (words, expected) in cases {
        let found = gateway.type_in(&[&["payments", "list", "--json"], words].concat()).done().lines();
        assert_eq!(found.len(), expected, "{words:?}");
    }
    gateway.type_in(&["payments"]).done().mentions(&["1200 jpy", "paid", id]);
    assert_eq!(gateway.type_in(&["tenants", "--json"]).done().lines()[0]["name"], "Acme");
    assert_eq!(gateway.type_in(&["customers", "list", "--json"]).done().lines()[0]["tenant"], "acme");
    gateway.type_in(&["books", "check"]).done().mentions(&["checked 1 payment, 2 lines"]);
    gateway.type_in(&["audit", "verify"]).done();
}

#[test]
fn h2_a_payment_announced_with_no_server_is_the_one_that_events_pay() {
    each_store(|place| {
        let mut gateway = Gateway::open(place);
        stop(&mut gateway);
        let id = announce(&gateway);
        gateway.server.start_again().unwrap();
        is_paid(&gateway, &id);
    });
}

#[test]
fn h2_a_payment_announced_beside_a_server_is_the_one_that_events_pay() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        let id = announce(&gateway);
        is_paid(&gateway, &id);
    });
}

#[test]
fn h2_what_is_wrongly_called_ends_with_2_and_says_why() {
    let place = Place::sqlite();
    let gateway = Gateway::open(&place);
    let create = ["payments", "create", "--amount", "5", "--currency", "jpy"];
    let cases: [(&[&str], &str); 14] = [
        (&["payments", "create", "--amount", "-5", "--currency", "jpy"], "smallest unit"),
        (&["payments", "create", "--amount", "1.5", "--currency", "usd"], "smallest unit"),
        (&["payments", "create", "--amount", "5", "--currency", "yen"], "ISO 4217"),
        (&["payments", "create", "--amount", "5"], "--currency"),
        (&[&create[..], &["--metadata", "colour"]].concat(), "KEY=VALUE"),
        (&["payments", "list", "--status", "rich"], "partially_refunded"),
        (&["payments", "list", "--live", "--test"], "cannot be used with"),
        (&["payments", "show"], "<ID>"),
        (&["billing", "--status", "rich"], "past_due"),
        (&["balances"], "<CUSTOMER>"),
        (&["keys", "create"], "--scopes"),
        (&["keys", "create", "--scopes", "read,rule"], "operate"),
        (&["keys", "revoke"], "<NAME>"),
        (&["audit", "--since", "soon"], "30m, 2h, 3d"),
    ];
    for (words, expected) in cases {
        gateway.type_in(words).failed(2).mentions(&[expected]);
    }
    gateway.type_in(&["payments", "show", "pay_0"]).failed(1).mentions(&["payments list"]);
    gateway.type_in(&["billing", "acme"]).failed(1).mentions(&["acme", "billing list"]);
    for (words, nothing) in [
        (&["payments"][..], "no payments"),
        (&["billing"], "no billing yet"),
        (&["books"], "the books are empty"),
        (&["balances", "c_1"], "nothing was ever booked"),
        (&["tenants"], "no tenants"),
        (&["customers"], "no customers"),
    ] {
        gateway.type_in(words).done().mentions(&[nothing]);
    }
}

#[test]
fn d7_the_books_are_checked_and_a_changed_line_names_its_payment() {
    each_store(|place| {
        let gateway = with_payments(place);
        gateway.type_in(&["books"]).done().mentions(&[
            "sales",
            "1700 jpy",
            "provider/stripe/-/test",
            "4700 jpy",
        ]);
        gateway.type_in(&["balances", "c_1"]).done().mentions(&["3000 jpy", "test"]);
        assert_eq!(gateway.type_in(&["balances", "c_1", "--json"]).done().lines()[0]["balance"], 3000);
        let check = || gateway.type_in(&["books", "check"]);
        check().done().mentions(&["checked 3 payments, 6 lines and 3 accounts", "sum to zero"]);
        let named = |order: &str| {
            let shown = gateway.type_in(&["payments", "show", order, "--json"]).done().lines().remove(0);
            shown["id"].as_str().unwrap().to_owned()
        };
        let (sale, other) = (named("o_1"), named("o_2"));

        let change = |amount: i64| {
            place.sql(&format!(
                "UPDATE posting SET amount = {amount} WHERE account = 'sales' AND payment = '{sale}'"
            ))
        };
        change(-1100);
        let said = check().failed(1);
        assert!(!said.all().contains(&other), "{}", said.all());
        // In all, in the payment, and in its line.
        said.mentions(&[&sale, "all lines in jpy (test) sum to 100", "-1100", "-1200", "3 differences"]);
        let report = &gateway.type_in(&["books", "check", "--json"]).failed(1).lines()[0];
        assert_eq!((&report["payments"], &report["lines"]), (&3.into(), &6.into()));
        change(-1200);
        check().done();

        // Both sides at once keep the balance, and are found all the same.
        place.sql(&format!("UPDATE posting SET amount = amount * 2 WHERE payment = '{other}'"));
        let said = check().failed(1).mentions(&[&other, "2 differences"]);
        assert!(!said.all().contains("all lines"), "{}", said.all());
        place.sql(&format!("UPDATE posting SET amount = amount / 2 WHERE payment = '{other}'"));
        place.sql(&format!("UPDATE posting SET payment = 'pay_gone' WHERE payment = '{other}'"));
        check().failed(1).mentions(&[&other, "pay_gone: it has lines, but is not there"]);
        place.sql(&format!("UPDATE posting SET payment = '{other}' WHERE payment = 'pay_gone'"));

        place.sql("UPDATE posting SET amount = -amount WHERE account = 'customer//c_1'");
        check().failed(1).mentions(&["note: customer//c_1 (test) is below zero: -3000 jpy", &named("o_3")]);
    });
}

#[test]
fn d8_what_was_changed_removed_or_slipped_into_the_audit_log_is_found() {
    each_store(|place| {
        let mut gateway = with_payments(place);
        stop(&mut gateway);
        let verify = || gateway.type_in(&["audit", "verify"]);
        verify().done().mentions(&[
            "checked",
            "nothing was changed, removed or inserted",
            "what can't be seen",
        ]);
        let first = place.sql("SELECT min(number) FROM audit");
        let columns = "at, actor, role, action, target_kind, target_id, tenant, event, details, digest";

        place.sql(&format!("UPDATE audit SET details = '{{}}{{}}' || details WHERE number = {first}"));
        verify().failed(1).mentions(&["does not fit its entries", &first]);
        place.sql(&format!("UPDATE audit SET details = substr(details, 5) WHERE number = {first}"));
        verify().done();

        place.sql(&format!(
            "INSERT INTO audit ({columns}, chain, n) SELECT {columns}, chain, n FROM audit WHERE number = {first}"
        ));
        verify().failed(1).mentions(&["does not fit its entries", "1 thing is not as it was written"]);
        place.sql("DELETE FROM audit WHERE number = (SELECT max(number) FROM audit)");
        verify().done();

        place.sql(&format!(
            "INSERT INTO audit ({columns}, chain, n) SELECT {columns}, 999, 1 FROM audit WHERE number = {first}"
        ));
        verify().failed(1).mentions(&["have no link in the chain: they were inserted"]);
        place.sql("DELETE FROM audit WHERE chain = 999");
        verify().done();

        place.sql(&format!("DELETE FROM audit WHERE number = {first}"));
        let said = gateway.type_in(&["audit", "verify", "--json"]).failed(1);
        let report = &said.lines()[0];
        assert_eq!(report["faults"].as_array().unwrap().len(), 1, "{report}");
    });
}

#[test]
fn d8_an_export_holds_every_entry_and_what_is_needed_to_check_it() {
    each_store(|place| {
        let gateway = with_payments(place);
        let lines = gateway.type_in(&["audit", "export"]).done().lines();
        assert_eq!(lines.len().to_string(), place.sql("SELECT count(*) FROM audit"));
        let listed = gateway.type_in(&["audit", "list", "--json", "--limit", "0"]).done().lines();
        assert_eq!(lines.len(), listed.len());
        let places = lines.iter().map(|line| ["chain", "n", "id"].map(|name| line[name].as_i64().unwrap()));
        assert!(places.is_sorted(), "each chain from its beginning: {lines:?}");
        for line in &lines {
            assert!(line["chain"].is_number() && line["n"].is_number(), "{line}");
            for hash in ["digest", "previous", "hash"] {
                assert_eq!(line[hash].as_str().unwrap().len(), 64, "{line}");
            }
        }
        assert!(gateway.type_in(&["audit", "export", "--until", "1h"]).done().stdout.is_empty());
        assert_eq!(gateway.type_in(&["audit", "export", "--since", "1h"]).done().lines().len(), lines.len());
        let of_acme = gateway.type_in(&["audit", "--tenant", "acme", "--json"]).done().lines();
        assert!(!of_acme.is_empty() && of_acme.len() < lines.len());
        assert!(of_acme.iter().all(|entry| entry["tenant"] == "acme"));
        let words = ["audit", "--action", "payment.found", "--limit", "2", "--json"];
        assert_eq!(gateway.type_in(&words).done().lines().len(), 2);
        gateway.type_in(&["audit", "--actor", "nobody"]).done().mentions(&["no entries"]);
    });
}
