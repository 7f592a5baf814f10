//! H1, H2: deliveries are seen and dealt with: at the console in both languages, on a phone and at a desk, by the API and the CLI.

use sekisho_lab::app::{Behaviour, DemoApp, Reply};
use sekisho_lab::browser::Look;
use serde_json::Value;

use super::delivery::{event, route};
use crate::support::{Gateway, Person, Place, each_store, stripe_source, wait_until};

/// A shop whose app is well, whose warehouse refuses everything, and whose CRM is away.
struct Shop {
    gateway: Gateway,
    app: DemoApp,
}

impl Shop {
    fn open(place: &Place) -> Self {
        let paths = vec![
            ("/warehouse".into(), Behaviour::Answer(Reply::status(500).with_body("out of shelves"))),
            ("/crm".into(), Behaviour::Answer(Reply::status(503))),
        ];
        let app = DemoApp::start(Behaviour::Paths(paths, Box::new(Behaviour::Ok))).unwrap();
        let routes = [
            route("app", &app, ""),
            route("warehouse", &app, "retries = 0\nbreaker_failures = 0"),
            route("crm", &app, "retries = 9\nbreaker_failures = 2\nbreaker_open = \"60s\"\nconcurrency = 1"),
        ];
        let gateway = Gateway::with(place, &(stripe_source("") + &routes.concat()));
        for n in 0..6 {
            let letter = event(&format!("evt_{n}"), "payment_intent.succeeded", "");
            assert_eq!(gateway.send(&letter).status, 204);
        }
        let shop = Self { gateway, app };
        wait_until("the app has all", || shop.count("app", "delivered") == 6);
        wait_until("the warehouse refused all", || shop.count("warehouse", "failed") == 6);
        wait_until("the CRM is left alone", || {
            place.sql("SELECT facts FROM state WHERE kind = 'breaker' AND id = 'to:crm'").contains("\"open\"")
        });
        shop
    }

    fn list(&self, words: &[&str]) -> Vec<Value> {
        self.gateway
            .type_in(&[&["deliveries", "list", "--json", "--limit", "0"], words].concat())
            .done()
            .lines()
    }

    fn count(&self, route: &str, status: &str) -> usize {
        self.list(&["--route", route, "--status", status]).len()
    }
}

#[test]
fn h2_deliveries_are_listed_filtered_and_cancelled() {
    each_store(|place| {
        let shop = Shop::open(place);
        assert_eq!(shop.list(&[]).len(), 18);
        let failed = &shop.list(&["--route", "warehouse", "--status", "failed"])[0];
        assert_eq!((&failed["http_status"], &failed["reason"]), (&500.into(), &"server_error".into()));
        assert!(failed["next_try_at"].is_string(), "it comes back by itself: {failed}");
        let event = failed["event"].as_str().unwrap();
        assert_eq!(shop.list(&["--event", event]).len(), 3);
        assert_eq!(shop.list(&["--since", "1h"]).len(), 18);
        assert_eq!(shop.list(&["--until", "1h"]).len(), 0);
        let shown = shop.gateway.type_in(&["events", "list"]).done();
        assert_eq!(shown.stdout.matches("failed 1/3").count(), 6, "{}", shown.stdout);
        let of = |delivery: &str| {
            let words = ["events", "list", "--json", "--delivery", delivery];
            shop.gateway.type_in(&words).done().lines().len()
        };
        assert_eq!([of("failed"), of("waiting"), of("delivered")], [6, 6, 0]);
        shop.gateway.type_in(&["deliveries", "list", "--status", "lost"]).failed(2);

        let cancel = |words: &[&str]| shop.gateway.type_in(&[&["deliveries", "cancel"], words].concat());
        cancel(&["--route", "crm"]).failed(2).mentions(&["--reason"]);
        cancel(&["--reason", "enough"]).failed(2).mentions(&["specify ids, a filter"]);
        cancel(&["--route", "crm", "--dry-run"]).done().mentions(&["6 deliveries would be cancelled", "crm"]);
        assert_eq!(shop.count("crm", "waiting"), 6);
        cancel(&["--route", "crm", "--reason", "the CRM is no more", "--yes"])
            .done()
            .mentions(&["Cancelled 6 deliveries."]);
        assert_eq!((shop.count("crm", "waiting"), shop.count("crm", "cancelled")), (0, 6));
        assert_eq!(of("cancelled"), 6);
        let audited = place.sql("SELECT count(*) FROM audit WHERE action = 'delivery.cancelled'");
        assert_eq!(audited, "6");
        assert_eq!(shop.count("app", "delivered"), 6, "nothing else was touched");
    });
}

#[test]
fn h1_deliveries_and_routes_fit_a_phone_and_a_desk_in_both_languages() {
    let place = Place::sqlite();
    let shop = Shop::open(&place);
    Person::join(&shop.gateway, "mika", "admin", Look::desk("en"));
    let pages = [
        ("deliveries", "/console/deliveries"),
        ("deliveries-waiting", "/console/deliveries?status=waiting"),
        ("deliveries-cancel", "/console/deliveries/cancel?route=crm"),
        ("route-crm", "/console/routes/crm"),
        ("route-warehouse", "/console/routes/warehouse"),
        ("events", "/console/events"),
        ("events-failed", "/console/events?delivery=failed"),
        ("dead", "/console/dead"),
        ("sources", "/console/sources"),
        ("overview", "/console"),
    ];
    for (look_name, look) in [
        ("desk-en", Look::desk("en")),
        ("desk-ja", Look::desk("ja")),
        ("phone-ja", Look::phone("ja")),
        ("phone-en-dark", Look::phone("en").dark()),
    ] {
        let person = Person::log_in(&shop.gateway, "mika", look);
        for (name, page) in pages {
            person.go(page);
            person.check_page(&format!("{page} ({look_name})"));
            person.picture(&format!("deliveries-{look_name}-{name}"));
        }
        person.go("/console/routes/crm");
        let text = person.browser.page_text();
        let words = if look.language == "ja" {
            ["次の確認", "停止の開始", "の復旧待ち", "遮断を解除"]
        } else {
            ["Next probe", "Down since", "waits for crm (down for", "Reset the breaker"]
        };
        for word in words {
            assert!(text.contains(word), "no {word} in {text}");
        }
        person.go("/console/events");
        let badge = if look.language == "ja" { "失敗" } else { "failed" };
        assert!(person.browser.page_text().contains(badge));
        assert!(person.browser.page_text().contains("1/3"));
    }
}

#[test]
fn h1_tiles_and_names_lead_where_they_say() {
    let place = Place::sqlite();
    let shop = Shop::open(&place);
    let person = Person::join(&shop.gateway, "mika", "operator", Look::desk("en"));
    person.go("/console");
    person.browser.wait_for_text("deliveries waiting");
    person.browser.click("a.tile[href='/console/deliveries?status=waiting']");
    person.browser.wait_for_url("/console/deliveries");
    assert_eq!(person.browser.count("tbody tr"), 6, "what the tile counts is what the list shows");
    assert!(person.browser.page_text().contains("waits for crm (down for"));
    person.browser.click_text("tbody a", "crm");
    person.browser.wait_for_url("/console/routes/crm");
    person.go("/console/sources");
    person.browser.click_text("#routes a", "warehouse");
    person.browser.wait_for_text("of the newest 6");
    person.go("/console/events?type=payment_intent.*");
    person.browser.click_text("a.button", "Replay these…");
    person.browser.wait_for_url("/console/events/replay?type=payment_intent");
}

#[test]
fn h1_a_bulk_retry_says_what_became_of_each_and_waiting_ones_are_cancelled() {
    each_store(|place| {
        let shop = Shop::open(place);
        let person = Person::join(&shop.gateway, "mika", "operator", Look::desk("en"));
        person.go("/console/routes/warehouse");
        person.browser.click_text("a.button", "Retry failed…");
        person.browser.wait_for_text("Preview");
        person.browser.click("main form button.primary");
        person.browser.wait_for_text("failed again 6");
        assert!(person.browser.page_text().contains("succeeded 0"));
        person.picture("run-failed-again");
        shop.app.set(Behaviour::Ok);
        person.go("/console/dead/retry?lane=to%3Awarehouse");
        person.browser.click("main form button.primary");
        person.browser.wait_for_text("succeeded 6");

        person.go("/console/routes/crm");
        person.browser.click_text("a.button", "Cancel waiting…");
        person.browser.wait_for_text("waiting deliveries are cancelled for good");
        person.browser.fill("input[name=why]", "the CRM is no more");
        person.browser.click("main form button.danger");
        person.browser.wait_for_text("finished");
        assert_eq!(shop.count("crm", "cancelled"), 6);
        person.go("/console/routes/crm");
        person.browser.click_text("button", "Reset the breaker");
        person.browser.accept_dialog();
        person.browser.wait_for_text("Deliveries to this destination were resumed.");
        person.browser.wait_for_url("/console/routes/crm");
    });
}
