//! Entering with a password. Every refusal reads the same and costs the same: whether there is such a user, and whether the
//! door is shut for them, is not for everybody to know. So nothing is written before the answer: a wrong password is handed
//! back as a [`Miss`], to be noted behind it.
//!
//! Wrong passwords count against where they came from. A browser that logged in before shows a cookie that only the user's
//! kept password could have made; it is a place of its own, so others in its network can't shut it out.

use std::net::IpAddr;

use ring::hmac;
use sekisho_core::Time;
use sekisho_core::provider::encode_hex;
use sekisho_core::state::{Key, Kind};
use sekisho_core::user::{User, check_name};
use sekisho_store::Store;
use serde_json::json;

use super::typed_state::{load, read};
use super::users::{acting, begin, change};
use super::{Result, Visitor, password};
use crate::limits::network;
use crate::token;

/// What came of a name and a password.
pub enum Entry {
    In(Ticket),
    /// They don't belong together. What is left to note, if the name is somebody's.
    Out(Option<Miss>),
}

/// What a browser is given that entered.
pub struct Ticket {
    /// The session's.
    pub token: String,
    /// Proves later that this browser logged in before.
    pub device: String,
}

/// A wrong password for somebody who exists.
#[derive(Debug, PartialEq, Eq)]
pub struct Miss {
    name: String,
    place: String,
    peer: String,
    at: Time,
}

/// Enters with a password. Writes nothing unless it is the right one.
pub async fn enter(store: &dyn Store, name: &str, password: &str, from: Visitor<'_>) -> Result<Entry> {
    let name = name.trim();
    let known = user(store, name).await?;
    let device = known.as_ref().and_then(|user| shown_device(name, user, from.device?));
    let place = device.map_or_else(|| place_of(from.peer), |nonce| format!("browser {nonce}"));
    let known = known.filter(|user| user.shut(&place, from.at).is_none());
    let kept = known.as_ref().filter(|user| user.disabled_at.is_none()).map(|user| user.password.as_str());
    let is_right = password::matches(password, kept).await?;
    let (Some(known), true) = (&known, is_right) else {
        let peer = from.peer.to_owned();
        let miss = Miss { name: name.to_owned(), place, peer, at: from.at };
        return Ok(Entry::Out(known.map(|_| miss)));
    };
    let device =
        device.map_or_else(|| new_device(name, known), |_| from.device.unwrap_or_default().to_owned());
    let mut token = None;
    change(store, name, from.at, |user| {
        token = None;
        // It may have changed meanwhile.
        let is_out = user.disabled_at.is_some() || user.password != known.password;
        if is_out || user.shut(&place, from.at).is_some() {
            return Ok(None);
        }
        token = Some(begin(user, name, &place, from));
        let actor = acting(name, user.rank, from.at);
        Ok(Some(actor.entry(None, "user.entered", ("user", name), json!({ "peer": from.peer }))))
    })
    .await?;
    Ok(token.map_or(Entry::Out(None), |token| Entry::In(Ticket { token, device })))
}

/// Notes a wrong password, once its sender was answered.
pub async fn note_miss(store: &dyn Store, miss: &Miss) -> Result<()> {
    let Miss { name, place, peer, at } = miss;
    change(store, name, *at, |user| {
        let actor = acting(name, user.rank, *at);
        let told = user.missed(place, *at);
        Ok(told.map(|misses| {
            actor.entry(None, "user.refused", ("user", name), json!({ "peer": peer, "misses": misses }))
        }))
    })
    .await
    .map(drop)
}

/// Whether this browser logged in as this user before.
pub async fn is_known_device(store: &dyn Store, name: &str, device: Option<&str>) -> Result<bool> {
    let (name, Some(device)) = (name.trim(), device) else { return Ok(false) };
    Ok(user(store, name).await?.is_some_and(|user| shown_device(name, &user, device).is_some()))
}

async fn user(store: &dyn Store, name: &str) -> Result<Option<User>> {
    if check_name(name).is_err() {
        return Ok(None);
    }
    let state = load(store, &Key::new(Kind::User, name)).await?;
    Ok(state.map(|state| read::<User>(&state)).transpose()?)
}

/// `NONCE.MAC`, made with what is kept of the password: another password, and it is worth nothing.
pub(super) fn new_device(name: &str, user: &User) -> String {
    let nonce = token::generate::<16>();
    let mac = hmac::sign(&device_key(user), &device_words(name, &nonce));
    format!("{nonce}.{}", encode_hex(mac))
}

/// The nonce of a browser that this user's password once let in.
fn shown_device<'d>(name: &str, user: &User, device: &'d str) -> Option<&'d str> {
    let (nonce, mac) = device.split_once('.')?;
    let expected = encode_hex(hmac::sign(&device_key(user), &device_words(name, nonce)));
    // Hashes are compared, so how long it takes tells nothing about it.
    (token::hash(mac) == token::hash(&expected)).then_some(nonce)
}

fn device_key(user: &User) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, user.password.as_bytes())
}

fn device_words(name: &str, nonce: &str) -> Vec<u8> {
    ["a browser that logged in", name, nonce].join("\0").into_bytes()
}

/// The network an address belongs to.
pub(super) fn place_of(peer: &str) -> String {
    peer.parse::<IpAddr>().map_or_else(|_| peer.to_owned(), |peer| network(peer).to_string())
}

#[cfg(test)]
mod tests {
    use sekisho_core::user::Rank;
    use sekisho_store::memory::MemoryStore;

    use super::super::{Actor, invite, join};
    use super::*;
    use crate::now;

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
        load(store, &Key::new(Kind::User, "mika")).await.unwrap().unwrap().version
    }

    async fn guess(store: &MemoryStore, times: usize, from: Visitor<'_>) {
        for _ in 0..times {
            let Entry::Out(miss) = enter(store, "mika", "a gate in the sea", from).await.unwrap() else {
                panic!("that is not the password")
            };
            if let Some(miss) = miss {
                note_miss(store, &miss).await.unwrap();
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
            let Entry::Out(miss) = entry else { panic!("that is nobody's password") };
            misses.push(miss);
        }
        assert_eq!(version(&store).await, before, "whoever is meant, the store is left alone");
        assert!(misses[0].is_some() && misses[1..].iter().all(Option::is_none));
        note_miss(&store, misses[0].as_ref().unwrap()).await.unwrap();
        assert_eq!(version(&store).await, before + 1);
    }

    #[tokio::test]
    async fn h1_five_wrong_passwords_shut_out_only_the_network_they_came_from() {
        let store = with_mika().await;
        guess(&store, 6, from("2001:db8::1", None)).await;
        let right = async |peer| enter(&store, "mika", PASSWORD, from(peer, None)).await.unwrap();
        assert!(matches!(right("2001:db8::1").await, Entry::Out(None)), "shut, and nothing is left to note");
        assert!(matches!(right("2001:db8::2").await, Entry::Out(None)), "the same network");
        assert!(matches!(right("192.0.2.1").await, Entry::In(_)), "somebody else");
    }

    #[tokio::test]
    async fn h1_a_browser_that_logged_in_before_passes_the_lock_of_its_network() {
        let store = with_mika().await;
        let Entry::In(ticket) = enter(&store, "mika", PASSWORD, from("192.0.2.1", None)).await.unwrap()
        else {
            panic!("it is the password")
        };
        guess(&store, 6, from("192.0.2.1", None)).await;
        let enter = async |device: Option<&str>| {
            let entry = enter(&store, "mika", PASSWORD, from("192.0.2.1", device)).await.unwrap();
            matches!(entry, Entry::In(_))
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
