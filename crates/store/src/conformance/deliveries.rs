//! What a store promises about deliveries.

use std::sync::Arc;

use sekisho_core::change::ChangeSet;
use sekisho_core::job::{End, Lane, NewJob, Outcome, delivery_key};
use sekisho_core::{Seq, Time};

use super::{
    ALL, APPLIED, Arrivals, NOW, UP, act, admit_one, attempt, audited, claim_from, commit, dead, death, done,
    finish, ids, join, leased, queue, standing,
};
use crate::{
    DeliveryCounts, DeliveryFilter, DeliveryPage, DeliveryRecord, DeliveryStatus, LastCall, SCAN_MAX,
    Standing, Store,
};

async fn find(store: &Arc<dyn Store>, filter: DeliveryFilter) -> DeliveryPage {
    store.find_deliveries(filter).await.expect(UP)
}

fn all() -> DeliveryFilter {
    DeliveryFilter { limit: ALL, ..DeliveryFilter::default() }
}

fn jobs(page: &DeliveryPage) -> Vec<Seq> {
    page.deliveries.iter().map(|one| one.job).collect()
}

pub async fn pages(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let event = admit_one(&store, new.event("a")).await;
    assert_eq!(
        find(&store, all()).await,
        DeliveryPage { deliveries: Vec::new(), next: None },
        "settling is none"
    );
    let delivered = leased(&store, epoch, new.delivery(event, "app")).await;
    let set = ChangeSet::end(delivered, done(), NOW).with_attempt(attempt(200));
    assert_eq!(commit(&store, set).await, APPLIED);
    let retried = leased(&store, epoch, new.delivery(event, "crm")).await;
    let again = End::Retry { due_at: NOW.plus_ms(9) };
    let set = ChangeSet::end(retried, again, NOW).with_attempt(attempt(503));
    assert_eq!(commit(&store, set).await, APPLIED);
    let failed = leased(&store, epoch, new.delivery(event, "old")).await;
    assert_eq!(finish(&store, failed, dead()).await, APPLIED);
    let running = leased(&store, epoch, new.job("app")).await;
    let cancelled = NewJob { due_at: NOW.plus_ms(5), ..new.job("app") };
    queue(&store, vec![cancelled.clone()]).await;
    assert_eq!(store.cancel(vec![cancelled.id], act("enough")).await.expect(UP), [true]);

    let call = |status| LastCall {
        at: NOW,
        took_ms: attempt(status).took_ms,
        status: Some(status),
        reason: attempt(status).reason,
    };
    let one = |job, route: &str, attempts, standing, last| DeliveryRecord {
        job,
        lane: Lane::to_route(route),
        attempts,
        standing,
        event: Some(event),
        event_id: Some("a".into()),
        event_type: Some("payment.paid".into()),
        source: Some("shop".into()),
        last,
    };
    let about_nothing = |record: DeliveryRecord| DeliveryRecord {
        event: None,
        event_id: None,
        event_type: None,
        source: None,
        ..record
    };
    let why = Outcome::Discarded { note: "cancelled by mika: enough".into() };
    let expected = vec![
        about_nothing(one(cancelled.id, "app", 0, Standing::Done(why, act("").at), None)),
        about_nothing(one(running.job, "app", 1, Standing::Running, None)),
        one(failed.job, "old", 1, Standing::Dead(death(), NOW), None),
        one(retried.job, "crm", 1, Standing::Waiting(NOW.plus_ms(9)), Some(call(503))),
        one(delivered.job, "app", 1, Standing::Done(Outcome::SUCCESS, NOW), Some(call(200))),
    ];
    assert_eq!(find(&store, all()).await, DeliveryPage { deliveries: expected.clone(), next: None });

    let of = |status| DeliveryFilter { status: Some(status), ..all() };
    for (status, places) in [
        (DeliveryStatus::Waiting, &[1, 3][..]),
        (DeliveryStatus::Delivered, &[4]),
        (DeliveryStatus::Failed, &[2]),
        (DeliveryStatus::Cancelled, &[0]),
    ] {
        let wanted: Vec<_> = places.iter().map(|place| expected[*place].clone()).collect();
        assert_eq!(find(&store, of(status)).await.deliveries, wanted, "{}", status.name());
    }
    let to = |route| DeliveryFilter { lane: Some(Lane::to_route(route)), ..all() };
    assert_eq!(jobs(&find(&store, to("app")).await), [cancelled.id, running.job, delivered.job]);
    assert_eq!(jobs(&find(&store, to("none")).await), []);
    let within = DeliveryFilter { after: Some(delivered.job), before: Some(failed.job), ..all() };
    assert_eq!(jobs(&find(&store, within).await), [retried.job]);

    let mut filter = DeliveryFilter { limit: 2, ..all() };
    let mut found = Vec::new();
    loop {
        let page = find(&store, filter.clone()).await;
        found.extend(jobs(&page));
        filter.before = page.next;
        if page.next.is_none() {
            break;
        }
    }
    assert_eq!(found, expected.iter().map(|one| one.job).collect::<Vec<_>>());
    assert_eq!(find(&store, DeliveryFilter { limit: 0, ..all() }).await.next, None);
}

pub async fn scans(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let (wanted, older) = (new.job("rare"), new.job("rare"));
    queue(&store, vec![wanted.clone(), older.clone()]).await;
    for _ in 0..SCAN_MAX / 1_000 {
        queue(&store, (0..1_000).map(|_| new.job("busy")).collect()).await;
    }
    let rare = DeliveryFilter { lane: Some(Lane::to_route("rare")), ..all() };
    let first = find(&store, rare.clone()).await;
    assert_eq!(first.deliveries, [], "it looked at so many");
    let second = find(&store, DeliveryFilter { before: first.next, ..rare }).await;
    assert_eq!((jobs(&second), second.next), (vec![older.id, wanted.id], None));
}

pub async fn counts(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let event = admit_one(&store, new.event("a")).await;
    let other = admit_one(&store, new.event("b")).await;
    let found = async |events: Vec<Seq>| store.find_delivery_counts(events).await.expect(UP);
    assert_eq!(found(vec![event]).await, [DeliveryCounts::default()]);
    assert_eq!(found(vec![event]).await[0].status(), None);
    for (route, end) in [("app", done()), ("crm", dead()), ("old", End::Retry { due_at: NOW })] {
        let lease = leased(&store, epoch, new.delivery(event, route)).await;
        assert_eq!(finish(&store, lease, end).await, APPLIED);
    }
    let counted = DeliveryCounts { waiting: 1, delivered: 1, failed: 1, cancelled: 0 };
    assert_eq!(found(vec![other, event]).await, [DeliveryCounts::default(), counted]);
    assert_eq!((counted.all(), counted.status()), (3, Some(DeliveryStatus::Failed)));
    let again =
        NewJob { key: Some(delivery_key(event, &Lane::to_route("crm"), 1)), ..new.delivery(event, "crm") };
    let lease = leased(&store, epoch, again).await;
    assert_eq!(finish(&store, lease, done()).await, APPLIED);
    assert_eq!(
        found(vec![event]).await[0],
        DeliveryCounts { waiting: 1, delivered: 2, failed: 0, cancelled: 0 }
    );
}

pub async fn cancels(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let running = leased(&store, epoch, new.job("app")).await;
    let dead_one = leased(&store, epoch, new.job("app")).await;
    assert_eq!(finish(&store, dead_one, dead()).await, APPLIED);
    let event = admit_one(&store, new.event("a")).await;
    let waiting = NewJob { due_at: Time::from_ms(NOW.ms() + 5), ..new.delivery(event, "app") };
    queue(&store, vec![waiting.clone()]).await;
    let asked = vec![running.job, waiting.id, waiting.id, dead_one.job, event, Seq::from_i64(5)];
    let found = store.cancel(asked, act("enough")).await.expect(UP);
    assert_eq!(found, [false, true, false, false, false, false], "no run, no dead letter, no settling");
    let note = "cancelled by mika: enough".to_owned();
    let outcome = Outcome::Discarded { note };
    assert_eq!(standing(&store, waiting.id).await, Some(Standing::Done(outcome, act("").at)));
    assert_eq!(finish(&store, running, done()).await, APPLIED, "it was not disturbed");
    assert_eq!(ids(&claim_from(&store, epoch, Lane::to_route("app"), ALL, act("").at).await), []);
    let entry = &audited(&store).await[0];
    let said = (entry.action.as_str(), entry.target.1.as_str(), entry.actor.as_deref());
    assert_eq!(said, ("delivery.cancelled", waiting.id.as_message().to_string().as_str(), Some("mika")));
    assert!(store.cancel(Vec::new(), act("")).await.expect(UP).is_empty());
}

pub async fn cancelled_head(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let row = new.jobs_of_fifo("客", 3);
    let lane = Lane::to_route("app");
    let late = NewJob { due_at: NOW.plus_ms(9), ..row[0].clone() };
    queue(&store, vec![late.clone(), row[1].clone(), row[2].clone()]).await;
    assert_eq!(
        ids(&claim_from(&store, epoch, lane.clone(), ALL, NOW).await),
        [],
        "they wait behind the first"
    );
    assert_eq!(store.cancel(vec![late.id], act("enough")).await.expect(UP), [true]);
    let jobs = claim_from(&store, epoch, lane.clone(), ALL, NOW).await;
    assert_eq!(ids(&jobs), [row[1].id]);
}
