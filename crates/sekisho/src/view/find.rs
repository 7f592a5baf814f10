//! One of something by its id, as it is shown.

use sekisho_core::directory::Register;
use sekisho_store::Store;
use serde_json::Value;

use super::OfMember;
use crate::acts::{self, find_member_state, payment_state};

/// One payment by our id; one that was merged is shown as what it became.
pub async fn find_payment(store: &dyn Store, id: &str) -> sekisho_store::Result<Option<Value>> {
    payment_state(store, id).await?.as_ref().map(super::payment).transpose()
}

/// One as `view` shows it.
pub async fn find_member(
    store: &dyn Store,
    register: Register,
    tenant: Option<&str>,
    id: &str,
    view: OfMember,
) -> acts::Result<Option<Value>> {
    let found = find_member_state(store, register, tenant, id).await?;
    Ok(found.as_ref().map(view).transpose()?)
}
