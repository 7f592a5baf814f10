//! A kind of block that may stand in the file several times, `[[source]]` or `[[route]]`: its keys, and what becomes
//! of a block once all its keys are read.

use super::given::Given;
use super::load::unknown_key;

/// A block as written, before it is checked.
pub trait Table: Default + 'static {
    /// As in `[[name]]`.
    const NAME: &'static str;
    /// What a block is, for the example file.
    const ABOUT: &'static str;
    /// In the order of the example file, the needed ones first.
    const KEYS: &'static [SettingKey<Self>];
    /// How many of them the example writes out; with 0 the whole block is a comment.
    const WRITTEN: usize = 0;
    type Ready;

    /// A key that is not in the list.
    fn set_other(&mut self, key: &str, _given: &Given) -> Result<(), String> {
        Err(unknown_key(key, &format!("[[{}]]", Self::NAME), Self::KEYS.iter().map(|known| known.name)))
    }

    /// Checks the whole. All that is wrong, not only the first thing.
    fn finish(self, warnings: &mut Vec<String>) -> Result<Self::Ready, Vec<String>>;
}

pub struct SettingKey<T> {
    pub name: &'static str,
    /// As it would be written in TOML.
    pub example: &'static str,
    pub help: &'static str,
    pub set: fn(&mut T, &Given) -> Result<(), String>,
}

/// What a block is called: by other settings, in paths, logs and metrics.
pub fn name(given: &Given) -> Result<String, String> {
    let name = given.text()?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return Err("expected 1 to 64 letters, digits, - or _".into());
    }
    Ok(name)
}
