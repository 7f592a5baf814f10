//! The log (WAL) and how its pages come into the file. SQLite would move them inside a commit, every few dozen batches,
//! while everybody waits. Here a thread copies and syncs while commits go on, again and again until little comes meanwhile;
//! the writer copies that and syncs the file, between two batches: only a log that is moved whole begins anew.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::connection::open_reader;
use super::log_file;
use super::writer::{LeaveOnPanic, exit_if_sync_failed};

/// Pages in the log before they are moved: 64 MB, which recovery reads in a tenth of a second. The more, the more often a
/// page that changes all the time is moved once instead of many times. Few where tests run, so that all of them move.
const PAGES_MAX: i32 = if cfg!(debug_assertions) { 16 } else { 8_192 };
/// And pages more before it is tried again, where somebody who read kept some.
const PAGES_MORE: i32 = PAGES_MAX / 8;
/// So few are left to the writer, unless they come faster than they are moved.
const PAGES_LEFT: i32 = PAGES_MAX / 32;
const PASSES_MAX: usize = 6;
/// So many (256 MB), and somebody must be told that a reader keeps the log from beginning anew.
const PAGES_ALARM: i32 = 4 * PAGES_MAX;

pub struct WriteAheadLog {
    /// In the log after the latest commit.
    pages: Arc<AtomicI32>,
    /// As many make it worth moving.
    due: i32,
    alarm: Alarm,
    mover: Mover,
}

/// Rings when the log has grown to its limit, and again each time it doubled.
struct Alarm {
    at: i64,
}

impl Alarm {
    const SET: Self = Self { at: PAGES_ALARM as i64 };

    fn rings(&mut self, pages: i32) -> bool {
        let pages = i64::from(pages);
        let rings = pages >= self.at;
        while self.at <= pages {
            self.at *= 2;
        }
        rings
    }
}

impl WriteAheadLog {
    /// Follows the log of the connection that writes.
    pub fn follow(writer: &mut Connection, path: &Path) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicI32::new(0));
        let noted = Arc::clone(&pages);
        // Instead of SQLite's own hook, which would move pages here and now.
        writer.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            noted.store(pages, Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self { pages, due: PAGES_MAX, alarm: Alarm::SET, mover: Mover::start(path)? })
    }

    /// Called between two batches, when nobody waits for the one before.
    pub fn tend(&mut self, writer: &Connection) {
        if self.mover.take_finished() {
            self.due = match move_pages(writer) {
                Some(moved) if moved.is_whole => {
                    self.alarm = Alarm::SET;
                    PAGES_MAX
                }
                Some(moved) => {
                    if self.alarm.rings(moved.in_log) {
                        tracing::warn!(
                            error_type = "log_grows",
                            pages = moved.in_log,
                            "somebody who reads the file keeps SQLite's log from beginning anew: it grows until they end; \
                             look for an open sqlite3 shell or a backup that hangs"
                        );
                    }
                    moved.in_log + PAGES_MORE
                }
                None => self.due + PAGES_MAX,
            };
        } else if self.pages.load(Ordering::Relaxed) >= self.due {
            self.mover.go();
        }
    }
}

/// A connection on a thread of its own, which moves what is in the log when it is told to.
struct Mover {
    orders: Option<Sender<()>>,
    finished: Receiver<()>,
    under_way: bool,
    thread: Option<JoinHandle<()>>,
}

impl Mover {
    fn start(path: &Path) -> rusqlite::Result<Self> {
        let connection = open_reader(path)?;
        connection.pragma_update(None, "synchronous", "full")?;
        let (orders, told) = channel();
        let (report, finished) = channel();
        let run = move || {
            let _leave = LeaveOnPanic;
            while let Ok(()) = told.recv() {
                move_most(&connection);
                if report.send(()).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("sqlite-log".into()).spawn(run);
        let thread = thread.expect("a thread can be started");
        Ok(Self { orders: Some(orders), finished, under_way: false, thread: Some(thread) })
    }

    fn go(&mut self) {
        if let (false, Some(orders)) = (self.under_way, &self.orders) {
            self.under_way = orders.send(()).is_ok();
        }
    }

    /// True once for each time it was told to go.
    fn take_finished(&mut self) -> bool {
        let finished = self.under_way && self.finished.try_recv().is_ok();
        self.under_way &= !finished;
        finished
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Moved {
    in_log: i32,
    /// Of those, in the file.
    in_file: i32,
    is_whole: bool,
}

/// Moves pages until few came while the last ones were moved.
fn move_most(connection: &Connection) {
    let mut before = 0;
    for _ in 0..PASSES_MAX {
        let Some(moved) = move_pages(connection) else { return };
        // SQLite does so only when the whole log was moved. What is on the disk by then, the writer need not wait for.
        if let Err(error) = log_file::sync_database(connection) {
            return failed(&error);
        }
        if moved.in_file - before <= PAGES_LEFT {
            return;
        }
        before = moved.in_file;
    }
}

/// Moves what no reader still needs in the log.
fn move_pages(connection: &Connection) -> Option<Moved> {
    let moved = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
        let (busy, in_log, in_file): (bool, i32, i32) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Moved { in_log, in_file, is_whole: !busy && in_file >= in_log })
    });
    moved.inspect_err(failed).ok()
}

fn failed(error: &rusqlite::Error) {
    exit_if_sync_failed(error);
    tracing::warn!(error_type = "log_grows", %error, "SQLite could not move its log into the file; nothing is lost, it is tried again");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a6_a_log_that_can_not_begin_anew_is_told_of_now_and_then() {
        let mut alarm = Alarm::SET;
        let told: Vec<_> = (0..PAGES_ALARM * 9).filter(|pages| alarm.rings(*pages)).collect();
        assert_eq!(told, [1, 2, 4, 8].map(|times| times * PAGES_ALARM));
        assert!(alarm.rings(i32::MAX), "and it comes to an end");
    }
}
