//! What a store promises about work as a whole: what died alike, and what is unfinished.

use std::sync::Arc;

use sekisho_core::change::{Admission, ChangeSet, Ended};
use sekisho_core::event::About;
use sekisho_core::job::{Class, DeadReason, End, Lane, Lease, NewJob};
use sekisho_core::state::{Index, Write};
use sekisho_core::{Epoch, Seq, Time};

use super::{
    APPLIED, Arrivals, NOW, UP, admit_one, claim, commit, done, finish, join, leased, payment, queue, write,
    writes,
};
use crate::{DeadFilter, DeadGroup, PendingWork, Risk, Stake, Store};

fn worth(id: &str, amount: Option<i64>, currency: &str) -> Write {
    let index = Index { amount, currency: Some(currency.into()), ..Index::default() };
    Write { index, ..write(&payment(id), 0, "{}") }
}

/// An event that turned out to be about a payment.
async fn settled(store: &Arc<dyn Store>, new: &mut Arrivals, epoch: Epoch, payment: &str) -> Seq {
    let row = new.event(payment);
    let seq = row.seq;
    assert_eq!(store.admit(vec![row].into(), Some(epoch)).await.expect(UP), [Admission::Admitted]);
    let about = About { payment: Some(payment.into()), ..About::default() };
    let ended = Ended { lease: Lease::born(seq, epoch), end: done(), attempt: None, about };
    assert_eq!(commit(store, ChangeSet { ends: vec![ended], ..ChangeSet::nothing(NOW) }).await, APPLIED);
    seq
}

pub async fn dead_groups(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let worths = [
        worth("p1", Some(1_000), "jpy"),
        worth("p2", Some(500), "jpy"),
        worth("p3", Some(20), "usd"),
        worth("p4", None, "jpy"),
    ];
    assert_eq!(commit(&store, writes(worths.to_vec())).await, APPLIED);
    let mut events = Vec::new();
    for payment in ["p1", "p2", "p3", "p4", "unknown"] {
        events.push(settled(&store, &mut new, epoch, payment).await);
    }
    let timeout = || DeadReason { class: Class::Transient, ..DeadReason::terminal("timeout", "no answer") };
    let refused = || DeadReason::terminal("refused", "never");
    let mut jobs = Vec::new();
    let letters: [(NewJob, DeadReason, i64); 8] = [
        (new.delivery(events[0], "app"), timeout(), 5),
        (NewJob { key: None, ..new.delivery(events[0], "app") }, timeout(), 1),
        (new.delivery(events[1], "app"), timeout(), 3),
        (new.delivery(events[2], "app"), timeout(), 2),
        (new.delivery(events[3], "app"), timeout(), 2),
        (new.delivery(events[4], "app"), DeadReason::terminal("timeout", "no answer"), 4),
        (new.delivery(events[0], "other"), timeout(), 6),
        (new.job("app"), refused(), 7),
    ];
    for (job, death, ms) in letters {
        jobs.push(job.id);
        let lease = leased(&store, epoch, job).await;
        let set = ChangeSet::end(lease, End::Dead(death), NOW.plus_ms(ms));
        assert_eq!(commit(&store, set).await, APPLIED);
    }
    let risk = |currency: &str, amount, payments| Risk { currency: currency.into(), amount, payments };
    let group = |reason: &str, class, route, count, (oldest, newest), at_risk| DeadGroup {
        reason: reason.into(),
        class,
        lane: Lane::to_route(route),
        count,
        oldest: NOW.plus_ms(oldest),
        newest: NOW.plus_ms(newest),
        at_risk,
    };
    let find = async |filter: DeadFilter| store.find_dead_groups(filter).await.expect(UP);
    let all = || DeadFilter { limit: 1_000, ..DeadFilter::default() };
    let died = group("refused", Class::Terminal, "app", 1, (7, 7), vec![]);
    let unknown = group("timeout", Class::Terminal, "app", 1, (4, 4), vec![]);
    let worth = vec![risk("jpy", 1_500, 2), risk("usd", 20, 1)];
    let alike = group("timeout", Class::Transient, "app", 5, (1, 5), worth);
    let other = group("timeout", Class::Transient, "other", 1, (6, 6), vec![risk("jpy", 1_000, 1)]);
    assert_eq!(find(all()).await, [died.clone(), unknown, alike, other.clone()]);

    let refused = DeadFilter { reason: Some("refused".into()), ..all() };
    assert_eq!(find(refused.clone()).await, std::slice::from_ref(&died));
    assert_eq!(find(DeadFilter { lane: Some(Lane::to_route("other")), ..all() }).await, [other]);
    assert_eq!(find(DeadFilter { limit: 1, ..all() }).await, [died], "the newest, as many as it may look at");
    assert_eq!(
        find(DeadFilter { before: Some(jobs[7]), limit: 1, ..refused }).await,
        [],
        "it did not look further"
    );
    let first = group("timeout", Class::Transient, "app", 2, (1, 5), vec![risk("jpy", 1_000, 1)]);
    let of_event = DeadFilter { event: Some(events[0]), lane: Some(Lane::to_route("app")), ..all() };
    assert_eq!(find(of_event).await, [first]);
    assert_eq!(find(DeadFilter { limit: 0, ..all() }).await, []);

    let found = store.find_dead(all()).await.expect(UP);
    let stake = |n: usize| found.iter().find(|letter| letter.job == jobs[n]).expect("it died").stake.clone();
    let p1 = Stake { payment: "p1".into(), amount: 1_000, currency: "jpy".into() };
    assert_eq!([stake(0), stake(4), stake(5), stake(7)], [Some(p1), None, None, None]);
    let about = |n: usize| found.iter().find(|letter| letter.job == jobs[n]).expect("it died").about.clone();
    assert_eq!(about(4).payment.as_deref(), Some("p4"), "also where nobody knows what it is worth");
}

pub async fn work(store: Arc<dyn Store>) {
    assert_eq!(store.find_work().await.expect(UP), []);
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let later = |ms| NOW.plus_ms(ms);
    let retried = leased(&store, epoch, new.job("app")).await;
    assert_eq!(finish(&store, retried, End::Retry { due_at: later(9) }).await, APPLIED);
    let released = leased(&store, epoch, new.job("app")).await;
    store.release(vec![released]).await.expect(UP);
    leased(&store, epoch, new.job("busy")).await;
    let early = NewJob { due_at: later(4), ..new.job("app") };
    let late = NewJob { due_at: later(5), ..new.job("idle") };
    queue(&store, vec![late, early]).await;
    admit_one(&store, new.event("a")).await;
    claim(&store, epoch, 1, NOW).await;
    admit_one(&store, new.event("b")).await;

    let work = |lane, waiting, retrying, running, oldest_due: Option<Time>| PendingWork {
        lane,
        waiting,
        retrying,
        running,
        oldest_due,
    };
    let expected = [
        work(Lane::settle(), 1, 0, 1, Some(NOW)),
        work(Lane::to_route("app"), 2, 1, 0, Some(NOW)),
        work(Lane::to_route("busy"), 0, 0, 1, None),
        work(Lane::to_route("idle"), 1, 0, 0, Some(later(5))),
    ];
    assert_eq!(store.find_work().await.expect(UP), expected, "a released job never failed");
    assert!(store.end(epoch, 0).await.expect(UP));
    assert_eq!(store.sweep(10, 3).await.expect(UP), 2);
    let busy = &store.find_work().await.expect(UP)[2];
    assert_eq!(*busy, work(Lane::to_route("busy"), 1, 0, 0, Some(NOW)), "a run that was cut off is no try");
}
