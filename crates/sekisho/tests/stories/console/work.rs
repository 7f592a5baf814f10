//! What operators come for.

use sekisho_lab::app::Behaviour;
use sekisho_lab::browser::Look;

use super::{Shop, count};
use crate::support::{Person, Place, each_store, wait_until};

/// Each story in both languages and at both widths, on the database whose turn it is.
fn looks() -> [Look; 2] {
    [Look::desk("en"), Look::phone("ja")]
}

#[test]
fn h1_an_operator_finds_why_a_payment_is_not_paid() {
    let place = Place::sqlite();
    let shop = Shop::open(&place);
    for (n, look) in looks().into_iter().enumerate() {
        let person = Person::join(&shop.gateway, &format!("mika{n}"), "viewer", look);
        person.go("/console/payments");
        person.browser.fill("[data-search]", "order-1003");
        person.browser.press("Enter");
        person.browser.wait_for_url("/console/payments/pay_");
        let said = person.browser.page_text();
        let answer = if look.language == "ja" {
            "お客様の銀行で処理中です"
        } else {
            "The customer's bank is still working on it"
        };
        assert!(said.contains(answer) && said.contains("¥1,200"), "{said}");
        assert!(said.contains("payment_intent.processing"), "{said}");
        person.picture(&format!("work-not-paid-{}", look.language));
    }
}

#[test]
fn b4_dead_letters_are_retried_from_the_console() {
    each_store(|place| {
        let shop = Shop::open(place);
        let person = Person::join(&shop.gateway, "mika", "operator", Look::desk("ja"));
        person.go("/console/dead");
        let said = person.browser.page_text();
        assert!(said.contains("shop") && said.contains("¥10,000"), "what is at stake:\n{said}");
        person.picture("work-dead-before");
        shop.app.set(Behaviour::Ok);
        // Only what the application refused; the mail to nobody stays.
        person.browser.click_text("main a", "アプリがエラーを返した");
        person.browser.wait_for_url("reason=");
        person.browser.click("main a[href^='/console/dead/retry']");
        person.browser.wait_for("main button.primary");
        person.picture("work-dead-preview");
        person.browser.click("main button.primary");
        person.browser.wait_for_url("/console/runs/");
        wait_until("the app has both", || shop.app.received().len() >= 4);
        wait_until("one is dead", || count("SELECT count(*) FROM dead", place) == 1);
        person.browser.wait_for_text("2 / 2");
        person.go("/console/dead");
        let said = person.browser.page_text();
        assert!(!said.contains("アプリがエラーを返した") && said.contains("宛先が存在しない"), "{said}");
        let audit = shop.gateway.type_in(&["audit", "list", "--json"]).done().stdout;
        assert!(audit.contains("dead_letter.retried") && audit.contains("\"mika\""), "{audit}");
    });
}

#[test]
fn g5_no_mail_came_is_answered_on_one_screen() {
    let place = Place::sqlite();
    let shop = Shop::open(&place);
    for (n, look) in looks().into_iter().enumerate() {
        let person = Person::join(&shop.gateway, &format!("mika{n}"), "operator", look);
        let ask = |address: &str| {
            person.go("/console/notices");
            person.browser.fill("[data-search]", address);
            person.browser.press("Enter");
            person.browser.wait_for(".answer");
            person.browser.page_text()
        };
        let (gone, spam) = if look.language == "ja" {
            ("存在しない", "迷惑メール")
        } else {
            ("unknown recipient", "spam")
        };
        let said = ask("nobody@example.jp");
        assert!(said.contains(gone), "{said}");
        person.picture(&format!("work-no-mail-{}", look.language));
        let said = ask("taro@example.jp");
        assert!(said.contains(spam), "{said}");
    }
}

#[test]
fn h1_an_event_is_replayed_after_a_preview() {
    let place = Place::sqlite();
    let shop = Shop::open(&place);
    shop.app.set(Behaviour::Ok);
    for (n, look) in looks().into_iter().enumerate() {
        let person = Person::join(&shop.gateway, &format!("mika{n}"), "operator", look);
        person.go("/console/events");
        person.browser.fill("[data-search]", "evt_slow");
        person.browser.press("Enter");
        person.browser.wait_for_url("/console/events/evt_");
        person.browser.click("main a[href$='/replay']");
        person.browser.wait_for("main button.primary");
        person.picture(&format!("work-replay-preview-{}", look.language));
        person.browser.fill("[name=reason]", "checking");
        person.browser.click("main button.primary");
        person.browser.wait_for(".flash.good");
    }
    let audit = shop.gateway.type_in(&["audit", "list", "--json"]).done().stdout;
    assert!(audit.contains("event.replayed") && audit.contains("checking"), "{audit}");
}

#[test]
fn h1_a_viewer_looks_and_acts_on_nothing() {
    let place = Place::sqlite();
    let shop = Shop::open(&place);
    let person = Person::join(&shop.gateway, "tomo", "viewer", Look::phone("ja"));
    for page in
        ["/console/dead", "/console/notices", "/console/sources", "/console/suppressions", "/console/events"]
    {
        person.go(page);
        let acts = person.browser.eval("document.querySelectorAll('main form[method=post]').length");
        assert_eq!(acts, 0, "{page}: {}", person.browser.page_text());
    }
    person.go("/console/users");
    assert!(person.browser.page_text().contains("権限がありません"), "{}", person.browser.page_text());
    // Not even with a form of their own making.
    person.go("/console/account");
    let status = person.browser.eval(
        "fetch('/console/dead/retry', { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, \
         body: new URLSearchParams({ all: 'true', csrf: document.querySelector('[name=csrf]').value }) }).then(a => a.status)",
    );
    assert_eq!(status, 403);
    assert!(person.browser.page_text().contains("tomo"));
}

#[test]
fn h1_what_comes_in_appears_by_itself_and_can_be_held() {
    let place = Place::sqlite();
    let shop = Shop::open(&place);
    let person = Person::join(&shop.gateway, "mika", "viewer", Look::desk("en"));
    person.go("/console/events");
    person.browser.wait_for("[data-live]");
    shop.gateway.send(&super::processing("later", "order-1004"));
    person.browser.wait_for_text("pi_later");
    person.browser.click("[data-pause]");
    shop.gateway.send(&super::processing("held", "order-1005"));
    wait_until("it is stored", || shop.gateway.event_ids().contains(&"evt_held".to_owned()));
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(!person.browser.page_text().contains("pi_held"));
    person.browser.click("[data-pause]");
    person.browser.wait_for_text("pi_held");
}

#[test]
fn h1_a_keyboard_is_enough() {
    let place = Place::sqlite();
    let shop = Shop::open(&place);
    let person = Person::join(&shop.gateway, "mika", "viewer", Look::desk("en"));
    person.go("/console/payments");
    person.browser.press("/");
    let focused = person.browser.eval("document.activeElement.hasAttribute('data-search')");
    assert_eq!(focused, true);
    person.browser.press("Tab");
    let seen = person.browser.eval("getComputedStyle(document.activeElement).outlineStyle !== 'none'");
    assert_eq!(seen, true, "one sees where one is");
}
