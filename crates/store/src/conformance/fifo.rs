//! What a store promises about jobs that run one after the other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sekisho_core::job::{End, Lane, Lease, NewJob};
use sekisho_core::{Epoch, Seq};

use super::{
    ALL, APPLIED, Arrivals, NOW, SUSPECT_AFTER, UP, act, claim_from, dead, done, finish, ids, join, queue,
};
use crate::Store;

/// How long a busy machine may need for what takes a moment.
const PATIENCE: Duration = Duration::from_mins(1);

fn app() -> Lane {
    Lane::to_route("app")
}

/// What can be had right now, handed back untouched.
async fn ready(store: &Arc<dyn Store>, epoch: Epoch) -> Vec<Seq> {
    let jobs = claim_from(store, epoch, app(), ALL, NOW).await;
    store.release(super::leases(&jobs)).await.expect(UP);
    ids(&jobs)
}

async fn head(store: &Arc<dyn Store>, epoch: Epoch) -> Lease {
    let jobs = claim_from(store, epoch, app(), ALL, NOW).await;
    assert_eq!(jobs.len(), 1, "one of a fifo at a time");
    jobs[0].lease
}

pub async fn one_after_the_other(store: Arc<dyn Store>) {
    let mut jobs = Arrivals::new(1).jobs_of_fifo("a", 3);
    let order: Vec<_> = jobs.iter().map(|job| job.id).collect();
    // Neither the order they are queued in nor when they are due changes whose turn it is.
    jobs[2].due_at = NOW.plus_ms(-100);
    jobs.reverse();
    let (one, two) = (join(&store).await, join(&store).await);
    for job in jobs {
        queue(&store, vec![job]).await;
    }
    for id in order {
        let held = head(&store, one).await;
        assert_eq!(held.job, id);
        for epoch in [one, two] {
            assert!(claim_from(&store, epoch, app(), ALL, NOW).await.is_empty(), "the head is running");
        }
        assert_eq!(finish(&store, held, done()).await, APPLIED);
    }
    assert_eq!(ready(&store, one).await, []);
}

pub async fn heads(store: Arc<dyn Store>) {
    let jobs = Arrivals::new(1).jobs_of_fifo("a", 4);
    let order: Vec<_> = jobs.iter().map(|job| job.id).collect();
    queue(&store, jobs).await;
    let epoch = join(&store).await;
    let held = head(&store, epoch).await;
    let later = NOW.plus_ms(10);
    assert_eq!(finish(&store, held, End::Retry { due_at: later }).await, APPLIED);
    assert_eq!(ready(&store, epoch).await, [], "nobody passes a head that waits for its next try");
    let again = claim_from(&store, epoch, app(), ALL, later).await;
    assert_eq!((again.len(), again[0].lease.job, again[0].lease.attempt), (1, order[0], 2));
    assert_eq!(finish(&store, again[0].lease, dead()).await, APPLIED);
    let held = head(&store, epoch).await;
    assert_eq!(held.job, order[1], "a dead head lets the next pass");
    store.release(vec![held]).await.expect(UP);
    assert_eq!(ready(&store, epoch).await, [order[1]], "a head handed back is still the head");
    let held = head(&store, epoch).await;
    assert_eq!(finish(&store, held, done()).await, APPLIED);
    assert_eq!(ready(&store, epoch).await, [order[2]], "a done head lets the next pass");
}

pub async fn holds_up_nobody(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    // So many followers before the others that no page of a claim could hold them.
    let stuck = new.jobs_of_fifo("stuck", 300);
    let others = new.jobs_of_fifo("other", 3);
    let free = [new.job("app"), new.job("app")];
    let elsewhere = NewJob { lane: Lane::to_route("elsewhere"), ..new.jobs_of_fifo("stuck", 1).remove(0) };
    let heads = [stuck[0].id, others[0].id, free[0].id, free[1].id];
    for jobs in [stuck, others, free.to_vec(), vec![elsewhere.clone()]] {
        queue(&store, jobs).await;
    }
    let jobs = claim_from(&store, epoch, app(), 4, NOW).await;
    assert_eq!(ids(&jobs), heads, "the limit is filled from behind the followers");
    assert!(claim_from(&store, epoch, app(), 4, NOW).await.is_empty());
    let jobs = claim_from(&store, epoch, elsewhere.lane, 4, NOW).await;
    assert!(jobs.is_empty(), "a fifo is one across lanes");
    let late = new.job("app");
    queue(&store, vec![late.clone()]).await;
    assert_eq!(ids(&claim_from(&store, epoch, app(), 4, NOW).await), [late.id]);
}

pub async fn many_followers(store: Arc<dyn Store>) {
    const EACH: usize = 150;
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let mut rows: Vec<_> = ["a", "b", "c"].map(|fifo| new.jobs_of_fifo(fifo, EACH)).into();
    let order: Vec<Vec<_>> = rows.iter().map(|jobs| jobs.iter().map(|job| job.id).collect()).collect();
    for jobs in &mut rows {
        queue(&store, std::mem::take(jobs)).await;
    }
    for turn in 0..EACH {
        let jobs = claim_from(&store, epoch, app(), ALL, NOW).await;
        let expected: Vec<_> = order.iter().map(|jobs| jobs[turn]).collect();
        assert_eq!(ids(&jobs), expected, "at turn {turn}");
        for (n, job) in jobs.into_iter().enumerate() {
            let end = if (turn + n) % 5 == 0 { dead() } else { done() };
            assert_eq!(finish(&store, job.lease, end).await, APPLIED);
        }
    }
    assert_eq!(ready(&store, epoch).await, []);
}

pub async fn orphaned_head(store: Arc<dyn Store>) {
    let jobs = Arrivals::new(1).jobs_of_fifo("a", 3);
    let order: Vec<_> = jobs.iter().map(|job| job.id).collect();
    queue(&store, jobs).await;
    let living = join(&store).await;
    for _ in 0..SUSPECT_AFTER - 1 {
        let dying = join(&store).await;
        assert_eq!(head(&store, dying).await.job, order[0]);
        assert!(store.end(dying, 0).await.expect(UP));
        assert_eq!(ready(&store, living).await, [], "not before it is swept up");
        store.sweep(ALL, SUSPECT_AFTER).await.expect(UP);
        assert_eq!(ready(&store, living).await, [order[0]]);
    }
    // A suspect keeps its place too, though it waits in another lane.
    let dying = join(&store).await;
    head(&store, dying).await;
    assert!(store.end(dying, 0).await.expect(UP));
    store.sweep(ALL, SUSPECT_AFTER).await.expect(UP);
    assert_eq!(ready(&store, living).await, []);
    let suspect = claim_from(&store, living, Lane::suspect(), ALL, NOW).await;
    assert_eq!(ids(&suspect), [order[0]]);
    assert_eq!(ready(&store, living).await, []);
    assert_eq!(finish(&store, suspect[0].lease, done()).await, APPLIED);
    assert_eq!(ready(&store, living).await, [order[1]]);
}

pub async fn retried_head(store: Arc<dyn Store>) {
    let jobs = Arrivals::new(1).jobs_of_fifo("a", 3);
    let order: Vec<_> = jobs.iter().map(|job| job.id).collect();
    queue(&store, jobs).await;
    let epoch = join(&store).await;
    let held = head(&store, epoch).await;
    assert_eq!(finish(&store, held, dead()).await, APPLIED);
    assert_eq!(ready(&store, epoch).await, [order[1]]);
    assert_eq!(store.retry(vec![order[0]], act("fixed")).await.expect(UP), [true]);
    assert_eq!(ready(&store, epoch).await, [], "it is due when the act was, and holds its place until then");
    for id in order {
        let held = claim_from(&store, epoch, app(), ALL, act("").at).await;
        assert_eq!(ids(&held), [id]);
        assert_eq!(finish(&store, held[0].lease, done()).await, APPLIED);
    }
}

pub async fn concurrent_claims(store: Arc<dyn Store>) {
    const EACH: usize = 40;
    let mut new = Arrivals::new(1);
    for fifo in ["a", "b", "c"] {
        queue(&store, new.jobs_of_fifo(fifo, EACH)).await;
    }
    let left = Arc::new(AtomicI64::new(3 * EACH as i64));
    let running: Arc<Mutex<BTreeMap<String, Seq>>> = Arc::default();
    let ended: Arc<Mutex<BTreeMap<String, Seq>>> = Arc::default();
    let mut nodes = Vec::new();
    for node in 0..4 {
        let (store, epoch) = (Arc::clone(&store), join(&store).await);
        let (left, running, ended) = (Arc::clone(&left), Arc::clone(&running), Arc::clone(&ended));
        nodes.push(tokio::spawn(async move {
            for round in 0_usize.. {
                if left.load(Ordering::Relaxed) == 0 {
                    return;
                }
                for job in claim_from(&store, epoch, app(), 2, NOW).await {
                    let (fifo, id) = (job.fifo.clone().expect("all of these have one"), job.lease.job);
                    let other = running.lock().expect("no panic").insert(fifo.clone(), id);
                    assert_eq!(other, None, "two of {fifo} run at once");
                    assert!(ended.lock().expect("no panic").get(&fifo).is_none_or(|last| *last < id));
                    tokio::task::yield_now().await;
                    let end = match (round + node) % 4 {
                        0 => End::Retry { due_at: NOW },
                        1 => dead(),
                        _ => done(),
                    };
                    if !matches!(end, End::Retry { .. }) {
                        ended.lock().expect("no panic").insert(fifo.clone(), id);
                        left.fetch_sub(1, Ordering::Relaxed);
                    }
                    running.lock().expect("no panic").remove(&fifo);
                    assert_eq!(finish(&store, job.lease, end).await, APPLIED);
                }
                // Whatever two claims at once did to a turn, a sweep finds it again.
                store.sweep(ALL, SUSPECT_AFTER).await.expect(UP);
                tokio::task::yield_now().await;
            }
        }));
    }
    for node in nodes {
        let node = tokio::time::timeout(PATIENCE, node).await;
        node.expect("no fifo stands still").expect("no panic");
    }
    let epoch = join(&store).await;
    assert_eq!(ready(&store, epoch).await, [], "each ran");
}
