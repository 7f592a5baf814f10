//! What an event costs in instructions, counted by Valgrind: the same on a busy machine as on an idle one, where timed runs of one
//! binary differ by 15 %.
//!
//! A server is run twice under callgrind, with few events and with many; the difference is what the events cost, without start and
//! end. Events are sent one after the other, so that every run makes the same batches.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::app::{Behaviour, DemoApp};
use crate::http;
use crate::process::{Server, ServerConfig, ServerOptions};
use crate::traffic::{BODY_BYTES, CheckoutTraffic, Traffic as _};

/// Events of the run that is subtracted.
const FEW: u64 = 200;
const SECRET: &str = "whsec_instructions";
const PATH: &str = "/webhooks/stripe";
/// Valgrind makes everything some fifty times slower.
const PATIENCE: Duration = Duration::from_mins(5);
const SEED: u64 = 7;

/// How far an event goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    Received,
    Settled,
    Delivered,
}

impl Walk {
    pub const ALL: [Self; 3] = [Self::Received, Self::Settled, Self::Delivered];

    pub fn name(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Settled => "settled",
            Self::Delivered => "delivered",
        }
    }
}

/// User instructions per event on SQLite.
pub fn per_event(binary: &Path, walk: Walk, events: u64) -> Result<u64, String> {
    let few = total(binary, walk, FEW)?;
    let many = total(binary, walk, FEW + events)?;
    Ok(many.saturating_sub(few) / events)
}

fn total(binary: &Path, walk: Walk, events: u64) -> Result<u64, String> {
    let dir = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let app =
        DemoApp::start(Behaviour::Ok).map_err(|error| format!("the application can't start: {error}"))?;
    let counts = dir.path().join("callgrind.out");
    let binary = fs::canonicalize(binary).map_err(|error| format!("{}: {error}", binary.display()))?;
    let mut server = Server::start(ServerOptions {
        command: vec![
            "--tool=callgrind".to_owned(),
            format!("--callgrind-out-file={}", counts.display()),
            binary.display().to_string(),
            "serve".to_owned(),
        ],
        config: ServerConfig::Text(config(walk, &app.url())),
        role: (walk == Walk::Received).then(|| "gateway".to_owned()),
        ready_within: PATIENCE,
        stop_within: PATIENCE,
        ..ServerOptions::new(PathBuf::from("valgrind"), dir.path())
    })?;
    send(server.address(), events).map_err(|error| format!("{error}\n{}", server.log()))?;
    wait_for(&server, &app, walk, events)?;
    server.terminate()?;
    let text = fs::read_to_string(&counts).map_err(|error| format!("callgrind wrote nothing: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("totals:").or(line.strip_prefix("summary:")));
    line.and_then(|count| count.trim().parse().ok()).ok_or_else(|| "callgrind counted nothing".to_owned())
}

fn config(walk: Walk, app: &str) -> String {
    let source = format!("[[source]]\nname = \"stripe\"\nprovider = \"stripe\"\nsecrets = [\"{SECRET}\"]\n");
    match walk {
        Walk::Received | Walk::Settled => source,
        Walk::Delivered => format!(
            "{source}\n[[route]]\nname = \"app\"\nurl = \"{app}/hook\"\nallow_private = true\n\
             secrets = [\"whsec_bXktc2VjcmV0LW9mLTI0LWJ5dGVzIQ==\"]\nevents = [\"payment_intent.*\", \"charge.*\"]\n"
        ),
    }
}

fn send(address: SocketAddr, events: u64) -> io::Result<()> {
    let traffic = CheckoutTraffic::with_seed(PATH, SECRET, BODY_BYTES, SEED);
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let (mut request, mut answer) = (Vec::new(), [0; 4096]);
    for n in 0..events {
        request.clear();
        traffic.write(n, &mut request);
        stream.write_all(&request)?;
        // The acknowledgement is small: one segment holds it.
        let length = stream.read(&mut answer)?;
        if !answer[..length].starts_with(b"HTTP/1.1 2") {
            let said = String::from_utf8_lossy(&answer[..length]).into_owned();
            return Err(io::Error::other(format!("event {n} was not acknowledged: {said}")));
        }
    }
    Ok(())
}

fn wait_for(server: &Server, app: &DemoApp, walk: Walk, events: u64) -> Result<(), String> {
    let settled = || {
        let page = http::get(server.address(), "/metrics").map(|page| page.text()).unwrap_or_default();
        let lines = page.lines().filter(|line| line.starts_with("sekisho_jobs_total{lane=\"settle\""));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64
    };
    let started = Instant::now();
    loop {
        let done = match walk {
            Walk::Received => events,
            Walk::Settled => settled(),
            Walk::Delivered => app.counts().processed,
        };
        if done >= events {
            return Ok(());
        }
        if started.elapsed() > PATIENCE {
            return Err(format!("{done} of {events} events were {}\n{}", walk.name(), server.log()));
        }
        // Rarely: asking costs instructions too.
        sleep(Duration::from_millis(500));
    }
}
