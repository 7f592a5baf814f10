//! R5, R6: a disk that is full or refuses to sync. No 2xx without a row; it recovers, or leaves cleanly.

use std::path::{Path, PathBuf};
use std::process::Command;

use sekisho_lab::process::ServerOptions;

use crate::support::{BINARY, Gateway, Provider, Storm, say, stripe_source, wait_until};

/// A small disk in memory, gone when dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(bytes: u64) -> Self {
        let folder = tempfile::Builder::new().prefix("sekisho-disk-").tempdir().unwrap().keep();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes},mode=0700"), "tmpfs"])
            .arg(&folder)
            .output()
            .unwrap_or_else(|error| {
                panic!("mount did not start: {error}; install the Debian package `mount`")
            });
        assert!(
            mounted.status.success(),
            "a small disk can't be mounted, run this story as root: {}",
            String::from_utf8_lossy(&mounted.stderr)
        );
        Self(folder)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: whoever still has a file open keeps it until they close it.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn r5_a_full_disk_is_answered_503_and_recovers_by_itself() {
    let disk = SmallDisk::mount(64 << 20);
    let filler = disk.path().join("filler");
    std::fs::write(&filler, vec![0; 52 << 20]).unwrap();
    let file = disk.path().join("sekisho.db");
    let gateway = Gateway::at(&format!("sqlite:{}", file.display()), &stripe_source(""), &[]).unwrap();

    let storm = Storm::start(gateway.address(), 8);
    wait_until("the disk to be full", || {
        gateway.metric("sekisho_requests_total", &["unavailable"])
            + gateway.metric("sekisho_requests_total", &["overloaded"])
            > 20
    });
    // Between two that don't fit, a small commit may find room: red and green take turns.
    wait_until("readiness red", || {
        let ready = gateway.get("/health/ready");
        ready.status == 503 && ready.text().contains("store_unavailable")
    });
    let mut tried = Vec::new();
    wait_until("an event without room", || {
        tried.push(format!("evt_no_room_{}", tried.len()));
        let answer = gateway.send(&Provider::stripe().event(&tried[tried.len() - 1]));
        assert!(matches!(answer.status, 204 | 503), "{}", answer.text());
        answer.status == 503 && answer.header("retry-after").is_some()
    });
    let stored = gateway.event_ids().len();
    let report = storm.stop();
    assert!(report.statuses.keys().all(|status| matches!(status, 204 | 503)), "{report}");
    assert!(gateway.server.stderr().contains("disk is full"), "the log says so");
    assert!(stored > 0);

    // The operator makes room, and nobody restarts anything.
    std::fs::remove_file(&filler).unwrap();
    wait_until("readiness green", || gateway.get("/health/ready").status == 200);
    assert_eq!(gateway.send_until_acknowledged(&Provider::stripe().event("evt_room")).status, 204);
    let mut ledger = report;
    ledger.ledger.unknown.extend(tried.into_iter().chain(["evt_room".to_owned()]));
    gateway.check_ledger(&ledger);
    drop(gateway);
    let connection = rusqlite::Connection::open(&file).unwrap();
    let verdict: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
}

/// Runs under strace, which makes every sync from the `n`-th on fail.
fn with_failing_syncs(store: &str, n: u32) -> Gateway {
    assert!(
        Command::new("strace").arg("--version").output().is_ok(),
        "strace is missing: install the Debian package `strace`"
    );
    let strace = |options: ServerOptions| {
        let inject = |call: &str| format!("inject={call}:error=EIO:when={n}+");
        let mut command: Vec<String> = ["-f", "-qqq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"]
            .into_iter()
            .map(str::to_owned)
            .collect();
        for call in ["fsync", "fdatasync"] {
            command.extend(["-e".to_owned(), inject(call)]);
        }
        command.extend([BINARY.to_owned(), "serve".to_owned()]);
        ServerOptions { binary: "strace".into(), command, ..options }
    };
    Gateway::started(store, &stripe_source(""), &[], strace).unwrap()
}

#[test]
fn r6_a_disk_that_refuses_a_sync_ends_the_process_and_nothing_acknowledged_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("sekisho.db").display());
    let mut gateway = with_failing_syncs(&store, 30);
    let storm = Storm::start(gateway.address(), 4);
    let mut ended = None;
    wait_until("the process to leave", || {
        ended = gateway.server.exited();
        ended.is_some()
    });
    let report = storm.stop();
    let log = gateway.server.log();
    assert_eq!(ended.unwrap().code(), Some(74), "{log}");
    assert!(log.contains("the disk refused a sync"), "{log}");
    assert!(report.statuses.keys().all(|status| matches!(status, 204 | 503)), "{report}");
    drop(gateway);

    // On a disk that works again, everything that was acknowledged is there.
    let gateway = Gateway::at(&store, &stripe_source(""), &[]).unwrap();
    gateway.check_ledger(&report);
    assert_eq!(gateway.send(&Provider::stripe().event("evt_after")).status, 204);
}

#[test]
fn r6_a_start_on_a_disk_that_refuses_syncs_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sekisho.toml"), stripe_source("")).unwrap();
    let output = Command::new("timeout")
        .args(["60", "strace", "-f", "-qqq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"])
        .args(["-e", "inject=fsync:error=EIO", "-e", "inject=fdatasync:error=EIO", BINARY])
        .args(["serve", "--listen", "127.0.0.1:0", "--store", "sqlite:./sekisho.db"])
        .env("STRIPE_SECRET", "whsec_x")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(1 | 74)), "{:?} {said}", output.status);
    assert!(said.contains("disk I/O error") || said.contains("refused a sync"), "{said}");
}

#[test]
fn r5_a_folder_that_cant_be_written_is_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sekisho.toml"), stripe_source("")).unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let words = ["serve", "--listen", "127.0.0.1:0", "--store", "sqlite:./file/sekisho.db"];
    say(folder.path(), &words, &[("STRIPE_SECRET", "whsec_x")])
        .failed(1)
        .mentions(&["can't reach the store sqlite:./file/sekisho.db"]);
}
