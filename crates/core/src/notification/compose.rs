//! What is told to whom because of an event: the notices of one rule, with everything a template may ask for.
//!
//! Whoever has no address, or wants no mail, gets a notice all the same, which says so: the record must answer why
//! nothing came.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::alert::in_words;
use super::incident::Incident;
use super::notice::Step;
use super::order_alert::of_order;
use super::ordered::{OrderParty, led_to};
use super::rule::{NotifyRule, To};
use super::{Audience, Notice, NoticeStatus};
use crate::directory::{Customer, Register, Staff, Tenant};
use crate::event::Stored;
use crate::language::Language;
use crate::mail_address::MailAddress;
use crate::settlement::{WITH_RECEIPTS, payment};
use crate::source_name::is_own;
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
            return Self::new(now, NoticeStatus::Off).because("notifications_off", note);
        }
        if person.address.is_none() {
            let note = "no mail address is known; enter one, then resend with `--to`";
            return Self::new(now, NoticeStatus::Failed).because("no_address", note);
        }
        Self::new(now, NoticeStatus::Queued)
    }
}

/// Whom an announcement names. What a provider writes into its own events names nobody of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    pub tenant: Option<String>,
    pub customer: Option<String>,
    pub payment: Option<String>,
    /// Of an order: the reservation, and what is made.
    pub reservation: Option<String>,
    pub fulfilment: Option<String>,
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
            payment: match body["data"]["object"].as_str() {
                Some("payment") => text(&body["data"]["id"]),
                Some("reservation" | "fulfilment") => text(&body["data"]["payment"]),
                _ => None,
            },
            reservation: match body["data"]["object"].as_str() {
                Some("reservation") => text(&body["data"]["id"]),
                Some("fulfilment") => text(&body["data"]["reservation"]),
                _ => None,
            },
            fulfilment: text(&body["data"]["id"]).filter(|_| body["data"]["object"] == "fulfilment"),
        }
    }

    /// What must be known of them.
    pub fn keys(&self) -> Vec<Key> {
        let own = [self.tenant_key(), self.customer_key(), self.payment_key(), self.reservation_key()];
        own.into_iter().flatten().collect()
    }

    /// What those lead to, as far as customers are told of it: the reservation of a payment, and its slot.
    pub fn leads_to(&self, known: &Loaded) -> Vec<Key> {
        led_to(self, known)
    }

    fn tenant_key(&self) -> Option<Key> {
        self.tenant.as_ref().map(|id| Register::Tenants.key(None, id))
    }

    /// The customer of this very tenant: one of another tenant, or of none, is somebody else, and its address is not for
    /// this tenant to use or to see.
    fn customer_key(&self) -> Option<Key> {
        self.customer.as_ref().map(|id| Register::Customers.key(self.tenant.as_deref(), id))
    }

    pub(super) fn reservation_key(&self) -> Option<Key> {
        self.reservation.as_ref().map(|id| Key::new(Kind::Reservation, id))
    }

    pub(super) fn payment_key(&self) -> Option<Key> {
        self.payment.as_ref().map(|id| Key::new(Kind::Payment, id))
    }

    /// Who they are. Whoever is not in the directory is known by what was typed at the till.
    pub fn parties(&self, known: &Loaded, staff: &[(String, Staff)]) -> Parties {
        let tenant = self.tenant.as_ref().map(|id| {
            TenantPlace::of_tenant(id, &read::<Tenant>(known, self.tenant_key()).unwrap_or_default())
        });
        let customer = self.customer.as_ref().map(|id| {
            Person::of_customer(id, &read::<Customer>(known, self.customer_key()).unwrap_or_default())
        });
        let mut customer = customer.unwrap_or_default();
        let state = self.payment_key().and_then(|key| known.states.get(&key));
        let payment = state.and_then(|state| payment::Facts::parse(&state.facts).ok());
        let order = OrderParty::of(self, known, payment.as_ref());
        // What was said for this very order goes before what the directory has.
        customer.address = order.address.clone().or(customer.address);
        customer.language = order.language.or(customer.language);
        if customer.address.is_none() {
            customer.address = payment.as_ref().and_then(|facts| facts.email().cloned());
        }
        Parties {
            tenant,
            customer,
            staff: staff.iter().map(|(id, one)| Person::of_staff(id, one)).collect(),
            receipt: payment.as_ref().map(ReceiptLink::of).unwrap_or_default(),
            order,
        }
    }
}

fn read<T: DeserializeOwned>(known: &Loaded, key: Option<Key>) -> Option<T> {
    let state = known.states.get(&key?).filter(|state| state.is_shown())?;
    serde_json::from_str(&state.facts).ok()
}

/// Whose event it is, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parties {
    pub tenant: Option<TenantPlace>,
    pub customer: Person,
    pub staff: Vec<Person>,
    pub receipt: ReceiptLink,
    pub order: OrderParty,
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
pub struct TenantPlace {
    pub id: String,
    pub name: Option<String>,
    pub language: Option<Language>,
    pub time_zone: Option<String>,
}

impl TenantPlace {
    pub fn of_tenant(id: &str, tenant: &Tenant) -> Self {
        Self {
            id: id.to_owned(),
            name: tenant.name.clone(),
            language: tenant.language,
            time_zone: tenant.time_zone.as_ref().map(ToString::to_string),
        }
    }
}

pub fn compose(
    rule: &NotifyRule,
    event: &Stored,
    parties: &Parties,
    house: &House,
    now: Time,
) -> Vec<Notice> {
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
            trace: None,
            steps: vec![match rule.to {
                To::Place => Step::new(now, NoticeStatus::Queued),
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
    data["payment"] = json!(of_object("payment").or_else(|| parties.order.payment.clone()));
    // What was announced stays as it was said; the receipt may have come later.
    if data["payment"]["receipt_url"].is_null() && data["payment"].is_object() {
        data["payment"]["receipt_url"] = json!(parties.receipt.url);
    }
    // What was announced by an older version knows no link.
    if let Some(payment) = data["payment"].as_object_mut() {
        payment.entry("dashboard_url").or_insert(Value::Null);
    }
    data["billing"] = json!(of_object("billing"));
    data["about"] = if own { body["about"].clone() } else { Value::Null };
    data["fulfilment"] = json!(of_object("fulfilment"));
    if let Some(made) = data["fulfilment"].as_object_mut() {
        made.insert("error".into(), body["about"]["error"].clone());
        made.insert("refund_by".into(), body["about"]["refund_by"].clone());
    }
    data["reservation"] = json!(of_object("reservation"));
    if let Some(reserved) = data["reservation"].as_object_mut() {
        reserved.insert("title".into(), json!(parties.order.title));
    }
    data["order_page"] = json!(parties.order.page);
    if own {
        data["incident"] = json!(Incident::of(&event.event_type, body));
    }
    data["alert"] = match of_object("alert") {
        Some(alert) => in_words(alert, language),
        None if own => of_order(&event.event_type, body, language).unwrap_or_else(|| alert_of(event)),
        None => alert_of(event),
    };
    data
}

/// What every notice's data begins with.
pub fn frame(tenant: Option<&TenantPlace>, person: &Person, house: &House, language: Language) -> Value {
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
        "reservation": null,
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
pub mod tests;
