//! The order itself: what, when, how much, where it stands, and what its customer can do about it.

use askama::Template;
use sekisho_core::actor::Actor;
use sekisho_core::audit::Role;
use sekisho_core::compensation::RuleAction;
use sekisho_core::fulfilment::FulfilmentStatus;
use sekisho_core::reservation::ReservationStatus;
use sekisho_core::settlement::payment::{Attention, Derived, PaymentStatus, RefundOrderStatus};

use super::frame::{CustomerFrame, Reply};
use super::pay::PayWay;
use super::{Answer, Trouble, Visit, text};
use crate::acts::{self, Refusal, ReservationChange};
use crate::view::show;

/// Where an order stands, in words.
pub struct ShownOrder {
    pub title: String,
    /// The shop's own number of it.
    pub number: String,
    pub starts: Option<String>,
    pub amount: Option<String>,
    /// What is said first: class and words.
    pub lines: Vec<StatusLine>,
    pub hold_until: Option<String>,
    pub cancel_until: Option<String>,
    pub may_cancel: bool,
    pub is_cancelled: bool,
}

/// One thing of an order, and where it stands.
pub struct StatusLine {
    pub of: &'static str,
    /// `good`, `wait`, `bad` or `plain`.
    pub class: &'static str,
    pub words: &'static str,
}

impl ShownOrder {
    pub fn of(visit: &Visit) -> Self {
        let (order, lang, policy) = (&visit.order, visit.lang, &visit.shop.policy);
        let derived = order.payment.as_ref().map(Derived::of);
        let reservation = order.reservation.as_ref();
        let status = reservation.map(|one| one.status(visit.at, policy.grace_ms));
        let mut lines = Vec::new();
        if let Some(status) = status {
            let class = match status {
                ReservationStatus::Hold => "wait",
                ReservationStatus::Confirmed => "good",
                ReservationStatus::Expired | ReservationStatus::Cancelled => "plain",
            };
            lines.push(StatusLine {
                of: lang.t("Reservation", "ご予約"),
                class,
                words: text::reservation(status, lang),
            });
        }
        lines.extend(derived.as_ref().map(|money| payment_line(visit, money)));
        let is_stopped = order.fulfilment.as_ref().is_some_and(|one| one.stopped_at.is_some());
        if let Some(made) = order.fulfilment.as_ref().filter(|_| !is_stopped) {
            let status = made.status(policy.attempts);
            let class = match status {
                FulfilmentStatus::Waiting => "plain",
                FulfilmentStatus::Processing => "wait",
                FulfilmentStatus::Done => "good",
                FulfilmentStatus::Failed => "bad",
            };
            let of = lang.t("Your order", "制作状況");
            lines.push(StatusLine { of, class, words: text::fulfilment(status, lang) });
        }
        let reference = reservation.and_then(|one| one.ours.reference.clone());
        let named = order.fulfilment.as_ref().and_then(|one| one.ours.name.clone());
        let mut asked = order.payment.iter().flat_map(|payment| payment.ours.values());
        let described = asked.find_map(|ours| ours.description.clone());
        let is_held = status == Some(ReservationStatus::Hold);
        let is_confirmed = status == Some(ReservationStatus::Confirmed);
        let cancel_until = reservation.and_then(|one| one.cancel_until(policy.cancel_until_ms));
        Self {
            title: order
                .title
                .clone()
                .or(described)
                .or(named)
                .unwrap_or_else(|| lang.t("Your order", "ご注文").to_owned()),
            number: reference.unwrap_or_else(|| order.id.clone()),
            starts: reservation.and_then(|one| one.ours.starts_at).map(|at| visit.time(at)),
            amount: derived.as_ref().and_then(|money| {
                let amount = if money.amount > 0 { money.amount } else { money.received };
                Some(show::money(amount, money.currency?.as_str()))
            }),
            lines,
            hold_until: reservation.filter(|_| is_held).map(|one| visit.time(one.until)),
            cancel_until: cancel_until.filter(|_| is_confirmed).map(|at| visit.time(at)),
            may_cancel: reservation.is_some_and(|one| {
                one.may_customer_cancel(visit.at, policy.grace_ms, policy.cancel_until_ms)
            }),
            is_cancelled: status == Some(ReservationStatus::Cancelled),
        }
    }
}

/// Where the money stands: what goes back is said before what came.
fn payment_line(visit: &Visit, money: &Derived) -> StatusLine {
    let (lang, facts) = (visit.lang, visit.order.payment.as_ref());
    let has = |wanted: RefundOrderStatus| {
        facts.is_some_and(|facts| {
            facts.refund_orders.iter().any(|(key, order)| facts.refund_order_status(key, order) == wanted)
        })
    };
    let failed = match money.attention {
        Some(Attention::RefundFailed | Attention::RefundGivenUp) => true,
        Some(_) | None => has(RefundOrderStatus::Failed),
    };
    let (class, words) = if failed {
        (
            "bad",
            lang.t(
                "The refund did not go through. We will contact you.",
                "返金できませんでした。担当者よりご連絡いたします。",
            ),
        )
    } else if money.status == PaymentStatus::Refunded {
        ("good", lang.t("Refunded", "返金済み"))
    } else if money.refund_pending > 0 || has(RefundOrderStatus::Pending) {
        ("wait", lang.t("Refund on its way", "返金手続き中"))
    } else if has(RefundOrderStatus::Ordered) || has(RefundOrderStatus::HeldBack) {
        ("wait", lang.t("We are arranging your refund", "返金を準備しています"))
    } else {
        match money.status {
            PaymentStatus::Paid => ("good", lang.t("Paid", "お支払い済み")),
            PaymentStatus::PartiallyRefunded => ("good", lang.t("Partly refunded", "一部返金済み")),
            PaymentStatus::Processing => ("wait", lang.t("Waiting for your payment", "お支払い待ち")),
            PaymentStatus::PartiallyPaid => ("wait", lang.t("Partly paid", "一部お支払い済み")),
            PaymentStatus::Failed => ("bad", lang.t("Payment failed", "お支払いエラー")),
            PaymentStatus::Unpaid => ("wait", lang.t("Not paid yet", "お支払い前")),
            PaymentStatus::Expired | PaymentStatus::Cancelled | PaymentStatus::Refunded => {
                ("plain", lang.t("Not paid", "お支払いなし"))
            }
        }
    };
    StatusLine { of: lang.t("Payment", "お支払い"), class, words }
}

#[derive(Template)]
#[template(path = "customer/order.html")]
struct OrderPage {
    f: CustomerFrame,
    order: ShownOrder,
    /// What is promised because it could not be made, and by when.
    promise: Option<(String, Option<String>)>,
    /// Where what was made is.
    made_at: Option<String>,
    is_unconfirmed: bool,
    pay: Option<PayWay>,
    cancel: String,
    contact: String,
    here: String,
}

#[expect(clippy::unused_async, reason = "it answers as every page does")]
pub async fn show(visit: Visit) -> Answer {
    Ok(Reply::page(&page(&visit, false)))
}

/// Back from paying. That somebody came back proves nothing: until the provider says so, it is being confirmed.
#[expect(clippy::unused_async, reason = "it answers as every page does")]
pub async fn thanks(visit: Visit) -> Answer {
    Ok(Reply::page(&page(&visit, !is_paid(&visit))))
}

pub fn is_paid(visit: &Visit) -> bool {
    visit.order.payment.as_ref().is_none_or(|payment| match Derived::of(payment).status {
        PaymentStatus::Paid | PaymentStatus::PartiallyRefunded | PaymentStatus::Refunded => true,
        PaymentStatus::Unpaid
        | PaymentStatus::Processing
        | PaymentStatus::Failed
        | PaymentStatus::Expired
        | PaymentStatus::Cancelled
        | PaymentStatus::PartiallyPaid => false,
    })
}

fn page(visit: &Visit, is_unconfirmed: bool) -> OrderPage {
    let order = ShownOrder::of(visit);
    let made = visit.order.fulfilment.as_ref();
    let status = made.map(|one| one.status(visit.shop.policy.attempts));
    let goes_back = made.is_some_and(|one| one.downgraded_at.is_some() || one.stopped_at.is_some());
    let promise = (status == Some(FulfilmentStatus::Failed) && !goes_back).then(|| promise(visit));
    let made_at = made.filter(|_| status == Some(FulfilmentStatus::Done) && !goes_back);
    let made_at = made_at.and_then(|one| one.newest()).and_then(|(_, run)| run.url.clone());
    OrderPage {
        f: CustomerFrame::of(visit, "", &order.title),
        promise,
        made_at: made_at.filter(|url| url.starts_with("https://")),
        is_unconfirmed,
        pay: (!is_paid(visit) && !is_unconfirmed && !order.is_cancelled)
            .then(|| PayWay::of(visit, 0))
            .flatten(),
        cancel: visit.link("cancel"),
        contact: visit.link("contact"),
        here: visit.link(if is_unconfirmed { "thanks" } else { "" }),
        order,
    }
}

/// What happens because it could not be made. A refund is promised only while a rule will make it.
fn promise(visit: &Visit) -> (String, Option<String>) {
    let by = visit.order.refund_by.map(|at| visit.time(at));
    let rules = visit.shop.policy.rules.iter();
    let refunds = rules.filter(|rule| rule.is_enabled && rule.action == RuleAction::Refund);
    let within = refunds.filter(|rule| rule.trigger == "RENDER_FAILURE").map(|rule| rule.after_ms).min();
    let sentence = match within.filter(|_| by.is_some()) {
        Some(within) => text::promise(visit.lang, within),
        None => text::problem(visit.lang).to_owned(),
    };
    (sentence, by)
}

#[derive(Template)]
#[template(path = "customer/failed.html")]
struct FailedPage {
    f: CustomerFrame,
    order: ShownOrder,
    /// Too often: a person should help.
    is_too_often: bool,
    retry: Option<PayWay>,
    contact: String,
    back: String,
}

/// The payment did not go through.
#[expect(clippy::unused_async, reason = "it answers as every page does")]
pub async fn failed(visit: Visit) -> Answer {
    if is_paid(&visit) && visit.order.payment.is_some() {
        return Ok(Reply::Go(visit.link("")));
    }
    let payment = visit.order.payment.as_ref();
    let told = visit.param("try").and_then(|text| text.parse::<u32>().ok());
    let known = payment.map_or(0, |payment| Derived::of(payment).failed_tries);
    let newest = payment.and_then(|payment| payment.newest_try()).map_or(0, |(number, _)| number);
    let too_often = visit.shop.policy.checkout.retries;
    Ok(Reply::page(&FailedPage {
        f: CustomerFrame::of(&visit, "failed", visit.lang.t("Payment failed", "お支払いエラー")),
        order: ShownOrder::of(&visit),
        is_too_often: told.is_some_and(|told| told >= too_often) || known >= too_often as usize,
        retry: PayWay::of(&visit, told.unwrap_or(newest)),
        contact: visit.link("contact"),
        back: visit.link(""),
    }))
}

#[derive(Template)]
#[template(path = "customer/cancel.html")]
struct CancelPage {
    f: CustomerFrame,
    order: ShownOrder,
    /// Whether money goes back with it.
    refunds: bool,
    action: String,
    contact: String,
    back: String,
}

#[expect(clippy::unused_async, reason = "it answers as every page does")]
pub async fn ask_to_cancel(visit: Visit) -> Answer {
    Ok(Reply::page(&cancel_page(&visit)))
}

fn cancel_page(visit: &Visit) -> CancelPage {
    let money = visit.order.payment.as_ref().map(Derived::of);
    CancelPage {
        f: CustomerFrame::of(visit, "cancel", visit.lang.t("Cancel your order", "キャンセル")),
        order: ShownOrder::of(visit),
        refunds: money.is_some_and(|money| money.received > money.refunded),
        action: visit.link("cancel"),
        contact: visit.link("contact"),
        back: visit.link(""),
    }
}

/// Cancels, once: the second click finds it cancelled and gets the same page.
pub async fn cancel(visit: Visit) -> Answer {
    if visit.order.reservation.is_none() {
        return Err(Trouble::Unknown);
    }
    // By a clock that may be wrong, nobody is told that it is too late.
    if !visit.shop.node.clock_is_sure() {
        return Err(Trouble::Later);
    }
    let (shop, id) = (&visit.shop, &visit.order.id);
    let actor = Actor { name: id, role: Role::Customer, tenant: None, at: visit.at };
    let change = ReservationChange::Cancel { reason: "cancelled by the customer".into(), refund: true };
    let done =
        acts::change_reservation(&*shop.store, &shop.node.env, &shop.policy, id, &change, None, &actor).await;
    match done {
        Ok(_) => Ok(Reply::Go(visit.link(""))),
        Err(Refusal::Conflict(_)) => Ok(Reply::Go(visit.link("cancel"))),
        Err(Refusal::Store(error)) => Err(super::later(&error)),
        Err(_) => Err(Trouble::Later),
    }
}
