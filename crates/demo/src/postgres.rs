//! A private PostgreSQL server for tests and benchmarks: real, durable, on a free loopback port, gone afterwards.
//!
//! Each caller gets a database of its own with [`Postgres::fresh_url`]. `SEKISHO_TEST_POSTGRES` names a server
//! to use instead of starting one ([`shared`]); such a server is never stopped or restarted from here. As root,
//! the server runs as user `postgres`, because PostgreSQL refuses root.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use std::{env, fs, process};

use crate::warden::Warden;
use crate::{free_address, measure};

/// Names a server to use instead of a private one, as `postgres://user@host:port/database`.
pub const SHARED_VARIABLE: &str = "SEKISHO_TEST_POSTGRES";

const PACKAGE: &str = "install the Debian package `postgresql`";
/// How long the server may take to start or stop.
const START_S: u32 = 60;

/// Memory for pages where tests run: what PostgreSQL has unless told otherwise.
const TEST_MB: u32 = 128;
/// Used before something is measured: 640 MB, of the 1 GB that the settings permit.
const LOG_FILES: usize = 40;

/// Durability as in production; the rest sized for a test machine.
const SETTINGS: &str = "
listen_addresses = '127.0.0.1'
fsync = on
synchronous_commit = on
max_connections = 200
max_wal_size = 1GB
timezone = 'UTC'
log_min_messages = warning
";

#[derive(Debug)]
pub struct Postgres {
    base: Base,
    psql: PathBuf,
    private: Option<Private>,
}

/// An open transaction of somebody who looks.
pub struct PostgresSnapshot(Child);

impl Drop for PostgresSnapshot {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `postgres://user@host:port`, and what may follow the database's name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Base {
    server: String,
    database: String,
    query: String,
}

#[derive(Debug)]
struct Private {
    bin: PathBuf,
    dir: PathBuf,
    port: u16,
    warden: Mutex<Warden>,
}

impl Postgres {
    /// Starts a server below the system's temporary directory.
    pub fn start() -> Result<Self, String> {
        Self::start_in(&env::temp_dir())
    }

    /// Starts a server in a fresh directory below `parent`, which user `postgres` must be able to enter.
    pub fn start_in(parent: &Path) -> Result<Self, String> {
        Self::start_with(parent, TEST_MB)
    }

    /// The same, with so many megabytes for its pages (`shared_buffers`).
    pub fn start_with(parent: &Path, memory_mb: u32) -> Result<Self, String> {
        let bin = find_binaries()?;
        let dir = tempfile::Builder::new()
            .prefix("sekisho-postgres-")
            .tempdir_in(parent)
            .map_err(|error| format!("no directory for PostgreSQL below {}: {error}", parent.display()))?
            .keep();
        let private = Private::start(bin, dir, memory_mb)?;
        let server = format!("postgres://postgres@127.0.0.1:{}", private.port);
        let base = Base { server, database: "postgres".into(), query: String::new() };
        Ok(Self { base, psql: private.bin.join("psql"), private: Some(private) })
    }

    /// Uses a running server, as `postgres://user@host:port/database`.
    pub fn at(url: &str) -> Result<Self, String> {
        let bin = find_binaries()?;
        Ok(Self { base: Base::parse(url)?, psql: bin.join("psql"), private: None })
    }

    pub fn url(&self, database: &str) -> String {
        self.base.url(database)
    }

    /// The loopback port of the private server, for a proxy.
    pub fn port(&self) -> Option<u16> {
        self.private.as_ref().map(|private| private.port)
    }

    pub fn create_database(&self, name: &str) -> Result<(), String> {
        self.psql(&format!("CREATE DATABASE \"{name}\"")).map(drop)
    }

    pub fn drop_database(&self, name: &str) -> Result<(), String> {
        self.psql(&format!("DROP DATABASE IF EXISTS \"{name}\" WITH (FORCE)")).map(drop)
    }

    /// Creates a database under a name never used before, and answers with the name.
    pub fn fresh_database(&self) -> Result<String, String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |age| age.as_millis());
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sekisho_{now}_{}_{n}", process::id());
        self.create_database(&name).map(|()| name)
    }

    /// The URL of a new, empty database.
    pub fn fresh_url(&self) -> Result<String, String> {
        self.fresh_database().map(|name| self.url(&name))
    }

    /// Uses its log as a server in use has: it writes over old files of it. A new server makes each file anew, and whoever
    /// measures would measure that.
    pub fn wear_in(&self) -> Result<(), String> {
        let next_file = "SELECT pg_logical_emit_message(false, 'sekisho', 'used'); SELECT pg_switch_wal();";
        self.psql(&format!("{} CHECKPOINT", next_file.repeat(LOG_FILES))).map(drop)
    }

    /// Runs SQL in the server's own database. Answers with rows, one per line, columns split by `|`.
    pub fn psql(&self, sql: &str) -> Result<String, String> {
        self.psql_in(&self.base.database, sql)
    }

    pub fn psql_in(&self, database: &str, sql: &str) -> Result<String, String> {
        let url = self.url(database);
        let output = Command::new(&self.psql)
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &url, "-c", sql])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("psql did not start: {error}; install `postgresql-client`"))?;
        said("psql", &output)
    }

    /// A transaction that looks at the database as it is now and stays open, until it is dropped or this long.
    pub fn hold_snapshot(&self, database: &str, lasts: Duration) -> Result<PostgresSnapshot, String> {
        let look = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM job;";
        let url = self.url(database);
        let mut psql = Command::new(&self.psql)
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &url])
            .args(["-c", look, "-c", &format!("SELECT pg_sleep({})", lasts.as_secs())])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("psql did not start: {error}; install `postgresql-client`"))?;
        // The count is its first word: from then on the snapshot is held.
        let mut line = String::new();
        let stdout = psql.stdout.take().ok_or("psql says nothing")?;
        BufReader::new(stdout).read_line(&mut line).map_err(|error| format!("psql broke off: {error}"))?;
        if line.trim().is_empty() {
            return Err("the transaction could not be opened".into());
        }
        Ok(PostgresSnapshot(psql))
    }

    /// Ends every session but its own, as a failover or an impatient operator would; says how many.
    pub fn terminate_backends(&self) -> Result<usize, String> {
        let ended = self.psql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        )?;
        Ok(ended.lines().filter(|line| *line == "t").count())
    }

    /// Stops without a checkpoint, as a crash would; the next start recovers from the log.
    pub fn stop_immediate(&self) -> Result<(), String> {
        self.private()?.stop_immediate()
    }

    /// Starts a stopped server again, on the same port with the same data.
    pub fn start_again(&self) -> Result<(), String> {
        self.private()?.start_server()
    }

    /// A crash and what follows: immediate stop, start, recovery. Returns when connections are taken again.
    pub fn restart(&self) -> Result<(), String> {
        self.stop_immediate()?;
        self.start_again()
    }

    /// CPU time of the server with all its sessions, ended ones included, since it was last started.
    pub fn cpu_time(&self) -> Option<Duration> {
        measure::cpu_time_of_tree(self.pid()?)
    }

    pub fn pid(&self) -> Option<u32> {
        let text = fs::read_to_string(self.private.as_ref()?.data().join("postmaster.pid")).ok()?;
        text.lines().next()?.trim().parse().ok()
    }

    /// What the server wrote into its log.
    pub fn log(&self) -> String {
        let Some(private) = &self.private else { return String::new() };
        fs::read_to_string(private.log()).unwrap_or_default()
    }

    fn private(&self) -> Result<&Private, String> {
        self.private.as_ref().ok_or_else(|| {
            format!("the server in {SHARED_VARIABLE} is not ours to stop; unset it to get a private one")
        })
    }
}

/// Whether a private server could be started here.
pub fn is_installed() -> bool {
    find_binaries().is_ok()
}

/// The server that all tests of this process share.
pub fn shared() -> Result<&'static Postgres, String> {
    static SHARED: OnceLock<Result<Postgres, String>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| match env::var(SHARED_VARIABLE) {
        Ok(url) if !url.is_empty() => Postgres::at(&url),
        _ => Postgres::start(),
    });
    shared.as_ref().map_err(Clone::clone)
}

impl Base {
    fn parse(url: &str) -> Result<Self, String> {
        let wrong = || {
            format!("`{url}` is not a PostgreSQL server: write postgres://user:password@host:port/database")
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        if !matches!(scheme, "postgres" | "postgresql") || rest.is_empty() {
            return Err(wrong());
        }
        let (rest, query) = rest.split_once('?').map_or((rest, String::new()), |(r, q)| (r, format!("?{q}")));
        let (server, database) = rest.split_once('/').unwrap_or((rest, ""));
        let database = if database.is_empty() { "postgres" } else { database };
        Ok(Self { server: format!("postgres://{server}"), database: database.into(), query })
    }

    fn url(&self, database: &str) -> String {
        format!("{}/{database}{}", self.server, self.query)
    }
}

impl Private {
    fn start(bin: PathBuf, dir: PathBuf, memory_mb: u32) -> Result<Self, String> {
        let stop = ["stop", "-m", "immediate", "-w", "-t", &START_S.to_string(), "-D"];
        let mut words = vec![dir.clone().into_os_string()];
        words.extend(command_line(&bin, "pg_ctl", &stop, &dir));
        let words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
        // From here on the directory has an owner who removes it, whatever fails below.
        let script = "dir=$1; shift; cd /; \"$@\"; rm -rf \"$dir\"";
        let warden = Mutex::new(Warden::new(script, &words)?);
        let port = free_address().map_err(|error| format!("no free port for PostgreSQL: {error}"))?.port();
        let private = Self { bin, dir, port, warden };
        private.create_cluster(memory_mb)?;
        private.start_server()?;
        Ok(private)
    }

    fn create_cluster(&self, memory_mb: u32) -> Result<(), String> {
        if is_root() {
            let output = Command::new("chown").arg("postgres:").arg(&self.dir).output();
            said("chown", &output.map_err(|error| format!("chown did not start: {error}"))?).map_err(
                |error| format!("{error}; as root, PostgreSQL needs the user `postgres`: {PACKAGE}"),
            )?;
        }
        self.run(
            "initdb",
            &["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"],
        )?;
        let file = self.data().join("postgresql.conf");
        let sockets = self.dir.display();
        let settings = format!(
            "{SETTINGS}shared_buffers = {memory_mb}MB\nport = {}\nunix_socket_directories = '{sockets}'\n",
            self.port
        );
        let text = fs::read_to_string(&file).and_then(|text| fs::write(&file, text + &settings));
        text.map_err(|error| format!("PostgreSQL's settings could not be written: {error}"))
    }

    fn start_server(&self) -> Result<(), String> {
        let log = self.log();
        let (log, wait) = (log.to_string_lossy(), START_S.to_string());
        self.run("pg_ctl", &["start", "-w", "-t", &wait, "-l", &log, "-D"])
            .map_err(|error| format!("{error}\n{}", fs::read_to_string(self.log()).unwrap_or_default()))
    }

    fn stop_immediate(&self) -> Result<(), String> {
        self.run("pg_ctl", &["stop", "-m", "immediate", "-w", "-t", &START_S.to_string(), "-D"])
    }

    /// Runs one of PostgreSQL's programs on the cluster. Its output goes to a file: the server would inherit a
    /// pipe and hold it open.
    fn run(&self, program: &str, arguments: &[&str]) -> Result<(), String> {
        let words = command_line(&self.bin, program, arguments, &self.dir);
        let path = self.dir.join("transcript");
        let transcript = fs::File::create(&path).and_then(|file| Ok((file.try_clone()?, file)));
        let (stdout, stderr) = transcript.map_err(|error| format!("{program} has no transcript: {error}"))?;
        let status = Command::new(&words[0])
            .args(&words[1..])
            .current_dir("/")
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .status()
            .map_err(|error| format!("{} did not start: {error}; {PACKAGE}", words[0].display()))?;
        if status.success() {
            return Ok(());
        }
        let said = fs::read_to_string(&path).unwrap_or_default();
        Err(format!("{program} failed ({status}) in {}: {}", self.dir.display(), said.trim()))
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn log(&self) -> PathBuf {
        self.dir.join("server.log")
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        self.warden.get_mut().unwrap_or_else(PoisonError::into_inner).act();
    }
}

/// A call of one of PostgreSQL's programs on the cluster in `dir`, as user `postgres` if we are root.
fn command_line(bin: &Path, program: &str, arguments: &[&str], dir: &Path) -> Vec<OsString> {
    let as_user: &[&str] = if is_root() { &["runuser", "-u", "postgres", "--"] } else { &[] };
    let mut words: Vec<OsString> = as_user.iter().map(OsString::from).collect();
    words.push(bin.join(program).into());
    words.extend(arguments.iter().map(OsString::from));
    words.push(dir.join("data").into());
    words
}

/// The directory of the newest installed version: Debian's places first, then the path.
fn find_binaries() -> Result<PathBuf, String> {
    let has_all = |dir: &Path| ["initdb", "pg_ctl", "psql"].iter().all(|name| dir.join(name).is_file());
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = installed
        .filter_map(|entry| {
            let version: u32 = entry.file_name().to_str()?.parse().ok()?;
            let bin = entry.path().join("bin");
            has_all(&bin).then_some((version, bin))
        })
        .max();
    let on_path = || env::split_paths(&env::var_os("PATH")?).find(|dir| has_all(dir));
    newest.map(|(_, bin)| bin).or_else(on_path).ok_or_else(|| {
        format!("no PostgreSQL in /usr/lib/postgresql or on the PATH: {PACKAGE} or set {SHARED_VARIABLE}")
    })
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

fn said(program: &str, output: &Output) -> Result<String, String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program} failed ({}): {}", output.status, error.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_starts_crashes_recovers_and_leaves_nothing_behind() {
        let postgres = Postgres::start().unwrap();
        let dir = postgres.private().unwrap().dir.clone();
        let name = postgres.fresh_database().unwrap();
        assert_ne!(name, postgres.fresh_database().unwrap());
        postgres.psql_in(&name, "CREATE TABLE t AS SELECT generate_series(1, 3) AS n").unwrap();
        assert_eq!(postgres.psql("SHOW fsync").unwrap(), "on");
        assert_eq!(postgres.psql("SHOW max_connections").unwrap(), "200");
        assert!(postgres.cpu_time().is_some());
        assert_eq!(postgres.terminate_backends(), Ok(0));

        let before = postgres.pid();
        postgres.restart().unwrap();
        assert_ne!(postgres.pid(), before);
        assert_eq!(postgres.psql_in(&name, "SELECT sum(n) FROM t").unwrap(), "6");

        postgres.stop_immediate().unwrap();
        assert!(postgres.psql("SELECT 1").is_err());
        postgres.start_again().unwrap();
        let error = postgres.psql("SELECT nothing").unwrap_err();
        assert!(error.contains("nothing"), "{error}");

        drop(postgres);
        assert!(!dir.exists());
    }

    #[test]
    fn a_server_by_url_keeps_its_options_and_is_not_ours_to_stop() {
        let base = Base::parse("postgresql://u:p@db:5433/main?sslmode=require").unwrap();
        assert_eq!(base.url("other"), "postgres://u:p@db:5433/other?sslmode=require");
        assert_eq!(base.database, "main");
        assert_eq!(Base::parse("postgres://db").unwrap().url("x"), "postgres://db/x");
        assert!(Base::parse("sqlite:x").is_err());
        let postgres = Postgres::at("postgres://db/main").unwrap();
        assert!(postgres.stop_immediate().unwrap_err().contains(SHARED_VARIABLE));
    }
}
