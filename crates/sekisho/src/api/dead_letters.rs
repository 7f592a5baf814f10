//! Dead letters: what waits for a person, and what the person decides.

use sekisho_store::{DeadFilter, GROUPED_MAX};

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::params::{ADDRESSES, BEFORE, LIMIT};
use super::problem;
use crate::config::Scope;
use crate::types::{
    DeadGroup, DeadLetter, DeadLetterDetail, DeadLetterSelection, DeadQuery, DeadReport, List, Page,
};
use crate::{acts, view};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/dead-letters",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Dead letters, the newest first",
        parameters: &[BEFORE, LIMIT],
        query: Some(schema::<DeadQuery>),
        body: None,
        answer: schema::<Page<DeadLetter>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/dead-letters/groups",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Dead letters grouped by cause, with the amount at risk; of the newest 10,000",
        parameters: &[],
        query: Some(schema::<DeadQuery>),
        body: None,
        answer: schema::<List<DeadGroup>>,
        success: Success::Done,
        run: |call| Box::pin(groups(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/dead-letters/{id}",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "One dead letter with its event and every call that failed",
        parameters: &[ADDRESSES],
        query: None,
        body: None,
        answer: schema::<DeadLetterDetail>,
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/dead-letters/retry",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Retry dead letters; `dry_run` lists them",
        parameters: &[],
        query: None,
        body: Some(schema::<DeadLetterSelection>),
        answer: schema::<DeadReport>,
        success: Success::Done,
        run: |call| Box::pin(retry(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/dead-letters/discard",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Discard dead letters, with a reason; `dry_run` lists them",
        parameters: &[],
        query: None,
        body: Some(schema::<DeadLetterSelection>),
        answer: schema::<DeadReport>,
        success: Success::Done,
        run: |call| Box::pin(discard(call)),
    },
];

async fn list(call: Call) -> Answer {
    let mut filter = call.params.query::<DeadQuery>()?.filter()?;
    (filter.limit, filter.before) = (call.params.limit()?, call.params.before()?);
    let limit = filter.limit;
    let found = call.api.store.find_dead(filter).await?;
    let now = call.api.env.wall();
    let mut items: Vec<_> =
        found.iter().map(|letter| view::dead_letter(letter, &call.api.places, now)).collect();
    view::unlink(&*call.api.store, &mut items).await?;
    Ok(Page::full(items, limit, |letter| &letter.id).into())
}

async fn groups(call: Call) -> Answer {
    let filter = DeadFilter { limit: GROUPED_MAX, ..call.params.query::<DeadQuery>()?.filter()? };
    let groups = call.api.store.find_dead_groups(filter).await?;
    Ok(groups.into_iter().map(DeadGroup::from).collect::<List<_>>().into())
}

async fn show(call: Call) -> Answer {
    let shown =
        view::dead_letter_with_all(&*call.api.store, &call.api.places, call.id()?, call.api.env.wall())
            .await?;
    let missing = || problem::missing(format!("no dead letter has the id {} (any more)", call.path));
    call.veiled(shown.ok_or_else(missing)?)
}

async fn retry(call: Call) -> Answer {
    let actor = call.actor();
    Ok(acts::retry(&*call.api.store, &call.order()?, &actor).await?.into())
}

async fn discard(call: Call) -> Answer {
    let actor = call.actor();
    Ok(acts::discard(&*call.api.store, &call.order()?, &actor).await?.into())
}
