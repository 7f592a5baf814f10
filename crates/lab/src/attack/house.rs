//! The house under attack: the real binary with all its doors, and those who live in it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sekisho_core::provider::ALL;
use serde_json::Value;
use tempfile::TempDir;

use super::letter::{self, Letter, public_url, secret};
use super::{Attack, AttackPlan};
use crate::app::{Behaviour, DemoApp};
use crate::certificate::CertificateSigner;
use crate::http::{self, Response};
use crate::postgres::{self, Postgres};
use crate::process::{Server, ServerConfig, ServerOptions};
use crate::smtp::{self, Smtp};
use crate::sqlite;
use crate::torture::StoreKind;

/// How long anything may take that must happen in the end.
const PATIENCE: Duration = Duration::from_mins(1);
/// How long a connection is listened to that may never be answered.
const SILENCE: Duration = Duration::from_millis(1500);

/// By which the app knows that Stripe speaks.
pub const APP_SECRET: &str = "whsec_of_the_app_1d4f";
pub const PASSWORD: &str = "correct horse battery";

pub struct AttackedHouse {
    pub server: Server,
    pub app: DemoApp,
    pub smtp: Smtp,
    /// Of PayPal and SNS.
    pub signer: CertificateSigner,
    pub keys: HouseKeys,
    binary: PathBuf,
    store: Store,
    folder: TempDir,
}

enum Store {
    Sqlite(PathBuf),
    Postgres { server: &'static Postgres, database: String },
}

/// One key of each scope, and those of two tenants.
pub struct HouseKeys {
    pub read: String,
    pub write: String,
    pub operate: String,
    /// `None` where there is no such scope.
    pub admin: Option<String>,
    /// Scope operate, tenant `a`; likewise `b`.
    pub tenant_a: String,
    pub tenant_b: String,
}

const CONFIGURED: [&str; 3] = ["read", "write", "operate"];

/// Long and without a pattern: weaker ones may be refused where many wrong ones came from.
fn configured(scope: &str) -> String {
    (0..4).map(|n| letter::word(&format!("{n} {scope}"))).collect()
}

impl AttackedHouse {
    pub fn open(plan: &AttackPlan) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("no folder: {error}"))?;
        let text = |error: std::io::Error| error.to_string();
        let app = DemoApp::start(Behaviour::Ok).map_err(text)?;
        let smtp = Smtp::start(smtp::SmtpBehaviour::Accept).map_err(text)?;
        let signer = CertificateSigner::new().map_err(text)?;
        let pem = folder.path().join("provider.pem");
        std::fs::write(&pem, signer.certificate().map_err(text)?).map_err(text)?;
        let store = match plan.store {
            StoreKind::Sqlite => Store::Sqlite(folder.path().join("sekisho.db")),
            StoreKind::Postgres => {
                let server = postgres::shared()?;
                Store::Postgres { server, database: server.fresh_database()? }
            }
        };
        let server = Server::start(ServerOptions {
            config: ServerConfig::Text(config(&app, &smtp, &pem)),
            store: Some(store.url()),
            ready_within: PATIENCE,
            ..ServerOptions::new(&plan.binary, folder.path())
        })?;
        let keys = HouseKeys {
            read: configured("read"),
            write: configured("write"),
            operate: configured("operate"),
            admin: None,
            tenant_a: String::new(),
            tenant_b: String::new(),
        };
        let mut house = Self { server, app, smtp, signer, keys, binary: plan.binary.clone(), store, folder };
        house.keys.admin = house.make_key(&["--scopes", "admin", "--name", "admins"]).ok();
        for tenant in ["a", "b"] {
            house.run(&["tenants", "create", tenant], &[]).done()?;
        }
        house.keys.tenant_a = house.make_key(&["--scopes", "operate", "--tenant", "a"])?;
        house.keys.tenant_b = house.make_key(&["--scopes", "operate", "--tenant", "b"])?;
        Ok(house)
    }

    pub fn make_key(&self, how: &[&str]) -> Result<String, String> {
        Ok(self.run(&[&["keys", "create"], how].concat(), &[]).done()?.trim().to_owned())
    }

    pub fn send(&self, letter: &Letter) -> std::io::Result<Response> {
        let headers: Vec<_> = letter.headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        http::request(self.server.address(), &letter.method, &letter.path, &headers, &letter.body)
    }

    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> std::io::Result<Response> {
        http::request(self.server.address(), "GET", path, headers, b"")
    }

    /// With a key, if there is one.
    pub fn ask(
        &self,
        key: Option<&str>,
        method: &str,
        path: &str,
        order: &Value,
    ) -> std::io::Result<Response> {
        let bearer = key.map(|key| format!("Bearer {key}"));
        let headers: Vec<_> = bearer.iter().map(|bearer| ("authorization", &**bearer)).collect();
        let body = if order.is_null() { String::new() } else { order.to_string() };
        http::request(self.server.address(), method, path, &headers, body.as_bytes())
    }

    /// What is at a path, for somebody with all rights to look.
    pub fn see(&self, path: &str) -> Result<Value, String> {
        let answer = self.ask(Some(&self.keys.operate), "GET", path, &Value::Null);
        let answer = answer.map_err(|error| format!("{path}: {error}"))?;
        serde_json::from_slice(&answer.body).map_err(|error| format!("{path}: {error}: {}", answer.text()))
    }

    /// Bytes as they are, each on a connection of its own and all at once, and what was said to each until the server closed
    /// or fell silent.
    pub fn speak_all(&self, requests: Vec<(String, Vec<u8>)>) -> Vec<(String, String)> {
        let address = self.server.address();
        let speak = |(name, bytes): (String, Vec<u8>)| {
            std::thread::spawn(move || (name, speak(address, &bytes).unwrap_or_default()))
        };
        let spoken: Vec<_> = requests.into_iter().map(speak).collect();
        spoken.into_iter().filter_map(|one| one.join().ok()).collect()
    }

    /// A command beside the running server.
    pub fn run(&self, words: &[&str], env: &[(&str, &str)]) -> CommandOutput {
        let done = Command::new(&self.binary)
            .args(words)
            .args(["--config", "sekisho.toml", "--store", &self.store.url()])
            .envs(env.iter().copied())
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output();
        match done {
            Err(error) => CommandOutput { good: false, stdout: String::new(), stderr: error.to_string() },
            Ok(done) => CommandOutput {
                good: done.status.success(),
                stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
                stderr: String::from_utf8_lossy(&done.stderr).into_owned(),
            },
        }
    }

    /// Asks the database itself, past the product.
    pub fn sql(&self, query: &str) -> Result<String, String> {
        match &self.store {
            Store::Sqlite(file) => sqlite::query(file, query),
            Store::Postgres { server, database } => server.psql_in(database, query),
        }
    }

    /// Returns when everything that came has been settled, delivered and told. What waits on purpose, for an address that is
    /// on its way, is not waited for.
    pub fn rest(&self) -> Result<(), String> {
        self.wait("the queue is empty", || {
            let waiting = "SELECT count(*) FROM job WHERE lane <> 'timer' \
                           AND NOT (lane = 'notify' AND owner IS NULL AND attempt > 0)";
            Ok(self.sql(waiting)? == "0")
        })
    }

    pub fn wait(&self, what: &str, mut is_so: impl FnMut() -> Result<bool, String>) -> Result<(), String> {
        let started = Instant::now();
        while !is_so()? {
            if started.elapsed() > PATIENCE {
                let jobs = self.sql("SELECT kind, lane, count(*) FROM job GROUP BY 1, 2").unwrap_or_default();
                return Err(format!("waited {PATIENCE:?} in vain: {what}; {jobs}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

fn speak(address: SocketAddr, bytes: &[u8]) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(SILENCE))?;
    // A server may refuse before it has read everything.
    let _ = stream.write_all(bytes);
    let (mut heard, mut piece) = (Vec::new(), [0; 4096]);
    while let Ok(n @ 1..) = stream.read(&mut piece) {
        heard.extend_from_slice(&piece[..n]);
    }
    Ok(String::from_utf8_lossy(&heard).into_owned())
}

impl Store {
    fn url(&self) -> String {
        match self {
            Self::Sqlite(file) => format!("sqlite:{}", file.display()),
            Self::Postgres { server, database } => server.url(database),
        }
    }
}

/// What a command printed.
pub struct CommandOutput {
    pub good: bool,
    pub stdout: String,
    pub stderr: String,
}

impl CommandOutput {
    pub fn done(self) -> Result<String, String> {
        if self.good { Ok(self.stdout) } else { Err(format!("{}{}", self.stdout, self.stderr)) }
    }

    pub fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Everything that can be attacked: every provider, a route for all of Stripe's, one for what is called like an
/// announcement, one for a hint that is named; mails to customers and operators; a proxy that says who somebody is.
fn config(app: &DemoApp, smtp: &Smtp, pem: &std::path::Path) -> String {
    let mut text = String::from(
        "[server]\ntrusted_proxies = 1\nheader_timeout = \"2s\"\nbody_timeout = \"2s\"\n[console]\nuser_header = \"Remote-User\"\nrank_header = \"Remote-Rank\"\n\
         [notifications]\noperators = [\"ops@example.jp\"]\n",
    );
    for about in ALL.iter().map(|provider| provider.about()) {
        text += &format!("[[source]]\nname = \"{0}\"\nprovider = \"{0}\"\n", about.name);
        if !about.secret.is_empty() {
            text += &format!("secrets = [\"{}\"]\n", secret(about, 0));
        }
        if about.signs_url {
            text += &format!("public_url = \"{}\"\n", public_url(about));
        }
        if about.has_certificate {
            text += &format!("certificate = \"file:{}\"\n", pem.display());
        }
        for setting in about.settings.iter().filter(|setting| setting.required) {
            text += &format!("{} = \"{}\"\n", setting.name, setting.example);
        }
    }
    let url = app.url();
    for (path, more) in [
        ("stripe", format!("signing = \"stripe\"\nsecrets = [\"{APP_SECRET}\"]")),
        ("paid", "signing = \"none\"\nevents = [\"payment.paid\"]".to_owned()),
        ("github", "signing = \"none\"\nsources = [\"github\"]".to_owned()),
        ("named", "signing = \"none\"\nsources = [\"mollie_classic\", \"line_pay\"]".to_owned()),
    ] {
        text +=
            &format!("[[route]]\nname = \"{path}\"\nurl = \"{url}/{path}\"\nallow_private = true\n{more}\n");
    }
    let (host, port) = (smtp.address().ip(), smtp.address().port());
    text += &format!(
        "[[channel]]\nname = \"mail\"\nkind = \"smtp\"\nhost = \"{host}\"\nport = {port}\ntls = \"none\"\nauth = \"none\"\n\
         from = \"Shop <no-reply@example.jp>\"\nspacing = \"1ms\"\nrate = 1000\n\
         [[notify]]\nname = \"receipt\"\nevents = [\"payment.paid\"]\nto = \"customer\"\nchannel = \"mail\"\n\
         template = \"payment-received\"\n\
         [[notify]]\nname = \"alarm\"\nevents = [\"payment.*\"]\nto = \"operators\"\nchannel = \"mail\"\n\
         template = \"operator-alert\"\n"
    );
    for scope in CONFIGURED {
        text += &format!(
            "[[key]]\nname = \"{scope}\"\nsecret = \"{}\"\nscopes = [\"{scope}\"]\n",
            configured(scope)
        );
    }
    text
}

/// What is left when all is over: nothing in the log, and everything in order.
pub fn aftermath(attack: &mut Attack<'_>) -> Result<(), String> {
    let house = attack.house;
    house.rest()?;
    let log = house.server.log();
    let panics = log.lines().filter(|line| line.contains("panicked"));
    attack.book.damage.extend(panics.map(str::to_owned));
    for about in ALL.iter().map(|provider| provider.about()).filter(|about| !about.secret.is_empty()) {
        if log.contains(&letter::secret(about, 0)) {
            attack.book.damage.push(format!("the log shows the secret of {}", about.name));
        }
    }
    for words in [["books", "check"], ["audit", "verify"]] {
        let said = house.run(&words, &[]);
        if !said.good {
            attack.book.damage.push(format!("{}: {}", words.join(" "), said.all()));
        }
    }
    if house.get("/health/ready", &[]).map_or(0, |answer| answer.status) != 200 {
        attack.book.damage.push("the server is not ready any more".into());
    }
    Ok(())
}
