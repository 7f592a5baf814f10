//! G1, G2: mail by a server that others wrote, read by a library that others wrote. The server is Python's `aiosmtpd`;
//! the first run installs it below the build folder, where it stays.

use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sekisho::effects::mail::{Mailbox, Mailer, Settings, Tls};
use sekisho::env::Env;
use sekisho_core::Secret;
use sekisho_core::language::Language;
use sekisho_core::notification::message::Recipient;
use sekisho_core::notification::{Message, Sent};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{runtime, wait_until};

const LIBRARIES: [&str; 3] = ["aiosmtpd==1.4.6", "atpublic==9.0.0", "attrs==26.1.0"];
const SERVER: &str = include_str!("mail_server/server.py");
const USER: &str = "AKIA1";
const PASSWORD: &str = "canary-mail-password-91ab";
const WITHIN: Duration = Duration::from_secs(30);

#[test]
fn g1_a_real_server_takes_mail_and_a_real_reader_understands_it() {
    let server = MailServer::start();
    let mailer = server.mailer(PASSWORD);
    let message = message("taro@example.jp");
    let sent = runtime().block_on(mailer.send(&message, WITHIN));
    let Sent::Accepted(receipt) = sent else { panic!("{sent:?}") };
    assert_eq!(receipt.reference.as_deref(), Some("REAL1"));
    wait_until("the mail is written down", || server.taken().len() == 1);
    let expected = json!({
        "from": "shop@example.com",
        "to": ["taro@example.jp"],
        "encrypted": true,
        "subject": message.subject,
        "name": "山田 太郎",
        "id": "<ntc_1@example.com>",
        // Lines of a mail end with CRLF.
        "text": message.text.replace('\n', "\r\n"),
        "html": message.html.unwrap().replace('\n', "\r\n"),
        "defects": [],
    });
    assert_eq!(server.taken()[0], expected);
}

#[test]
fn g2_a_real_servers_refusals_are_understood() {
    let server = MailServer::start();
    let mailer = server.mailer(PASSWORD);
    let runtime = runtime();
    let reason = |mailer: &Mailer, message: &Message| match runtime.block_on(mailer.send(message, WITHIN)) {
        Sent::Accepted(_) => "accepted",
        Sent::Failed(failure) | Sent::Uncertain(failure) | Sent::Closed { failure, .. } => failure.reason,
    };
    let long = Message { text: "x ".repeat(60_000), ..message("taro@example.jp") };
    for (mailer, message, expected) in [
        (&mailer, message("nobody@example.jp"), "bad_recipient"),
        (&mailer, message("busy@example.jp"), "deferred"),
        (&mailer, long, "too_big"),
        (&mailer, message("taro@example.jp"), "accepted"),
        (&server.mailer("canary-wrong"), message("taro@example.jp"), "bad_credentials"),
    ] {
        assert_eq!(reason(mailer, &message), expected);
    }
    wait_until("the mail is written down", || server.taken().len() == 1);
}

fn message(to: &str) -> Message {
    Message {
        closes: false,
        id: "ntc_1".into(),
        key: "acct/pi_1".into(),
        to: Some(Recipient { address: to.parse().unwrap(), name: Some("山田 太郎".into()) }),
        language: Language::Ja,
        subject: "【関所】更新期限が近づいています: 山田 太郎 様、事業所「ひまわり」の更新 3 件と面談 2 件"
            .into(),
        text: "山田様\n\n.\n更新期限が近づいています。\nFrom here on: ASCII.\n".into(),
        html: Some("<p>山田様</p>\n<p>更新期限が近づいています。</p>".into()),
        template: "deadlines".into(),
        data: Value::Null,
        trace: None,
    }
}

struct MailServer {
    port: u16,
    folder: TempDir,
    guard: Child,
}

impl MailServer {
    /// A shell holds the server and ends it when its own input closes, also when the test process was killed.
    const GUARD: &str = "\"$@\" < /dev/null & read -r _; kill -9 $!; wait";

    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = sekisho_lab::free_address().unwrap();
        sekisho_lab::certificate::make(folder.path(), &["localhost"]).unwrap();
        let script = folder.path().join("server.py");
        fs::write(&script, SERVER).unwrap();
        let guard = Command::new("sh")
            .args(["-c", Self::GUARD, "mail-server"])
            .args([python(), script])
            .arg(address.port().to_string())
            .arg(folder.path())
            .args([USER, PASSWORD])
            .stdin(Stdio::piped())
            .stdout(File::create(folder.path().join("stdout.log")).unwrap())
            .stderr(File::create(folder.path().join("stderr.log")).unwrap())
            .process_group(0)
            .spawn()
            .unwrap();
        let server = Self { port: address.port(), folder, guard };
        wait_until("the mail server listens", || TcpStream::connect(address).is_ok());
        server
    }

    fn mailer(&self, password: &str) -> Mailer {
        let settings = Settings {
            host: "localhost".into(),
            port: self.port,
            tls: Tls::Starttls,
            login: Some((USER.into(), Secret::new(password))),
            from: Mailbox { name: Some("関所".into()), address: "shop@example.com".parse().unwrap() },
            reply_to: None,
            ca: Some(self.read("certificate.pem")),
        };
        Mailer::new(settings, &Env::system()).unwrap()
    }

    /// Every mail it took.
    fn taken(&self) -> Vec<Value> {
        let printed = self.read("stdout.log");
        let whole = printed.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.folder.path().join(file)).unwrap()
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
        if std::thread::panicking() {
            eprintln!("the mail server said:\n{}", self.read("stdout.log") + &self.read("stderr.log"));
        }
    }
}

/// A Python with the libraries, made once for as long as they stay the same.
fn python() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mail-server-{}", LIBRARIES.join("-")));
    let python = home.join("bin/python");
    // Two stories, perhaps in two processes: one makes it, the other waits.
    let lock = File::create(home.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if !home.join("made").exists() {
        let _ = fs::remove_dir_all(&home);
        run(Command::new("python3").args(["-m", "venv"]).arg(&home));
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(&python).args(pip).args(LIBRARIES));
        File::create(home.join("made")).unwrap();
    }
    python
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
