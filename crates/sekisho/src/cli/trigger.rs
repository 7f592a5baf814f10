//! `sekisho trigger`: correctly signed test events, and on request the weather of the real world: duplicates,
//! reordering, forgeries. It says what the server made of them, and fails when that is not what it should be.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use sekisho_core::Time;
use sekisho_core::provider::{Draft, Signed};

use super::output::{Progress, count, json_out, line_out};
use super::target::Target;
use super::{Context, choose};
use crate::config::Source;
use crate::test_event::{self, TestAnswer, TestClient, fixtures};
use crate::{now, token};

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
    /// Trouble to make; comma-separated
    #[arg(long, value_delimiter = ',')]
    chaos: Vec<Chaos>,
    /// The order that a built-in Stripe event is about; default: each has its own
    #[arg(long, value_name = "REFERENCE")]
    order: Option<String>,
    /// Your own body instead of a built-in one; `id` and `created` are set anew
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// List the built-in Stripe types
    #[arg(long)]
    list: bool,
    /// One JSON object for each request; with --list, for each type
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Chaos {
    /// Every event is sent three times
    Dup,
    /// The order is shuffled, 256 requests at a time
    Reorder,
    /// Each event is followed by a forged one
    Forge,
}

/// Requests under way at once.
const CONCURRENCY: usize = 16;
const COPIES: usize = 3;
/// How many requests are mixed with each other when the order is shuffled.
const SHUFFLED: usize = 256;

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    if args.list {
        list(args.json);
        return Ok(ExitCode::SUCCESS);
    }
    let config = context.load_sources()?.config;
    let source = choose(&config, args.target.source.as_deref())?;
    let client = args.target.client(&config, source)?;
    let body = args.body.as_deref().map(read).transpose()?;
    let mut requests = Requests { args: &args, source, body, written: 0, ready: VecDeque::new() };
    let progress = Progress::new();
    let mut tally = Tally::default();
    let (mut sent, total) = (0, requests.total());
    loop {
        // Signed only now: some providers' signatures are good for seconds.
        let (forged, group) = requests.next_group(now())?;
        if group.is_empty() {
            break;
        }
        for (forged, answer) in forged.into_iter().zip(deliver(&client, group).await) {
            let answer = answer?;
            if args.json {
                json_out(&answer.json());
            } else if total == 1 {
                line_out(&answer.sentence());
            }
            tally.add(forged, &answer);
            sent += 1;
        }
        progress.show(&format!("{sent} of {total}"));
    }
    drop(progress);
    if !args.json && total > 1 {
        tally.print();
    }
    Ok(if tally.wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list(as_json: bool) {
    for (name, _) in fixtures::STRIPE {
        if as_json {
            json_out(&serde_json::json!({ "type": name }));
        } else {
            line_out(name);
        }
    }
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("can't read {}", file.display()))
}

async fn deliver(client: &TestClient, group: Vec<Signed>) -> Vec<anyhow::Result<TestAnswer>> {
    futures_util::future::join_all(group.into_iter().map(|signed| client.deliver(signed))).await
}

/// Everything to be sent, in the order of sending. Only the next few are held.
struct Requests<'a> {
    args: &'a Args,
    source: &'a Source,
    /// Somebody's own.
    body: Option<Vec<u8>>,
    /// How many of the events.
    written: u32,
    ready: VecDeque<SignedRequest>,
}

/// Not signed yet. Copies are of one draft.
struct SignedRequest {
    draft: Arc<Draft>,
    forged: bool,
}

impl Requests<'_> {
    fn has(&self, chaos: Chaos) -> bool {
        self.args.chaos.contains(&chaos)
    }

    fn copies(&self) -> usize {
        if self.has(Chaos::Dup) { COPIES } else { 1 }
    }

    fn total(&self) -> usize {
        self.args.count as usize * (self.copies() + usize::from(self.has(Chaos::Forge)))
    }

    /// The next that go together, signed at this time, and which of them are forged; none at the end.
    fn next_group(&mut self, at: Time) -> anyhow::Result<(Vec<bool>, Vec<Signed>)> {
        if self.ready.len() < CONCURRENCY {
            self.write()?;
        }
        let group = self.ready.drain(..CONCURRENCY.min(self.ready.len()));
        let sign = |request: SignedRequest| {
            let signed = self.source.scheme.sign(Draft::clone(&request.draft), at)?;
            Ok((request.forged, if request.forged { forge(signed) } else { signed }))
        };
        group.map(sign).collect()
    }

    /// Writes the next that may be mixed with each other.
    fn write(&mut self) -> anyhow::Result<()> {
        let enough = if self.has(Chaos::Reorder) { SHUFFLED } else { CONCURRENCY };
        while self.ready.len() < enough && self.written < self.args.count {
            let draft = Arc::new(self.draft(self.written)?);
            let request = |forged| SignedRequest { draft: Arc::clone(&draft), forged };
            self.ready.extend((0..self.copies()).map(|_| request(false)));
            if self.has(Chaos::Forge) {
                self.ready.push_back(request(true));
            }
            self.written += 1;
        }
        if self.has(Chaos::Reorder) {
            shuffle(self.ready.make_contiguous());
        }
        Ok(())
    }

    fn draft(&self, n: u32) -> anyhow::Result<Draft> {
        let kind = self.args.event_type.clone().unwrap_or_default();
        if let Some(body) = &self.body {
            return test_event::renewed(body, kind, n);
        }
        let drafted = test_event::sample(self.source.provider.about(), &kind, self.args.order.as_deref(), n);
        drafted.map_err(|error| match likely(&kind) {
            Some(meant) => anyhow::anyhow!("{error:#}. Did you mean {meant}?"),
            None => error,
        })
    }
}

/// The built-in type that is written most alike, if one is.
fn likely(kind: &str) -> Option<&'static str> {
    const ALIKE: f64 = 0.8;
    let alike = |name: &str| strsim::jaro_winkler(kind, name).max(strsim::normalized_levenshtein(kind, name));
    let names = fixtures::STRIPE.iter().map(|(name, _)| (alike(name), *name));
    let best = names.max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(alike, _)| *alike > ALIKE).map(|(_, name)| name)
}

/// The same request with a changed body: the signature no longer fits.
fn forge(mut signed: Signed) -> Signed {
    match signed.body.iter().rposition(|byte| *byte == b'}') {
        Some(end) => signed.body.splice(end..end, *b",\"forged\":true").for_each(drop),
        None => signed.body.push(b'!'),
    }
    signed
}

fn shuffle(requests: &mut [SignedRequest]) {
    for n in (1..requests.len()).rev() {
        requests.swap(n, (u64::from_le_bytes(token::bytes()) % (n as u64 + 1)) as usize);
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
    fn add(&mut self, forged: bool, answer: &TestAnswer) {
        match (answer.status, answer.outcome.as_str()) {
            (200..=299, "duplicate") => self.duplicates += 1,
            (200..=299, _) => self.accepted += 1,
            (503, _) => self.asked_to_come_again += 1,
            _ => self.refused += 1,
        }
        let taken = answer.status < 300;
        if taken == forged {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load;

    const TIME: Time = Time::from_seconds(1_780_000_000);

    #[derive(clap::Parser)]
    struct Typed {
        #[command(flatten)]
        args: Args,
    }

    /// What would be sent for these words to a source of Paddle, in its groups: event id, time of signing, forged or not.
    fn groups(words: &str, at_most: usize) -> Vec<Vec<(String, i64, bool)>> {
        let typed = <Typed as clap::Parser>::parse_from(format!("trigger x {words}").split(' '));
        let text = "[[source]]\nname = \"p\"\nprovider = \"paddle\"\nsecrets = [\"pdl_ntfset_1\"]\n";
        let config = load(Path::new("sekisho.toml"), text, std::iter::empty()).unwrap().config;
        let args = &typed.args;
        let mut requests =
            Requests { args, source: &config.sources[0], body: None, written: 0, ready: VecDeque::new() };
        let mut groups = Vec::new();
        for n in 0..at_most {
            let (forged, group) = requests.next_group(TIME.plus_ms(n as i64 * 1_000)).unwrap();
            if group.is_empty() {
                break;
            }
            assert!(group.len() <= CONCURRENCY && requests.ready.len() <= SHUFFLED + COPIES);
            let seen = |(signed, forged): (&Signed, bool)| {
                let body: serde_json::Value = serde_json::from_slice(&signed.body).unwrap();
                let header = &signed.headers.iter().find(|(name, _)| name == "paddle-signature").unwrap().1;
                let seconds = header.strip_prefix("ts=").unwrap().split(';').next().unwrap();
                assert_eq!(body["forged"] == true, forged);
                (body["event_id"].as_str().unwrap().to_owned(), seconds.parse().unwrap(), forged)
            };
            groups.push(group.iter().zip(forged).map(seen).collect());
        }
        groups
    }

    #[test]
    fn h6_each_request_is_signed_when_it_is_sent_and_few_are_held() {
        let signed = groups("--count 1000000", 40);
        assert_eq!(signed.len(), 40, "a million take no longer to begin with than one");
        for (n, group) in signed.iter().enumerate() {
            assert!(group.iter().all(|(_, seconds, _)| *seconds == TIME.seconds() + n as i64));
        }
    }

    #[test]
    fn h6_a_slip_in_a_type_is_answered_with_the_type_that_was_meant() {
        assert_eq!(likely("payment_intent.succeded"), Some("payment_intent.succeeded"));
        assert_eq!(likely("charge.refund"), Some("charge.refunded"));
        assert_eq!(likely("zzz"), None);
    }

    #[test]
    fn h6_trouble_reaches_every_event_once() {
        for (words, copies, forgeries) in [
            ("--count 1", 1, 0),
            ("--count 300 --chaos dup,reorder,forge", 3, 1),
            ("--count 50 --chaos forge", 1, 1),
        ] {
            let all: Vec<_> = groups(words, usize::MAX).concat();
            let mut counts = std::collections::BTreeMap::<_, (usize, usize)>::new();
            for (id, _, forged) in &all {
                let count = counts.entry(id).or_default();
                if *forged { count.1 += 1 } else { count.0 += 1 }
            }
            assert!(counts.values().all(|count| *count == (copies, forgeries)), "{words}");
            let events = words.split(' ').nth(1).unwrap().parse().unwrap();
            assert_eq!((counts.len(), all.len()), (events, events * (copies + forgeries)), "{words}");
        }
        let in_order = |words: &str| {
            let ids: Vec<_> = groups(words, usize::MAX).concat().into_iter().map(|(id, ..)| id).collect();
            let number = |id: &String| id.rsplit('n').next().unwrap().parse::<u32>().unwrap();
            ids.iter().map(number).is_sorted()
        };
        assert!(in_order("--count 300 --chaos dup,forge") && !in_order("--count 300 --chaos reorder"));
    }
}
