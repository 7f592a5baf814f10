//! One session with the server, from its greeting to its end: set up for its purpose, checked for what it promises to
//! keep, with its prepared statements and the chain that its audit entries hang on.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;
use tokio_postgres::{AsyncMessage, Client, Connection, Statement};

use super::{PostgresServer, Purpose, lock};
use crate::postgres::chain::Head;
use crate::postgres::durability;
use crate::postgres::failure::QueryFailure;

/// What every session says first. The idle limit frees a frozen process's locks; lz4 where the server has it.
const SETTINGS: &str = "
    SET statement_timeout = '5s';
    SET lock_timeout = '3s';
    SET idle_in_transaction_session_timeout = '5s';
    SET client_min_messages = 'warning';
    SET jit = off;
    SET work_mem = '32MB';
    SELECT set_config(name, 'lz4', false) FROM pg_settings
    WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals);";

const READ_ONLY: &str = "SET default_transaction_read_only = on;";

pub struct PostgresSession {
    pub client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
    /// Absent before the first entry, and while nobody knows where it ends.
    pub chain: Mutex<Option<Head>>,
    doubt: Arc<AtomicBool>,
    driver: AbortHandle,
}

impl PostgresSession {
    pub async fn connect(
        server: &PostgresServer,
        purpose: Purpose,
    ) -> std::result::Result<Self, QueryFailure> {
        let (client, connection) = server.config.connect(server.tls.clone()).await?;
        let doubt = Arc::new(AtomicBool::new(false));
        let driver = tokio::spawn(drive(connection, Arc::clone(&doubt))).abort_handle();
        let session = Self { client, statements: Mutex::default(), chain: Mutex::default(), doubt, driver };
        session.client.batch_execute(SETTINGS).await?;
        for settings in purpose.settings() {
            session.client.batch_execute(settings).await?;
        }
        if server.read_only {
            session.client.batch_execute(READ_ONLY).await?;
        }
        // Asserted on every such connection: after a failover the server may be another one.
        if purpose.acknowledges() && !server.read_only {
            let has_standby = durability::require(&session.client, server.allow_unsafe).await?;
            server.has_standby.store(has_standby, Ordering::Relaxed);
        }
        Ok(session)
    }

    pub async fn prepared(&self, sql: &'static str) -> std::result::Result<Statement, QueryFailure> {
        if let Some(statement) = lock(&self.statements).get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        lock(&self.statements).insert(sql, statement.clone());
        Ok(statement)
    }

    /// Whether something was reported since that makes an answer's success doubtful.
    pub fn take_doubt(&self) -> bool {
        self.doubt.swap(false, Ordering::AcqRel)
    }
}

impl Drop for PostgresSession {
    /// A server that went silent would keep the task, and the socket, for as long as the kernel hopes.
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Moves bytes until the connection ends. Order matters: a notice is seen here before its statement's answer is
/// handed out.
async fn drive<S, T>(mut connection: Connection<S, T>, doubt: Arc<AtomicBool>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match message {
            // Somebody cancelled the wait for the standby. The server then reports success, though only it has the
            // commit. Its routine is named because the text is translated.
            Ok(AsyncMessage::Notice(notice)) if notice.routine() == Some("SyncRepWaitForLSN") => {
                doubt.store(true, Ordering::Release);
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(error = %crate::error::chain(&error), "a connection to PostgreSQL ended");
                return;
            }
        }
    }
}
