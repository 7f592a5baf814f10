use crate::migration::Migration;
use crate::{Access, OpenError};
pub const MIGRATIONS: &[Migration] = super::sqlite::MIGRATIONS;
pub async fn open(_url: &str, _access: Access) -> Result<crate::memory::MemoryStore, OpenError> {
    Ok(crate::memory::MemoryStore::default())
}
