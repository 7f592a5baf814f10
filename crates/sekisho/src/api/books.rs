//! The books: every account, whether they are balanced, and whether they say what the payments say.

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::params::Parameter;
use crate::config::Scope;
use crate::types::{Books, BooksReport};
use crate::{queries, view};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/books",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "The sum of every account, and whether all sum to zero in each currency and mode",
        parameters: &[ACCOUNT],
        query: None,
        body: None,
        answer: schema::<Books>,
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/books/check",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Compare all lines with the payments they belong to; reads all of both",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<BooksReport>,
        success: Success::Done,
        run: |call| Box::pin(check(call)),
    },
];

const ACCOUNT: Parameter = Parameter::text("account", "Only this account, which alone is not balanced");

async fn show(call: Call) -> Answer {
    let account = call.params.get(ACCOUNT.name).map(str::to_owned);
    Ok(view::books(&call.api.store.find_sums(account).await?).into())
}

async fn check(call: Call) -> Answer {
    Ok(queries::check_books(&*call.api.store).await?.into())
}
