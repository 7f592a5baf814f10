//! F5, F6, F8: what operators do with orders: they look after holds, slots, what is made, cases and questions.

use sekisho_lab::browser::Look;
use serde_json::{Value, json};

use crate::reservations::{Shop, id_of, json_of};
use crate::support::{Person, Place, each_store, wait_until};

const PAGES: &str = "[pages]\nurl = \"http://pay.example.jp\"\n";

/// A planetarium in the middle of its day: somebody holds places, somebody has paid, somebody's video could not be made, and
/// somebody asks.
struct Planetarium {
    shop: Shop,
    held: String,
    paid: String,
    failed: String,
    made: String,
    inquiry: String,
}

impl Planetarium {
    fn open(place: &Place) -> Self {
        let shop = Shop::open(place, PAGES);
        let starts_at = sekisho::now().plus_ms(10 * 86_400_000).to_string();
        let slot = json!({ "id": "dome-1:19:00", "capacity": 8, "title": "冬の星空", "livemode": false, "starts_at": starts_at });
        shop.post("/v1/slots", &slot);
        let hold = |reference: &str, more: Value| {
            let mut body = json!({ "quantity": 2, "customer": "c-7", "email": "taro@example.jp", "language": "ja",
                "starts_at": starts_at });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            shop.hold_with("dome-1:19:00", reference, body)
        };
        let held = id_of(&hold("ORD-1001", json!({ "metadata": { "seat": "A1" } })));
        let paid = id_of(&hold("ORD-1002", json!({})));
        shop.pay("ORD-1002");
        let made = hold(
            "ORD-1003",
            json!({ "fulfilment": { "kind": "video", "name": "星空メッセージ", "input": { "scene": 3 } } }),
        );
        let (failed, made) = (id_of(&made), json_of(&made));
        let link = made["customer_url"].as_str().unwrap().to_owned();
        let made = made["fulfilment"].as_str().unwrap().to_owned();
        shop.pay("ORD-1003");
        for id in [&paid, &failed] {
            shop.wait_for(id, "confirmed");
        }
        let path = format!("/v1/fulfilments/{made}");
        wait_until("the first run", || shop.get(&path)["status"] == "processing");
        for run in 1..=3 {
            let result = json!({ "run": run, "status": "failed", "error": "out of memory" });
            shop.post(&format!("{path}/result"), &result);
        }
        let asked = sekisho_lab::http::request(
            shop.gateway.address(),
            "POST",
            &format!("{}/contact", link.strip_prefix("http://pay.example.jp").unwrap()),
            &[("content-type", "application/x-www-form-urlencoded")],
            b"name=Taro&email=taro%40example.jp&text=When+does+my+video+come%3F",
        );
        assert_eq!(asked.unwrap().status, 303);
        let inquiry = shop.get("/v1/inquiries")["items"][0]["id"].as_str().unwrap().to_owned();
        Self { shop, held, paid, failed, made, inquiry }
    }

    fn case(&self) -> String {
        self.shop.get("/v1/cases")["items"][0]["id"].as_str().unwrap().to_owned()
    }

    fn pages(&self) -> Vec<(&'static str, String)> {
        let (held, made, case) = (&self.held, &self.made, self.case());
        let payment = self.shop.get(&format!("/v1/reservations/{}", self.failed))["payment"].clone();
        vec![
            ("reservations", "/console/reservations".into()),
            ("reservation-held", format!("/console/reservations/{held}")),
            ("reservation-paid", format!("/console/reservations/{}", self.paid)),
            ("reservation-failed", format!("/console/reservations/{}", self.failed)),
            ("confirm", format!("/console/reservations/{held}/confirm?preview=1&reason=cash")),
            ("extend", format!("/console/reservations/{held}/extend")),
            (
                "cancel",
                format!("/console/reservations/{}/cancel?preview=1&reason=rain&refund=yes", self.failed),
            ),
            ("slots", "/console/slots".into()),
            ("slot", "/console/slots/dome-1%3A19%3A00?mode=test".into()),
            ("fulfilments", "/console/fulfilments".into()),
            ("fulfilment", format!("/console/fulfilments/{made}")),
            ("cases", "/console/cases".into()),
            ("case", format!("/console/cases/{case}")),
            ("compensations", "/console/compensations".into()),
            ("rules", "/console/compensation_rules".into()),
            ("rules-check", format!("/console/compensation_rules?order={}", self.failed)),
            ("inquiries", "/console/inquiries".into()),
            ("inquiry", format!("/console/inquiries/{}", self.inquiry)),
            ("order-payment", format!("/console/payments/{}", payment.as_str().unwrap())),
            ("order-overview", "/console".into()),
        ]
    }
}

#[test]
fn h1_every_page_of_orders_fits_a_phone_and_a_desk_in_both_languages() {
    let place = Place::sqlite();
    let all = Planetarium::open(&place);
    // Something that was done, for the log.
    all.shop.post(&format!("/v1/reservations/{}/cancel", all.paid), &json!({ "reason": "rain" }));
    all.shop.wait_for_refund(&all.paid);
    all.shop.hear();
    wait_until("the log", || !all.shop.get("/v1/compensations")["items"].as_array().unwrap().is_empty());
    Person::join(&all.shop.gateway, "mika", "operator", Look::desk("en"));
    let pages = all.pages();
    for look in [Look::desk("en"), Look::desk("ja"), Look::phone("en").dark(), Look::phone("ja")] {
        let person = Person::log_in(&all.shop.gateway, "mika", look);
        for (name, page) in &pages {
            person.go(page);
            let what = format!("{page} at {} in {}", look.width, look.language);
            person.check_page(&what);
            let said = person.browser.page_text();
            let is_japanese = said.chars().any(|letter| ('\u{3040}'..='\u{30ff}').contains(&letter));
            assert!(look.language != "ja" || is_japanese, "{what}: {said}");
            person.picture(&format!("orders-{}-{}-{name}", look.width, look.language));
        }
    }
}

#[test]
fn h1_an_operator_confirms_extends_and_cancels_after_a_preview() {
    each_store(|place| {
        let all = Planetarium::open(place);
        let look = Look::phone("ja");
        let person = Person::join(&all.shop.gateway, "mika", "operator", look);
        let browser = &person.browser;
        let status =
            |id: &str| all.shop.get(&format!("/v1/reservations/{id}"))["status"].as_str().unwrap().to_owned();
        // Longer.
        person.go("/console/reservations");
        browser.click_text("main a", "ORD-1001");
        browser.wait_for_url(&all.held);
        let before = all.shop.get(&format!("/v1/reservations/{}", all.held))["hold_expires_at"].clone();
        browser.click("main a[href$='/extend']");
        browser.wait_for("main button.primary");
        browser.click("main button.primary");
        browser.wait_for_text("仮押さえの期限:");
        assert_eq!(all.shop.get(&format!("/v1/reservations/{}", all.held))["hold_expires_at"], before);
        browser.click("main form[method=post] button.primary");
        browser.wait_for(".flash.good");
        assert_ne!(all.shop.get(&format!("/v1/reservations/{}", all.held))["hold_expires_at"], before);
        // Theirs, though nothing was paid.
        browser.click("main a[href$='/confirm']");
        browser.wait_for("[name=reason]");
        browser.fill("[name=reason]", "現金で受領");
        browser.click("main button.primary");
        browser.wait_for("main form[method=post] button.primary");
        assert_eq!(status(&all.held), "hold");
        browser.click("main form[method=post] button.primary");
        browser.wait_for(".flash.good");
        assert_eq!(status(&all.held), "confirmed");
        // Given back, with the money.
        person.go(&format!("/console/reservations/{}/cancel", all.paid));
        browser.fill("[name=reason]", "雨天中止");
        browser.click("main button.primary");
        browser.wait_for_text("¥4,800 をお客様に返金します");
        assert_eq!(status(&all.paid), "confirmed");
        browser.click("main form[method=post] button.primary");
        browser.wait_for(".flash.good");
        assert_eq!(status(&all.paid), "cancelled");
        all.shop.wait_for_refund(&all.paid);
        all.shop.hear();
        wait_until("the log tells it", || {
            person.go("/console/compensations");
            browser.page_text().contains("¥4,800")
        });
        let said = browser.page_text();
        assert!(said.contains("返金") && said.contains("mika"), "{said}");
        let audit = all.shop.gateway.type_in(&["audit", "--target", &all.paid, "--json"]).done().stdout;
        assert!(audit.contains("\"mika\""), "{audit}");
    });
}

#[test]
fn f5_an_operator_answers_a_case_and_a_question() {
    each_store(|place| {
        let all = Planetarium::open(place);
        let person = Person::join(&all.shop.gateway, "mika", "operator", Look::desk("en"));
        let browser = &person.browser;
        let case = all.case();
        // The overview and the menu lead to what waits.
        person.go("/console");
        browser.wait_for(".menu a[href='/console/cases'] .badge");
        browser.click("a.tile[href='/console/cases']");
        browser.wait_for_url("/console/cases");
        browser.click_text("main a", "could not be made");
        browser.wait_for_url(&case);
        let said = browser.page_text();
        for words in ["answer by", "refund at", "refund all that is left", "told again"] {
            assert!(said.contains(words), "{words} in {said}");
        }
        // So does the page of its payment.
        let payment = all.shop.get(&format!("/v1/cases/{case}"))["payment"].clone();
        person.go(&format!("/console/payments/{}", payment.as_str().unwrap()));
        for page in [
            format!("cases/{case}"),
            format!("reservations/{}", all.failed),
            format!("fulfilments/{}", all.made),
        ] {
            browser.wait_for(&format!("main a[href='/console/{page}']"));
        }
        person.go(&format!("/console/cases/{case}"));
        browser.fill("form[action$='/acknowledge'] [name=note]", "rendering again");
        browser.click("form[action$='/acknowledge'] button");
        browser.wait_for(".flash.good");
        assert_eq!(all.shop.get(&format!("/v1/cases/{case}"))["acknowledged"]["by"], "ADMIN:mika");
        let said = browser.page_text();
        assert!(said.contains("refund at") && !said.contains("told again"), "the refund still comes: {said}");
        // Once more, and it works.
        person.go(&format!("/console/fulfilments/{}", all.made));
        browser.fill("form[action$='/retry'] [name=reason]", "more memory");
        browser.click("form[action$='/retry'] button");
        browser.wait_for(".flash.good");
        browser.choose("form[action$='/result'] [name=run]", "4");
        browser.choose("form[action$='/result'] [name=status]", "done");
        browser.fill("form[action$='/result'] [name=url]", "https://cdn.example.jp/v.mp4");
        browser.click("form[action$='/result'] button");
        browser.accept_dialog();
        browser.wait_for(".flash.good");
        wait_until("the case is over by itself", || {
            all.shop.get(&format!("/v1/cases/{case}"))["status"] == "resolved"
        });
        person.go(&format!("/console/cases/{case}"));
        assert!(browser.page_text().contains("the condition is over"), "{}", browser.page_text());
        // The question.
        person.go("/console/inquiries");
        browser.click_text("main a", "When does my video come?");
        browser.wait_for_url(&all.inquiry);
        assert!(browser.page_text().contains(&all.failed));
        browser.click("form[action$='/close'] button");
        browser.wait_for(".flash.good");
        assert_eq!(all.shop.get("/v1/inquiries?status=closed")["items"][0]["closed_by"], "ADMIN:mika");
        // Eight places become nine.
        person.go("/console/slots/dome-1%3A19%3A00?mode=test");
        browser.fill("[name=capacity]", "9");
        browser.click("form[action$='/capacity'] button");
        browser.wait_for(".flash.good");
        assert_eq!(all.shop.get("/v1/slots/dome-1:19:00?livemode=false")["capacity"], 9);
    });
}

#[test]
fn h1_a_viewer_looks_at_orders_and_acts_on_nothing() {
    let place = Place::sqlite();
    let all = Planetarium::open(&place);
    let person = Person::join(&all.shop.gateway, "tomo", "viewer", Look::desk("en"));
    for (name, page) in all.pages() {
        person.go(&page);
        let said = person.browser.page_text();
        if ["confirm", "extend", "cancel"].contains(&name) {
            assert!(said.contains("Forbidden"), "{page}: {said}");
            continue;
        }
        let acts = person.browser.eval("document.querySelectorAll('main form[method=post]').length");
        assert_eq!(acts, 0, "{page}: {said}");
        assert!(!said.contains("taro@") && !said.contains("http://pay.example.jp"), "{page}: {said}");
    }
    person.go("/console/account");
    for path in [
        format!("/console/reservations/{}/cancel", all.held),
        format!("/console/reservations/{}/revoke_links", all.held),
        format!("/console/fulfilments/{}/retry", all.made),
        format!("/console/cases/{}/resolve", all.case()),
        format!("/console/inquiries/{}/close", all.inquiry),
        "/console/slots/dome-1%3A19%3A00/capacity".into(),
    ] {
        let status = person.browser.eval(&format!(
            "fetch('{path}', {{ method: 'POST', headers: {{ 'content-type': 'application/x-www-form-urlencoded' }}, \
             body: new URLSearchParams({{ reason: 'x', how: 'fixed', csrf: document.querySelector('[name=csrf]').value }}) }}).then(a => a.status)"
        ));
        assert_eq!(status, 403, "{path}");
    }
}

#[test]
fn f8_links_to_an_order_are_revoked_at_the_console_the_api_and_the_command_line() {
    each_store(|place| {
        let all = Planetarium::open(place);
        let gateway = &all.shop.gateway;
        let opens = |url: &str| {
            let path = url.trim().strip_prefix("http://pay.example.jp").unwrap().to_owned();
            sekisho_lab::http::request(gateway.address(), "GET", &path, &[], b"").unwrap().status
        };
        let first = gateway.type_in(&["pages", "link", &all.held]).done().stdout;
        assert_eq!(opens(&first), 200);
        let person = Person::join(gateway, "mika", "operator", Look::desk("en"));
        person.go(&format!("/console/reservations/{}", all.held));
        assert!(person.browser.page_text().contains("http://pay.example.jp/o/"));
        person.browser.click("form[action$='/revoke_links'] button");
        person.browser.accept_dialog();
        person.browser.wait_for(".flash.good");
        assert_eq!(opens(&first), 404, "void, as if it had never been");
        let second = gateway.type_in(&["pages", "link", &all.held]).done().stdout;
        assert_eq!(opens(&second), 200);
        let third = gateway.type_in(&["pages", "revoke", &all.held]).done().stdout;
        assert_eq!((opens(&second), opens(&third)), (404, 200));
        let shown = all.shop.get(&format!("/v1/order_links/{}", all.held));
        assert_eq!((&shown["generation"], &shown["object"]), (&json!(2), &json!("order_link")));
        // What the app is answered opens it, too.
        let answered = all.shop.get(&format!("/v1/reservations/{}", all.held))["customer_url"].clone();
        assert_eq!(opens(answered.as_str().unwrap()), 200);
        // What is made without a reservation has a page of its own.
        let alone =
            all.shop.post("/v1/fulfilments", &json!({ "kind": "video", "tier": "free", "livemode": false }));
        let alone = alone["id"].as_str().unwrap();
        let link = all.shop.get(&format!("/v1/order_links/{alone}"))["url"].as_str().unwrap().to_owned();
        assert_eq!(opens(&link), 200);
        let next = all.shop.post(&format!("/v1/order_links/{alone}/revoke"), &Value::Null);
        assert_eq!((opens(&link), opens(next["url"].as_str().unwrap())), (404, 200));
        let audit = gateway.type_in(&["audit", "--json"]).done().stdout;
        assert_eq!(audit.matches("order_link.revoked").count(), 3, "{audit}");
        gateway.type_in(&["pages", "link", "rsv_none"]).failed(1);
        assert_eq!(all.shop.ask("GET", "/v1/order_links/pay_1", &[], &Value::Null).status, 404);
    });
}
