//! `sekisho notify test CHANNEL`: one test message, sent by this command at once, and what became of it in words. Needs
//! neither a store nor a server, and leaves no record.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use sekisho_core::language::Language;
use sekisho_core::mail_address::MailAddress;
use sekisho_core::notification::compose::frame;
use sekisho_core::notification::message::Recipient;
use sekisho_core::notification::{Message, Person, Receipt, Sent};
use sekisho_core::queue::Failure;
use serde_json::{Value, json};

use super::Context;
use super::output::{json_out, line_out};
use crate::config::{Channel, Config};
use crate::env::Env;
use crate::{now, token};

#[derive(clap::Subcommand)]
pub enum Command {
    /// Send one test message by a channel; exits with 1 when it did not go through
    Test(Test),
}

#[derive(clap::Args)]
pub struct Test {
    /// The name of a [[channel]]
    channel: String,
    /// Whom it is for; mail needs it
    #[arg(long, value_name = "ADDRESS")]
    to: Option<MailAddress>,
    /// What they read: ja or en; without: as [notifications] says
    #[arg(long)]
    language: Option<Language>,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

const TEMPLATE: &str = "test";
/// A channel keeps to its time by itself; this is for one that does not.
const GRACE: Duration = Duration::from_secs(1);

pub async fn run(command: Command, context: &Context) -> anyhow::Result<ExitCode> {
    let Command::Test(args) = command;
    let config = context.load()?.config;
    let channel = find(&config, &args)?;
    let message = message(&config, &args)?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let within = Duration::from_millis(channel.tries.each_ms as u64);
    let sent =
        tokio::time::timeout(within + GRACE, channel.open(&Env::system())?.send(&message, within)).await;
    let sent = sent.unwrap_or_else(|_| Sent::Uncertain(Failure::transient("timeout", "no answer in time")));
    let report = SendReport::of(&channel.name, &sent);
    if args.json {
        json_out(&report.json(&channel.name));
    } else {
        line_out(&report.sentence);
    }
    Ok(if matches!(sent, Sent::Accepted(_)) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn find<'c>(config: &'c Config, args: &Test) -> anyhow::Result<&'c Channel> {
    let name = &args.channel;
    let Some(channel) = config.channels.iter().find(|channel| channel.name == *name) else {
        let known: Vec<_> = config.channels.iter().map(|channel| channel.name.as_str()).collect();
        if known.is_empty() {
            bail!("there is no channel {name}: the configuration has no [[channel]]");
        }
        bail!("there is no channel {name}; configured are: {}", known.join(", "));
    };
    match (channel.is_mail(), &args.to) {
        (true, None) => bail!("{name} is mail: say whom it is for with --to ADDRESS"),
        (false, Some(_)) => {
            bail!("{name} has its place by configuration ({}): leave --to out", channel.kind.name())
        }
        (true, Some(_)) | (false, None) => Ok(channel),
    }
}

fn message(config: &Config, args: &Test) -> anyhow::Result<Message> {
    let house = &config.notifications.house;
    let language = args.language.unwrap_or(house.language);
    let id = format!("test_{}", token::generate::<8>());
    let mut data = frame(None, &Person::default(), house, language);
    data["event"] = json!({ "id": id, "type": "notify.test", "at": now() });
    let rendered = match config.templates.render(TEMPLATE, language, &data) {
        Ok(rendered) => rendered,
        Err(flaw) => bail!("the template {TEMPLATE} can't be filled in: {flaw}; correct it, then try again"),
    };
    Ok(Message {
        closes: false,
        key: id.clone(),
        to: args.to.clone().map(|address| Recipient { address, name: None }),
        language,
        subject: rendered.subject,
        text: rendered.text,
        html: rendered.html,
        template: TEMPLATE.into(),
        data,
        trace: None,
        id,
    })
}

/// What became of it.
struct SendReport {
    outcome: &'static str,
    reason: Option<&'static str>,
    note: String,
    sentence: String,
}

impl SendReport {
    fn of(channel: &str, sent: &Sent) -> Self {
        let report = |outcome, failure: &Failure, sentence: String| Self {
            outcome,
            reason: Some(failure.reason),
            note: failure.error.clone(),
            sentence,
        };
        match sent {
            Sent::Accepted(Receipt { answer, .. }) => {
                let said = if answer.is_empty() { String::new() } else { format!(": {answer}") };
                let sentence = format!("accepted by {channel}{said}");
                Self { outcome: "accepted", reason: None, note: answer.clone(), sentence }
            }
            Sent::Failed(failure) => {
                let sentence = format!("refused by {channel} ({}): {}", failure.reason, failure.error);
                report("refused", failure, sentence)
            }
            Sent::Uncertain(failure) => {
                let (reason, error) = (failure.reason, &failure.error);
                let cure = "check whether it arrived before you try again";
                let sentence =
                    format!("uncertain, {channel} may or may not have it ({reason}): {error}; {cure}");
                report("uncertain", failure, sentence)
            }
            Sent::Closed { failure, for_ms } => {
                let wait = for_ms.map(|ms| format!("; it resumes in {} s", ms.max(0) / 1_000));
                let (reason, error, wait) = (failure.reason, &failure.error, wait.unwrap_or_default());
                let sentence = format!("paused, {channel} sends nothing ({reason}): {error}{wait}");
                report("paused", failure, sentence)
            }
        }
    }

    fn json(&self, channel: &str) -> Value {
        json!({ "channel": channel, "outcome": self.outcome, "reason": self.reason, "note": self.note })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g1_what_became_of_a_test_is_told_with_its_cure() {
        let failure = || Failure::terminal("bad_credentials", "535 denied; check username and password");
        let receipt = Receipt { answer: "250 Ok".into(), reference: None };
        let cases = [
            (Sent::Accepted(receipt), "accepted", "accepted by mail: 250 Ok"),
            (Sent::Accepted(Receipt::default()), "accepted", "accepted by mail"),
            (Sent::Failed(failure()), "refused", "refused by mail (bad_credentials): 535 denied; check"),
            (Sent::Uncertain(failure()), "uncertain", "check whether it arrived"),
            (Sent::Closed { failure: failure(), for_ms: None }, "paused", "mail sends nothing (bad_cred"),
            (Sent::Closed { failure: failure(), for_ms: Some(60_000) }, "paused", "resumes in 60 s"),
        ];
        for (sent, outcome, words) in cases {
            let report = SendReport::of("mail", &sent);
            assert_eq!(report.json("mail")["outcome"], outcome);
            assert!(report.sentence.contains(words), "{}", report.sentence);
        }
    }
}
