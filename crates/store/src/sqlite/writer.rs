//! The one thread that writes. It takes everything queued, runs it in one transaction, and answers only after
//! COMMIT, so that durability costs one sync per batch and not per caller.
//!
//! No savepoints: after "disk full" inside one, SQLite ends the whole transaction and later commands would commit
//! alone. Any error rolls back everything; a constraint error runs the commands again one by one, so that the
//! guilty one fails alone; every other error fails them all.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rusqlite::{Connection, ErrorCode, ffi};
use tokio::sync::oneshot;

use super::SqliteStore;
use super::chain::Chain;
use super::keys::DedupeKeys;
use super::log::WriteAheadLog;
use super::transaction::{Closed, Tx};
use crate::error::{Error, Result};

/// Most commands in one transaction.
const BATCH_MAX: usize = 256;
/// What the process exits with when the disk no longer takes a sync (`EX_IOERR`).
const EXIT_SYNC_FAILED: i32 = 74;
/// The same when a thread panicked (`EX_SOFTWARE`).
const EXIT_PANICKED: i32 = 70;

/// And when an event is stored twice (`EX_DATAERR`).
pub const EXIT_DOUBLED: i32 = 65;

pub struct Writer {
    commands: Option<Sender<Box<dyn Command>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub fn start(connection: Connection, log: WriteAheadLog, keys: Arc<DedupeKeys>) -> Self {
        let (commands, queue) = channel();
        let thread = std::thread::Builder::new().name("sqlite-writer".into());
        let scribe = Scribe { connection, log, chain: Chain::default(), keys, in_doubt: false };
        let run = move || {
            let _leave = LeaveOnPanic;
            scribe.run(&queue);
        };
        let thread = thread.spawn(run).expect("a thread can be started");
        Self { commands: Some(commands), thread: Some(thread) }
    }
}

/// Without its threads the store could never write again, or its log never end, though it would look alive.
pub struct LeaveOnPanic;

impl Drop for LeaveOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(
                error_type = "panicked",
                "a thread of the SQLite store panicked: leaving, to be started again"
            );
            std::process::exit(EXIT_PANICKED);
        }
    }
}

/// Lets the queue run dry, then closes the file.
impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.commands.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl SqliteStore {
    /// Queues work for the writer and waits until it is durable. The work may run more than once, each time
    /// from the same committed state.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&Tx<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        self.try_write(work).await.map_err(|failure| match failure {
            WriteFailure::Refused(error) => Error::corrupt(error),
            WriteFailure::Unavailable(error) => error,
        })
    }

    pub(super) async fn try_write<T: Send + 'static>(
        &self,
        work: impl FnMut(&Tx<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> std::result::Result<T, WriteFailure> {
        let closed = || WriteFailure::Unavailable(Error::unavailable("the writer has stopped"));
        let read_only =
            || WriteFailure::Unavailable(Error::unavailable("this store was opened only to look"));
        let (reply, answer) = oneshot::channel();
        let queue = self.writer.as_ref().and_then(|writer| writer.commands.as_ref()).ok_or_else(read_only)?;
        queue.send(Box::new(Call { work, answer: None, reply })).map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

pub enum WriteFailure {
    /// A constraint said no to this command; its neighbours went through.
    Refused(String),
    Unavailable(Error),
}

trait Command: Send {
    fn run(&mut self, tx: &Tx<'_>) -> rusqlite::Result<()>;
    fn reply(self: Box<Self>, failure: Option<WriteFailure>);
}

struct Call<T, F> {
    work: F,
    answer: Option<T>,
    reply: oneshot::Sender<std::result::Result<T, WriteFailure>>,
}

impl<T: Send, F: FnMut(&Tx<'_>) -> rusqlite::Result<T> + Send> Command for Call<T, F> {
    fn run(&mut self, tx: &Tx<'_>) -> rusqlite::Result<()> {
        self.answer = Some((self.work)(tx)?);
        Ok(())
    }

    fn reply(self: Box<Self>, failure: Option<WriteFailure>) {
        let answer = match failure {
            Some(failure) => Err(failure),
            None => Ok(self.answer.expect("it ran before the commit")),
        };
        // The caller may have gone; what was written stays written.
        let _ = self.reply.send(answer);
    }
}

/// The connection that writes, with what it remembers of what is committed.
struct Scribe {
    connection: Connection,
    log: WriteAheadLog,
    chain: Chain,
    keys: Arc<DedupeKeys>,
    /// Whether memory may be wrong about what is committed.
    in_doubt: bool,
}

impl Scribe {
    fn run(mut self, queue: &Receiver<Box<dyn Command>>) {
        while let Ok(first) = queue.recv() {
            let mut batch = vec![first];
            batch.extend(queue.try_iter().take(BATCH_MAX - 1));
            match self.commit(&mut batch) {
                Ok(()) => batch.into_iter().for_each(|command| command.reply(None)),
                Err(error) if is_constraint(&error) && batch.len() > 1 => {
                    batch.into_iter().for_each(|command| self.run_alone(command));
                }
                Err(error) => fail(batch, &error),
            }
            self.log.tend(&self.connection);
        }
        drop(self.log);
        if let Err((_, error)) = self.connection.close() {
            tracing::error!(error_type = "close_failed", %error, "the SQLite file could not be closed cleanly; it will recover when opened next");
        }
    }

    fn run_alone(&mut self, command: Box<dyn Command>) {
        let mut alone = [command];
        let result = self.commit(&mut alone);
        let [command] = alone;
        match result {
            Ok(()) => command.reply(None),
            Err(error) => fail(vec![command], &error),
        }
    }

    fn commit(&mut self, batch: &mut [Box<dyn Command>]) -> rusqlite::Result<()> {
        match self.try_commit(batch) {
            Ok(closed) => {
                self.chain = closed.chain;
                self.keys.apply(closed.keys);
                Ok(())
            }
            Err(error) => {
                exit_if_sync_failed(&error);
                if !self.connection.is_autocommit() {
                    // If even this fails, the next BEGIN fails too and its callers hear of it.
                    let _ = self.connection.execute_batch("ROLLBACK");
                }
                self.in_doubt |= !is_constraint(&error);
                Err(error)
            }
        }
    }

    fn try_commit(&mut self, batch: &mut [Box<dyn Command>]) -> rusqlite::Result<Closed> {
        if self.in_doubt {
            // A chain goes on only where it is sure to have ended.
            self.chain = Chain::default();
            self.keys.reload(&self.connection)?;
            self.in_doubt = false;
        }
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let tx = Tx::new(&self.connection, &self.chain, &self.keys);
        for command in batch.iter_mut() {
            command.run(&tx)?;
        }
        let closed = tx.close()?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(closed)
    }
}

fn fail(batch: Vec<Box<dyn Command>>, error: &rusqlite::Error) {
    let text = error.to_string();
    if !is_constraint(error) {
        tracing::error!(
            error_type = "commit_failed",
            error = text,
            commands = batch.len(),
            "SQLite could not commit; the callers were told so"
        );
    }
    for command in batch {
        command.reply(Some(if is_constraint(error) {
            WriteFailure::Refused(text.clone())
        } else {
            WriteFailure::Unavailable(Error::unavailable(text.clone()))
        }));
    }
}

fn is_constraint(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch)
    )
}

/// After a failed sync the kernel may have dropped the pages while calling them clean: a second sync would succeed
/// and lie. What it held was not answered yet, or is still in the log, so leave, and let recovery read what the disk really
/// holds.
pub fn exit_if_sync_failed(error: &rusqlite::Error) {
    let code = error.sqlite_error().map(|error| error.extended_code);
    if matches!(code, Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC)) {
        tracing::error!(error_type = "sync_failed", %error, "the disk refused a sync: leaving, because going on could lose acknowledged events");
        std::process::exit(EXIT_SYNC_FAILED);
    }
}
