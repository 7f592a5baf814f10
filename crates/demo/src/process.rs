//! The product as its users run it: the `sekisho` binary as a child process, watched from outside.
//!
//! Starting returns when `GET /health/ready` says 200, or says why it never did. The process can be killed,
//! stopped, paused and started again on the same address with the same data; what it printed stays readable.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::warden::Warden;
use crate::{free_address, http, measure};

const READY_PATH: &str = "/health/ready";
const POLL: Duration = Duration::from_millis(5);

/// How the binary is started: `sekisho serve --listen … [--config …] [--store …] [--role …] [arguments]`.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub binary: PathBuf,
    /// Working directory; also holds the configuration and what the process prints.
    pub dir: PathBuf,
    /// `serve`, or another command of the binary.
    pub command: Vec<String>,
    pub config: ServerConfig,
    pub store: Option<String>,
    pub role: Option<String>,
    pub arguments: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    /// A free loopback port unless given.
    pub listen: Option<SocketAddr>,
    /// How long it may take to become ready.
    pub ready_within: Duration,
    /// How long it may take to stop after SIGTERM.
    pub stop_within: Duration,
}

#[derive(Clone, Debug, Default)]
pub enum ServerConfig {
    #[default]
    None,
    /// Written to `sekisho.toml` in the directory.
    Text(String),
    Path(PathBuf),
}

impl ServerOptions {
    pub fn new(binary: impl Into<PathBuf>, dir: impl Into<PathBuf>) -> Self {
        Self {
            binary: binary.into(),
            dir: dir.into(),
            command: vec!["serve".into()],
            config: ServerConfig::None,
            store: None,
            role: None,
            arguments: Vec::new(),
            env: Vec::new(),
            listen: None,
            ready_within: Duration::from_secs(30),
            stop_within: Duration::from_secs(30),
        }
    }
}

#[derive(Debug)]
pub struct Server {
    options: ServerOptions,
    address: SocketAddr,
    running: Option<Running>,
    /// From the last start until it was ready.
    started_in: Duration,
}

#[derive(Debug)]
struct Running {
    child: Child,
    since: Instant,
    warden: Warden,
}

impl Server {
    /// Starts the binary and waits until it is ready. The error holds what it printed.
    pub fn start(options: ServerOptions) -> Result<Self, String> {
        let address = match options.listen {
            Some(address) => address,
            None => free_address().map_err(|error| format!("no free port: {error}"))?,
        };
        fs::create_dir_all(&options.dir)
            .map_err(|error| format!("{} can't be made: {error}", options.dir.display()))?;
        if let ServerConfig::Text(text) = &options.config {
            fs::write(options.dir.join("sekisho.toml"), text)
                .map_err(|error| format!("the configuration can't be written: {error}"))?;
        }
        let mut server = Self { options, address, running: None, started_in: Duration::ZERO };
        server.start_again()?;
        Ok(server)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `None` when it isn't running.
    pub fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(|running| running.child.id())
    }

    pub fn dir(&self) -> &Path {
        &self.options.dir
    }

    pub fn started_in(&self) -> Duration {
        self.started_in
    }

    /// Starts a stopped or dead server on the same address and waits until it is ready.
    pub fn start_again(&mut self) -> Result<(), String> {
        self.start_without_waiting()?;
        self.wait_until_ready()
    }

    /// Starts it and returns at once.
    pub fn start_without_waiting(&mut self) -> Result<(), String> {
        self.kill9();
        let since = Instant::now();
        let child = self.command()?.spawn().map_err(|error| {
            format!("{} did not start: {error}; build it first", self.options.binary.display())
        })?;
        let warden = Warden::over(child.id())?;
        self.running = Some(Running { child, since, warden });
        Ok(())
    }

    /// Returns when `GET /health/ready` says 200; errs when it ends before or takes too long.
    pub fn wait_until_ready(&mut self) -> Result<(), String> {
        let started = self.running.as_ref().ok_or("sekisho is not running")?.since;
        let asked = Instant::now();
        let mut last = "no answer".to_owned();
        while asked.elapsed() < self.options.ready_within {
            match http::get(self.address, READY_PATH) {
                Ok(response) if response.status == 200 => {
                    self.started_in = started.elapsed();
                    return Ok(());
                }
                Ok(response) => last = format!("{} {}", response.status, response.text()),
                Err(_) => {}
            }
            if let Some(status) = self.exited() {
                return Err(format!("sekisho ended before it was ready ({status}):\n{}", self.log()));
            }
            sleep(POLL);
        }
        let limit = self.options.ready_within;
        Err(format!("sekisho was not ready within {limit:?} (last: {last}):\n{}", self.log()))
    }

    /// SIGKILL: no time to finish anything. Returns when the process is gone.
    pub fn kill9(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill();
        }
    }

    /// SIGTERM, and the exit status; killed if it takes too long, which is an error.
    pub fn terminate(&mut self) -> Result<ExitStatus, String> {
        let mut running = self.running.take().ok_or("sekisho is not running")?;
        signal(running.child.id(), Signal::TERM).map_err(|error| format!("SIGTERM failed: {error}"))?;
        let started = Instant::now();
        while started.elapsed() < self.options.stop_within {
            // Looked at without waiting for it, so that the warden goes first.
            if has_ended(running.child.id()) {
                running.warden.dismiss();
                return running.child.wait().map_err(|error| format!("waiting for sekisho: {error}"));
            }
            sleep(POLL);
        }
        running.kill();
        let limit = self.options.stop_within;
        Err(format!("sekisho did not stop within {limit:?} after SIGTERM:\n{}", self.log()))
    }

    /// SIGKILL and a new start.
    pub fn restart(&mut self) -> Result<(), String> {
        self.kill9();
        self.start_again()
    }

    /// SIGSTOP: the process stands still as on an overloaded or suspended machine, until [`Server::resume`].
    pub fn pause(&self) -> io::Result<()> {
        signal(self.pid().ok_or(io::ErrorKind::NotFound)?, Signal::STOP)
    }

    pub fn resume(&self) -> io::Result<()> {
        signal(self.pid().ok_or(io::ErrorKind::NotFound)?, Signal::CONT)
    }

    /// How it ended, if it ended by itself.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        if !has_ended(self.pid()?) {
            return None;
        }
        let mut running = self.running.take()?;
        running.warden.dismiss();
        running.child.wait().ok()
    }

    pub fn cpu_time(&self) -> Option<Duration> {
        measure::cpu_time(self.pid()?)
    }

    pub fn pss_kb(&self) -> Option<u64> {
        measure::pss_kb(self.pid()?)
    }

    pub fn rss_kb(&self) -> Option<u64> {
        measure::rss_kb(self.pid()?)
    }

    pub fn open_fds(&self) -> Option<usize> {
        measure::open_fds(self.pid()?)
    }

    /// Everything it printed since the first start.
    pub fn stdout(&self) -> String {
        fs::read_to_string(self.options.dir.join("stdout.log")).unwrap_or_default()
    }

    pub fn stderr(&self) -> String {
        fs::read_to_string(self.options.dir.join("stderr.log")).unwrap_or_default()
    }

    pub fn log(&self) -> String {
        self.stdout() + &self.stderr()
    }

    fn command(&self) -> Result<Command, String> {
        let options = &self.options;
        let mut command = Command::new(&options.binary);
        command.args(&options.command).arg("--listen").arg(self.address.to_string());
        match &options.config {
            ServerConfig::None => {}
            ServerConfig::Text(_) => drop(command.arg("--config").arg("sekisho.toml")),
            ServerConfig::Path(path) => drop(command.arg("--config").arg(path)),
        }
        if let Some(store) = &options.store {
            command.arg("--store").arg(store);
        }
        if let Some(role) = &options.role {
            command.arg("--role").arg(role);
        }
        let open = |name: &str| {
            let file = OpenOptions::new().create(true).append(true).open(options.dir.join(name));
            file.map_err(|error| format!("{name} can't be written: {error}"))
        };
        command
            .args(&options.arguments)
            .envs(options.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&options.dir)
            .stdin(Stdio::null())
            .stdout(open("stdout.log")?)
            .stderr(open("stderr.log")?);
        Ok(command)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill9();
    }
}

impl Running {
    fn kill(mut self) {
        self.warden.dismiss();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a child of ours that was not waited for yet, so the number is still its own.
fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = Pid::from_raw(pid.cast_signed()).ok_or(io::ErrorKind::NotFound)?;
    Ok(kill_process(pid, signal)?)
}

/// True for a child that exited and was not waited for.
fn has_ended(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Stands in for the binary: a script that runs this test executable as the server below.
    fn stand_in(dir: &Path) -> ServerOptions {
        let script = format!(
            "#!/bin/sh\necho started \"$@\"\necho trouble >&2\nLISTEN=$3 exec {} --exact process::tests::server\n",
            std::env::current_exe().unwrap().display()
        );
        let path = dir.join("stand-in");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        ServerOptions::new(path, dir.join("run"))
    }

    /// The server that the tests of this module start; in an ordinary run there is nothing for it to do.
    #[test]
    fn server() {
        let Ok(address) = std::env::var("LISTEN") else { return };
        let listener = TcpListener::bind(address).unwrap();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        }
    }

    #[test]
    fn a_server_lives_through_kill_pause_and_restart_and_is_measured() {
        let dir = tempfile::tempdir().unwrap();
        let options = ServerOptions {
            config: ServerConfig::Text("x = 1".into()),
            store: Some("sqlite:data".into()),
            ..stand_in(dir.path())
        };
        let mut server = Server::start(options).unwrap();
        let address = server.address();
        assert!(server.pss_kb().unwrap() > 0 && server.rss_kb().unwrap() > 0);
        assert!(server.cpu_time().is_some() && server.open_fds().unwrap() >= 3);
        server.pause().unwrap();
        server.resume().unwrap();
        assert_eq!(http::get(address, "/").unwrap().status, 200);

        let first = server.pid();
        server.restart().unwrap();
        assert_ne!(server.pid(), first);
        assert!(server.started_in() > Duration::ZERO);

        assert!(!server.terminate().unwrap().success(), "the stand-in dies by the signal");
        assert!(server.pid().is_none() && http::get(address, "/").is_err());
        server.start_again().unwrap();
        server.kill9();
        let expected =
            format!("started serve --listen {address} --config sekisho.toml --store sqlite:data\n");
        assert_eq!(server.stdout().matches(&expected).count(), 3, "{}", server.log());
        assert!(server.stderr().contains("trouble"));
        assert_eq!(fs::read_to_string(server.dir().join("sekisho.toml")).unwrap(), "x = 1");
    }

    #[test]
    fn a_server_that_never_gets_ready_is_an_error_with_its_last_words() {
        let dir = tempfile::tempdir().unwrap();
        let missing = ServerOptions::new("/nonexistent/sekisho", dir.path());
        assert!(Server::start(missing).unwrap_err().contains("build it first"));
        let options = stand_in(dir.path());
        fs::write(&options.binary, "#!/bin/sh\necho no such store >&2; exit 3\n").unwrap();
        let error = Server::start(options).unwrap_err();
        assert!(error.contains("no such store") && error.contains("exit status: 3"), "{error}");
    }
}
