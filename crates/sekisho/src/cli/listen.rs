//! `sekisho listen`: forwards new events to a local application as a delivery would, and prints what it answered. For
//! development: it tries once, remembers nothing, and changes nothing in the store.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use sekisho_core::Secret;
use sekisho_core::delivery::route::Send;
use sekisho_core::delivery::{Route, Signer, Signing, judge, outgoing};
use sekisho_core::event::Stored;
use sekisho_core::pattern::Pattern;
use sekisho_core::source_name::Origin;

use super::Context;
use super::events::{Conditions, Follower};
use super::output::line_out;
use crate::effects::deliver::Client;
use crate::{now, token};

#[derive(clap::Args)]
pub struct Args {
    /// Your application: http://localhost:3000/hook
    #[arg(long, value_name = "URL")]
    forward_to: String,
    /// Only this source
    #[arg(long)]
    source: Option<String>,
    /// Only this type; a * at the end stands for anything: payment_intent.*
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// How requests are signed: stripe, standard-webhooks, upstash or none
    #[arg(long, default_value = "stripe", value_parser = |text: &str| Signing::parse(text).ok_or("stripe, standard-webhooks, upstash or none"))]
    signing: Signing,
    /// What they are signed with; without it a secret is made up and printed
    #[arg(long, env = "SEKISHO_LISTEN_SECRET", hide_env_values = true)]
    secret: Option<String>,
}

const ANSWER_WITHIN: Duration = Duration::from_secs(30);

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (store, seen) = context.open_store().await?;
    let client = Client::new(&args.forward_to, ANSWER_WITHIN, true)
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
    let conditions = Conditions::of(args.source, args.event_type);
    let mut follower = Follower::from_now_on(&*store, &conditions).await?;
    line_out(&format!("Ready: new events go to {}. Ctrl-C ends it.", args.forward_to));
    if is_made_up {
        line_out(&format!("Signed as {} with the secret {secret}", args.signing.name()));
    }
    loop {
        let new = follower.next(&*store).await?;
        for event in store.load_events(new.iter().map(|event| event.seq).collect()).await? {
            let origin = seen.origins.get(&*event.source).copied().unwrap_or_default();
            line_out(&forward(&client, &route, &signer, origin, &event).await);
        }
    }
}

/// One delivery, and the line that tells of it.
async fn forward(client: &Client, route: &Route, signer: &Signer, origin: Origin, event: &Stored) -> String {
    let at = now();
    // The time of day, in UTC as everywhere else.
    let time = at.to_string();
    let time = time.get(11..19).unwrap_or(&time);
    let (kind, id) = (&event.event_type, &event.event_id);
    if let Some(why) = route.bars(origin, event) {
        return format!("{time}  {kind}  {id}  not sent: {why}");
    }
    let out = outgoing(route, signer, event, event.seq, 1, at);
    let (answer, took) = client.post(&out.headers, out.body).await;
    let said = match (&answer, judge(&answer, at)) {
        (Ok(answer), _) => answer.status.to_string(),
        (Err(_), Err(failure)) => failure.error,
        (Err(_), Ok(())) => "no answer".into(),
    };
    format!("{time}  {kind}  {id}  → {said}  {} ms", took.as_millis())
}
