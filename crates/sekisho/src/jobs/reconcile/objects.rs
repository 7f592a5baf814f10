//! The provider's objects, compared with our facts: this also finds what the provider never made an event of.

use sekisho_core::Time;
use sekisho_core::change::Arrival;
use sekisho_core::event::Trust;
use sekisho_core::queue::Failure;
use sekisho_core::reconcile::register::{OURS, THEIRS};
use sekisho_core::reconcile::{Comparison, Discrepancy, ReadAt, compare};
use sekisho_core::settlement::{self, Cause, Fetch, Input};
use sekisho_core::state::{Loaded, Wanted};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{PAGES_MAX, Reader, VIA, too_long};
use crate::jobs::unavailable;

/// An object that says more than we know.
pub(super) struct Differing {
    object: String,
    id: String,
    input: Input,
    arrival: Arrival,
}

/// What every object says of itself.
#[derive(Deserialize)]
struct Named {
    id: String,
    #[serde(alias = "created_at")]
    created: Option<serde_json::Value>,
    livemode: Option<bool>,
}

impl Named {
    /// Seconds, or RFC 3339.
    fn created(&self) -> Option<Time> {
        let created = self.created.as_ref()?;
        created.as_i64().map(Time::from_seconds).or_else(|| Time::parse_rfc3339(created.as_str()?))
    }
}

impl Reader<'_> {
    /// The objects whose joining would change something.
    pub(super) async fn objects(&mut self, since: Time) -> Result<Vec<Differing>, Failure> {
        let mut differing = Vec::new();
        for object in self.lister.objects() {
            let mut cursor = None;
            let mut pages = 0..PAGES_MAX;
            loop {
                pages.next().ok_or_else(too_long)?;
                let at = self.base.node.now();
                let call = self.lister.list(object, since, cursor.as_deref(), at).await;
                let page = self.page(call).await?;
                let objects = page.items.iter().filter_map(|item| self.object(object, item));
                let objects: Vec<_> = objects.collect();
                differing.extend(self.compare(objects, at).await?);
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
        }
        Ok(differing)
    }

    /// Takes in what differs, unless an event of it is on its way.
    pub(super) async fn join(&mut self, differing: Vec<Differing>) -> Result<(), Failure> {
        let is_on_its_way = |one: &Differing| {
            let names = one.input.reading.payment.as_ref().map(|facts| &facts.names);
            names.is_some_and(|names| names.iter().any(|name| self.touched.contains(name)))
        };
        let differing: Vec<_> = differing.into_iter().filter(|one| !is_on_its_way(one)).collect();
        let new = if self.dry_run {
            vec![true; differing.len()]
        } else {
            self.admit(differing.iter().map(|one| one.arrival.clone()).collect()).await?
        };
        for (one, is_new) in differing.into_iter().zip(new) {
            // The same answer twice waits to be settled, or says nothing that could be.
            if is_new {
                let Differing { object, id, .. } = one;
                let detail = if self.dry_run {
                    format!("{object} {id} is behind here, and would be taken in")
                } else {
                    format!("{object} {id} was behind here, and was taken in")
                };
                self.differ(object, id, THEIRS, detail);
            }
        }
        Ok(())
    }

    async fn compare(&mut self, objects: Vec<Differing>, at: Time) -> Result<Vec<Differing>, Failure> {
        let inputs: Vec<_> = objects.iter().map(|one| one.input.clone()).collect();
        let mut wanted = settlement::names(&inputs);
        let mut differing = Vec::new();
        let mut left = objects;
        while !left.is_empty() {
            let loaded = self.load(&wanted).await?;
            let (asked, mut again) = (wanted.clone(), Vec::new());
            for one in left {
                let read = ReadAt { at, grace_ms: self.own.policy.grace_ms };
                match compare(&one.input, &asked, &loaded, read) {
                    Err(more) => {
                        wanted.extend(more);
                        again.push(one);
                    }
                    Ok(Comparison::Theirs) => differing.push(one),
                    Ok(Comparison::Ours(detail)) => self.ours_only(one, detail),
                    Ok(Comparison::Agree) if self.register.differs(&one.id, OURS) => {
                        self.found.agreed.push(one.id);
                    }
                    Ok(Comparison::Agree | Comparison::Idle | Comparison::Moving) => {}
                }
            }
            left = again;
        }
        Ok(differing)
    }

    fn ours_only(&mut self, one: Differing, detail: String) {
        if !self.register.differs(&one.id, OURS) {
            self.differ(one.object, one.id, OURS, detail);
        }
    }

    fn differ(&mut self, object: String, id: String, kind: &str, detail: String) {
        self.found.figures.differing += 1;
        self.found.differences.push(Discrepancy {
            object,
            id,
            kind: kind.to_owned(),
            detail,
            at: self.started,
        });
    }

    async fn load(&self, wanted: &Wanted) -> Result<Loaded, Failure> {
        let (names, keys) = (wanted.names.iter().cloned().collect(), wanted.keys.iter().cloned().collect());
        self.base.store.load(names, keys).await.map_err(unavailable)
    }

    /// An object as an answer of the provider's, if it can be told what it is and whether its events had time to come.
    fn object(&self, object: &str, item: &RawValue) -> Option<Differing> {
        let named: Named = serde_json::from_str(item.get()).ok()?;
        let created = named.created().unwrap_or(self.started);
        if !self.own.policy.is_gap(named.created(), self.started) {
            return None;
        }
        let fetch = Fetch {
            provider: self.account.provider,
            account: self.account.names.clone(),
            // Without its mode it would be another payment's.
            livemode: Some(self.account.livemode.or(named.livemode)?),
            object: object.to_owned(),
            id: named.id.clone(),
            after_days: 0,
            moment: None,
            trace: None,
        };
        let now = self.base.node.now();
        // Compared as if it had been read when it was made: that it was read later is no news.
        let then = fetch.arrival(self.base.node.next_seq(now), created, item).stored();
        let reading = settlement::read(self.door.origin, &then, &self.own.references).ok()??;
        let arrival = fetch.arrival(then.seq, now, item);
        let arrival = Arrival { trust: Trust::Fetched, headers: VIA.into(), ..arrival };
        let input = Input { seq: then.seq, reading, cause: Cause::of(&then) };
        Some(Differing { object: object.to_owned(), id: named.id, input, arrival })
    }
}
