//! Many of one list of the directory at once: every row is looked at before any is written, and either all of an order
//! is written or nothing. Rows that change nothing are left as they are, so the same order again does nothing.

use std::collections::BTreeMap;

use sekisho_core::actor::Actor;
use sekisho_core::change::ChangeSet;
use sekisho_core::directory::{DraftEffect, MemberDraft, Register};
use sekisho_core::state::Wanted;
use sekisho_store::Store;
use serde_json::{Map, Value};

use super::directory;
use crate::refusal::{Refusal, Result};
use crate::transact::transact;
use crate::types::{FieldError, Import, Imported};

/// Most rows of one order. Longer lists come in several.
pub const IMPORT_ROWS_MAX: usize = 1_000;
/// Most problems that are told at once.
pub const IMPORT_PROBLEMS_MAX: usize = 100;

pub async fn import(store: &dyn Store, order: Import, actor: &Actor<'_>) -> Result<Imported> {
    let drafts = parse(order.kind, order.rows, actor)?;
    let wanted = Wanted::keys(drafts.iter().flat_map(MemberDraft::keys));
    let imported = transact(store, wanted, |loaded| -> Result<_> {
        let (mut problems, mut report) = (Problems::default(), Imported::default());
        let mut set = ChangeSet::nothing(actor.at);
        for (n, draft) in drafts.iter().enumerate() {
            let effect = draft.effect(loaded).map_err(Refusal::from);
            let Some(effect) = problems.sift(n, effect)? else { continue };
            match effect {
                DraftEffect::New => report.new += 1,
                DraftEffect::Changed => report.changed += 1,
                DraftEffect::Unchanged => report.unchanged += 1,
            }
            draft.add_to(&mut set, effect, loaded, actor);
        }
        problems.finish()?;
        let set = if order.dry_run { ChangeSet::nothing(actor.at) } else { set };
        Ok((set, report))
    });
    imported.await.map_err(Refusal::from)
}

/// What can be told without looking at what is there.
fn parse(kind: String, rows: Vec<Map<String, Value>>, actor: &Actor<'_>) -> Result<Vec<MemberDraft>> {
    let refuse = |field: &str, detail: String| Err(Refusal::Fields(vec![FieldError::new(field, detail)]));
    let Some(register) = Register::ALL.into_iter().find(|one| one.kind().name() == kind) else {
        let known = Register::ALL.map(|register| register.kind().name()).join(", ");
        return refuse("kind", format!("expected one of {known}"));
    };
    if let (Some(own), Register::Tenants) = (actor.tenant, register) {
        let detail = format!("this key belongs to the tenant {own}; it can't enter tenants");
        return Err(Refusal::Forbidden(FieldError::new("kind", detail)));
    }
    if !(1..=IMPORT_ROWS_MAX).contains(&rows.len()) {
        return refuse("rows", format!("expected 1 to {IMPORT_ROWS_MAX} rows, found {}", rows.len()));
    }
    let (mut drafts, mut problems, mut seen) = (Vec::new(), Problems::default(), BTreeMap::new());
    for (n, row) in rows.into_iter().enumerate() {
        let Some(draft) = problems.sift(n, directory::parse(register, row, actor))? else { continue };
        if let Some(first) = seen.insert(draft.key.clone(), n) {
            let detail = format!("stands in rows[{first}], too; expected each id once");
            problems.add(n, [FieldError::new("id", detail)]);
        }
        drafts.push(draft);
    }
    problems.finish()?;
    Ok(drafts)
}

/// What is wrong with rows, each under the number of its row.
#[derive(Default)]
struct Problems(Vec<FieldError>);

impl Problems {
    /// Keeps what is wrong with a row. What no other row could mend ends it all.
    fn sift<T>(&mut self, row: usize, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => return Ok(Some(value)),
            Err(Refusal::Fields(errors)) => self.add(row, errors),
            Err(Refusal::Forbidden(error)) => self.add(row, [error]),
            Err(
                other @ (Refusal::Invalid(_)
                | Refusal::Missing(_)
                | Refusal::Conflict(_)
                | Refusal::RetryLater { .. }
                | Refusal::Full { .. }
                | Refusal::Store(_)),
            ) => return Err(other),
        }
        Ok(None)
    }

    fn add(&mut self, row: usize, errors: impl IntoIterator<Item = FieldError>) {
        let named = errors
            .into_iter()
            .map(|FieldError { field, detail }| FieldError { field: format!("rows[{row}].{field}"), detail });
        self.0.extend(named);
        self.0.truncate(IMPORT_PROBLEMS_MAX);
    }

    fn finish(self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(Refusal::Fields(self.0)) }
    }
}

#[cfg(test)]
mod tests;
