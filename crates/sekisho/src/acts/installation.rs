//! What this installation is called: made at the first start, one for all nodes. Ids of traces are computed from it.

use sekisho_core::Time;
use sekisho_core::change::ChangeSet;
use sekisho_core::state::{Key, Kind, Wanted, Write};
use sekisho_core::trace::Installation;
use sekisho_store::Store;
use serde::{Deserialize, Serialize};

use crate::refusal::Result;
use crate::transact::transact;

const NAME: &str = "own";

#[derive(Serialize, Deserialize)]
struct Facts {
    /// 32 hex digits.
    id: String,
}

fn key() -> Key {
    Key::new(Kind::Installation, NAME)
}

/// The name of this store's installation; of two nodes that make one at once, the first that is written counts.
pub async fn make_installation(store: &dyn Store, fresh: [u8; 16], at: Time) -> Result<Installation> {
    let fresh = format!("{:032x}", u128::from_be_bytes(fresh));
    let made = transact(store, Wanted::keys([key()]), |loaded| -> Result<_> {
        if let Some(known) = loaded.read::<Facts>(&key())? {
            return Ok((ChangeSet::nothing(at), known.value.id));
        }
        let writes = vec![Write::of(&key(), 0, &Facts { id: fresh.clone() })];
        Ok((ChangeSet { writes, ..ChangeSet::nothing(at) }, fresh.clone()))
    });
    Ok(Installation::from_hex(&made.await?).unwrap_or_default())
}

/// The same where nothing is written: of a store that no server of this version has opened, the empty one.
pub async fn read_installation(store: &dyn Store) -> Result<Installation> {
    let loaded = store.load(Vec::new(), vec![key()]).await?;
    let known = loaded.read::<Facts>(&key())?;
    Ok(known.and_then(|known| Installation::from_hex(&known.value.id)).unwrap_or_default())
}
