//! `sekisho doctor`: looks at configuration, store, clock, server and surroundings, and says in words what is wrong
//! and what to do about it.

mod orders;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use http_body_util::Full;
use sekisho_core::event::Trust;
use sekisho_core::reconcile::SourceRegister;
use sekisho_core::reconcile::register::OURS;
use sekisho_core::settlement;
use tokio::time::Instant;

use super::Context;
use super::output::{count, json_out, line_out};
use super::server_file::ServerFile;
use crate::app;
use crate::config::{ChannelKind, Config, Readers};
use crate::effects::http as net;
use crate::queries::{Condition, DeadLettersWaiting, PausedChannel};

#[derive(clap::Args)]
pub struct Args {
    /// One JSON object for each finding
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Grade {
    Good,
    Look,
    Bad,
}

struct Finding {
    about: &'static str,
    grade: Grade,
    text: String,
}

const SERVER_WAIT: Duration = Duration::from_secs(2);
/// Most of what a server says that is not ready.
const ANSWER_BYTES: usize = 64 << 10;

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let mut findings = Vec::new();
    let mut add = |about, grade, text: String| findings.push(Finding { about, grade, text });
    match context.load() {
        Err(error) => add("configuration", Grade::Bad, format!("{error:#}")),
        Ok(loaded) => {
            let sources = count(loaded.config.sources.len(), "source");
            add("configuration", Grade::Good, format!("readable, with {sources}"));
            loaded.warnings.into_iter().for_each(|warning| add("configuration", Grade::Look, warning));
            check_sources(&loaded.config, &mut add);
            check_routes(&loaded.config, &mut add).await;
            check_channels(&loaded.config, &mut add).await;
            check_store(&loaded.config, &mut add).await;
            check_gate(&loaded.config, &mut add).await;
            check_server(&loaded.config, &mut add).await;
            check_files(&loaded.config, &mut add);
            check_figures(&loaded.config, &mut add);
        }
    }
    for finding in &findings {
        let word = match finding.grade {
            Grade::Good => "ok",
            Grade::Look => "look",
            Grade::Bad => "bad",
        };
        if args.json {
            json_out(&serde_json::json!({ "about": finding.about, "grade": word, "text": finding.text }));
        } else {
            line_out(&format!("{word:5} {:14} {}", finding.about, finding.text));
        }
    }
    let bad = findings.iter().filter(|finding| finding.grade == Grade::Bad).count();
    if !args.json {
        line_out(if bad == 0 {
            "OK: no problems found"
        } else {
            "Problems found: correct the lines marked bad"
        });
    }
    Ok(if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn check_sources(config: &Config, add: &mut dyn FnMut(&'static str, Grade, String)) {
    if config.sources.is_empty() {
        add("sources", Grade::Bad, "there is no [[source]]: nothing can be received".into());
    }
    for source in &config.sources {
        let (name, about) = (&source.name, source.provider.about());
        match about.trust {
            // No provider's webhooks are of the second kind: it is how its lists are read.
            Trust::Signed | Trust::Fetched => {}
            Trust::Token if !source.allow_ips.is_empty() => {}
            Trust::Token => add(
                "sources",
                Grade::Look,
                format!(
                    "{name}: {} proves itself by a token only; set allow_ips to its addresses",
                    about.title
                ),
            ),
            Trust::Hint => add(
                "sources",
                Grade::Look,
                format!("{name}: {} signs nothing, so its calls are only hints", about.title),
            ),
        }
        if !config.server.listen.ip().is_loopback() && source.setup.public_url.is_none() {
            let text = format!("{name}: public_url is not set, so the address to register can't be shown");
            add("sources", Grade::Look, text);
        }
    }
}

/// Whether somebody listens at the other end. Nothing is sent.
async fn check_routes(config: &Config, add: &mut dyn FnMut(&'static str, Grade, String)) {
    for route in &config.routes {
        let (name, url) = (&route.route.name, route.shown_url());
        let host = route.url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = route.url.port_or_known_default().unwrap_or(80);
        let connected = tokio::time::timeout(SERVER_WAIT, tokio::net::TcpStream::connect((host, port))).await;
        let (grade, text) = match connected {
            Ok(Ok(_)) => (Grade::Good, format!("{name}: {url} answers")),
            // Whatever comes for it only waits.
            Ok(Err(error)) => (Grade::Bad, format!("{name}: no answer at {url} ({error})")),
            Err(_) => (Grade::Bad, format!("{name}: no answer at {url} in time")),
        };
        add("routes", grade, text);
    }
}

/// Whether mail servers listen, and whether anybody hears of trouble. Nothing is sent.
async fn check_channels(config: &Config, add: &mut dyn FnMut(&'static str, Grade, String)) {
    for channel in &config.channels {
        let ChannelKind::Smtp(mail) = &channel.kind else { continue };
        let (name, place) = (&channel.name, format!("{}:{}", mail.host, mail.port));
        let connected = tokio::time::timeout(SERVER_WAIT, tokio::net::TcpStream::connect(&place)).await;
        let (grade, text) = match connected {
            Ok(Ok(_)) => {
                (Grade::Good, format!("{name}: {place} answers; `sekisho notify test {name}` sends a mail"))
            }
            Ok(Err(error)) => (Grade::Look, format!("{name}: no answer at {place} ({error})")),
            Err(_) => (Grade::Look, format!("{name}: no answer at {place} in time")),
        };
        add("channels", grade, text);
    }
    if config.notifications.alerts.is_none() {
        let text = "nobody hears of dead letters, silent sources or paused channels; set [notifications] alerts = \"NAME\" to a [[channel]], \
                    then `sekisho alerts test dead_letters`";
        add("alerts", Grade::Look, text.into());
    }
}

fn tell_paused(paused: &[PausedChannel], add: &mut dyn FnMut(&'static str, Grade, String)) {
    for PausedChannel { name, why } in paused {
        let why = why.as_deref().unwrap_or("too many failures in a row");
        let text =
            format!("{name} is paused: {why}; correct the cause, then `sekisho channels resume {name}`");
        add("channels", Grade::Bad, text);
    }
}

fn tell_dead_letters(dead: &DeadLettersWaiting, add: &mut dyn FnMut(&'static str, Grade, String)) {
    let more = if dead.is_more { " or more" } else { "" };
    let what = count(dead.count, "dead letter");
    let text =
        format!("{what}{more} waiting, the newest because: {}; see `sekisho dead list`", dead.newest_error);
    add("work", Grade::Look, text);
}

/// Two keys may be of one account, which only the provider knows.
fn check_accounts(config: &Config, add: &mut dyn FnMut(&'static str, Grade, String)) {
    for (n, source) in config.sources.iter().enumerate() {
        let Some(earlier) = config.sources[..n].iter().find(|one| one.may_share_lists_with(source)) else {
            continue;
        };
        let (one, other, title) = (&earlier.name, &source.name, source.provider.about().title);
        let text = format!(
            "{one} and {other}: if their keys are of one account at {title}, each takes in the other's events as missing, and your \
             app gets them twice; then set reconcile = false in one of them"
        );
        add("reconcile", Grade::Look, text);
    }
}

/// How complete what came is, as far as providers can be asked.
fn tell_reconciliations(
    config: &Config,
    registers: &BTreeMap<String, SourceRegister>,
    add: &mut dyn FnMut(&'static str, Grade, String),
) {
    check_accounts(config, add);
    for source in &config.sources {
        let name = &source.name;
        let provider = settlement::ApiProvider::parse(source.provider.about().name);
        // Of hints there is no list: each is asked about when it comes.
        if provider.is_none_or(settlement::ApiProvider::only_hints) {
            continue;
        }
        if source.compared().is_none() {
            let text =
                format!("{name}: no api_key, or reconcile = false: events that never come are not noticed");
            add("reconcile", Grade::Look, text);
            continue;
        }
        let (grade, text) = match registers.get(&**name) {
            None => (Grade::Look, format!("{name}: not compared with its provider yet")),
            Some(register) => reconciliation(name, register),
        };
        add("reconcile", grade, text);
    }
}

fn reconciliation(name: &str, register: &SourceRegister) -> (Grade, String) {
    let last = register.last_good.map_or_else(|| "never".to_owned(), |at| at.to_string());
    let told = format!("{name}: last compared {last}, {} % complete", register.percent());
    let ours = register.differences.iter().filter(|one| one.kind == OURS).count();
    match &register.error {
        Some((_, error)) => (Grade::Bad, format!("{told}; the last run broke off: {error}")),
        None if ours > 0 => {
            let what = count(ours, "difference");
            (Grade::Look, format!("{told}; {what} from the provider, see /console/reconciliation"))
        }
        None => (Grade::Good, told),
    }
}

async fn check_store(config: &Config, add: &mut dyn FnMut(&'static str, Grade, String)) {
    let url = &config.store.url;
    let sources: Vec<_> = config.sources.iter().map(|source| &*source.name).collect();
    match app::examine(url, &sources).await {
        Err(error) => add("store", Grade::Bad, error.to_string()),
        Ok(None) => {
            add("store", Grade::Look, format!("{url} does not exist yet; `sekisho serve` creates it"));
            return;
        }
        Ok(Some(Condition { settings, dead, paused, registers, has_slots, has_fulfilments, firing })) => {
            for alert in firing {
                let text = format!("{alert}; see `sekisho alerts`");
                add("alerts", Grade::Bad, text);
            }
            dead.iter().for_each(|dead| tell_dead_letters(dead, add));
            tell_paused(&paused, add);
            tell_reconciliations(config, &registers, add);
            orders::check(config, orders::OrdersInUse { has_slots, has_fulfilments }, add);
            tell_settings(&settings, add);
        }
    }
    if config.store.allow_unsafe_durability {
        let text = "allow_unsafe_durability is set: acknowledged events can be lost in a crash";
        add("store", Grade::Bad, text.into());
    }
}

/// How the database is set up, and whether it keeps what it acknowledged.
fn tell_settings(settings: &[(String, String)], add: &mut dyn FnMut(&'static str, Grade, String)) {
    for (name, value) in settings {
        let unsafe_setting =
            matches!(name.as_str(), "fsync" | "full_page_writes" | "synchronous_commit") && value == "off";
        if name == "synchronous_standby_names" && value.is_empty() {
            let text = "no synchronous standby: a failover to another server can lose acknowledged events";
            add("store", Grade::Look, text.into());
            continue;
        }
        let grade = if unsafe_setting { Grade::Bad } else { Grade::Good };
        add("store", grade, format!("{name}: {value}"));
    }
}

async fn check_gate(config: &Config, add: &mut dyn FnMut(&'static str, Grade, String)) {
    let Some(url) = &config.gate.redis else { return };
    let ping = async {
        let mut connection = redis::Client::open(url.expose())?.get_multiplexed_async_connection().await?;
        redis::cmd("PING").query_async::<String>(&mut connection).await
    };
    match tokio::time::timeout(SERVER_WAIT, ping).await {
        Ok(Ok(_)) => add("gate", Grade::Good, "Redis answers".into()),
        Ok(Err(error)) => {
            add("gate", Grade::Look, format!("Redis does not answer ({error}); only speed suffers"));
        }
        Err(_) => add("gate", Grade::Look, "Redis does not answer in time; only speed suffers".into()),
    }
}

async fn check_server(config: &Config, add: &mut dyn FnMut(&'static str, Grade, String)) {
    let address = ServerFile::address(config);
    let _ = rustls::crypto::ring::default_provider().install_default();
    // What the database said is told only to those who show a key.
    let key = ServerFile::find(&config.store.url).filter(|note| note.url == address).map(|note| note.key);
    let ask = async {
        let uri: http::Uri = format!("{address}/health/ready").parse()?;
        let mut request = http::Request::get(uri.clone());
        if let Some(key) = key {
            request = request.header(http::header::AUTHORIZATION, format!("Bearer {key}"));
        }
        let (request, deadline) = (request.body(Full::default())?, Instant::now() + SERVER_WAIT);
        let answer = net::Client::new(&uri, true)?.exchange(request, ANSWER_BYTES, deadline).await;
        let answer = answer.map_err(|fault| anyhow::anyhow!("{fault:?}"))?;
        let said = String::from_utf8_lossy(&answer.body).into_owned();
        anyhow::Ok(((200..300).contains(&answer.status), said))
    };
    match ask.await {
        Ok((true, _)) => add("server", Grade::Good, format!("running at {address} and ready")),
        Ok((false, body)) => {
            add("server", Grade::Bad, format!("running at {address}, but not ready: {body}"));
        }
        Err(_) => add("server", Grade::Look, format!("not running at {address}")),
    }
}

/// Who reads what `/metrics` says of sources, routes and channels.
fn check_figures(config: &Config, add: &mut dyn FnMut(&'static str, Grade, String)) {
    let (grade, text) = match config.metrics {
        Readers::Private => {
            (Grade::Good, "/metrics is for this machine and private addresses; others need a key")
        }
        Readers::Nobody => (Grade::Good, "/metrics is off"),
        Readers::Everybody => (
            Grade::Look,
            "/metrics is public and names sources, routes and channels; metrics = \"private\" requires a key",
        ),
    };
    add("telemetry", grade, text.into());
}

fn check_files(config: &Config, add: &mut dyn FnMut(&'static str, Grade, String)) {
    let files = sekisho_demo::measure::raise_open_files();
    let wanted = config.server.connections_max as u64;
    if files < wanted {
        let text = format!(
            "{files} open files are permitted, fewer than server.connections_max ({wanted}); see ulimit -n"
        );
        add("system", Grade::Look, text);
    } else {
        add("system", Grade::Good, format!("{files} open files are permitted"));
    }
}
