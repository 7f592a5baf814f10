//! Addresses that nothing is sent to, and why.

use sekisho_core::mail_address::{MailAddress, mask_text};
use sekisho_core::notification::suppression::{Suppression, Turn};
use sekisho_core::state::Kind;
use sekisho_store::{FIND_MAX, StateFilter, Store};

use super::states::load;
use crate::refusal::{Refusal, Result};
use crate::{token, types};

/// Addresses that are looked through for one page.
const LOOKED_MAX: usize = 1_000_000;

/// Addresses that nothing is sent to, by address, the last first; `all`: also those that were released. `before` is
/// the id of the last one of the page before.
pub async fn suppressions(
    store: &dyn Store,
    all: bool,
    before: Option<&str>,
    limit: usize,
) -> Result<Vec<Suppression>> {
    let (mut found, mut is_after, mut looked) = (Vec::new(), before.is_none(), 0);
    let mut filter = StateFilter::all(Kind::Suppression, FIND_MAX);
    while looked < LOOKED_MAX {
        let page = store.find_states(filter.clone()).await?;
        looked += page.len();
        for suppression in page.iter().filter_map(Suppression::read) {
            if !is_after {
                is_after = before == Some(&id(&suppression.address));
            } else if all || suppression.cause().is_some() {
                found.push(suppression);
            }
            if found.len() == limit {
                return Ok(found);
            }
        }
        if page.len() < FIND_MAX {
            break;
        }
        filter.before = page.last().map(|last| last.key.id.clone());
    }
    if is_after {
        Ok(found)
    } else {
        Err(Refusal::Invalid("before: expected the last id of a page: sup_…".into()))
    }
}

/// What is known of one address.
pub async fn suppression(store: &dyn Store, address: &MailAddress) -> Result<Option<Suppression>> {
    Ok(load(store, &Suppression::key(address)).await?.as_ref().and_then(Suppression::read))
}

/// Names an entry without showing its address: `sup_` and the beginning of its hash.
fn id(address: &MailAddress) -> String {
    format!("sup_{}", &token::hash(address.whole())[..16])
}

/// As people and programs read it; `whole`: with addresses unmasked, also where a mail server names them.
pub fn suppression_view(suppression: &Suppression, whole: bool) -> types::Suppression {
    let address = &suppression.address;
    let note =
        |turn: &Turn| turn.note.as_deref().map(|note| if whole { note.to_owned() } else { mask_text(note) });
    let history = suppression.history.iter().map(|turn| types::SuppressionTurn {
        at: turn.at,
        cause: turn.cause.name().to_owned(),
        note: note(turn),
        by: turn.by.clone(),
    });
    let last = suppression.history.last();
    types::Suppression {
        id: id(address),
        object: "suppression".to_owned(),
        address: if whole { address.whole().to_owned() } else { address.masked() },
        suppressed: suppression.cause().is_some(),
        cause: last.map(|turn| turn.cause.name().to_owned()),
        note: last.and_then(note),
        by: last.and_then(|turn| turn.by.clone()),
        at: last.map(|turn| turn.at),
        history: history.collect(),
    }
}
