//! Who cleans up when the test process is gone: a shell at the end of a pipe.
//!
//! `Drop` doesn't run for statics, after SIGKILL or on abort. A warden waits for the pipe to close, which the
//! kernel does in every case, and then runs one command. It sits in its own process group, so that a Ctrl-C
//! meant for the tests doesn't take it along.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

#[derive(Debug)]
pub struct Warden(Child);

impl Warden {
    /// Runs `script` with `arguments` as `$1`, `$2`, … once this process ends or [`Warden::act`] is called.
    pub fn new(script: &str, arguments: &[&OsStr]) -> Result<Self, String> {
        Command::new("sh")
            .arg("-c")
            .arg(format!("read -r _; {script}"))
            .arg("sekisho-lab-warden")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map(Self)
            .map_err(|error| format!("no warden could be started (sh): {error}"))
    }

    /// Kills a child of ours should we die before it. Order matters: [`Warden::dismiss`] before the child is
    /// waited for, since its number may be given to a stranger afterwards.
    pub fn over(pid: u32) -> Result<Self, String> {
        Self::new("kill -9 \"$1\"", &[OsStr::new(&pid.to_string())])
    }

    /// Lets it do its work now and waits until that is done.
    pub fn act(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }

    /// Sends it away without its work.
    pub fn dismiss(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warden_acts_when_the_pipe_closes_and_not_when_dismissed() {
        let dir = tempfile::tempdir().unwrap();
        let (acted, dismissed) = (dir.path().join("acted"), dir.path().join("dismissed"));
        let mut warden = Warden::new("touch \"$1\"", &[acted.as_os_str()]).unwrap();
        assert!(!acted.exists());
        warden.act();
        assert!(acted.exists());
        let mut warden = Warden::new("touch \"$1\"", &[dismissed.as_os_str()]).unwrap();
        warden.dismiss();
        assert!(!dismissed.exists());
    }
}
