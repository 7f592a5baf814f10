//! `sekisho trigger`: correctly signed test events, and on request the weather of the real world: duplicates,
//! reordering, forgeries. It says what the server made of them, and fails when that is not what it should be.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use sekisho_core::provider::{Draft, Signed};

use super::output::{Progress, count, json_out, line_out};
use super::target::Target;
use super::{Context, choose};
use crate::config::Source;
use crate::probe::{self, Answer, Client, fixtures};
use crate::{chance, now};

#[derive(clap::Args)]
pub struct Args {
    /// The event's type, such as payment_intent.succeeded
    #[arg(value_name = "TYPE", required_unless_present = "list")]
    event_type: Option<String>,
    #[command(flatten)]
    target: Target,
    /// How many different events
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// Trouble to make; several with commas between
    #[arg(long, value_delimiter = ',')]
    chaos: Vec<Chaos>,
    /// The order that a built-in Stripe event is about; each has one of its own when not written
    #[arg(long, value_name = "REFERENCE")]
    order: Option<String>,
    /// Your own body instead of a built-in one; `id` and `created` are set anew
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// List the built-in Stripe types
    #[arg(long)]
    list: bool,
    /// One JSON object for each request
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Chaos {
    /// Every event is sent three times
    Dup,
    /// The order is shuffled
    Reorder,
    /// Each event is followed by a forged one
    Forge,
}

/// Requests under way at once.
const CONCURRENCY: usize = 16;
const COPIES: usize = 3;

struct Letter {
    signed: Signed,
    forged: bool,
}

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    if args.list {
        fixtures::STRIPE.iter().for_each(|(name, _)| line_out(name));
        return Ok(ExitCode::SUCCESS);
    }
    let config = context.load_sources()?.config;
    let source = choose(&config, args.target.source.as_deref())?;
    let client = args.target.client(&config, source)?;
    let letters = write_letters(&args, source)?;
    let progress = Progress::new();
    let mut tally = Tally::default();
    let total = letters.len();
    for (sent, group) in letters.chunks(CONCURRENCY).enumerate() {
        for (letter, answer) in group.iter().zip(deliver(&client, group).await) {
            let answer = answer?;
            if args.json {
                json_out(&answer.json());
            } else if total == 1 {
                line_out(&answer.sentence());
            }
            tally.add(letter, &answer);
        }
        progress.show(&format!("{} of {total}", (sent + 1) * CONCURRENCY));
    }
    drop(progress);
    if !args.json && total > 1 {
        tally.print();
    }
    Ok(if tally.wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn deliver(client: &Client, letters: &[Letter]) -> Vec<anyhow::Result<Answer>> {
    futures_util::future::join_all(letters.iter().map(|letter| client.deliver(letter.signed.clone()))).await
}

/// Everything to be sent, in the order of sending.
fn write_letters(args: &Args, source: &Source) -> anyhow::Result<Vec<Letter>> {
    let copies = if args.chaos.contains(&Chaos::Dup) { COPIES } else { 1 };
    let mut letters = Vec::new();
    for n in 0..args.count {
        let draft = draft(args, source, n)?;
        let signed = source.scheme.sign(draft, now())?;
        for _ in 0..copies {
            letters.push(Letter { signed: signed.clone(), forged: false });
        }
        if args.chaos.contains(&Chaos::Forge) {
            letters.push(Letter { signed: forge(signed), forged: true });
        }
    }
    if args.chaos.contains(&Chaos::Reorder) {
        shuffle(&mut letters);
    }
    Ok(letters)
}

fn draft(args: &Args, source: &Source, n: u32) -> anyhow::Result<Draft> {
    let kind = args.event_type.clone().unwrap_or_default();
    if let Some(file) = &args.body {
        let body = std::fs::read(file).with_context(|| format!("can't read {}", file.display()))?;
        return probe::renewed(&body, kind, n);
    }
    probe::sample(source.provider.about(), &kind, args.order.as_deref(), n)
}

/// The same request with a changed body: the signature no longer fits.
fn forge(mut signed: Signed) -> Signed {
    match signed.body.iter().rposition(|byte| *byte == b'}') {
        Some(end) => signed.body.splice(end..end, *b",\"forged\":true").for_each(drop),
        None => signed.body.push(b'!'),
    }
    signed
}

fn shuffle(letters: &mut [Letter]) {
    for n in (1..letters.len()).rev() {
        letters.swap(n, (u64::from_le_bytes(chance::bytes()) % (n as u64 + 1)) as usize);
    }
}

#[derive(Default)]
struct Tally {
    accepted: usize,
    duplicates: usize,
    refused: usize,
    asked_to_come_again: usize,
    wrong: usize,
}

impl Tally {
    fn add(&mut self, letter: &Letter, answer: &Answer) {
        match (answer.status, answer.outcome.as_str()) {
            (200..=299, "duplicate") => self.duplicates += 1,
            (200..=299, _) => self.accepted += 1,
            (503, _) => self.asked_to_come_again += 1,
            _ => self.refused += 1,
        }
        let taken = answer.status < 300;
        if taken == letter.forged {
            self.wrong += 1;
        }
    }

    fn print(&self) {
        line_out(&format!("accepted    {}", self.accepted));
        line_out(&format!("duplicates  {}", self.duplicates));
        line_out(&format!("refused     {}", self.refused));
        if self.asked_to_come_again > 0 {
            line_out(&format!("come again  {}", self.asked_to_come_again));
        }
        if self.wrong > 0 {
            line_out(&format!("{} not answered as it should be", count(self.wrong, "request")));
        }
    }
}
