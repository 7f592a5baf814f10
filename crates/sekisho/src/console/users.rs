//! Who may enter, as what; and the keys by which programs do.

use askama::Template;
use sekisho_core::Time;
use sekisho_core::user::{Invite, Rank, User, UserAct};

use super::ROOT;
use super::frame::Frame;
use super::page::{ADMIN, Answer, Page, PageMethod, Reply, Visit};
use super::trouble::Trouble;
use crate::acts::{self, NewKey, Refusal};
use crate::config::{SCOPES, Scope};
use crate::queries;
use sekisho_core::api_key::ApiKey;

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/users",
        needs: ADMIN,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/users/invite",
        needs: ADMIN,
        run: |visit| Box::pin(invite(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/invites/withdraw",
        needs: ADMIN,
        run: |visit| Box::pin(withdraw(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/users/{name}/rank",
        needs: ADMIN,
        run: |visit| Box::pin(set_rank(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/users/{name}/disable",
        needs: ADMIN,
        run: |visit| Box::pin(disable(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/users/{name}/enable",
        needs: ADMIN,
        run: |visit| Box::pin(enable(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/users/{name}/sessions/end",
        needs: ADMIN,
        run: |visit| Box::pin(end_sessions(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/keys/create",
        needs: ADMIN,
        run: |visit| Box::pin(create_key(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/keys/revoke",
        needs: ADMIN,
        run: |visit| Box::pin(revoke_key(visit)),
    },
];

const HOME: &str = "/console/users";

#[derive(Template)]
#[template(path = "console/users.html")]
struct UsersPage {
    f: Frame,
    users: Vec<UserRow>,
    invites: Vec<Invite>,
    keys: Vec<ApiKey>,
    ranks: [Rank; 3],
    /// Shown once, on the page that answers the form.
    made: Option<Made>,
}

struct UserRow {
    name: String,
    rank: Rank,
    created_at: Time,
    entered_at: Option<Time>,
    is_out: bool,
    is_shut: bool,
    sessions: usize,
    is_you: bool,
}

/// A link or a key that nobody sees again.
struct Made {
    is_link: bool,
    secret: String,
}

async fn list(visit: Visit) -> Answer {
    page(&visit, None).await
}

async fn page(visit: &Visit, made: Option<Made>) -> Answer {
    let store = &*visit.console.store;
    let row = |(name, user): (String, User)| UserRow {
        rank: user.rank,
        created_at: user.created_at,
        entered_at: user.entered_at,
        is_out: user.disabled_at.is_some(),
        is_shut: user.shut_anywhere(visit.at).is_some(),
        sessions: user.living_sessions(visit.at).count(),
        is_you: name == visit.who.name,
        name,
    };
    let users = queries::users(store).await?.into_iter().map(row).collect();
    let invites = queries::open_invites(store, visit.at).await?;
    let keys = queries::list_keys(store).await?;
    let f = visit.frame("users", visit.lang.t("Users and keys", "利用者とキー"));
    Reply::page(&UsersPage { f, users, invites, keys, ranks: Rank::ALL, made })
}

async fn invite(visit: Visit) -> Answer {
    let rank = rank(&visit)?;
    let (token, _) = acts::invite(&*visit.console.store, rank, &visit.actor()).await?;
    let secret = match &visit.console.settings.url {
        Some(url) => format!("{url}{ROOT}/join/{token}"),
        None => format!("{ROOT}/join/{token}"),
    };
    page(&visit, Some(Made { is_link: true, secret })).await
}

async fn withdraw(visit: Visit) -> Answer {
    let which = visit.field("invite").unwrap_or_default();
    let done = acts::withdraw_invite(&*visit.console.store, which, &visit.actor()).await;
    visit.after(HOME, done, ("The invitation was withdrawn.", "招待リンクを無効にしました。"))
}

async fn set_rank(visit: Visit) -> Answer {
    let rank = rank(&visit)?;
    let done = change(&visit, UserAct::Rank(rank)).await;
    visit.after(HOME, done, ("The role was changed.", "権限を変更しました。"))
}

async fn disable(visit: Visit) -> Answer {
    let done = change(&visit, UserAct::Disable).await;
    visit.after(
        HOME,
        done,
        (
            "The user was deactivated; every session has ended.",
            "利用を停止し、すべてのセッションを終了しました。",
        ),
    )
}

async fn enable(visit: Visit) -> Answer {
    let done = change(&visit, UserAct::Enable).await;
    visit.after(HOME, done, ("The user was reactivated.", "利用を再開しました。"))
}

async fn end_sessions(visit: Visit) -> Answer {
    let done = change(&visit, UserAct::EndSessions).await;
    visit.after(HOME, done, ("Every session has ended.", "すべてのセッションを終了しました。"))
}

async fn create_key(visit: Visit) -> Answer {
    let scope = visit.field("scope").and_then(Scope::parse);
    let scope = scope.ok_or_else(|| Trouble::wrong(format!("scope: expected {SCOPES}")))?;
    let tenant = visit.field("tenant").map(str::to_owned);
    let (store, actor) = (&*visit.console.store, visit.actor());
    let order = NewKey { name: visit.field("name").map(str::to_owned), scopes: vec![scope], tenant };
    if order.lacking(Scope::of_rank(visit.who.rank)).is_some() {
        return Err(Trouble::Rank(Rank::Admin));
    }
    match acts::create_key(store, order, &visit.console.known.keys, &actor).await {
        Ok(made) => {
            page(&visit, Some(Made { is_link: false, secret: made.secret.expose().to_owned() })).await
        }
        Err(refusal) => visit.refused(HOME, refusal),
    }
}

async fn revoke_key(visit: Visit) -> Answer {
    let which = visit.field("key").unwrap_or_default();
    let done = acts::revoke_key(&*visit.console.store, which, &visit.actor()).await;
    visit.after(HOME, done, ("The key was revoked.", "キーを無効にしました。"))
}

async fn change(visit: &Visit, act: UserAct) -> Result<(), Refusal> {
    acts::change_user(&*visit.console.store, &visit.id, act, &visit.actor()).await.map(drop)
}

fn rank(visit: &Visit) -> Result<Rank, Trouble> {
    let rank = visit.field("rank").and_then(Rank::parse);
    rank.ok_or_else(|| Trouble::wrong("role: expected viewer, operator or admin".into()))
}
