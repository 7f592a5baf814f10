//! Sources: where events come from, as configured.

use std::future::ready;

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use crate::config::Scope;
use crate::types::{List, Source};

pub const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Method::Get,
    path: "/v1/sources",
    scope: Some(Scope::Read),
    for_tenants: false,
    summary: "Every source with its provider, and the mode if it takes only one",
    parameters: &[],
    query: None,
    body: None,
    answer: schema::<List<Source>>,
    success: Success::Done,
    run: |call| Box::pin(ready(list(&call))),
}];

fn list(call: &Call) -> Answer {
    let known = &call.api.known;
    let source = |name: &String| {
        let origin = known.origins.get(name);
        Source {
            name: name.clone(),
            provider: origin.map(|origin| origin.provider.to_owned()),
            livemode: origin.and_then(|origin| origin.livemode),
        }
    };
    Ok(known.sources.iter().map(source).collect::<List<_>>().into())
}
