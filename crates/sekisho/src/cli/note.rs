//! The note a running server leaves beside its data, so that commands on this machine find it and may act through it.
//! Readable by its owner alone: it holds a key that is good for as long as the server runs.

use std::io::Write;
use std::path::{Path, PathBuf};

use sekisho_store::StoreUrl;
use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::probe::reachable;

#[derive(Serialize, Deserialize)]
pub struct Note {
    pub url: String,
    pub key: String,
    pub pid: u32,
    /// Two stores may share a folder.
    store: String,
}

const FILE: &str = "server.json";

impl Note {
    /// Beside the SQLite file, or in the data folder.
    pub fn file(store: &StoreUrl) -> PathBuf {
        let folder = match store {
            StoreUrl::Sqlite(path) => path.parent().map(Path::to_owned).unwrap_or_default(),
            StoreUrl::Postgres(_) => Config::data_folder(),
        };
        folder.join(FILE)
    }

    pub fn new(store: &StoreUrl, url: String, key: String) -> Self {
        Self { url, key, pid: std::process::id(), store: name(store) }
    }

    /// The note of whoever serves this store.
    pub fn find(store: &StoreUrl) -> Option<Self> {
        Self::read(&Self::file(store)).filter(|notice| notice.store == name(store))
    }

    /// Where the server of this configuration is reached: where the one that runs says it listens, else where it would.
    pub fn address(config: &Config) -> String {
        let runs = |note: &Self| Path::new(&format!("/proc/{}", note.pid)).exists();
        let configured = || format!("http://{}", reachable(config.server.listen));
        Self::find(&config.store.url).filter(runs).map_or_else(configured, |note| note.url)
    }

    fn read(file: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(file).ok()?).ok()
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
    pub fn remove(&self, file: &Path) {
        if Self::read(file).is_some_and(|found| found.pid == self.pid && found.key == self.key) {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// The same however the folder is spelled.
fn name(store: &StoreUrl) -> String {
    match store {
        StoreUrl::Sqlite(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        StoreUrl::Postgres(_) => store.to_string(),
    }
}
