//! One payment with all the evidence for it, in a report that stands by itself: how it stands, the events and what their
//! bodies hash to, what was decided and when, what followed, the lines of the books, and the links of the audit log that
//! hold all of this, so that a reader can compute the hashes again.
//!
//! Whole mail addresses, header values and bodies stay out of it: it is made to be handed on.

mod check;
mod page;

use std::collections::BTreeMap;

use sekisho_core::audit::seal;
use sekisho_core::job::Attempt;
use sekisho_core::mail_address::mask_text;
use sekisho_core::provider::encode_hex;
use sekisho_core::state::State;
use sekisho_core::{Seq, Time};
use sekisho_store::{
    AuditEntry, AuditLink, BookedLine, ChainHead, Error, EventSummary, Result, Store, StoredMessage,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{audit, event, line, message, notice, payment, unlink};
use crate::queries::{self, Dossier, dossier, payment_state};
use crate::refusal::Refusal;
use crate::types::{
    self, ChangeDetails, Difference, OwnEntry, PaymentProof, ProofBooks, ProofCall, ProofChain,
    ProofDecision, ProofDelivery, ProofEntry, ProofEvent, ProofHead, ProofLine, ProofLink, ProofSum,
    RememberedEvent, StoredEvent,
};
use crate::view::sealed;

pub use page::page;

/// How often a payment that changes meanwhile is looked at again.
const LOOKS: usize = 3;

/// The report of one payment, by our id; `None` when there is none.
pub async fn proof(store: &dyn Store, id: &str, now: Time) -> Result<Option<PaymentProof>> {
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
    digests: BTreeMap<Seq, RequestDigest>,
    calls: BTreeMap<Seq, Vec<(i32, Attempt)>>,
    hooks: Vec<Hook>,
    heads: Vec<ChainHead>,
    differences: Vec<Difference>,
}

/// What an event's request hashes to.
struct RequestDigest {
    body_sha256: String,
    body_bytes: usize,
    headers_sha256: String,
    header_names: Vec<String>,
}

/// A link that holds entries of this payment.
struct Hook {
    link: AuditLink,
    /// What the link after it says of it; `None` where it is the last.
    followed_as: Option<Vec<u8>>,
}

impl Evidence {
    async fn gather(store: &dyn Store, state: State, now: Time) -> Result<Self> {
        let dossier = dossier(store, state, now).await?;
        let mut digests = BTreeMap::new();
        for event in &dossier.events {
            if let Some(record) = store.find_event(event.seq).await? {
                digests.insert(event.seq, RequestDigest::of(&record.headers, &record.body));
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
        let differences = match queries::differences(store, &dossier.state, parts).await {
            Ok(differences) => differences,
            Err(Refusal::Store(error)) => return Err(error),
            Err(other) => return Err(Error::corrupt(other)),
        };
        Ok(Self { dossier, digests, calls, hooks, heads, differences })
    }

    async fn report(&self, store: &dyn Store, now: Time) -> Result<PaymentProof> {
        let mut shown = payment(&self.dossier.state)?;
        let checks = self.checks(&json!(shown));
        unlink(store, [&mut shown]).await?;
        masked(&PaymentProof {
            object: "payment_proof".to_owned(),
            made_at: now,
            made_by: concat!("sekisho ", env!("CARGO_PKG_VERSION")).to_owned(),
            passed: checks.iter().all(|check| check.passed),
            complete: self.dossier.is_whole,
            checks,
            payment: shown,
            known_as: self.dossier.facts.names.iter().cloned().collect(),
            parts: self.dossier.ids.get(1..).unwrap_or_default().to_vec(),
            events: self.events(),
            decisions: self.dossier.entries.iter().map(audit).map(decision).collect(),
            deliveries: deliveries(&self.dossier).map(|one| self.delivery(one)).collect(),
            notices: self.notices(),
            books: ProofBooks { lines: self.dossier.lines.iter().map(booked).collect(), sums: self.sums() },
            chain: ProofChain {
                links: self.hooks.iter().map(|hook| self.hook(hook)).collect::<Result<_>>()?,
                heads: self.heads.iter().map(head).collect(),
            },
        })
    }

    /// Events that are there, and those that only the log remembers: they were let go when they were old.
    fn events(&self) -> Vec<ProofEvent> {
        let sealed = self.sealed();
        let there =
            self.dossier.events.iter().map(|event| {
                ProofEvent::Stored(Box::new(self.event(event, sealed.get(&event.seq).copied())))
            });
        let gone = sealed.iter().filter(|(seq, _)| !self.digests.contains_key(seq)).map(|(seq, entry)| {
            let details = details(entry);
            ProofEvent::Remembered(RememberedEvent {
                id: seq.as_event().to_string(),
                event_id: details.event_id,
                source: details.source,
                event_type: details.event_type,
                gone: true,
                body_sha256: None,
                sealed_sha256: details.body_sha256,
            })
        });
        gone.chain(there).collect()
    }

    /// `sealed` is the entry that remembers its body.
    fn event(&self, summary: &EventSummary, sealed: Option<&AuditEntry>) -> StoredEvent {
        let digest = self.digests.get(&summary.seq);
        StoredEvent {
            event: event(summary),
            gone: digest.is_none(),
            body_sha256: digest.map(|digest| digest.body_sha256.clone()),
            body_bytes: digest.map(|digest| digest.body_bytes),
            headers_sha256: digest.map(|digest| digest.headers_sha256.clone()),
            header_names: digest.map(|digest| digest.header_names.clone()),
            sealed_sha256: sealed.and_then(|entry| details(entry).body_sha256),
        }
    }

    /// The entry that remembers each event's body.
    fn sealed(&self) -> BTreeMap<Seq, &AuditEntry> {
        let of = |entry: &AuditEntry| entry.entry.event.filter(|_| details(entry).body_sha256.is_some());
        self.dossier.entries.iter().filter_map(|entry| Some((of(entry)?, entry))).collect()
    }

    fn delivery(&self, delivery: &StoredMessage) -> ProofDelivery {
        let calls = self.calls.get(&delivery.job).into_iter().flatten();
        let calls = calls.map(|(attempt, call)| ProofCall {
            attempt: *attempt,
            at: call.at,
            took_ms: call.took_ms,
            status: call.status,
            reason: call.reason.clone(),
        });
        ProofDelivery { message: message(delivery), calls: calls.collect() }
    }

    fn notices(&self) -> Vec<types::Notice> {
        let each = self.dossier.notices.iter();
        // What was told may name more than this payment.
        each.map(|(id, known)| types::Notice { details: Value::Null, ..notice(id, known, false) }).collect()
    }

    /// By currency and mode, as posted: each must be nothing.
    fn sums(&self) -> Vec<ProofSum> {
        let mut sums: BTreeMap<_, i128> = BTreeMap::new();
        for line in &self.dossier.lines {
            *sums.entry((&line.posting.currency, line.posting.livemode)).or_default() +=
                i128::from(line.posting.amount);
        }
        let each = sums.into_iter().map(|((currency, livemode), sum)| ProofSum {
            currency: currency.clone(),
            livemode,
            sum: sum.to_string(),
            balanced: sum == 0,
        });
        each.collect()
    }

    /// Entries of this payment whole, of the others only what the link's hash is made of.
    fn hook(&self, hook: &Hook) -> Result<ProofLink> {
        let Hook { link, followed_as } = hook;
        let entry = |one: &AuditEntry| {
            if !self.dossier.ids.contains(&one.entry.target.1) {
                return Ok(ProofEntry::Other { id: one.number, digest: encode_hex(one.entry.digest()) });
            }
            let whole = sealed(one);
            let entry = masked(&whole)?;
            Ok(ProofEntry::Own(Box::new(OwnEntry { masked: entry != whole, entry })))
        };
        Ok(ProofLink {
            chain: link.chain,
            n: link.n,
            previous: encode_hex(&link.previous),
            hash: encode_hex(&link.hash),
            followed_as: followed_as.as_ref().map(encode_hex),
            entries: link.entries.iter().map(entry).collect::<Result<_>>()?,
        })
    }
}

impl RequestDigest {
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

fn deliveries(dossier: &Dossier) -> impl Iterator<Item = &StoredMessage> {
    dossier.messages.values().flatten().filter(|one| one.lane.route().is_some())
}

fn details(entry: &AuditEntry) -> ChangeDetails {
    ChangeDetails::of(&entry.entry.details)
}

/// An entry of the log as a step from before to after.
fn decision(entry: types::AuditEntry) -> ProofDecision {
    let ChangeDetails { event_id, event_type, merged, before, after, .. } =
        ChangeDetails::read(entry.details);
    ProofDecision {
        id: entry.id,
        at: entry.at,
        event_id,
        event_type,
        merged,
        before,
        after,
        actor: entry.actor,
        role: entry.role,
        action: entry.action,
        payment: entry.target,
        event: entry.event,
    }
}

/// A line with the amount as its owner expects it, and as it is posted, which is what sums to zero.
fn booked(booked: &BookedLine) -> ProofLine {
    ProofLine { line: line(booked), posted: booked.posting.amount }
}

fn head(head: &ChainHead) -> ProofHead {
    ProofHead { chain: head.chain, n: head.n, hash: encode_hex(&head.hash) }
}

/// The same without mail addresses, wherever somebody wrote one.
fn masked<T: Serialize + DeserializeOwned>(shown: &T) -> Result<T> {
    let mut value = json!(shown);
    mask(&mut value);
    serde_json::from_value(value).map_err(Error::corrupt)
}

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
