//! What a store promises about events that a change makes.

use std::sync::Arc;

use sekisho_core::Seq;
use sekisho_core::change::{Admission, Arrival, ChangeSet, Committed};
use sekisho_core::job::{Lane, Lease, Task};

use super::{
    APPLIED, Arrivals, NOW, SUSPECT_AFTER, UP, admit, admit_one, claim, claim_from, commit, count, death,
    done, finish, join, message, status,
};
use crate::{Status, Store};

fn makes(events: Vec<Arrival>) -> ChangeSet {
    ChangeSet { events, ..ChangeSet::nothing(NOW) }
}

pub async fn once(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let (event, other) = (new.event("a"), new.event("b"));
    // Of another day: a partition may have to be made for it.
    let far = new.event_at("far", NOW.plus_ms(40 * 86_400_000));
    let copy = new.event("a");
    let set = makes(vec![event.clone(), copy.clone(), other.clone(), far.clone()]);
    assert_eq!(commit(&store, set).await, Committed::Applied { repeated: vec![copy.seq] }, "in one set");
    let again = Arrival { seq: new.id(), ..event.clone() };
    let sets = vec![makes(vec![again.clone()]), makes(vec![new.event("c")]), makes(vec![new.event("c")])];
    let answers = store.commit(sets.clone()).await.expect(UP);
    let left_out = |set: &ChangeSet| Committed::Applied { repeated: vec![set.events[0].seq] };
    assert_eq!(answers, [left_out(&sets[0]), APPLIED, left_out(&sets[2])], "in one call");
    assert_eq!(count(&store).await, 4);
    let found = store.load_events(vec![event.seq, other.seq, far.seq]).await.expect(UP);
    assert_eq!(found, [event.stored(), other.stored(), far.stored()]);
    assert_eq!(admit(&store, vec![new.event("b")]).await, [Admission::Duplicate(other.seq)]);
    let jobs = claim_from(&store, epoch, Lane::settle(), 10, NOW).await;
    let own: Vec<_> = jobs.iter().map(|job| (job.lease.job, job.event)).collect();
    let expected = [&event, &other, &sets[1].events[0]].map(|event| (event.seq, Some(event.seq)));
    assert_eq!(own, expected, "one job each, and none early");
}

pub async fn born_leased(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let (own, other) = (join(&store).await, join(&store).await);
    let held = Arrival { held: Some(death()), ..new.event("held") };
    let kept = ChangeSet { keep: Some(own), ..makes(vec![new.event("a"), new.event("b")]) };
    let free = makes(vec![held.clone()]);
    assert_eq!(store.commit(vec![kept.clone(), free.clone()]).await.expect(UP), [APPLIED, APPLIED]);
    let born = [0, 1].map(|n| Lease::born(kept.events[n].seq, own));
    assert_eq!(store.owned(own, Seq::ZERO).await.expect(UP), born);
    let claimed = claim_from(&store, other, Lane::settle(), 10, NOW).await;
    let found: Vec<_> = claimed.iter().map(|job| (job.lease.job, &job.task)).collect();
    assert_eq!(found, [(held.seq, &Task::Settle(held.settle()))], "with why it must not be acted upon");
    assert_eq!(finish(&store, born[0], done()).await, APPLIED);
    assert_eq!(status(&store, born[0].job).await, Status::Success);
    assert!(store.end(own, 0).await.expect(UP));
    assert_eq!(store.sweep(10, SUSPECT_AFTER).await.expect(UP), 1);
}

pub async fn known(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let first = admit_one(&store, new.event("a")).await;
    let lease = claim(&store, epoch, 1, NOW).await[0];
    let (copy, fresh) = (new.event("a"), new.event("b"));
    let set = ChangeSet {
        jobs: vec![new.job("app")],
        events: vec![copy.clone(), fresh.clone()],
        keep: Some(epoch),
        ..ChangeSet::end(lease, done(), NOW)
    };
    let job = set.jobs[0].id;
    assert_eq!(commit(&store, set).await, Committed::Applied { repeated: vec![copy.seq] });
    assert_eq!(store.find_event(copy.seq).await.expect(UP), None);
    assert_eq!(message(&store, copy.seq).await, None, "nor has it a job");
    assert_eq!(store.known(&[copy.key]).await.expect(UP), [Some(first)]);
    assert_eq!(store.owned(epoch, Seq::ZERO).await.expect(UP), [Lease::born(fresh.seq, epoch)]);
    assert!(message(&store, job).await.is_some(), "the rest of the set is written");
    assert_eq!(status(&store, first).await, Status::Success);
    // The same again, under its own number: it is there, so it is left out too.
    assert_eq!(
        commit(&store, makes(vec![fresh.clone()])).await,
        Committed::Applied { repeated: vec![fresh.seq] }
    );
}

pub async fn at_once(store: Arc<dyn Store>) {
    let runs = (1..=6).map(|node| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let mut new = Arrivals::new(node);
            let mut events: Vec<_> = (0..20).map(|n| new.event(&n.to_string())).collect();
            if node % 2 == 0 {
                events.reverse();
            }
            if node % 3 == 0 {
                let answers = admit(&store, events).await;
                return answers.iter().filter(|answer| **answer == Admission::Admitted).count();
            }
            let made = events.len();
            match commit(&store, makes(events)).await {
                Committed::Applied { repeated } => made - repeated.len(),
                refused => panic!("nothing guards it: {refused:?}"),
            }
        })
    });
    let mut fresh = 0;
    for run in runs.collect::<Vec<_>>() {
        fresh += run.await.expect("no panic");
    }
    assert_eq!((fresh, count(&store).await), (20, 20));
    let epoch = join(&store).await;
    assert_eq!(claim(&store, epoch, 100, NOW).await.len(), 20);
}
