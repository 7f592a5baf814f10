//! What a store promises about change sets that end several jobs, and about what a refused set leaves: nothing.

use std::sync::Arc;

use sekisho_core::Epoch;
use sekisho_core::change::{ChangeSet, Committed, Ended};
use sekisho_core::event::About;
use sekisho_core::job::{End, Lease, Outcome};
use sekisho_core::state::Naming;

use super::{
    APPLIED, Arrivals, NOW, UP, admit_one, attempt, audited, booked, claim, claim_name, commit, dead, done,
    entry, finish, join, leads_to, leased, message, payment, posting, standing, stored, version, write,
    writes,
};
use crate::{EventFilter, Standing, Status, Store};

/// A set that changes a little of everything. `name` tells it from others.
pub fn everything(new: &mut Arrivals, leases: &[Lease], name: &str) -> ChangeSet {
    let key = payment(name);
    let event = new.event(&format!("made by {name}"));
    let ended = |lease: &Lease| Ended { attempt: Some(attempt(200)), ..Ended::new(*lease, done()) };
    ChangeSet {
        ends: leases.iter().map(ended).collect(),
        jobs: vec![new.job(name), new.delivery(event.seq, name)],
        writes: vec![write(&key, 0, "{}")],
        names: vec![claim_name(name, &key)],
        postings: vec![posting("cash", 5, name), posting("owed", -5, name)],
        audit: vec![entry("payment.paid", name)],
        events: vec![event],
        ..ChangeSet::nothing(NOW)
    }
}

/// Nothing of a set is to be found, in any table.
pub async fn assert_left_nothing(store: &Arc<dyn Store>, set: &ChangeSet) {
    for ended in &set.ends {
        assert!(!matches!(
            standing(store, ended.lease.job).await,
            Some(Standing::Done(..) | Standing::Dead(..))
        ));
        let attempts = store.find_attempts(ended.lease.job).await.expect(UP);
        assert!(attempts.iter().all(|(n, _)| *n != ended.lease.attempt));
    }
    for job in &set.jobs {
        assert_eq!(message(store, job.id).await, None);
    }
    for write in &set.writes {
        assert!(
            stored(store, &write.key)
                .await
                .is_none_or(|state| state.version == write.version || state.facts != write.facts)
        );
    }
    for Naming { name, key, .. } in &set.names {
        assert_ne!(leads_to(store, name).await.as_ref(), Some(key));
    }
    let booked = booked(store).await;
    assert!(set.postings.iter().all(|posting| !booked.contains(posting)));
    let audited = audited(store).await;
    assert!(set.audit.iter().all(|entry| !audited.contains(entry)));
    for event in &set.events {
        assert_eq!(store.find_event(event.seq).await.expect(UP), None);
        assert_eq!(store.known(&[event.key]).await.expect(UP), [None]);
        assert_eq!(message(store, event.seq).await, None);
        assert_eq!(store.find_messages(event.seq).await.expect(UP), [], "no key of an effect");
    }
}

/// Everything of a set from [`everything`] is there.
pub async fn assert_left_everything(store: &Arc<dyn Store>, set: &ChangeSet) {
    for ended in &set.ends {
        assert_eq!(standing(store, ended.lease.job).await, Some(Standing::Done(Outcome::SUCCESS, NOW)));
    }
    for job in &set.jobs {
        assert_eq!(standing(store, job.id).await, Some(Standing::Waiting(NOW)));
    }
    for write in &set.writes {
        assert_eq!(version(store, &write.key).await, write.version + 1);
    }
    for Naming { name, key, .. } in &set.names {
        assert_eq!(leads_to(store, name).await.as_ref(), Some(key));
    }
    let booked = booked(store).await;
    assert!(set.postings.iter().all(|posting| booked.contains(posting)));
    let audited = audited(store).await;
    assert!(set.audit.iter().all(|entry| audited.contains(entry)));
    for event in &set.events {
        assert_eq!(store.load_events(vec![event.seq]).await.expect(UP), [event.stored()]);
        assert_eq!(standing(store, event.seq).await, Some(Standing::Waiting(NOW)));
    }
}

async fn leases(store: &Arc<dyn Store>, new: &mut Arrivals, epoch: Epoch, count: usize) -> Vec<Lease> {
    let mut leases = Vec::new();
    for n in 0..count {
        let route = format!("held-{n}");
        leases.push(leased(store, epoch, new.job(&route)).await);
    }
    leases
}

pub async fn several_ends(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let held = leases(&store, &mut new, epoch, 4).await;
    let retry = End::Retry { due_at: NOW.plus_ms(5) };
    let ends = vec![
        Ended { attempt: Some(attempt(200)), ..Ended::new(held[0], done()) },
        Ended::new(held[1], retry),
        Ended { attempt: Some(attempt(404)), ..Ended::new(held[2], dead()) },
        Ended::new(held[3], End::Done(Outcome::Skipped { note: "merged".into() })),
    ];
    let set = ChangeSet { ends, jobs: vec![new.job("next")], ..ChangeSet::nothing(NOW) };
    let next = set.jobs[0].id;
    assert_eq!(commit(&store, set).await, APPLIED);
    assert_eq!(standing(&store, held[0].job).await, Some(Standing::Done(Outcome::SUCCESS, NOW)));
    assert_eq!(standing(&store, held[1].job).await, Some(Standing::Waiting(NOW.plus_ms(5))));
    assert!(matches!(standing(&store, held[2].job).await, Some(Standing::Dead(..))));
    let merged = Outcome::Skipped { note: "merged".into() };
    assert_eq!(standing(&store, held[3].job).await, Some(Standing::Done(merged, NOW)));
    assert_eq!(standing(&store, next).await, Some(Standing::Waiting(NOW)));
    for (lease, tried) in held.iter().zip([Some(200), None, Some(404), None]) {
        let attempts = store.find_attempts(lease.job).await.expect(UP);
        assert_eq!(attempts, tried.map(|status| (1, attempt(status))).into_iter().collect::<Vec<_>>());
    }
}

pub async fn one_lost_lease(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let held = leases(&store, &mut new, epoch, 3).await;
    let other = leases(&store, &mut new, epoch, 2).await;
    let wrong = Lease { attempt: 2, ..held[1] };
    let lost = everything(&mut new, &[held[0], wrong, held[2]], "lost");
    let neighbour = everything(&mut new, &other, "neighbour");
    let answers = store.commit(vec![lost.clone(), neighbour.clone()]).await.expect(UP);
    assert_eq!(answers, [Committed::Lost, APPLIED]);
    assert_left_nothing(&store, &lost).await;
    assert_left_everything(&store, &neighbour).await;
    let whole = everything(&mut new, &held, "lost");
    assert_eq!(commit(&store, whole.clone()).await, APPLIED, "its leases and its names are still there");
    assert_left_everything(&store, &whole).await;
    for lease in held {
        assert_eq!(finish(&store, lease, done()).await, Committed::Lost);
    }
    // Lost comes before stale: without its lease nobody need decide again.
    let both = ChangeSet { ends: whole.ends.clone(), ..writes(vec![write(&payment("lost"), 0, "{}")]) };
    assert_eq!(commit(&store, both).await, Committed::Lost);
}

pub async fn a_lease_twice(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let held = leases(&store, &mut new, epoch, 2).await;
    let first = everything(&mut new, &held[..1], "first");
    let second = everything(&mut new, &held, "second");
    let third = everything(&mut new, &held[1..], "third");
    let answers = store.commit(vec![first.clone(), second.clone(), third.clone()]).await.expect(UP);
    assert_eq!(answers, [APPLIED, Committed::Lost, APPLIED]);
    assert_left_everything(&store, &first).await;
    assert_left_nothing(&store, &ChangeSet { ends: Vec::new(), ..second }).await;
    assert_left_everything(&store, &third).await;
}

pub async fn contradictions(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let held = leases(&store, &mut new, epoch, 1).await;
    let (a, b) = (payment("a"), payment("b"));
    let twice = everything(&mut new, &[held[0], held[0]], "twice");
    assert_eq!(commit(&store, twice.clone()).await, Committed::Lost, "there is only one to spend");
    assert_left_nothing(&store, &twice).await;
    let two_writes = writes(vec![write(&a, 0, "1"), write(&b, 0, "1"), write(&a, 0, "2")]);
    let two_things =
        ChangeSet { names: vec![claim_name("n", &a), claim_name("n", &b)], ..ChangeSet::nothing(NOW) };
    for odd in [two_writes, two_things] {
        let odd = ChangeSet { ends: vec![Ended::new(held[0], done())], ..odd };
        assert_eq!(commit(&store, odd.clone()).await, Committed::Stale);
        assert_left_nothing(&store, &odd).await;
    }
    // Said twice is no contradiction.
    let names = vec![claim_name("n", &a), claim_name("n", &a)];
    assert_eq!(commit(&store, ChangeSet { names, ..ChangeSet::nothing(NOW) }).await, APPLIED);
    assert_eq!(leads_to(&store, "n").await, Some(a));
    assert_eq!(commit(&store, ChangeSet::nothing(NOW)).await, APPLIED, "nothing is easily done");
    assert_eq!(store.commit(Vec::new()).await.expect(UP), []);
}

pub async fn about(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let about = About { payment: Some("pay_1".into()), billing: None, tenant: Some("客".into()) };
    let event = admit_one(&store, new.event("a")).await;
    let found = async || store.find_event(event).await.expect(UP).expect("it was stored").summary;
    assert_eq!(found().await.about, About::default());
    let lease = claim(&store, epoch, 1, NOW).await[0];
    let ended = Ended { about: about.clone(), ..Ended::new(lease, done()) };
    assert_eq!(commit(&store, ChangeSet { ends: vec![ended], ..ChangeSet::nothing(NOW) }).await, APPLIED);
    assert_eq!(found().await.about, about);
    let filter = EventFilter { limit: 10, ..EventFilter::default() };
    assert_eq!(store.find_events(filter).await.expect(UP).events[0].about, about);
    let delivery = leased(&store, epoch, new.delivery(event, "app")).await;
    assert_eq!(finish(&store, delivery, dead()).await, APPLIED);
    assert_eq!(
        (found().await.status, found().await.about),
        (Status::Failed, about),
        "whatever became of a delivery"
    );
}
