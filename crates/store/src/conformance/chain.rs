//! What a store promises about the audit log. That a changed, removed or inserted row is seen can only be shown through
//! SQL: the tests of the databases do.

use std::collections::BTreeMap;
use std::sync::Arc;

use sekisho_core::Seq;
use sekisho_core::audit::{self, BEGINNING, Entry};
use sekisho_core::change::ChangeSet;

use super::{
    ALL, APPLIED, Arrivals, NOW, UP, act, commit, dead, entry, finish, join, leased, payment, write, writes,
};
use crate::{AuditFilter, Link, Store};

async fn note(store: &Arc<dyn Store>, audit: Vec<Entry>) {
    assert_eq!(commit(store, ChangeSet { audit, ..ChangeSet::nothing(NOW) }).await, APPLIED);
}

pub async fn entries(store: Arc<dyn Store>) {
    let full = Entry {
        at: NOW.plus_ms(7),
        actor: Some("mika".into()),
        role: Some("operator".into()),
        action: "payment.refunded".into(),
        target: ("payment".into(), "客/1".into()),
        tenant: Some("t1".into()),
        event: Some(Seq::from_i64(9)),
        details: "{\"名\":\"前\"}".into(),
    };
    let given = [
        entry("payment.paid", "p1"),
        full.clone(),
        Entry { tenant: Some("t2".into()), ..entry("payment.refund_failed", "p1") },
        Entry { actor: Some("tomo".into()), at: NOW.plus_ms(-3), ..entry("tenant.made", "t2") },
    ];
    note(&store, given[..3].to_vec()).await;
    note(&store, given[3..].to_vec()).await;
    let find = async |filter: AuditFilter| -> Vec<usize> {
        let found = store.find_audit(filter).await.expect(UP);
        assert!(found.windows(2).all(|pair| pair[0].number > pair[1].number), "newest first");
        found
            .iter()
            .map(|found| given.iter().position(|one| *one == found.entry).expect("as given"))
            .collect()
    };
    let all = || AuditFilter { limit: ALL, ..AuditFilter::default() };
    assert_eq!(find(all()).await, [3, 2, 1, 0]);
    assert_eq!(find(AuditFilter { tenant: Some("t1".into()), ..all() }).await, [1]);
    assert_eq!(find(AuditFilter { action: Some("payment.paid".into()), ..all() }).await, [0]);
    assert_eq!(find(AuditFilter { action: Some("payment.*".into()), ..all() }).await, [2, 1, 0]);
    assert_eq!(find(AuditFilter { action: Some("payment.refund*".into()), ..all() }).await, [2, 1]);
    assert_eq!(find(AuditFilter { target: Some("p1".into()), ..all() }).await, [2, 0]);
    assert_eq!(find(AuditFilter { actor: Some("mika".into()), ..all() }).await, [1]);
    assert_eq!(find(AuditFilter { since: Some(NOW), until: Some(NOW.plus_ms(7)), ..all() }).await, [2, 0]);
    let newest = store.find_audit(AuditFilter { limit: 2, ..all() }).await.expect(UP);
    assert_eq!(find(AuditFilter { before: Some(newest[1].number), limit: 1, ..all() }).await, [1]);
    assert!(find(AuditFilter { limit: 0, ..all() }).await.is_empty());
}

/// Reads all links, a few at a time.
async fn links_of(store: &Arc<dyn Store>, limit: usize) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    loop {
        let after = links.last().map(|link| (link.chain, link.n));
        let page = store.find_links(after, limit).await.expect(UP);
        if page.is_empty() {
            return links;
        }
        links.extend(page);
    }
}

/// Every link follows the one before it, holds its entries, and is the head of its chain or has a successor.
async fn assert_whole(store: &Arc<dyn Store>, links: &[Link]) {
    let mut heads: BTreeMap<i64, (i64, Vec<u8>)> = BTreeMap::new();
    for link in links {
        let (n, previous) = heads.remove(&link.chain).unwrap_or((0, BEGINNING.to_vec()));
        assert_eq!((link.n, &link.previous), (n + 1, &previous));
        assert!(!link.entries.is_empty(), "a link is written for entries");
        assert!(link.entries.windows(2).all(|pair| pair[0].number < pair[1].number));
        let previous = previous.as_slice().try_into().expect("32 bytes");
        let hash = audit::link(previous, link.entries.iter().map(|one| one.entry.digest()));
        assert_eq!(link.hash, hash);
        heads.insert(link.chain, (link.n, link.hash.clone()));
    }
    let found = store.chain_heads().await.expect(UP);
    assert_eq!(
        found.into_iter().map(|head| (head.chain, (head.n, head.hash))).collect::<BTreeMap<_, _>>(),
        heads
    );
}

pub async fn links(store: Arc<dyn Store>) {
    assert_eq!(store.find_links(None, ALL).await.expect(UP), []);
    assert_eq!(store.chain_heads().await.expect(UP), []);
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    note(&store, vec![entry("a", "1"), entry("a", "2")]).await;
    note(&store, vec![Entry { actor: Some("nul\0".into()), ..entry("a", "3") }]).await;
    // Several sets of one call are one link; what is refused hangs on none.
    let (good, stale) =
        (writes(vec![write(&payment("p"), 0, "{}")]), writes(vec![write(&payment("q"), 1, "{}")]));
    let noted = |set: ChangeSet, target: &str| ChangeSet { audit: vec![entry("b", target)], ..set };
    let sets = vec![noted(good, "4"), noted(stale, "never"), noted(ChangeSet::nothing(NOW), "5")];
    store.commit(sets).await.expect(UP);
    let refused = noted(writes(vec![write(&payment("p"), 0, "{}")]), "never");
    assert_ne!(commit(&store, refused).await, APPLIED);
    let mut letters = Vec::new();
    for _ in 0..3 {
        let lease = leased(&store, epoch, new.job("app")).await;
        assert_eq!(finish(&store, lease, dead()).await, APPLIED);
        letters.push(lease.job);
    }
    store.revive(letters[..2].to_vec(), act("one")).await.expect(UP);
    store.revive(letters[..2].to_vec(), act("again")).await.expect(UP);
    store.discard(letters.clone(), act("two")).await.expect(UP);

    let links = links_of(&store, ALL).await;
    let sizes: Vec<_> = links.iter().map(|link| link.entries.len()).collect();
    assert_eq!(sizes, [2, 1, 2, 2, 1], "one link for everything written together");
    assert_whole(&store, &links).await;
    let targets: Vec<_> =
        links[..3].iter().flat_map(|link| &link.entries).map(|one| &*one.entry.target.1).collect();
    assert_eq!(targets, ["1", "2", "3", "4", "5"]);
    for limit in [1, 2, 3] {
        assert_eq!(links_of(&store, limit).await, links, "page by page");
    }
    assert_eq!(store.find_links(None, 0).await.expect(UP), []);
}

pub async fn many_writers(store: Arc<dyn Store>) {
    let runs = (0..8).map(|run| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            for n in 0..10 {
                note(&store, vec![entry("a", &format!("{run}/{n}")), entry("b", &format!("{run}/{n}"))])
                    .await;
            }
        })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await.expect("no panic");
    }
    let links = links_of(&store, 7).await;
    assert_whole(&store, &links).await;
    assert_eq!(links.iter().map(|link| link.entries.len()).sum::<usize>(), 160);
}
