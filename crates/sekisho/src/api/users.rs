//! Who may enter the console: invited, ranked, shut out, by commands on this machine. No key decides about people,
//! whatever its scope: that is for admins at the console. What anybody could enter with is never shown.

use sekisho_core::audit::Role;
use sekisho_core::user::{Rank, UserAct};

use super::endpoint::{Answer, Call, Endpoint, Method, SchemaOf, Success, schema};
use super::problem;
use crate::acts::{self, Fields};
use crate::config::Scope;
use crate::http::Problem;
use crate::queries;
use crate::types::{Invite, List, NewInvite, NewRank, User};
use crate::view;

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/users",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Users of the console, by name",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<List<User>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/users/invite",
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary: "Create an invitation link for one user; only this response shows it",
        parameters: &[],
        query: None,
        body: Some(schema::<NewInvite>),
        answer: schema::<Invite>,
        success: Success::Created,
        run: |call| Box::pin(invite(call)),
    },
    change(
        "/v1/users/{name}/rank",
        "Change a user's role; the last admin keeps theirs",
        Some(schema::<NewRank>),
        |call| Box::pin(set_rank(call)),
    ),
    change("/v1/users/{name}/disable", "Deactivate a user and end every session", None, |call| {
        Box::pin(act(call, UserAct::Disable))
    }),
    change("/v1/users/{name}/enable", "Reactivate a user", None, |call| Box::pin(act(call, UserAct::Enable))),
    change("/v1/users/{name}/end-sessions", "End every session of a user", None, |call| {
        Box::pin(act(call, UserAct::EndSessions))
    }),
];

const fn change(
    path: &'static str,
    summary: &'static str,
    body: Option<SchemaOf>,
    run: fn(Call) -> super::endpoint::Running,
) -> Endpoint {
    Endpoint {
        method: Method::Post,
        path,
        scope: Some(Scope::Operate),
        for_tenants: false,
        summary,
        parameters: &[],
        query: None,
        body,
        answer: schema::<User>,
        success: Success::Done,
        run,
    }
}

/// Only the process' own key, which commands on this machine have, acts as a person.
fn check_own(call: &Call) -> Result<(), Problem> {
    if call.role == Role::Operator { Ok(()) } else { Err(problem::not_for_keys(&call.actor)) }
}

async fn list(call: Call) -> Answer {
    check_own(&call)?;
    let users = queries::users(&*call.api.store).await?;
    let users = users.iter().map(|(name, user)| view::user(name, user, call.actor().at));
    Ok(users.collect::<List<_>>().into())
}

async fn invite(call: Call) -> Answer {
    check_own(&call)?;
    let mut fields = Fields::new(call.order()?);
    let rank = fields.take("rank").rank();
    fields.finish()?;
    let rank = rank.unwrap_or(Rank::Viewer);
    let (token, invite) = acts::invite(&*call.api.store, rank, &call.actor()).await?;
    Ok(view::invite(&token, &invite).into())
}

async fn set_rank(call: Call) -> Answer {
    check_own(&call)?;
    let mut fields = Fields::new(call.order()?);
    let rank = fields.take("rank").rank();
    let rank = fields.need("rank", rank);
    fields.finish()?;
    let rank = rank.expect("a missing field was refused");
    act(call, UserAct::Rank(rank)).await
}

async fn act(call: Call, act: UserAct) -> Answer {
    check_own(&call)?;
    let actor = call.actor();
    let user = acts::change_user(&*call.api.store, &call.path, act, &actor).await?;
    Ok(view::user(&call.path, &user, actor.at).into())
}
