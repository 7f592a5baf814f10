//! The way in, and who decides about it.

use sekisho_core::user::{Rank, UserAct};

use super::{PASSWORD, Room, csrf};
use crate::{acts, now, queries};

fn seed() -> String {
    format!("sekisho_seed={}", "5".repeat(64))
}

async fn log_in(room: &Room, name: &str, password: &str) -> super::Seen {
    let password: String = form_urlencoded::byte_serialize(password.as_bytes()).collect();
    let form = format!("name={name}&password={password}&to=/console/account&csrf={}", csrf(&seed()));
    room.ask("POST", "/console/login", &[("cookie", seed())], &form).await
}

#[tokio::test]
async fn h1_the_first_link_makes_one_admin_and_no_second() {
    let room = Room::open().await;
    let old = acts::first_invite(&*room.store, now()).await.unwrap().unwrap();
    let token = acts::first_invite(&*room.store, now()).await.unwrap().unwrap();
    let join = async |token: &str, name: &str| {
        let form = format!(
            "name={name}&password=a+gate+in+the+hills&again=a+gate+in+the+hills&csrf={}",
            csrf(&seed())
        );
        room.ask("POST", &format!("/console/join/{token}"), &[("cookie", seed())], &form).await
    };
    let path = format!("/console/join/{token}");
    room.ask("GET", &path, &[], "").await.says(&["Welcome to Sekisho", "admin"]);
    assert_eq!(join(&old, "eve").await.status(), 404, "only the newest works");
    assert_eq!(join(&token, "mika").await.location(), "/console");
    assert_eq!(join(&token, "eve").await.status(), 404, "and once");
    assert_eq!(acts::first_invite(&*room.store, now()).await.unwrap(), None, "there is somebody now");
    let users = queries::users(&*room.store).await.unwrap();
    assert_eq!(
        users.iter().map(|(name, user)| (&**name, user.rank)).collect::<Vec<_>>(),
        [("mika", Rank::Admin)]
    );
}

#[tokio::test]
async fn h1_a_slip_at_the_door_is_said_and_costs_nothing() {
    let room = Room::open().await;
    let token = acts::first_invite(&*room.store, now()).await.unwrap().unwrap();
    for (form, says) in [
        ("name=Mika&password=a+gate+in+the+hills&again=a+gate+in+the+hills", "1 to 64 of a–z"),
        ("name=mika&password=short&again=short", "at least 10 characters"),
        ("name=mika&password=a+gate+in+the+hills&again=another", "differ"),
    ] {
        let form = format!("{form}&csrf={}", csrf(&seed()));
        let path = format!("/console/join/{token}");
        room.ask("POST", &path, &[("cookie", seed())], &form).await.says(&[says]);
    }
    assert!(queries::users(&*room.store).await.unwrap().is_empty());
}

#[tokio::test]
async fn h1_who_guesses_is_shut_out_and_is_not_told_who_exists() {
    let room = Room::open().await;
    room.settle_in("mika", Rank::Operator).await;
    let unknown = log_in(&room, "nobody-here", "what could it be").await.says(&["Wrong name or password"]);
    let known = log_in(&room, "mika", "what could it be").await.says(&["Wrong name or password"]);
    assert_eq!(unknown.text.replace("nobody-here", "mika"), known.text);
    for n in 1..5 {
        room.noted("mika", n).await;
        log_in(&room, "mika", "what could it be").await;
    }
    room.noted("mika", 5).await;
    let shut = log_in(&room, "mika", PASSWORD).await.says(&["Wrong name or password"]);
    assert_eq!(shut.text, known.text, "not even that the door is shut");
    let audit = sekisho_store::AuditFilter {
        target: Some("mika".into()),
        action: Some("user.refused".into()),
        limit: 10,
        ..Default::default()
    };
    let noted = room.store.find_audit(audit).await.unwrap().entries;
    assert_eq!(noted.len(), 1, "one entry a minute stands for all of them");
}

#[tokio::test]
async fn h1_an_admin_decides_who_may_and_the_last_one_stays() {
    let room = Room::open().await;
    let mika = room.settle_in("mika", Rank::Admin).await;
    let tomo = room.settle_in("tomo", Rank::Viewer).await;
    let act = async |path: &str, form: &str| {
        let form = format!("{form}&csrf={}", csrf(&mika));
        room.ask("POST", path, &[("cookie", mika.clone())], &form).await
    };
    assert!(act("/console/users/mika/disable", "").await.told().contains("last admin"));
    assert!(act("/console/users/mika/rank", "rank=viewer").await.told().contains("last admin"));
    assert_eq!(act("/console/users/tomo/rank", "rank=operator").await.told(), "The role was changed.");
    let look = async || room.ask("GET", "/console/account", &[("cookie", tomo.clone())], "").await;
    look().await.says(&["operator"]);
    assert_eq!(act("/console/users/tomo/disable", "").await.status(), 303);
    assert_eq!(look().await.status(), 303, "every session ended");
    log_in(&room, "tomo", PASSWORD).await.says(&["Wrong name or password"]);
    act("/console/users/tomo/enable", "").await;
    assert_eq!(log_in(&room, "tomo", PASSWORD).await.location(), "/console/account");
    let made = act("/console/users/invite", "rank=viewer").await.says(&["/console/join/", "24 hours"]);
    assert!(made.text.contains("is shown only now"));
    let key = act("/console/keys/create", "name=shop&scope=read").await.says(&["sk_", "shown only now"]);
    assert!(key.text.contains("shop"));
    assert_eq!(act("/console/keys/revoke", "key=shop").await.told(), "The key was revoked.");
}

#[tokio::test]
async fn h1_a_password_is_changed_by_whoever_knows_it_and_ends_the_other_sessions() {
    let room = Room::open().await;
    let here = room.settle_in("mika", Rank::Viewer).await;
    log_in(&room, "mika", PASSWORD).await;
    let change = async |form: &str| {
        let form = format!("{form}&csrf={}", csrf(&here));
        room.ask("POST", "/console/account/password", &[("cookie", here.clone())], &form).await.told()
    };
    let new = "new=another+gate+entirely&again=another+gate+entirely";
    assert!(change(&format!("old=wrong&{new}")).await.contains("the password is wrong"));
    assert!(change("old=a+gate+in+the+hills&new=x&again=y").await.contains("differ"));
    assert!(change(&format!("old=a+gate+in+the+hills&{new}")).await.contains("is changed"));
    let users = queries::users(&*room.store).await.unwrap();
    assert_eq!(users[0].1.sessions.len(), 1);
    assert_eq!(log_in(&room, "mika", "another gate entirely").await.status(), 303);
}

#[tokio::test]
async fn h1_what_people_typed_stays_text() {
    let room = Room::open().await;
    let form = format!("name=%3Cscript%3Ealert(1)%3C/script%3E&password=x&csrf={}", csrf(&seed()));
    let seen = room.ask("POST", "/console/login", &[("cookie", seed())], &form).await;
    assert!(!seen.text.contains("<script>alert"), "{}", seen.text);
    let seen = room.look(Rank::Viewer, "/console/events?type=%22%3E%3Cscript%3Ealert(1)%3C/script%3E").await;
    assert!(!seen.text.contains("<script>alert"), "{}", seen.text);
}

#[tokio::test]
async fn h1_a_link_is_worth_no_more_than_whoever_gave_it() {
    let room = Room::open().await;
    let first = acts::first_invite(&*room.store, now()).await.unwrap().unwrap();
    let mika = room.settle_in("mika", Rank::Admin).await;
    let path = |token: &str| format!("/console/join/{token}");
    assert_eq!(
        room.ask("GET", &path(&first), &[], "").await.status(),
        404,
        "somebody is there by another link"
    );
    room.settle_in("eve", Rank::Admin).await;
    let by = acts::Actor { name: "eve", role: Rank::Admin.role(), tenant: None, at: now() };
    let (token, _) = acts::invite(&*room.store, Rank::Admin, &by).await.unwrap();
    assert_eq!(room.ask("GET", &path(&token), &[], "").await.status(), 200);
    let form = format!("csrf={}", csrf(&mika));
    room.ask("POST", "/console/users/eve/disable", &[("cookie", mika.clone())], &form).await;
    assert_eq!(room.ask("GET", &path(&token), &[], "").await.status(), 404, "eve is out, and so is her link");
}

#[tokio::test]
async fn h1_a_link_that_nobody_took_up_is_seen_and_can_be_taken_back() {
    let room = Room::open().await;
    let mika = room.settle_in("mika", Rank::Admin).await;
    let by = acts::Actor { name: "mika", role: Rank::Admin.role(), tenant: None, at: now() };
    let (token, invite) = acts::invite(&*room.store, Rank::Operator, &by).await.unwrap();
    let (kept, _) = acts::invite(&*room.store, Rank::Viewer, &by).await.unwrap();
    let list = async || room.ask("GET", "/console/users", &[("cookie", mika.clone())], "").await;
    let seen = list().await.says(&["Open invitations", invite.id()]);
    assert!(!seen.text.contains(&token) && !seen.text.contains(&invite.hash), "{}", seen.text);
    let form = format!("invite={}&csrf={}", invite.id(), csrf(&mika));
    let act = async |form: &str| {
        room.ask("POST", "/console/invites/withdraw", &[("cookie", mika.clone())], form).await.told()
    };
    assert!(act(&form).await.contains("was withdrawn"));
    assert!(act(&form).await.contains("used, expired or unknown"), "once");
    let path = |token: &str| format!("/console/join/{token}");
    assert_eq!(room.ask("GET", &path(&token), &[], "").await.status(), 404);
    assert_eq!(room.ask("GET", &path(&kept), &[], "").await.status(), 200);
    assert!(!list().await.text.contains(invite.id()));
}

#[tokio::test]
async fn h1_two_admins_who_put_each_other_out_leave_one() {
    let room = Room::open().await;
    for round in 0..5 {
        let (a, b) = (format!("a{round}"), format!("b{round}"));
        room.settle_in(&a, Rank::Admin).await;
        room.settle_in(&b, Rank::Admin).await;
        let act = async |by: &str, whom: &str| {
            let by = acts::Actor { name: by, role: Rank::Admin.role(), tenant: None, at: now() };
            let act = UserAct::Rank(Rank::Viewer);
            acts::change_user(&*room.store, whom, act, &by).await.is_ok()
        };
        let both = tokio::join!(act(&a, &b), act(&b, &a));
        let users = queries::users(&*room.store).await.unwrap();
        let admins = users.iter().filter(|(_, user)| user.rank == Rank::Admin).count();
        assert_eq!(admins, 1, "{both:?}");
        let last = users.iter().find(|(_, user)| user.rank == Rank::Admin).unwrap().0.clone();
        room.settle_in(&format!("c{round}"), Rank::Admin).await;
        act("test", &last).await;
        act("test", &format!("c{round}")).await;
    }
}

#[tokio::test]
async fn h1_guessing_at_an_open_session_is_guessing_too() {
    let room = Room::open().await;
    let here = room.settle_in("mika", Rank::Viewer).await;
    let change = async |old: &str| {
        let form =
            format!("old={old}&new=another+gate+entirely&again=another+gate+entirely&csrf={}", csrf(&here));
        room.ask("POST", "/console/account/password", &[("cookie", here.clone())], &form).await
    };
    for _ in 0..5 {
        assert!(change("wrong").await.told().contains("the password is wrong"));
    }
    assert_eq!(change("a+gate+in+the+hills").await.status(), 429);
}
