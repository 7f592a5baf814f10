//! Deliveries that wait, taken out of the queue for good.

use std::collections::BTreeMap;

use sekisho_core::Seq;
use sekisho_core::actor::Actor;
use sekisho_core::selection::{self, SELECT_MAX};
use sekisho_store::{CLAIM_MAX, DeliveryStatus, FIND_MAX, Standing, Store};

use crate::queries::find_deliveries;
use crate::refusal::{Refusal, Result};
use crate::types::{DeliveryQuery, DeliveryReport, DeliverySelection, RouteShare};

/// Cancels them. Asks for a reason.
pub async fn cancel(
    store: &dyn Store,
    order: &DeliverySelection,
    actor: &Actor<'_>,
) -> Result<DeliveryReport> {
    let reason = selection::check_discard(&order.reason, order.dry_run)?;
    let (mut report, jobs) = to_cancel(store, order).await?;
    for chunk in jobs.chunks(CLAIM_MAX).filter(|_| !order.dry_run) {
        let cancelled = store.cancel(chunk.to_vec(), actor.act(&reason)).await?;
        report.done += cancelled.into_iter().filter(|was_there| *was_there).count();
    }
    Ok(report)
}

/// What would be cancelled: found before anything is done.
pub async fn to_cancel(store: &dyn Store, order: &DeliverySelection) -> Result<(DeliveryReport, Vec<Seq>)> {
    selection::check(order.ids.len(), order.filter != DeliveryQuery::default(), order.all)?;
    let mut report = DeliveryReport { dry_run: order.dry_run, ..DeliveryReport::default() };
    let mut found: BTreeMap<Seq, String> = BTreeMap::new();
    if order.ids.is_empty() {
        let status = DeliveryStatus::Waiting.name();
        if order.filter.status.as_deref().is_some_and(|wanted| wanted != status) {
            return Err(Refusal::Invalid(
                "only deliveries that wait can be cancelled: status: waiting".into(),
            ));
        }
        let query = DeliveryQuery { status: Some(status.to_owned()), ..order.filter.clone() };
        let mut before = None;
        loop {
            let page = find_deliveries(store, &query, before, FIND_MAX).await?;
            let waiting = page.deliveries.into_iter().filter(|one| one.standing != Standing::Running);
            found.extend(waiting.map(|one| (one.job, one.lane.route().unwrap_or_default().to_owned())));
            before = page.next;
            if before.is_none() {
                break;
            }
            if found.len() >= SELECT_MAX {
                report.more = true;
                break;
            }
        }
    } else {
        for id in &order.ids {
            let job: Seq = id.parse().map_err(|error| Refusal::Invalid(format!("{id:?} is {error}")))?;
            let message = store.find_message(job).await?;
            let route = message.filter(|message| matches!(message.standing, Standing::Waiting(_)));
            match route.and_then(|message| message.lane.route().map(str::to_owned)) {
                Some(route) => drop(found.insert(job, route)),
                None => report.missing.push(id.clone()),
            }
        }
        if found.is_empty() {
            let ids = report.missing.join(", ");
            return Err(Refusal::Missing(format!("no waiting delivery has the id {ids} (any more)")));
        }
    }
    let newest = found.keys().next_back().map(|newest| newest.made_at()).filter(|_| order.ids.is_empty());
    report.until = newest.map(selection::just_after).or(order.filter.until);
    report.found = found.len();
    let mut routes: BTreeMap<&str, usize> = BTreeMap::new();
    for route in found.values() {
        *routes.entry(route).or_default() += 1;
    }
    report.routes =
        routes.into_iter().map(|(route, count)| RouteShare { route: route.to_owned(), count }).collect();
    Ok((report, found.into_keys().collect()))
}
