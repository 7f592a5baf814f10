//! The fields of Stripe's objects that are read. Every one may be missing.

use serde::Deserialize;
use serde_json::Value;

use super::{Metadata, Ref};

#[derive(Deserialize)]
pub struct SaidIntent {
    pub id: String,
    pub status: Option<String>,
    pub amount: Option<i64>,
    pub amount_received: Option<i64>,
    pub currency: Option<String>,
    pub customer: Option<Ref>,
    pub invoice: Option<Ref>,
    pub last_payment_error: Option<SaidError>,
    pub receipt_email: Option<String>,
    pub latest_charge: Option<Ref>,
    /// Before `latest_charge` there was a list of all.
    pub charges: Option<List<SaidCharge>>,
    pub next_action: Option<SaidAction>,
    pub metadata: Option<Metadata>,
}

#[derive(Deserialize)]
pub struct SaidError {
    pub charge: Option<Ref>,
    pub code: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
}

#[derive(Deserialize)]
pub struct SaidCharge {
    /// Seconds.
    pub created: Option<i64>,
    pub id: String,
    pub status: Option<String>,
    pub paid: Option<bool>,
    pub captured: Option<bool>,
    pub amount: Option<i64>,
    pub amount_captured: Option<i64>,
    pub amount_refunded: Option<i64>,
    pub balance_transaction: Option<Ref>,
    pub billing_details: Option<Details>,
    pub currency: Option<String>,
    pub customer: Option<Ref>,
    pub failure_code: Option<String>,
    pub invoice: Option<Ref>,
    pub metadata: Option<Metadata>,
    pub payment_intent: Option<Ref>,
    pub payment_method_details: Option<SaidKind>,
    pub receipt_email: Option<String>,
    pub receipt_url: Option<String>,
    pub refunded: Option<bool>,
    pub refunds: Option<List<SaidRefund>>,
}

#[derive(Deserialize)]
pub struct SaidSession {
    pub id: String,
    pub status: Option<String>,
    pub payment_status: Option<String>,
    pub mode: Option<String>,
    pub amount_total: Option<i64>,
    pub client_reference_id: Option<String>,
    pub currency: Option<String>,
    pub customer: Option<Ref>,
    pub customer_details: Option<Details>,
    pub customer_email: Option<String>,
    pub invoice: Option<Ref>,
    pub metadata: Option<Metadata>,
    pub payment_intent: Option<Ref>,
    pub payment_link: Option<Ref>,
}

/// Of whoever pays.
#[derive(Deserialize)]
pub struct Details {
    pub email: Option<String>,
}

#[derive(Deserialize)]
pub struct SaidRefund {
    pub id: String,
    pub status: Option<String>,
    pub amount: Option<i64>,
    pub balance_transaction: Option<Ref>,
    pub charge: Option<Ref>,
    pub currency: Option<String>,
    pub failure_reason: Option<String>,
    pub metadata: Option<Metadata>,
    pub payment_intent: Option<Ref>,
    pub pending_reason: Option<String>,
    pub reason: Option<String>,
}

#[derive(Deserialize)]
pub struct SaidDispute {
    pub id: String,
    pub status: Option<String>,
    pub amount: Option<i64>,
    pub balance_transactions: Option<Vec<SaidTransaction>>,
    pub charge: Option<Ref>,
    pub currency: Option<String>,
    pub payment_intent: Option<Ref>,
    pub reason: Option<String>,
}

#[derive(Deserialize)]
pub struct SaidTransaction {
    pub id: String,
    pub amount: Option<i64>,
    pub currency: Option<String>,
    pub fee: Option<i64>,
    pub net: Option<i64>,
    pub source: Option<Ref>,
}

#[derive(Deserialize)]
pub struct List<T> {
    #[serde(default = "Vec::new")]
    pub data: Vec<T>,
}

/// What the customer must do next, and what they take along to do it with.
#[derive(Default, Deserialize)]
pub struct SaidAction {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    boleto_display_details: Option<Value>,
    konbini_display_details: Option<Value>,
    multibanco_display_details: Option<Value>,
    oxxo_display_details: Option<Value>,
}

impl SaidAction {
    /// Until when a voucher can be paid; seconds.
    pub fn expires_at(&self) -> Option<i64> {
        let details = [
            &self.boleto_display_details,
            &self.konbini_display_details,
            &self.multibanco_display_details,
            &self.oxxo_display_details,
        ];
        let said = details.into_iter().flatten();
        said.filter_map(|one| one["expires_at"].as_i64().or_else(|| one["expires_after"].as_i64())).max()
    }
}

/// Of something of many kinds, which it is.
#[derive(Deserialize)]
pub struct SaidKind {
    #[serde(rename = "type")]
    pub kind: Option<String>,
}
