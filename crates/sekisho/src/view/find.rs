//! One of something by its id, as it is shown.

use sekisho_core::directory::Register;
use sekisho_store::Store;

use super::OfMember;
use crate::queries::{self, payment_state};
use crate::refusal;
use crate::types::{Dated, Member, Payment};

/// One payment by our id; one that was merged is shown as what it became.
pub async fn find_payment(store: &dyn Store, id: &str) -> sekisho_store::Result<Option<Dated<Payment>>> {
    payment_state(store, id).await?.as_ref().map(super::payment).transpose()
}

/// One as `view` shows it.
pub async fn find_member(
    store: &dyn Store,
    register: Register,
    tenant: Option<&str>,
    id: &str,
    view: OfMember,
) -> refusal::Result<Option<Dated<Member>>> {
    let found = queries::find_member(store, register, tenant, id).await?;
    Ok(found.as_ref().map(view).transpose()?)
}
