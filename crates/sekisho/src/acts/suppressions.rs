//! Addresses that nothing is sent to: entered, and released, by people. Bounces and complaints enter them by themselves.

use sekisho_core::actor::Actor;
use sekisho_core::mail_address::MailAddress;
use sekisho_core::notification::Suppression;
use sekisho_core::notification::suppression::SuppressionCause;
use sekisho_core::selection::{REASON_MAX, check_reason};
use sekisho_core::state::Wanted;
use sekisho_store::Store;
use serde_json::{Map, Value};

use super::fields::Fields;
use crate::queries::suppression_view;
use crate::refusal::Result;
use crate::transact::transact;
use crate::types;

/// What is ordered of an address, and why.
#[derive(Debug)]
pub struct SuppressionOrder {
    pub address: MailAddress,
    pub reason: String,
}

impl SuppressionOrder {
    pub fn parse(order: Map<String, Value>) -> Result<Self> {
        let mut fields = Fields::new(order);
        let address = fields.take("address").email();
        let address = fields.need("address", address);
        let reason = fields.take("reason").text(REASON_MAX);
        let reason = fields.need("reason", reason);
        fields.finish()?;
        let read = address.zip(reason).map(|(address, reason)| Self { address, reason });
        Ok(read.expect("what is needed is there, or it was said"))
    }
}

/// Nothing is sent to this address any more.
pub async fn suppress(
    store: &dyn Store,
    address: &MailAddress,
    reason: &str,
    actor: &Actor<'_>,
) -> Result<types::Suppression> {
    turn(store, address, SuppressionCause::Manual, reason, actor).await
}

/// Mail goes to this address again.
pub async fn release(
    store: &dyn Store,
    address: &MailAddress,
    reason: &str,
    actor: &Actor<'_>,
) -> Result<types::Suppression> {
    turn(store, address, SuppressionCause::Released, reason, actor).await
}

async fn turn(
    store: &dyn Store,
    address: &MailAddress,
    cause: SuppressionCause,
    reason: &str,
    actor: &Actor<'_>,
) -> Result<types::Suppression> {
    let (reason, key) = (check_reason(reason)?, Suppression::key(address));
    let turned = transact(store, Wanted::keys([key.clone()]), |loaded| {
        Suppression::turned(address, loaded.states.get(&key), cause, &reason, actor)
    });
    Ok(suppression_view(&turned.await?, false))
}
