//! What somebody means who writes a text into the search box: a thing we know by that name, or else events that are like
//! it. The most certain reading wins.

use sekisho_core::Seq;
use sekisho_core::state::{Key, Kind, State};
use sekisho_store::{Result, Store};

use crate::queries;

/// Where a text leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lead {
    /// Straight to a page.
    Page(String),
    /// To the events of a payment, a tenant, or a provider's object.
    Payment(String),
    Tenant(String),
    Object(String),
    /// To the events of types that begin so.
    Type(String),
}

pub async fn lead(store: &dyn Store, sources: &[String], text: &str) -> Result<Lead> {
    if text.starts_with("msg_") && text.parse::<Seq>().is_ok() {
        return Ok(Lead::Page(format!("/console/messages/{text}")));
    }
    if let Some(event) = queries::find_event(store, sources, text).await? {
        return Ok(Lead::Page(format!("/console/events/{}", event.as_event())));
    }
    if let Some(payment) = queries::payments_by_reference(store, text, None).await?.into_iter().next() {
        let id = payment.key.id;
        let is_ours = text.starts_with("pay_");
        return Ok(if is_ours { Lead::Page(format!("/console/payments/{id}")) } else { Lead::Payment(id) });
    }
    if is_tenant(store, text).await? {
        return Ok(Lead::Tenant(text.to_owned()));
    }
    Ok(guess(text))
}

async fn is_tenant(store: &dyn Store, text: &str) -> Result<bool> {
    let key = Key::new(Kind::Tenant, text);
    let found = store.load(Vec::new(), vec![key.clone()]).await?.states.remove(&key);
    Ok(found.is_some_and(|state: State| state.is_shown()))
}

/// Ids have figures in them; types have dots between words.
fn guess(text: &str) -> Lead {
    let is_type = text.contains(['.', '*']) || !text.contains(|letter: char| letter.is_ascii_digit());
    if is_type {
        Lead::Type(format!("{}*", text.trim_end_matches('*')))
    } else {
        Lead::Object(text.to_owned())
    }
}
