//! Connections to PostgreSQL: how one is made, set up, found broken and replaced.
//!
//! A [`Link`] is one connection that makes itself anew when it broke. Every verb of the store is a single statement,
//! sent whole: no transaction is ever open between two messages, so a dropped future leaves nothing to roll back.
//! What it leaves is a statement the server still works on; its turn ends only when the server has answered, so that
//! callers who give up can't pile up work behind them.

mod session;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_postgres::Row;
use tokio_postgres::config::{Config, SslMode, TargetSessionAttrs};
use tokio_postgres::types::{FromSql, ToSql};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::chain::{Head, NEW_CHAIN};
use super::failure::QueryFailure;
use super::tls;
use crate::error::{Error, Result};
use session::PostgresSession;

/// To reach one host.
const CONNECT_MAX: Duration = Duration::from_secs(1);
/// To become a usable session, all hosts of the URL tried.
const SESSION_MAX: Duration = Duration::from_secs(4);
/// From the call to its answer. Longer than the server's own limits in `session.rs`, so that the server speaks first.
const ANSWER_MAX: Duration = Duration::from_secs(8);

/// Work reaches its rows by key. A plan made while a table was empty must not scan it when it is full.
const BY_KEY: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;";

/// A migration may wait for locks and take its time.
const UNHURRIED: &str = "SET statement_timeout = '10min'; SET lock_timeout = '1min';";
/// Counting and forgetting take their time too, but whoever waits for a lock makes others wait behind it.
const ASIDE: &str = "SET statement_timeout = '10min'; SET lock_timeout = '200ms';";

/// Where the database is, and what is asked of it.
pub struct PostgresServer {
    config: Config,
    tls: MakeRustlsConnect,
    /// Only to look: sessions can't write, and any server of the URL will do.
    read_only: bool,
    allow_unsafe: bool,
    /// Commits wait for a standby, so that what is merely seen here may not be there.
    has_standby: AtomicBool,
}

impl PostgresServer {
    pub fn new(url: &str, read_only: bool, allow_unsafe: bool) -> Result<Self> {
        let mut config: Config = url.parse().map_err(Error::unavailable)?;
        config
            .application_name("sekisho")
            .connect_timeout(CONNECT_MAX)
            .keepalives_idle(Duration::from_secs(5))
            .keepalives_interval(Duration::from_secs(2))
            .keepalives_retries(3)
            .tcp_user_timeout(Duration::from_secs(10));
        if !read_only {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let tls = tls::connector(config.get_ssl_mode() == SslMode::Require)?;
        Ok(Self { config, tls, read_only, allow_unsafe, has_standby: AtomicBool::new(false) })
    }
}

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Migrate,
    Admit,
    Work,
    /// Reads that work waits for.
    Load,
    Read,
    Upkeep,
}

impl Purpose {
    const fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Migrate => &[UNHURRIED],
            Self::Work | Self::Load => &[BY_KEY],
            Self::Upkeep => &[BY_KEY, ASIDE],
            Self::Admit | Self::Read => &[],
        }
    }

    /// Reads are answered one after the other anyway, but need not wait for each other's way there and back.
    const fn turns(self) -> usize {
        match self {
            Self::Migrate | Self::Admit | Self::Work | Self::Upkeep => 1,
            Self::Load | Self::Read => 16,
        }
    }

    /// Whether an acknowledgement rests on what this connection wrote.
    const fn acknowledges(self) -> bool {
        match self {
            Self::Admit | Self::Work => true,
            Self::Migrate | Self::Load | Self::Read | Self::Upkeep => false,
        }
    }

    /// How long an answer may take.
    const fn patience(self) -> Duration {
        match self {
            Self::Admit | Self::Work | Self::Load | Self::Read => ANSWER_MAX,
            Self::Migrate | Self::Upkeep => Duration::MAX,
        }
    }
}

/// One connection, made when first needed and made anew after it broke.
pub struct Link {
    server: Arc<PostgresServer>,
    purpose: Purpose,
    /// How many statements may be on their way at once.
    turns: Arc<Semaphore>,
    current: Arc<tokio::sync::Mutex<Option<Arc<PostgresSession>>>>,
}

impl Link {
    pub fn new(server: &Arc<PostgresServer>, purpose: Purpose) -> Self {
        let turns = Arc::new(Semaphore::new(purpose.turns()));
        Self { server: Arc::clone(server), purpose, turns, current: Arc::default() }
    }

    pub fn has_standby(&self) -> bool {
        self.server.has_standby.load(Ordering::Relaxed)
    }

    /// Runs one prepared statement: one round trip once the session knows it.
    pub async fn query(
        &self,
        sql: &'static str,
        values: &[&(dyn ToSql + Sync)],
    ) -> std::result::Result<Vec<Row>, QueryFailure> {
        self.run(async |session| {
            let statement = session.prepared(sql).await?;
            Ok(session.client.query(&statement, values).await?)
        })
        .await
    }

    /// Runs one prepared statement that may write audit entries. After its own values it is given the chain, the number
    /// and the predecessor of the link they hang on.
    pub async fn query_chained(
        &self,
        sql: &'static str,
        values: &[&(dyn ToSql + Sync)],
    ) -> std::result::Result<Vec<Row>, QueryFailure> {
        debug_assert_eq!(self.purpose.turns(), 1, "a chain goes on after the answer");
        self.run(async |session| {
            let statement = session.prepared(sql).await?;
            // Taken, so that whoever goes away before the answer leaves none.
            let kept = lock(&session.chain).take();
            let head = match kept {
                Some(head) => head,
                None => Head::beginning(session.client.query_one(NEW_CHAIN, &[]).await?.try_get(0)?),
            };
            let mut values = values.to_vec();
            values.extend([&head.chain as &(dyn ToSql + Sync), &head.next, &head.hash]);
            let answer = session.client.query(&statement, &values).await.map_err(QueryFailure::from);
            let head = match &answer {
                Ok(rows) => Some(head.after(rows)?),
                Err(failure) => Some(head).filter(|_| failure.leaves_the_session_well()),
            };
            *lock(&session.chain) = head;
            answer
        })
        .await
    }

    /// Runs a statement put together for this one call.
    pub async fn query_once(
        &self,
        sql: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> std::result::Result<Vec<Row>, QueryFailure> {
        self.run(async |session| Ok(session.client.query(sql, values).await?)).await
    }

    /// Runs several statements, whole or not at all: without BEGIN the server makes them one transaction, and a
    /// failure leaves none open.
    pub async fn script(&self, sql: &str) -> std::result::Result<(), QueryFailure> {
        self.run(async |session| Ok(session.client.batch_execute(sql).await?)).await
    }

    async fn run<T>(
        &self,
        act: impl AsyncFnOnce(&PostgresSession) -> std::result::Result<T, QueryFailure>,
    ) -> std::result::Result<T, QueryFailure> {
        let patience = self.purpose.patience();
        let waiting = timeout(patience, Arc::clone(&self.turns).acquire_owned()).await;
        let turn = waiting.map_err(|_| QueryFailure::Silent)?.expect("nobody closes the semaphore");
        let session = self.session().await?;
        let unanswered = Unanswered::new(&session, turn);
        let answer = timeout(patience, act(&session)).await.unwrap_or(Err(QueryFailure::Silent));
        let answer =
            answer.and_then(|rows| if session.take_doubt() { Err(QueryFailure::Doubtful) } else { Ok(rows) });
        if answer.as_ref().is_err_and(|failure| !failure.leaves_the_session_well()) {
            self.discard(&session).await;
        }
        unanswered.settle();
        answer
    }

    /// When the server has answered everything that was asked here.
    async fn idle(&self) {
        let all = u32::try_from(self.purpose.turns()).unwrap_or(u32::MAX);
        let _ = self.turns.acquire_many(all).await;
    }

    fn is_idle(&self) -> bool {
        self.turns.available_permits() == self.purpose.turns()
    }

    async fn session(&self) -> std::result::Result<Arc<PostgresSession>, QueryFailure> {
        let mut current = Arc::clone(&self.current).lock_owned().await;
        if let Some(session) = current.as_ref().filter(|session| !session.client.is_closed()) {
            return Ok(Arc::clone(session));
        }
        *current = None;
        let (server, purpose) = (Arc::clone(&self.server), self.purpose);
        // In a task of its own: callers with less patience than a connection takes would each start it anew, and
        // none would ever have it.
        let connecting = tokio::spawn(async move {
            let connected = timeout(SESSION_MAX, PostgresSession::connect(&server, purpose)).await;
            let session = Arc::new(connected.unwrap_or(Err(QueryFailure::Silent))?);
            Ok(Arc::clone(current.insert(session)))
        });
        connecting.await.unwrap_or(Err(QueryFailure::Silent))
    }

    async fn discard(&self, session: &Arc<PostgresSession>) {
        let mut current = self.current.lock().await;
        if current.as_ref().is_some_and(|held| Arc::ptr_eq(held, session)) {
            *current = None;
        }
    }
}

/// A statement whose answer is awaited. If its caller goes away first, the turn is kept until the server, which
/// answers in order, has answered a question sent after it.
struct Unanswered(Option<(Arc<PostgresSession>, OwnedSemaphorePermit)>);

impl Unanswered {
    fn new(session: &Arc<PostgresSession>, turn: OwnedSemaphorePermit) -> Self {
        Self(Some((Arc::clone(session), turn)))
    }

    fn settle(mut self) {
        self.0 = None;
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        let Some((session, turn)) = self.0.take() else { return };
        in_background(async move {
            let _ = timeout(ANSWER_MAX, session.client.check_connection()).await;
            drop(turn);
        });
    }
}

/// Several links for one purpose; a caller gets one on which the server is not busy.
pub struct Links {
    free: Arc<Mutex<Vec<Link>>>,
    permits: Arc<Semaphore>,
}

impl Links {
    pub fn new(server: &Arc<PostgresServer>, purpose: Purpose, count: usize) -> Self {
        let free = (0..count).map(|_| Link::new(server, purpose)).collect();
        Self { free: Arc::new(Mutex::new(free)), permits: Arc::new(Semaphore::new(count)) }
    }

    pub async fn take(&self) -> TakenConnection {
        let permit = Arc::clone(&self.permits).acquire_owned().await.expect("nobody closes the semaphore");
        let link = lock(&self.free).pop().expect("there are as many links as permits");
        TakenConnection { held: Some((link, permit)), free: Arc::clone(&self.free) }
    }
}

pub struct TakenConnection {
    held: Option<(Link, OwnedSemaphorePermit)>,
    free: Arc<Mutex<Vec<Link>>>,
}

impl std::ops::Deref for TakenConnection {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.held.as_ref().expect("it leaves only on drop").0
    }
}

impl Drop for TakenConnection {
    fn drop(&mut self) {
        let Some((link, permit)) = self.held.take() else { return };
        let free = Arc::clone(&self.free);
        let give_back = move |link, permit: OwnedSemaphorePermit| {
            // Order matters: a permit promises a link.
            lock(&free).push(link);
            drop(permit);
        };
        if link.is_idle() {
            return give_back(link, permit);
        }
        in_background(async move {
            link.idle().await;
            give_back(link, permit);
        });
    }
}

/// Without a runtime the process is on its way out, and there is nothing left to wait for.
fn in_background(task: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(task);
    }
}

/// One value of a row. What can't be read as its type should not have been there.
pub fn value<'r, T: FromSql<'r>>(row: &'r Row, index: usize) -> Result<T> {
    row.try_get(index).map_err(Error::corrupt)
}

/// A word in a row that is none of ours.
pub fn unreadable(what: &'static str) -> Error {
    Error::corrupt(format!("the database holds a {what} that is not one"))
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
