//! `sekisho listen`: forwards new events to a local application as a delivery would, and prints what it answered. For
//! development: it tries once, remembers nothing, and changes nothing in the store.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use sekisho_core::delivery::route::Send;
use sekisho_core::delivery::{Route, Signer, Signing, judge, outgoing};
use sekisho_core::event::{Stored, Trust};
use sekisho_core::pattern::Pattern;
use sekisho_core::source_name::Origin;
use sekisho_core::{Secret, provider};

use super::Context;
use super::client::{Client, Needs, Query, path};
use super::events::{EventConditions, Follower, body};
use super::output::line_out;
use crate::effects::deliver::Client as App;
use crate::types::{Event, EventDetail, Source};
use crate::{now, token};

#[derive(clap::Args)]
pub struct Args {
    /// Your application: localhost:3000/hook, its port alone, or a whole URL
    #[arg(long, value_name = "URL", value_parser = destination)]
    forward_to: String,
    /// Only this source
    #[arg(long)]
    source: Option<String>,
    /// Only this type; a * at the end stands for anything: payment_intent.*
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// How requests are signed
    #[arg(long, default_value = "stripe", value_parser = signings())]
    signing: Signing,
    /// What they are signed with; without it a secret is made up and printed
    #[arg(long, env = "SEKISHO_LISTEN_SECRET", hide_env_values = true)]
    secret: Option<String>,
}

fn signings() -> impl TypedValueParser<Value = Signing> {
    let parse = |name: String| Signing::parse(&name).expect("it is one of those that may be written");
    PossibleValuesParser::new(Signing::ALL.map(Signing::name)).map(parse)
}

const ANSWER_WITHIN: Duration = Duration::from_secs(30);

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let api = Client::open(context, Needs::READ).await?;
    let app = App::new(&args.forward_to, ANSWER_WITHIN, true)
        .with_context(|| format!("can't forward to {}", args.forward_to))?;
    let is_made_up = args.secret.is_none() && args.signing != Signing::None;
    let secret = match args.secret {
        Some(secret) => secret,
        None => format!("whsec_{}", token::generate::<24>()),
    };
    let signer = Signer::open(args.signing, vec![Secret::new(secret.as_str())], &args.forward_to)?;
    let route = Route {
        name: "listen".into(),
        sources: args.source.iter().map(Pattern::new).collect(),
        events: Vec::new(),
        filter: None,
        fifo: None,
        send: Send::Raw,
        speaks_for: args.signing.speaks_for(),
        headers: Vec::new(),
    };
    let conditions = EventConditions::of(args.source, args.event_type);
    let origins = origins(&api).await?;
    let mut follower = Follower::from_now_on(&api, &conditions).await?;
    line_out(&format!("Ready: new events go to {}. Ctrl-C ends it.", args.forward_to));
    if is_made_up {
        line_out(&format!("Signed as {} with the secret {secret}", args.signing.name()));
    }
    loop {
        for new in follower.next().await? {
            let Some(event) = load(&api, &new.id).await? else { continue };
            let origin = origins.get(&*event.source).copied().unwrap_or_default();
            line_out(&forward(&app, &route, &signer, origin, &event).await);
        }
    }
}

/// What is known of each source.
async fn origins(api: &Client) -> anyhow::Result<BTreeMap<String, Origin>> {
    let sources: Vec<Source> = api.items("/v1/sources", &Query::new()).await?;
    let origin = |source: Source| {
        let provider = provider::find(&source.provider?)?.about().name;
        Some((source.name, Origin { provider, livemode: source.livemode }))
    };
    Ok(sources.into_iter().filter_map(origin).collect())
}

/// An event as the store keeps it; none, if it was deleted meanwhile.
async fn load(api: &Client, id: &str) -> anyhow::Result<Option<Stored>> {
    let query = Query::new().with("addresses", Some("full"));
    let Some(EventDetail { event, content, .. }) = api.find(&path(&["events", id])?, &query).await? else {
        return Ok(None);
    };
    let body = body(&content)?.into();
    let Event {
        received_at, source, event_id, event_type, created_at, object, account, livemode, trust, ..
    } = event;
    Ok(Some(Stored {
        seq: id.parse()?,
        received_at,
        source: source.into(),
        event_id,
        event_type,
        created_at,
        object: object.map(|object| (object.kind, object.id)),
        account,
        livemode,
        trust: Trust::parse(&trust).unwrap_or(Trust::Hint),
        headers: serde_json::to_string(&content.headers)?.into(),
        body,
    }))
}

/// One delivery, and the line that tells of it.
async fn forward(app: &App, route: &Route, signer: &Signer, origin: Origin, event: &Stored) -> String {
    let at = now();
    // The time of day, in UTC as everywhere else.
    let time = at.to_string();
    let time = time.get(11..19).unwrap_or(&time);
    let (kind, id) = (&event.event_type, &event.event_id);
    if let Some(why) = route.bars(origin, event) {
        return format!("{time}  {kind}  {id}  not sent: {why}");
    }
    let out = outgoing(route, signer, event, event.seq, 1, None, at);
    let (answer, took) = app.post(&out.headers, out.body).await;
    let said = match (&answer, judge(&answer, at)) {
        (Ok(answer), _) => answer.status.to_string(),
        (Err(_), Err(failure)) => failure.error,
        (Err(_), Ok(())) => "no answer".into(),
    };
    format!("{time}  {kind}  {id}  → {said}  {} ms", took.as_millis())
}

/// A URL as people type it: without its scheme, or only a port of this machine.
fn destination(text: &str) -> Result<String, std::convert::Infallible> {
    Ok(if text.contains("://") {
        text.to_owned()
    } else if text.parse::<u16>().is_ok() {
        format!("http://localhost:{text}")
    } else {
        format!("http://{text}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h6_a_destination_needs_no_scheme() {
        for (text, expected) in [
            ("localhost:3000", "http://localhost:3000"),
            ("localhost:3000/hook", "http://localhost:3000/hook"),
            ("3000", "http://localhost:3000"),
            ("https://app.example/hook", "https://app.example/hook"),
            ("ftp://app.example", "ftp://app.example"),
        ] {
            assert_eq!(destination(text).as_deref(), Ok(expected));
        }
    }
}
