//! Dead letters, by what they have in common or by their id.

use sekisho_core::Seq;
use sekisho_core::job::Lane;
use sekisho_store::{DeadFilter, DeadGroup, DeadLetter, Risk, Store};

use crate::refusal::{Refusal, Result};
use crate::types::{self, DeadQuery};

impl DeadQuery {
    pub fn filter(&self) -> Result<DeadFilter> {
        let event = self.event.as_ref().map(|id| {
            let wanted = "expected the event's id as Sekisho writes it: evt_ and 13 characters";
            id.parse::<Seq>().map_err(|_| Refusal::Invalid(wanted.into()))
        });
        let lane = match (&self.route, &self.lane) {
            (Some(_), Some(_)) => {
                return Err(Refusal::Invalid("route and lane say the same: write one of them".into()));
            }
            (Some(route), None) => Some(Lane::to_route(route)),
            (None, lane) => lane.clone().map(Lane::from),
        };
        Ok(DeadFilter {
            source: self.source.clone(),
            event_type: self.event_type.clone(),
            reason: self.reason.clone(),
            lane,
            event: event.transpose()?,
            since: self.since,
            until: self.until,
            ..DeadFilter::default()
        })
    }
}

impl From<DeadGroup> for types::DeadGroup {
    fn from(group: DeadGroup) -> Self {
        let risk = |risk: Risk| types::Risk {
            currency: risk.currency,
            amount: risk.amount,
            payments: risk.payments,
        };
        Self {
            reason: group.reason,
            class: group.class.name().to_owned(),
            lane: group.lane.0.to_string(),
            count: group.count,
            oldest: group.oldest,
            newest: group.newest,
            at_risk: group.at_risk.into_iter().map(risk).collect(),
        }
    }
}

/// One dead letter by its id.
pub async fn find_letter(store: &dyn Store, job: Seq) -> sekisho_store::Result<Option<DeadLetter>> {
    let just_below = Seq::from_i64(job.as_i64().saturating_add(1));
    let filter = DeadFilter { before: Some(just_below), limit: 1, ..DeadFilter::default() };
    Ok(store.find_dead(filter).await?.into_iter().find(|letter| letter.job == job))
}
