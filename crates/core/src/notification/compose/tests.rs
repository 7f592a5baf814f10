use super::super::rule::tests::rule;
use super::*;
use crate::delivery::route::tests::stored;
use crate::source_name::OWN;
use crate::state::State;

const NOW: Time = Time::from_ms(1_780_000_000_000);

fn paid() -> Stored {
    let body = r#"{"id":"stripe/live/pi_1/paid","data":{"object":"payment","id":"pay_1","amount":5000,"currency":"jpy"},"about":{"amount":5000}}"#;
    Stored {
        source: OWN.into(),
        event_id: "stripe/live/pi_1/paid".into(),
        event_type: "payment.paid".into(),
        ..stored(body)
    }
}

fn person(id: &str) -> Person {
    let address = format!("{id}@example.jp").parse().ok();
    Person { id: id.into(), name: Some(format!("山田 {id}")), address, ..Person::default() }
}

fn house() -> House {
    let operators = vec!["ops@example.jp".parse().unwrap()];
    House { time_zone: "Asia/Tokyo".into(), operators, ..House::default() }
}

fn told(to: To, parties: &Parties) -> Vec<Notice> {
    compose(&rule("receipt", "payment.paid", to), &paid(), parties, &house(), NOW)
}

/// A notice to an address, as it stands.
pub fn notice_to(address: &str, status: NoticeStatus) -> Notice {
    let person = Person { address: address.parse().ok(), ..Person::default() };
    let parties = Parties { customer: person, ..Parties::default() };
    told(To::Customer, &parties).remove(0).with(Step::new(NOW, status))
}

#[test]
fn g5_one_fact_is_one_notice_for_each_person() {
    let parties = Parties {
        customer: Person { language: Some(Language::En), ..person("taro") },
        staff: vec![person("a"), Person { is_off: true, ..person("b") }],
        ..Parties::default()
    };
    let customer = told(To::Customer, &parties);
    assert_eq!(customer[0].key, "sekisho/stripe/live/pi_1/paid/receipt/customer");
    assert_eq!((customer[0].language, customer[0].status()), (Language::En, NoticeStatus::Queued));
    assert_eq!(customer[0].payment.as_deref(), Some("pay_1"));
    assert_eq!(customer[0].data["payment"]["amount"], 5000);
    let staff = told(To::Staff, &parties);
    assert_eq!(
        staff.iter().map(Notice::status).collect::<Vec<_>>(),
        [NoticeStatus::Queued, NoticeStatus::Off]
    );
    assert_eq!(told(To::Operators, &parties)[0].audience, Audience::Operator);
    assert_eq!(told(To::Place, &parties)[0].to, None);
}

#[test]
fn g5_an_announcement_names_its_parties_and_a_providers_event_nobody() {
    let body = r#"{"tenant":"a","data":{"object":"payment","id":"pay_1","customer":"c1"}}"#;
    let own = Stored { source: OWN.into(), ..stored(body) };
    let named = Named::by(&own);
    assert_eq!((named.tenant.as_deref(), named.customer.as_deref()), (Some("a"), Some("c1")));
    assert_eq!((named.payment.as_deref(), named.keys().len()), (Some("pay_1"), 3));
    assert_eq!(Named::by(&stored(body)), Named::default());
}

#[test]
fn g5_a_customers_address_is_used_for_its_own_tenants_events_only() {
    let keep = |known: &mut Loaded, key: Key, facts: Value| {
        let facts = facts.to_string();
        let (index, at) = (crate::state::Index::default(), NOW);
        let state = State { key: key.clone(), version: 1, facts, index, created_at: at, changed_at: at };
        known.states.insert(key, state);
    };
    let told = |directory: &[(Option<&str>, &str)], tenant: Option<&str>| {
        let body =
            json!({ "tenant": tenant, "data": { "object": "payment", "id": "pay_1", "customer": "c1" } });
        let named = Named::by(&Stored { source: OWN.into(), ..stored(&body.to_string()) });
        let mut known = Loaded::default();
        for (tenant, email) in directory {
            let facts = json!({ "tenant": tenant, "email": email, "language": "en" });
            keep(&mut known, Register::Customers.key(*tenant, "c1"), facts);
        }
        let typed = json!({ "emails": { "typed@example.jp": "billing" } });
        keep(&mut known, Key::new(Kind::Payment, "pay_1"), typed);
        // Only what was asked for is loaded.
        known.states.retain(|key, _| named.keys().contains(key));
        let parties = named.parties(&known, &[]);
        parties.customer.address.map(|address| address.whole().to_owned()).unwrap_or_default()
    };
    let (a, b, none) =
        ((Some("a"), "of-a@example.jp"), (Some("b"), "of-b@example.jp"), (None, "nobodys@example.jp"));
    for (directory, tenant, expected) in [
        (&[a, b, none][..], Some("a"), "of-a@example.jp"),
        (&[a, b, none], Some("b"), "of-b@example.jp"),
        (&[a, b, none], None, "nobodys@example.jp"),
        (&[b], Some("a"), "typed@example.jp"),
        (&[none], Some("a"), "typed@example.jp"),
        (&[a], None, "typed@example.jp"),
        (&[], Some("a"), "typed@example.jp"),
    ] {
        assert_eq!(told(directory, tenant), expected, "{directory:?} {tenant:?}");
    }
}

#[test]
fn g5_whoever_has_no_address_is_in_the_record_with_the_reason() {
    let notices = told(To::Customer, &Parties::default());
    assert_eq!(notices[0].status(), NoticeStatus::Failed);
    assert_eq!(notices[0].steps[0].reason.as_deref(), Some("no_address"));
}

#[test]
fn g5_what_is_told_once_in_a_while_has_one_key_for_that_while() {
    let often = NotifyRule { every_ms: Some(600_000), ..rule("alerts", "*", To::Place) };
    let at = |ms| Stored { received_at: Time::from_ms(ms), event_id: format!("e{ms}"), ..paid() };
    let key = |ms| compose(&often, &at(ms), &Parties::default(), &house(), NOW)[0].key.clone();
    assert_eq!(key(600_000), key(1_199_999));
    assert_ne!(key(600_000), key(1_200_000));
}

#[test]
fn d2_the_receipt_is_waited_for_only_while_it_can_come_and_told_when_it_did() {
    let charge = |captured, url: Option<&str>| payment::Charge {
        captured,
        receipt_url: url.map(str::to_owned),
        ..payment::Charge::default()
    };
    let link = |realm: &str, charges: Vec<payment::Charge>| {
        let charges = charges.into_iter().enumerate().map(|(n, charge)| (format!("ch_{n}"), charge));
        let realms = [realm.to_owned()].into();
        ReceiptLink::of(&payment::Facts { realms, charges: charges.collect(), ..Default::default() })
    };
    let cases = [
        ("stripe/-/live", vec![], true, None),
        ("stripe/-/live", vec![charge(0, None)], true, None),
        ("stripe/-/live", vec![charge(5000, None)], false, None),
        ("square/m1/live", vec![], true, None),
        ("paypal/-/live", vec![], false, None),
        ("stripe/-/live", vec![charge(5000, Some("https://r"))], false, Some("https://r")),
    ];
    for (realm, charges, is_coming, url) in cases {
        let receipt = link(realm, charges.clone());
        assert_eq!((receipt.is_coming, receipt.url.as_deref()), (is_coming, url), "{realm} {charges:?}");
        let parties = Parties { receipt, ..Parties::default() };
        assert_eq!(awaits_receipt(&paid(), &parties), is_coming);
        let refunded = Stored { event_type: "payment.refunded".into(), ..paid() };
        assert!(!awaits_receipt(&refunded, &parties));
        let told = told(To::Customer, &parties);
        assert_eq!(told[0].data["payment"]["receipt_url"].as_str(), url);
    }
}
