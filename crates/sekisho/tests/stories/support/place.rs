//! Where events are kept: a SQLite file or a PostgreSQL database that nobody else has.

use std::path::PathBuf;
use std::sync::Arc;

use sekisho_lab::postgres::{self, Postgres};
use sekisho_lab::sqlite;
use sekisho_store::{Access, Store};
use tempfile::TempDir;

pub struct Place {
    pub name: &'static str,
    pub url: String,
    pub folder: TempDir,
    database: Option<String>,
}

impl Place {
    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("sekisho.db").display());
        Self { name: "SQLite", url, folder, database: None }
    }

    /// A database of its own on the server that all stories share.
    pub fn postgres() -> Self {
        Self::on(shared())
    }

    /// A database on a server that the story may stop and start.
    pub fn on(server: &Postgres) -> Self {
        let database = server.fresh_database().unwrap();
        let url = server.url(&database);
        Self { name: "PostgreSQL", url, folder: tempfile::tempdir().unwrap(), database: Some(database) }
    }

    pub fn is_sqlite(&self) -> bool {
        self.database.is_none()
    }

    pub fn database(&self) -> &str {
        self.database.as_deref().expect("a place on PostgreSQL")
    }

    pub fn file(&self) -> PathBuf {
        self.url.strip_prefix("sqlite:").expect("a place on SQLite").into()
    }

    /// Asks the database itself, past all of our own code. Rows as lines, columns split by `|`.
    pub fn sql(&self, query: &str) -> String {
        match &self.database {
            Some(database) => shared().psql_in(database, query).unwrap(),
            None => sqlite::query(&self.file(), query).unwrap(),
        }
    }

    /// Opens the store as a second pair of eyes.
    pub async fn look(&self) -> Arc<dyn Store> {
        self.open(Access::Read).await
    }

    pub async fn open(&self, access: Access) -> Arc<dyn Store> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        sekisho_store::open(&self.url.parse().unwrap(), access).await.unwrap()
    }
}

/// Tells the same story on both.
pub fn each_store(story: impl Fn(&Place)) {
    for place in [Place::sqlite(), Place::postgres()] {
        eprintln!("on {}", place.name);
        story(&place);
    }
}

pub fn shared() -> &'static Postgres {
    postgres::shared().unwrap_or_else(|error| panic!("{error}"))
}
