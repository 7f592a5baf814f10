//! Checkout Sessions: asked for by apps and customers, one at a time. A try is a fact of its payment, committed with the job that
//! has it made and with the hold that is renewed for it.

use sekisho_core::Time;
use sekisho_core::actor::Actor;
use sekisho_core::reservation::{ReservationFacts, ReservationStatus};
use sekisho_core::settlement::checkout::{
    self, CheckoutRefusal, METHODS_MAX, TryChosen, is_method, is_session_id, session_name,
};
use sekisho_core::settlement::follow::{OrderPart, OrderPolicy, Renewal, view};
use sekisho_core::settlement::payment::{Derived, Facts, SessionTry, SessionWish, TRIES_MAX};
use sekisho_core::settlement::{Change, Input, Reading};
use sekisho_core::state::{Key, Kind, Loaded, Wanted};
use sekisho_store::Store;
use serde_json::Value;

use super::decided::{Prepared, decided};
use super::request::{Answered, OnceKey};
use super::reservation::{by, cause, is_text};
use crate::env::Env;
use crate::refusal::{Refusal, Result};
use crate::types::{FieldError, NewCheckout, ReservedCheckout};

const URL_MAX: usize = 2_000;

/// A session that somebody asks for.
#[derive(Clone, Debug)]
pub enum CheckoutRequest {
    /// A new one, or the one that is open. `after` is the last try that is of no use to whoever asks; an app that asks for
    /// something else than the open one offers gets another.
    Make { asked: ReservedCheckout, after: u32 },
    /// The app made one itself, and tells its id.
    Tell { session: String },
}

impl CheckoutRequest {
    /// What a body asks for.
    pub fn read(body: NewCheckout) -> Result<Self> {
        let NewCheckout { source, success_url, methods, session } = body;
        let is_other = source.is_some() || success_url.is_some() || methods.is_some();
        match session {
            Some(_) if is_other => {
                let detail = "a session that you made yourself stands alone; leave the other fields out";
                Err(Refusal::Fields(vec![FieldError::new("session", detail)]))
            }
            Some(session) => Ok(Self::Tell { session }),
            None => Ok(Self::Make { asked: ReservedCheckout { source, success_url, methods }, after: 0 }),
        }
    }
}

/// Reads what a session is to be like; `say` hears what is wrong with it.
pub(super) fn read_wish(
    asked: ReservedCheckout,
    within: &str,
    livemode: bool,
    policy: &OrderPolicy,
    actor: &Actor<'_>,
    say: &mut impl FnMut(&str, String),
) -> SessionWish {
    let source = policy.checkout.source(asked.source.as_deref(), livemode);
    if let Err(refusal) = &source {
        say(&format!("{within}source"), refusal.to_string());
    }
    let is_url = |url: &str| {
        is_text(url, URL_MAX)
            && url.is_ascii()
            && ["https://", "http://"].iter().any(|one| url.starts_with(one))
    };
    match &asked.success_url {
        Some(url) if !is_url(url) => {
            say(&format!("{within}success_url"), "expected an address that begins with https://".into());
        }
        None if policy.links.pages.is_none() => say(
            &format!("{within}success_url"),
            "expected the address that the customer comes back to, because [pages] url is empty".into(),
        ),
        Some(_) | None => {}
    }
    let methods = asked.methods.unwrap_or_else(|| policy.checkout.methods.clone());
    if methods.len() > METHODS_MAX || !methods.iter().all(|method| is_method(method)) {
        say(&format!("{within}methods"), "expected words such as card or konbini".into());
    }
    SessionWish {
        at: actor.at,
        by: by(actor),
        source: source.map(str::to_owned).unwrap_or_default(),
        success_url: asked.success_url,
        methods,
    }
}

/// A try that somebody waits for.
pub(super) fn asked(wish: SessionWish) -> SessionTry {
    SessionTry { asked_at: Some(wish.at), wish, ..SessionTry::default() }
}

/// Has a session made for a reservation, and its hold renewed; or says which one is open.
pub async fn check_out(
    store: &dyn Store,
    env: &Env,
    policy: &OrderPolicy,
    id: &str,
    order: &CheckoutRequest,
    request: Option<&OnceKey>,
    actor: &Actor<'_>,
) -> Result<Answered> {
    let key = Key::new(Kind::Reservation, id);
    let unknown = || Refusal::Missing(format!("no reservation has the id {id}"));
    let found = store.load(Vec::new(), vec![key.clone()]).await.map_err(Refusal::Store)?;
    let known = found.read::<ReservationFacts>(&key)?.ok_or_else(unknown)?.value;
    if !actor.may_touch(known.ours.tenant.as_deref()) {
        return Err(unknown());
    }
    let Some(payment) = known.ours.payment.clone() else {
        return Err(Refusal::Conflict(CheckoutRefusal::NothingToPay.to_string()));
    };
    let paid_by = Key::new(Kind::Payment, &*payment);
    let mut wanted = Wanted::keys([key.clone(), paid_by.clone()]);
    wanted.extend(Wanted::keys(request.map(OnceKey::key)));
    if let CheckoutRequest::Tell { session } = order {
        wanted.extend(Wanted::names([session_name(session, known.ours.livemode)]));
    }
    let prepare = |loaded: &Loaded| {
        if let Some(answered) = OnceKey::repeated(request, loaded)? {
            return Ok(Prepared::Answer(answered));
        }
        let known = loaded.read::<ReservationFacts>(&key)?.ok_or_else(unknown)?.value;
        let state = loaded.states.get(&paid_by).ok_or_else(unknown)?;
        let facts = Facts::parse(&state.facts).map_err(sekisho_store::Error::corrupt)?;
        may_be_paid(&known, policy, actor.at)?;
        let chosen = match order {
            CheckoutRequest::Make { asked, after } => make(&facts, &known, asked, *after, policy, actor)?,
            CheckoutRequest::Tell { session } => {
                let name = session_name(session, known.ours.livemode);
                if loaded.names.get(&name).is_some_and(|owner| *owner != paid_by) {
                    let detail = format!("{session} belongs to another payment");
                    return Err(Refusal::Conflict(detail));
                }
                tell(&facts, &known, session, actor)?
            }
        };
        let Said { number, facts: said, is_renewed } = match chosen {
            Chosen::Open(number) => {
                let answer = view::checkout(id, &payment, &facts, number);
                return Ok(Prepared::Answer(Answered { answer, repeated: false }));
            }
            Chosen::Said(said) => *said,
        };
        let until = actor.at.plus_ms(known.ours.hold_ms);
        let renewal = is_renewed.then(|| OrderPart::Renewal(Renewal { id: id.to_owned(), until }));
        let order = renewal.into_iter().collect();
        let reading = Reading { payment: Some(said), order, ..Reading::default() };
        let input = Input { seq: env.fresh_seq(actor.at), reading, cause: cause(actor) };
        Ok(Prepared::Decide(vec![input], (number, facts)))
    };
    let answer = |(number, facts): (u32, Facts), made: &Change| {
        if let Some((_, full)) = made.declined.first() {
            let seconds =
                full.free_at.map(|at| (at.ms() - actor.at.ms()).max(0).unsigned_abs().div_ceil(1_000));
            return Err(Refusal::Full { free: full.free, retry_after_seconds: seconds });
        }
        let after = match made.writes.iter().find(|write| write.key == paid_by) {
            Some(write) => Facts::parse(&write.facts).map_err(sekisho_store::Error::corrupt)?,
            None => facts,
        };
        let answer: Value = view::checkout(id, &payment, &after, number);
        let remembered = request.map(|request| request.write(&answer));
        Ok((Answered { answer, repeated: false }, remembered.into_iter().collect()))
    };
    decided(store, env, policy, actor.at, wanted, prepare, answer).await
}

fn may_be_paid(known: &ReservationFacts, policy: &OrderPolicy, at: Time) -> Result<()> {
    let detail = match known.status(at, policy.grace_ms) {
        ReservationStatus::Hold | ReservationStatus::Expired => return Ok(()),
        ReservationStatus::Cancelled => "the reservation was cancelled",
        ReservationStatus::Confirmed => "the reservation is confirmed; nothing is to be paid any more",
    };
    Err(Refusal::Conflict(detail.to_owned()))
}

/// What comes of asking.
enum Chosen {
    /// This try is open: nothing changes.
    Open(u32),
    Said(Box<Said>),
}

/// What a payment is told of a try.
struct Said {
    number: u32,
    facts: Facts,
    /// Whether the places are held anew.
    is_renewed: bool,
}

fn make(
    facts: &Facts,
    known: &ReservationFacts,
    order: &ReservedCheckout,
    after: u32,
    policy: &OrderPolicy,
    actor: &Actor<'_>,
) -> Result<Chosen> {
    let mut wrong = Vec::new();
    let mut say = |field: &str, detail: String| wrong.push(FieldError::new(field, detail));
    let wish = read_wish(order.clone(), "", known.ours.livemode, policy, actor, &mut say);
    if !wrong.is_empty() {
        return Err(Refusal::Fields(wrong));
    }
    let newest = facts.newest_try();
    let is_other = newest.filter(|(_, one)| {
        let url = order.success_url.is_some() && order.success_url != one.wish.success_url;
        let methods = order.methods.as_ref().is_some_and(|methods| *methods != one.wish.methods);
        url || methods || order.source.as_ref().is_some_and(|source| *source != one.wish.source)
    });
    let after = is_other.map_or(after, |(number, _)| number.max(after));
    let chosen = checkout::choose(facts, after).map_err(|refusal| Refusal::Conflict(refusal.to_string()))?;
    let number = chosen.number();
    let is_renewed = matches!(chosen, TryChosen::Next(_));
    if !is_renewed && facts.open_session().is_some() {
        return Ok(Chosen::Open(number));
    }
    let said = if is_renewed {
        asked(wish)
    } else {
        SessionTry { asked_at: Some(actor.at), ..SessionTry::default() }
    };
    let facts = checkout::told(own(facts), Some(known.ours.livemode), number, said);
    Ok(Chosen::Said(Box::new(Said { number, facts, is_renewed })))
}

fn tell(facts: &Facts, known: &ReservationFacts, session: &str, actor: &Actor<'_>) -> Result<Chosen> {
    let livemode = known.ours.livemode;
    if !is_session_id(session, livemode) {
        let mode = if livemode { "cs_live_" } else { "cs_test_" };
        let detail = format!("expected the id of a Checkout Session of this mode: {mode}…");
        return Err(Refusal::Fields(vec![FieldError::new("session", detail)]));
    }
    if let Some((number, _)) = facts.session_tries.iter().find(|(_, one)| one.sessions.contains_key(session))
    {
        return Ok(Chosen::Open(*number));
    }
    let number = facts.newest_try().map_or(1, |(number, _)| number + 1);
    let refused = if Derived::of(facts).received > 0 {
        Some(CheckoutRefusal::Paid)
    } else {
        (number > TRIES_MAX).then_some(CheckoutRefusal::TooMany)
    };
    if let Some(refusal) = refused {
        return Err(Refusal::Conflict(refusal.to_string()));
    }
    let wish = SessionWish { at: actor.at, by: by(actor), ..SessionWish::default() };
    let facts = checkout::told_session(own(facts), livemode, number, wish, session);
    Ok(Chosen::Said(Box::new(Said { number, facts, is_renewed: false })))
}

/// The id under which the app posted it.
fn own(facts: &Facts) -> &str {
    facts.ours.keys().next().map(String::as_str).unwrap_or_default()
}
