//! A room with a configuration of its own, and things in its store.

use std::path::Path;
use std::sync::Arc;

use http::header;
use http::response::Parts;
use sekisho_core::audit::Entry;
use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::state::Write;
use sekisho_core::user::Rank;
use sekisho_store::Store;
use sekisho_store::memory::MemoryStore;

use super::{Room, Seen, cookies};
use crate::{config, now};

/// What an attacker hopes to find on a page as it is.
pub const SCRIPT: &str = "<script>alert(1)</script>\"'>";

pub struct House {
    room: Room,
    pub store: Arc<dyn Store>,
}

impl House {
    pub async fn open(text: &str) -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let loaded = config::load(Path::new("s.toml"), text, std::iter::empty());
        let config = loaded.unwrap_or_else(|problems| panic!("{problems:?}")).config;
        Self { room: Room::with(config, Arc::clone(&store)).await, store }
    }

    pub async fn get(&self, rank: &str, path: &str) -> (Parts, String) {
        let Seen { head, text } = self.room.look(Rank::parse(rank).unwrap(), path).await;
        (head, text)
    }

    /// The page, which must be one.
    pub async fn page(&self, rank: &str, path: &str) -> String {
        self.room.look(Rank::parse(rank).unwrap(), path).await.says(&[]).text
    }

    pub async fn post(&self, rank: &str, path: &str, fields: &[(&str, &str)]) -> Seen {
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.room.act(Rank::parse(rank).unwrap(), path, &form).await
    }

    /// Whether an act went well, and what is said of it.
    pub async fn act(&self, rank: &str, path: &str, fields: &[(&str, &str)]) -> (bool, String) {
        let seen = self.post(rank, path, fields).await;
        assert_eq!(seen.status(), 303, "{path}: {}", seen.text);
        let lines = seen.head.headers.get_all(header::SET_COOKIE).iter();
        let mut flashes = lines.filter_map(|line| cookies(line.to_str().ok()?.split(';').next()?).flash());
        flashes.next().map(|flash| (flash.is_good, flash.text)).expect("something is said")
    }

    pub async fn write(&self, writes: Vec<Write>, audit: Vec<Entry>) {
        let set = ChangeSet { writes, audit, ..ChangeSet::nothing(now()) };
        assert!(matches!(&*self.store.commit(vec![set]).await.unwrap(), [Committed::Applied { .. }]));
    }
}
