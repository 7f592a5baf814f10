//! What is somebody's own: password and sessions.

use askama::Template;
use sekisho_core::Time;
use sekisho_core::user::UserAct;

use super::frame::Frame;
use super::page::{Answer, Page, PageMethod, Reply, VIEWER, Visit};
use super::trouble::Trouble;
use crate::acts::{self, Refusal, SessionUser};
use crate::queries;

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/account",
        needs: VIEWER,
        run: |visit| Box::pin(show(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/account/password",
        needs: VIEWER,
        run: |visit| Box::pin(change_password(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/account/sessions/end",
        needs: VIEWER,
        run: |visit| Box::pin(end_sessions(visit)),
    },
];

const HOME: &str = "/console/account";

#[derive(Template)]
#[template(path = "console/account.html")]
struct AccountPage {
    f: Frame,
    /// None for whom a proxy vouches: they have neither password nor sessions here.
    sessions: Option<Vec<SessionRow>>,
}

struct SessionRow {
    agent: String,
    peer: String,
    began_at: Time,
    seen_at: Time,
    is_this: bool,
}

async fn show(visit: Visit) -> Answer {
    let mut sessions = None;
    if let Some(hash) = &visit.who.session {
        let users = queries::users(&*visit.console.store).await?;
        let user = users.into_iter().find(|(name, _)| *name == visit.who.name).map(|(_, user)| user);
        let rows = user.iter().flat_map(|user| user.living_sessions(visit.at)).map(|session| SessionRow {
            agent: session.agent.clone(),
            peer: session.peer.clone(),
            began_at: session.began_at,
            seen_at: session.seen_at,
            is_this: session.hash == *hash,
        });
        sessions = Some(rows.collect());
    }
    let f = visit.frame("account", visit.lang.t("Your account", "アカウント"));
    Reply::page(&AccountPage { f, sessions })
}

async fn change_password(visit: Visit) -> Answer {
    let Some(hash) = visit.who.session.clone() else {
        return Err(Trouble::missing("this account has no password in Sekisho".into()));
    };
    let typed =
        |name: &str| visit.form.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value);
    if typed("new") != typed("again") {
        let text = visit.lang.t("The two new passwords differ.", "2つの新しいパスワードが一致しません。");
        return Reply::failed(HOME, text);
    }
    let known = SessionUser { name: visit.who.name.clone(), rank: visit.who.rank, hash };
    let (store, actor) = (&*visit.console.store, visit.actor());
    match acts::change_password(store, &known, typed("old"), typed("new"), &actor).await {
        Ok(()) => {
            let text = visit.lang.t(
                "The password is changed. Every other session has ended.",
                "パスワードを変更しました。ほかのセッションは終了しました。",
            );
            Reply::done(HOME, text)
        }
        Err(refusal @ Refusal::Fields(_)) => Reply::failed(HOME, Trouble::from(refusal).line(visit.lang)),
        Err(refusal) => Err(refusal.into()),
    }
}

async fn end_sessions(visit: Visit) -> Answer {
    if visit.who.session.is_some() {
        let (store, name) = (&*visit.console.store, &visit.who.name);
        acts::change_user(store, name, UserAct::EndSessions, &visit.actor()).await?;
    }
    Ok(Reply::Left { to: "/console/login".into() })
}
