//! What is told of reservations and fulfilments: only the present, each thing once.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Orders, is};
use crate::announcement::Announcement;
use crate::fulfilment as ful;
use crate::reservation as rsv;
use crate::settlement::Terms;
use crate::settlement::follow::{Money, view};
use crate::state::Kind;

impl Orders<'_> {
    /// Adds what the members of an order have to tell, and remembers that it was told.
    pub fn announce(
        &mut self,
        n: usize,
        members: &BTreeSet<String>,
        money: Option<&Money<'_>>,
        terms: &Terms<'_>,
    ) {
        let anchor = money.map(|money| money.id);
        for id in members.iter().filter(|id| is(id, Kind::Reservation)) {
            let Some(row) = self.reservations.get_mut(id) else { continue };
            let facts = &row.now;
            let fresh = of_reservation(id, facts, terms).filter(|(key, ..)| !facts.emitted.contains(key));
            if let Some((key, event_type, about)) = fresh {
                let data = view::reservation(id, facts, terms.at, terms.orders);
                let announcement = Announcement {
                    id: format!("{}/{key}", anchor.unwrap_or(id)),
                    event_type: event_type.to_owned(),
                    livemode: Some(facts.ours.livemode),
                    object: (Kind::Reservation.name(), id.clone()),
                    tenant: facts.ours.tenant.clone(),
                    about,
                    data,
                    at: terms.at,
                };
                self.announcements.push((n, announcement));
                row.now.emitted.insert(key);
                row.by = n;
            }
        }
        for id in members.iter().filter(|id| is(id, Kind::Fulfilment)) {
            let Some(row) = self.fulfilments.get_mut(id) else { continue };
            for (key, event_type, about) in of_fulfilment(id, &row.now, terms) {
                if !row.now.emitted.insert(key.clone()) {
                    continue;
                }
                let data = view::fulfilment_with(id, &row.now, money, terms.orders);
                let announcement = Announcement {
                    id: format!("{}/{key}", anchor.unwrap_or(id)),
                    event_type: event_type.to_owned(),
                    livemode: Some(row.now.ours.livemode),
                    object: (Kind::Fulfilment.name(), id.clone()),
                    tenant: row.now.ours.tenant.clone(),
                    about,
                    data,
                    at: terms.at,
                };
                self.announcements.push((n, announcement));
                row.by = n;
            }
        }
    }
}

type Told = (String, &'static str, Value);

fn of_reservation(id: &str, facts: &rsv::Facts, terms: &Terms<'_>) -> Option<Told> {
    let told = |event_type: &'static str, end: &str, about: Value| {
        Some((format!("{event_type}/{id}{end}"), event_type, about))
    };
    let numbered = |number: u32| format!("/{number}");
    match facts.status(terms.at, terms.orders.grace_ms) {
        rsv::Status::Confirmed => {
            let about = json!({ "claim": facts.confirmed });
            told("reservation.confirmed", &numbered(facts.confirmed), about)
        }
        rsv::Status::Expired => {
            let about = json!({ "claim": facts.lapsed, "until": facts.until });
            told("reservation.expired", &numbered(facts.lapsed), about)
        }
        rsv::Status::Cancelled => {
            let cancelled = facts.cancelled.as_ref()?;
            told("reservation.cancelled", "", json!({ "by": cancelled.by, "why": cancelled.why }))
        }
        // Whoever holds it knows how long it was to last; more time is news.
        rsv::Status::Hold => {
            let is_longer = facts.until > facts.ours.at.plus_ms(facts.ours.hold_ms);
            let end = format!("/{}", facts.until);
            told("reservation.extended", &end, json!({ "until": facts.until })).filter(|_| is_longer)
        }
    }
}

fn of_fulfilment(id: &str, facts: &ful::Facts, terms: &Terms<'_>) -> Vec<Told> {
    let mut told = Vec::new();
    let attempts = terms.orders.attempts;
    for (number, run) in &facts.runs {
        let is_newest = facts.newest().is_some_and(|(newest, _)| newest == *number);
        let about = json!({
            "run": number,
            "idempotency_key": ful::run_key(id, *number),
            "error": run.error,
            "url": run.url,
        });
        let event_type = match run.result {
            ful::Outcome::Open if is_newest => "fulfilment.requested",
            ful::Outcome::Failed if is_newest && facts.status(attempts) == ful::Status::Failed => {
                "fulfilment.failed"
            }
            ful::Outcome::Failed => "fulfilment.retrying",
            ful::Outcome::Done if is_newest => "fulfilment.done",
            ful::Outcome::Open | ful::Outcome::Done => continue,
        };
        told.push((format!("{event_type}/{id}/{number}"), event_type, about));
    }
    if let Some(at) = facts.downgraded_at {
        let event_type = "fulfilment.downgraded";
        told.push((format!("{event_type}/{id}"), event_type, json!({ "at": at })));
    }
    told
}
