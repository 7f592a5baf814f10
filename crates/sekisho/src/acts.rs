//! What is done beside settling: redo or put aside what failed, settle past events again, close a breaker, tell people.
//! API and CLI write here and nowhere else.
//!
//! An order ([`DeadLetterSelection`], [`Replay`]) is plain data, the same over HTTP as in process, so both ways do the same. A dry run
//! answers what would happen and changes nothing. An order that selects nothing is refused, never taken for "all"; one
//! that selects much is bounded by [`SELECT_MAX`]. Each act is audited by the store in the act's own transaction.

mod all_pages;
mod api_key;
mod audit;
mod books;
mod breaker;
mod dead;
mod decided;
mod deletion;
mod directory;
mod dossier;
mod fields;
mod forecast;
mod import;

mod login;
mod look_up;
mod notices;
mod password;
mod payment;
mod reminders;
mod replay;
mod request;
mod suppressions;
mod typed_state;
mod users;

use std::collections::BTreeMap;
use std::fmt;

use sekisho_core::audit::{Entry, Role};
use sekisho_core::change::Act;
use sekisho_core::delivery::Route;
use sekisho_core::notification::{House, Rule};
use sekisho_core::settlement::References;
use sekisho_core::source_name::Origin;
use sekisho_core::{Seq, Time};
use sekisho_store::Store;
use serde_json::Value;

use crate::config::Config;
use crate::token;

pub use api_key::{ApiKey, Made, NewKey, create_key, find_key, list_keys, revoke_key, strongest_key};
pub use audit::{Verified, each_link, note_test, verify_audit};
pub use books::{BooksReport, Difference, Warning, check_books, differences};
pub use breaker::{Reset, Resumed, reset, resume};
pub use dead::{
    DeadLetterSelection, DeadQuery, DeadReport, discard, find_letter, retry, to_discard, to_retry,
};
pub use deletion::{delete_billing, delete_member};
pub use directory::{
    NAMED_MAX, check_member, check_tenant, create_member, every_of_id, find_member as find_member_state,
    several, view as member_view, view_whole as member_view_whole,
};
pub use dossier::{Dossier, History, dossier, history};
pub use fields::{FieldError, Fields};
pub use forecast::{NoticeForecast, RouteForecast, Unanswered};
pub use import::{IMPORT_PROBLEMS_MAX, IMPORT_ROWS_MAX, Import, Imported, import};
pub use login::{Entry as LoginEntry, Miss, Ticket, enter, is_known_device, note_miss};
pub use look_up::{billing_state, payment_state, payments_by_reference};
pub use notices::{
    NoticePage, NoticeQuery, mailed, notice, offices, parties, post_notices, reminders, resend,
};
pub use payment::create_payment;
pub use reminders::{Remind, RemindReport, run_reminders, summary as reminders_summary};
pub use replay::{EventQuery, Replay, ReplayReport, event_status, replay, to_replay};
pub use request::{Answered, Request};
pub use suppressions::{Turned, release, suppress, suppression, suppressions, view as suppression_view};
pub use typed_state::load;
pub use users::{
    Known as KnownUser, Visitor, change_password, change_user, end_session, find_invite, find_session,
    first_invite, invite, is_disabled, join, open_invites, users, withdraw_invite,
};

/// Most dead letters or events that one order touches.
pub const SELECT_MAX: usize = 100_000;
/// Most letters of a reason.
pub const REASON_MAX: usize = 500;

/// Why an order was not carried out.
#[derive(Debug)]
pub enum Refusal {
    /// It makes no sense; says what to write instead.
    Invalid(String),
    /// Some of its fields do: what is wrong with each.
    Fields(Vec<FieldError>),
    /// What it names is not there.
    Missing(String),
    /// It contradicts what is there already.
    Conflict(String),
    /// It reaches for what is another's.
    Forbidden(FieldError),
    /// Not now: in so many seconds.
    RetryLater {
        detail: String,
        seconds: u64,
    },
    Store(sekisho_store::Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(detail)
            | Self::Missing(detail)
            | Self::Conflict(detail)
            | Self::RetryLater { detail, .. } => f.write_str(detail),
            Self::Forbidden(error) => error.fmt(f),
            Self::Fields(errors) => {
                let errors: Vec<_> = errors.iter().map(FieldError::to_string).collect();
                f.write_str(&errors.join("; "))
            }
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Invalid(_)
            | Self::Fields(_)
            | Self::Missing(_)
            | Self::Conflict(_)
            | Self::Forbidden(_)
            | Self::RetryLater { .. } => None,
            Self::Store(error) => std::error::Error::source(error),
        }
    }
}

impl From<sekisho_store::Error> for Refusal {
    fn from(error: sekisho_store::Error) -> Self {
        Self::Store(error)
    }
}

pub type Result<T> = std::result::Result<T, Refusal>;

/// What of the configuration an order may need.
#[derive(Default)]
pub struct Known {
    pub routes: Vec<Route>,
    /// Who is told what, and who speaks.
    pub rules: Vec<Rule>,
    pub house: House,
    /// What is behind each source, and where its events say what they are for.
    pub origins: BTreeMap<String, Origin>,
    pub references: References,
    /// The one account that a source takes, by its name.
    pub accounts: BTreeMap<String, String>,
    /// Names of the sources that events come from.
    pub sources: Vec<String>,
    /// Names of the keys to the API that stand in the configuration.
    pub keys: Vec<String>,
}

impl Known {
    pub fn of(config: &Config) -> Self {
        let sources = config.sources.iter().map(|source| source.name.to_string());
        Self {
            routes: config.routes.iter().map(|route| route.route.clone()).collect(),
            rules: config.rules(),
            house: config.notifications.house.clone(),
            origins: config.origins(),
            references: config.references.clone(),
            accounts: config.accounts(),
            sources: sources.collect(),
            keys: config.keys.iter().map(|key| key.name.clone()).collect(),
        }
    }
}

/// Who acts, and when.
pub struct Actor<'a> {
    pub name: &'a str,
    pub role: Role,
    /// The one tenant whose things it may touch, if it may not touch all.
    pub tenant: Option<&'a str>,
    pub at: Time,
}

impl Actor<'_> {
    /// Whether it may touch what belongs to this tenant; `None` is nobody's.
    fn may_touch(&self, tenant: Option<&str>) -> bool {
        self.tenant.is_none() || self.tenant == tenant
    }

    /// What they did, for the audit log.
    fn entry(&self, tenant: Option<&str>, action: &str, target: (&str, &str), details: Value) -> Entry {
        Entry {
            at: self.at,
            actor: Some(self.name.to_owned()),
            role: Some(self.role.name().to_owned()),
            action: action.to_owned(),
            target: (target.0.to_owned(), target.1.to_owned()),
            tenant: tenant.or(self.tenant).map(str::to_owned),
            event: None,
            details: details.to_string(),
        }
    }

    /// What they do by hand, for the store to do and to note.
    fn act(&self, reason: &str) -> Act {
        Act { at: self.at, actor: self.name.to_owned(), role: self.role, reason: reason.to_owned() }
    }
}

/// An event by Sekisho's id, or by its provider's in any of these sources.
pub async fn find_event(
    store: &dyn Store,
    sources: &[String],
    id: &str,
) -> sekisho_store::Result<Option<Seq>> {
    if let Ok(seq) = id.parse::<Seq>()
        && store.find_event(seq).await?.is_some()
    {
        return Ok(Some(seq));
    }
    for source in sources {
        if let Some(seq) = store.find_seq(source, id).await? {
            return Ok(Some(seq));
        }
    }
    Ok(None)
}

/// Whether an order says in exactly one way what it is about: by ids, by a filter, or all.
fn check_selection(ids: &[String], is_filtered: bool, all: bool) -> Result<()> {
    let ways = usize::from(!ids.is_empty()) + usize::from(is_filtered) + usize::from(all);
    match ways {
        0 => Err(Refusal::Invalid("specify ids, a filter or `all` (--all)".into())),
        1 if ids.len() > SELECT_MAX => {
            Err(Refusal::Invalid(format!("{} ids are too many; at most {SELECT_MAX}", ids.len())))
        }
        1 => Ok(()),
        _ => Err(Refusal::Invalid("ids, a filter and all exclude each other: write one of them".into())),
    }
}

/// Where a look ends that found this as the newest, whichever clock stamped it.
fn just_after(newest: Time) -> Time {
    newest.plus_ms(1)
}

fn earlier(own: Option<Time>, until: Time) -> Option<Time> {
    Some(own.map_or(until, |own| own.min(until)))
}

/// An id nobody has: the moment, then chance. Two that meet all the same find each other's version in the way.
pub fn fresh(at: Time) -> Seq {
    let chance = u32::from_be_bytes(token::bytes());
    Seq::from_i64(Seq::floor_of(at).as_i64() | i64::from(chance >> 10))
}

/// How often others may be faster before an order is given up.
const TRIES: usize = 10;

fn contended() -> Refusal {
    Refusal::Conflict("the record was changed concurrently too often; try again".into())
}

fn check_reason(reason: &str) -> Result<String> {
    let reason = reason.trim();
    if reason.chars().count() > REASON_MAX {
        return Err(Refusal::Invalid(format!("the reason is longer than {REASON_MAX} characters")));
    }
    Ok(reason.to_owned())
}

#[cfg(test)]
mod tests;
