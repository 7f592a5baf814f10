//! Refunds: ordered by people and apps, let go by people. An order is a fact of its payment, committed with the job that
//! carries it out.

use sekisho_core::actor::Actor;
use sekisho_core::audit::Role;
use sekisho_core::change::ChangeSet;
use sekisho_core::provider::encode_hex;
use sekisho_core::settlement::follow::OrderPolicy;
use sekisho_core::settlement::payment::{self, Facts, RefundOrder, RefundWish, Release};
use sekisho_core::settlement::refund::{self, Automatic, RefundRefusal, Wish};
use sekisho_core::settlement::{Cause, Terms, decide, names};
use sekisho_core::state::{Key, Kind, Loaded, State, Wanted, Write};
use sekisho_store::Store;
use serde_json::{Map, Value};

use super::fields::Fields;
use super::request::{Answered, OnceKey};
use crate::env::Env;
use crate::refusal::{Refusal, Result};
use crate::transact::{Decision, TransactError, transact_in_steps};
use crate::types::{FieldError, RefundOrdered};

/// How often what a payment became may have been merged in its turn.
const MERGES_MAX: usize = 1_000;
/// Characters of a reason, and of notes.
const REASON_MAX: usize = 200;
const NOTES_MAX: usize = 1_000;

/// A refund that somebody asks for.
#[derive(Clone, Debug)]
pub struct RefundOrderRequest {
    /// Names the cause, so that the same asked for twice is one.
    pub key: String,
    pub amount: Option<i64>,
    pub currency: Option<sekisho_core::money::Currency>,
    pub reason: String,
    pub notes: Option<String>,
    /// By a rule of the caller's, and no person: such orders are counted, and held back where they are too many.
    pub automatic: bool,
    /// Only what would happen.
    pub dry_run: bool,
}

impl RefundOrderRequest {
    /// What a body asks for.
    pub fn parse(body: Map<String, Value>, request: Option<&OnceKey>, env: &Env) -> Result<Self> {
        let mut fields = Fields::new(body);
        let reason = fields.take("reason").text(REASON_MAX);
        let parsed = Self {
            // Without a key nobody will repeat it.
            key: format!(
                "request/{}",
                request.map_or_else(|| encode_hex(env.chance::<16>()), |one| one.key().id)
            ),
            amount: fields.take("amount").amount(),
            currency: fields.take("currency").currency(),
            reason: fields.need("reason", reason).unwrap_or_default(),
            notes: fields.take("notes").text(NOTES_MAX),
            automatic: fields.take("automatic").boolean().unwrap_or_default(),
            dry_run: fields.take("dry_run").boolean().unwrap_or_default(),
        };
        fields.finish()?;
        Ok(parsed)
    }

    fn wish(&self, actor: &Actor<'_>) -> RefundWish {
        let who = match actor.role {
            Role::System => "SYSTEM".to_owned(),
            Role::ApiKey => format!("API:{}", actor.name),
            Role::Customer => "CUSTOMER".to_owned(),
            Role::Viewer | Role::Operator | Role::Admin => format!("ADMIN:{}", actor.name),
        };
        RefundWish {
            at: actor.at,
            by: who,
            trigger: if self.automatic { "AUTOMATIC" } else { "OPERATOR" }.to_owned(),
            amount: self.amount,
            currency: self.currency,
            reason: self.reason.clone(),
            notes: self.notes.clone(),
            by_hand: None,
        }
    }
}

/// Orders a refund of all that is left of a payment, or of a part.
pub async fn order_refund(
    store: &dyn Store,
    env: &Env,
    policy: &OrderPolicy,
    id: &str,
    order: &RefundOrderRequest,
    request: Option<&OnceKey>,
    actor: &Actor<'_>,
) -> Result<Answered> {
    let mut asked = Asked::new(env, id, policy, actor);
    asked.wanted.extend(Wanted::keys(request.map(OnceKey::key)));
    asked.wanted.extend(Wanted::keys(order.automatic.then(Automatic::key)));
    let ordered = transact_in_steps(store, asked.wanted.clone(), |loaded| -> Result<_> {
        if let Some(answered) = OnceKey::repeated(request, loaded)? {
            return Ok(Decision::Write(ChangeSet::nothing(actor.at), answered));
        }
        let state = match asked.payment(loaded)? {
            Found::Payment(state) => state,
            Found::Elsewhere(more) => return Ok(Decision::Load(more)),
        };
        let facts = Facts::parse(&state.facts).map_err(sekisho_store::Error::corrupt)?;
        if let Some(known) = facts.refund_orders.get(&order.key) {
            let answer = answer(&state.key.id, &facts, &order.key, known);
            return Ok(Decision::Write(ChangeSet::nothing(actor.at), Answered { answer, repeated: true }));
        }
        let mut automatic = loaded.read::<Automatic>(&Automatic::key())?;
        let mut counted = automatic.as_ref().map(|known| known.value.clone()).unwrap_or_default();
        let held_back = order.automatic && !counted.take(policy.refunds.automatic_per_hour, actor.at);
        let wish = Wish { key: order.key.clone(), wish: order.wish(actor), held_back };
        let made = refund::order(&facts, wish, |realm| policy.refunds.rights(realm))?;
        let shown = {
            let mut after = facts.clone();
            after.refund_orders.insert(order.key.clone(), made.clone());
            answer(&state.key.id, &after, &order.key, &made)
        };
        if order.dry_run {
            return Ok(Decision::Write(
                ChangeSet::nothing(actor.at),
                Answered { answer: shown, repeated: false },
            ));
        }
        let mut set = match asked.decide(&facts, &order.key, &made, loaded)? {
            Decision::Write(set, ()) => set,
            Decision::Load(more) => return Ok(Decision::Load(more)),
        };
        if order.automatic && !held_back {
            let version = automatic.take().map_or(0, |known| known.version);
            set.writes.push(Write::of(&Automatic::key(), version, &counted));
        }
        set.writes.extend(request.map(|request| request.write(&shown)));
        Ok(Decision::Write(set, Answered { answer: shown, repeated: false }))
    });
    ordered.await.map_err(Refusal::from)
}

/// Lets a refund go that was held back.
pub async fn release_refund(
    store: &dyn Store,
    env: &Env,
    policy: &OrderPolicy,
    id: &str,
    key: &str,
    actor: &Actor<'_>,
) -> Result<Value> {
    let mut asked = Asked::new(env, id, policy, actor);
    let released = transact_in_steps(store, asked.wanted.clone(), |loaded| -> Result<_> {
        let state = match asked.payment(loaded)? {
            Found::Payment(state) => state,
            Found::Elsewhere(more) => return Ok(Decision::Load(more)),
        };
        let facts = Facts::parse(&state.facts).map_err(sekisho_store::Error::corrupt)?;
        let unknown = || RefundRefusal::UnknownOrder(key.to_owned());
        let mut order = facts.refund_orders.get(key).ok_or_else(unknown)?.clone();
        if !order.waits_for_release() {
            let status = facts.refund_order_status(key, &order).name();
            return Err(RefundRefusal::NotHeldBack(status).into());
        }
        order.released = Some(Release { at: actor.at, by: actor.name.to_owned() });
        let set = match asked.decide(&facts, key, &order, loaded)? {
            Decision::Write(set, ()) => set,
            Decision::Load(more) => return Ok(Decision::Load(more)),
        };
        let mut after = facts.clone();
        after.refund_orders.insert(key.to_owned(), order.clone());
        Ok(Decision::Write(set, answer(&state.key.id, &after, key, &order)))
    });
    released.await.map_err(Refusal::from)
}

fn answer(payment: &str, facts: &Facts, key: &str, order: &RefundOrder) -> Value {
    let order = payment::refund_order(facts, key, order);
    let order = serde_json::from_value(order).expect("the core writes what the type says");
    let ordered = RefundOrdered { payment: payment.to_owned(), order };
    serde_json::to_value(ordered).expect("texts and numbers serialise")
}

/// What is loaded while a payment's refund is decided.
struct Asked<'a> {
    env: &'a Env,
    id: &'a str,
    policy: &'a OrderPolicy,
    actor: &'a Actor<'a>,
    wanted: Wanted,
}

enum Found<'l> {
    Payment(&'l State),
    /// It became part of another.
    Elsewhere(Wanted),
}

impl<'a> Asked<'a> {
    fn new(env: &'a Env, id: &'a str, policy: &'a OrderPolicy, actor: &'a Actor<'a>) -> Self {
        Self { env, id, policy, wanted: Wanted::keys([Key::new(Kind::Payment, id)]), actor }
    }

    fn payment<'l>(&mut self, loaded: &'l Loaded) -> Result<Found<'l>> {
        let unknown = || RefundRefusal::UnknownPayment(self.id.to_owned());
        // From the beginning each time: what was merged may have parted again.
        let mut key = Key::new(Kind::Payment, self.id);
        let mut merges = 0..MERGES_MAX;
        let state = loop {
            merges.next().ok_or_else(unknown)?;
            let Some(state) = loaded.states.get(&key).filter(|state| !state.is_deleted()) else {
                if self.wanted.keys.contains(&key) {
                    return Err(unknown().into());
                }
                let more = Wanted::keys([key]);
                self.wanted.extend(more.clone());
                return Ok(Found::Elsewhere(more));
            };
            match Facts::parse(&state.facts).map_err(sekisho_store::Error::corrupt)?.merged_into {
                Some(into) => key = Key::new(Kind::Payment, into),
                None => break state,
            }
        };
        // Whose it is not to be told from one that is not there.
        if !state.is_shown() || !self.actor.may_touch(state.index.tenant.as_deref()) {
            return Err(unknown().into());
        }
        Ok(Found::Payment(state))
    }

    fn decide(
        &mut self,
        facts: &Facts,
        key: &str,
        order: &RefundOrder,
        loaded: &Loaded,
    ) -> Result<Decision<()>> {
        let (env, at) = (self.env, self.actor.at);
        let (name, role) = (self.actor.name.to_owned(), self.actor.role.of_entry());
        let cause = Cause { actor: Some(name), role, ..Cause::default() };
        let inputs = refund::inputs(facts, key, order, || env.fresh_seq(at), &cause);
        let mut more = names(&inputs);
        more.names.retain(|name| !self.wanted.names.contains(name));
        if !more.is_empty() {
            self.wanted.extend(more.clone());
            return Ok(Decision::Load(more));
        }
        match decide(&inputs, &self.wanted, loaded, &Terms::of(at, self.policy)) {
            Err(more) => {
                self.wanted.extend(more.clone());
                Ok(Decision::Load(more))
            }
            Ok(changes) => {
                let change = changes.into_iter().next().ok_or(TransactError::<Refusal>::Contended)?;
                match change.refused {
                    Some(refused) => Err(Refusal::Conflict(refused)),
                    None => Ok(Decision::Write(change.into_set(at, || env.fresh_seq(at)), ())),
                }
            }
        }
    }
}

impl From<RefundRefusal> for Refusal {
    fn from(refused: RefundRefusal) -> Self {
        let detail = refused.to_string();
        match refused {
            RefundRefusal::UnknownPayment(_) | RefundRefusal::UnknownOrder(_) => Self::Missing(detail),
            RefundRefusal::OtherCurrency { .. } => Self::Fields(vec![FieldError::new("currency", detail)]),
            RefundRefusal::NothingReceived
            | RefundRefusal::NothingLeft
            | RefundRefusal::Ordered { .. }
            | RefundRefusal::Refunded(_)
            | RefundRefusal::Disputed(_)
            | RefundRefusal::MoreThanLeft { .. }
            | RefundRefusal::NotAllowed { .. }
            | RefundRefusal::NotHeldBack(_) => Self::Conflict(detail),
        }
    }
}
