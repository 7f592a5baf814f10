//! One payment with all the evidence for it, in a report that stands by itself: how it stands, the events and what their
//! bodies hash to, what was decided and when, what followed, the lines of the books, and the links of the audit log that
//! hold all of this, so that a reader can compute the hashes again.
//!
//! Whole mail addresses, header values and bodies stay out of it: it is made to be handed on.

mod check;
mod page;

use std::collections::BTreeMap;

use sekisho_core::audit::{SEALED, seal};
use sekisho_core::job::Attempt;
use sekisho_core::mail_address::mask_text;
use sekisho_core::provider::encode_hex;
use sekisho_core::state::State;
use sekisho_core::{Seq, Time};
use sekisho_store::{AuditEntry, BookedLine, ChainHead, EventSummary, Link, Message, Result, Store};
use serde_json::{Value, json};

use super::{audit, event, line, message, notice, payment, unlink};
use crate::acts::{self, Difference, Dossier, Refusal, dossier, payment_state};
use crate::view::sealed;

pub use page::page;

/// How often a payment that changes meanwhile is looked at again.
const LOOKS: usize = 3;

/// The report of one payment, by our id; `None` when there is none.
pub async fn proof(store: &dyn Store, id: &str, now: Time) -> Result<Option<Value>> {
    let Some(mut state) = payment_state(store, id).await? else { return Ok(None) };
    for _ in 1..LOOKS {
        let version = state.version;
        let evidence = Evidence::gather(store, state, now).await?;
        match payment_state(store, &evidence.dossier.state.key.id).await? {
            Some(after) if after.version != version => state = after,
            _ => return evidence.report(store, now).await.map(Some),
        }
    }
    Evidence::gather(store, state, now).await?.report(store, now).await.map(Some)
}

/// All that a report is made of.
struct Evidence {
    dossier: Dossier,
    papers: BTreeMap<Seq, Paper>,
    calls: BTreeMap<Seq, Vec<(i32, Attempt)>>,
    hooks: Vec<Hook>,
    heads: Vec<ChainHead>,
    differences: Vec<Difference>,
}

/// What an event's request hashes to.
struct Paper {
    body_sha256: String,
    body_bytes: usize,
    headers_sha256: String,
    header_names: Vec<String>,
}

/// A link that holds entries of this payment.
struct Hook {
    link: Link,
    /// What the link after it says of it; `None` where it is the last.
    followed_as: Option<Vec<u8>>,
}

impl Evidence {
    async fn gather(store: &dyn Store, state: State, now: Time) -> Result<Self> {
        let dossier = dossier(store, state, now).await?;
        let mut papers = BTreeMap::new();
        for event in &dossier.events {
            if let Some(record) = store.find_event(event.seq).await? {
                papers.insert(event.seq, Paper::of(&record.headers, &record.body));
            }
        }
        let mut calls = BTreeMap::new();
        for delivery in deliveries(&dossier) {
            calls.insert(delivery.job, store.find_attempts(delivery.job).await?);
        }
        let numbers = dossier.entries.iter().map(|entry| entry.number).collect();
        let mut hooks = Vec::new();
        for (chain, n) in store.find_places(numbers).await? {
            hooks.extend(Hook::at(store, chain, n).await?);
        }
        let heads = store.chain_heads().await?;
        let parts = dossier.ids.get(1..).unwrap_or_default();
        let differences = match acts::differences(store, &dossier.state, parts).await {
            Ok(differences) => differences,
            Err(Refusal::Store(error)) => return Err(error),
            Err(other) => return Err(sekisho_store::Error::corrupt(other)),
        };
        Ok(Self { dossier, papers, calls, hooks, heads, differences })
    }

    async fn report(&self, store: &dyn Store, now: Time) -> Result<Value> {
        let mut shown = payment(&self.dossier.state)?;
        let checks = self.checks(&shown);
        unlink(store, [&mut shown]).await?;
        let passed = checks.iter().all(|check| check.fault.is_none());
        let mut report = json!({
            "object": "payment_proof",
            "made_at": now,
            "made_by": concat!("sekisho ", env!("CARGO_PKG_VERSION")),
            "passed": passed,
            "complete": self.dossier.is_whole,
            "checks": checks.iter().map(check::Check::shown).collect::<Vec<_>>(),
            "payment": shown,
            "known_as": self.dossier.facts.names,
            "parts": self.dossier.ids.get(1..).unwrap_or_default(),
            "events": self.events(),
            "decisions": self.dossier.entries.iter().map(audit).map(decision).collect::<Vec<_>>(),
            "deliveries": deliveries(&self.dossier).map(|one| self.delivery(one)).collect::<Vec<_>>(),
            "notices": self.notices(),
            "books": { "lines": self.dossier.lines.iter().map(booked).collect::<Vec<_>>(), "sums": self.sums() },
            "chain": {
                "links": self.hooks.iter().map(|hook| self.hook(hook)).collect::<Vec<_>>(),
                "heads": self.heads.iter().map(head).collect::<Vec<_>>(),
            },
        });
        mask(&mut report);
        Ok(report)
    }

    /// Events that are there, and those that only the log remembers: they were let go when they were old.
    fn events(&self) -> Vec<Value> {
        let sealed = self.sealed();
        let there =
            self.dossier.events.iter().map(|event| self.event(event, sealed.get(&event.seq).copied()));
        let gone = sealed.iter().filter(|(seq, _)| !self.papers.contains_key(seq)).map(|(seq, entry)| {
            let details = details(entry);
            json!({
                "id": seq.as_event().to_string(),
                "event_id": details["event_id"],
                "source": details["source"],
                "type": details["event_type"],
                "gone": true,
                "body_sha256": null,
                "sealed_sha256": details[SEALED],
            })
        });
        gone.chain(there).collect()
    }

    /// `sealed` is the entry that remembers its body.
    fn event(&self, summary: &EventSummary, sealed: Option<&AuditEntry>) -> Value {
        let mut shown = event(summary);
        let paper = self.papers.get(&summary.seq);
        shown["gone"] = paper.is_none().into();
        shown["body_sha256"] = json!(paper.map(|paper| &paper.body_sha256));
        shown["body_bytes"] = json!(paper.map(|paper| paper.body_bytes));
        shown["headers_sha256"] = json!(paper.map(|paper| &paper.headers_sha256));
        shown["header_names"] = json!(paper.map(|paper| &paper.header_names));
        shown["sealed_sha256"] = sealed.map_or(Value::Null, |entry| details(entry)[SEALED].take());
        shown
    }

    /// The entry that remembers each event's body.
    fn sealed(&self) -> BTreeMap<Seq, &AuditEntry> {
        let of = |entry: &AuditEntry| entry.entry.event.filter(|_| details(entry)[SEALED].is_string());
        self.dossier.entries.iter().filter_map(|entry| Some((of(entry)?, entry))).collect()
    }

    /// Without what was answered: only how.
    fn delivery(&self, delivery: &Message) -> Value {
        let mut shown = message(delivery);
        let calls = self.calls.get(&delivery.job).into_iter().flatten();
        let calls = calls.map(|(attempt, call)| {
            let Attempt { at, took_ms, status, reason, .. } = call;
            json!({ "attempt": attempt, "at": at, "took_ms": took_ms, "status": status, "reason": reason })
        });
        shown["calls"] = calls.collect();
        shown
    }

    fn notices(&self) -> Vec<Value> {
        let each = self.dossier.notices.iter().map(|(id, known)| {
            let mut shown = notice(id, known, false);
            // What was told may name more than this payment.
            shown["details"] = Value::Null;
            shown
        });
        each.collect()
    }

    /// By currency and mode, as posted: each must be nothing.
    fn sums(&self) -> Vec<Value> {
        let mut sums: BTreeMap<_, i128> = BTreeMap::new();
        for line in &self.dossier.lines {
            *sums.entry((&line.posting.currency, line.posting.livemode)).or_default() +=
                i128::from(line.posting.amount);
        }
        let each = sums.into_iter().map(|((currency, livemode), sum)| {
            json!({ "currency": currency, "livemode": livemode, "sum": sum.to_string(), "balanced": sum == 0 })
        });
        each.collect()
    }

    /// Entries of this payment whole, of the others only what the link's hash is made of.
    fn hook(&self, hook: &Hook) -> Value {
        let Hook { link, followed_as } = hook;
        let own = |one: &&AuditEntry| self.dossier.ids.contains(&one.entry.target.1);
        let entry = |one: &AuditEntry| match Some(one).filter(own) {
            Some(one) => {
                let mut shown = sealed(one);
                let whole = shown.clone();
                mask(&mut shown);
                // Its digest can't be computed from what is masked.
                shown["masked"] = (shown != whole).into();
                shown
            }
            None => json!({ "id": one.number, "digest": encode_hex(one.entry.digest()) }),
        };
        json!({
            "chain": link.chain,
            "n": link.n,
            "previous": encode_hex(&link.previous),
            "hash": encode_hex(&link.hash),
            "followed_as": followed_as.as_ref().map(encode_hex),
            "entries": link.entries.iter().map(entry).collect::<Vec<_>>(),
        })
    }
}

impl Paper {
    fn of(headers: &str, body: &[u8]) -> Self {
        let names: Vec<(String, Value)> = serde_json::from_str(headers).unwrap_or_default();
        Self {
            body_sha256: seal(body),
            body_bytes: body.len(),
            headers_sha256: seal(headers.as_bytes()),
            header_names: names.into_iter().map(|(name, _)| name).collect(),
        }
    }
}

impl Hook {
    async fn at(store: &dyn Store, chain: i64, n: i64) -> Result<Option<Self>> {
        let mut links = store.find_links(Some((chain, n.saturating_sub(1))), 2).await?.into_iter();
        let Some(link) = links.next().filter(|link| (link.chain, link.n) == (chain, n)) else {
            return Ok(None);
        };
        let next = links.next().filter(|next| next.chain == chain);
        Ok(Some(Self { link, followed_as: next.map(|next| next.previous) }))
    }
}

fn deliveries(dossier: &Dossier) -> impl Iterator<Item = &Message> {
    dossier.messages.values().flatten().filter(|one| one.lane.route().is_some())
}

fn details(entry: &AuditEntry) -> Value {
    serde_json::from_str(&entry.entry.details).unwrap_or_default()
}

/// An entry of the log as a step from before to after.
fn decision(mut entry: Value) -> Value {
    let details = entry["details"].take();
    json!({
        "id": entry["id"],
        "at": entry["at"],
        "actor": entry["actor"],
        "role": entry["role"],
        "action": entry["action"],
        "payment": entry["target"],
        "event": entry["event"],
        "event_id": details["event_id"],
        "event_type": details["event_type"],
        "merged": details["merged"],
        "before": details["before"],
        "after": details["after"],
    })
}

/// A line with the amount as its owner expects it, and as it is posted, which is what sums to zero.
fn booked(booked: &BookedLine) -> Value {
    let mut shown = line(booked);
    shown["posted"] = booked.posting.amount.into();
    shown
}

fn head(head: &ChainHead) -> Value {
    json!({ "chain": head.chain, "n": head.n, "hash": encode_hex(&head.hash) })
}

/// Hides mail addresses, wherever somebody wrote one.
fn mask(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('@') => *text = mask_text(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Object(fields) => fields.values_mut().for_each(mask),
    }
}

#[cfg(test)]
mod tests;
