//! A wall clock that lies: a library loaded before the binary's own adds to every reading of the time of day what
//! a small file says. The monotonic clock stays true, as it does when somebody sets a machine's clock.
//!
//! Built from a page of C when needed; without a C compiler there are no lies, and that is said.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// What the shim adds, then where it stands still (0: it runs); both in nanoseconds, in the file it maps.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long none[2];
static volatile long long *lie = none;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SEKISHO_LAB_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *map = mmap(0, 16, PROT_READ, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) lie = map;
    close(fd);
}

static long long told(void) {
    struct timespec ts;
    if (lie[1]) return lie[1];
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts);
    return ts.tv_sec * 1000000000LL + ts.tv_nsec + lie[0];
}

int clock_gettime(clockid_t id, struct timespec *ts) {
    if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE) return syscall(SYS_clock_gettime, id, ts);
    long long now = told();
    ts->tv_sec = now / 1000000000LL;
    ts->tv_nsec = now % 1000000000LL;
    return 0;
}

int gettimeofday(struct timeval *tv, void *zone) {
    long long now = told();
    (void)zone;
    tv->tv_sec = now / 1000000000LL;
    tv->tv_usec = now % 1000000000LL / 1000;
    return 0;
}

time_t time(time_t *seconds) {
    time_t now = told() / 1000000000LL;
    if (seconds) *seconds = now;
    return now;
}
"#;

/// The built library.
#[derive(Debug)]
pub struct Shim(PathBuf);

/// One process's clock.
#[derive(Debug)]
pub struct TortureClock {
    path: PathBuf,
    file: File,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    None,
    Ahead { seconds: i64 },
    Frozen,
}

impl Shim {
    /// The error says what is missing.
    pub fn build(dir: &Path) -> Result<Self, String> {
        let (source, library) = (dir.join("clock.c"), dir.join("clock.so"));
        fs::write(&source, SHIM).map_err(|error| format!("the clock shim can't be written: {error}"))?;
        let built = Command::new("cc")
            .args(["-O1", "-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("no C compiler (cc): {error}; install the Debian package `gcc`"))?;
        if built.status.success() {
            return Ok(Self(library));
        }
        Err(format!("cc could not build the clock shim: {}", String::from_utf8_lossy(&built.stderr).trim()))
    }

    /// A true clock that can be made to lie, and the variables a process needs to follow it.
    pub fn clock(&self, dir: &Path) -> Result<(TortureClock, Vec<(OsString, OsString)>), String> {
        let path = dir.join("clock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| format!("{} can't be written: {error}", path.display()))?;
        let clock = TortureClock { path, file };
        clock.tell(Lie::None)?;
        let env = vec![
            ("LD_PRELOAD".into(), self.0.clone().into_os_string()),
            ("SEKISHO_LAB_CLOCK".into(), clock.path.clone().into_os_string()),
        ];
        Ok((clock, env))
    }
}

impl TortureClock {
    /// From now on.
    pub fn tell(&self, lie: Lie) -> Result<(), String> {
        let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |age| age.as_nanos() as i64);
        let (ahead, frozen) = match lie {
            Lie::None => (0, 0),
            Lie::Ahead { seconds } => (seconds * 1_000_000_000, 0),
            Lie::Frozen => (0, now),
        };
        let bytes = [ahead.to_ne_bytes(), i64::to_ne_bytes(frozen)].concat();
        let written = self.file.write_all_at(&bytes, 0);
        written.map_err(|error| format!("{} can't be written: {error}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r10_a_process_believes_what_it_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let (clock, env) = match Shim::build(dir.path()) {
            Ok(shim) => shim.clock(dir.path()).unwrap(),
            Err(error) => return eprintln!("skipped: {error}"),
        };
        let date = || {
            let output = Command::new("date").arg("+%s").envs(env.iter().cloned()).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().parse::<i64>().unwrap()
        };
        let now = || SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64;
        assert!((date() - now()).abs() <= 2);
        clock.tell(Lie::Ahead { seconds: -86_400 }).unwrap();
        assert!((date() - now() + 86_400).abs() <= 2);
        clock.tell(Lie::Frozen).unwrap();
        let frozen = date();
        std::thread::sleep(std::time::Duration::from_millis(1_100));
        assert_eq!(date(), frozen);
        clock.tell(Lie::None).unwrap();
        assert!((date() - now()).abs() <= 2);
    }
}
