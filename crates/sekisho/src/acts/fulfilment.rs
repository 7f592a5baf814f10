//! Fulfilments: asked for by the app, answered by whoever makes them, tried again by an operator.

use sekisho_core::actor::Actor;
use sekisho_core::fulfilment::{
    Counted, FulfilmentFacts, FulfilmentRequest as Asked, FulfilmentRun, RunResult, TAG, Tier,
};
use sekisho_core::settlement::follow::{OrderPart, OrderPolicy, view};
use sekisho_core::settlement::payment::Facts as Payment;
use sekisho_core::settlement::reading::own_name;
use sekisho_core::settlement::{Change, Input, Reading};
use sekisho_core::state::{Key, Kind, Loaded, Wanted};
use sekisho_store::Store;

use super::decided::{Prepared, decided};
use super::request::{Answered, OnceKey};
use super::reservation::{cause, is_text};
use crate::env::Env;
use crate::refusal::{Refusal, Result};
use crate::types::{CountedResult, FieldError, FulfilmentResult, NewFulfilment};

const INPUT_MAX: usize = 16 << 10;
const ERROR_MAX: usize = 2_000;

/// Asks for something to be made.
pub async fn create_fulfilment(
    store: &dyn Store,
    env: &Env,
    policy: &OrderPolicy,
    body: NewFulfilment,
    request: Option<&OnceKey>,
    actor: &Actor<'_>,
) -> Result<Answered> {
    let ours = read(body, actor)?;
    let seq = env.fresh_seq(actor.at);
    let id = seq.tagged(TAG);
    let facts = FulfilmentFacts { ours: ours.clone(), ..FulfilmentFacts::default() };
    let part = OrderPart::NewFulfilment { id: id.clone(), facts: Box::new(facts) };
    let key = Key::new(Kind::Fulfilment, &*id);
    let mut wanted = Wanted::keys([key.clone()]);
    wanted.extend(Wanted::keys(request.map(OnceKey::key)));
    wanted.extend(Wanted::keys(ours.payment.as_ref().map(|id| Key::new(Kind::Payment, id))));
    let prepare = |loaded: &Loaded| {
        if let Some(answered) = OnceKey::repeated(request, loaded)? {
            return Ok(Prepared::Answer(answered));
        }
        let mut reading = Reading { order: vec![part.clone()], ..Reading::default() };
        if let Some(payment) = &ours.payment {
            reading.payment = Some(member_of(loaded, payment, &id, actor)?);
        }
        Ok(Prepared::Decide(vec![Input { seq, reading, cause: cause(actor) }], ()))
    };
    let answer = |(), made: &Change| {
        let after = written(made, &key)?.ok_or_else(|| Refusal::Conflict("nothing would change".into()))?;
        let answer = view::fulfilment(&id, &after, tier_of(&after, made)?, policy);
        let remembered = request.map(|request| request.write(&answer));
        Ok((Answered { answer, repeated: false }, remembered.into_iter().collect()))
    };
    decided(store, env, policy, actor.at, wanted, prepare, answer).await
}

/// What will be kept of it.
fn written(made: &Change, key: &Key) -> Result<Option<FulfilmentFacts>> {
    let write = made.writes.iter().find(|write| write.key == *key);
    let read = write.map(|write| serde_json::from_str(&write.facts));
    Ok(read.transpose().map_err(sekisho_store::Error::corrupt)?)
}

/// What its customer has, by what is written of its payment with it.
fn tier_of(facts: &FulfilmentFacts, made: &Change) -> Result<Tier> {
    let payment = made.writes.iter().find(|write| write.key.kind == Kind::Payment);
    let payment = payment.map(|write| Payment::parse(&write.facts)).transpose();
    Ok(view::tier(facts, payment.map_err(sekisho_store::Error::corrupt)?.as_ref()))
}

/// What its payment must remember.
fn member_of(loaded: &Loaded, payment: &str, id: &str, actor: &Actor<'_>) -> Result<Payment> {
    let unknown = || {
        let detail = format!("no payment has the id {payment}");
        Refusal::Fields(vec![FieldError::new("payment", detail)])
    };
    let state = loaded.states.get(&Key::new(Kind::Payment, payment)).filter(|state| state.is_shown());
    let state = state.filter(|state| actor.may_touch(state.index.tenant.as_deref())).ok_or_else(unknown)?;
    let known = Payment::parse(&state.facts).map_err(sekisho_store::Error::corrupt)?;
    // By a name of the payment's own: where that leads, it belongs.
    let own = known.names.iter().next().cloned().unwrap_or_else(|| own_name(known.livemode, payment));
    Ok(Payment {
        livemode: known.livemode,
        names: [own].into(),
        members: [id.to_owned()].into(),
        ..Payment::default()
    })
}

fn read(body: NewFulfilment, actor: &Actor<'_>) -> Result<Asked> {
    let mut wrong = Vec::new();
    let tier = body.tier.as_deref().map_or(Some(Tier::Paid), Tier::parse);
    if tier.is_none() {
        wrong.push(FieldError::new("tier", "expected paid or free"));
    }
    if !is_text(&body.kind, 100) {
        wrong.push(FieldError::new("kind", "expected 1 to 100 characters"));
    }
    for (field, text) in [("name", &body.name), ("customer", &body.customer)] {
        if text.as_deref().is_some_and(|text| !is_text(text, 200)) {
            wrong.push(FieldError::new(field, "expected 1 to 200 characters"));
        }
    }
    let input = body.input.map(|input| input.to_string());
    if input.as_ref().is_some_and(|input| input.len() > INPUT_MAX) {
        wrong.push(FieldError::new("input", format!("expected at most {INPUT_MAX} bytes of JSON")));
    }
    if !wrong.is_empty() {
        return Err(Refusal::Fields(wrong));
    }
    let tenant = body.tenant.or_else(|| actor.tenant.map(str::to_owned));
    actor.check_tenant(tenant.as_deref())?;
    Ok(Asked {
        kind: body.kind,
        tier: tier.unwrap_or_default(),
        at: actor.at,
        livemode: body.livemode.unwrap_or(true),
        name: body.name,
        tenant,
        customer: body.customer,
        payment: body.payment,
        reservation: None,
        input,
        expires_at: body.expires_at,
    })
}

/// Takes in what became of a run.
pub async fn take_result(
    store: &dyn Store,
    env: &Env,
    policy: &OrderPolicy,
    id: &str,
    body: FulfilmentResult,
    actor: &Actor<'_>,
) -> Result<CountedResult> {
    let result = match body.status.as_str() {
        "done" => RunResult::Done,
        "failed" => RunResult::Failed,
        _ => return Err(Refusal::Fields(vec![FieldError::new("status", "expected done or failed")])),
    };
    for (field, text, most) in [("error", &body.error, ERROR_MAX), ("url", &body.url, 2_000)] {
        if text.as_deref().is_some_and(|text| text.is_empty() || text.chars().count() > most) {
            return Err(Refusal::Fields(vec![FieldError::new(
                field,
                format!("expected 1 to {most} characters"),
            )]));
        }
    }
    change(store, env, policy, id, actor, |known| {
        let counted = known.counts(body.run, result);
        if !known.runs.contains_key(&body.run) {
            let detail = format!("run {} was not asked for", body.run);
            return Err(Refusal::Fields(vec![FieldError::new("run", detail)]));
        }
        let run = FulfilmentRun {
            result,
            ended_at: Some(actor.at),
            error: body.error.clone(),
            url: body.url.clone(),
            ..FulfilmentRun::default()
        };
        let said = FulfilmentFacts { runs: [(body.run, run)].into(), ..FulfilmentFacts::default() };
        let said = (counted != Counted::Repeated).then_some(said);
        Ok((said, counted))
    })
    .await
    .map(|(after, counted)| CountedResult {
        counted: counted == Counted::Yes,
        why: match counted {
            Counted::Yes => None,
            Counted::Repeated => Some("repeated".into()),
            Counted::OlderRun => Some("older_run".into()),
            Counted::Done => Some("done".into()),
        },
        status: after.status(policy.attempts).name().to_owned(),
    })
}

/// Allows one more run of what has failed.
pub async fn retry_fulfilment(
    store: &dyn Store,
    env: &Env,
    policy: &OrderPolicy,
    id: &str,
    reason: &str,
    actor: &Actor<'_>,
) -> Result<FulfilmentFacts> {
    if !is_text(reason, 200) {
        return Err(Refusal::Fields(vec![FieldError::new("reason", "expected 1 to 200 characters")]));
    }
    let (after, ()) = change(store, env, policy, id, actor, |known| {
        let status = known.status(policy.attempts);
        if status != sekisho_core::fulfilment::FulfilmentStatus::Failed {
            let detail = format!("the fulfilment is {}; only one that failed can be retried", status.name());
            return Err(Refusal::Conflict(detail));
        }
        if known.downgraded_at.is_some() || known.stopped_at.is_some() {
            return Err(Refusal::Conflict("its money went back, or its reservation was cancelled".into()));
        }
        let more_runs = known.failed_runs().saturating_sub(policy.attempts).saturating_add(1);
        Ok((Some(FulfilmentFacts { more_runs, ..FulfilmentFacts::default() }), ()))
    })
    .await?;
    Ok(after)
}

/// Joins what somebody says of a fulfilment, with everything that follows for its order.
async fn change<T: Clone>(
    store: &dyn Store,
    env: &Env,
    policy: &OrderPolicy,
    id: &str,
    actor: &Actor<'_>,
    said: impl Fn(&FulfilmentFacts) -> Result<(Option<FulfilmentFacts>, T)>,
) -> Result<(FulfilmentFacts, T)> {
    let key = Key::new(Kind::Fulfilment, id);
    let seq = env.fresh_seq(actor.at);
    let prepare = |loaded: &Loaded| {
        let unknown = || Refusal::Missing(format!("no fulfilment has the id {id}"));
        let known = loaded.read::<FulfilmentFacts>(&key)?.ok_or_else(unknown)?.value;
        if !actor.may_touch(known.ours.tenant.as_deref()) {
            return Err(unknown());
        }
        let (said, told) = said(&known)?;
        let Some(said) = said else { return Ok(Prepared::Answer((known, told))) };
        let part = OrderPart::Fulfilment { id: id.to_owned(), facts: Box::new(said) };
        let reading = Reading { order: vec![part], ..Reading::default() };
        Ok(Prepared::Decide(vec![Input { seq, reading, cause: cause(actor) }], (known, told)))
    };
    let answer = |(known, told): (FulfilmentFacts, T), made: &Change| {
        Ok(((written(made, &key)?.unwrap_or(known), told), Vec::new()))
    };
    decided(store, env, policy, actor.at, Wanted::keys([key.clone()]), prepare, answer).await
}
