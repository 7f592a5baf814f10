//! What is no gap is not told as one; what is paid late is found; and a run needs no server.

use sekisho_lab::process::ServerOptions;
use sekisho_lab::providers::komoju;
use sekisho_lab::stripe::{self, Stripe};
use serde_json::json;

use super::{KEY, Shop, figures, sell};
use crate::support::{Gateway, Place, Provider, each_store, stripe_source, wait_until};

#[test]
fn e2_what_was_before_sekisho_listened_is_no_gap() {
    each_store(|place| {
        let stripe = Stripe::start().unwrap();
        let now = sekisho::now().seconds();
        stripe.set_clock(now - 30 * 60);
        sell(&stripe, 1);
        let before = stripe.take_unsent().len() as u64;
        let shop = Shop::open(place, &stripe, "[reconcile]\nevery = \"1s\"\ngrace = \"0s\"\n");
        wait_until("the first run", || !shop.standing()["last_good_at"].is_null());
        stripe.set_clock(sekisho::now().seconds() + 1);
        sell(&stripe, 2);
        shop.are_settled(1);
        assert!(shop.payments().contains_key("O-2"), "what came after is found: {:?}", shop.payments());
        assert_eq!(figures(&shop.reconcile(true))[2], before, "and the rest is for a person to import");
    });
}

#[test]
fn e2_events_that_wait_to_be_settled_make_no_difference() {
    let place = Place::postgres();
    let stripe = Stripe::start().unwrap();
    let api = format!("api_key = \"{}\"\napi_url = \"{}\"", stripe::KEY, stripe.url());
    let config = "[reconcile]\nevery = \"24h\"\ngrace = \"0s\"\n".to_owned() + &stripe_source(&api);
    // It receives, and settles nothing.
    let role = |options: ServerOptions| ServerOptions { role: Some("gateway".into()), ..options };
    let gateway = Gateway::started(&place.url, &config, &[], role).unwrap();
    sell(&stripe, 1);
    for event in stripe.take_unsent() {
        let letter = Provider::stripe().body(&event.to_string());
        assert_eq!(gateway.send(&letter).status, 204);
    }
    for dry_run in [true, false] {
        let words = ["reconcile", "--source", "stripe", "--json", "--dry-run"];
        let said = gateway.type_in(if dry_run { &words } else { &words[..4] }).done();
        let report = &said.lines()[0];
        assert_eq!(figures(report)[2..], [0, 0, 0], "all of it came: {report}");
    }
}

#[test]
fn e2_money_that_is_paid_weeks_after_its_payment_was_made_is_found_where_no_events_are_listed() {
    let place = Place::sqlite();
    let fake = komoju::start().unwrap();
    let made = sekisho::now().plus_ms(-30 * 86_400_000);
    fake.put(
        "payment",
        json!({
            "id": "kp_1", "resource": "payment", "status": "captured", "amount": 1_000, "tax": 100, "total": 1_100,
            "currency": "JPY", "external_order_num": "konbini", "created_at": made.to_string(), "refunds": [],
        }),
    );
    let config = format!(
        "[reconcile]\nevery = \"24h\"\n[[source]]\nname = \"komoju\"\nprovider = \"komoju\"\nsecrets = [\"komoju-secret\"]\n\
         livemode = false\napi_key = \"{}\"\napi_url = \"{}\"\n[[key]]\nname = \"ops\"\nsecret = \"{KEY}\"\nscopes = [\"operate\"]\n",
        komoju::KEY,
        fake.url()
    );
    let shop = Shop { gateway: Gateway::with(&place, &config) };
    let (status, report) = shop.ask("POST", "/v1/reconciliations", &json!({ "source": "komoju" }));
    assert_eq!((status, &report["differing"]), (200, &json!(1)), "{report}");
    wait_until("the payment", || shop.payments().get("konbini").is_some_and(|one| one["status"] == "paid"));
}

#[test]
fn e2_without_a_server_the_command_works_on_the_store_and_its_finds_are_processed_at_the_next_start() {
    let place = Place::sqlite();
    let stripe = Stripe::start().unwrap();
    let mut shop = Shop::open(&place, &stripe, "");
    sell(&stripe, 1);
    let all = stripe.take_unsent().len() as u64;
    assert!(shop.gateway.server.terminate().unwrap().success());
    let dry = ["reconcile", "--source", "stripe", "--dry-run"];
    shop.gateway.type_in(&dry).done().mentions(&["stripe", "MISSING"]);
    let report = shop.gateway.type_in(&[&dry[..], &["--json"]].concat()).done().lines()[0].clone();
    assert_eq!(figures(&report)[..4], [all, 0, all, 0], "{report}");
    assert_eq!(report["dry_run"], true);
    assert_eq!(place.sql("SELECT count(*) FROM event").trim(), "0", "nothing was taken in");
    assert_eq!(place.sql("SELECT count(*) FROM state WHERE kind = 'reconciliation'").trim(), "0");

    let said = shop.gateway.type_in(&["reconcile"]).done();
    said.mentions(&["no server runs here", "sekisho serve"]);
    assert_eq!(place.sql("SELECT count(*) FROM event WHERE source = 'stripe'").trim(), all.to_string());
    shop.gateway.type_in(&["doctor"]).mentions(&["last compared", "100 % complete"]);
    let again = Shop::open(&place, &stripe, "");
    again.are_settled(1);
    assert_eq!(again.told("source.gap_closed").len(), 1);
}

#[test]
fn e2_two_keys_that_may_be_of_one_account_are_pointed_out() {
    let place = Place::sqlite();
    let source = |name: &str, key: &str| {
        let url = "api_url = \"http://127.0.0.1:9\"";
        format!(
            "[[source]]\nname = \"{name}\"\nprovider = \"stripe\"\nsecrets = [\"env:STRIPE_SECRET\"]\napi_key = \"{key}\"\n{url}\n"
        )
    };
    let config = source("shop", "rk_live_1") + &source("club", "rk_live_2");
    let gateway = Gateway::with(&place, &config);
    gateway.type_in(&["doctor"]).mentions(&["shop and club", "reconcile = false in one of them"]);
    let same = source("shop", "rk_live_1") + &source("club", "rk_live_1");
    let refused = Gateway::try_with(&Place::sqlite(), &same, &[]).err().unwrap_or_default();
    assert!(refused.contains("have the same api_key at Stripe"), "{refused}");
}
