//! Which deliveries, as the filters of the list say it: read from an address or a form, and written back into one.

use sekisho_core::Time;
use sekisho_core::calendar::Zone;

use super::HOME;
use crate::console::page::time;
use crate::console::trouble::Trouble;
use crate::types::{DeliveryQuery, read_query, write_query};

#[derive(Clone)]
pub struct ChosenDeliveries {
    pub query: DeliveryQuery,
    zone: Zone,
}

impl ChosenDeliveries {
    pub fn of<'v>(get: impl Fn(&str) -> Option<&'v str>, zone: &Zone) -> Result<Self, Trouble> {
        let (since, until) = (time("since", get("since"), zone)?, time("until", get("until"), zone)?);
        let query = read_query(|name| match name {
            "since" => since.map(|at| at.to_string()),
            "until" => until.map(|at| at.to_string()),
            other => get(other).map(str::to_owned),
        });
        let query = query.map_err(|wrong| Trouble::wrong(wrong.to_string()))?;
        Ok(Self { query, zone: zone.clone() })
    }

    /// Only those that were queued before a moment.
    pub fn until(&self, at: Time) -> Self {
        let mut chosen = self.clone();
        chosen.query.until = chosen.query.until.or(Some(at));
        chosen
    }

    pub fn is_all(&self) -> bool {
        self.query == DeliveryQuery::default()
    }

    pub fn fields(&self) -> Vec<(String, String)> {
        write_query(&self.query)
    }

    /// The same, at an address.
    pub fn link(&self, path: &str) -> String {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(self.fields()).finish();
        if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
    }

    pub fn next(&self, before: &str) -> String {
        let link = self.link(HOME);
        format!("{link}{}before={before}", if link.contains('?') { '&' } else { '?' })
    }

    /// Cancelling those of them that wait.
    pub fn cancel(&self) -> String {
        let mut chosen = self.clone();
        chosen.query.status = None;
        chosen.link("/console/deliveries/cancel")
    }

    /// Retrying those of them that failed: they are dead letters.
    pub fn retry(&self) -> String {
        let lane = self.query.route.as_ref().map(|route| ("lane", format!("to:{route}")));
        let event = self.query.event.as_ref().map(|event| ("event", event.clone()));
        let fields = lane.into_iter().chain(event);
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        format!("/console/dead/retry?{query}")
    }

    pub fn value(&self, name: &str) -> String {
        let found = self.fields().into_iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value).unwrap_or_default()
    }

    /// A time as its input wants it: by the house's clock, to the minute.
    pub fn clock(&self, name: &str) -> String {
        let at = if name == "since" { self.query.since } else { self.query.until };
        let shown = at.map(|at| self.zone.clock(at).replace(' ', "T")).unwrap_or_default();
        shown.chars().take("2026-02-02T11:40".len()).collect()
    }
}
