//! A command that runs until it is stopped, and the lines it prints.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use super::{BINARY, Gateway, STRIPE_SECRET};

pub struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Watching {
    pub fn start(gateway: &Gateway, words: &[&str], store: &str) -> Self {
        let mut child = Command::new(BINARY)
            .args(words)
            .args(["--config", "sekisho.toml", "--store", store])
            .env("STRIPE_SECRET", STRIPE_SECRET)
            .current_dir(gateway.folder())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (sender, lines) = std::sync::mpsc::channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// The next line, if one comes in time.
    pub fn seen(&self, wait: Duration) -> Option<String> {
        self.lines.recv_timeout(wait).ok()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
