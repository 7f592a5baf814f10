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

impl Lead {
    /// The page of the one thing that is meant, if it is one.
    pub fn page(&self) -> Option<String> {
        match self {
            Self::Page(path) => Some(path.clone()),
            Self::Payment(id) => Some(format!("/console/payments/{id}")),
            Self::Tenant(_) | Self::Object(_) | Self::Type(_) => None,
        }
    }
}

/// What our own ids begin with, and where such things are shown.
const PAGES_OF: [(&str, &str); 4] = [
    ("rsv_", "/console/reservations"),
    ("ful_", "/console/fulfilments"),
    ("case_", "/console/cases"),
    ("inq_", "/console/inquiries"),
];

pub async fn lead(store: &dyn Store, sources: &[String], text: &str) -> Result<Lead> {
    if text.starts_with("msg_") && text.parse::<Seq>().is_ok() {
        return Ok(Lead::Page(format!("/console/messages/{text}")));
    }
    let is_word = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if let Some((_, pages)) = PAGES_OF.iter().find(|(tag, _)| is_word && text.starts_with(tag)) {
        return Ok(Lead::Page(format!("{pages}/{text}")));
    }
    if text.contains('@') {
        return Ok(Lead::Page(super::address("/console/notices", [("q", text)])));
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
