//! The audit log from its first link to its last: checked here, or written out so that others can check it.
//!
//! Only what was there at the beginning is looked at: a server that goes on writing would else anchor links that the walk
//! has passed before they were written.

use std::collections::BTreeMap;

use sekisho_core::Time;
use sekisho_core::audit::{ANCHORED, AuditCheck};
use sekisho_store::{AuditLink, FIND_MAX, Store};

use crate::refusal::Result;

/// What a walk over the whole log found.
#[derive(Debug, Default)]
pub struct AuditReport {
    pub check: AuditCheck,
    /// Number and time of the newest anchor: what was cut off the end after it can't be seen.
    pub anchor: Option<(i64, Time)>,
}

pub async fn verify_audit(store: &dyn Store) -> Result<AuditReport> {
    let (mut check, mut anchor) = (AuditCheck::default(), None);
    each_link(store, |link| {
        check.show(link);
        let anchors = link.entries.iter().filter(|one| one.entry.action == ANCHORED && !link.hash.is_empty());
        anchor = anchor.max(anchors.map(|one| (one.entry.at, one.number)).max());
    })
    .await?;
    Ok(AuditReport { check: check.finish(), anchor: anchor.map(|(at, number)| (number, at)) })
}

/// Shows every link, the oldest chain first, each from its beginning.
pub async fn each_link(store: &dyn Store, mut show: impl FnMut(&AuditLink)) -> Result<()> {
    let heads = store.chain_heads().await?;
    let heads: BTreeMap<_, _> = heads.into_iter().map(|head| (head.chain, head.n)).collect();
    let mut after = None;
    loop {
        let page = store.find_links(after, FIND_MAX).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some((last.chain, last.n));
        // What hangs on no link is shown whenever it came: nothing of ours writes it.
        let is_older = |link: &&AuditLink| heads.get(&link.chain).is_some_and(|head| link.n <= *head);
        page.iter().filter(|link| link.hash.is_empty() || is_older(link)).for_each(&mut show);
    }
}

#[cfg(test)]
mod tests {
    use sekisho_core::audit::Entry;
    use sekisho_core::change::ChangeSet;
    use sekisho_store::memory::MemoryStore;

    use sekisho_core::provider::encode_hex;
    use serde_json::Value;

    use super::*;
    use crate::view::exported;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    fn entry(n: i64) -> Entry {
        Entry {
            at: NOW.plus_ms(n),
            actor: None,
            role: None,
            action: "payment.changed".into(),
            target: ("payment".into(), format!("pay_{n}")),
            tenant: None,
            event: None,
            details: r#"{"a":1}"#.into(),
        }
    }

    async fn note(store: &MemoryStore, audit: Vec<Entry>) {
        store.commit(vec![ChangeSet { audit, ..ChangeSet::nothing(NOW) }]).await.unwrap();
    }

    #[tokio::test]
    async fn d8_the_whole_log_is_walked_page_by_page() {
        let store = MemoryStore::default();
        let links = FIND_MAX as i64 + 1;
        for n in 0..links {
            note(&store, vec![entry(n), entry(n)]).await;
        }
        let verified = verify_audit(&store).await.unwrap();
        assert_eq!(verified.check.faults, []);
        assert_eq!((verified.check.entries, verified.check.links), (2 * links as u64, links as u64));
        assert_eq!(verified.anchor, None);
    }

    #[tokio::test]
    async fn d8_the_newest_anchor_is_known() {
        let store = MemoryStore::default();
        note(&store, vec![entry(0)]).await;
        let heads = store.chain_heads().await.unwrap();
        let heads: Vec<_> = heads.into_iter().map(|one| (one.chain, one.n, encode_hex(one.hash))).collect();
        for at in [NOW.plus_ms(1), NOW.plus_ms(2)] {
            note(&store, vec![sekisho_core::audit::anchor(&heads, at)]).await;
        }
        let verified = verify_audit(&store).await.unwrap();
        assert_eq!((verified.check.anchors, verified.check.faults), (2, vec![]));
        assert_eq!(verified.anchor.map(|(_, at)| at), Some(NOW.plus_ms(2)));
    }

    #[tokio::test]
    async fn d8_what_is_exported_is_all_that_the_hash_needs() {
        let store = MemoryStore::default();
        note(&store, vec![entry(1), entry(2)]).await;
        let mut lines = Vec::new();
        each_link(&store, |link| lines.extend(exported(link).map(|entry| serde_json::json!(entry))))
            .await
            .unwrap();
        assert_eq!(lines.len(), 2);
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        let bytes = |hex: &Value| hex.as_str().unwrap().as_bytes().chunks(2).map(byte).collect::<Vec<_>>();
        let hash = |value: &Value| sekisho_core::audit::Hash::try_from(bytes(value)).unwrap();
        let link = sekisho_core::audit::link(
            &hash(&lines[0]["previous"]),
            lines.iter().map(|one| hash(&one["digest"])),
        );
        assert_eq!(link, hash(&lines[1]["hash"]));
        assert_eq!(lines[0]["details_text"], r#"{"a":1}"#);
    }
}
