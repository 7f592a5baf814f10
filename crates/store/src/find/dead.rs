//! Dead letters: which are meant, what is known of each, and what many have in common.

use std::collections::BTreeMap;

use sekisho_core::event::About;
use sekisho_core::job::{Class, DeadReason, Lane, Task};
use sekisho_core::{Seq, Time, money};
use serde::{Deserialize, Serialize};

use super::condition::Demand;
use super::matches_word;
use super::row_reader::RowReader;

/// Which dead letters. All conditions must hold; none means all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadFilter {
    pub source: Option<String>,
    /// Exact, or a prefix when it ends in `*`.
    pub event_type: Option<String>,
    pub reason: Option<String>,
    pub class: Option<Class>,
    pub lane: Option<Lane>,
    pub event: Option<Seq>,
    /// When it died: not before, and before.
    pub since: Option<Time>,
    pub until: Option<Time>,
    /// Only lower numbers: the cursor of a page.
    pub before: Option<Seq>,
    pub limit: usize,
}

impl DeadFilter {
    /// Which part of the dead letters is looked at.
    pub(crate) fn reach(&self) -> impl Iterator<Item = Demand> {
        let before = self.before.map(|before| Demand::Below("dead.job", before.as_i64()));
        let event = self.event.map(|event| Demand::Number("dead.event", event.as_i64()));
        [before, event].into_iter().flatten()
    }

    /// Which of them are meant.
    pub(crate) fn narrow(&self) -> impl Iterator<Item = Demand> {
        let text = |column, wanted: &Option<String>| Some(Demand::Text(column, wanted.clone()?));
        [
            self.since.map(|since| Demand::AtLeast("dead.at", since.ms())),
            self.until.map(|until| Demand::Below("dead.at", until.ms())),
            text("dead.reason", &self.reason),
            self.class.map(|class| Demand::Text("dead.class", class.name().to_owned())),
            self.lane.as_ref().map(|lane| Demand::Text("dead.lane", lane.0.to_string())),
            text("event.source", &self.source),
            self.event_type.clone().map(|wanted| Demand::Word("event.type", wanted)),
        ]
        .into_iter()
        .flatten()
    }

    /// What all conditions mean, without a database.
    pub(crate) fn matches(&self, letter: &DeadLetter) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let kind = self.event_type.as_deref().is_none_or(|wanted| {
            letter.event_type.as_deref().is_some_and(|found| matches_word(wanted, found))
        });
        kind && is(&self.source, letter.source.as_deref())
            && is(&self.reason, Some(&letter.death.reason))
            && self.class.is_none_or(|class| class == letter.death.class)
            && self.lane.as_ref().is_none_or(|lane| *lane == letter.lane)
            && self.event.is_none_or(|event| letter.event == Some(event))
            && self.since.is_none_or(|since| letter.at >= since)
            && self.until.is_none_or(|until| letter.at < until)
            && self.before.is_none_or(|before| letter.job < before)
    }
}

/// Work that failed for good and waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    pub job: Seq,
    pub task: Task,
    pub lane: Lane,
    pub fifo: Option<String>,
    pub attempts: i32,
    pub crashes: i32,
    pub death: DeadReason,
    pub at: Time,
    /// What it is about, as far as that is still kept: number, provider's id, type and source.
    pub event: Option<Seq>,
    pub event_id: Option<String>,
    pub event_type: Option<String>,
    pub source: Option<String>,
    /// What its event turned out to be about, and what the payment is worth.
    pub about: About,
    pub stake: Option<Stake>,
}

impl DeadLetter {
    /// What [`DeadLetter::read`] reads, in its order.
    pub(crate) const COLUMNS: &str =
        "dead.job, dead.kind, dead.payload, dead.lane, dead.fifo, dead.attempts, dead.crashes,
        dead.class, dead.reason, dead.error, dead.at, dead.event, event.event_id, event.type, event.source,
        outcome.payment, outcome.billing, outcome.tenant, state.id, state.amount, state.currency";

    pub(crate) fn read<R: RowReader>(row: &mut R) -> Result<Self, R::Error> {
        Ok(Self {
            job: Seq::from_i64(row.integer()?),
            task: Task::parse(&row.text()?, &row.text()?).ok_or_else(|| row.unreadable("kind"))?,
            lane: Lane(row.text()?.into()),
            fifo: row.optional_text()?,
            attempts: row.small_integer()?,
            crashes: row.small_integer()?,
            death: read_reason(row)?,
            at: Time::from_ms(row.integer()?),
            event: row.optional_integer()?.map(Seq::from_i64),
            event_id: row.optional_text()?,
            event_type: row.optional_text()?,
            source: row.optional_text()?,
            about: About {
                payment: row.optional_text()?,
                billing: row.optional_text()?,
                tenant: row.optional_text()?,
            },
            stake: Stake::of(row.optional_text()?, row.optional_integer()?, row.optional_text()?),
        })
    }
}

/// Class, reason and error.
pub(crate) fn read_reason<R: RowReader>(row: &mut R) -> Result<DeadReason, R::Error> {
    Ok(DeadReason {
        class: Class::parse(&row.text()?).ok_or_else(|| row.unreadable("class"))?,
        reason: row.text()?,
        error: row.text()?,
    })
}

/// A payment that hangs on a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stake {
    pub payment: String,
    pub amount: i64,
    pub currency: String,
}

impl Stake {
    /// A payment whose amount nobody said yet is worth nothing that could be named.
    pub(crate) fn of(payment: Option<String>, amount: Option<i64>, currency: Option<String>) -> Option<Self> {
        Some(Self { payment: payment?, amount: amount?, currency: currency? })
    }
}

/// Dead letters that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadGroup {
    pub reason: String,
    pub class: Class,
    pub lane: Lane,
    pub count: usize,
    /// When the first and the last of them died.
    pub oldest: Time,
    pub newest: Time,
    /// What the payments are worth that they are about, by currency. A payment counts once, however many letters.
    pub at_risk: Vec<Risk>,
}

/// Money of one currency that hangs on dead letters, in its smallest unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Risk {
    pub currency: String,
    pub amount: i64,
    pub payments: usize,
}

impl DeadGroup {
    /// Letters by reason, lane and class, in that order.
    pub fn all<'a>(letters: impl IntoIterator<Item = &'a DeadLetter>) -> Vec<Self> {
        let mut groups: BTreeMap<_, Vec<&DeadLetter>> = BTreeMap::new();
        for letter in letters {
            let key = (&letter.death.reason, &letter.lane, letter.death.class.name());
            groups.entry(key).or_default().push(letter);
        }
        groups.into_values().filter_map(|letters| Self::one(&letters)).collect()
    }

    fn one(letters: &[&DeadLetter]) -> Option<Self> {
        let first = letters.first()?;
        let times = || letters.iter().map(|letter| letter.at);
        Some(Self {
            reason: first.death.reason.clone(),
            class: first.death.class,
            lane: first.lane.clone(),
            count: letters.len(),
            oldest: times().min()?,
            newest: times().max()?,
            at_risk: Risk::of(letters.iter().filter_map(|letter| letter.stake.as_ref())),
        })
    }
}

impl Risk {
    fn of<'a>(stakes: impl Iterator<Item = &'a Stake>) -> Vec<Self> {
        let mut payments: BTreeMap<&str, BTreeMap<&str, i64>> = BTreeMap::new();
        for stake in stakes {
            payments.entry(&stake.currency).or_default().insert(&stake.payment, stake.amount);
        }
        let risk = |(currency, amounts): (&str, BTreeMap<_, i64>)| Self {
            currency: currency.to_owned(),
            amount: money::sum(amounts.values().copied()),
            payments: amounts.len(),
        };
        payments.into_iter().map(risk).collect()
    }
}
