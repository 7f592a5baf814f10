//! `sekisho serve`: receives webhooks until it is told to stop.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use sekisho_core::Secret;
use tokio::signal::unix::{SignalKind, signal};

use super::Context;
use super::server_file::ServerFile;
use crate::app::{App, ProcessRole};
use crate::config::{Config, StoreUrl};
use crate::telemetry::Reporter;
use crate::test_event::reachable;
use crate::view::ROOT;
use crate::{now, telemetry, token};

#[derive(clap::Args, Default)]
pub struct Args {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// What this process does; comma-separated
    #[arg(long, value_delimiter = ',', value_name = "ROLE")]
    role: Vec<ProcessRole>,
}

/// Files a server needs besides its connections.
const FILES_SPARE: u64 = 64;

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let generated = context.is_built_in() && generate_secret(&context.generated_secret()?)?;
    let mut loaded = context.load()?;
    let configured = loaded.config.server.listen;
    if let Some(listen) = args.listen {
        loaded.config.server.listen = listen;
    }
    let mut config = loaded.config;
    let reporter = config.telemetry.sentry_dsn.is_some().then(|| Arc::new(Reporter::default()));
    telemetry::start(config.log, reporter.clone());
    for warning in &loaded.warnings {
        tracing::warn!(error_type = "configuration", "{warning}");
    }
    let roles = if args.role.is_empty() { ProcessRole::ALL.to_vec() } else { args.role };
    if roles.contains(&ProcessRole::Gateway) && config.sources.is_empty() {
        bail!("the configuration has no [[source]]: add one (`sekisho config example` shows how)");
    }
    let files = sekisho_demo::measure::raise_open_files();
    if files < config.server.connections_max as u64 + FILES_SPARE {
        config.server.connections_max = files.saturating_sub(FILES_SPARE).max(16) as usize;
        tracing::warn!(
            error_type = "open_files",
            connections_max = config.server.connections_max,
            "the system allows fewer open files than server.connections_max; raise it with ulimit -n"
        );
    }
    let banner = Banner::of(&config, configured, roles.contains(&ProcessRole::Console));
    let mut stop = Stop::new()?;
    let key = if roles.contains(&ProcessRole::Console) { Some(token::generate::<24>()) } else { None };
    let store = config.store.url.clone();
    let app = tokio::select! {
        app = App::start(config, &roles, key.clone().map(Secret::new), reporter) => app?,
        () = stop.wait() => {
            tracing::info!("stopped before it started serving");
            return Ok(ExitCode::SUCCESS);
        }
    };
    let note = key.map(|key| leave_note(&app, key, &store));
    let _ = print_banner(&app, context, &banner, generated);
    tracing::info!(address = %app.address, store = banner.store, roles = ?roles, "Sekisho is serving");
    stop.wait().await;
    tracing::info!("shutting down: no new requests, finishing those in progress");
    if let Some((note, file)) = note.zip(ServerFile::file(&store)) {
        note.remove(&file, &store);
    }
    app.stop().await;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// So that commands beside this server find it. Without the note they can still be told with `--server`.
fn leave_note(app: &App, key: String, store: &StoreUrl) -> ServerFile {
    let note = ServerFile::new(store, format!("http://{}", reachable(app.address)), key);
    let Some(file) = ServerFile::file(store) else {
        tracing::warn!(
            error_type = "server_file",
            "neither XDG_RUNTIME_DIR nor HOME is set: commands on this machine can't discover this server"
        );
        return note;
    };
    if let Err(error) = note.write(&file) {
        tracing::warn!(error_type = "server_file", %error, file = %file.display(), "commands on this machine can't discover this server");
    }
    note
}

/// What to do next, for somebody who just started it. A closed standard output is no reason to stop serving.
fn print_banner(app: &App, context: &Context, banner: &Banner, generated: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let program = std::env::args().next().unwrap_or_else(|| "sekisho".into());
    let mut options = String::new();
    if let Some(file) = &context.config {
        options += &format!(" --config {}", file.display());
    }
    // A PostgreSQL address may hold a password, which is never printed: there the environment or the file names it.
    if let Some(url @ StoreUrl::Sqlite(_)) = context.store_url().ok().flatten() {
        options += &format!(" --store {url}");
    }
    let url = if app.address == banner.configured {
        String::new()
    } else {
        format!(" --url http://{}", app.address)
    };
    writeln!(out, "\n  Sekisho 関所 is open.\n")?;
    for (name, path) in &banner.paths {
        writeln!(out, "  webhooks   http://{}{path}   ({name})", app.address)?;
    }
    for (name, url) in &banner.routes {
        writeln!(out, "  delivers   to {url}   ({name})")?;
    }
    if banner.has_console {
        let root = banner.console_url.clone().unwrap_or_else(|| format!("http://{}", reachable(app.address)));
        match &app.first_invite {
            Some(token) => {
                writeln!(out, "  console    {root}{ROOT}/join/{token}")?;
                writeln!(out, "             (opens once, within 24 hours, for the first admin)")?;
            }
            None => writeln!(out, "  console    {root}{ROOT}")?,
        }
    }
    writeln!(out, "  data       {}", banner.store)?;
    if generated {
        let secret = context.generated_secret().unwrap_or_default();
        writeln!(out, "  secret     generated for the source `stripe`, kept in {}", secret.display())?;
    }
    if let Some(words) = &banner.trigger {
        writeln!(out, "\n  Send a first signed event from another terminal:")?;
        writeln!(out, "    {program} trigger {words}{options}{url}")?;
        writeln!(out, "  and look at it:\n    {program} events list{options}")?;
    }
    writeln!(out)?;
    out.flush()
}

/// What the banner says of the configuration, which the server has taken by then.
struct Banner {
    configured: SocketAddr,
    store: String,
    paths: Vec<(String, String)>,
    routes: Vec<(String, String)>,
    has_console: bool,
    /// Where people find the console, if not by the address of this process.
    console_url: Option<String>,
    /// The words that send a first event to the first source that can be signed for.
    trigger: Option<String>,
}

impl Banner {
    fn of(config: &Config, configured: SocketAddr, has_console: bool) -> Self {
        let paths =
            config.sources.iter().map(|source| (source.name.to_string(), source.path.clone())).collect();
        let signable = config.sources.iter().find_map(|source| {
            let about = source.provider.about();
            source.scheme.sign(about.draft("evt_1", about.sample_type, now()), now()).ok()?;
            let option =
                if config.sources.len() > 1 { format!(" --source {}", source.name) } else { String::new() };
            Some(format!("{}{option}", about.sample_type))
        });
        let routes =
            config.routes.iter().map(|route| (route.route.name.clone(), route.shown_url())).collect();
        let console_url = config.console.url.clone();
        Self {
            configured,
            store: config.store.url.to_string(),
            paths,
            routes,
            has_console,
            console_url,
            trigger: signable,
        }
    }
}

/// Makes a secret for the built-in source, unless there is one already.
fn generate_secret(file: &Path) -> anyhow::Result<bool> {
    use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
    if file.exists() {
        return Ok(false);
    }
    let secret = format!("whsec_{}", token::generate::<24>());
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
