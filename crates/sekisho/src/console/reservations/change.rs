//! Confirming, extending and cancelling a reservation: what is asked, what it would change, and then the act itself.

use askama::Template;
use sekisho_core::Time;
use sekisho_core::language::Language;
use sekisho_core::reservation::ReservationFacts;
use sekisho_core::settlement::follow::view;

use super::address;
use crate::acts::{self, Refusal, ReservationChange, ReservationPreview};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Reply, Visit, time};
use crate::console::trouble::{Resource, Trouble};
use crate::queries;
use crate::view::{show, words};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeKind {
    Confirm,
    Extend,
    Cancel,
}

impl ChangeKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Confirm => "confirm",
            Self::Extend => "extend",
            Self::Cancel => "cancel",
        }
    }

    fn title(self, lang: Language) -> &'static str {
        match self {
            Self::Confirm => lang.t("Confirm the reservation", "予約を確定する"),
            Self::Extend => lang.t("Extend the hold", "仮押さえを延長する"),
            Self::Cancel => lang.t("Cancel the reservation", "予約をキャンセルする"),
        }
    }

    const fn done(self) -> (&'static str, &'static str) {
        match self {
            Self::Confirm => ("The reservation is confirmed.", "予約を確定しました。"),
            Self::Extend => ("The hold was extended.", "仮押さえを延長しました。"),
            Self::Cancel => ("The reservation is cancelled.", "予約をキャンセルしました。"),
        }
    }
}

#[derive(Template)]
#[template(path = "console/reservation_change.html")]
struct ChangePage {
    f: Frame,
    id: String,
    called: String,
    act: &'static str,
    status: &'static str,
    /// As typed.
    reason: String,
    until: String,
    refund: String,
    /// The latest that a hold can be extended to.
    longest: Time,
    /// What would change, a line each; none, if nothing would.
    preview: Option<Vec<String>>,
    announced: Vec<String>,
    refused: Option<String>,
}

/// The form; with something typed in it, what would change.
pub(super) async fn ask(visit: Visit, act: ChangeKind) -> Answer {
    let (store, policy) = (&*visit.console.store, &visit.console.known.orders);
    let state = queries::load(
        store,
        &sekisho_core::state::Key::new(sekisho_core::state::Kind::Reservation, &*visit.id),
    )
    .await?;
    let state = state.ok_or_else(|| Trouble::unknown(Resource::Reservation, &visit.id))?;
    let facts: ReservationFacts =
        serde_json::from_str(&state.facts).map_err(sekisho_store::Error::corrupt)?;
    let text = |name: &str| visit.param(name).unwrap_or_default().to_owned();
    let is_typed = visit.param("preview").is_some();
    let (mut preview, mut refused) = (None, None);
    if is_typed {
        let foreseen = match typed(&visit, act, &text("reason"), &text("until"), &text("refund")) {
            Ok(change) => {
                let env = visit.console.env();
                acts::preview_reservation(store, env, policy, &visit.id, &change, &visit.actor()).await
            }
            Err(refusal) => Err(refusal),
        };
        match foreseen {
            Ok(foreseen) => preview = Some(foreseen),
            Err(Refusal::Store(error)) => return Err(error.into()),
            Err(refusal) => refused = Some(Trouble::from(refusal).line(visit.lang)),
        }
    }
    let until = match visit.param("until") {
        Some(typed) => typed.to_owned(),
        None => local(facts.until.max(visit.at).plus_ms(30 * 60_000), &visit),
    };
    Reply::page(&ChangePage {
        called: facts.ours.reference.clone().unwrap_or_else(|| visit.id.clone()),
        act: act.name(),
        status: facts.status(visit.at, policy.grace_ms).name(),
        reason: text("reason"),
        until,
        refund: visit.param("refund").unwrap_or("yes").to_owned(),
        longest: facts.ours.at.plus_ms(policy.delayed_max_ms),
        announced: preview.as_ref().map(|one| one.announced.clone()).unwrap_or_default(),
        preview: preview.map(|one| lines(&one, act, &visit)),
        refused,
        id: visit.id.clone(),
        f: visit.frame("reservations", act.title(visit.lang)),
    })
}

/// Does what the form says.
pub(super) async fn run(visit: Visit, act: ChangeKind) -> Answer {
    let (store, policy) = (&*visit.console.store, &visit.console.known.orders);
    let field = |name: &str| visit.field(name).unwrap_or_default();
    let changed = match typed(&visit, act, field("reason"), field("until"), field("refund")) {
        Ok(change) => {
            let env = visit.console.env();
            acts::change_reservation(store, env, policy, &visit.id, &change, None, &visit.actor()).await
        }
        Err(refusal) => Err(refusal),
    };
    visit.after(&address(&visit.id), changed, act.done())
}

fn typed(
    visit: &Visit,
    act: ChangeKind,
    reason: &str,
    until: &str,
    refund: &str,
) -> acts::Result<ReservationChange> {
    let reason = reason.to_owned();
    Ok(match act {
        ChangeKind::Confirm => ReservationChange::Confirm { reason },
        ChangeKind::Cancel => ReservationChange::Cancel { reason, refund: refund != "no" },
        ChangeKind::Extend => {
            let wrong = || {
                Refusal::Invalid(format!("until: expected a time such as 2026-02-02T11:40, not {until:?}"))
            };
            let until = time("until", Some(until), &visit.zone).ok().flatten().ok_or_else(wrong)?;
            ReservationChange::Extend { until }
        }
    })
}

/// `2026-02-02T11:40`, by the house's clock.
fn local(at: Time, visit: &Visit) -> String {
    let shown = visit.zone.clock(at);
    shown.get(..16).unwrap_or(&shown).replace(' ', "T")
}

fn lines(preview: &ReservationPreview, act: ChangeKind, visit: &Visit) -> Vec<String> {
    let lang = visit.lang;
    let word = |name: &'static str| words::status(name, lang).1;
    let (before, after) = (word(preview.status_before.name()), word(preview.status_after.name()));
    if preview.announced.is_empty() && before == after && preview.before == preview.after {
        return Vec::new();
    }
    let mut lines = Vec::new();
    if before != after {
        lines.push(format!("{}: {before} → {after}", lang.t("Status", "状態")));
    }
    if preview.before.until != preview.after.until {
        let clock = |at: Time| visit.zone.clock(at);
        let (from, to) = (clock(preview.before.until), clock(preview.after.until));
        lines.push(format!("{}: {from} → {to}", lang.t("Held until", "仮押さえの期限")));
    }
    let (slot, places) = (view::slot_id(&preview.before.ours.slot), preview.before.ours.quantity);
    match act {
        ChangeKind::Confirm if preview.before.claimed() < preview.after.claimed() => lines.push(match lang {
            Language::En => {
                format!("{places} free places of {slot} are taken again: the old ones had lapsed.")
            }
            Language::Ja => format!("枠 {slot} の空き {places} 席を取り直します（元の席は解放済みです）。"),
        }),
        ChangeKind::Confirm => lines.push(match lang {
            Language::En => format!("{places} places of {slot} are sold, whatever was paid."),
            Language::Ja => format!("入金の有無にかかわらず、枠 {slot} の {places} 席を販売済みにします。"),
        }),
        ChangeKind::Cancel if preview.before.parts().is_some() => lines.push(match lang {
            Language::En => format!("{places} places of {slot} are free for others at once."),
            Language::Ja => format!("枠 {slot} の {places} 席をすぐに解放します。"),
        }),
        ChangeKind::Cancel | ChangeKind::Extend => {}
    }
    lines.extend(preview.refunds.iter().map(|order| {
        let amount = show::money(order.amount, order.currency.as_deref().unwrap_or_default());
        match (order.by_hand, order.status == "held_back", lang) {
            (true, _, Language::En) => {
                format!(
                    "{amount} is to be refunded by you at the provider: Sekisho has no command for it there."
                )
            }
            (true, _, Language::Ja) => {
                format!("{amount} を決済事業者の管理画面で返金してください。Sekisho からは実行できません。")
            }
            (false, true, Language::En) => format!("{amount} is to go back, once a person releases it."),
            (false, true, Language::Ja) => format!("{amount} を返金します（承認後に実行されます）。"),
            (false, false, Language::En) => {
                format!("{amount} goes back to the customer. It can't be called off once it is ordered.")
            }
            (false, false, Language::Ja) => {
                format!("{amount} をお客様に返金します。指示した後は取り消せません。")
            }
        }
    }));
    if act == ChangeKind::Cancel && preview.refunds.is_empty() {
        lines.push(lang.t("Nothing is refunded.", "返金はありません。").to_owned());
    }
    if let Some(made) = preview.fulfilment {
        let text = if made.is_stopped {
            lang.t("What is made for it is not asked for any more.", "制作の依頼を停止します。")
        } else {
            lang.t("What is made for it is asked for now.", "制作を依頼します。")
        };
        lines.push(text.to_owned());
    }
    lines
}
