//! The provider's list of events, page by page: what is known is counted, what is not goes in.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use sekisho_core::Time;
use sekisho_core::change::Arrival;
use sekisho_core::event::{Identity, Stored, Trust};
use sekisho_core::job::DeadReason;
use sekisho_core::provider::read_listed;
use sekisho_core::queue::Failure;
use sekisho_core::reconcile::EventStanding;
use sekisho_core::settlement;
use sekisho_store::{EventFilter, Status};
use serde_json::value::RawValue;

use super::{PAGES_MAX, Reader, UNSETTLED_PAGES_MAX, VIA, too_long};
use crate::jobs::unavailable;

impl Reader<'_> {
    pub(super) async fn events(&mut self, since: Time) -> Result<(), Failure> {
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let now = self.base.node.now();
            let call = self.lister.events(since, self.started, cursor.as_deref(), now).await;
            let page = self.page(call).await?;
            self.take_in(&page.items).await?;
            cursor = page.next;
            if cursor.is_none() {
                return Ok(());
            }
        }
        Err(too_long())
    }

    /// Notes which payments the newest events speak of. Nothing is taken in, and nothing counted again.
    pub(super) async fn look_for_young(&mut self) -> Result<(), Failure> {
        let since = self.started.plus_ms(-self.own.policy.grace_ms);
        // The same question for every page.
        let (until, mut cursor) = (self.base.node.now(), None);
        for _ in 0..PAGES_MAX {
            let now = self.base.node.now();
            let call = self.lister.events(since, until, cursor.as_deref(), now).await;
            let page = self.page(call).await?;
            let listed: Vec<_> = page.items.iter().filter_map(|item| self.arrival(item, now)).collect();
            // Some providers know no such window.
            let is_young = |arrival: &&Arrival| arrival.created_at.is_some_and(|created| created >= since);
            listed.iter().filter(is_young).for_each(|arrival| self.touch(&arrival.stored()));
            cursor = page.next;
            if cursor.is_none() {
                return Ok(());
            }
        }
        Err(too_long())
    }

    /// Notes which payments those events speak of that came and wait to be settled: objects are not compared with what
    /// is not written yet.
    pub(super) async fn look_for_unsettled(&mut self) -> Result<(), Failure> {
        let mut before = None;
        for _ in 0..UNSETTLED_PAGES_MAX {
            let source = Some(self.door.name.to_string());
            let (status, limit) = (Some(Status::Received), sekisho_store::FIND_MAX);
            let filter = EventFilter { source, status, before, limit, ..EventFilter::default() };
            let page = self.base.store.find_events(filter).await.map_err(unavailable)?;
            let seqs = page.events.iter().map(|event| event.seq).collect();
            let waiting = self.base.store.load_events(seqs).await.map_err(unavailable)?;
            waiting.iter().for_each(|event| self.touch(event));
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        Ok(())
    }

    async fn take_in(&mut self, items: &[Box<RawValue>]) -> Result<(), Failure> {
        let now = self.base.node.now();
        let listed: Vec<_> = items.iter().filter_map(|item| self.arrival(item, now)).collect();
        let keys: Vec<_> = listed.iter().map(|arrival| arrival.key).collect();
        let known = self.base.store.known(&keys).await.map_err(unavailable)?;
        let (policy, started) = (&self.own.policy, self.started);
        let (mut unknown, mut standings) = (Vec::new(), Vec::new());
        for (arrival, known) in listed.into_iter().zip(known) {
            let is_young = !policy.is_gap(arrival.created_at, started);
            if known.is_none() || is_young {
                self.touch(&arrival.stored());
            }
            let standing = match known {
                Some(_) => EventStanding::Known,
                None if is_young => EventStanding::Young,
                None if self.dry_run => EventStanding::Missing,
                None => EventStanding::Closed,
            };
            if known.is_none() {
                unknown.push((standings.len(), arrival.clone()));
            }
            standings.push((arrival.created_at, standing));
        }
        if !self.dry_run {
            let (places, arrivals): (Vec<_>, Vec<_>) = unknown.into_iter().unzip();
            for (place, is_new) in places.into_iter().zip(self.admit(arrivals).await?) {
                if !is_new {
                    // It came by itself meanwhile.
                    standings[place].1 = EventStanding::Known;
                }
            }
        }
        for (created, standing) in standings {
            self.found.note(created, standing, self.register.water(self.started));
        }
        Ok(())
    }

    /// A listed event as its webhook would have brought it; `None` when nothing here would ask for it.
    fn arrival(&self, item: &RawValue, now: Time) -> Option<Arrival> {
        let (door, own) = (self.door, self.own);
        let event = match read_listed(&*door.scheme, item.get(), now) {
            Ok(event) => event,
            Err(unusable) => {
                tracing::warn!(error_type = "unusable_body", source = &*door.name, reason = %unusable, "a listed event can't be read; it is left out");
                return None;
            }
        };
        let is_named = own.policy.events.iter().any(|pattern| pattern.matches(&event.kind));
        if !is_named && !settlement::is_read(door.origin.provider, &event.kind) {
            return None;
        }
        let is_foreign = DeadReason::of_mode(door.origin.livemode, event.livemode)
            .or_else(|| DeadReason::of_account(door.account.as_deref(), event.account.as_deref()));
        if is_foreign.is_some() {
            return None;
        }
        let identity = Identity::of(&door.name, &event, None);
        let received_at = self.base.node.now();
        Some(Arrival {
            key: identity.key,
            first_body: identity.first_body,
            seq: self.base.node.next_seq(received_at),
            received_at,
            source: Arc::clone(&door.name),
            event_id: event.id.clone().into_owned(),
            event_type: event.kind.clone().into_owned(),
            created_at: event.created.map(|created| created.at),
            object: event.object.map(|object| (object.kind.into_owned(), object.id.into_owned())),
            account: event.account.clone().map(Cow::into_owned),
            livemode: event.livemode,
            trust: Trust::Fetched,
            headers: VIA.into(),
            body: Bytes::copy_from_slice(&event.body),
            held: DeadReason::of_age(event.created, received_at.plus_ms(-own.kept_ms)),
        })
        .filter(|arrival| is_named || self.is_settled(arrival))
    }

    /// Whether it says something that is settled: only of such an event it matters that it is missing.
    fn is_settled(&self, arrival: &Arrival) -> bool {
        !matches!(settlement::read(self.door.origin, &arrival.stored(), &self.own.references), Ok(None))
    }

    fn touch(&mut self, event: &Stored) {
        let read = settlement::read(self.door.origin, event, &self.own.references);
        let payment = read.ok().flatten().and_then(|reading| reading.payment);
        self.touched.extend(payment.into_iter().flat_map(|facts| facts.names));
    }
}
