//! The way in: an invitation, a password; and the way out.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use askama::Template;
use sekisho_core::user::Rank;

use super::ROOT;
use super::frame::Frame;
use super::page::{Answer, Page, PageMethod, PageNeeds, Reply, VIEWER, Visit, within};
use super::trouble::Trouble;
use crate::acts::{self, FailedLogin, LoginOutcome, Refusal, Visitor};
use crate::attempts::FailedAttempt;
use crate::queries;

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/login",
        needs: PageNeeds::Nobody,
        run: |visit| Box::pin(door(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/login",
        needs: PageNeeds::Nobody,
        run: |visit| Box::pin(enter(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/join/{token}",
        needs: PageNeeds::Nobody,
        run: |visit| Box::pin(invitation(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/join/{token}",
        needs: PageNeeds::Nobody,
        run: |visit| Box::pin(join(visit)),
    },
    Page {
        method: PageMethod::Post,
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
    let is_new = queries::users(&*visit.console.store).await?.is_empty();
    let name = visit.field("name").unwrap_or_default().to_owned();
    Reply::page(&LoginPage { f, to, name, wrong, is_new })
}

async fn enter(visit: Visit) -> Answer {
    let (name, password) = (visit.field("name").unwrap_or_default(), secret(&visit, "password"));
    let to = within(visit.field("to"));
    check_pace(&visit, name).await?;
    match acts::enter(&*visit.console.store, name, password, from(&visit)).await {
        Ok(LoginOutcome::In(ticket)) => Ok(Reply::Known { to, ticket }),
        Ok(LoginOutcome::Out(miss)) => {
            visit.console.attempts.failed(FailedAttempt::Login, peer(&visit));
            let wrong = visit.lang.t(
                "Wrong name or password. After several failures, log-in is locked for up to 15 minutes.",
                "名前とパスワードが一致しません。誤りが続くと、最長15分間ログインできなくなります。",
            );
            let page = ask(&visit, to, Some(wrong.to_owned())).await;
            note_behind(&visit, miss);
            page
        }
        Err(Refusal::RetryLater { .. }) => {
            let wrong = visit.lang.t(
                "Too many log-ins at once. Try again in a moment.",
                "ログインが混み合っています。しばらくしてからお試しください。",
            );
            ask(&visit, to, Some(wrong.to_owned())).await
        }
        Err(refusal) => Err(refusal.into()),
    }
}

/// From where many wrong ones came nobody tries more for now; but who logged in before, with this browser, may.
async fn check_pace(visit: &Visit, name: &str) -> Result<(), Trouble> {
    let Some(seconds) = visit.console.attempts.wait(peer(visit)) else { return Ok(()) };
    if queries::is_known_device(&*visit.console.store, name, visit.device.as_deref()).await? {
        return Ok(());
    }
    let detail = visit.lang.t(
        "too many wrong passwords and keys came from your network",
        "同じネットワークから、誤ったパスワードやキーが多数送信されました",
    );
    Err(Trouble::Later { detail: detail.to_owned(), seconds })
}

/// Writes a wrong password down behind the answer, which must not take longer where there is something to write.
fn note_behind(visit: &Visit, miss: Option<FailedLogin>) {
    let (Some(miss), store) = (miss, Arc::clone(&visit.console.store)) else { return };
    visit.console.env().spawn(async move {
        if let Err(error) = acts::note_failed_login(&*store, &miss).await {
            tracing::warn!(error_type = "store_unavailable", %error, "a failed log-in could not be recorded");
        }
    });
}

/// Whoever can't be told apart is one.
fn peer(visit: &Visit) -> IpAddr {
    visit.peer.parse().unwrap_or(Ipv4Addr::UNSPECIFIED.into())
}

async fn invitation(visit: Visit) -> Answer {
    ask_to_join(&visit, None).await
}

async fn ask_to_join(visit: &Visit, wrong: Option<String>) -> Answer {
    let invite = queries::find_invite(&*visit.console.store, &visit.id, visit.at).await?;
    let detail = visit.lang.t(
        "this invitation is used, expired or unknown; `sekisho users invite` creates another",
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
    match acts::join(&*visit.console.store, &visit.id, name, password, from(&visit)).await {
        Ok(ticket) => Ok(Reply::Known { to: ROOT.to_owned(), ticket }),
        Err(refusal @ (Refusal::Fields(_) | Refusal::Conflict(_))) => {
            let wrong = Trouble::from(refusal).line(visit.lang);
            ask_to_join(&visit, Some(wrong)).await
        }
        Err(refusal) => Err(refusal.into()),
    }
}

async fn leave(visit: Visit) -> Answer {
    if let Some(hash) = &visit.who.session {
        acts::end_session(&*visit.console.store, &visit.who.name, hash, &visit.actor()).await?;
    }
    Ok(Reply::Left { to: format!("{ROOT}/login") })
}

fn from(visit: &Visit) -> Visitor<'_> {
    Visitor { agent: &visit.agent, peer: &visit.peer, device: visit.device.as_deref(), at: visit.at }
}

/// As it was typed: blanks at the ends belong to a password.
fn secret<'v>(visit: &'v Visit, name: &str) -> &'v str {
    visit.form.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
}
