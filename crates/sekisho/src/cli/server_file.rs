//! The note a running server leaves, so that commands on this machine find it and may act through it. Readable by its owner
//! alone: it holds a key that is good for as long as the server runs.
//!
//! With SQLite it lies beside the database; with PostgreSQL in a folder of the user's own, never below wherever a command
//! happens to run. A note is believed only if it is the user's: whoever could leave another would be sent what is ordered.

use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::{Config, StoreUrl};
use crate::test_event::reachable;
use crate::token;

#[derive(Serialize, Deserialize)]
pub struct ServerFile {
    pub url: String,
    pub key: String,
    pub pid: u32,
    /// Two stores may share a folder.
    store: String,
}

const FILE: &str = "server.json";

impl ServerFile {
    /// Beside the SQLite file, or among what is the user's own; nowhere, if there is no such place.
    pub fn file(store: &StoreUrl) -> Option<PathBuf> {
        Self::files(store).into_iter().next()
    }

    /// Wherever it may lie. A server may have been started with less of an environment than a command.
    fn files(store: &StoreUrl) -> Vec<PathBuf> {
        match store {
            StoreUrl::Sqlite(path) => {
                vec![path.parent().map(Path::to_owned).unwrap_or_default().join(FILE)]
            }
            StoreUrl::Postgres(_) => {
                let folder = |variable| std::env::var_os(variable).map(PathBuf::from);
                let state = || Some(folder("HOME")?.join(".local/state"));
                let own = [folder("XDG_RUNTIME_DIR"), folder("XDG_STATE_HOME").or_else(state)];
                // Each database has its own.
                let file = format!("server-{}.json", &token::hash(&name(store))[..16]);
                let own = own.into_iter().flatten().filter(|folder| folder.is_absolute());
                own.map(|folder| folder.join("sekisho").join(&file)).collect()
            }
        }
    }

    pub fn new(store: &StoreUrl, url: String, key: String) -> Self {
        Self { url, key, pid: std::process::id(), store: name(store) }
    }

    /// The note of whoever serves this store.
    pub fn find(store: &StoreUrl) -> Option<Self> {
        let own = Self::files(store).into_iter().filter_map(|file| Self::read(&file, store));
        own.into_iter().find(|note| note.store == name(store))
    }

    /// Where the server of this configuration is reached: where the one that runs says it listens, else where it would.
    pub fn address(config: &Config) -> String {
        let runs = |note: &Self| Path::new(&format!("/proc/{}", note.pid)).exists();
        let configured = || format!("http://{}", reachable(config.server.listen));
        Self::find(&config.store.url).filter(runs).map_or_else(configured, |note| note.url)
    }

    fn read(file: &Path, store: &StoreUrl) -> Option<Self> {
        let mut opened = std::fs::File::open(file).ok()?;
        let owner = opened.metadata().ok()?.uid();
        let we = rustix::process::geteuid().as_raw();
        if !is_believed(owner, we, owner_of(store)) {
            tracing::warn!(error_type = "foreign_file", file = %file.display(), "ignored the server file: it belongs to another user");
            return None;
        }
        let mut text = Vec::new();
        opened.read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    pub fn write(&self, file: &Path) -> std::io::Result<()> {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        // Written aside and then named: nobody reads half of it, and an old file's mode is not kept.
        let aside = file.with_extension(format!("json.{}", self.pid));
        let _ = std::fs::remove_file(&aside);
        let mut out = std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&aside)?;
        out.write_all(&serde_json::to_vec(self)?)?;
        std::fs::rename(&aside, file)
    }

    /// Takes the note away, unless another server has put its own there.
    pub fn remove(&self, file: &Path, store: &StoreUrl) {
        if Self::read(file, store).is_some_and(|found| found.pid == self.pid && found.key == self.key) {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// One's own; and for root, who can read every file, that of whoever the database belongs to.
fn is_believed(owner: u32, we: u32, database: Option<u32>) -> bool {
    owner == we || we == 0 && database == Some(owner)
}

/// Whose the database is, if it is a file.
fn owner_of(store: &StoreUrl) -> Option<u32> {
    match store {
        StoreUrl::Sqlite(path) => std::fs::metadata(path).ok().map(|found| found.uid()),
        StoreUrl::Postgres(_) => None,
    }
}

/// The same however the folder is spelled.
fn name(store: &StoreUrl) -> String {
    match store {
        StoreUrl::Sqlite(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        StoreUrl::Postgres(_) => store.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2_only_ones_own_note_is_believed() {
        for (owner, we, database, expected) in [
            (1000, 1000, None, true),
            (1001, 1000, None, false),
            (1001, 1000, Some(1001), false),
            (0, 1000, None, false),
            (1001, 0, None, false),
            (1001, 0, Some(1001), true),
            (1001, 0, Some(1002), false),
            (0, 0, Some(1002), true),
        ] {
            assert_eq!(is_believed(owner, we, database), expected, "{owner} {we} {database:?}");
        }
    }

    #[test]
    fn h2_with_postgres_no_note_is_looked_for_below_the_current_folder() {
        let store: StoreUrl = "postgres://u:p@localhost/one".parse().unwrap();
        let other: StoreUrl = "postgres://u:p@localhost/two".parse().unwrap();
        assert!(ServerFile::files(&store).iter().all(|file| file.is_absolute()));
        assert!(ServerFile::files(&store).iter().all(|file| !ServerFile::files(&other).contains(file)));
    }
}
