//! The way in: an invitation, a password; and the way out.

use askama::Template;
use sekisho_core::user::Rank;

use super::ROOT;
use super::frame::Frame;
use super::page::{Answer, Method, Needs, Page, Reply, VIEWER, Visit, within};
use super::trouble::Trouble;
use crate::transition::{self, Refusal, Visitor};

pub const PAGES: &[Page] = &[
    Page {
        method: Method::Get,
        path: "/console/login",
        needs: Needs::Nobody,
        run: |visit| Box::pin(door(visit)),
    },
    Page {
        method: Method::Post,
        path: "/console/login",
        needs: Needs::Nobody,
        run: |visit| Box::pin(enter(visit)),
    },
    Page {
        method: Method::Get,
        path: "/console/join/{token}",
        needs: Needs::Nobody,
        run: |visit| Box::pin(invitation(visit)),
    },
    Page {
        method: Method::Post,
        path: "/console/join/{token}",
        needs: Needs::Nobody,
        run: |visit| Box::pin(join(visit)),
    },
    Page {
        method: Method::Post,
        path: "/console/logout",
        needs: VIEWER,
        run: |visit| Box::pin(leave(visit)),
    },
];

#[derive(Template)]
#[template(path = "console/login.html")]
struct LoginPage {
    f: Frame,
    to: String,
    name: String,
    /// Why it was not enough.
    wrong: Option<String>,
    /// Nobody can log in yet.
    is_new: bool,
}

#[derive(Template)]
#[template(path = "console/join.html")]
struct JoinPage {
    f: Frame,
    rank: Rank,
    name: String,
    wrong: Option<String>,
}

async fn door(visit: Visit) -> Answer {
    let to = within(visit.param("to"));
    if visit.who.is_somebody() {
        return Ok(Reply::Go { to, flash: None });
    }
    ask(&visit, to, None).await
}

async fn ask(visit: &Visit, to: String, wrong: Option<String>) -> Answer {
    let f = visit.frame("", visit.lang.t("Log in", "ログイン"));
    let is_new = transition::users(&*visit.console.store).await?.is_empty();
    let name = visit.field("name").unwrap_or_default().to_owned();
    Reply::page(&LoginPage { f, to, name, wrong, is_new })
}

async fn enter(visit: Visit) -> Answer {
    let (name, password) = (visit.field("name").unwrap_or_default(), secret(&visit, "password"));
    let to = within(visit.field("to"));
    match transition::enter(&*visit.console.store, name, password, from(&visit)).await {
        Ok(token) => Ok(Reply::Known { to, token: Some(token) }),
        Err(Refusal::Store(error)) => Err(error.into()),
        Err(refusal) => {
            let wrong = match refusal {
                Refusal::Later { .. } => visit.lang.t(
                    "Many people are at the door. Try again in a moment.",
                    "ログインが混み合っています。しばらくしてからお試しください。",
                ),
                _ => visit.lang.t(
                    "This name and password don't belong together. After several wrong ones the door stays shut for up to 15 minutes.",
                    "名前とパスワードが一致しません。誤りが続くと、最長15分間ログインできなくなります。",
                ),
            };
            ask(&visit, to, Some(wrong.to_owned())).await
        }
    }
}

async fn invitation(visit: Visit) -> Answer {
    ask_to_join(&visit, None).await
}

async fn ask_to_join(visit: &Visit, wrong: Option<String>) -> Answer {
    let invite = transition::find_invite(&*visit.console.store, &visit.id, visit.at).await?;
    let detail = visit.lang.t(
        "this invitation was taken up, is over, or never was; `sekisho users invite` makes another",
        "この招待は使用済みか期限切れです。`sekisho users invite` で新しい招待を作成できます",
    );
    let rank = invite.ok_or_else(|| Trouble::missing(detail.to_owned()))?.rank;
    let f = visit.frame("", visit.lang.t("Welcome", "ようこそ"));
    Reply::page(&JoinPage { f, rank, name: visit.field("name").unwrap_or_default().to_owned(), wrong })
}

async fn join(visit: Visit) -> Answer {
    let (name, password) = (visit.field("name").unwrap_or_default(), secret(&visit, "password"));
    if password != secret(&visit, "again") {
        let wrong = visit.lang.t("The two passwords differ.", "2つのパスワードが一致しません。");
        return ask_to_join(&visit, Some(wrong.to_owned())).await;
    }
    match transition::join(&*visit.console.store, &visit.id, name, password, from(&visit)).await {
        Ok(token) => Ok(Reply::Known { to: ROOT.to_owned(), token: Some(token) }),
        Err(refusal @ (Refusal::Fields(_) | Refusal::Conflict(_))) => {
            let wrong = Trouble::from(refusal).line(visit.lang);
            ask_to_join(&visit, Some(wrong)).await
        }
        Err(refusal) => Err(refusal.into()),
    }
}

async fn leave(visit: Visit) -> Answer {
    if let Some(hash) = &visit.who.session {
        transition::end_session(&*visit.console.store, &visit.who.name, hash, &visit.actor()).await?;
    }
    Ok(Reply::Known { to: format!("{ROOT}/login"), token: None })
}

fn from(visit: &Visit) -> Visitor<'_> {
    Visitor { agent: &visit.agent, peer: &visit.peer, at: visit.at }
}

/// As it was typed: blanks at the ends belong to a password.
fn secret<'v>(visit: &'v Visit, name: &str) -> &'v str {
    visit.form.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
}
