//! Every page fits a phone and a desk, in both languages, and nothing from outside becomes markup.

use std::collections::BTreeSet;

use sekisho_lab::browser::Look;

use super::Shop;
use crate::support::{Gateway, Person, Place, Provider, each_store, route_to, stripe_source, wait_until};

/// Pages that no menu leads to, one of each kind, as the menu's pages link to them.
const KINDS: [&str; 7] = [
    "/console/events/evt_",
    "/console/messages/msg_",
    "/console/dead/msg_",
    "/console/payments/pay_",
    "/console/notices/ntc_",
    "/console/billing/",
    "/console/balances/",
];

/// The menu, and one page of each kind that is linked from anywhere.
fn everywhere(person: &Person) -> Vec<String> {
    let links = || -> Vec<String> {
        let all =
            person.browser.eval("[...document.querySelectorAll('a[href]')].map(a => a.getAttribute('href'))");
        all.as_array().unwrap().iter().map(|link| link.as_str().unwrap().to_owned()).collect()
    };
    person.go("/console");
    let is_page =
        |link: &String| link.starts_with("/console") && !link.contains("/language/") && !link.contains('?');
    let mut found: BTreeSet<String> = links().into_iter().filter(is_page).collect();
    for page in found.clone() {
        person.go(&page);
        for kind in KINDS {
            if !found.iter().any(|known| known.starts_with(kind)) {
                found.extend(links().into_iter().filter(is_page).find(|link| link.starts_with(kind)));
            }
        }
    }
    found.into_iter().collect()
}

fn name(page: &str) -> String {
    let parts: Vec<_> =
        page.trim_start_matches("/console").split('/').filter(|part| !part.is_empty()).collect();
    match &parts[..] {
        [] => "overview".into(),
        [one] => (*one).into(),
        [kind, _, rest @ ..] => [&[*kind, "one"], rest].concat().join("-"),
    }
}

#[test]
fn h1_every_page_fits_a_phone_and_a_desk_in_both_languages() {
    let place = Place::sqlite();
    let shop = Shop::open(&place);
    let first = Person::join(&shop.gateway, "mika", "admin", Look::desk("en"));
    let pages = everywhere(&first);
    assert!(pages.len() >= 17, "{pages:?}");
    for kind in ["/console/events/", "/console/payments/", "/console/dead/", "/console/notices/"] {
        assert!(pages.iter().any(|page| page.starts_with(kind)), "no {kind} in {pages:?}");
    }
    let looks = [
        ("desk-en", Look::desk("en")),
        ("desk-ja", Look::desk("ja")),
        ("phone-ja", Look::phone("ja")),
        ("phone-en-dark", Look::phone("en").dark()),
    ];
    for (look_name, look) in looks {
        let person = Person::log_in(&shop.gateway, "mika", look);
        for page in &pages {
            person.go(page);
            person.check_page(&format!("{page} ({look_name})"));
            let language = person.browser.eval("document.documentElement.lang");
            assert_eq!(language, look.language, "{page}");
            if look.language == "ja" {
                let shown = person.browser.text("h1") + &person.browser.text("main");
                assert!(
                    shown.chars().any(|letter| ('\u{3040}'..='\u{9fff}').contains(&letter)),
                    "{page}: {shown}"
                );
            }
            person.picture(&format!("{look_name}-{}", name(page)));
        }
    }
}

/// What an attacker would like to run.
const MARKUP: &str =
    "<img src=x onerror=\\\"document.title='pwned'\\\"><script>document.title='pwned'</script>'\\\"`</td>";

#[test]
fn h1_what_a_provider_writes_never_becomes_markup() {
    each_store(|place| {
        let app = sekisho_lab::app::DemoApp::start(sekisho_lab::app::Behaviour::Answer(
            sekisho_lab::app::Reply::status(500)
                .with_header("x-evil", "<script>a</script>")
                .with_body(&MARKUP.replace('\\', "")),
        ))
        .unwrap();
        let route = route_to("shop", &format!("{}/hook", app.url()), "retries = 0\nbreaker_failures = 0");
        let gateway = Gateway::with(place, &(stripe_source("") + &route));
        let at = sekisho::now().seconds();
        let evil = |id: &str, kind: &str, object: &str| {
            Provider::stripe().body(&format!(
                r#"{{"id":"{id}","type":"{kind}","created":{at},"livemode":true,"account":"{MARKUP}","data":{{"object":{object}}}}}"#
            ))
        };
        let charge = format!(
            r#"{{"object":"charge","id":"ch_{MARKUP}","payment_intent":"pi_{MARKUP}","amount":5000,"amount_captured":5000,"captured":true,
            "paid":true,"status":"succeeded","currency":"jpy","description":"{MARKUP}","failure_message":"{MARKUP}","billing_details":{{"email":"a@example.jp","name":"{MARKUP}"}},
            "metadata":{{"order_id":"{MARKUP}","tenant_id":"{MARKUP}","customer_id":"{MARKUP}","{MARKUP}":"{MARKUP}"}}}}"#
        );
        let strange = format!(r#"{{"object":"{MARKUP}","id":"{MARKUP}"}}"#);
        for letter in [
            evil("evt_1", "charge.succeeded", &charge),
            evil(&format!("evt_{MARKUP}"), &format!("kind.{MARKUP}"), &strange),
            Provider::stripe().body(&format!("{{\"{MARKUP}\": ")),
        ] {
            let letter = letter.with_header("x-evil", "<script>a</script>");
            assert!(gateway.send(&letter).status < 500);
            gateway.send(&letter.forged());
        }
        wait_until("something is dead", || place.sql("SELECT count(*) FROM dead").trim() != "0");
        wait_until("all is settled", || {
            place.sql("SELECT count(*) FROM job WHERE lane = 'settle'").trim() == "0"
        });
        let person = Person::join(&gateway, "mika", "admin", Look::desk("en"));
        for page in everywhere(&person) {
            person.go(&page);
            person.check_page(&page);
            assert_ne!(person.browser.title(), "pwned", "{page}");
            let planted = person
                .browser
                .eval("document.querySelectorAll('img[onerror], main script, [onerror]').length");
            assert_eq!(planted, 0, "{page}");
        }
    });
}
