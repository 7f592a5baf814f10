//! H2, D1–D8: payments, billing and balances, as an app with a key writes and reads them.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::support::{Gateway, Place, Provider, Response, each_store, stripe_source, wait_until};

const READ: &str = "canary-read-key-0123456789";
const WRITE: &str = "canary-write-key-0123456789";
const ADMIN: &str = "canary-admin-key-0123456789";

fn gateway(place: &Place) -> Gateway {
    let key = |name: &str, scope: &str| {
        format!("[[key]]\nname = \"{name}\"\nsecret = \"env:{name}\"\nscopes = [\"{scope}\"]\n")
    };
    let keys = key("LOOKER", "read") + &key("SHOP", "write") + &key("DOER", "admin");
    let env = [("LOOKER", READ), ("SHOP", WRITE), ("DOER", ADMIN)];
    Gateway::with_env(place, &(stripe_source("") + &keys), &env)
}

/// An app, by the key it shows.
struct Client<'g> {
    gateway: &'g Gateway,
    key: String,
}

impl<'g> Client<'g> {
    fn new(gateway: &'g Gateway, key: &str) -> Self {
        Self { gateway, key: key.to_owned() }
    }

    /// With a key that the operator makes for one tenant.
    fn of_tenant(gateway: &'g Gateway, tenant: &str) -> Self {
        let order = json!({ "name": tenant, "scopes": ["write"], "tenant": tenant });
        let made = Client::new(gateway, ADMIN).create("/v1/keys", &order);
        Self::new(gateway, made["key"].as_str().unwrap())
    }

    fn ask(&self, method: &str, path: &str, more: &[(&str, &str)], body: &str) -> Response {
        let bearer = format!("Bearer {}", self.key);
        let headers = [&[("authorization", bearer.as_str())], more].concat();
        sekisho_lab::http::request(self.gateway.address(), method, path, &headers, body.as_bytes()).unwrap()
    }

    fn status(&self, path: &str) -> u16 {
        self.ask("GET", path, &[], "").status
    }

    fn get(&self, path: &str) -> Value {
        let answer = self.ask("GET", path, &[], "");
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        json_of(&answer)
    }

    fn items(&self, path: &str) -> Vec<Value> {
        self.get(path)["items"].as_array().unwrap().clone()
    }

    fn post(&self, path: &str, order: &Value) -> Response {
        self.ask("POST", path, &[], &order.to_string())
    }

    fn post_once(&self, once: &str, path: &str, order: &Value) -> Response {
        self.ask("POST", path, &[("idempotency-key", once)], &order.to_string())
    }

    fn create(&self, path: &str, order: &Value) -> Value {
        let answer = self.post(path, order);
        assert_eq!(answer.status, 201, "{path} {order}: {}", answer.text());
        json_of(&answer)
    }

    /// Insists that the order is refused, and that this field is named.
    fn refuses(&self, path: &str, order: &Value, status: u16, field: &str) {
        let answer = self.post(path, order);
        assert_eq!(answer.status, status, "{path} {order}: {}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert_eq!(json_of(&answer)["errors"][0]["field"], field, "{path} {order}: {}", answer.text());
    }
}

fn json_of(answer: &Response) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

/// What Stripe sends, as the scenarios of the core have it, but today: older events are refused.
fn fixture(name: &str) -> Value {
    static CREATED: OnceLock<i64> = OnceLock::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../core/src/settlement/fixtures/stripe");
    let text = std::fs::read_to_string(format!("{folder}/{name}.json")).unwrap();
    let mut event: Value = serde_json::from_str(&text).unwrap();
    event["created"] = (*CREATED.get_or_init(|| sekisho::now().ms() / 1_000)).into();
    event
}

fn send(gateway: &Gateway, event: &Value) {
    assert_eq!(gateway.send(&Provider::stripe().body(&event.to_string())).status, 204);
}

#[test]
fn h2_every_wrong_field_of_an_order_is_named() {
    each_store(|place| {
        let gateway = gateway(place);
        let shop = Client::new(&gateway, WRITE);
        let order = |field: &str, value: Value| {
            let mut order = json!({ "amount": 1200, "currency": "jpy" });
            order[field] = value;
            order
        };
        let payments = "/v1/payments";
        for (order, field) in [
            (json!({ "currency": "jpy" }), "amount"),
            (order("amount", json!(-1200)), "amount"),
            (order("amount", json!(1e30)), "amount"),
            (order("currency", json!("zzz")), "currency"),
            (order("currency", json!(null)), "currency"),
            (order("amuont", json!(1)), "amuont"),
            (order("metadata", json!({ "note": "x".repeat(501) })), "metadata.note"),
            (order("reference", json!("a\u{0}b")), "reference"),
            (order("description", json!("x".repeat(501))), "description"),
        ] {
            shop.refuses(payments, &order, 422, field);
        }
        let office = Client::of_tenant(&gateway, "office-1");
        office.refuses(payments, &order("tenant", json!("office-2")), 403, "tenant");
        assert_eq!(shop.items(payments), [] as [Value; 0], "nothing of it was kept");

        let large = order("description", json!("x".repeat(1 << 20)));
        assert_eq!(shop.post(payments, &large).status, 413);
        assert_eq!(shop.ask("POST", payments, &[], "{").status, 400);
        assert_eq!(Client::new(&gateway, READ).post(payments, &order("amount", json!(1))).status, 403);

        let nul = shop.ask("GET", "/v1/payments?reference=a%00b", &[], "");
        assert_eq!((nul.status, &json_of(&nul)["errors"][0]["field"]), (400, &json!("reference")));
        let odd = shop.ask("GET", "/v1/payments?colour=red", &[], "");
        assert_eq!((odd.status, &json_of(&odd)["errors"][0]["field"]), (400, &json!("colour")));
        for path in ["/v1/payments/a%00b", "/v1/balances/a%00b", "/v1/billing/a%00b", "/v1/nothing"] {
            assert_eq!(shop.status(path), 404, "{path}");
        }
        let wrong = shop.ask("PUT", payments, &[], "");
        assert_eq!((wrong.status, wrong.header("allow")), (405, Some("GET, POST")));
        // Letters that no database minds.
        let metadata = json!({ "a\u{0}": "b\u{0}\u{1f}", "名": "値 '\"\\" });
        let made = shop.create(payments, &order("metadata", metadata.clone()));
        let shown = shop.get(&format!("{payments}/{}", made["id"].as_str().unwrap()));
        assert_eq!(shown["metadata"], metadata);
    });
}

#[test]
fn h2_an_order_that_is_sent_twice_is_carried_out_once() {
    each_store(|place| {
        let gateway = gateway(place);
        let shop = Client::new(&gateway, WRITE);
        let order = json!({ "amount": 1200, "currency": "jpy", "reference": "ORD-1" });
        let first = shop.post_once("once-1", "/v1/payments", &order);
        assert_eq!((first.status, first.header("idempotent-replayed")), (201, None), "{}", first.text());
        let again = shop.post_once("once-1", "/v1/payments", &order);
        assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
        assert_eq!(json_of(&first), json_of(&again));
        let other = json!({ "amount": 1300, "currency": "jpy", "reference": "ORD-1" });
        assert_eq!(shop.post_once("once-1", "/v1/payments", &other).status, 409);
        // Another caller's key is another key; but the reference is taken.
        let doer = Client::new(&gateway, ADMIN);
        let taken = doer.post_once("once-1", "/v1/payments", &order);
        assert_eq!(taken.status, 409, "{}", taken.text());
        assert!(taken.text().contains(json_of(&first)["id"].as_str().unwrap()));

        let order = json!({ "amount": 500, "currency": "jpy" });
        let answers: Vec<_> = std::thread::scope(|scope| {
            let post = || json_of(&shop.post_once("once-2", "/v1/payments", &order));
            let all: Vec<_> = (0..8).map(|_| scope.spawn(post)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(
            answers.iter().all(|answer| answer["id"].is_string() && *answer == answers[0]),
            "{answers:?}"
        );
        assert_eq!(shop.items("/v1/payments").len(), 2);
        let created = shop.items("/v1/audit?action=payment.*&actor=SHOP");
        let targets: BTreeSet<_> = created.iter().map(|entry| entry["target"].to_string()).collect();
        assert_eq!(targets.len(), 2, "{created:?}");
    });
}

#[test]
fn h2_page_after_page_shows_every_payment_once() {
    each_store(|place| {
        let gateway = gateway(place);
        let shop = Client::new(&gateway, WRITE);
        let made: BTreeSet<_> = (0..120)
            .map(|n| {
                let tenant = if n % 3 == 0 { "office-1" } else { "office-2" };
                let order = json!({ "amount": n + 1, "currency": "jpy", "tenant": tenant });
                shop.create("/v1/payments", &order)["id"].as_str().unwrap().to_owned()
            })
            .collect();
        let walk = |query: &str| {
            let (mut ids, mut path) = (Vec::new(), format!("/v1/payments?{query}"));
            loop {
                let page = shop.get(&path);
                let items = page["items"].as_array().unwrap();
                ids.extend(items.iter().map(|one| one["id"].as_str().unwrap().to_owned()));
                let Some(next) = page["next"].as_str() else { return ids };
                path = format!("/v1/payments?{query}&before={next}");
            }
        };
        for limit in [1, 7, 50, 120, 1000] {
            let ids = walk(&format!("limit={limit}"));
            assert_eq!(ids.len(), 120, "limit {limit}");
            assert!(ids.is_sorted_by(|one, next| one > next), "the newest first");
            assert_eq!(ids.into_iter().collect::<BTreeSet<_>>(), made);
        }
        assert_eq!(walk("limit=7&tenant=office-1&status=unpaid").len(), 40);
        assert_eq!(walk("limit=7&status=paid").len(), 0);
    });
}

#[test]
fn h2_a_tenants_key_sees_nothing_of_another_and_a_revoked_key_nothing_at_all() {
    each_store(|place| {
        let gateway = gateway(place);
        let (one, two) = (Client::of_tenant(&gateway, "office-1"), Client::of_tenant(&gateway, "office-2"));
        one.create("/v1/customers", &json!({ "id": "ann", "name": "Ann" }));
        let order = json!({ "amount": 5, "currency": "jpy", "customer": "ann", "reference": "ORD-1" });
        let payment = one.create("/v1/payments", &order);
        let payment = format!("/v1/payments/{}", payment["id"].as_str().unwrap());
        for path in [&*payment, "/v1/customers/ann", "/v1/balances/ann"] {
            assert_eq!((one.status(path), two.status(path)), (200, 404), "{path}");
        }
        for path in ["/v1/payments", "/v1/payments?reference=ORD-1", "/v1/customers", "/v1/audit?limit=1000"]
        {
            assert!(two.items(path).iter().all(|item| item["tenant"] == "office-2"), "{path}");
        }
        assert_eq!(one.items("/v1/payments").len(), 1);
        for path in ["/v1/events", "/v1/dead-letters", "/v1/books", "/v1/tenants", "/v1/keys", "/v1/routes"] {
            assert_eq!(two.status(path), 403, "{path}");
        }

        let doer = Client::new(&gateway, ADMIN);
        let kept = place.sql("SELECT id, facts FROM state WHERE kind = 'api_key'");
        assert!(!kept.contains(&one.key) && !kept.contains(&two.key), "only hashes are kept");
        assert_eq!(doer.post("/v1/keys/revoke", &json!({ "key": "office-2" })).status, 200);
        assert_eq!(two.status("/v1/payments"), 401);
        assert_eq!(one.status("/v1/payments"), 200);
        let keys = doer.get("/v1/keys");
        assert!(!keys.to_string().contains(&one.key));
        let revoked: Vec<_> =
            keys["items"].as_array().unwrap().iter().map(|key| !key["revoked_at"].is_null()).collect();
        assert_eq!(revoked, [false, true]);
        gateway.search("the log", &gateway.server.log());
        assert!(!gateway.server.log().contains(&one.key), "a key was logged");
    });
}

#[test]
fn d2_what_the_app_announced_is_found_by_every_name_once_it_is_paid() {
    each_store(|place| {
        let gateway = gateway(place);
        let shop = Client::new(&gateway, WRITE);
        let order = json!({
            "amount": 1200, "currency": "jpy", "reference": "ORD-1001",
            "tenant": "office-1", "customer": "ann", "purpose": "top_up",
        });
        let id = shop.create("/v1/payments", &order)["id"].as_str().unwrap().to_owned();
        assert_eq!(shop.status("/v1/balances/ann"), 404, "nobody has heard of her money");
        // In an order nobody wishes for, and once more.
        for name in [
            "card_paid.05.charge.updated",
            "card_paid.03.payment_intent.succeeded",
            "card_paid.04.checkout.session.completed",
            "card_paid.01.payment_intent.created",
            "card_paid.02.charge.succeeded",
            "card_paid.03.payment_intent.succeeded",
        ] {
            send(&gateway, &fixture(name));
        }
        let path = format!("/v1/payments/{id}");
        wait_until("it is paid and linked", || {
            let payment = shop.get(&path);
            payment["status"] == "paid" && payment["references"]["sessions"][0].is_string()
        });
        wait_until("all is settled", || shop.items("/v1/events?status=received").is_empty());
        let payment = shop.get(&path);
        assert_eq!((&payment["amount_received"], &payment["livemode"]), (&json!(1200), &json!(false)));
        let mut references = vec![id.clone(), "ORD-1001".to_owned()];
        for kind in ["payment_intents", "charges", "sessions"] {
            references.push(payment["references"][kind][0].as_str().unwrap().to_owned());
        }
        for reference in references {
            let found = shop.items(&format!("/v1/payments?reference={reference}"));
            assert_eq!(found, std::slice::from_ref(&payment), "{reference}");
        }
        assert_eq!(shop.items("/v1/payments").len(), 1, "what was merged is not listed");
        let intent = payment["references"]["payment_intents"][0].as_str().unwrap();
        let elsewhere = shop.items(&format!("/v1/payments?reference={intent}&account=acct_1"));
        assert_eq!(elsewhere, [] as [Value; 0], "another account's ids are other ids");
        assert_eq!(shop.items("/v1/payments?status=paid&livemode=false&customer=ann").len(), 1);

        let event = shop.get("/v1/events/evt_testD0003FAKE");
        assert_eq!(event["about"], json!({ "payment": id, "billing": null, "tenant": "office-1" }));
        let balance = shop.get("/v1/balances/ann");
        assert_eq!(
            (&balance["tenant"], shop.status("/v1/balances/ann?tenant=office-2")),
            (&json!("office-1"), 404)
        );
        assert_eq!(balance["balances"], json!([{ "currency": "jpy", "livemode": false, "balance": 1200 }]));
        let sum: i64 =
            balance["entries"].as_array().unwrap().iter().map(|one| one["amount"].as_i64().unwrap()).sum();
        assert_eq!(sum, 1200, "{balance}");
        let books = shop.get("/v1/books");
        assert_eq!(books["balanced"], true, "{books}");
        let audit = shop.items(&format!("/v1/audit?target={id}&action=payment.paid"));
        assert_eq!((audit.len(), &audit[0]["tenant"]), (1, &json!("office-1")));
        // An unknown customer in the directory has nothing, and that can be said.
        shop.create("/v1/customers", &json!({ "id": "bob" }));
        assert_eq!(shop.get("/v1/balances/bob")["balances"], json!([]));
    });
}

#[test]
fn d3_a_tenants_billing_is_found_by_the_tenant() {
    each_store(|place| {
        let gateway = gateway(place);
        let shop = Client::new(&gateway, READ);
        assert_eq!(shop.status("/v1/billing/office-1"), 404);
        let mut created = fixture("subscription.02.customer.subscription.created");
        created["data"]["object"]["metadata"] = json!({ "tenant_id": "office-1" });
        send(&gateway, &created);
        wait_until("the subscription is known", || shop.status("/v1/billing/office-1") == 200);
        send(&gateway, &fixture("subscription.07.invoice.paid"));
        wait_until("it is paid", || shop.get("/v1/billing/office-1")["paid_invoices"] == 1);
        let billing = shop.get("/v1/billing/office-1");
        assert_eq!((&billing["tenant"], &billing["livemode"]), (&json!("office-1"), &json!(false)));
        assert_eq!(shop.get("/v1/billing/office-1?livemode=false"), billing);
        assert_eq!(shop.status("/v1/billing/office-1?livemode=true"), 404);
        assert_eq!(shop.items("/v1/billing?tenant=office-1").len(), 1);
        assert_eq!(shop.items("/v1/billing?livemode=true").len(), 0);
        assert_eq!(Client::of_tenant(&gateway, "office-1").get("/v1/billing/office-1")["id"], billing["id"]);
        let other = Client::of_tenant(&gateway, "office-2");
        assert_eq!(other.status("/v1/billing/office-1"), 404);
        assert_eq!(other.items("/v1/billing"), [] as [Value; 0]);
    });
}
