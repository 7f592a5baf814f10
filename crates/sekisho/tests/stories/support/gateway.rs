//! A running Sekisho, as its users have it: the binary, its address, and its command line beside it.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use sekisho_lab::http;
use sekisho_lab::process::{Server, ServerConfig, ServerOptions};
use serde_json::Value;
use tempfile::TempDir;

use super::{Letter, Place, Response, STRIPE_SECRET, stripe_source};

pub const BINARY: &str = env!("CARGO_BIN_EXE_sekisho");

pub struct Gateway {
    pub server: Server,
    /// What must never be printed, in any run of this gateway.
    pub canaries: Vec<String>,
    env: Vec<(String, String)>,
    store: String,
    folder: TempDir,
}

impl Gateway {
    /// With one Stripe source, nothing else said.
    pub fn open(place: &Place) -> Self {
        Self::with(place, &stripe_source(""))
    }

    /// With this configuration; `env:STRIPE_SECRET` is set.
    pub fn with(place: &Place, config: &str) -> Self {
        Self::with_env(place, config, &[])
    }

    pub fn with_env(place: &Place, config: &str, env: &[(&str, &str)]) -> Self {
        Self::try_with(place, config, env).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn try_with(place: &Place, config: &str, env: &[(&str, &str)]) -> Result<Self, String> {
        Self::at(&place.url, config, env)
    }

    /// On a store by its address, for instance through a proxy.
    pub fn at(store: &str, config: &str, env: &[(&str, &str)]) -> Result<Self, String> {
        Self::started(store, config, env, |options| options)
    }

    /// Started in another way than usual: another binary, other arguments.
    pub fn started(
        store: &str,
        config: &str,
        env: &[(&str, &str)],
        change: impl FnOnce(ServerOptions) -> ServerOptions,
    ) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let mut env: Vec<(String, String)> =
            env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        env.push(("STRIPE_SECRET".into(), STRIPE_SECRET.into()));
        env.push(("SEKISHO_LOG_LEVEL".into(), "debug".into()));
        // Where a server on PostgreSQL leaves its note: each gateway has its own.
        env.push(("XDG_RUNTIME_DIR".into(), folder.path().display().to_string()));
        let options = ServerOptions {
            config: ServerConfig::Text(config.into()),
            store: Some(store.into()),
            env: env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            ready_within: super::PATIENCE,
            stop_within: super::PATIENCE,
            ..ServerOptions::new(BINARY, folder.path())
        };
        let server = Server::start(change(options))?;
        let canaries = env.iter().filter(|(_, value)| value.contains("canary")).map(|(_, v)| v.clone());
        Ok(Self { server, canaries: canaries.collect(), env, store: store.into(), folder })
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The provider sends, and hears an answer.
    pub fn send(&self, letter: &Letter) -> Response {
        self.try_send(letter).unwrap_or_else(|error| panic!("{error}:\n{}", self.server.log()))
    }

    pub fn try_send(&self, letter: &Letter) -> std::io::Result<Response> {
        let headers: Vec<_> =
            letter.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        http::request(self.address(), &letter.method, &letter.path, &headers, &letter.body)
    }

    /// The provider sends until it hears a 2xx, as providers do.
    pub fn send_until_acknowledged(&self, letter: &Letter) -> Response {
        let mut last = None;
        super::wait_until("a 2xx", || {
            last = self.try_send(letter).ok().filter(|answer| answer.status < 300);
            last.is_some()
        });
        last.unwrap()
    }

    pub fn get(&self, path: &str) -> Response {
        http::get(self.address(), path).unwrap()
    }

    /// The operator types a command beside the running gateway.
    pub fn type_in(&self, words: &[&str]) -> Said {
        let mut all = words.to_vec();
        all.extend(["--config", "sekisho.toml", "--store", &self.store]);
        let env: Vec<_> = self.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let said = say(self.folder(), &all, &env);
        self.search(&format!("`{}`", words.join(" ")), &said.all());
        said
    }

    /// The operator types a command at a terminal, and is asked something.
    pub fn be_asked(&self, words: &[&str], question: &str) -> Asked {
        let all = [&[BINARY], words, &["--config", "sekisho.toml", "--store", &self.store]].concat();
        let line: Vec<_> = all.iter().map(|word| format!("'{word}'")).collect();
        let env = self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Asked::by(self.folder(), &line.join(" "), env, question)
    }

    /// As `trigger` and `send` need it: with the address.
    pub fn type_in_with_url(&self, words: &[&str]) -> Said {
        let url = format!("http://{}", self.address());
        self.type_in(&[words, &["--url", &url]].concat())
    }

    /// What is stored, as the operator sees it.
    pub fn events(&self) -> Vec<Value> {
        self.type_in(&["events", "list", "--json", "--limit", "0"]).done().lines()
    }

    pub fn event_ids(&self) -> Vec<String> {
        let mut ids: Vec<_> =
            self.events().iter().map(|event| event["event_id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    }

    pub fn rejections(&self) -> Vec<Value> {
        self.type_in(&["rejections", "--json"]).done().lines()
    }

    /// The sum of a metric's lines that hold all these labels.
    pub fn metric(&self, name: &str, labels: &[&str]) -> u64 {
        let text = self.get("/metrics").text();
        let mut found = text
            .lines()
            .filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])))
            .filter(|line| labels.iter().all(|label| line.contains(label)))
            .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64)
            .peekable();
        assert!(found.peek().is_some(), "no line {name} {labels:?} in\n{text}");
        found.sum()
    }

    /// No secret may stand in what was printed.
    pub fn search(&self, what: &str, text: &str) {
        for canary in &self.canaries {
            assert!(!text.contains(canary.as_str()), "{what} shows the secret {canary}:\n{text}");
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.search("the log", &self.server.log());
            assert!(!self.server.log().contains("panicked"), "{}", self.server.log());
        }
    }
}

/// What a command printed and how it ended.
pub struct Said {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    /// Insists on success.
    pub fn done(self) -> Self {
        assert_eq!(self.code, 0, "{}{}", self.stdout, self.stderr);
        self
    }

    /// Insists on failure with this code.
    pub fn failed(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        self
    }

    pub fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Insists that it was said, to either.
    pub fn mentions(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.all().contains(word), "nothing about {word:?} in:\n{}{}", self.stdout, self.stderr);
        }
        self
    }

    /// One JSON value a line.
    pub fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A command that waits for an answer at its own terminal, which mixes what it prints.
pub struct Asked {
    terminal: Child,
    heard: String,
}

impl Asked {
    fn by<'e>(
        folder: &Path,
        line: &str,
        env: impl Iterator<Item = (&'e str, &'e str)>,
        question: &str,
    ) -> Self {
        let mut terminal = Command::new("script")
            .args(["--quiet", "--return", "--command", line, "/dev/null"])
            .envs(env)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut heard, mut byte) = (Vec::new(), [0]);
        while !heard.ends_with(question.as_bytes()) {
            let read = terminal.stdout.as_mut().unwrap().read(&mut byte).unwrap();
            assert_eq!(read, 1, "not asked {question:?}: {}", String::from_utf8_lossy(&heard));
            heard.extend(byte);
        }
        Self { terminal, heard: String::from_utf8_lossy(&heard).into_owned() }
    }

    pub fn answer(mut self, word: &str) -> Said {
        writeln!(self.terminal.stdin.as_mut().unwrap(), "{word}").unwrap();
        let mut rest = String::new();
        self.terminal.stdout.as_mut().unwrap().read_to_string(&mut rest).unwrap();
        let code = self.terminal.wait().unwrap().code().unwrap_or(-1);
        Said { code, stdout: self.heard + &rest, stderr: String::new() }
    }
}

/// Runs the binary in a folder.
pub fn say(folder: &Path, words: &[&str], env: &[(&str, &str)]) -> Said {
    let output: Output = Command::new(BINARY)
        .args(words)
        .envs(env.iter().copied())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
