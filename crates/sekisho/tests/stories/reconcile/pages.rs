//! H1, E2: the page that shows how complete each source is, in a real browser.

use sekisho_lab::browser::Look;
use sekisho_lab::stripe::{self, Stripe};
use serde_json::json;

use super::{KEY, Shop, figures, sell};
use crate::support::{Gateway, Person, Place, stripe_source, wait_until};

/// A shop with days of sales, some of which never came, and two differences.
fn open(place: &Place, stripe: &Stripe) -> Shop {
    let api = format!("api_key = \"{}\"\napi_url = \"{}\"", stripe::KEY, stripe.url());
    let other = "[[source]]\nname = \"github\"\nprovider = \"github\"\nsecrets = [\"gh-secret\"]\n";
    let key = format!("[[key]]\nname = \"ops\"\nsecret = \"{KEY}\"\nscopes = [\"operate\"]\n");
    let settings = "[reconcile]\nevery = \"24h\"\ngrace = \"0s\"\n";
    let config = [settings, &stripe_source(&api), other, &key].concat();
    let shop = Shop { gateway: Gateway::with(place, &config) };
    let now = sekisho::now().seconds();
    for day in (1..=4).rev() {
        stripe.set_clock(now - day * 86_400);
        sell(stripe, day as usize);
    }
    for event in stripe.take_unsent().iter().skip(5) {
        shop.hears(event);
    }
    stripe.set_clock(now - 3_600);
    let denied = stripe.sell(5_000, "jpy", json!({ "order_id": "O-denied" }));
    stripe.take_unsent().iter().for_each(|event| shop.hears(event));
    sell(stripe, 9);
    for event in stripe.take_unsent() {
        stripe.forget(event["id"].as_str().unwrap());
    }
    shop.reconcile(false);
    wait_until("all are paid", || {
        let payments = shop.payments();
        payments.len() == 6 && payments.values().all(|one| one["status"] == "paid")
    });
    let mut intent = stripe.object(&denied.payment_intent).unwrap();
    intent["status"] = "canceled".into();
    intent["amount_received"] = 0.into();
    stripe.put(intent);
    let report = shop.reconcile(false);
    assert_eq!(figures(&report)[4], 1, "{report}");
    shop
}

#[test]
fn h1_the_reconciliation_page_fits_a_phone_and_a_desk_in_both_languages() {
    let place = Place::sqlite();
    let stripe = Stripe::start().unwrap();
    let shop = open(&place, &stripe);
    let looks = [
        ("desk-en", Look::desk("en")),
        ("desk-ja", Look::desk("ja")),
        ("phone-en", Look::phone("en")),
        ("phone-ja", Look::phone("ja")),
    ];
    for (n, (name, look)) in looks.into_iter().enumerate() {
        let is_ja = look.language == "ja";
        let person = Person::join(&shop.gateway, name, "operator", look);
        person.go("/console/reconciliation");
        person.check_page(name);
        person.picture(&format!("reconciliation-{name}"));
        let text = person.browser.page_text();
        let words = if is_ja {
            ["アプリへ配送", "確認のみ", "こちらのみ", "決済事業者では 0", "対応していません"]
        } else {
            [
                "delivered to your application",
                "Check only",
                "only here",
                "0 (cancelled) there",
                "reads no lists",
            ]
        };
        for word in words {
            assert!(text.contains(word), "{name}: {word} is not in {text}");
        }
        // A check says what is missing, and takes nothing in.
        stripe.set_clock(sekisho::now().seconds());
        sell(&stripe, 100 + n);
        let missing = stripe.take_unsent();
        let before = shop.payments().len();
        person.browser.click("#stripe form:has([name=dry_run]) button");
        let said = if is_ja { "何も取り込んでいません" } else { "Nothing was taken in" };
        person.browser.wait_for_text(said);
        person.check_page(name);
        person.picture(&format!("reconciliation-checked-{name}"));
        assert_eq!(shop.payments().len(), before);
        missing.iter().for_each(|event| shop.hears(event));
        wait_until("they came", || shop.payments().len() > before);
    }
    let viewer = Person::join(&shop.gateway, "looks", "viewer", Look::desk("en"));
    viewer.go("/console/reconciliation");
    assert!(!viewer.browser.page_text().contains("Check only"), "who may only look has no buttons");
}
