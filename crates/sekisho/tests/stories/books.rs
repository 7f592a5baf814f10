//! D: what was paid. Events come in as they come; the app, the operator and the accountant read the same books.

use std::time::Duration;

use sekisho_core::Time;
use sekisho_lab::app::{Behaviour, DemoApp};
use sekisho_lab::http;
use sekisho_lab::process::ServerOptions;
use sekisho_lab::stripe::{self, Stripe};
use serde_json::{Value, json};

use crate::delivery::{came_to, route};
use crate::support::{Gateway, Letter, Place, Provider, each_store, stripe_source, wait_until};

const KEY: &str = "accountants-key-0123456789";

/// A shop with Sekisho behind it: the provider's API, the app that hears of settled facts, and a key to ask with.
struct Office {
    gateway: Gateway,
    app: DemoApp,
    stripe: Stripe,
}

impl Office {
    fn open(place: &Place) -> Self {
        let (app, stripe) = (DemoApp::start(Behaviour::Ok).unwrap(), Stripe::start().unwrap());
        let api = format!("api_key = \"{}\"\napi_url = \"{}\"", stripe::KEY, stripe.url());
        let key =
            format!("[[key]]\nname = \"accountant\"\nsecret = \"{KEY}\"\nscopes = [\"read\", \"write\"]\n");
        let config = stripe_source(&api) + &key + &route("settled", &app, "send = \"settled\"");
        Self { gateway: Gateway::with(place, &config), app, stripe }
    }

    /// Stripe tells of an object, `days` after the order.
    fn hears(&self, id: &str, kind: &str, days: i64, object: Value) -> Letter {
        let body = json!({
            "id": id,
            "object": "event",
            "type": kind,
            "created": ORDERED_AT.seconds() + days * 86_400,
            "livemode": false,
            "data": { "object": object },
        });
        let letter = Provider::stripe().body(&body.to_string());
        assert_eq!(self.gateway.send(&letter).status, 204);
        letter
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let bearer = format!("Bearer {KEY}");
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let answer = http::request(self.gateway.address(), method, path, &headers, &body).unwrap();
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask("GET", path, &Value::Null);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// The one payment of an order, once it is `status`.
    fn payment(&self, reference: &str, status: &str) -> Value {
        let mut found = Value::Null;
        wait_until(&format!("{reference} is {status}"), || {
            let page = self.get(&format!("/v1/payments?reference={reference}"));
            let items = page["items"].as_array().unwrap();
            assert!(items.len() <= 1, "one order is one payment: {page}");
            found = items.first().cloned().unwrap_or_default();
            found["status"] == status
        });
        found
    }

    /// What the app was told, in alphabetical order.
    fn told(&self) -> Vec<String> {
        let heard = came_to(&self.app, "settled").into_iter();
        let kind =
            |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap()["type"].as_str().unwrap().to_owned();
        let mut told: Vec<_> = heard.map(|one| kind(&one.body)).collect();
        told.sort();
        told
    }

    fn is_told(&self, expected: &[&str]) {
        wait_until(&format!("the app hears {expected:?}, not {:?}", self.told()), || {
            self.told().len() >= expected.len()
        });
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(self.told(), expected);
    }
}

/// Far ahead, so that no event is ever older than what is kept.
const ORDERED_AT: Time = Time::from_seconds(2_100_000_000);

fn intent(status: &str, received: i64) -> Value {
    let slip = (status == "requires_action").then(|| json!({ "type": "konbini_display_details" }));
    json!({
        "object": "payment_intent", "id": "pi_7", "amount": 3980, "amount_received": received, "currency": "jpy",
        "status": status, "latest_charge": if received > 0 { Some("py_7") } else { None },
        "metadata": { "order_id": "ORD-7" }, "livemode": false, "next_action": slip,
    })
}

fn session(payment_status: &str) -> Value {
    json!({
        "object": "checkout.session", "id": "cs_7", "payment_intent": "pi_7", "client_reference_id": "ORD-7",
        "mode": "payment", "status": "complete", "payment_status": payment_status, "amount_total": 3980, "currency": "jpy",
    })
}

fn charge(transaction: Option<&str>, refunded: i64) -> Value {
    json!({
        "object": "charge", "id": "py_7", "payment_intent": "pi_7", "amount": 3980, "amount_captured": 3980,
        "amount_refunded": refunded, "captured": true, "paid": true, "status": "succeeded", "currency": "jpy",
        "balance_transaction": transaction,
    })
}

fn refund(status: &str) -> Value {
    json!({
        "object": "refund", "id": "re_7", "charge": "py_7", "payment_intent": "pi_7", "amount": 980, "currency": "jpy",
        "status": status, "reason": "requested_by_customer",
    })
}

fn dispute(status: &str, moved: &[i64]) -> Value {
    let fee = |amount: i64| if amount < 0 { 1300 } else { 0 };
    let transactions: Vec<_> = moved
        .iter()
        .enumerate()
        .map(|(n, amount)| json!({ "id": format!("txn_d{n}"), "amount": amount, "fee": fee(*amount), "currency": "jpy" }))
        .collect();
    json!({
        "object": "dispute", "id": "du_7", "charge": "py_7", "payment_intent": "pi_7", "amount": 3000, "currency": "jpy",
        "status": status, "reason": "fraudulent", "balance_transactions": transactions,
    })
}

#[test]
fn d2_the_story_of_one_konbini_order_as_an_accountant_reads_it() {
    each_store(|place| {
        let office = Office::open(place);
        office.stripe.put(json!({
            "object": "balance_transaction", "id": "txn_7", "amount": 3980, "fee": 143, "net": 3837, "currency": "jpy",
            "source": "py_7",
        }));

        // Monday. The shop writes down what it expects, and sends its customer to the konbini.
        let order = json!({ "amount": 3980, "currency": "jpy", "reference": "ORD-7", "customer": "tanaka", "tenant": "ginza" });
        let (status, created) = office.ask("POST", "/v1/payments", &order);
        assert_eq!((status, &created["status"]), (201, &"unpaid".into()), "{created}");
        office.hears("evt_1", "checkout.session.completed", 0, session("unpaid"));
        office.hears("evt_2", "payment_intent.requires_action", 0, intent("requires_action", 0));
        let ordered = office.payment("ORD-7", "processing");
        assert_eq!(ordered["id"], created["id"], "the event found the payment that the shop had announced");
        assert_eq!(ordered["amount_received"], 0, "a completed session is not yet money");
        office.is_told(&["payment.processing"]);

        // Wednesday. The customer paid. Stripe tells it in the wrong order, and twice.
        let paid = office.hears("evt_5", "checkout.session.async_payment_succeeded", 2, session("paid"));
        assert_eq!(
            office.payment("ORD-7", "processing")["amount_received"],
            0,
            "nor is a session that calls itself paid"
        );
        let updated = office.hears("evt_6", "charge.updated", 2, charge(Some("txn_7"), 0));
        office.hears("evt_4", "payment_intent.succeeded", 2, intent("succeeded", 3980));
        office.hears("evt_3", "charge.succeeded", 2, charge(None, 0));
        for again in [&paid, &updated] {
            assert_eq!(office.gateway.send(again).status, 204);
        }
        office.payment("ORD-7", "paid");
        wait_until("the fee was read", || office.payment("ORD-7", "paid")["fee"] == 143);
        let settled = office.payment("ORD-7", "paid");
        assert_eq!((&settled["amount_received"], &settled["net"]), (&3980.into(), &3837.into()));
        office.is_told(&["payment.fee_known", "payment.paid", "payment.processing"]);

        // Friday. A part is refunded; three events say so.
        office.hears("evt_9", "refund.updated", 4, refund("succeeded"));
        office.hears("evt_8", "charge.refunded", 4, charge(Some("txn_7"), 980));
        office.hears("evt_7", "refund.created", 4, refund("pending"));
        let refunded = office.payment("ORD-7", "partially_refunded");
        assert_eq!((&refunded["amount_refunded"], &refunded["fee"]), (&980.into(), &143.into()));

        // A month later the customer's bank asks for the rest, the shop defends itself, and wins.
        office.hears("evt_10", "charge.dispute.created", 34, dispute("needs_response", &[]));
        office.hears("evt_11", "charge.dispute.funds_withdrawn", 34, dispute("needs_response", &[-3000]));
        wait_until("it is disputed", || office.payment("ORD-7", "partially_refunded")["net_of_dispute"] == 0);
        office.hears("evt_13", "charge.dispute.funds_reinstated", 60, dispute("won", &[-3000, 3000]));
        office.hears("evt_12", "charge.dispute.closed", 60, dispute("won", &[-3000]));
        wait_until("it is won", || office.payment("ORD-7", "partially_refunded")["net_of_dispute"] == 3000);
        let end = office.payment("pi_7", "partially_refunded");
        assert_eq!(
            json!([
                end["disputed"],
                end["dispute_status"],
                end["dispute_fee"],
                end["customer"],
                end["tenant"]
            ]),
            json!([true, "won", 1300, "tanaka", "ginza"])
        );
        office.is_told(&[
            "payment.dispute_won",
            "payment.disputed",
            "payment.fee_known",
            "payment.paid",
            "payment.partially_refunded",
            "payment.processing",
        ]);

        // The books are even, and say the same as the facts.
        let sums = office.get("/v1/books");
        let account = |name: &str| {
            let accounts = sums["accounts"].as_array().unwrap();
            accounts.iter().find(|one| one["account"] == name).map_or(0, |one| one["sum"].as_i64().unwrap())
        };
        assert_eq!(account("sales"), -3000, "{sums}");
        assert_eq!((account("fees"), account("dispute_fees"), account("disputes")), (143, 1300, 0), "{sums}");
        assert_eq!(account("provider/stripe/-/test"), 3000 - 143 - 1300, "{sums}");
        office.gateway.type_in(&["books", "check"]).done();
        office.gateway.type_in(&["audit", "verify"]).done();
    });
}

#[test]
fn d7_a_top_up_is_credited_once_and_taken_back_with_its_refund() {
    each_store(|place| {
        let office = Office::open(place);
        let order = json!({
            "amount": 3980, "currency": "jpy", "reference": "ORD-7", "customer": "tanaka", "purpose": "balance",
        });
        assert_eq!(office.ask("POST", "/v1/payments", &order).0, 201);
        office.hears("evt_1", "payment_intent.succeeded", 0, intent("succeeded", 3980));
        office.hears("evt_2", "charge.succeeded", 0, charge(None, 0));
        office.hears("evt_3", "checkout.session.completed", 0, session("paid"));
        let balance = || {
            let (status, answer) = office.ask("GET", "/v1/balances/tanaka", &Value::Null);
            if status == 200 { answer["balances"][0]["balance"].as_i64().unwrap_or(0) } else { 0 }
        };
        wait_until("it is credited", || balance() == 3980);
        office.hears("evt_4", "refund.created", 1, refund("succeeded"));
        office.hears("evt_5", "charge.refunded", 1, charge(None, 980));
        wait_until("it is taken back", || balance() == 3000);
        office.hears("evt_6", "refund.failed", 9, refund("failed"));
        wait_until("it is given again", || balance() == 3980);
        office.is_told(&[
            "balance.credited",
            "balance.credited",
            "balance.debited",
            "case.raised",
            "payment.paid",
            "payment.partially_refunded",
            "payment.refund_failed",
        ]);
        let listed = office.get("/v1/payments?attention=refund_failed");
        assert_eq!(
            listed["items"].as_array().unwrap().len(),
            1,
            "a failed refund is put before a person: {listed}"
        );
        office.gateway.type_in(&["books", "check"]).done();
    });
}

#[test]
fn d1_money_that_nobody_asked_for_is_listed_and_finds_its_order_later() {
    each_store(|place| {
        let office = Office::open(place);
        let mut stray = charge(None, 0);
        stray["payment_intent"] = Value::Null;
        office.hears("evt_1", "charge.succeeded", 0, stray);
        let unlinked = || office.get("/v1/payments?attention=unlinked")["items"].clone();
        wait_until("it is listed", || unlinked().as_array().unwrap().len() == 1);
        let found = unlinked()[0]["id"].clone();
        // The session that links it comes late; by then the shop has written down its order, too.
        let order = json!({ "amount": 3980, "currency": "jpy", "reference": "ORD-7" });
        let (_, ours) = office.ask("POST", "/v1/payments", &order);
        assert_ne!(ours["id"], found);
        office.hears("evt_2", "payment_intent.succeeded", 0, intent("succeeded", 3980));
        let paid = office.payment("ORD-7", "paid");
        assert_eq!(
            (&paid["id"], &paid["amount_received"]),
            (&ours["id"], &3980.into()),
            "counted once: {paid}"
        );
        assert!(unlinked().as_array().unwrap().is_empty());
        let followed = office.get(&format!("/v1/payments/{}", found.as_str().unwrap()));
        assert_eq!(followed["id"], ours["id"], "the old id leads to where it went");
        office.is_told(&["payment.linked", "payment.paid"]);
        office.gateway.type_in(&["books", "check"]).done();
    });
}

/// Every table that the settling of one event writes to.
const WRITTEN: [&str; 8] = ["state", "name", "posting", "audit", "link", "dedupe", "job", "outcome"];

/// What is remembered, without what nodes count by themselves.
const STATE: &str = "state WHERE kind NOT IN ('meter', 'alert')";

#[test]
fn d4_a_failure_at_any_write_leaves_nothing_behind_and_is_made_good() {
    each_store(|place| {
        let office = Office::open(place);
        let count = |table: &str| place.sql(&format!("SELECT count(*) FROM {table}"));
        for (n, table) in WRITTEN.into_iter().enumerate() {
            let kept = [STATE, "name", "posting", "audit", "link"].map(count);
            let made = || count("event WHERE source = 'sekisho' AND type NOT LIKE 'alert.%'");
            let announced = made();
            break_writes(place, table);
            // Where the queue itself can't be written, the event is not even taken in: Stripe will send it again.
            let mut event = intent("succeeded", 3980);
            event["id"] = format!("pi_{n}").into();
            event["latest_charge"] = Value::Null;
            event["metadata"] = json!({ "order_id": format!("order-{n}") });
            let body = json!({
                "id": format!("evt_{n}"), "object": "event", "type": "payment_intent.succeeded", "livemode": false,
                "created": ORDERED_AT.seconds(), "data": { "object": event },
            });
            let letter = Provider::stripe().body(&body.to_string());
            let taken = office.gateway.send(&letter).status == 204;
            assert_eq!(taken, !["dedupe", "job"].contains(&table), "{table}");
            std::thread::sleep(Duration::from_millis(400));
            if table != "link" && table != "audit" {
                // The one thing that may be written is that it failed.
                assert_eq!(
                    [STATE, "name", "posting"].map(count),
                    [&*kept[0], &*kept[1], &*kept[2]],
                    "{table}"
                );
            } else {
                assert_eq!([STATE, "name", "posting", "audit", "link"].map(count), kept, "{table}");
            }
            assert_eq!(made(), announced, "{table}");

            mend_writes(place, table);
            office.gateway.send_until_acknowledged(&letter);
            office.gateway.type_in(&["dead", "retry", "--all", "--yes"]);
            wait_until(&format!("what {table} had held up"), || {
                office.gateway.type_in(&["dead", "retry", "--all", "--yes"]);
                office.get(&format!("/v1/payments?reference=order-{n}"))["items"][0]["status"] == "paid"
            });
        }
        wait_until("each was told once", || came_to(&office.app, "settled").len() == WRITTEN.len());
        office.gateway.type_in(&["books", "check"]).done();
        office.gateway.type_in(&["audit", "verify"]).done();
    });
}

/// From now on nobody can add a row to this table.
fn break_writes(place: &Place, table: &str) {
    if place.is_sqlite() {
        // The first keys wait there to be merged.
        let table = if table == "dedupe" { "dedupe_fresh_0" } else { table };
        let refuse = format!(
            "CREATE TRIGGER broken BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'broken'); END"
        );
        place.sql(&refuse);
        return;
    }
    place.sql(
        "CREATE OR REPLACE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE EXCEPTION 'broken'; END $$",
    );
    place.sql(&format!(
        "CREATE TRIGGER broken BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION broken()"
    ));
}

fn mend_writes(place: &Place, table: &str) {
    let of_table = if place.is_sqlite() { String::new() } else { format!(" ON {table}") };
    place.sql(&format!("DROP TRIGGER broken{of_table}"));
}

#[test]
fn d1_live_and_test_are_never_mixed() {
    each_store(|place| {
        let office = Office::open(place);
        let order = json!({ "amount": 3980, "currency": "jpy", "reference": "ORD-7", "livemode": true });
        assert_eq!(office.ask("POST", "/v1/payments", &order).0, 201);
        office.hears("evt_1", "payment_intent.succeeded", 0, intent("succeeded", 3980));
        let of = |livemode: bool| office.get(&format!("/v1/payments?livemode={livemode}"))["items"].clone();
        wait_until("the test money is there", || of(false).as_array().unwrap().len() == 1);
        assert_eq!(of(false)[0]["status"], "paid");
        assert_eq!((of(true).as_array().unwrap().len(), &of(true)[0]["status"]), (1, &"unpaid".into()));
    });
}

#[test]
fn d3_a_tenants_subscription_from_trial_to_the_end() {
    each_store(|place| {
        let office = Office::open(place);
        let day = |n: i64| ORDERED_AT.seconds() + n * 86_400;
        let subscription = |status: &str, start: i64, end: i64| {
            json!({
                "object": "subscription", "id": "sub_1", "customer": "cus_1", "status": status, "currency": "jpy",
                "metadata": { "tenant_id": "ginza" }, "trial_end": day(14),
                "items": { "data": [{ "current_period_start": day(start), "current_period_end": day(end) }] },
            })
        };
        let invoice = |id: &str, status: &str, paid: i64, end: i64| {
            json!({
                "object": "invoice", "id": id, "customer": "cus_1", "status": status, "currency": "jpy",
                "amount_due": 1980, "amount_paid": paid, "attempted": true,
                "parent": { "type": "subscription_details", "subscription_details": { "subscription": "sub_1" } },
                "lines": { "data": [{ "period": { "start": day(end - 30), "end": day(end) },
                    "parent": { "type": "subscription_item_details", "subscription_item_details": { "subscription": "sub_1" } } }] },
            })
        };
        let billing = |status: &str| {
            let mut found = Value::Null;
            wait_until(&format!("ginza is {status}"), || {
                found = office.ask("GET", "/v1/billing/ginza", &Value::Null).1;
                found["status"] == status
            });
            found
        };
        office.hears("evt_1", "customer.subscription.created", 0, subscription("trialing", 0, 14));
        billing("trialing");
        // The first payment ends the trial, whichever event says so first.
        office.hears("evt_3", "invoice.paid", 14, invoice("in_1", "paid", 1980, 44));
        office.hears("evt_4", "invoice.payment_succeeded", 14, invoice("in_1", "paid", 1980, 44));
        let active = billing("active");
        assert_eq!(
            (&active["paid_invoices"], &active["amount_paid_total"]),
            (&1.into(), &1980.into()),
            "{active}"
        );
        office.hears("evt_2", "customer.subscription.updated", 14, subscription("active", 14, 44));
        office.hears("evt_5", "invoice.payment_failed", 44, invoice("in_2", "open", 0, 74));
        billing("past_due");
        office.hears("evt_6", "invoice.paid", 46, invoice("in_2", "paid", 1980, 74));
        billing("active");
        let mut ended = subscription("canceled", 44, 74);
        ended["ended_at"] = day(74).into();
        office.hears("evt_7", "customer.subscription.deleted", 74, ended);
        let over = billing("cancelled");
        assert_eq!((&over["access"], &over["paid_invoices"]), (&false.into(), &2.into()), "{over}");
        office.is_told(&[
            "billing.active",
            "billing.active",
            "billing.cancelled",
            "billing.past_due",
            "billing.payment_succeeded",
            "billing.payment_succeeded",
            "billing.trialing",
        ]);
    });
}

/// A charge whose entry in Stripe's books is not in its event.
fn charge_with_entry(n: usize) -> Value {
    json!({
        "object": "charge", "id": format!("py_{n}"), "payment_intent": format!("pi_{n}"), "amount": 100, "currency": "jpy",
        "status": "succeeded", "paid": true, "captured": true, "amount_captured": 100,
        "balance_transaction": format!("txn_{n}"), "livemode": false,
    })
}

fn entry_of(n: usize) -> Value {
    json!({
        "object": "balance_transaction", "id": format!("txn_{n}"), "amount": 100, "fee": 4, "net": 96,
        "currency": "jpy", "source": format!("py_{n}"),
    })
}

fn charged(n: usize) -> String {
    json!({
        "id": format!("evt_{n}"), "object": "event", "type": "charge.succeeded", "created": ORDERED_AT.seconds(),
        "livemode": false, "data": { "object": charge_with_entry(n) },
    })
    .to_string()
}

fn fees_known(place: &Place) -> usize {
    let known = "SELECT count(*) FROM event WHERE source = 'sekisho' AND type = 'payment.fee_known'";
    place.sql(known).parse().unwrap()
}

#[test]
fn e1_the_fee_of_every_payment_is_asked_for_once_though_only_so_often_a_second() {
    each_store(|place| {
        let stripe = Stripe::start().unwrap();
        let api = format!("api_key = \"{}\"\napi_url = \"{}\"", stripe::KEY, stripe.url());
        let many = 60;
        // All of them wait when the work begins.
        let receiver = Gateway::started(&place.url, &stripe_source(&api), &[], |options| ServerOptions {
            role: Some("gateway".into()),
            ..options
        });
        let mut receiver = receiver.unwrap();
        for n in 0..many {
            stripe.put(entry_of(n));
            assert_eq!(receiver.send(&Provider::stripe().body(&charged(n))).status, 204);
        }
        receiver.server.terminate().unwrap();
        let _gateway = Gateway::with(place, &stripe_source(&api));
        wait_until("every fee is known", || fees_known(place) == many);
        let asked: Vec<_> = stripe.calls().into_iter().map(|call| call.path).collect();
        assert_eq!(asked.len(), many, "one call for each");
        assert_eq!(asked.iter().collect::<std::collections::BTreeSet<_>>().len(), many);
        // 20 at once, then 20 a second: the last can't have been asked for sooner than two seconds after the start.
        let took: i64 = place
            .sql("SELECT (SELECT max(at) FROM attempt) - (SELECT max(joined_at) FROM node)")
            .parse()
            .unwrap();
        assert!(took >= 2_000, "60 calls within {took} ms");
    });
}

#[test]
fn e1_a_key_that_is_refused_keeps_no_other_from_being_asked_and_its_work_waits() {
    each_store(|place| {
        let settings = |key: &str| stripe::Settings { key: key.into(), ..stripe::Settings::default() };
        let (first, second) =
            (Stripe::start_with(settings("sk_test_other_1")).unwrap(), Stripe::start().unwrap());
        let source = |name: &str, stripe: &Stripe| {
            format!(
                "[[source]]\nname = \"{name}\"\nprovider = \"stripe\"\nsecrets = [\"env:STRIPE_SECRET\"]\n\
                 api_key = \"{}\"\napi_url = \"{}\"\n",
                stripe::KEY,
                stripe.url()
            )
        };
        // The first account takes another key than the one that is configured.
        let gateway = Gateway::with(place, &(source("first", &first) + &source("second", &second)));
        let send = |n: usize| {
            let letter = Provider::stripe().to("/webhooks/second").body(&charged(n));
            assert_eq!(gateway.send(&letter).status, 204);
        };
        second.put(entry_of(0));
        send(0);
        wait_until("the second account was asked", || fees_known(place) == 1);
        assert_eq!(first.calls().len(), 1, "the first refused");
        for n in 1..10 {
            second.put(entry_of(n));
            send(n);
        }
        wait_until("all of the second account", || fees_known(place) == 10);
        // Nobody but the first account can know this one.
        send(10);
        let waits = "SELECT count(*) FROM job WHERE lane = 'fetch:stripe' AND owner IS NULL AND attempt = 1";
        wait_until("it waits for the key", || place.sql(waits) == "1");
        assert_eq!(first.calls().len(), 1, "a key that is refused is left alone");
        assert_eq!(place.sql("SELECT count(*) FROM dead"), "0");
        let alerts = "SELECT count(*) FROM event WHERE type = 'source.key_refused'";
        assert_eq!(place.sql(alerts), "1", "operators hear of it once");
    });
}
