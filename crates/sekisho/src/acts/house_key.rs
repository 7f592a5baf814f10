//! The key that links and tokens are signed with where the configuration has none: made at the first start, one for all nodes.

use sekisho_core::change::ChangeSet;
use sekisho_core::state::{Key, Kind, Wanted, Write};
use sekisho_core::{Secret, Time};
use sekisho_store::Store;
use serde::{Deserialize, Serialize};

use crate::refusal::Result;
use crate::token;
use crate::transact::transact;

const NAME: &str = "links";

#[derive(Serialize, Deserialize)]
struct Facts {
    key: String,
}

/// The key of this store; of two nodes that make one at once, the first that is written counts.
pub async fn house_key(store: &dyn Store, at: Time) -> Result<Secret> {
    let key = Key::new(Kind::HouseKey, NAME);
    let fresh = token::generate::<32>();
    let made = transact(store, Wanted::keys([key.clone()]), |loaded| -> Result<_> {
        if let Some(known) = loaded.read::<Facts>(&key)? {
            return Ok((ChangeSet::nothing(at), known.value.key));
        }
        let writes = vec![Write::of(&key, 0, &Facts { key: fresh.clone() })];
        Ok((ChangeSet { writes, ..ChangeSet::nothing(at) }, fresh.clone()))
    });
    Ok(Secret::new(made.await?))
}
