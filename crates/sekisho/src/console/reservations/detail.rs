//! One reservation: where it stands and until when, its money, what is made for it, its cases and what was done.

use askama::Template;
use sekisho_core::Time;
use sekisho_core::language::Language;
use sekisho_core::reservation::{ReservationFacts, ReservationStatus};
use sekisho_core::settlement::payment::Derived;
use sekisho_core::slot::SlotName;

use super::address;
use crate::acts;
use crate::console::frame::Frame;
use crate::console::order_parts::{CaseRow, CompensationRow};
use crate::console::page::{Answer, Reply, Visit};
use crate::console::slots;
use crate::console::trouble::{Resource, Trouble};
use crate::queries;
use crate::types::CustomerLink;
use crate::view::{order_words, show};

#[expect(clippy::struct_excessive_bools, reason = "a page asks each by itself")]
#[derive(Template)]
#[template(path = "console/reservation.html")]
struct ReservationPage {
    f: Frame,
    id: String,
    reference: String,
    status: &'static str,
    tone: &'static str,
    /// Where it stands, and what comes by itself.
    standing: String,
    /// The moment that counts for that, if one does.
    moment: Option<Time>,
    is_test: bool,
    slot: String,
    slot_href: String,
    quantity: u32,
    starts_at: Option<Time>,
    cancel_until: Option<Time>,
    confirmed_at: Option<Time>,
    confirmed_by: String,
    customer: String,
    email: String,
    language: &'static str,
    tenant: String,
    metadata: Vec<(String, String)>,
    created_at: Time,
    payment: Option<PaymentPart>,
    fulfilment: Option<FulfilmentPart>,
    cases: Vec<CaseRow>,
    compensations: Vec<CompensationRow>,
    /// For those who may hand it to the customer.
    link: Option<CustomerLink>,
    may_confirm: bool,
    may_extend: bool,
    may_cancel: bool,
}

struct PaymentPart {
    id: String,
    status: &'static str,
    amount: String,
    received: String,
}

struct FulfilmentPart {
    id: String,
    kind: String,
    status: &'static str,
    failed: u32,
}

pub(super) async fn show(visit: Visit) -> Answer {
    let (store, policy, lang) = (&*visit.console.store, &visit.console.known.orders, visit.lang);
    let id = visit.id.clone();
    let unknown = || Trouble::unknown(Resource::Reservation, &visit.id);
    let records = queries::order_records(store, policy, &id).await?;
    let mut records = records.ok_or_else(unknown)?;
    let facts = records.order.reservations.remove(&id).ok_or_else(unknown)?;
    let status = facts.status(visit.at, policy.grace_ms);
    let f = visit.frame("reservations", lang.t("Reservation", "予約"));
    let may_operate = f.may_operate();
    let link = if may_operate { queries::order_link(store, policy, &id, visit.at).await? } else { None };
    let payment = records.order.payment.as_ref().map(|(id, facts)| {
        let derived = Derived::of(facts);
        let currency = derived.currency.map(|currency| currency.to_string()).unwrap_or_default();
        PaymentPart {
            id: id.clone(),
            status: derived.status.name(),
            amount: show::money(derived.amount, &currency),
            received: show::money(derived.received, &currency),
        }
    });
    let made = facts.ours.fulfilment.as_ref().and_then(|id| records.order.fulfilments.get_key_value(id));
    let fulfilment = made.map(|(id, made)| FulfilmentPart {
        id: id.clone(),
        kind: made.ours.name.clone().unwrap_or_else(|| made.ours.kind.clone()),
        status: made.status(policy.attempts).name(),
        failed: made.failed_runs(),
    });
    let name = SlotName::parse(&facts.ours.slot);
    let cases = CaseRow::all(&records, policy, lang, visit.at)?;
    let (tone, standing, moment) = standing(&facts, status, &visit);
    Reply::page(&ReservationPage {
        reference: facts.ours.reference.clone().unwrap_or_default(),
        status: status.name(),
        tone,
        standing,
        moment,
        is_test: !facts.ours.livemode,
        slot_href: name.as_ref().map(slots::address).unwrap_or_default(),
        slot: name.map_or_else(|| facts.ours.slot.clone(), |name| name.id),
        quantity: facts.ours.quantity,
        starts_at: facts.ours.starts_at,
        cancel_until: facts
            .cancel_until(policy.cancel_until_ms)
            .filter(|_| status == ReservationStatus::Confirmed),
        confirmed_at: facts.confirmed_at,
        confirmed_by: facts
            .confirm
            .as_ref()
            .map_or_else(String::new, |one| format!("{}: {}", order_words::by(&one.by, lang), one.why)),
        customer: facts.ours.customer.clone().unwrap_or_default(),
        email: facts.ours.email.as_ref().map_or_else(String::new, |email| {
            if may_operate { email.whole().to_owned() } else { email.masked() }
        }),
        language: facts.ours.language.map_or("", Language::name),
        tenant: facts.ours.tenant.clone().unwrap_or_default(),
        metadata: facts.ours.metadata.clone().into_iter().collect(),
        created_at: facts.ours.at,
        payment,
        fulfilment,
        cases,
        compensations: CompensationRow::all(records, lang),
        link: link.map(|(link, _)| link),
        may_confirm: may_operate && matches!(status, ReservationStatus::Hold | ReservationStatus::Expired),
        may_extend: may_operate && status == ReservationStatus::Hold,
        may_cancel: may_operate && status != ReservationStatus::Cancelled,
        id,
        f,
    })
}

/// One sentence, and the moment it speaks of.
fn standing(
    facts: &ReservationFacts,
    status: ReservationStatus,
    visit: &Visit,
) -> (&'static str, String, Option<Time>) {
    let lang = visit.lang;
    let grace = visit.console.known.orders.grace_ms / 60_000;
    match status {
        ReservationStatus::Hold if facts.until <= visit.at => (
            "wait",
            lang.t(
                "The hold is over; a payment that is on its way is waited for until the grace ends. Then the places are free again.",
                "仮押さえの期限を過ぎました。行き違いの入金に備えて猶予時間だけ待ち、その後、枠を解放します。",
            )
            .to_owned(),
            Some(facts.until.plus_ms(visit.console.known.orders.grace_ms)),
        ),
        ReservationStatus::Hold => (
            "wait",
            match lang {
                Language::En => format!(
                    "The places are held while the customer pays. If nothing is paid, they are free again {grace} min after the end of the hold:"
                ),
                Language::Ja => format!(
                    "お支払いを待って枠を仮押さえしています。入金がなければ、期限の{grace}分後に自動的に解放されます。期限："
                ),
            },
            Some(facts.until),
        ),
        ReservationStatus::Confirmed => {
            ("good", lang.t("The places are the customer's.", "予約は確定しています。").to_owned(), None)
        }
        ReservationStatus::Expired => (
            "plain",
            lang.t(
                "The hold ended before anything was paid; its places are free for others. It ended:",
                "入金前に仮押さえの期限が切れ、枠は解放されました。期限：",
            )
            .to_owned(),
            Some(facts.until),
        ),
        ReservationStatus::Cancelled => {
            let cancelled = facts.cancelled.as_ref();
            let by = cancelled.map(|one| order_words::by(&one.by, lang)).unwrap_or_default();
            let why = cancelled.map(|one| one.why.as_str()).unwrap_or_default();
            let text = match lang {
                Language::En => format!("Cancelled by {by}: {why}"),
                Language::Ja => format!("キャンセル済みです（{by}：{why}）"),
            };
            ("plain", text, cancelled.map(|one| one.at))
        }
    }
}

pub(super) async fn revoke_links(visit: Visit) -> Answer {
    let revoked = acts::revoke_links(&*visit.console.store, &visit.id, &visit.actor()).await;
    let words = (
        "Every link that was given out is void. The link below is a new one.",
        "これまでのリンクをすべて無効にしました。下のリンクは新しいものです。",
    );
    visit.after(&address(&visit.id), revoked, words)
}
