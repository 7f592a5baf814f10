//! One case: its clocks, what happens next by itself and when, what happened, and what a person may say of it.

use askama::Template;
use sekisho_core::Time;
use sekisho_core::case::{CaseFacts, CaseStatus, Episode, REMINDERS_MAX, Word, response_of};
use sekisho_core::compensation::{CompensationRule, RuleAction};
use sekisho_core::language::Language;
use sekisho_core::state::{Key, Kind};

use super::address;
use crate::acts;
use crate::console::frame::Frame;
use crate::console::order_parts;
use crate::console::page::{Answer, Reply, Visit};
use crate::console::payments::TimelineItem;
use crate::console::trouble::{Resource, Trouble};
use crate::queries;
use crate::types::{AcknowledgeCase, Case, ResolveCase};
use crate::view::order_words;

const NOTE_MAX: usize = 1_000;

#[expect(clippy::struct_excessive_bools, reason = "a page asks each by itself")]
#[derive(Template)]
#[template(path = "console/case.html")]
struct CasePage {
    f: Frame,
    id: String,
    trigger: String,
    code: String,
    status: String,
    is_overdue: bool,
    is_test: bool,
    level: u8,
    episode: u32,
    since: Option<Time>,
    respond_by: Option<Time>,
    refund_at: Option<Time>,
    tenant: String,
    /// What it is about, its payment and reservation, with their pages.
    parts: Vec<(&'static str, String, String)>,
    coming: Vec<ComingStep>,
    timeline: Vec<TimelineItem>,
    may_acknowledge: bool,
    may_resolve: bool,
    /// Why it can't be resolved: a rule has ordered what it does.
    ordered_by: String,
    hows: [(&'static str, &'static str); 3],
    note_max: usize,
    /// By which rules are asked about its order.
    order: String,
}

/// Something that happens by itself.
struct ComingStep {
    at: Option<Time>,
    text: String,
    rule: String,
}

pub(super) async fn show(visit: Visit) -> Answer {
    let (store, policy, lang) = (&*visit.console.store, &visit.console.known.orders, visit.lang);
    let state = queries::load(store, &Key::new(Kind::Case, &*visit.id)).await?;
    let state = state.ok_or_else(|| Trouble::unknown(Resource::Case, &visit.id))?;
    let facts: CaseFacts = serde_json::from_str(&state.facts).map_err(sekisho_store::Error::corrupt)?;
    let case = queries::case_view(&state, policy, visit.at)?;
    let rules: Vec<&CompensationRule> =
        policy.rules.iter().filter(|rule| rule.trigger == facts.trigger).collect();
    let is_open = facts.status() == CaseStatus::Open;
    let ordered = facts.newest().and_then(|(_, episode)| ordering(episode, &rules));
    let f = visit.frame("cases", lang.t("Case", "対応案件"));
    let is_over = facts.status() == CaseStatus::Resolved;
    let parts = [
        (lang.t("About", "対象"), Some(case.subject.clone())),
        (lang.t("Reservation", "予約"), case.reservation.clone()),
        (lang.t("Payment", "決済"), case.payment.clone()),
    ];
    let mut shown: Vec<(&'static str, String, String)> = Vec::new();
    for (label, id) in parts {
        let Some(id) = id.filter(|id| shown.iter().all(|(.., known)| known != id)) else { continue };
        shown.push((label, order_parts::address(&id).unwrap_or_default(), id));
    }
    Reply::page(&CasePage {
        trigger: order_words::trigger(&case.trigger, lang).to_owned(),
        code: case.trigger.clone(),
        status: order_parts::case_word(&case.status),
        is_overdue: case.overdue,
        is_test: case.livemode == Some(false),
        level: case.level,
        episode: case.episode,
        since: case.since,
        respond_by: case.respond_by.filter(|_| is_open),
        refund_at: case.refund_at,
        tenant: case.tenant.clone().unwrap_or_default(),
        parts: shown,
        coming: coming(&case, &facts, &rules, ordered, lang),
        timeline: timeline(&facts, &rules, lang),
        may_acknowledge: f.may_operate() && is_open,
        may_resolve: f.may_operate() && !is_over && ordered.is_none(),
        ordered_by: ordered.filter(|_| !is_over).map(|rule| rule.name.clone()).unwrap_or_default(),
        hows: ["fixed", "by_hand", "no_action"].map(|code| (code, order_words::how(code, lang))),
        note_max: NOTE_MAX,
        order: case.subject,
        id: case.id,
        f,
    })
}

/// The rule that has ordered money back: nobody can call that off.
fn ordering<'r>(episode: &Episode, rules: &[&'r CompensationRule]) -> Option<&'r CompensationRule> {
    let fired = rules.iter().filter(|rule| episode.fired.contains(&rule.name));
    fired.copied().find(|rule| rule.action != RuleAction::None)
}

/// What happens by itself, and when, in order.
fn coming(
    case: &Case,
    facts: &CaseFacts,
    rules: &[&CompensationRule],
    ordered: Option<&CompensationRule>,
    lang: Language,
) -> Vec<ComingStep> {
    let Some((_, episode)) = facts.newest().filter(|_| facts.status() != CaseStatus::Resolved) else {
        return Vec::new();
    };
    let mut steps: Vec<ComingStep> = Vec::new();
    for next in &case.next {
        let rule = rules.iter().find(|rule| rule.name == next.rule);
        let level = rule.map(|rule| rule.level).unwrap_or_default();
        let tells = rule.map(|rule| rule.tell.join(", ")).unwrap_or_default();
        let does = match next.action.as_str() {
            "none" => String::new(),
            action => order_words::action(action, lang).to_owned(),
        };
        let tells = match (level, lang) {
            (0, _) => String::new(),
            (level, Language::En) => format!("level {level}, tells {tells}"),
            (level, Language::Ja) => format!("レベル{level}に上げ、{tells} に通知"),
        };
        let said: Vec<String> = [does, tells].into_iter().filter(|text| !text.is_empty()).collect();
        steps.push(ComingStep {
            at: Some(next.at),
            text: said.join(lang.t("; ", "、")),
            rule: next.rule.clone(),
        });
    }
    if episode.acknowledged.is_none() {
        steps.extend(episode.levels.iter().filter_map(|(level, reached)| {
            let within = response_of(rules, *level)?;
            let told = episode.reminded.get(level).copied().unwrap_or_default();
            let at = reached.plus_ms(within.saturating_mul(i64::from(told) + 1));
            let text = match lang {
                Language::En => {
                    format!("told again, if nobody has acknowledged it ({} of {REMINDERS_MAX})", told + 1)
                }
                Language::Ja => format!("確認されていなければ再通知（{}/{REMINDERS_MAX}回目）", told + 1),
            };
            (told < REMINDERS_MAX).then_some(ComingStep { at: Some(at), text, rule: String::new() })
        }));
    }
    steps.sort_by_key(|step| step.at);
    if ordered.is_some() {
        let text = lang.t(
            "A refund was ordered. The case closes by itself once the money is back.",
            "返金を指示済みです。返金が完了すると、この案件は自動的に解決します。",
        );
        steps.push(ComingStep { at: None, text: text.to_owned(), rule: String::new() });
    }
    let text = lang.t(
        "As soon as no rule holds any more, the case is resolved by itself.",
        "該当するルールがなくなると、自動的に解決します。",
    );
    steps.push(ComingStep { at: None, text: text.to_owned(), rule: String::new() });
    steps
}

/// What happened in every episode, the newest below.
fn timeline(facts: &CaseFacts, rules: &[&CompensationRule], lang: Language) -> Vec<TimelineItem> {
    let item = |at: Time, tone: &'static str, title: String, lines: Vec<String>| TimelineItem {
        at,
        tone,
        title,
        href: String::new(),
        status: String::new(),
        lines,
    };
    let said = |word: &Word| {
        let how = Some(order_words::how(&word.how, lang).to_owned()).filter(|how| !how.is_empty());
        let note = Some(word.note.clone()).filter(|note| !note.is_empty());
        [Some(order_words::by(&word.by, lang)), how, note].into_iter().flatten().collect::<Vec<_>>()
    };
    let mut items = Vec::new();
    for episode in facts.episodes.values() {
        for (level, at) in &episode.levels {
            let own = rules.iter().filter(|rule| rule.level == *level && episode.fired.contains(&rule.name));
            let lines = own.map(|rule| format!("{}: {}", rule.name, rule.tell.join(", "))).collect();
            let title = match lang {
                Language::En => format!("Level {level}"),
                Language::Ja => format!("レベル{level}"),
            };
            items.push(item(*at, if *level > 1 { "bad" } else { "wait" }, title, lines));
        }
        if let Some(word) = &episode.acknowledged {
            let title = lang.t("Acknowledged", "対応を開始").to_owned();
            items.push(item(word.at, "wait", title, said(word)));
        }
        if let Some(word) = &episode.resolved {
            items.push(item(word.at, "good", lang.t("Resolved", "解決").to_owned(), said(word)));
        }
        if let Some(at) = episode.cleared {
            let title = lang.t("No rule holds any more", "該当するルールがなくなりました").to_owned();
            items.push(item(at, "plain", title, Vec::new()));
        }
    }
    items.sort_by_key(|item| item.at);
    items
}

pub(super) async fn acknowledge(visit: Visit) -> Answer {
    let (store, policy) = (&*visit.console.store, &visit.console.known.orders);
    let body = AcknowledgeCase { note: visit.field("note").map(str::to_owned) };
    let env = visit.console.env();
    let done = acts::acknowledge_case(store, env, policy, &visit.id, body, &visit.actor()).await;
    let words = (
        "You have it in hand: nobody is reminded any more. Everything else goes on.",
        "対応中にしました。再通知は止まりますが、自動処理は続きます。",
    );
    visit.after(&address(&visit.id), done, words)
}

pub(super) async fn resolve(visit: Visit) -> Answer {
    let (store, policy) = (&*visit.console.store, &visit.console.known.orders);
    let text = |name: &str| visit.field(name).map(str::to_owned);
    let body = ResolveCase { how: text("how").unwrap_or_default(), note: text("note") };
    let env = visit.console.env();
    let done = acts::resolve_case(store, env, policy, &visit.id, body, &visit.actor()).await;
    let words =
        ("The case is resolved: its rules do nothing more.", "解決済みにしました。自動処理は行われません。");
    visit.after(&address(&visit.id), done, words)
}
