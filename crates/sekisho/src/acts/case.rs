//! Cases: a person takes one in hand, or says that it is over.

use sekisho_core::actor::Actor;
use sekisho_core::case::{CaseFacts, CaseStatus, Word};
use sekisho_core::settlement::follow::{CaseWord, OrderPart, OrderPolicy, view};
use sekisho_core::settlement::{Change, Input, Reading};
use sekisho_core::state::{Key, Kind, Loaded, Wanted};
use sekisho_store::Store;
use serde_json::Value;

use super::decided::{Prepared, decided};
use super::reservation::{by, cause, is_text};
use crate::env::Env;
use crate::refusal::{Refusal, Result};
use crate::types::{AcknowledgeCase, FieldError, ResolveCase};

const NOTE_MAX: usize = 1_000;
const HOW: [&str; 3] = ["fixed", "by_hand", "no_action"];

/// Somebody has a case in hand: nobody is reminded of it any more. Everything else goes on.
pub async fn acknowledge_case(
    store: &dyn Store,
    env: &Env,
    policy: &OrderPolicy,
    id: &str,
    body: AcknowledgeCase,
    actor: &Actor<'_>,
) -> Result<Value> {
    let word = word(String::new(), body.note, actor)?;
    say(store, env, policy, id, &CaseWord::Acknowledge(word), actor).await
}

/// A case is over, whatever its rules would have done; what was ordered already goes on.
pub async fn resolve_case(
    store: &dyn Store,
    env: &Env,
    policy: &OrderPolicy,
    id: &str,
    body: ResolveCase,
    actor: &Actor<'_>,
) -> Result<Value> {
    if !HOW.contains(&body.how.as_str()) {
        let detail = format!("expected {}", HOW.join(", "));
        return Err(Refusal::Fields(vec![FieldError::new("how", detail)]));
    }
    let word = word(body.how, body.note, actor)?;
    say(store, env, policy, id, &CaseWord::Resolve(word), actor).await
}

fn word(how: String, note: Option<String>, actor: &Actor<'_>) -> Result<Word> {
    let note = note.unwrap_or_default();
    if !note.is_empty() && !is_text(&note, NOTE_MAX) {
        return Err(Refusal::Fields(vec![FieldError::new(
            "note",
            format!("expected 1 to {NOTE_MAX} characters"),
        )]));
    }
    Ok(Word { at: actor.at, by: by(actor), how, note })
}

async fn say(
    store: &dyn Store,
    env: &Env,
    policy: &OrderPolicy,
    id: &str,
    word: &CaseWord,
    actor: &Actor<'_>,
) -> Result<Value> {
    let key = Key::new(Kind::Case, id);
    let shown = |facts: &CaseFacts| view::case(id, facts, &policy.rules, actor.at);
    let prepare = |loaded: &Loaded| {
        let unknown = || Refusal::Missing(format!("no case has the id {id}"));
        let known = loaded.read::<CaseFacts>(&key)?.ok_or_else(unknown)?.value;
        if !actor.may_touch(known.tenant.as_deref()) {
            return Err(unknown());
        }
        if known.status() == CaseStatus::Resolved {
            return match word {
                CaseWord::Resolve(_) => Ok(Prepared::Answer(shown(&known))),
                CaseWord::Acknowledge(_) => Err(Refusal::Conflict("the case was resolved".into())),
            };
        }
        if matches!(word, CaseWord::Resolve(_)) {
            check_unordered(&known, policy)?;
        }
        let part = OrderPart::Case { id: id.to_owned(), word: word.clone() };
        let reading = Reading { order: vec![part], ..Reading::default() };
        let input = Input { seq: env.fresh_seq(actor.at), reading, cause: cause(actor) };
        Ok(Prepared::Decide(vec![input], known))
    };
    let answer = |known: CaseFacts, made: &Change| {
        let after = match made.writes.iter().find(|write| write.key == key) {
            Some(write) => serde_json::from_str(&write.facts).map_err(sekisho_store::Error::corrupt)?,
            None => known,
        };
        Ok((shown(&after), Vec::new()))
    };
    decided(store, env, policy, actor.at, Wanted::keys([key.clone()]), prepare, answer).await
}

/// A refund that a rule has ordered can't be called back by resolving its case.
fn check_unordered(known: &CaseFacts, policy: &OrderPolicy) -> Result<()> {
    let Some((_, episode)) = known.newest() else { return Ok(()) };
    let mut fired = policy.rules.iter().filter(|rule| episode.fired.contains(&rule.name));
    match fired.find(|rule| rule.action.refunds()) {
        Some(rule) => Err(Refusal::Conflict(format!("the rule {} has ordered a refund already", rule.name))),
        None => Ok(()),
    }
}
