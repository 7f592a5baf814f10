//! What became of the planetarium's places: by its own ledger, and by the answers of the API at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use sekisho_demo::http;
use sekisho_demo::planetarium::PlacesLedger;
use sekisho_store::FIND_MAX;
use serde::de::DeserializeOwned;

use super::stage::Stage;
use crate::types::{Case, Compensation, Page, Reservation, Slot};

#[derive(Default)]
pub struct DemoPlaces {
    /// What visitors, renderer and Stripe's stand-in did and heard.
    pub ledger: PlacesLedger,
    /// By the API: the status of every reservation, by its id.
    pub statuses: BTreeMap<String, String>,
    /// By the API: capacity and places that are sold, of each show.
    pub slots: BTreeMap<String, (u32, u32)>,
    /// Payments with a case that is not resolved.
    pub in_case: BTreeSet<String>,
    /// Payments of the refunds in the compensation log, once for each entry.
    pub recorded: Vec<String>,
}

pub fn read(stage: &Stage, ledger: PlacesLedger) -> anyhow::Result<DemoPlaces> {
    let api = PlacesApi { address: stage.server.address(), key: &stage.key };
    let mut places = DemoPlaces { ledger, ..DemoPlaces::default() };
    for one in api.all::<Reservation>("/v1/reservations")? {
        places.statuses.insert(one.id, one.status);
    }
    for slot in api.all::<Slot>("/v1/slots")? {
        places.slots.insert(slot.id, (slot.capacity, slot.sold));
    }
    let open = api.all::<Case>("/v1/cases")?.into_iter().filter(|case| case.status != "resolved");
    places.in_case = open.filter_map(|case| case.payment).collect();
    let done = api.all::<Compensation>("/v1/compensations")?.into_iter();
    places.recorded = done.filter(|one| one.kind == "REFUND").filter_map(|one| one.payment).collect();
    Ok(places)
}

struct PlacesApi<'a> {
    address: SocketAddr,
    key: &'a str,
}

impl PlacesApi<'_> {
    /// Page after page.
    fn all<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<Vec<T>> {
        let bearer = format!("Bearer {}", self.key);
        let (mut items, mut before) = (Vec::new(), String::new());
        loop {
            let path = format!("{path}?livemode=false&limit={FIND_MAX}{before}");
            let answer = http::request(self.address, "GET", &path, &[("authorization", &bearer)], b"")?;
            if answer.status != 200 {
                bail!("{path} answered {}: {}", answer.status, answer.text());
            }
            let page: Page<T> =
                serde_json::from_slice(&answer.body).with_context(|| format!("{path}: {}", answer.text()))?;
            items.extend(page.items);
            let Some(next) = page.next else { return Ok(items) };
            before = format!("&before={next}");
        }
    }
}
