//! Many of the directory at once: what `sekisho staff import` and its siblings send, a part of their file at a time.

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use crate::acts;
use crate::config::Scope;
use crate::types::{Import, Imported};

pub const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Method::Post,
    path: "/v1/import",
    scope: Some(Scope::Write),
    for_tenants: true,
    summary: "Enter up to 1000 of one kind (tenant, customer, staff, subject), each row as it would be posted by itself: \
              all of them, or none if one is wrong. Rows that change nothing are left as they are",
    parameters: &[],
    query: None,
    body: Some(schema::<Import>),
    answer: schema::<Imported>,
    success: Success::Done,
    run: |call| Box::pin(import(call)),
}];

async fn import(call: Call) -> Answer {
    let report = acts::import(&*call.api.store, call.order()?, &call.actor()).await?;
    Ok(report.into())
}
