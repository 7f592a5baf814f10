//! The file of the log, as the connection that writes has it. SQLite writes a page of a commit in two parts, its header and
//! its bytes, and most of these writes touch the same block of the disk as the one before. Here they are gathered, and
//! written as one when the commit syncs.
//!
//! What is gathered is an [`Image`] of a part of the file; whatever else is done with the file comes after it was
//! written. Right only under two settings of the connection. `synchronous=FULL`: SQLite syncs the log before it tells others
//! of the new pages. `cache_spill=off`: it writes to the log only while it commits, so that outside of a commit, when
//! others may write, nothing is gathered.
//!
//! [`sync_database`] stands here too, so that all unsafe code of the store is in one file.

#![allow(unsafe_code, reason = "SQLite reaches its files through C functions; there is no safe form")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use rusqlite::ffi::{
    SQLITE_FCNTL_FILE_POINTER, SQLITE_MISUSE, SQLITE_OK, SQLITE_OPEN_WAL, SQLITE_SYNC_DATAONLY,
    SQLITE_SYNC_NORMAL, sqlite3_file, sqlite3_file_control, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs,
    sqlite3_vfs_find, sqlite3_vfs_register,
};
use rusqlite::{Connection, ffi};

const NAME: &CStr = c"sekisho-gathers-log";
/// SQLite takes the length of a write modulo 128 KB.
const IMAGE_MAX: usize = (128 << 10) - 1;

/// Bytes of the file that are not written yet.
#[derive(Default)]
struct Image {
    start: usize,
    bytes: Vec<u8>,
}

impl Image {
    /// False when it can't be held together with what is there.
    fn take(&mut self, at: usize, bytes: &[u8]) -> bool {
        if self.bytes.is_empty() {
            self.start = at;
        }
        let Some(from) = at.checked_sub(self.start).filter(|from| *from <= self.bytes.len()) else {
            return false;
        };
        if from + bytes.len() > IMAGE_MAX {
            return false;
        }
        let (over, beyond) = bytes.split_at(bytes.len().min(self.bytes.len() - from));
        self.bytes[from..from + over.len()].copy_from_slice(over);
        self.bytes.extend_from_slice(beyond);
        true
    }
}

/// Stands in memory behind SQLite's own file object.
struct Gathering {
    /// SQLite's own functions.
    plain: &'static sqlite3_io_methods,
    /// These, with ours among them.
    methods: sqlite3_io_methods,
    image: Image,
}

/// How many bytes after the beginning of the file object it stands.
static BEHIND: OnceLock<usize> = OnceLock::new();

/// Syncs the file of the database by SQLite's own handle. One of ours would, when it is closed, take the process' locks on
/// the file with it.
pub fn sync_database(connection: &Connection) -> rusqlite::Result<()> {
    let mut file: *mut sqlite3_file = ptr::null_mut();
    // SAFETY: the connection is open and, like the file object it lends, used by nobody else meanwhile.
    let code = unsafe {
        let asked = sqlite3_file_control(
            connection.handle(),
            c"main".as_ptr(),
            SQLITE_FCNTL_FILE_POINTER,
            (&raw mut file).cast(),
        );
        let methods = file.as_ref().and_then(|file| file.pMethods.as_ref());
        match methods.and_then(|methods| methods.xSync) {
            Some(sync) if asked == SQLITE_OK => sync(file, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY),
            _ => SQLITE_MISUSE,
        }
    };
    if code == SQLITE_OK { Ok(()) } else { Err(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)) }
}

/// The name of the file system that gathers, for connections that write. Made known to SQLite once.
pub fn vfs() -> &'static CStr {
    BEHIND.get_or_init(|| {
        // SAFETY: SQLite's own file system stands for as long as the process; so does ours, which is leaked.
        unsafe {
            let plain = sqlite3_vfs_find(ptr::null());
            let behind = ((*plain).szOsFile as usize).next_multiple_of(align_of::<Gathering>());
            let ours = sqlite3_vfs {
                szOsFile: (behind + size_of::<Gathering>()) as c_int,
                pNext: ptr::null_mut(),
                zName: NAME.as_ptr(),
                pAppData: plain.cast(),
                xOpen: Some(open),
                ..*plain
            };
            let registered = sqlite3_vfs_register(Box::leak(Box::new(ours)), 0);
            assert_eq!(registered, SQLITE_OK, "SQLite takes another file system");
            behind
        }
    });
    NAME
}

// SAFETY of all below: SQLite calls them with a `file` of the size it was told, one at a time for each file, and between
// `open` and `close`. SQLite's own functions touch only its own part of it, never what stands behind.

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    flags_out: *mut c_int,
) -> c_int {
    unsafe {
        let plain_vfs: *mut sqlite3_vfs = (*vfs).pAppData.cast();
        let opened = (*plain_vfs).xOpen.expect("every one opens")(plain_vfs, name, file, flags, flags_out);
        if opened == SQLITE_OK && flags & SQLITE_OPEN_WAL != 0 {
            let plain = &*(*file).pMethods;
            let methods = sqlite3_io_methods {
                xClose: Some(close),
                xRead: Some(read),
                xWrite: Some(write),
                xTruncate: Some(truncate),
                xSync: Some(sync),
                xFileSize: Some(size),
                ..*plain
            };
            let gathering = gathering(file);
            gathering.write(Gathering { plain, methods, image: Image::default() });
            (*file).pMethods = &raw const (*gathering).methods;
        }
        opened
    }
}

unsafe fn gathering(file: *mut sqlite3_file) -> *mut Gathering {
    let behind = *BEHIND.get().expect("it was made known before a file was opened");
    unsafe { file.byte_add(behind).cast() }
}

/// Writes what is gathered, then gives SQLite's own functions. What can't be written is dropped: whoever commits it hears
/// of that, and is rolled back; kept, it could be written after all behind a later commit.
unsafe fn written(file: *mut sqlite3_file) -> Result<&'static sqlite3_io_methods, c_int> {
    unsafe {
        let Gathering { plain, image, .. } = &mut *gathering(file);
        if image.bytes.is_empty() {
            return Ok(plain);
        }
        let (bytes, length) = (image.bytes.as_ptr().cast(), image.bytes.len() as c_int);
        let code = plain.xWrite.expect("every one writes")(file, bytes, length, image.start as sqlite3_int64);
        image.bytes.clear();
        if code == SQLITE_OK { Ok(plain) } else { Err(code) }
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    length: c_int,
    at: sqlite3_int64,
) -> c_int {
    unsafe {
        let bytes = std::slice::from_raw_parts(from.cast(), length as usize);
        let taken = |file| (*gathering(file)).image.take(at as usize, bytes);
        if taken(file) {
            return SQLITE_OK;
        }
        match written(file) {
            Ok(_) if taken(file) => SQLITE_OK,
            Ok(plain) => plain.xWrite.expect("every one writes")(file, from, length, at),
            Err(code) => code,
        }
    }
}

unsafe extern "C" fn read(
    file: *mut sqlite3_file,
    to: *mut c_void,
    length: c_int,
    at: sqlite3_int64,
) -> c_int {
    unsafe {
        let read = |plain: &sqlite3_io_methods| plain.xRead.expect("every one reads")(file, to, length, at);
        written(file).map_or_else(|code| code, read)
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: sqlite3_int64) -> c_int {
    unsafe {
        let truncate = |plain: &sqlite3_io_methods| plain.xTruncate.expect("every one truncates")(file, size);
        written(file).map_or_else(|code| code, truncate)
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    unsafe {
        let sync = |plain: &sqlite3_io_methods| plain.xSync.expect("every one syncs")(file, flags);
        written(file).map_or_else(|code| code, sync)
    }
}

unsafe extern "C" fn size(file: *mut sqlite3_file, size: *mut sqlite3_int64) -> c_int {
    unsafe {
        let measure = |plain: &sqlite3_io_methods| plain.xFileSize.expect("every one measures")(file, size);
        written(file).map_or_else(|code| code, measure)
    }
}

/// What was not synced belongs to no commit.
unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    unsafe {
        let Gathering { plain, .. } = gathering(file).read();
        (*file).pMethods = plain;
        plain.xClose.expect("every one closes")(file)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;
    use std::path::Path;

    use proptest::prelude::*;
    use rusqlite::Connection;
    use rusqlite::ffi::SQLITE_FULL;

    use super::*;
    use crate::sqlite::connection::open_writer;

    proptest! {
        #[test]
        fn h2_what_is_gathered_ends_in_the_file_as_if_it_were_written_at_once(
            writes in prop::collection::vec((0_usize..200_000, 1_usize..70_000), 1..20),
        ) {
            let (mut plain, mut file, mut image) = (vec![0; 300_000], vec![0; 300_000], Image::default());
            let write_out = |image: &mut Image, file: &mut Vec<u8>| {
                file[image.start..image.start + image.bytes.len()].copy_from_slice(&image.bytes);
                image.bytes.clear();
            };
            for (n, (at, length)) in writes.into_iter().enumerate() {
                let bytes = vec![n as u8 + 1; length];
                plain[at..at + length].copy_from_slice(&bytes);
                if !image.take(at, &bytes) {
                    write_out(&mut image, &mut file);
                    prop_assert!(image.take(at, &bytes), "an empty one takes whatever SQLite writes");
                }
                prop_assert!(image.bytes.len() <= IMAGE_MAX);
            }
            write_out(&mut image, &mut file);
            prop_assert!(plain == file);
        }
    }

    thread_local! {
        /// What reached a file that can be full.
        static WRITTEN: RefCell<Vec<(sqlite3_int64, Vec<u8>)>> = RefCell::default();
        static FULL: Cell<bool> = Cell::default();
    }

    unsafe extern "C" fn note(
        _: *mut sqlite3_file,
        from: *const c_void,
        length: c_int,
        at: sqlite3_int64,
    ) -> c_int {
        let bytes = unsafe { std::slice::from_raw_parts(from.cast(), length as usize) };
        if FULL.get() {
            return SQLITE_FULL;
        }
        WRITTEN.with_borrow_mut(|written| written.push((at, bytes.to_vec())));
        SQLITE_OK
    }

    unsafe extern "C" fn sync_nothing(_: *mut sqlite3_file, _: c_int) -> c_int {
        SQLITE_OK
    }

    #[test]
    fn r5_a_commit_that_did_not_fit_on_the_disk_is_never_written_behind_the_next() {
        vfs();
        // SAFETY: all bytes zero is an io_methods without functions, and a file object is plain memory.
        unsafe {
            let nothing: sqlite3_io_methods = std::mem::zeroed();
            let plain = sqlite3_io_methods { xWrite: Some(note), xSync: Some(sync_nothing), ..nothing };
            let plain: &'static _ = Box::leak(Box::new(plain));
            let mut memory = vec![0_u64; (BEHIND.get().unwrap() + size_of::<Gathering>()).div_ceil(8)];
            let file: *mut sqlite3_file = memory.as_mut_ptr().cast();
            gathering(file).write(Gathering { plain, methods: *plain, image: Image::default() });
            let write = |at, bytes: &[u8]| write(file, bytes.as_ptr().cast(), bytes.len() as c_int, at);

            FULL.set(true);
            assert_eq!(write(32, &[1; 100]), SQLITE_OK);
            assert_eq!(sync(file, 0), SQLITE_FULL);
            FULL.set(false);
            assert_eq!(sync(file, 0), SQLITE_OK);
            assert_eq!(write(32, &[2; 10]), SQLITE_OK);
            assert_eq!(write(42, &[3; 10]), SQLITE_OK);
            assert_eq!(sync(file, 0), SQLITE_OK);
            assert_eq!(WRITTEN.take(), [(32, [[2; 10], [3; 10]].concat())]);
            drop(gathering(file).read());
        }
    }

    type Rows = BTreeMap<i64, String>;

    fn rows(path: &Path) -> Rows {
        let reader = Connection::open(path).unwrap();
        let whole: String = reader.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(whole, "ok");
        let mut rows = reader.prepare("SELECT id, body FROM t").unwrap();
        let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// Transactions far larger than the cache: their pages are written before the commit, read again, written again.
        #[test]
        fn h2_others_and_whoever_comes_after_a_crash_see_each_commit_and_nothing_else(
            transactions in prop::collection::vec(
                (prop::collection::vec((0_i64..300, 1_usize..6_000), 1..300), any::<bool>(), any::<bool>()),
                1..6,
            ),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let (path, crashed) = (folder.path().join("s.db"), folder.path().join("crashed.db"));
            let writer = open_writer(&path).unwrap();
            writer.pragma_update(None, "cache_size", 8).unwrap();
            writer.pragma_update(None, "cache_spill", true).unwrap();
            writer.execute_batch("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT NOT NULL)").unwrap();
            let mut committed = Rows::new();
            for (n, (writes, commits, moves)) in transactions.into_iter().enumerate() {
                let mut changed = committed.clone();
                writer.execute_batch("BEGIN IMMEDIATE").unwrap();
                for (id, length) in writes {
                    let body = n.to_string().repeat(length);
                    writer.execute("INSERT OR REPLACE INTO t VALUES ($1, $2)", (id, &body)).unwrap();
                    changed.insert(id, body);
                }
                writer.execute_batch(if commits { "COMMIT" } else { "ROLLBACK" }).unwrap();
                if commits {
                    committed = changed;
                }
                prop_assert!(rows(&path) == committed);
                for end in ["db", "db-wal"] {
                    std::fs::copy(path.with_extension(end), crashed.with_extension(end)).unwrap();
                }
                prop_assert!(rows(&crashed) == committed);
                let _ = std::fs::remove_file(crashed.with_extension("db-shm"));
                if moves {
                    let moving = writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
                    moving.unwrap();
                }
            }
            writer.close().unwrap();
            prop_assert!(rows(&path) == committed);
        }
    }
}
