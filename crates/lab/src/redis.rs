//! A private Redis server for tests: on a free loopback port, nothing on disk, gone afterwards.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::warden::Warden;
use crate::{free_address, measure};

const START: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub struct Redis {
    address: SocketAddr,
    running: Option<(Child, Warden)>,
}

impl Redis {
    pub fn start() -> Result<Self, String> {
        let address = free_address().map_err(|error| format!("no free port for Redis: {error}"))?;
        let mut redis = Self { address, running: None };
        redis.start_again()?;
        Ok(redis)
    }

    pub fn url(&self) -> String {
        format!("redis://{}/", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts a stopped server on the same port, empty, and waits until it answers.
    pub fn start_again(&mut self) -> Result<(), String> {
        self.stop();
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &self.address.port().to_string()])
            .args(["--save", "", "--appendonly", "no", "--dir", "/tmp", "--daemonize", "no"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| {
                format!("redis-server did not start: {error}; install the Debian package `redis-server`")
            })?;
        let warden = Warden::over(child.id())?;
        self.running = Some((child, warden));
        let started = Instant::now();
        while started.elapsed() < START {
            if self.call("PING").is_ok_and(|answer| answer.starts_with("+PONG")) {
                return Ok(());
            }
            sleep(POLL);
        }
        Err(format!("redis-server did not answer on {} within {START:?}", self.address))
    }

    /// SIGKILL: everything it knew is gone.
    pub fn stop(&mut self) {
        if let Some((mut child, mut warden)) = self.running.take() {
            warden.dismiss();
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub fn restart(&mut self) -> Result<(), String> {
        self.stop();
        self.start_again()
    }

    pub fn flush(&self) -> Result<(), String> {
        match self.call("FLUSHALL") {
            Ok(answer) if answer.starts_with("+OK") => Ok(()),
            other => Err(format!("FLUSHALL on {} was answered {other:?}", self.address)),
        }
    }

    pub fn cpu_time(&self) -> Option<Duration> {
        measure::cpu_time(self.running.as_ref()?.0.id())
    }

    /// One inline command; the answer as far as it came in one piece, which is enough for short ones.
    pub fn call(&self, command: &str) -> Result<String, String> {
        let answer = || {
            let mut stream = TcpStream::connect_timeout(&self.address, START)?;
            stream.set_read_timeout(Some(START))?;
            stream.write_all(format!("{command}\r\n").as_bytes())?;
            let mut bytes = [0; 4096];
            let n = stream.read(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes[..n]).into_owned())
        };
        answer().map_err(|error: std::io::Error| format!("Redis on {}: {error}", self.address))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_forgets_when_flushed_and_when_killed() {
        let mut redis = Redis::start().unwrap();
        assert!(redis.url().starts_with("redis://127.0.0.1:"));
        assert_eq!(redis.call("SET a 1").unwrap(), "+OK\r\n");
        redis.flush().unwrap();
        assert_eq!(redis.call("GET a").unwrap(), "$-1\r\n");
        redis.call("SET a 1").unwrap();
        redis.restart().unwrap();
        assert_eq!(redis.call("GET a").unwrap(), "$-1\r\n");
        redis.stop();
        assert!(redis.call("PING").is_err());
    }
}
