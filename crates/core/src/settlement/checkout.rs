//! Checkout Sessions: who may make them, when the next try of a payment may be asked for, and what one run of a job does.
//!
//! A try is a fact of its payment before the provider is asked, and so is every generation of its idempotency key. Until it is
//! known what became of a try, no other is begun: somebody might pay both.

mod next;

use super::decide::{Aggregate, Cause, Input};
use super::payment::{
    CheckoutSession, Derived, Facts, PaymentStatus, SessionGeneration, SessionPlace, SessionTry, SessionWish,
    TRIES_MAX, TryFate,
};
use super::reading::{Reading, Realm, own_name};
use crate::id::Seq;
use crate::job::fetch::ApiProvider;
use crate::job::{CheckoutCall, CheckoutStep, Lane, NewJob, Task};
use crate::money::Currency;
use crate::provider::encode_hex;
use crate::time::{DAY_MS, Time};

pub use next::{CreateStep, MadeSession, another, next};

/// The name of the session's metadata that says which try of which payment it is.
pub const TRY: &str = "sekisho_checkout";

/// The provider takes no session that ends sooner: half an hour, and a minute for the way there.
const OPEN_MIN_MS: i64 = 31 * 60_000;
/// Nor one that ends later than a day from when it is made.
const OPEN_MAX_MS: i64 = DAY_MS - 60_000;
/// Ways to pay that one may name.
pub const METHODS_MAX: usize = 20;
/// Characters of an idempotency key beside its first.
const KEY_HEX: usize = 40;

/// What the operator allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckoutPolicy {
    /// Whose `api_key` makes sessions if a request names none.
    pub source: Option<String>,
    pub sources: Vec<CheckoutSource>,
    /// After so many failures a person should help.
    pub retries: u32,
    /// Ways to pay; none is the provider's choice.
    pub methods: Vec<String>,
}

/// A source, as far as sessions can be made with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckoutSource {
    pub name: String,
    /// Whether its provider has Checkout Sessions.
    pub can_check_out: bool,
    pub has_key: bool,
    /// Which mode its key is for, if it says so.
    pub livemode: Option<bool>,
}

impl Default for CheckoutPolicy {
    fn default() -> Self {
        Self { source: None, sources: Vec::new(), retries: 3, methods: Vec::new() }
    }
}

impl CheckoutPolicy {
    /// The source that makes sessions of a mode: the one that is named, or the operator's choice.
    pub fn source(&self, named: Option<&str>, livemode: bool) -> Result<&str, CheckoutRefusal> {
        let name = named.or(self.source.as_deref()).ok_or(CheckoutRefusal::NoSource)?;
        let unknown = || CheckoutRefusal::UnknownSource {
            name: name.to_owned(),
            known: self.sources.iter().filter(|one| one.can_check_out).map(|one| one.name.clone()).collect(),
        };
        let found = self.sources.iter().find(|one| one.name == name).ok_or_else(unknown)?;
        if !found.can_check_out {
            return Err(CheckoutRefusal::NoSessions(name.to_owned()));
        }
        if !found.has_key {
            return Err(CheckoutRefusal::NoKey(name.to_owned()));
        }
        if found.livemode.is_some_and(|mode| mode != livemode) {
            return Err(CheckoutRefusal::OtherMode { name: name.to_owned(), livemode });
        }
        Ok(&found.name)
    }
}

/// Why no session is made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckoutRefusal {
    #[error("no source makes sessions: write [checkout] source, or name one in the request")]
    NoSource,
    #[error("there is no source {name:?}; {}", known_sources(.known))]
    UnknownSource { name: String, known: Vec<String> },
    #[error("the provider of the source {0:?} has no Checkout Sessions; name a source of Stripe's")]
    NoSessions(String),
    #[error(
        "the source {0:?} has no api_key, and sessions are made with it: write api_key in its [[source]]"
    )]
    NoKey(String),
    #[error("the api_key of the source {name:?} is for {} payments, and this one is {}", mode(!.livemode), mode(*.livemode))]
    OtherMode { name: String, livemode: bool },
    #[error("nothing is to be paid for it")]
    NothingToPay,
    #[error("it was paid")]
    Paid,
    #[error("its customer has paid, or is paying elsewhere: whether the money comes is not known yet")]
    UnderWay,
    #[error("{TRIES_MAX} sessions were made for it, which is the most; a person should help the customer")]
    TooMany,
}

const fn mode(livemode: bool) -> &'static str {
    if livemode { "live" } else { "test" }
}

fn known_sources(known: &[String]) -> String {
    if known.is_empty() {
        "none can make sessions".to_owned()
    } else {
        format!("known: {}", known.join(", "))
    }
}

/// Which try somebody gets who asks for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryChosen {
    /// This one goes on: it is open, or about to be.
    Same(u32),
    /// The next. What is open now is expired first.
    Next(u32),
}

impl TryChosen {
    pub const fn number(self) -> u32 {
        match self {
            Self::Same(number) | Self::Next(number) => number,
        }
    }
}

/// Which try somebody gets. `after` is the last one that is of no use to them: a second click, or another tab, knows of an
/// older one and gets what the first click got.
pub fn choose(facts: &Facts, after: u32) -> Result<TryChosen, CheckoutRefusal> {
    let derived = Derived::of(facts);
    if derived.received > 0 || derived.status == PaymentStatus::Paid {
        return Err(CheckoutRefusal::Paid);
    }
    let is_through = facts.sessions.values().any(|session| facts.may_bring_money(session));
    if is_through || derived.status == PaymentStatus::Processing {
        return Err(CheckoutRefusal::UnderWay);
    }
    let Some((number, newest)) = facts.newest_try() else { return Ok(TryChosen::Next(1)) };
    match facts.fate(newest) {
        TryFate::Waiting | TryFate::Asked => return Ok(TryChosen::Same(number)),
        TryFate::Open if number > after && newest.closing.is_none() => return Ok(TryChosen::Same(number)),
        TryFate::Open | TryFate::Complete | TryFate::Failed | TryFate::Expired | TryFate::GaveUp => {}
    }
    if number >= TRIES_MAX { Err(CheckoutRefusal::TooMany) } else { Ok(TryChosen::Next(number + 1)) }
}

/// How a session is asked for that is to stay open as long as the places are held.
pub(super) fn generation(until: Time, at: Time) -> SessionGeneration {
    let expires_at = until.max(at.plus_ms(OPEN_MIN_MS)).min(at.plus_ms(OPEN_MAX_MS));
    SessionGeneration { expires_at, failed_at: None }
}

/// What a payment is told of a try, by its own id.
pub fn told(payment: &str, livemode: Option<bool>, number: u32, said: SessionTry) -> Facts {
    Facts {
        livemode,
        names: [own_name(livemode, payment)].into(),
        session_tries: [(number, said)].into(),
        ..Facts::default()
    }
}

/// The same of a session that the app made itself.
pub fn told_session(payment: &str, livemode: bool, number: u32, wish: SessionWish, session: &str) -> Facts {
    let (asked_at, place) = (Some(wish.at), SessionPlace::default());
    let said = SessionTry {
        wish,
        asked_at,
        sessions: [(session.to_owned(), place)].into(),
        ..SessionTry::default()
    };
    let realm = Realm { provider: ApiProvider::Stripe.name(), account: None, livemode: Some(livemode) };
    let mut facts = told(payment, Some(livemode), number, said);
    facts.names.insert(realm.name(session));
    facts.realms.insert(realm.to_string());
    facts.sessions.insert(session.to_owned(), CheckoutSession::default());
    facts
}

/// The name under which the payment of a session is found.
pub fn session_name(session: &str, livemode: bool) -> String {
    let realm = Realm { provider: ApiProvider::Stripe.name(), account: None, livemode: Some(livemode) };
    Facts::full(&realm.name(session))
}

/// Whether this is the id of a session of such a mode, as its provider writes them.
pub fn is_session_id(text: &str, livemode: bool) -> bool {
    let rest = text.strip_prefix(if livemode { "cs_live_" } else { "cs_test_" });
    rest.is_some_and(|rest| {
        (1..=200).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Whether a provider may call a way to pay so.
pub fn is_method(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=50).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// The calls that a try asks for now, each with what makes it one thing inside its payment.
pub(super) fn calls<'f>(
    facts: &'f Facts,
    number: u32,
    one: &'f SessionTry,
) -> impl Iterator<Item = (String, CheckoutCall)> + 'f {
    let call = move |step| CheckoutCall {
        provider: ApiProvider::Stripe,
        livemode: facts.livemode,
        payment: facts.ours.keys().next().or(facts.born.as_ref()).cloned().unwrap_or_default(),
        number,
        step,
    };
    let asked = (facts.fate(one) == TryFate::Asked).then(|| one.newest()).flatten();
    let create = asked.map(move |(generation, _)| {
        (format!("session/{number}/{generation}"), call(CheckoutStep::Create { generation }))
    });
    let open = one.closing.is_some().then(|| facts.open_of(one)).into_iter().flatten();
    let expire = open.map(move |session| {
        (format!("expire/{session}"), call(CheckoutStep::Expire { session: session.clone() }))
    });
    create.into_iter().chain(expire)
}

impl CheckoutCall {
    pub fn realm(&self) -> Realm {
        Realm { provider: self.provider.name(), account: None, livemode: self.livemode }
    }

    /// The name of the payment that it is for.
    pub fn payment_name(&self) -> String {
        Facts::full(&own_name(self.livemode, &self.payment))
    }

    pub fn job(&self, id: Seq, at: Time) -> NewJob {
        let key = match &self.step {
            CheckoutStep::Create { generation } => {
                format!("session/{}/{}/{generation}", self.payment, self.number)
            }
            CheckoutStep::Expire { session } => format!("expire/{}", self.realm().name(session)),
        };
        NewJob {
            id,
            key: Some(key),
            lane: Lane::checkout(self.provider.name()),
            fifo: None,
            due_at: at,
            event: None,
            task: Task::Checkout(Box::new(self.clone())),
            owner: None,
        }
    }

    /// What stands in the session's metadata: which try it is, whatever its key was.
    pub fn label(&self) -> String {
        format!("{}/{}", self.payment, self.number)
    }

    /// The same for ever, whoever asks: what the provider knows this very call by.
    pub fn idempotency_key(&self) -> String {
        let what = match &self.step {
            CheckoutStep::Create { generation } => format!("create\0{generation}"),
            CheckoutStep::Expire { session } => format!("expire\0{session}"),
        };
        let what = [&*self.realm().to_string(), &self.label(), &what].join("\0");
        let hex = encode_hex(crate::provider::sha256(what.as_bytes()));
        format!("s{}", &hex[..KEY_HEX])
    }

    /// Something that was learnt of its try, as an input to be decided.
    pub fn input(&self, seq: Seq, said: SessionTry) -> Input {
        let facts = told(&self.payment, self.livemode, self.number, said);
        Input { seq, reading: Reading { payment: Some(facts), ..Reading::default() }, cause: Cause::system() }
    }
}

/// What is sold, as a session says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoldItem<'f> {
    pub amount: i64,
    pub currency: Currency,
    pub description: Option<&'f str>,
    pub reference: Option<&'f str>,
}

/// What the app asks its customer to pay; `None` where it did not say how much.
pub fn sold(facts: &Facts) -> Option<SoldItem<'_>> {
    let ours = facts.ours.values().next()?;
    Some(SoldItem {
        amount: ours.amount,
        currency: ours.currency?,
        description: ours.description.as_deref(),
        reference: ours.reference.as_deref(),
    })
}

#[cfg(test)]
mod tests;
