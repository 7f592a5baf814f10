//! What is told to whom because of an event: the notices of one rule, with everything a template may ask for.
//!
//! Whoever has no address, or wants no mail, gets a notice all the same, which says so: the record must answer why
//! nothing came.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::alert::in_words;
use super::directory::{Customer, Staff, Tenant};
use super::notice::Step;
use super::rule::{Rule, To};
use super::{Audience, Language, MailAddress, Notice, Status};
use crate::event::Stored;
use crate::settlement::{WITH_RECEIPTS, is_own, payment};
use crate::state::{Key, Kind, Loaded};
use crate::time::Time;

/// What holds for everything that is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct House {
    pub language: Language,
    /// IANA name.
    pub time_zone: String,
    pub brand: Brand,
    pub operators: Vec<MailAddress>,
}

/// Who speaks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Brand {
    pub name: String,
    pub url: Option<String>,
    pub support: Option<String>,
}

/// Somebody who may be told something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    pub id: String,
    pub name: Option<String>,
    pub address: Option<MailAddress>,
    pub language: Option<Language>,
    /// Wants no notices.
    pub is_off: bool,
}

impl Step {
    /// Where a notice to somebody begins: in the queue, or at its end.
    pub fn first(person: &Person, now: Time) -> Self {
        if person.is_off {
            let note = "this person has notifications switched off; switch them on to have the next one sent";
            return Self::new(now, Status::Off).because("notifications_off", note);
        }
        if person.address.is_none() {
            let note = "no mail address is known; enter one, then resend with `--to`";
            return Self::new(now, Status::Failed).because("no_address", note);
        }
        Self::new(now, Status::Queued)
    }
}

/// Whom an announcement names. What a provider writes into its own events names nobody of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    pub tenant: Option<String>,
    pub customer: Option<String>,
    pub payment: Option<String>,
}

impl Named {
    pub fn by(event: &Stored) -> Self {
        if !is_own(event) {
            return Self::default();
        }
        let body: Value = serde_json::from_slice(&event.body).unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            tenant: text(&body["tenant"]).or_else(|| text(&body["data"]["tenant"])),
            customer: text(&body["data"]["customer"]),
            payment: text(&body["data"]["id"]).filter(|_| body["data"]["object"] == "payment"),
        }
    }

    /// What must be known of them.
    pub fn keys(&self) -> Vec<Key> {
        let key = |kind, id: &Option<String>| id.as_ref().map(|id| Key::new(kind, id));
        let keys = [
            key(Kind::Tenant, &self.tenant),
            key(Kind::Customer, &self.customer),
            key(Kind::Payment, &self.payment),
        ];
        keys.into_iter().flatten().collect()
    }

    /// Who they are. Whoever is not in the directory is known by what was typed at the till.
    pub fn parties(&self, known: &Loaded, staff: &[(String, Staff)]) -> Parties {
        let tenant = self
            .tenant
            .as_ref()
            .map(|id| Place::of_tenant(id, &read::<Tenant>(known, Kind::Tenant, id).unwrap_or_default()));
        let customer = self.customer.as_ref().map(|id| {
            Person::of_customer(id, &read::<Customer>(known, Kind::Customer, id).unwrap_or_default())
        });
        let mut customer = customer.unwrap_or_default();
        let payment = self.payment.as_ref().and_then(|id| read::<payment::Facts>(known, Kind::Payment, id));
        if customer.address.is_none() {
            customer.address = payment.as_ref().and_then(|facts| facts.email().cloned());
        }
        Parties {
            tenant,
            customer,
            staff: staff.iter().map(|(id, one)| Person::of_staff(id, one)).collect(),
            receipt: payment.as_ref().map(ReceiptLink::of).unwrap_or_default(),
        }
    }
}

fn read<T: DeserializeOwned>(known: &Loaded, kind: Kind, id: &str) -> Option<T> {
    let state = known.states.get(&Key::new(kind, id)).filter(|state| state.is_shown())?;
    serde_json::from_str(&state.facts).ok()
}

/// Whose event it is, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parties {
    pub tenant: Option<Place>,
    pub customer: Person,
    pub staff: Vec<Person>,
    pub receipt: ReceiptLink,
}

/// Where the provider shows a receipt of the payment, as far as that is known by now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiptLink {
    pub url: Option<String>,
    /// The charge that brings it is not known yet: the event that says the money came was faster.
    pub is_coming: bool,
}

impl ReceiptLink {
    fn of(facts: &payment::Facts) -> Self {
        let url = facts.charges.values().rev().find_map(|charge| charge.receipt_url.clone());
        let provider = |realm: &String| realm.split('/').next().map(str::to_owned).unwrap_or_default();
        let can_come = facts.realms.iter().map(provider).any(|name| WITH_RECEIPTS.contains(&&*name));
        let is_charged = facts.charges.values().any(|charge| charge.captured > 0);
        Self { is_coming: url.is_none() && can_come && !is_charged, url }
    }
}

/// Announcements that a receipt belongs to.
const WITH_RECEIPT: &str = "payment.paid";

/// Should one wait a little before whoever paid is told of this, because the receipt is on its way?
pub fn awaits_receipt(event: &Stored, parties: &Parties) -> bool {
    is_own(event) && event.event_type == WITH_RECEIPT && parties.receipt.is_coming
}

impl Person {
    pub fn of_staff(id: &str, staff: &Staff) -> Self {
        Self {
            id: id.to_owned(),
            name: staff.name(),
            address: Some(staff.email.clone()),
            language: staff.language,
            is_off: !staff.notifications,
        }
    }

    pub fn of_customer(id: &str, customer: &Customer) -> Self {
        Self {
            id: id.to_owned(),
            name: customer.name.clone(),
            address: customer.email.clone(),
            language: customer.language,
            is_off: false,
        }
    }
}

/// A tenant: an office, a shop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub id: String,
    pub name: Option<String>,
    pub language: Option<Language>,
    pub time_zone: Option<String>,
}

impl Place {
    pub fn of_tenant(id: &str, tenant: &Tenant) -> Self {
        Self {
            id: id.to_owned(),
            name: tenant.name.clone(),
            language: tenant.language,
            time_zone: tenant.time_zone.as_ref().map(ToString::to_string),
        }
    }
}

pub fn compose(rule: &Rule, event: &Stored, parties: &Parties, house: &House, now: Time) -> Vec<Notice> {
    let body: Value = serde_json::from_slice(&event.body).unwrap_or_default();
    let fact = match rule.every_ms {
        Some(every) => format!("{}/{}", rule.name, event.received_at.ms().div_euclid(every.max(1))),
        None => format!("{}/{}/{}", event.source, event.event_id, rule.name),
    };
    let payment = Named::by(event).payment;
    let notice = |whom: &str, audience, person: &Person| {
        let language = person.language.or(parties.tenant.as_ref().and_then(|tenant| tenant.language));
        let language = language.unwrap_or(house.language);
        Notice {
            key: format!("{fact}/{whom}"),
            channel: rule.channel.clone(),
            audience,
            to: person.address.clone(),
            name: person.name.clone(),
            language,
            template: rule.template.clone(),
            data: data(event, &body, parties, person, house, language),
            details: Value::Null,
            // What operators hear is not for a tenant to see.
            tenant: parties
                .tenant
                .as_ref()
                .filter(|_| audience != Audience::Operator)
                .map(|tenant| tenant.id.clone()),
            payment: payment.clone(),
            event: Some(event.seq.as_event().to_string()),
            batch: None,
            message: None,
            again: 0,
            steps: vec![match rule.to {
                To::Place => Step::new(now, Status::Queued),
                To::Customer | To::Staff | To::Operators => Step::first(person, now),
            }],
        }
    };
    match rule.to {
        To::Place => vec![notice("channel", Audience::Operator, &Person::default())],
        To::Customer => vec![notice("customer", Audience::Customer, &parties.customer)],
        To::Staff => {
            let each =
                parties.staff.iter().map(|one| notice(&format!("staff/{}", one.id), Audience::Staff, one));
            each.collect()
        }
        To::Operators => {
            let operator = |address: &MailAddress| {
                let person = Person { address: Some(address.clone()), ..Person::default() };
                notice(&format!("operator/{}", address.whole()), Audience::Operator, &person)
            };
            house.operators.iter().map(operator).collect()
        }
    }
}

/// Everything a template may ask for. Every key is there; what is not known is null.
fn data(
    event: &Stored,
    body: &Value,
    parties: &Parties,
    person: &Person,
    house: &House,
    language: Language,
) -> Value {
    let own = is_own(event);
    let of_object = |object: &str| {
        let mut data = (own && body["data"]["object"] == object).then(|| body["data"].clone())?;
        // What it was derived from is not for telling.
        data.as_object_mut().map(|data| data.remove("facts"));
        Some(data)
    };
    let mut data = frame(parties.tenant.as_ref(), person, house, language);
    let customer = Some(&parties.customer).filter(|customer| !customer.id.is_empty());
    data["customer"] = json!(customer.map(|customer| json!({ "id": customer.id, "name": customer.name })));
    data["event"] = json!({
        "id": event.event_id,
        "type": event.event_type,
        "at": event.created_at.unwrap_or(event.received_at),
    });
    data["payment"] = json!(of_object("payment"));
    // What was announced stays as it was said; the receipt may have come later.
    if data["payment"]["receipt_url"].is_null() && data["payment"].is_object() {
        data["payment"]["receipt_url"] = json!(parties.receipt.url);
    }
    data["billing"] = json!(of_object("billing"));
    data["about"] = if own { body["about"].clone() } else { Value::Null };
    data["fulfilment"] = json!(of_object("fulfilment"));
    data["alert"] = match of_object("alert") {
        Some(alert) => in_words(alert, language),
        None => alert_of(event),
    };
    data
}

/// What every notice's data begins with.
pub fn frame(tenant: Option<&Place>, person: &Person, house: &House, language: Language) -> Value {
    let zone = tenant.and_then(|tenant| tenant.time_zone.as_ref()).unwrap_or(&house.time_zone);
    json!({
        "recipient": { "name": person.name, "language": language },
        "tenant": tenant.map(|tenant| json!({ "id": tenant.id, "name": tenant.name })),
        "customer": null,
        "time_zone": zone,
        "brand": { "name": house.brand.name, "url": house.brand.url, "support": house.brand.support },
        "event": null,
        "payment": null,
        "billing": null,
        "about": null,
        "reminder": null,
        "alert": null,
        "fulfilment": null,
    })
}

/// Any event can be told to an operator: then it is an alert about itself.
fn alert_of(event: &Stored) -> Value {
    let object = event.object.as_ref().map(|(kind, id)| format!("{kind} {id}"));
    let fields = [("event", event.event_id.clone()), ("source", event.source.to_string())];
    let fields = fields.into_iter().chain(object.map(|object| ("object", object)));
    json!({
        "title": event.event_type,
        "detail": null,
        "happened_at": event.created_at.unwrap_or(event.received_at),
        "link": null,
        "fields": fields.map(|(name, value)| json!({ "name": name, "value": value })).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
pub mod tests {
    use super::super::rule::tests::rule;
    use super::*;
    use crate::delivery::route::tests::stored;
    use crate::settlement::SOURCE;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    fn paid() -> Stored {
        let body = r#"{"id":"stripe/live/pi_1/paid","data":{"object":"payment","id":"pay_1","amount":5000,"currency":"jpy"},"about":{"amount":5000}}"#;
        Stored {
            source: SOURCE.into(),
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
    pub fn notice_to(address: &str, status: Status) -> Notice {
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
        assert_eq!((customer[0].language, customer[0].status()), (Language::En, Status::Queued));
        assert_eq!(customer[0].payment.as_deref(), Some("pay_1"));
        assert_eq!(customer[0].data["payment"]["amount"], 5000);
        let staff = told(To::Staff, &parties);
        assert_eq!(staff.iter().map(Notice::status).collect::<Vec<_>>(), [Status::Queued, Status::Off]);
        assert_eq!(told(To::Operators, &parties)[0].audience, Audience::Operator);
        assert_eq!(told(To::Place, &parties)[0].to, None);
    }

    #[test]
    fn g5_an_announcement_names_its_parties_and_a_providers_event_nobody() {
        let body = r#"{"tenant":"a","data":{"object":"payment","id":"pay_1","customer":"c1"}}"#;
        let own = Stored { source: SOURCE.into(), ..stored(body) };
        let named = Named::by(&own);
        assert_eq!((named.tenant.as_deref(), named.customer.as_deref()), (Some("a"), Some("c1")));
        assert_eq!((named.payment.as_deref(), named.keys().len()), (Some("pay_1"), 3));
        assert_eq!(Named::by(&stored(body)), Named::default());
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

    #[test]
    fn g5_whoever_has_no_address_is_in_the_record_with_the_reason() {
        let notices = told(To::Customer, &Parties::default());
        assert_eq!(notices[0].status(), Status::Failed);
        assert_eq!(notices[0].steps[0].reason.as_deref(), Some("no_address"));
    }

    #[test]
    fn g5_what_is_told_once_in_a_while_has_one_key_for_that_while() {
        let often = Rule { every_ms: Some(600_000), ..rule("alerts", "*", To::Place) };
        let at = |ms| Stored { received_at: Time::from_ms(ms), event_id: format!("e{ms}"), ..paid() };
        let key = |ms| compose(&often, &at(ms), &Parties::default(), &house(), NOW)[0].key.clone();
        assert_eq!(key(600_000), key(1_199_999));
        assert_ne!(key(600_000), key(1_200_000));
    }
}
