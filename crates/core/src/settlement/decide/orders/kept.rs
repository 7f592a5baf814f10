//! What is kept of one thing while a batch is decided.

use serde::de::DeserializeOwned;

use super::KnownThings;
use crate::state::{Key, Versioned, Wanted};

/// Something that is kept, as it was loaded and as it is now.
#[derive(Default)]
pub struct Kept<T> {
    pub version: i64,
    pub before: Option<T>,
    pub now: T,
    /// The input that changed it last.
    pub by: usize,
    /// It is written all the same, because it locks what is.
    pub is_forced: bool,
}

impl<T: PartialEq> Kept<T> {
    pub fn set(&mut self, now: T, by: usize) {
        if self.now != now {
            (self.now, self.by) = (now, by);
        }
    }

    pub fn is_written(&self) -> bool {
        self.is_forced || self.is_changed()
    }

    pub fn is_changed(&self) -> bool {
        self.before.as_ref() != Some(&self.now)
    }
}

/// What is kept under a key; `None` while it was not asked for.
pub fn load<T: DeserializeOwned + Default + Clone>(
    known: KnownThings<'_>,
    wanted: &mut Wanted,
    key: &Key,
) -> Result<Option<Kept<T>>, String> {
    let Some(state) = known.loaded.states.get(key) else {
        if !known.asked.keys.contains(key) {
            wanted.keys.insert(key.clone());
            return Ok(None);
        }
        return Ok(Some(Kept::default()));
    };
    let broken = |error| format!("what is kept of {} {} can't be read: {error}", key.kind.name(), key.id);
    let Versioned { version, value, .. } = Versioned::<T>::read(state).map_err(broken)?;
    Ok(Some(Kept { version, before: Some(value.clone()), now: value, by: 0, is_forced: false }))
}
