//! What a store promises about searches among many: one call looks at so much and no more, and nothing is passed over.

use std::sync::Arc;

use sekisho_core::change::{Admission, Arrival, ChangeSet, Ended};
use sekisho_core::event::About;
use sekisho_core::job::{End, Lease};
use sekisho_core::{Epoch, Seq};

use super::chain::note;
use super::{APPLIED, Arrivals, NOW, UP, commit, dead, done, entry, join};
use crate::{ADMIT_MAX, AuditFilter, AuditPage, EventFilter, EventPage, Order, SCAN_MAX, Status, Store};

/// More than one call looks at.
const MANY: usize = SCAN_MAX + 3;

async fn admit_many(store: &Arc<dyn Store>, rows: &[Arrival], epoch: Epoch) {
    for chunk in rows.chunks(ADMIT_MAX) {
        let admitted = store.admit(chunk.to_vec().into(), Some(epoch)).await.expect(UP);
        assert!(admitted.iter().all(|admission| *admission == Admission::Admitted));
    }
}

fn seqs(page: &EventPage) -> Vec<Seq> {
    page.events.iter().map(|event| event.seq).collect()
}

pub async fn events(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let mut rows: Vec<_> = (0..MANY).map(|n| new.event(&n.to_string())).collect();
    for rare in [0, MANY - 1] {
        rows[rare].event_type = "rare".into();
    }
    admit_many(&store, &rows, epoch).await;
    let find = async |filter: EventFilter| store.find_events(filter).await.expect(UP);
    let all = || EventFilter { limit: 10, ..EventFilter::default() };
    let rare = || EventFilter { event_type: Some("rare".into()), ..all() };
    let (oldest, newest) = (rows[0].seq, rows[MANY - 1].seq);

    let page = find(rare()).await;
    assert_eq!((seqs(&page), page.next), (vec![newest], Some(rows[MANY - SCAN_MAX].seq)), "it stopped there");
    let page = find(EventFilter { before: page.next, ..rare() }).await;
    assert_eq!((seqs(&page), page.next), (vec![oldest], None), "that was all");

    let oldest_first = || EventFilter { order: Order::OldestFirst, ..rare() };
    let page = find(oldest_first()).await;
    assert_eq!((seqs(&page), page.next), (vec![oldest], Some(rows[SCAN_MAX - 1].seq)));
    let page = find(EventFilter { after: page.next, ..oldest_first() }).await;
    assert_eq!((seqs(&page), page.next), (vec![newest], None));

    let page = find(EventFilter { limit: 1, ..rare() }).await;
    assert_eq!((seqs(&page), page.next), (vec![newest], Some(newest)), "a full page leads on after its last");
    let page = find(EventFilter { limit: 2, ..all() }).await;
    assert_eq!(page.next, Some(rows[MANY - 2].seq));
    let page = find(EventFilter { before: Some(rows[2].seq), ..all() }).await;
    assert_eq!((seqs(&page), page.next), (vec![rows[1].seq, oldest], None));
    let page = find(EventFilter { event_type: Some("none".into()), before: Some(newest), ..all() }).await;
    assert_eq!(
        (seqs(&page), page.next),
        (vec![], Some(rows[MANY - 1 - SCAN_MAX].seq)),
        "empty, and leads on"
    );
    assert_eq!(find(EventFilter { limit: 0, ..rare() }).await, EventPage { events: vec![], next: None });
}

pub async fn led_events(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let rows: Vec<_> = (0..MANY).map(|n| new.event(&n.to_string())).collect();
    admit_many(&store, &rows, epoch).await;
    // The oldest five: about something, about something else, about both, failed, and not settled.
    let about = |payment: Option<&str>, tenant: Option<&str>| About {
        payment: payment.map(str::to_owned),
        billing: None,
        tenant: tenant.map(str::to_owned),
    };
    let fates = [
        (about(Some("p"), None), done()),
        (about(Some("q"), Some("t")), done()),
        (about(Some("p"), Some("t")), done()),
        (About::default(), dead()),
    ];
    let settle = |seq: Seq, end: End, about: About| {
        let ended = Ended { lease: Lease::born(seq, epoch), end, attempt: None, about };
        ChangeSet { ends: vec![ended], ..ChangeSet::nothing(NOW) }
    };
    let few: Vec<_> = rows.iter().zip(fates).map(|(row, (about, end))| settle(row.seq, end, about)).collect();
    assert!(store.commit(few).await.expect(UP).iter().all(|answer| *answer == APPLIED));
    for chunk in rows[5..].chunks(ADMIT_MAX) {
        let ends = chunk.iter().flat_map(|row| settle(row.seq, done(), About::default()).ends).collect();
        assert_eq!(commit(&store, ChangeSet { ends, ..ChangeSet::nothing(NOW) }).await, APPLIED);
    }

    let all = || EventFilter { limit: 10, ..EventFilter::default() };
    let of = |payment: Option<&str>, tenant: Option<&str>| EventFilter {
        payment: payment.map(str::to_owned),
        tenant: tenant.map(str::to_owned),
        ..all()
    };
    let standing = |status| EventFilter { status: Some(status), ..all() };
    let cases: [(&str, EventFilter, &[usize]); 10] = [
        ("payment", of(Some("p"), None), &[2, 0]),
        ("tenant", of(None, Some("t")), &[2, 1]),
        ("both", of(Some("p"), Some("t")), &[2]),
        ("neither", of(Some("none"), None), &[]),
        ("oldest first", EventFilter { order: Order::OldestFirst, ..of(Some("p"), None) }, &[0, 2]),
        ("before", EventFilter { before: Some(rows[2].seq), ..of(None, Some("t")) }, &[1]),
        ("after", EventFilter { after: Some(rows[0].seq), ..of(Some("p"), None) }, &[2]),
        ("failed", standing(Status::Failed), &[3]),
        ("received", standing(Status::Received), &[4]),
        ("another status", EventFilter { status: Some(Status::Skipped), ..of(Some("p"), None) }, &[]),
    ];
    for (case, filter, expected) in cases {
        let page = store.find_events(filter).await.expect(UP);
        let expected: Vec<_> = expected.iter().map(|n| rows[*n].seq).collect();
        assert_eq!((seqs(&page), page.next), (expected, None), "{case}");
    }
    let page = store.find_events(EventFilter { limit: 1, ..of(Some("p"), None) }).await.expect(UP);
    assert_eq!((seqs(&page), page.next), (vec![rows[2].seq], Some(rows[2].seq)));
    let both = EventFilter { tenant: Some("t".into()), ..standing(Status::Failed) };
    assert_eq!(store.find_events(both).await.expect(UP).events, [], "it was never settled");
}

pub async fn audit(store: Arc<dyn Store>) {
    let mut entries: Vec<_> = (0..MANY).map(|_| entry("payment.changed", "p")).collect();
    entries[0].action = "tenant.made".into();
    entries[0].actor = Some("mika".into());
    entries[0].tenant = Some("t".into());
    entries[0].target.1 = "t".into();
    entries[0].at = NOW.plus_ms(-1_000);
    entries[MANY - 1].action = "tenant.made".into();
    for chunk in entries.chunks(ADMIT_MAX) {
        note(&store, chunk.to_vec()).await;
    }
    let find = async |filter: AuditFilter| store.find_audit(filter).await.expect(UP);
    let all = || AuditFilter { limit: 10, ..AuditFilter::default() };
    let made = || AuditFilter { action: Some("tenant.*".into()), ..all() };
    let first = find(AuditFilter { actor: Some("mika".into()), ..all() }).await.entries.remove(0).number;

    let far = || AuditFilter { since: Some(NOW.plus_ms(-2_000)), ..made() };
    for filter in [made(), far()] {
        let page = find(filter.clone()).await;
        assert_eq!((page.entries.len(), page.next.is_some()), (1, true), "it stopped before the other");
        let page = find(AuditFilter { before: page.next, ..filter }).await;
        assert_eq!((page.entries[0].number, page.entries.len(), page.next), (first, 1, None));
    }
    let cases = [
        ("actor", AuditFilter { actor: Some("mika".into()), ..all() }),
        ("tenant", AuditFilter { tenant: Some("t".into()), ..made() }),
        ("target", AuditFilter { target: Some("t".into()), ..all() }),
        ("until", AuditFilter { until: Some(NOW.plus_ms(-500)), ..all() }),
        ("a time", AuditFilter { since: Some(NOW.plus_ms(-1_000)), until: Some(NOW), ..made() }),
        ("all", AuditFilter { actor: Some("mika".into()), until: Some(NOW), ..far() }),
    ];
    for (case, filter) in cases {
        let page = find(filter).await;
        let numbers: Vec<_> = page.entries.iter().map(|entry| entry.number).collect();
        assert_eq!((numbers, page.next), (vec![first], None), "{case}");
    }
    let page = find(AuditFilter { target: Some("p".into()), ..made() }).await;
    assert_eq!(page.entries.len(), 1);
    assert!(page.next.is_some(), "an index that leads to many is bounded too");
    assert_eq!(find(AuditFilter { limit: 0, ..made() }).await, AuditPage { entries: vec![], next: None });
}
