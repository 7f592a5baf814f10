//! What a store promises about nodes: who lives, and what becomes of the work of those who don't.

use std::collections::BTreeSet;
use std::sync::Arc;

use sekisho_core::change::{ChangeSet, Committed};
use sekisho_core::id::NODES_MAX;
use sekisho_core::job::{End, Job, Lane, Lease, NewJob, Outcome, Settle, Task, Timer};
use sekisho_core::time::DAY_MS;
use sekisho_core::{Epoch, Seq};

use super::{
    ALL, APPLIED, Arrivals, NOW, SUSPECT_AFTER, UP, admit, admit_one, claim, claim_from, commit, dead, done,
    finish, ids, join, leased, leases, queue, standing,
};
use crate::{DeadFilter, Error, FIND_MAX, NodeRecord, Pulse, Standing, Store};

pub async fn epochs(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let first = store.join(NOW).await.expect(UP);
    assert_eq!(first.floor, Seq::ZERO);
    let event = admit_one(&store, new.event("a")).await;
    let second = store.join(NOW).await.expect(UP);
    assert_eq!(second.floor, event);
    assert!(second.epoch > first.epoch);
    assert!(matches!(store.beat(second.epoch, 4).await, Ok(Pulse::Alive { .. })));
    assert!(!store.end(second.epoch, 3).await.expect(UP), "it moved on");
    assert!(store.end(second.epoch, 4).await.expect(UP));
    assert!(!store.end(second.epoch, 4).await.expect(UP), "twice is fine");
    assert_eq!(store.beat(second.epoch, 5).await.expect(UP), Pulse::Ended);
    let third = store.join(NOW).await.expect(UP);
    assert!(third.epoch > second.epoch, "never given again");
    store.leave(third.epoch).await.expect(UP);
    store.leave(third.epoch).await.expect(UP);
    assert_eq!(store.beat(third.epoch, 1).await.expect(UP), Pulse::Ended, "it went by itself");
    assert!(!store.end(third.epoch, 0).await.expect(UP), "nobody is there to be given up");
    let gone = third;
    let third = store.join(NOW).await.expect(UP);
    assert!(third.epoch > gone.epoch, "never given again");
    // The floor is above whatever is stored, however it stands: waiting, done or dead.
    for end in [End::Retry { due_at: NOW }, done(), dead()] {
        let job = new.job("app");
        let lease = leased(&store, third.epoch, job.clone()).await;
        assert_eq!(store.join(NOW).await.expect(UP).floor, job.id);
        finish(&store, lease, end).await;
        assert_eq!(store.join(NOW).await.expect(UP).floor, job.id);
    }
}

pub async fn numbers(store: Arc<dyn Store>) {
    let mut living = all_at_once(&store).await;
    let take = async |living: &mut Vec<Epoch>| {
        let epoch = join(&store).await;
        assert!(living.iter().all(|other| *other < epoch), "epochs rise");
        assert!(
            living.iter().all(|other| other.number() != epoch.number()),
            "{epoch:?} has a number of its own"
        );
        living.push(epoch);
        epoch.number()
    };
    let numbers: BTreeSet<_> = living.iter().map(|epoch| epoch.number()).collect();
    assert_eq!(numbers.len() as i64, NODES_MAX, "each its own, also when they join at once");
    let refused = store.join(NOW).await.expect_err("every number is taken");
    assert!(
        matches!(refused, Error::Unavailable(_)) && refused.chain().contains("1024 nodes live"),
        "{refused:?}"
    );

    let mut go = |n: usize| living.remove(n);
    let (first, second, third, left) = (go(700), go(20), go(300), go(500));
    // Who was given up may only be paused: its number comes last, that of the longest given up first.
    for given_up in [first, second] {
        assert!(store.end(given_up, 0).await.expect(UP));
        assert_eq!(store.beat(given_up, 1).await.expect(UP), Pulse::Ended);
    }
    store.leave(left).await.expect(UP);
    assert_eq!(take(&mut living).await, left.number(), "who left has nothing more to write");
    assert!(store.end(third, 0).await.expect(UP));
    // Both were given up between the same two joins: either may be the first.
    let both = BTreeSet::from([take(&mut living).await, take(&mut living).await]);
    assert_eq!(both, BTreeSet::from([first.number(), second.number()]));
    assert_eq!(take(&mut living).await, third.number());
    assert!(store.join(NOW).await.is_err(), "all live again");
    assert_eq!(store.find_nodes().await.expect(UP).len(), FIND_MAX.min(living.len()));

    // Restarts, as of deployments: one that sleeps meanwhile keeps its number.
    let asleep = living.remove(100);
    assert!(store.end(asleep, 0).await.expect(UP));
    store.leave(living.remove(40)).await.expect(UP);
    for _ in 0..20 {
        assert_ne!(take(&mut living).await, asleep.number());
        store.leave(living.remove(0)).await.expect(UP);
    }
}

/// As many as there can be, in the order of their epochs.
async fn all_at_once(store: &Arc<dyn Store>) -> Vec<Epoch> {
    let mut living = Vec::new();
    while (living.len() as i64) < NODES_MAX {
        let joins: Vec<_> = (0..64)
            .map(|_| {
                let store = Arc::clone(store);
                tokio::spawn(async move { join(&store).await })
            })
            .collect();
        for join in joins {
            living.push(join.await.expect("no panic"));
        }
    }
    living.sort_unstable();
    living
}

pub async fn lists(store: Arc<dyn Store>) {
    assert_eq!(store.find_nodes().await.expect(UP), []);
    let later = NOW.plus_ms(5);
    let first = store.join(NOW).await.expect(UP).epoch;
    let second = store.join(later).await.expect(UP).epoch;
    assert!(matches!(store.beat(second, 7).await, Ok(Pulse::Alive { .. })));
    let node = |epoch, beat, joined_at| NodeRecord { epoch, beat, joined_at };
    assert_eq!(store.find_nodes().await.expect(UP), [node(first, 0, NOW), node(second, 7, later)]);
    assert!(store.end(first, 0).await.expect(UP));
    assert_eq!(store.find_nodes().await.expect(UP), [node(second, 7, later)], "those who left are gone");
}

pub async fn hastens(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let node = join(&store).await;
    let tomorrow = NOW.plus_ms(DAY_MS);
    let mut late = |task| NewJob { task, due_at: tomorrow, ..new.job("app") };
    let deliver = || Task::Deliver { route: "app".into() };
    let jobs = [deliver(), Task::Settle(Settle::Once), Task::Send { notice: "ntc_1".into() }].map(&mut late);
    let (timer, running) = (late(Task::Timer(Timer::Count)), late(deliver()));
    let wanted = jobs.iter().map(|job| job.id).collect::<Vec<_>>();
    let claim = async |now| ids(&claim_from(&store, node, Lane::to_route("app"), ALL, now).await);
    queue(&store, vec![running.clone()]).await;
    assert_eq!(claim(tomorrow).await, [running.id]);
    queue(&store, jobs.into_iter().chain([timer.clone()]).collect()).await;
    assert_eq!(claim(NOW).await, []);
    let make_due = async |limit| store.make_due(limit, NOW).await.expect(UP);
    assert_eq!(
        [make_due(2).await, make_due(2).await, make_due(2).await],
        [2, 1, 0],
        "what runs is left alone"
    );
    assert_eq!(claim(NOW).await, wanted);
    assert_eq!(claim(tomorrow).await, [timer.id], "a timer keeps its time");
}

pub async fn sweeps(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    admit(&store, (0..5).map(|n| new.event(&n.to_string())).collect()).await;
    let (dying, living) = (join(&store).await, join(&store).await);
    let orphans = claim(&store, dying, 3, NOW).await;
    let held = claim(&store, living, 2, NOW).await;
    let sweep = async |limit| store.sweep(limit, SUSPECT_AFTER).await.expect(UP);
    assert_eq!(sweep(10).await, 0, "both nodes live");
    assert!(store.end(dying, 0).await.expect(UP));
    assert_eq!(sweep(2).await, 2, "at most the limit");
    assert_eq!(sweep(10).await, 1);
    assert_eq!(sweep(10).await, 0);
    let freed = claim(&store, living, 10, NOW).await;
    let jobs = |leases: &[Lease]| leases.iter().map(|lease| lease.job).collect::<BTreeSet<_>>();
    assert_eq!(jobs(&freed), jobs(&orphans));
    assert!(freed.iter().all(|lease| lease.attempt == 2), "the run that died was one");
    let woken = finish(&store, orphans[0], done()).await;
    assert_eq!(woken, Committed::Lost, "a paused worker that wakes can't commit");
    assert_eq!(finish(&store, held[0], done()).await, APPLIED);
}

pub async fn suspects(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let job = new.job("app");
    queue(&store, vec![job.clone()]).await;
    // In its own lane a crash counts, whether its run was announced or not.
    for crashes in 0..2 {
        let held = crash(&store, job.lane.clone(), false, 2).await;
        assert_eq!((held.crashes, held.tries()), (crashes, 1), "a run that was cut off is no try");
    }
    let survivor = join(&store).await;
    assert!(claim_from(&store, survivor, job.lane.clone(), 10, NOW).await.is_empty(), "it moved");
    assert_eq!(store.lanes().await.expect(UP), [(Lane::suspect(), NOW)]);
    // Among the suspects only a crash of its own counts.
    for (started, crashes) in [(false, 2), (true, 2), (false, 3), (true, 3)] {
        assert_eq!(crash(&store, Lane::suspect(), started, 2).await.crashes, crashes);
    }
    let held = claim_from(&store, survivor, Lane::suspect(), 10, NOW).await.remove(0);
    assert_eq!((held.crashes, held.lease.job, &held.task), (4, job.id, &job.task));
    // One that ran while nobody died is no suspect any more, and goes home.
    assert_eq!(store.start(vec![held.lease]).await.expect(UP), [true]);
    assert_eq!(finish(&store, held.lease, End::Retry { due_at: NOW }).await, APPLIED);
    for crashes in 0..2 {
        assert_eq!(crash(&store, job.lane.clone(), false, 2).await.crashes, crashes);
    }
    // What was announced in an earlier run says nothing about the next.
    let held = claim_from(&store, survivor, Lane::suspect(), 10, NOW).await.remove(0);
    assert_eq!(store.start(vec![held.lease]).await.expect(UP), [true]);
    store.release(vec![held.lease]).await.expect(UP);
    assert_eq!(crash(&store, Lane::suspect(), false, 2).await.crashes, 2);
    assert_eq!(crash(&store, Lane::suspect(), false, 2).await.crashes, 2);
    let held = claim_from(&store, survivor, Lane::suspect(), 10, NOW).await.remove(0);
    assert_eq!(finish(&store, held.lease, dead()).await, APPLIED);
    let letters = store.find_dead(DeadFilter { limit: 10, ..DeadFilter::default() }).await.expect(UP);
    assert_eq!((letters[0].crashes, &letters[0].lane), (2, &job.lane), "it is remembered where it belongs");
}

/// A node takes the one job of a lane, dies, and is swept up after.
async fn crash(store: &Arc<dyn Store>, lane: Lane, started: bool, suspect_after: i32) -> Job {
    let dying = join(store).await;
    let held = claim_from(store, dying, lane, 1, NOW).await.remove(0);
    if started {
        assert_eq!(store.start(vec![held.lease]).await.expect(UP), [true]);
    }
    assert!(store.end(dying, 0).await.expect(UP));
    assert_eq!(store.sweep(10, suspect_after).await.expect(UP), 1);
    held
}

pub async fn sweep_against_commit(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    for round in 0..20 {
        let dying = join(&store).await;
        let mut held = Vec::new();
        for n in 0..5 {
            held.push(leased(&store, dying, new.job(&format!("{round}-{n}"))).await);
        }
        assert!(store.end(dying, 0).await.expect(UP));
        let sweep = {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.sweep(ALL, SUSPECT_AFTER).await.expect(UP) })
        };
        let commits = held.iter().map(|lease| {
            let (store, lease) = (Arc::clone(&store), *lease);
            tokio::spawn(async move { finish(&store, lease, done()).await })
        });
        let mut committed = Vec::new();
        for commit in commits.collect::<Vec<_>>() {
            committed.push(commit.await.expect("no panic"));
        }
        let freed = sweep.await.expect("no panic");
        assert_eq!(committed.iter().filter(|answer| **answer == Committed::Lost).count(), freed);
        for (lease, answer) in held.iter().zip(committed) {
            let standing = standing(&store, lease.job).await.expect("a job is never lost");
            match answer {
                Committed::Lost => assert_eq!(standing, Standing::Waiting(NOW)),
                Committed::Stale => panic!("nothing but the lease guards it"),
                Committed::Applied { .. } => assert_eq!(standing, Standing::Done(Outcome::SUCCESS, NOW)),
            }
        }
        assert_eq!(store.sweep(ALL, SUSPECT_AFTER).await.expect(UP), 0);
    }
}

pub async fn finished_once(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let event = admit_one(&store, new.event("a")).await;
    let paused = join(&store).await;
    let stale = claim(&store, paused, 1, NOW).await[0];
    // Given up while it worked; another node takes the job over, and both finish it in different ways.
    assert!(store.end(paused, 0).await.expect(UP));
    assert_eq!(store.sweep(10, SUSPECT_AFTER).await.expect(UP), 1);
    let living = join(&store).await;
    let held = claim(&store, living, 1, NOW).await[0];
    let mut runs = Vec::new();
    for (lease, end) in [(stale, dead()), (held, done()), (stale, done()), (held, dead()), (held, done())] {
        let (store, job) = (Arc::clone(&store), new.delivery(event, &lease.attempt.to_string()));
        let set = ChangeSet { jobs: vec![job], ..ChangeSet::end(lease, end, NOW) };
        runs.push((lease, tokio::spawn(async move { commit(&store, set).await })));
    }
    let mut applied = 0;
    for (lease, run) in runs {
        let answer = run.await.expect("no panic");
        assert!(lease == held || answer == Committed::Lost, "a lost lease can't finish anything");
        applied += usize::from(answer == APPLIED);
    }
    assert_eq!(applied, 1);
    assert_eq!(store.find_messages(event).await.expect(UP).len(), 1, "and it had its effect once");
    assert_eq!(store.owned(living, Seq::ZERO).await.expect(UP), []);
    assert!(claim(&store, living, 10, NOW).await.is_empty());
    let letters = store.find_dead(DeadFilter { limit: 10, ..DeadFilter::default() }).await.expect(UP);
    match standing(&store, event).await.expect("a job is never lost") {
        Standing::Done(..) => assert_eq!(letters, []),
        Standing::Dead(..) => assert_eq!(letters.len(), 1),
        unfinished => panic!("it was finished, and is {unfinished:?}"),
    }
}

pub async fn adopts(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let (own, other) = (join(&store).await, join(&store).await);
    let lost = NewJob { owner: Some(own), event: Some(Seq::from_i64(9)), ..new.job("app") };
    queue(&store, vec![lost.clone()]).await;
    let finished = leased(&store, own, new.job("b")).await;
    let theirs = leased(&store, other, new.job("c")).await;
    let seen = store.owned(own, Seq::ZERO).await.expect(UP);
    let lease = Lease { job: lost.id, epoch: own, attempt: 1 };
    assert_eq!(seen, [lease, finished]);
    assert_eq!(finish(&store, finished, done()).await, APPLIED, "between the look and the act");

    let mut asked = seen;
    asked.extend([Lease { epoch: own, ..theirs }, Lease { attempt: 9, ..lease }]);
    asked.push(Lease { epoch: other, ..lease });
    let adopted = store.adopt(asked).await.expect(UP);
    let again = Lease { attempt: 2, ..lease };
    assert_eq!(adopted, [Job { lease: again, base: 1, ..Job::born(lost, own) }]);
    assert_eq!(store.owned(other, Seq::ZERO).await.expect(UP), [theirs]);
    assert_eq!(store.adopt(vec![lease, lease]).await.expect(UP), [], "it moved on");
    assert_eq!(finish(&store, lease, done()).await, Committed::Lost, "the earlier run is fenced off");
    let twice = store.adopt(vec![again, again]).await.expect(UP);
    assert_eq!(leases(&twice), [Lease { attempt: 3, ..lease }], "asked twice, adopted once");
    assert_eq!(finish(&store, twice[0].lease, done()).await, APPLIED);
    assert_eq!(store.owned(own, Seq::ZERO).await.expect(UP), []);
}
