//! What a store promises about jobs and the nodes that lease them.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use sekisho_core::change::{Arrival, ChangeSet, Committed, Ended};
use sekisho_core::job::{Attempt, End, Job, JobKind, Lane, Lease, NewJob, Settle, Task, delivery_key};
use sekisho_core::{Epoch, Seq, Time};

use super::{
    ALL, APPLIED, Arrivals, NOW, SUSPECT_AFTER, UP, admit, admit_one, attempt, claim, claim_from, commit,
    dead, done, finish, ids, join, leased, leases, message, payment, queue, standing, status, version, write,
    writes,
};
use crate::{Standing, Status, Store};

pub async fn claims(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let late = Arrival { received_at: NOW.plus_ms(1), ..new.event("late") };
    let rows = [new.event("a"), new.event("b"), new.event("c")];
    admit(&store, vec![late.clone()]).await;
    admit(&store, rows.to_vec()).await;
    let (one, two) = (join(&store).await, join(&store).await);
    let first = claim(&store, one, 2, NOW).await;
    assert_eq!(first.iter().map(|lease| lease.job).collect::<Vec<_>>(), [rows[0].seq, rows[1].seq]);
    assert!(first.iter().all(|lease| lease.epoch == one && lease.attempt == 1));
    let second = claim(&store, two, 10, NOW).await;
    assert_eq!(second.iter().map(|lease| lease.job).collect::<Vec<_>>(), [rows[2].seq]);
    assert!(claim(&store, one, 10, NOW).await.is_empty());
    assert_eq!(claim(&store, one, 10, NOW.plus_ms(1)).await[0].job, late.seq);
    let jobs = claim_from(&store, one, Lane("other".into()), 10, NOW).await;
    assert!(jobs.is_empty(), "another lane's work");
}

pub async fn claims_lanes(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    for route in ["a", "b", "c"] {
        let jobs: Vec<_> = (0..5).map(|_| new.job(route)).collect();
        queue(&store, jobs).await;
    }
    let epoch = join(&store).await;
    let lane = Lane::to_route;
    let wants = vec![(lane("a"), 2), (lane("b"), 0), (lane("none"), 9), (lane("c"), 9)];
    let jobs = store.claim(epoch, wants, NOW).await.expect(UP);
    let of = |route: &str| jobs.iter().filter(|job| job.lane == lane(route)).count();
    assert_eq!((of("a"), of("b"), of("c"), jobs.len()), (2, 0, 5, 7));
    assert!(store.claim(epoch, Vec::new(), NOW).await.expect(UP).is_empty());
}

pub async fn concurrent_claims(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let jobs: Vec<_> = (0..200).map(|_| new.job("app")).collect();
    let queued: BTreeSet<_> = jobs.iter().map(|job| job.id).collect();
    queue(&store, jobs).await;
    let mut nodes = Vec::new();
    for _ in 0..4 {
        let (store, epoch) = (Arc::clone(&store), join(&store).await);
        nodes.push(tokio::spawn(async move {
            let mut own = Vec::new();
            loop {
                let jobs = claim_from(&store, epoch, Lane::to_route("app"), 7, NOW).await;
                if jobs.is_empty() {
                    return own;
                }
                own.extend(ids(&jobs));
            }
        }));
    }
    let mut given = Vec::new();
    for node in nodes {
        given.extend(node.await.expect("no panic"));
    }
    // A node that met only what others were taking may have gone home early.
    let late = join(&store).await;
    given.extend(ids(&claim_from(&store, late, Lane::to_route("app"), ALL, NOW).await));
    assert_eq!(given.len(), queued.len(), "no job twice");
    assert_eq!(given.into_iter().collect::<BTreeSet<_>>(), queued);
}

pub async fn fences(store: Arc<dyn Store>) {
    let seq = admit_one(&store, Arrivals::new(1).event("a")).await;
    let epoch = join(&store).await;
    let lease = claim(&store, epoch, 1, NOW).await[0];
    for wrong in not_quite(lease) {
        assert_eq!(finish(&store, wrong, done()).await, Committed::Lost);
    }
    assert_eq!(status(&store, seq).await, Status::Received);
    let retry = End::Retry { due_at: NOW.plus_ms(10) };
    assert_eq!(finish(&store, lease, retry).await, APPLIED);
    assert_eq!(finish(&store, lease, done()).await, Committed::Lost, "the first run's lease is spent");
    assert!(claim(&store, epoch, 1, NOW.plus_ms(9)).await.is_empty());
    let again = claim(&store, epoch, 1, NOW.plus_ms(10)).await[0];
    assert_eq!(again.attempt, 2);
    assert_eq!(finish(&store, lease, done()).await, Committed::Lost, "a second run fences the first");
    let both = [lease, again].map(|lease| ChangeSet::end(lease, done(), NOW));
    let answers = store.commit(both.to_vec()).await.expect(UP);
    assert_eq!(answers, [Committed::Lost, APPLIED], "one refusal harms no neighbour");
    assert_eq!(finish(&store, again, done()).await, Committed::Lost);
    assert_eq!(status(&store, seq).await, Status::Success);
}

/// Leases that look like one that holds.
fn not_quite(lease: Lease) -> [Lease; 4] {
    [
        Lease { epoch: Epoch(lease.epoch.0 + 100), ..lease },
        Lease { attempt: lease.attempt + 1, ..lease },
        Lease { attempt: lease.attempt - 1, ..lease },
        Lease { job: Seq::from_i64(5), ..lease },
    ]
}

pub async fn waits(store: Arc<dyn Store>) {
    let epoch = join(&store).await;
    let mut lease = leased(&store, epoch, Arrivals::new(1).job("app")).await;
    for (end, due_at, tries) in [
        (End::Wait { due_at: NOW }, NOW, 1),
        (End::Retry { due_at: NOW }, NOW, 2),
        (End::Wait { due_at: NOW.plus_ms(5) }, NOW.plus_ms(5), 2),
    ] {
        assert_eq!(finish(&store, lease, end).await, APPLIED);
        let lane = || Lane::to_route("app");
        assert!(claim_from(&store, epoch, lane(), 1, due_at.plus_ms(-1)).await.is_empty());
        let job = claim_from(&store, epoch, lane(), 1, due_at).await.remove(0);
        assert_eq!((job.lease.attempt, job.tries()), (lease.attempt + 1, tries));
        lease = job.lease;
    }
}

pub async fn goes_on(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let (epoch, key) = (join(&store).await, payment("a"));
    let lease = leased(&store, epoch, NewJob { fifo: Some("客".into()), ..new.job("app") }).await;
    let next = NewJob { fifo: Some("客".into()), ..new.job("app") };
    queue(&store, vec![next]).await;
    let step = |lease: Lease, version| ChangeSet {
        ends: vec![Ended::new(lease, End::NotYet)],
        ..writes(vec![write(&key, version, "{}")])
    };
    assert_eq!(commit(&store, step(lease, 0)).await, APPLIED);
    assert_eq!(commit(&store, step(lease, 0)).await, Committed::Stale, "the version guards it, too");
    assert_eq!(commit(&store, step(lease, 1)).await, APPLIED);
    assert_eq!(standing(&store, lease.job).await, Some(Standing::Running));
    assert_eq!(store.owned(epoch, Seq::ZERO).await.expect(UP), [lease]);
    assert!(claim_from(&store, epoch, Lane::to_route("app"), 10, NOW).await.is_empty(), "the next one waits");
    let other = Lease { attempt: lease.attempt + 1, ..lease };
    assert_eq!(commit(&store, step(other, 2)).await, Committed::Lost);
    assert_eq!(finish(&store, lease, End::Retry { due_at: NOW }).await, APPLIED);
    assert_eq!(commit(&store, step(lease, 2)).await, Committed::Lost, "it was given back");
    assert_eq!(version(&store, &key).await, 2);
}

pub async fn lost_sets(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let event = admit_one(&store, new.event("a")).await;
    let epoch = join(&store).await;
    let lease = claim(&store, epoch, 1, NOW).await[0];
    let (delivery, plain) = (new.delivery(event, "app"), new.job("app"));
    let set = |lease| ChangeSet {
        jobs: vec![delivery.clone(), plain.clone()],
        ..ChangeSet::end(lease, done(), NOW).with_attempt(attempt(200))
    };
    for wrong in not_quite(lease) {
        assert_eq!(commit(&store, set(wrong)).await, Committed::Lost);
        assert_eq!(store.find_attempts(wrong.job).await.expect(UP), []);
    }
    assert!(claim_from(&store, epoch, delivery.lane.clone(), 10, NOW).await.is_empty(), "no job");
    assert_eq!(store.find_messages(event).await.expect(UP), [], "no key");
    // In one call with the set that holds: neither may see what the other left.
    let sets = vec![set(not_quite(lease)[0]), set(lease)];
    assert_eq!(store.commit(sets).await.expect(UP), [Committed::Lost, APPLIED], "the key was still free");
    assert_eq!(claim_from(&store, epoch, delivery.lane, 10, NOW).await.len(), 2);
    assert_eq!(store.find_attempts(event).await.expect(UP), [(1, attempt(200))]);
}

pub async fn one_job_per_key(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let event = admit_one(&store, new.event("a")).await;
    let epoch = join(&store).await;
    let mut copy = || new.delivery(event, "app");
    let (first, second, third) = (copy(), copy(), copy());
    let (again, last) = (copy(), copy());
    assert_eq!(queue(&store, vec![first.clone(), second.clone()]).await, [second.id], "in one set");
    assert_eq!(queue(&store, vec![third.clone()]).await, [third.id], "in another");
    let other = NewJob { key: Some(delivery_key(event, &first.lane, 1)), ..new.delivery(event, "app") };
    let sets = vec![
        ChangeSet::queue(vec![again.clone(), other.clone()], NOW),
        ChangeSet::queue(vec![NewJob { id: new.id(), ..other.clone() }], NOW),
    ];
    let repeated = store.commit(sets.clone()).await.expect(UP);
    assert_eq!(repeated[0], Committed::Applied { repeated: vec![again.id] });
    assert_eq!(repeated[1], Committed::Applied { repeated: vec![sets[1].jobs[0].id] }, "in one call");

    let jobs = claim_from(&store, epoch, first.lane.clone(), 10, NOW).await;
    assert_eq!(ids(&jobs), [first.id, other.id]);
    assert_eq!(finish(&store, jobs[0].lease, done()).await, APPLIED);
    assert_eq!(finish(&store, jobs[1].lease, dead()).await, APPLIED);
    assert_eq!(queue(&store, vec![last.clone()]).await, [last.id], "after it is done");
    let buried = NewJob { id: new.id(), ..other };
    assert_eq!(queue(&store, vec![buried.clone()]).await, [buried.id], "after it is dead");
    assert!(claim_from(&store, epoch, first.lane, 10, NOW).await.is_empty());
}

pub async fn one_job_per_key_at_once(store: Arc<dyn Store>) {
    let event = Arrivals::new(1).id();
    let routes: Vec<_> = (0..20).map(|n| format!("route-{n}")).collect();
    let mut runs = Vec::new();
    for node in 2..=7 {
        let (store, routes) = (Arc::clone(&store), routes.clone());
        runs.push(tokio::spawn(async move {
            let mut new = Arrivals::new(node);
            let mut jobs: Vec<_> = routes.iter().map(|route| new.delivery(event, route)).collect();
            if node % 2 == 0 {
                jobs.reverse();
            }
            jobs.len() - queue(&store, jobs).await.len()
        }));
    }
    let mut fresh = 0;
    for run in runs {
        fresh += run.await.expect("no panic");
    }
    assert_eq!(fresh, routes.len());
    assert_eq!(store.find_messages(event).await.expect(UP).len(), routes.len());
    let epoch = join(&store).await;
    for route in &routes {
        assert_eq!(claim_from(&store, epoch, Lane::to_route(route), 10, NOW).await.len(), 1);
    }
}

pub async fn queued_as_given(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let odd = Task::Unreadable { kind: JobKind::Timer, payload: "名前 {\"a\": 1}\n".into() };
    let jobs = [
        NewJob { task: odd, ..new.job("app") },
        NewJob { fifo: Some("客/1".into()), event: Some(Seq::from_i64(9)), ..new.job("app") },
        NewJob { task: Task::Settle(Settle::Once), due_at: NOW.plus_ms(-1), ..new.job("app") },
    ];
    queue(&store, jobs.to_vec()).await;
    let mut found = claim_from(&store, epoch, Lane::to_route("app"), 10, NOW).await;
    assert_eq!(ids(&found), [jobs[2].id, jobs[0].id, jobs[1].id], "by when they are due, then by number");
    found.sort_by_key(|job| job.lease.job);
    assert_eq!(found, jobs.map(|job| Job::born(job, epoch)));
}

pub async fn born_leased(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let (own, other) = (join(&store).await, join(&store).await);
    let born = NewJob { owner: Some(own), ..new.delivery(Seq::from_i64(9), "app") };
    let copy = NewJob { id: new.id(), owner: Some(other), ..born.clone() };
    queue(&store, vec![born.clone()]).await;
    assert_eq!(queue(&store, vec![copy.clone()]).await, [copy.id]);
    let job = Job::born(born.clone(), own);
    assert_eq!(store.owned(own, Seq::ZERO).await.expect(UP), [job.lease]);
    assert_eq!(store.owned(other, Seq::ZERO).await.expect(UP), [], "what was repeated is nobody's");
    assert_eq!((job.lease.attempt, standing(&store, born.id).await), (1, Some(Standing::Running)));
    for epoch in [own, other] {
        assert!(claim_from(&store, epoch, job.lane.clone(), 10, NOW).await.is_empty(), "it is held");
    }
    assert_eq!(store.sweep(10, SUSPECT_AFTER).await.expect(UP), 0);
    assert!(store.end(own, 0).await.expect(UP));
    assert_eq!(store.sweep(10, SUSPECT_AFTER).await.expect(UP), 1);
    let freed = claim_from(&store, other, job.lane.clone(), 10, NOW).await;
    let lease = Lease { job: born.id, epoch: other, attempt: 2 };
    assert_eq!(
        freed,
        [Job { lease, base: 1, crashes: 1, ..job.clone() }],
        "the run that was cut off is no try"
    );
    assert_eq!(finish(&store, job.lease, done()).await, Committed::Lost, "the node it was born to");
}

pub async fn attempts(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let job = new.job("app");
    let given = [
        Attempt { body: Some(Bytes::from(vec![0xff, 0, 0x80, b'a'])), ..attempt(500) },
        Attempt { status: None, reason: None, error: None, headers: None, body: None, ..attempt(0) },
        Attempt {
            at: NOW.plus_ms(-5),
            took_ms: 0,
            body: Some((0..64 * 1024).map(|n| (n % 251) as u8).collect()),
            error: Some("名前".into()),
            ..attempt(599)
        },
        Attempt { body: Some(Bytes::new()), error: Some(String::new()), ..attempt(200) },
    ];
    let mut lease = leased(&store, epoch, job.clone()).await;
    for (n, seen) in (1..).zip(&given) {
        let end = if n == given.len() { done() } else { End::Retry { due_at: NOW } };
        let set = ChangeSet::end(lease, end, NOW).with_attempt(seen.clone());
        assert_eq!(commit(&store, set).await, APPLIED);
        lease.attempt += 1;
        claim_from(&store, epoch, job.lane.clone(), 1, NOW).await;
    }
    let numbered: Vec<_> = (1..).zip(given).collect();
    assert_eq!(store.find_attempts(job.id).await.expect(UP), numbered);
    assert_eq!(store.find_attempts(Seq::from_i64(5)).await.expect(UP), []);
    assert_eq!(message(&store, job.id).await.expect("it is done").attempts, 4);
}

pub async fn starts(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let lease = leased(&store, epoch, new.job("a")).await;
    let second = leased(&store, epoch, new.job("b")).await;
    let mut asked = not_quite(lease).to_vec();
    asked.extend([lease, second]);
    let held = store.start(asked).await.expect(UP);
    assert_eq!(held, [false, false, false, false, true, true]);
    assert_eq!(store.start(vec![lease]).await.expect(UP), [true], "twice is fine");
    assert_eq!(finish(&store, lease, done()).await, APPLIED, "the lease is still the same");
    assert_eq!(store.start(vec![lease, second]).await.expect(UP), [false, true]);
    assert!(store.start(Vec::new()).await.expect(UP).is_empty());
}

pub async fn releases(store: Arc<dyn Store>) {
    admit(&store, vec![Arrivals::new(1).event("a")]).await;
    let epoch = join(&store).await;
    let lease = claim(&store, epoch, 1, NOW).await[0];
    let mut given_back = not_quite(lease).to_vec();
    store.release(given_back.clone()).await.expect(UP);
    assert!(claim(&store, epoch, 1, NOW).await.is_empty(), "none of these held it");
    given_back.extend([lease, lease]);
    store.release(given_back).await.expect(UP);
    assert_eq!(finish(&store, lease, done()).await, Committed::Lost);
    let again = store.claim(epoch, vec![(Lane::settle(), 1)], NOW).await.expect(UP);
    assert_eq!(again.len(), 1);
    let job = &again[0];
    assert_eq!(job.lease, Lease { attempt: lease.attempt + 1, ..lease }, "no lease is given out twice");
    assert_eq!(job.tries(), 1, "the run that never was is no try");
    assert_eq!(finish(&store, lease, done()).await, Committed::Lost);
}

pub async fn lanes(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    assert_eq!(store.lanes().await.expect(UP), []);
    let at = |ms| NOW.plus_ms(ms);
    let job = |new: &mut Arrivals, route: &str, due_at: Time| NewJob { due_at, ..new.job(route) };
    let mut jobs = vec![job(&mut new, "b", at(9)), job(&mut new, "b", at(5)), job(&mut new, "a", at(7))];
    jobs.push(NewJob { owner: Some(epoch), ..job(&mut new, "held", at(-1)) });
    queue(&store, jobs).await;
    admit(&store, vec![new.event("a")]).await;
    let found: BTreeSet<_> = store.lanes().await.expect(UP).into_iter().collect();
    let lane = Lane::to_route;
    let expected = [(Lane::settle(), NOW), (lane("a"), at(7)), (lane("b"), at(5))];
    assert_eq!(found, expected.clone().into(), "due or not, but not what is leased");
    let taken = claim_from(&store, epoch, lane("b"), 1, at(5)).await;
    assert!(store.lanes().await.expect(UP).contains(&(lane("b"), at(9))));
    store.release(leases(&taken)).await.expect(UP);
    let found: BTreeSet<_> = store.lanes().await.expect(UP).into_iter().collect();
    assert_eq!(found, expected.into());
}
