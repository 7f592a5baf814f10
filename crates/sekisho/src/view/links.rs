//! Links to what was deleted are shown as null, in whatever is shown: the thing is not there any more, and who asks for
//! it is told so.

use std::collections::BTreeSet;

use sekisho_core::directory::Register;
use sekisho_core::state::{Key, Kind, State};
use sekisho_store::{FIND_MAX, Result, Store};
use serde_json::Value;

/// Where links stand, and what they lead to.
const LINKS: [(&str, Kind); 4] = [
    ("/tenant", Kind::Tenant),
    ("/customer", Kind::Customer),
    ("/about/tenant", Kind::Tenant),
    ("/about/billing", Kind::Billing),
];

/// Takes out of each what leads to something deleted.
pub async fn unlink<'v>(store: &dyn Store, shown: impl IntoIterator<Item = &'v mut Value>) -> Result<()> {
    let mut shown: Vec<&mut Value> = shown.into_iter().collect();
    let keys: BTreeSet<Key> = shown.iter().flat_map(|one| links(one)).map(|(_, key)| key).collect();
    let keys: Vec<Key> = keys.into_iter().collect();
    let mut gone = BTreeSet::new();
    for chunk in keys.chunks(FIND_MAX) {
        let states = store.load(Vec::new(), chunk.to_vec()).await?.states;
        gone.extend(states.into_values().filter(State::is_deleted).map(|state| state.key));
    }
    for one in &mut shown {
        let dangling: Vec<_> =
            links(one).filter(|(_, key)| gone.contains(key)).map(|(place, _)| place).collect();
        for place in dangling {
            *one.pointer_mut(place).expect("it was found there") = Value::Null;
        }
    }
    Ok(())
}

fn links(shown: &Value) -> impl Iterator<Item = (&'static str, Key)> {
    LINKS.into_iter().filter_map(|(place, kind)| {
        let id = shown.pointer(place)?.as_str()?;
        // Whose customer it is stands beside it.
        let tenant = || shown.get("tenant").and_then(Value::as_str);
        let key = Register::of(kind).map_or_else(|| Key::new(kind, id), |one| one.key(tenant(), id));
        Some((place, key))
    })
}
