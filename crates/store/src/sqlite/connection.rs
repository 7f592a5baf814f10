//! How the file is opened: the lock that keeps a second server out, the settings that make a commit durable,
//! and the connections that only read.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use super::{MIGRATIONS, SqliteStore, log_file, migrate};
use crate::error::{Error, OpenError, Result};
use crate::migration;

/// Older versions can corrupt a WAL that two connections reset at once.
const VERSION_MIN: i32 = 3_051_003;
const PAGE_BYTES: i64 = 8_192;
/// The log is cut back to this when it begins anew: what it usually needs, and some more, is not asked of the disk again.
const WAL_BYTES_KEPT: i64 = 128 << 20;
/// Connections for pages and people, and one for the engine alone: a long look at history must not hold up work.
const PAGES: usize = 2;
const ENGINE: usize = 1;
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// Takes the file for this process alone.
pub fn lock(path: &Path) -> std::result::Result<File, OpenError> {
    let io = |error: std::io::Error| OpenError::Unreachable {
        url: display(path),
        error: Error::unavailable(error),
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        create_private(folder).map_err(io)?;
    }
    let file = open_lock(&path.with_extension("lock")).map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: display(path) }),
        Err(TryLockError::Error(error)) => Err(io(error)),
    }
}

/// Whoever can open it can hold it, and keep the server from starting: it is for its owner alone.
fn open_lock(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let file = File::options().create(true).truncate(false).write(true).mode(0o600).open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        // One that somebody else owns they could hold anyway.
        let _ = file.set_permissions(std::fs::Permissions::from_mode(0o600));
    }
    Ok(file)
}

/// Payloads are personal data: the file is for its owner alone, and SQLite gives its log the same rights.
fn create_file(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().create(true).append(true).mode(0o600).open(path).map(drop)
}

/// The folder likewise, if it is made here.
fn create_private(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    if folder.exists() {
        return Ok(());
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

pub fn open_writer(path: &Path) -> std::result::Result<Connection, OpenError> {
    create_file(path)
        .map_err(|error| OpenError::Unreachable { url: display(path), error: Error::unavailable(error) })?;
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags_and_vfs(path, OpenFlags::default(), log_file::vfs())?;
        connection.busy_timeout(BUSY_WAIT)?;
        // Before the first table: two events with their usual 3 KB fit on a page.
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
        connection.pragma_update(None, "cache_size", -8192)?;
        // Both as `log_file` needs them: nothing is written to the log but by a commit, and that is synced.
        connection.pragma_update(None, "cache_spill", false)?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    };
    open().map_err(|error| unreachable(path, error))
}

pub fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    // Read-write without create: a reader of a WAL file must be able to make its index.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_WAIT)?;
    connection.pragma_update(None, "query_only", true)?;
    // Pages are moved from the log into the file by others.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(connection)
}

/// Asserted, not hoped for: what `PRAGMA` answers is what the file will do.
pub fn assert_durable(
    connection: &Connection,
    path: &Path,
    allow_unsafe: bool,
) -> std::result::Result<(), OpenError> {
    let read = |pragma: &str| {
        connection.pragma_query_value(None, pragma, |row| row.get::<_, rusqlite::types::Value>(0))
    };
    let journal = read("journal_mode").map_err(|error| unreachable(path, error))?;
    let synchronous = read("synchronous").map_err(|error| unreachable(path, error))?;
    let what = if rusqlite::version_number() < VERSION_MIN {
        format!("SQLite {} has the WAL-reset fault", rusqlite::version())
    } else if journal != rusqlite::types::Value::Text("wal".into()) {
        "the file can't use write-ahead logging here".to_owned()
    } else if synchronous != rusqlite::types::Value::Integer(2) {
        "synchronous is not FULL".to_owned()
    } else {
        return Ok(());
    };
    if allow_unsafe {
        tracing::warn!(
            error_type = "unsafe_durability",
            what,
            "durability is not assured, and [store] allow_unsafe_durability permits it"
        );
        return Ok(());
    }
    Err(OpenError::Unsafe { what, cure: "Put the file on a local disk".into() })
}

pub fn unreachable(path: &Path, error: rusqlite::Error) -> OpenError {
    OpenError::Unreachable { url: display(path), error: Error::unavailable(error) }
}

fn display(path: &Path) -> String {
    format!("sqlite:{}", path.display())
}

/// Connections for reading. Each read waits until one is free, and only then takes a thread: however many wait, no
/// more threads are busy than there are connections.
#[derive(Clone)]
pub struct ReaderPool {
    all: Arc<[Mutex<Connection>]>,
    free: Arc<Semaphore>,
}

impl ReaderPool {
    pub fn for_pages(path: &Path) -> std::result::Result<Self, OpenError> {
        Self::open(path, PAGES)
    }

    pub fn for_engine(path: &Path) -> std::result::Result<Self, OpenError> {
        Self::open(path, ENGINE)
    }

    fn open(path: &Path, count: usize) -> std::result::Result<Self, OpenError> {
        let readers: rusqlite::Result<Vec<_>> =
            (0..count).map(|_| open_reader(path).map(Mutex::new)).collect();
        let all = readers.map_err(|error| unreachable(path, error))?.into();
        Ok(Self { all, free: Arc::new(Semaphore::new(count)) })
    }

    pub fn require_current(&self, path: &Path) -> std::result::Result<(), OpenError> {
        let connection = self.all[0].lock().expect("no read panics");
        let applied = migrate::applied(&connection).map_err(|error| unreachable(path, error))?;
        migration::require_current(MIGRATIONS, &applied)
    }
}

impl SqliteStore {
    /// A look for pages and people.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.pages.read(work).await
    }

    /// A look that work waits for.
    pub(super) async fn look_up<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.engine.read(work).await
    }
}

impl ReaderPool {
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let readers = self.clone();
        let place = Arc::clone(&self.free).acquire_owned().await.expect("the semaphore is never closed");
        let run = move || {
            // Held by the read, not by whoever waits for it: that one may leave.
            let _place = place;
            let free = readers.all.iter().find_map(|reader| reader.try_lock().ok());
            let reader = free.unwrap_or_else(|| readers.all[0].lock().expect("no read panics"));
            work(&reader)
        };
        let answer = tokio::task::spawn_blocking(run).await.map_err(Error::corrupt)?;
        answer.map_err(|error| match error {
            rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::InvalidColumnType(..) => {
                Error::corrupt(error)
            }
            error => Error::unavailable(error),
        })
    }
}

/// A column that holds what no version of ours wrote there.
pub fn unreadable(column: usize, name: &str) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, name.to_owned(), rusqlite::types::Type::Text)
}

pub fn describe(connection: &Connection) -> rusqlite::Result<Vec<(String, String)>> {
    let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let page_size: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok(vec![
        ("store".into(), format!("SQLite {}", rusqlite::version())),
        ("file".into(), connection.path().unwrap_or_default().to_owned()),
        ("size".into(), format!("{:.1} MB", (pages * page_size) as f64 / 1e6)),
        ("journal_mode".into(), journal),
        ("synchronous".into(), "full (asserted when the server starts)".into()),
    ])
}
