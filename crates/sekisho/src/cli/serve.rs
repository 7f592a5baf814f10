//! `sekisho serve`: receives webhooks until it is told to stop.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use ring::rand::{SecureRandom, SystemRandom};
use sekisho_store::StoreUrl;
use tokio::signal::unix::{SignalKind, signal};

use super::Context;
use super::output::line_out;
use crate::app::{App, Role};
use crate::telemetry;

#[derive(clap::Args, Default)]
pub struct Args {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// What this process does; several with commas between
    #[arg(long, value_delimiter = ',', value_name = "ROLE")]
    role: Vec<Role>,
}

/// Files a server needs besides its connections.
const FILES_SPARE: u64 = 64;

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let generated = context.is_built_in() && generate_secret(&context.generated_secret()?)?;
    let mut loaded = context.load()?;
    if let Some(listen) = args.listen {
        loaded.config.server.listen = listen;
    }
    let mut config = loaded.config;
    telemetry::start(config.log);
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let roles = if args.role.is_empty() { vec![Role::Gateway, Role::Worker] } else { args.role };
    if roles.contains(&Role::Gateway) && config.sources.is_empty() {
        bail!("the configuration has no [[source]]: add one (`sekisho config example` shows how)");
    }
    let files = sekisho_lab::measure::raise_open_files();
    if files < config.server.connections_max as u64 + FILES_SPARE {
        config.server.connections_max = files.saturating_sub(FILES_SPARE).max(16) as usize;
        tracing::warn!(
            connections_max = config.server.connections_max,
            "the system permits fewer open files than server.connections_max; raise it with ulimit -n"
        );
    }
    let store = config.store.url.to_string();
    let doors: Vec<_> =
        config.sources.iter().map(|source| (source.name.to_string(), source.path.clone())).collect();
    let mut stop = Stop::new()?;
    let app = App::start(config, &roles).await?;
    banner(&app, context, &store, &doors, generated);
    tracing::info!(address = %app.address, store, roles = ?roles, "Sekisho is serving");
    stop.wait().await;
    tracing::info!("stopping: no new requests, finishing those under way");
    app.stop().await;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// What to do next, for somebody who just started it.
fn banner(app: &App, context: &Context, store: &str, doors: &[(String, String)], generated: bool) {
    let program = std::env::args().next().unwrap_or_else(|| "sekisho".into());
    let mut options = String::new();
    if let Some(file) = &context.config {
        options += &format!(" --config {}", file.display());
    }
    // A PostgreSQL address may hold a password, which is never printed: there the environment or the file names it.
    if let Some(url @ StoreUrl::Sqlite(_)) = context.store_url().ok().flatten() {
        options += &format!(" --store {url}");
    }
    if app.address.port() != 8787 {
        options += &format!(" --url http://{}", app.address);
    }
    line_out("");
    line_out("  Sekisho 関所 is open.");
    line_out("");
    for (name, path) in doors {
        line_out(&format!("  webhooks   http://{}{path}   ({name})", app.address));
    }
    line_out(&format!("  data       {store}"));
    if generated {
        let secret = context.generated_secret().unwrap_or_default();
        line_out(&format!("  secret     generated for the source `stripe`, kept in {}", secret.display()));
    }
    if let Some((name, _)) = doors.first() {
        let source = if doors.len() > 1 { format!(" --source {name}") } else { String::new() };
        line_out("");
        line_out("  Send a first signed event from another terminal:");
        line_out(&format!("    {program} trigger payment_intent.succeeded{source}{options}"));
        line_out("  and look at it:");
        line_out(&format!("    {program} events list{}", options.split(" --url").next().unwrap_or_default()));
    }
    line_out("");
    let _ = std::io::stdout().flush();
}

/// Makes a secret for the built-in source, unless there is one already.
fn generate_secret(file: &Path) -> anyhow::Result<bool> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    if file.exists() {
        return Ok(false);
    }
    let mut bytes = [0u8; 24];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| anyhow::anyhow!("the system gives no random numbers"))?;
    let secret = bytes.iter().fold("whsec_".to_owned(), |text, byte| text + &format!("{byte:02x}"));
    let cannot = || format!("can't keep the generated secret in {}", file.display());
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(cannot)?;
    }
    let mut out = std::fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(file)
        .with_context(cannot)?;
    writeln!(out, "{secret}").with_context(cannot)?;
    Ok(true)
}

/// SIGTERM, or Ctrl-C.
struct Stop {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Stop {
    fn new() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
