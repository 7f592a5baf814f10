//! The schema's history: numbered SQL files, the same numbers and names for both databases. A number is applied
//! once and never edited afterwards; its checksum says so.

use std::collections::BTreeMap;

use sekisho_core::provider::encode_hex;

use crate::error::OpenError;

pub struct Migration {
    pub number: i64,
    pub name: &'static str,
    pub sql: &'static str,
}

impl Migration {
    pub fn checksum(&self) -> String {
        encode_hex(ring::digest::digest(&ring::digest::SHA256, self.sql.as_bytes()))
    }
}

/// What is still to be applied, given the checksums of what was; refuses an edited or a newer history.
pub fn pending<'a>(
    all: &'a [Migration],
    applied: &BTreeMap<i64, String>,
) -> Result<Vec<&'a Migration>, OpenError> {
    let newest = newest(all);
    if let Some((&found, _)) = applied.iter().next_back().filter(|(number, _)| **number > newest) {
        return Err(OpenError::Schema {
            found,
            needed: newest,
            cure: "start a newer version of this program",
        });
    }
    for migration in all {
        if applied.get(&migration.number).is_some_and(|checksum| *checksum != migration.checksum()) {
            return Err(OpenError::Tampered {
                number: migration.number,
                what: format!("`{}` differs from what was applied", migration.name),
            });
        }
    }
    Ok(all.iter().filter(|migration| !applied.contains_key(&migration.number)).collect())
}

/// For those who only read: everything must have been applied already.
pub fn require_current(all: &[Migration], applied: &BTreeMap<i64, String>) -> Result<(), OpenError> {
    if pending(all, applied)?.is_empty() {
        return Ok(());
    }
    let found = applied.keys().next_back().copied().unwrap_or(0);
    Err(OpenError::Schema {
        found,
        needed: newest(all),
        cure: "run `sekisho migrate`, or start the server once",
    })
}

fn newest(all: &[Migration]) -> i64 {
    all.iter().map(|migration| migration.number).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_databases_have_the_same_numbers_and_names() {
        let names = |all: &[Migration]| all.iter().map(|one| (one.number, one.name)).collect::<Vec<_>>();
        assert_eq!(names(crate::sqlite::MIGRATIONS), names(crate::postgres::MIGRATIONS));
        assert!(crate::sqlite::MIGRATIONS.windows(2).all(|pair| pair[0].number + 1 == pair[1].number));
    }

    #[test]
    fn an_edited_or_newer_history_is_refused() {
        let all =
            [Migration { number: 1, name: "a", sql: "x" }, Migration { number: 2, name: "b", sql: "y" }];
        let mut applied = BTreeMap::from([(1, all[0].checksum())]);
        assert_eq!(pending(&all, &applied).unwrap().len(), 1);
        assert!(matches!(
            require_current(&all, &applied),
            Err(OpenError::Schema { found: 1, needed: 2, .. })
        ));
        applied.insert(2, "other".into());
        assert!(matches!(pending(&all, &applied), Err(OpenError::Tampered { number: 2, .. })));
        applied.insert(2, all[1].checksum());
        assert!(require_current(&all, &applied).is_ok());
        applied.insert(3, "later".into());
        assert!(matches!(pending(&all, &applied), Err(OpenError::Schema { found: 3, needed: 2, .. })));
    }
}
