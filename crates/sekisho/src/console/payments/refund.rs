//! Giving money back: how much is left, what an order would do, and then the order itself.

use askama::Template;
use sekisho_core::money::parse_decimal;
use sekisho_core::settlement::payment::{Derived, Facts, Refundable};

use super::address;
use crate::acts::{self, RefundOrderRequest};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Reply, Visit};
use crate::console::trouble::{Resource, Trouble};
use crate::token;
use crate::types::{RefundOrder, RefundOrdered};
use crate::view::show as shown_as;
use crate::{acts::Refusal, queries};

/// What Stripe passes on, with their words, and what is kept here alone.
const REASONS: [(&str, &str, &str); 3] = [
    ("requested_by_customer", "Requested by the customer", "お客様の依頼"),
    ("duplicate", "Paid twice", "二重払い"),
    ("other", "Other", "その他"),
];

#[derive(Template)]
#[template(path = "console/refund.html")]
struct RefundPage {
    f: Frame,
    id: String,
    reference: String,
    received: String,
    refunded: String,
    left: Vec<String>,
    /// As typed.
    amount: String,
    reason: String,
    notes: String,
    reasons: [(&'static str, &'static str, &'static str); 3],
    unit: String,
    /// What the order would do.
    preview: Option<RefundOrdered>,
    preview_amount: String,
    refused: Option<String>,
    /// Names this very form, so that two clicks are one order.
    nonce: String,
}

/// An order as the pages show it.
pub(super) struct OrderRow {
    pub key: String,
    pub status: String,
    pub amount: String,
    pub by: String,
    pub reason: String,
    pub notes: String,
    pub error: String,
    pub refunds: String,
    pub at: sekisho_core::Time,
    pub is_held_back: bool,
}

impl OrderRow {
    pub fn of(order: RefundOrder) -> Self {
        Self {
            amount: shown_as::money(order.amount, order.currency.as_deref().unwrap_or_default()),
            is_held_back: order.status == "held_back",
            key: order.order,
            status: order.status,
            by: order.by,
            reason: order.reason,
            notes: order.notes.unwrap_or_default(),
            error: order.error.unwrap_or_default(),
            refunds: order.refunds.join(", "),
            at: order.ordered_at,
        }
    }
}

/// The form; with something typed in it, what would happen.
pub(super) async fn ask(visit: Visit) -> Answer {
    let store = &*visit.console.store;
    let state = queries::payment_state(store, &visit.id).await?;
    let state = state.ok_or_else(|| Trouble::unknown(Resource::Payment, &visit.id))?;
    let facts = Facts::parse(&state.facts).map_err(sekisho_store::Error::corrupt)?;
    let derived = Derived::of(&facts);
    let currency = derived.currency.map(|currency| currency.to_string()).unwrap_or_default();
    let money = |amount: i64| shown_as::money(amount, &currency);
    let left = |one: Refundable| {
        shown_as::money(one.left, &one.currency.map(|currency| currency.to_string()).unwrap_or_default())
    };
    let text = |name: &str| visit.param(name).unwrap_or_default().to_owned();
    // The form's own name stays in the address: whoever goes back to it and clicks again finds the same order.
    let nonce = visit.param("nonce").filter(|nonce| is_nonce(nonce)).map(str::to_owned);
    let nonce = nonce.unwrap_or_else(token::generate::<12>);
    if facts.refund_orders.contains_key(&key_of(&nonce)) {
        let words = ("This refund was ordered already.", "この返金はすでに指示済みです。");
        return Reply::done(address(&state.key.id), visit.lang.t(words.0, words.1));
    }
    let (mut preview, mut refused) = (None, None);
    if visit.param("reason").is_some() {
        match typed(&facts, &text("amount"), &text("reason"), &text("notes"), String::new()) {
            Ok(order) => {
                let order = RefundOrderRequest { dry_run: true, ..order };
                let policy = &visit.console.known.orders;
                match acts::order_refund(
                    store,
                    visit.console.env(),
                    policy,
                    &state.key.id,
                    &order,
                    None,
                    &visit.actor(),
                )
                .await
                {
                    Ok(answered) => preview = serde_json::from_value(answered.answer).ok(),
                    Err(Refusal::Store(error)) => return Err(error.into()),
                    Err(refusal) => refused = Some(refusal),
                }
            }
            Err(refusal) => refused = Some(refusal),
        }
    }
    let all = facts.refundables().into_iter().filter(|one| one.left > 0);
    let preview: Option<RefundOrdered> = preview;
    Reply::page(&RefundPage {
        id: state.key.id.clone(),
        reference: derived.reference.clone().unwrap_or_default(),
        received: money(derived.received),
        refunded: money(derived.gone()),
        left: all.map(left).collect(),
        amount: text("amount"),
        reason: text("reason"),
        notes: text("notes"),
        reasons: REASONS,
        unit: currency.to_uppercase(),
        preview_amount: preview.as_ref().map(|one| money(one.order.amount)).unwrap_or_default(),
        preview,
        refused: refused.map(|refusal| Trouble::from(refusal).line(visit.lang)),
        nonce,
        f: visit.frame("payments", visit.lang.t("Refund", "返金")),
    })
}

/// Orders what the form says.
pub(super) async fn order(visit: Visit) -> Answer {
    let store = &*visit.console.store;
    let home = address(&visit.id);
    let state = queries::payment_state(store, &visit.id).await?;
    let state = state.ok_or_else(|| Trouble::unknown(Resource::Payment, &visit.id))?;
    let facts = Facts::parse(&state.facts).map_err(sekisho_store::Error::corrupt)?;
    let field = |name: &str| visit.field(name).unwrap_or_default();
    let nonce = field("nonce");
    if !is_nonce(nonce) {
        return Err(Trouble::wrong(
            visit.lang.t("open the form again", "フォームを開き直してください").into(),
        ));
    }
    let ordered = match typed(&facts, field("amount"), field("reason"), field("notes"), key_of(nonce)) {
        Ok(order) => {
            let policy = &visit.console.known.orders;
            acts::order_refund(
                store,
                visit.console.env(),
                policy,
                &state.key.id,
                &order,
                None,
                &visit.actor(),
            )
            .await
        }
        Err(refusal) => Err(refusal),
    };
    let words = (
        "The refund was ordered. What becomes of it is shown here.",
        "返金を指示しました。経過はこの画面に表示されます。",
    );
    visit.after(&home, ordered, words)
}

fn is_nonce(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// What a form's order is named by.
fn key_of(nonce: &str) -> String {
    format!("console/{nonce}")
}

/// Lets one go that was held back.
pub(super) async fn release(visit: Visit) -> Answer {
    let key = visit.field("order").unwrap_or_default().to_owned();
    let released = acts::release_refund(
        &*visit.console.store,
        visit.console.env(),
        &visit.console.known.orders,
        &visit.id,
        &key,
        &visit.actor(),
    )
    .await;
    let words = ("The refund was released.", "返金を承認しました。");
    visit.after(&address(&visit.id), released, words)
}

fn typed(
    facts: &Facts,
    amount: &str,
    reason: &str,
    notes: &str,
    key: String,
) -> acts::Result<RefundOrderRequest> {
    let text = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let currency = Derived::of(facts).currency;
    let amount = match (text(amount), currency) {
        (None, _) => None,
        (Some(typed), Some(currency)) => {
            let amount = parse_decimal(&typed.replace(',', ""), currency).filter(|amount| *amount > 0);
            let wrong = || {
                Refusal::Invalid(format!(
                    "{typed:?} is no amount in {currency}; expected one such as 1200 or 12.50"
                ))
            };
            Some(amount.ok_or_else(wrong)?)
        }
        (Some(_), None) => {
            return Err(Refusal::Conflict(
                "nothing was received for this payment, so nothing can be refunded".into(),
            ));
        }
    };
    let reason = REASONS.into_iter().find(|(name, ..)| *name == reason).map(|(name, ..)| name);
    let reason = reason.ok_or_else(|| Refusal::Invalid("choose a reason".into()))?;
    Ok(RefundOrderRequest {
        key,
        amount,
        currency,
        reason: reason.to_owned(),
        notes: text(notes).map(|text| text.chars().filter(|one| !one.is_control()).take(1_000).collect()),
        automatic: false,
        dry_run: false,
    })
}

/// Orders of a payment that was shown.
pub(super) fn rows(shown: &mut crate::types::Payment) -> Vec<OrderRow> {
    std::mem::take(&mut shown.refund_orders).into_iter().map(OrderRow::of).collect()
}

/// Whether something is left to give back.
pub(super) fn is_refundable(facts: &Facts) -> bool {
    facts.refundables().iter().any(|one| one.left > 0)
}
