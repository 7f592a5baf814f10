//! What is told of reservations and fulfilments: only the present, each thing once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Orders, is};
use crate::announcement::Announcement;
use crate::case;
use crate::compensation::CompensationRule;
use crate::fulfilment as ful;
use crate::reservation as rsv;
use crate::settlement::Terms;
use crate::settlement::follow::{OrderMoney, view};
use crate::state::Kind;
use crate::time::Time;

impl Orders<'_> {
    /// Adds what the members of an order have to tell, and remembers that it was told.
    pub fn announce(
        &mut self,
        n: usize,
        members: &BTreeSet<String>,
        money: Option<&OrderMoney<'_>>,
        terms: &Terms<'_>,
    ) {
        let anchor = money.map(|money| money.id);
        let mut cases: BTreeSet<String> = members.iter().filter(|id| is(id, Kind::Case)).cloned().collect();
        for id in members.iter().filter(|id| is(id, Kind::Reservation)) {
            let Some(row) = self.reservations.get_mut(id) else { continue };
            cases.extend(row.now.cases.iter().cloned());
            if let Some(told) = of_reservation(id, &row.now, terms)
                && row.now.emitted.insert(told.0.clone())
            {
                let data = view::reservation(id, &row.now, terms.at, terms.orders);
                let whose = (Some(row.now.ours.livemode), row.now.ours.tenant.clone());
                let object = (Kind::Reservation.name(), id.clone());
                self.announcements.push((n, announcement(anchor, object, told, whose, data, terms)));
                row.by = n;
            }
        }
        for id in members.iter().filter(|id| is(id, Kind::Fulfilment)) {
            let Some(row) = self.fulfilments.get_mut(id) else { continue };
            cases.extend(row.now.cases.iter().cloned());
            let of_case = |id: &String| view::refund_at(&self.cases.get(id)?.now, &terms.orders.rules);
            let refund_by = row.now.cases.iter().filter_map(of_case).min();
            for told in of_fulfilment(id, &row.now, refund_by, terms) {
                if row.now.emitted.insert(told.0.clone()) {
                    let data = view::fulfilment_with(id, &row.now, money, terms.orders);
                    let whose = (Some(row.now.ours.livemode), row.now.ours.tenant.clone());
                    let object = (Kind::Fulfilment.name(), id.clone());
                    self.announcements.push((n, announcement(anchor, object, told, whose, data, terms)));
                    row.by = n;
                }
            }
        }
        for id in cases {
            let Some(row) = self.cases.get_mut(&id) else { continue };
            for told in of_case(&id, &row.now, terms) {
                if row.now.emitted.insert(told.0.clone()) {
                    let data = view::case(&id, &row.now, &terms.orders.rules, terms.at);
                    let whose = (row.now.livemode, row.now.tenant.clone());
                    let object = (Kind::Case.name(), id.clone());
                    self.announcements.push((n, announcement(anchor, object, told, whose, data, terms)));
                    row.by = n;
                }
            }
        }
    }
}

fn announcement(
    anchor: Option<&str>,
    object: (&'static str, String),
    (key, event_type, about): Told,
    (livemode, tenant): (Option<bool>, Option<String>),
    data: Value,
    terms: &Terms<'_>,
) -> Announcement {
    let id = format!("{}/{key}", anchor.unwrap_or(&object.1));
    Announcement {
        id,
        event_type: event_type.to_owned(),
        livemode,
        object,
        tenant,
        about,
        data,
        at: terms.at,
    }
}

type Told = (String, &'static str, Value);

fn of_reservation(id: &str, facts: &rsv::ReservationFacts, terms: &Terms<'_>) -> Option<Told> {
    let told = |event_type: &'static str, end: &str, about: Value| {
        Some((format!("{event_type}/{id}{end}"), event_type, about))
    };
    let numbered = |number: u32| format!("/{number}");
    match facts.status(terms.at, terms.orders.grace_ms) {
        rsv::ReservationStatus::Confirmed => {
            let about = json!({ "claim": facts.confirmed });
            told("reservation.confirmed", &numbered(facts.confirmed), about)
        }
        rsv::ReservationStatus::Expired => {
            let about = json!({ "claim": facts.lapsed, "until": facts.until });
            told("reservation.expired", &numbered(facts.lapsed), about)
        }
        rsv::ReservationStatus::Cancelled => {
            let cancelled = facts.cancelled.as_ref()?;
            told("reservation.cancelled", "", json!({ "by": cancelled.by, "why": cancelled.why }))
        }
        // Whoever holds it knows how long it was to last; more time is news.
        rsv::ReservationStatus::Hold => {
            let is_longer = facts.until > facts.ours.at.plus_ms(facts.ours.hold_ms);
            let end = format!("/{}", facts.until);
            told("reservation.extended", &end, json!({ "until": facts.until })).filter(|_| is_longer)
        }
    }
}

fn of_fulfilment(
    id: &str,
    facts: &ful::FulfilmentFacts,
    refund_by: Option<Time>,
    terms: &Terms<'_>,
) -> Vec<Told> {
    let mut told = Vec::new();
    let attempts = terms.orders.attempts;
    for (number, run) in &facts.runs {
        let is_newest = facts.newest().is_some_and(|(newest, _)| newest == *number);
        let mut about = json!({
            "run": number,
            "idempotency_key": ful::run_key(id, *number),
            "error": run.error,
            "url": run.url,
            "refund_by": refund_by,
        });
        let event_type = match run.result {
            ful::RunResult::Open if is_newest => "fulfilment.requested",
            ful::RunResult::Failed
                if is_newest && facts.status(attempts) == ful::FulfilmentStatus::Failed =>
            {
                "fulfilment.failed"
            }
            ful::RunResult::Failed => "fulfilment.retrying",
            ful::RunResult::Done if is_newest => "fulfilment.done",
            ful::RunResult::Open | ful::RunResult::Done => continue,
        };
        // Whoever is asked can answer for this run, and for nothing else.
        if run.result == ful::RunResult::Open {
            let links = &terms.orders.links;
            about["result_url"] = json!(links.result_url(id));
            about["result_token"] = json!(links.keys.result_token(id, *number));
        }
        told.push((format!("{event_type}/{id}/{number}"), event_type, about));
    }
    if let Some(at) = facts.downgraded_at {
        let event_type = "fulfilment.downgraded";
        told.push((format!("{event_type}/{id}"), event_type, json!({ "at": at })));
    }
    told
}

/// Who was told of an episode, each with the levels.
fn told_of<'r>(episode: &case::Episode, rules: &[&'r CompensationRule]) -> BTreeMap<&'r str, BTreeSet<u8>> {
    let mut told: BTreeMap<&str, BTreeSet<u8>> = BTreeMap::new();
    for rule in rules.iter().filter(|rule| rule.level > 0 && episode.fired.contains(&rule.name)) {
        for target in &rule.tell {
            told.entry(target).or_default().insert(rule.level);
        }
    }
    told
}

/// Levels that were reached, reminders, and what people said. A case that was over before anybody was told tells nothing.
fn of_case(id: &str, facts: &case::CaseFacts, terms: &Terms<'_>) -> Vec<Told> {
    let Some((number, episode)) = facts.newest() else { return Vec::new() };
    let rules = &terms.orders.rules;
    let own: Vec<_> = rules.iter().filter(|rule| rule.trigger == facts.trigger).collect();
    let about = |level: u8| {
        let of_level = own.iter().filter(|rule| rule.level == level && episode.fired.contains(&rule.name));
        let tell: BTreeSet<&String> = of_level.flat_map(|rule| &rule.tell).collect();
        let reached = episode.levels.get(&level);
        let respond_by = reached.and_then(|at| Some(at.plus_ms(case::response_of(&own, level)?)));
        json!({
            "level": level,
            "trigger": facts.trigger,
            "tell": tell,
            "respond_by": respond_by,
            "refund_at": view::refund_at(facts, rules),
        })
    };
    let mut told: Vec<Told> = Vec::new();
    for level in episode.levels.keys() {
        told.push((format!("case.raised/{id}/{number}/{level}"), "case.raised", about(*level)));
    }
    for (level, count) in &episode.reminded {
        let key = format!("case.overdue/{id}/{number}/{level}/{count}");
        told.push((key, "case.overdue", about(*level)));
    }
    let said = |word: &case::Word| json!({ "by": word.by, "how": word.how, "note": word.note, "level": facts.level(), "trigger": facts.trigger });
    if let Some(word) = &episode.acknowledged {
        told.push((format!("case.acknowledged/{id}/{number}"), "case.acknowledged", said(word)));
    }
    if let Some(word) = episode.resolved.as_ref().filter(|_| !episode.levels.is_empty()) {
        let mut about = said(word);
        about["told"] = json!(told_of(episode, &own));
        told.push((format!("case.resolved/{id}/{number}"), "case.resolved", about));
    }
    told
}
