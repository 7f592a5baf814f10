//! One payment: why it stands where it stands, the money, the facts and who told them, all that happened, the books.

use askama::Template;
use sekisho_core::money::Currency;
use sekisho_core::settlement::payment::{Attention, Derived, Facts, SessionStatus};
use sekisho_core::{Seq, Time};
use sekisho_store::EventSummary;
use serde::Serialize;
use serde_json::Value;

use super::address;
use super::refund::{self, OrderRow};
use super::timeline::{self, TimelineItem};
use super::why::why;
use crate::console::frame::Frame;
use crate::console::order_parts::{self, PartRow};
use crate::console::page::{Answer, Reply, Visit};
use crate::console::trouble::{Resource, Trouble};
use crate::queries::{self, Dossier};
use crate::types::Payment;
use crate::view::{self, show};

#[derive(Template)]
#[template(path = "console/payment.html")]
struct PaymentPage {
    f: Frame,
    id: String,
    tone: &'static str,
    why: String,
    status: &'static str,
    attention: Option<&'static str>,
    is_test: bool,
    tenant: String,
    customer: String,
    purpose: String,
    reference: String,
    description: String,
    dashboard_url: String,
    /// Its reservation, what is made for it, and its cases.
    parts: Vec<PartRow>,
    created_at: Time,
    changed_at: Time,
    money: Vec<(&'static str, String)>,
    facts: Vec<FactRow>,
    timeline: Vec<TimelineItem>,
    lines: Vec<LineRow>,
    is_balanced: bool,
    notices: Vec<NoticeRow>,
    names: Vec<String>,
    is_whole: bool,
    refund_orders: Vec<OrderRow>,
    /// Where it can be refunded, by those who may.
    refund: Option<String>,
}

/// Something that the provider or the app said.
struct FactRow {
    kind: &'static str,
    id: String,
    realm: String,
    status: String,
    amount: String,
    note: String,
    told_by: Vec<(String, String)>,
}

struct LineRow {
    at: Time,
    account: String,
    cause: String,
    amount: String,
}

struct NoticeRow {
    id: String,
    at: Time,
    to: String,
    template: String,
    channel: String,
    status: &'static str,
}

pub(super) async fn show(visit: Visit) -> Answer {
    let store = &*visit.console.store;
    let id = &*visit.id;
    let missing = || Trouble::unknown(Resource::Payment, id);
    let state = queries::payment_state(store, id).await?.ok_or_else(missing)?;
    if state.key.id != id {
        return Ok(Reply::Go { to: address(&state.key.id), flash: None });
    }
    let mut shown = view::payment(&state)?;
    view::unlink(store, [&mut shown]).await?;
    let dossier = queries::dossier(store, state, visit.at).await?;
    // A payment without an order around it is not looked after any further.
    let parts = if dossier.facts.members.is_empty() {
        Vec::new()
    } else {
        order_parts::parts(store, &visit.console.known.orders, id, visit.lang, visit.at).await?
    };
    Reply::page(&page(&visit, &dossier, shown.thing, parts))
}

fn page(visit: &Visit, dossier: &Dossier, mut shown: Payment, parts: Vec<PartRow>) -> PaymentPage {
    let (facts, lang) = (&dossier.facts, visit.lang);
    let derived = Derived::of(facts);
    let (tone, why) = why(facts, &derived, lang);
    let id = dossier.state.key.id.clone();
    let f = visit.frame("payments", lang.t("Payment", "決済"));
    let may_see_all = f.may_operate();
    let notices = dossier.notices.iter().map(|(id, notice)| NoticeRow {
        id: id.clone(),
        at: notice.steps.first().map_or(dossier.state.created_at, |step| step.at),
        to: notice.to.as_ref().map_or_else(
            || notice.channel.clone(),
            |to| if may_see_all { to.whole().to_owned() } else { to.masked() },
        ),
        template: notice.template.clone(),
        channel: notice.channel.clone(),
        status: notice.status().name(),
    });
    let sum: i128 = dossier.lines.iter().map(|line| i128::from(line.posting.amount)).sum();
    PaymentPage {
        refund_orders: refund::rows(&mut shown),
        refund: (may_see_all && refund::is_refundable(facts)).then(|| format!("{}/refund", address(&id))),
        id,
        tone: tone.class(),
        why,
        status: derived.status.name(),
        attention: derived.attention.map(Attention::name),
        is_test: facts.livemode == Some(false),
        tenant: shown.tenant.unwrap_or_default(),
        customer: shown.customer.unwrap_or_default(),
        purpose: shown.purpose.unwrap_or_default(),
        reference: shown.reference.unwrap_or_default(),
        description: shown.description.unwrap_or_default(),
        dashboard_url: shown.dashboard_url.unwrap_or_default(),
        parts,
        created_at: dossier.state.created_at,
        changed_at: dossier.state.changed_at,
        money: money(&f, &derived),
        facts: Rows { f: &f, facts, events: &dossier.events }.all(),
        timeline: timeline::of(dossier, &f),
        lines: dossier.lines.iter().map(line).collect(),
        is_balanced: sum == 0,
        notices: notices.collect(),
        names: facts.names.iter().cloned().collect(),
        is_whole: dossier.is_whole,
        f,
    }
}

/// Asked for, came, went back, taken, cost: what there is to say.
fn money(f: &Frame, derived: &Derived) -> Vec<(&'static str, String)> {
    let currency = derived.currency.as_ref().map_or("", Currency::as_str);
    let some = |amount: i64| Some(amount).filter(|amount| *amount != 0);
    let rows = [
        (f.t("Amount due", "請求額"), Some(derived.amount)),
        (f.t("Received", "入金額"), Some(derived.received)),
        (f.t("Missing", "不足額"), some(derived.missing)),
        (f.t("Refunded", "返金額"), some(derived.refunded)),
        (f.t("On its way back", "返金処理中"), some(derived.refund_pending)),
        (f.t("Taken by disputes", "チャージバック"), some(derived.disputed_amount)),
        (f.t("Dispute fees", "チャージバック手数料"), some(derived.dispute_fee)),
        (f.t("Provider's fee", "決済手数料"), derived.fee),
        (f.t("Net", "手数料差引後"), derived.net),
    ];
    let shown = rows.into_iter().filter_map(|(label, amount)| Some((label, show::money(amount?, currency))));
    shown.collect()
}

fn line(line: &sekisho_store::BookedLine) -> LineRow {
    let posting = &line.posting;
    LineRow {
        at: line.at,
        account: posting.account.clone(),
        cause: posting.cause.clone(),
        amount: show::money(posting.amount, &posting.currency),
    }
}

/// What every fact is shown with.
struct Rows<'a> {
    f: &'a Frame,
    facts: &'a Facts,
    events: &'a [EventSummary],
}

impl Rows<'_> {
    fn all(&self) -> Vec<FactRow> {
        let Facts { ours, orders, sessions, intents, charges, refunds, disputes, transactions, .. } =
            self.facts;
        let f = self.f;
        let own = f.t("Order of the app", "アプリの注文");
        let mut rows: Vec<_> = ours
            .iter()
            .map(|(id, one)| FactRow {
                realm: one.reference.clone().unwrap_or_default(),
                ..self.row(own, id, "", one.amount, one.currency, None)
            })
            .collect();
        rows.extend(orders.iter().map(|id| self.row(f.t("Order id", "注文番号"), id, "", 0, None, None)));
        let kind = f.t("Checkout session", "チェックアウト");
        rows.extend(sessions.iter().map(|(id, one)| {
            let status = match one.status {
                SessionStatus::Open => "session_open".to_owned(),
                status @ (SessionStatus::Expired | SessionStatus::Complete) => word(status),
            };
            self.row(kind, id, status, one.amount, one.currency, None)
        }));
        let kind = f.t("Payment intent", "支払い");
        rows.extend(intents.iter().map(|(id, one)| {
            self.row(kind, id, word(one.status), one.amount, one.currency, one.failure.as_deref())
        }));
        let kind = f.t("Charge", "請求（チャージ）");
        rows.extend(charges.iter().map(|(id, one)| {
            let amount = if one.captured > 0 { one.taken() } else { one.amount };
            self.row(kind, id, word(one.status), amount, one.currency, one.failure.as_deref())
        }));
        let kind = f.t("Refund", "返金");
        rows.extend(refunds.iter().map(|(id, one)| {
            let note = one.failure.as_deref().or(one.reason.as_deref());
            self.row(kind, id, word(one.status), one.amount, one.currency, note)
        }));
        let kind = f.t("Dispute", "チャージバック");
        rows.extend(disputes.iter().map(|(id, one)| {
            self.row(kind, id, word(one.status), one.amount, one.currency, one.reason.as_deref())
        }));
        let kind = f.t("Balance entry", "残高明細");
        rows.extend(transactions.iter().map(|(id, one)| {
            let fee = show::money(one.fee, one.currency.as_ref().map_or("", Currency::as_str));
            let note = format!("{} {fee}", f.t("fee", "手数料"));
            self.row(kind, id, "", one.amount, one.currency, Some(&note))
        }));
        rows
    }

    fn row(
        &self,
        kind: &'static str,
        id: &str,
        status: impl Into<String>,
        amount: i64,
        currency: Option<Currency>,
        note: Option<&str>,
    ) -> FactRow {
        let told = self.events.iter().filter(|event| event.object.as_ref().is_some_and(|(_, own)| own == id));
        let named =
            self.facts.realms.iter().find(|realm| self.facts.names.contains(&format!("{realm}/{id}")));
        let currency = currency.as_ref().map_or("", Currency::as_str);
        FactRow {
            kind,
            id: id.to_owned(),
            realm: named.cloned().unwrap_or_default(),
            status: status.into(),
            amount: if amount == 0 { String::new() } else { show::money(amount, currency) },
            note: note.unwrap_or_default().to_owned(),
            told_by: told.map(|event| (link(event.seq), event.event_type.clone())).collect(),
        }
    }
}

/// The word that a status is kept as.
fn word(status: impl Serialize) -> String {
    let word = serde_json::to_value(status).ok();
    word.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn link(seq: Seq) -> String {
    format!("/console/events/{}", seq.as_event())
}
