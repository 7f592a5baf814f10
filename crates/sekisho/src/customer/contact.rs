//! The form by which a customer asks something about their order. It knows which.

use askama::Template;
use http::StatusCode;
use sekisho_core::actor::Actor;
use sekisho_core::audit::Role;
use sekisho_core::inquiry::{InquiryFacts, NAME_MAX, TEXT_MAX};
use sekisho_core::mail_address::MailAddress;

use super::frame::{CustomerFrame, Reply};
use super::limit::LimitedUse;
use super::order::ShownOrder;
use super::{Answer, Trouble, Visit, text};
use crate::acts::{self, NewInquiry, Refusal};

/// A field that people don't see and programs fill in.
const TRAP: &str = "website";

#[derive(Template)]
#[template(path = "customer/contact.html")]
struct ContactPage {
    f: CustomerFrame,
    order: ShownOrder,
    action: String,
    back: String,
    was_sent: bool,
    name: String,
    email: String,
    text: String,
    wrong: Vec<(&'static str, &'static str)>,
}

impl ContactPage {
    /// What is wrong with a field.
    fn wrong(&self, field: &str) -> Option<&'static str> {
        self.wrong.iter().find(|(name, _)| *name == field).map(|(_, text)| *text)
    }
}

#[expect(clippy::unused_async, reason = "it answers as every page does")]
pub async fn ask(visit: Visit) -> Answer {
    let was_sent = visit.param("sent").is_some();
    Ok(Reply::page(&page(&visit, Vec::new(), was_sent)))
}

pub async fn send(visit: Visit) -> Answer {
    let sent = Reply::Go(format!("{}?sent=1&lang={}", visit.path("contact"), visit.lang.name()));
    if !visit.field(TRAP).is_empty() {
        return Ok(sent);
    }
    let (wrong, email) = check(&visit);
    let Some(email) = email.filter(|_| wrong.is_empty()) else {
        return Ok(Reply::with(StatusCode::UNPROCESSABLE_ENTITY, &page(&visit, wrong, false)));
    };
    let is_allowed = visit.shop.limits.allow(LimitedUse::Contact, &visit.token)
        && visit.shop.limits.allow(LimitedUse::ContactDaily, &visit.token);
    if !is_allowed {
        return Err(Trouble::TooMany);
    }
    let order = &visit.order;
    let of_reservation = order.reservation.as_ref().map(|one| &one.ours);
    let of_fulfilment = order.fulfilment.as_ref().map(|one| &one.ours);
    let tenant = of_reservation.map(|ours| ours.tenant.clone());
    let payment = of_reservation.map(|ours| ours.payment.clone());
    let livemode = of_reservation.map(|ours| ours.livemode);
    let facts = InquiryFacts {
        at: visit.at,
        order: order.id.clone(),
        payment: payment.or_else(|| of_fulfilment.map(|ours| ours.payment.clone())).flatten(),
        tenant: tenant.or_else(|| of_fulfilment.map(|ours| ours.tenant.clone())).flatten(),
        livemode: livemode.or_else(|| of_fulfilment.map(|ours| ours.livemode)).unwrap_or(true),
        name: visit.field("name").trim().to_owned(),
        email,
        text: visit.field("text").trim().replace("\r\n", "\n"),
        language: visit.lang,
        closed: None,
    };
    let actor = Actor { name: &order.id, role: Role::Customer, tenant: None, at: visit.at };
    let store = &*visit.shop.store;
    match acts::receive_inquiry(store, &visit.shop.node.env, NewInquiry { facts }, &actor).await {
        Ok(_) => Ok(sent),
        Err(Refusal::Store(error)) => Err(super::later(&error)),
        Err(_) => Err(Trouble::Later),
    }
}

/// What is wrong with what was written, and the address if it is one.
fn check(visit: &Visit) -> (Vec<(&'static str, &'static str)>, Option<MailAddress>) {
    let lang = visit.lang;
    let mut wrong = Vec::new();
    let is_text = |text: &str, most: usize| {
        let is_odd = text.chars().any(|letter| letter.is_control() && !['\n', '\r', '\t'].contains(&letter));
        !text.trim().is_empty() && text.chars().count() <= most && !is_odd
    };
    if !is_text(visit.field("name"), NAME_MAX) {
        wrong.push((
            "name",
            lang.t(
                "Please write your name (up to 100 characters).",
                "お名前を100文字以内で入力してください。",
            ),
        ));
    }
    let email = visit.field("email").trim().parse::<MailAddress>().ok();
    if email.is_none() {
        wrong.push((
            "email",
            lang.t(
                "Please write your e-mail address, such as taro@example.jp.",
                "メールアドレスを taro@example.jp のように入力してください。",
            ),
        ));
    }
    if !is_text(visit.field("text"), TEXT_MAX) {
        wrong.push((
            "text",
            lang.t(
                "Please write your question (up to 2,000 characters).",
                "お問い合わせ内容を2,000文字以内で入力してください。",
            ),
        ));
    }
    (wrong, email)
}

fn page(visit: &Visit, wrong: Vec<(&'static str, &'static str)>, was_sent: bool) -> ContactPage {
    let (en, ja) = text::CONTACT;
    ContactPage {
        f: CustomerFrame::of(visit, "contact", visit.lang.t(en, ja)),
        order: ShownOrder::of(visit),
        action: visit.link("contact"),
        back: visit.link(""),
        was_sent,
        name: visit.field("name").to_owned(),
        email: visit.field("email").to_owned(),
        text: visit.field("text").to_owned(),
        wrong,
    }
}
