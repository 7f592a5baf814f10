//! Entering with a password. Every refusal reads the same and costs the same: whether there is such a user, and whether the
//! door is shut for them, is not for everybody to know. So nothing is written before the answer: a wrong password is handed
//! back as a [`FailedLogin`], to be noted behind it.
//!
//! Wrong passwords count against where they came from. A browser that logged in before is a place of its own, so others in
//! its network can't shut it out.

use std::net::IpAddr;

use sekisho_core::Time;
use sekisho_core::change::ChangeSet;
use sekisho_core::state::Wanted;
use sekisho_core::user::{User, shown_device};
use sekisho_store::Store;
use serde_json::json;

use super::password;
use super::session::{SessionTicket, new_device, new_session};
use super::users::{acting, update_user};
use crate::limits::network;
use crate::queries::find_user;
use crate::refusal::Result;
use crate::transact::transact;

/// Where somebody enters from.
#[derive(Clone, Copy)]
pub struct Visitor<'a> {
    pub agent: &'a str,
    pub peer: &'a str,
    /// What its browser shows to have logged in before.
    pub device: Option<&'a str>,
    pub at: Time,
}

/// What came of a name and a password.
pub enum LoginOutcome {
    In(SessionTicket),
    /// They don't belong together. What is left to note, if the name is somebody's.
    Out(Option<FailedLogin>),
}

/// A wrong password for somebody who exists.
#[derive(Debug, PartialEq, Eq)]
pub struct FailedLogin {
    name: String,
    place: String,
    peer: String,
    at: Time,
}

/// Enters with a password. Writes nothing unless it is the right one.
pub async fn enter(store: &dyn Store, name: &str, password: &str, from: Visitor<'_>) -> Result<LoginOutcome> {
    let name = name.trim();
    let known = find_user(store, name).await?;
    let nonce = known.as_ref().and_then(|user| shown_device(name, user, from.device?));
    let place = nonce.map_or_else(|| place_of(from.peer), |nonce| format!("browser {nonce}"));
    let known = known.filter(|user| user.shut(&place, from.at).is_none());
    let kept = known.as_ref().filter(|user| user.disabled_at.is_none()).map(|user| user.password.as_str());
    let is_right = password::matches(password, kept).await?;
    let (Some(known), true) = (&known, is_right) else {
        let peer = from.peer.to_owned();
        let failed = FailedLogin { name: name.to_owned(), place, peer, at: from.at };
        return Ok(LoginOutcome::Out(known.map(|_| failed)));
    };
    let device = nonce.and(from.device).map_or_else(|| new_device(name, known), str::to_owned);
    let (token, session) = new_session(name, from);
    let key = User::key(name);
    let has_entered = transact(store, Wanted::keys([key.clone()]), |loaded| -> Result<_> {
        let mut set = ChangeSet::nothing(from.at);
        // It may have changed since the password was compared.
        let Some(mut user) = loaded.read::<User>(&key)? else { return Ok((set, false)) };
        let has_entered = user.value.enter(&known.password, &place, session.clone());
        if has_entered {
            let actor = acting(name, user.value.rank, from.at);
            set.writes.push(user.write());
            set.audit.push(actor.entry(None, "user.entered", ("user", name), &json!({ "peer": from.peer })));
        }
        Ok((set, has_entered))
    });
    Ok(if has_entered.await? {
        LoginOutcome::In(SessionTicket { token, device })
    } else {
        LoginOutcome::Out(None)
    })
}

/// Notes a wrong password, once its sender was answered.
pub async fn note_failed_login(store: &dyn Store, failed: &FailedLogin) -> Result<()> {
    let FailedLogin { name, place, peer, at } = failed;
    update_user(store, name, *at, |user| {
        let actor = acting(name, user.rank, *at);
        let misses = user.missed(place, *at)?;
        let details = json!({ "peer": peer, "misses": misses });
        Some(actor.entry(None, "user.refused", ("user", name), &details))
    })
    .await
}

/// The network an address belongs to.
pub(super) fn place_of(peer: &str) -> String {
    peer.parse::<IpAddr>().map_or_else(|_| peer.to_owned(), |peer| network(peer).to_string())
}

#[cfg(test)]
mod tests {
    use sekisho_core::actor::Actor;
    use sekisho_core::user::Rank;
    use sekisho_store::memory::MemoryStore;

    use super::*;
    use crate::acts::{invite, join};
    use crate::now;
    use crate::queries::{is_known_device, load};

    const PASSWORD: &str = "a gate in the hills";

    async fn with_mika() -> MemoryStore {
        let store = MemoryStore::default();
        let actor = Actor { name: "test", role: Rank::Admin.role(), tenant: None, at: now() };
        let (token, _) = invite(&store, Rank::Viewer, &actor).await.unwrap();
        join(&store, &token, "mika", PASSWORD, from("192.0.2.1", None)).await.unwrap();
        store
    }

    fn from<'v>(peer: &'v str, device: Option<&'v str>) -> Visitor<'v> {
        Visitor { agent: "test", peer, device, at: now() }
    }

    async fn version(store: &MemoryStore) -> i64 {
        load(store, &User::key("mika")).await.unwrap().unwrap().version
    }

    async fn guess(store: &MemoryStore, times: usize, from: Visitor<'_>) {
        for _ in 0..times {
            let LoginOutcome::Out(miss) = enter(store, "mika", "a gate in the sea", from).await.unwrap()
            else {
                panic!("that is not the password")
            };
            if let Some(miss) = miss {
                note_failed_login(store, &miss).await.unwrap();
            }
        }
    }

    #[tokio::test]
    async fn h1_a_wrong_password_writes_nothing_before_it_is_answered() {
        let store = with_mika().await;
        let before = version(&store).await;
        let mut misses = Vec::new();
        for name in ["mika", "nobody", "No One"] {
            let entry = enter(&store, name, "a gate in the sea", from("192.0.2.9", None)).await.unwrap();
            let LoginOutcome::Out(miss) = entry else { panic!("that is nobody's password") };
            misses.push(miss);
        }
        assert_eq!(version(&store).await, before, "whoever is meant, the store is left alone");
        assert!(misses[0].is_some() && misses[1..].iter().all(Option::is_none));
        note_failed_login(&store, misses[0].as_ref().unwrap()).await.unwrap();
        assert_eq!(version(&store).await, before + 1);
    }

    #[tokio::test]
    async fn h1_five_wrong_passwords_shut_out_only_the_network_they_came_from() {
        let store = with_mika().await;
        guess(&store, 6, from("2001:db8::1", None)).await;
        let right = async |peer| enter(&store, "mika", PASSWORD, from(peer, None)).await.unwrap();
        assert!(
            matches!(right("2001:db8::1").await, LoginOutcome::Out(None)),
            "shut, and nothing is left to note"
        );
        assert!(matches!(right("2001:db8::2").await, LoginOutcome::Out(None)), "the same network");
        assert!(matches!(right("192.0.2.1").await, LoginOutcome::In(_)), "somebody else");
    }

    #[tokio::test]
    async fn h1_a_browser_that_logged_in_before_passes_the_lock_of_its_network() {
        let store = with_mika().await;
        let LoginOutcome::In(ticket) =
            enter(&store, "mika", PASSWORD, from("192.0.2.1", None)).await.unwrap()
        else {
            panic!("it is the password")
        };
        guess(&store, 6, from("192.0.2.1", None)).await;
        let enter = async |device: Option<&str>| {
            let entry = enter(&store, "mika", PASSWORD, from("192.0.2.1", device)).await.unwrap();
            matches!(entry, LoginOutcome::In(_))
        };
        assert!(!enter(None).await);
        assert!(enter(Some(&*ticket.device)).await);
        let (nonce, mac) = ticket.device.split_once('.').unwrap();
        for forged in
            [format!("{nonce}0.{mac}"), format!("{nonce}.{mac}0"), format!("{nonce}."), nonce.to_owned()]
        {
            assert!(!enter(Some(&*forged)).await, "{forged}");
        }
        guess(&store, 6, from("192.0.2.1", Some(&ticket.device))).await;
        assert!(!enter(Some(&*ticket.device)).await, "it may not guess for ever either");
        assert!(is_known_device(&store, "mika", Some(&ticket.device)).await.unwrap());
        assert!(!is_known_device(&store, "tomo", Some(&ticket.device)).await.unwrap());
    }
}
