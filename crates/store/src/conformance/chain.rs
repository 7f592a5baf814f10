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
use crate::{AuditFilter, AuditLink, Store};

pub(super) async fn note(store: &Arc<dyn Store>, audit: Vec<Entry>) {
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
        let found = store.find_audit(filter).await.expect(UP).entries;
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
    assert_eq!(newest.next, Some(newest.entries[1].number), "it was filled");
    assert_eq!(find(AuditFilter { before: newest.next, limit: 1, ..all() }).await, [1]);
    assert_eq!(store.find_audit(all()).await.expect(UP).next, None, "that was all");
    let since = AuditFilter { since: Some(NOW.plus_ms(-3)), ..all() };
    assert_eq!(find(AuditFilter { actor: Some("tomo".into()), ..since.clone() }).await, [3]);
    assert_eq!(find(AuditFilter { action: Some("payment.*".into()), limit: 1, ..since }).await, [2]);
    assert!(find(AuditFilter { limit: 0, ..all() }).await.is_empty());
}

/// Reads all links, a few at a time.
async fn links_of(store: &Arc<dyn Store>, limit: usize) -> Vec<AuditLink> {
    let mut links: Vec<AuditLink> = Vec::new();
    loop {
        let after = links.last().map(|link| (link.chain, link.n));
        let page = store.find_links(after, limit).await.expect(UP);
        if page.is_empty() {
            return links;
        }
        links.extend(page);
    }
}

/// Ways to tamper with the log, in SQL that both databases understand. Each must be seen.
pub const TAMPERINGS: &[(&str, &str)] = &[
    ("an entry was changed", "UPDATE audit SET details = '{}  ' WHERE number = 2"),
    ("an entry has another author", "UPDATE audit SET actor = 'kei' WHERE number = 1"),
    ("an entry was removed", "DELETE FROM audit WHERE number = 2"),
    ("an entry was slipped in", SLIPPED_IN),
    ("an entry hangs on nothing", HANGS_ON_NOTHING),
    ("a link was changed", "UPDATE link SET hash = previous WHERE n = 2"),
    ("a link was removed", "DELETE FROM link WHERE n = 1"),
    ("a link was removed with its entries", "DELETE FROM audit WHERE n = 1; DELETE FROM link WHERE n = 1"),
];
const SLIPPED_IN: &str = "
INSERT INTO audit (at, action, target_kind, target_id, details, digest, chain, n)
SELECT at, 'payment.forgiven', target_kind, target_id, details, digest, chain, n FROM audit WHERE number = 1";
const HANGS_ON_NOTHING: &str = "
INSERT INTO audit (at, action, target_kind, target_id, details, digest, chain, n)
SELECT at, action, target_kind, target_id, details, digest, chain + 7, n FROM audit WHERE number = 1";

/// Something to tamper with: three links in one chain.
pub async fn write_three_links(store: &Arc<dyn Store>) {
    note(store, vec![entry("a", "1"), entry("a", "2")]).await;
    note(store, vec![entry("a", "3")]).await;
    note(store, vec![entry("a", "4")]).await;
}

/// What is wrong with the log, if anything: every link must follow the one before it and hold its entries, and every
/// chain must end in its head.
pub async fn fault(store: &Arc<dyn Store>) -> Option<String> {
    let mut ends: BTreeMap<i64, (i64, Vec<u8>)> = BTreeMap::new();
    for link in links_of(store, 2).await {
        let (n, previous) = ends.remove(&link.chain).unwrap_or((0, BEGINNING.to_vec()));
        let before = previous.as_slice().try_into().expect("32 bytes");
        let hash = audit::link(before, link.entries.iter().map(|one| one.entry.digest()));
        let in_order = link.entries.windows(2).all(|pair| pair[0].number < pair[1].number);
        if link.n != n + 1
            || link.previous != previous
            || link.hash != hash
            || !in_order
            || link.entries.is_empty()
        {
            return Some(format!("{link:?}"));
        }
        ends.insert(link.chain, (link.n, link.hash));
    }
    let heads = store.chain_heads().await.expect(UP);
    let heads: BTreeMap<_, _> = heads.into_iter().map(|head| (head.chain, (head.n, head.hash))).collect();
    (heads != ends).then(|| format!("{heads:?} are not {ends:?}"))
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
    store.retry(letters[..2].to_vec(), act("one")).await.expect(UP);
    store.retry(letters[..2].to_vec(), act("again")).await.expect(UP);
    store.discard(letters.clone(), act("two")).await.expect(UP);

    let links = links_of(&store, ALL).await;
    let sizes: Vec<_> = links.iter().map(|link| link.entries.len()).collect();
    assert_eq!(sizes, [2, 1, 2, 2, 1], "one link for everything written together");
    assert_eq!(fault(&store).await, None);
    let targets: Vec<_> =
        links[..3].iter().flat_map(|link| &link.entries).map(|one| &*one.entry.target.1).collect();
    assert_eq!(targets, ["1", "2", "3", "4", "5"]);
    for limit in [1, 2, 3] {
        assert_eq!(links_of(&store, limit).await, links, "page by page");
    }
    assert_eq!(store.find_links(None, 0).await.expect(UP), []);

    let last = links.last().expect("there are some");
    let numbers = [&links[0], last].into_iter().flat_map(|link| &link.entries).map(|one| one.number);
    let places = store.find_places(numbers.chain([i64::MAX]).collect()).await.expect(UP);
    assert_eq!(places, [&links[0], last].map(|link| (link.chain, link.n)).into());
    assert!(store.find_places(Vec::new()).await.expect(UP).is_empty());
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
    assert_eq!(fault(&store).await, None);
    assert_eq!(links.iter().map(|link| link.entries.len()).sum::<usize>(), 160);
}
