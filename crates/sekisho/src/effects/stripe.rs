//! Stripe's API: what it says of an object, and what it is told to do.
//!
//! Objects come back as Stripe wrote them: what they mean is the core's business. Stripe's own ways of saying no are in
//! [`answer`]; what it shares with the other providers, and what is promised of every call, in [`provider_api`].

mod answer;
mod list;
mod lister;
mod session;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use http::{HeaderValue, Method, Request, header};
use http_body_util::Full;
use sekisho_core::{Secret, Time};

pub use super::call::ApiCall;
pub use super::provider_api::ApiObject;
use super::provider_api::{self, Api, Ready, is_id, unsendable};
use crate::env::Exchange;
pub use answer::{EXPIRES_AT, KEY_REUSED};
pub use list::{Cursor, Paging, RefundsOf, StripePage};
pub use lister::StripeLister;
pub use session::SessionRequest;

/// Where Stripe is.
pub const BASE_URL: &str = "https://api.stripe.com";

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
/// What is written is understood as this version of the API understands it, whatever the account's own is.
const WRITE_VERSION: HeaderValue = HeaderValue::from_static("2026-10-28.endive");

/// Objects of one kind, as Stripe's paths name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    BalanceTransactions,
    Charges,
    CheckoutSessions,
    PaymentIntents,
    Refunds,
}

impl Collection {
    /// The one that holds objects that call themselves so.
    pub fn of(object: &str) -> Option<Self> {
        Some(match object {
            "balance_transaction" => Self::BalanceTransactions,
            "charge" => Self::Charges,
            "checkout.session" => Self::CheckoutSessions,
            "payment_intent" => Self::PaymentIntents,
            "refund" => Self::Refunds,
            _ => return None,
        })
    }

    const fn path(self) -> &'static str {
        match self {
            Self::BalanceTransactions => "balance_transactions",
            Self::Charges => "charges",
            Self::CheckoutSessions => "checkout/sessions",
            Self::PaymentIntents => "payment_intents",
            Self::Refunds => "refunds",
        }
    }
}

/// A refund to be made.
#[derive(Clone, Debug)]
pub struct RefundRequest<'a> {
    /// `payment_intent` or `charge`.
    pub object: &'a str,
    pub id: &'a str,
    pub amount: i64,
    pub reason: Option<&'static str>,
    pub metadata: Vec<(&'static str, String)>,
}

/// Speaks to one Stripe account.
#[derive(Clone, Debug)]
pub struct Client {
    api: Api,
    key: Secret,
    account: Option<String>,
    version: Option<HeaderValue>,
}

impl Client {
    /// `base_url` without `/v1`, such as [`BASE_URL`].
    pub fn new(base_url: &str, key: Secret, timeout: Duration) -> anyhow::Result<Self> {
        provider_api::sendable("Stripe", &key)?;
        let api = Api::new("Stripe", base_url, timeout, answer::refused)?.hiding(key.clone());
        Ok(Self { api, key, account: None, version: None })
    }

    /// The same, where requests do not go over the network.
    #[must_use]
    pub fn by(self, way: Option<Arc<dyn Exchange>>) -> Self {
        Self { api: self.api.by(way), ..self }
    }

    /// Answers in this API version instead of the account's own.
    pub fn with_version(self, version: &str) -> anyhow::Result<Self> {
        let version = HeaderValue::from_str(version).context("this is no API version")?;
        Ok(Self { version: Some(version), ..self })
    }

    /// Reads what belongs to a connected account, over the same connections.
    #[must_use]
    pub fn for_account(&self, account: &str) -> Self {
        Self { account: Some(account.to_owned()), ..self.clone() }
    }

    /// One object by its id.
    pub async fn retrieve(&self, collection: Collection, id: &str, now: Time) -> ApiCall<ApiObject> {
        if !is_id(id) {
            return self.api.unsent(id, now);
        }
        self.read(&format!("{}/{id}", collection.path()), &[], now, provider_api::object).await
    }

    /// A page of all that a collection holds.
    pub async fn list(&self, collection: Collection, paging: &Paging, now: Time) -> ApiCall<StripePage> {
        self.page(collection.path(), paging.query(Vec::new()), now).await
    }

    pub async fn refunds(&self, of: &RefundsOf, paging: &Paging, now: Time) -> ApiCall<StripePage> {
        self.page(Collection::Refunds.path(), paging.query(of.query()), now).await
    }

    /// Of these types, `charge.*` included, at most 20; of all types when there are none.
    pub async fn events(&self, types: &[&str], paging: &Paging, now: Time) -> ApiCall<StripePage> {
        let types = types.iter().map(|one| ("types[]", (*one).to_owned())).collect();
        self.page("events", paging.query(types), now).await
    }

    /// Makes a refund, once for each key: Stripe gives the first answer again.
    pub async fn create_refund(&self, new: &RefundRequest<'_>, key: &str, now: Time) -> ApiCall<ApiObject> {
        let mut form =
            vec![(new.object.to_owned(), new.id.to_owned()), ("amount".into(), new.amount.to_string())];
        form.extend(new.reason.map(|reason| ("reason".into(), reason.to_owned())));
        form.extend(new.metadata.iter().map(|(name, value)| (format!("metadata[{name}]"), value.clone())));
        self.create(Collection::Refunds.path(), &form, key, now).await
    }

    /// Makes a Checkout Session, once for each key.
    pub async fn create_session(&self, new: &SessionRequest, key: &str, now: Time) -> ApiCall<ApiObject> {
        self.create(Collection::CheckoutSessions.path(), &new.form(), key, now).await
    }

    /// Sees to it that nobody can pay a session any more. One that is complete or expired is refused, and must be read.
    pub async fn expire_session(&self, id: &str, key: &str, now: Time) -> ApiCall<ApiObject> {
        if !is_id(id) {
            return self.api.unsent(id, now);
        }
        self.create(&format!("{}/{id}/expire", Collection::CheckoutSessions.path()), &[], key, now).await
    }

    async fn create(
        &self,
        path: &str,
        form: &[(String, String)],
        key: &str,
        now: Time,
    ) -> ApiCall<ApiObject> {
        let request = self.request(path, &[]).and_then(|request| {
            let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
            let key = HeaderValue::from_str(key).map_err(|_| unsendable("idempotency key"))?;
            let (mut head, _) = request.into_parts();
            head.method = Method::POST;
            head.headers.insert(header::CONTENT_TYPE, FORM);
            head.headers.insert("idempotency-key", key);
            head.headers.entry("stripe-version").or_insert(WRITE_VERSION);
            Ok(Request::from_parts(head, Full::from(body)))
        });
        self.exchange(request, now, provider_api::object).await
    }

    async fn page(&self, collection: &str, query: Vec<(&str, String)>, now: Time) -> ApiCall<StripePage> {
        self.read(collection, &query, now, answer::page).await
    }

    async fn read<T>(
        &self,
        path: &str,
        query: &[(&str, String)],
        now: Time,
        understand: fn(&[u8]) -> Option<T>,
    ) -> ApiCall<T> {
        self.exchange(self.request(path, query), now, understand).await
    }

    async fn exchange<T>(&self, request: Ready, now: Time, understand: fn(&[u8]) -> Option<T>) -> ApiCall<T> {
        if let Some(account) = self.account.as_deref().filter(|account| !is_id(account)) {
            return self.api.unsent(account, now);
        }
        self.api.exchange(request, now, understand).await
    }

    fn request(&self, path: &str, query: &[(&str, String)]) -> Ready {
        let mut request = self.api.request(Method::GET, &format!("v1/{path}"), query)?;
        let headers = request.headers_mut();
        headers.insert(header::AUTHORIZATION, provider_api::bearer(&self.key)?);
        if let Some(account) = &self.account {
            headers
                .insert("stripe-account", HeaderValue::from_str(account).map_err(|_| unsendable("account"))?);
        }
        if let Some(version) = &self.version {
            headers.insert("stripe-version", version.clone());
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests;
