//! What a store promises about acts of people.

use std::sync::Arc;

use sekisho_core::audit::Entry;
use sekisho_core::change::{ChangeSet, Committed, Replayed};
use sekisho_core::job::{End, Job, Lane, Lease, NewJob, Outcome, Settle};
use sekisho_core::{Epoch, Seq};

use super::{
    APPLIED, Arrivals, NOW, UP, act, admit, admit_one, attempt, audited, claim, claim_from, commit, dead,
    dead_letter, death, done, finish, join, leased, message, standing, status,
};
use crate::{DeadFilter, Standing, Status, Store};

/// Jobs that failed for good, about nothing.
async fn dead_letters(store: &Arc<dyn Store>, new: &mut Arrivals, epoch: Epoch, count: usize) -> Vec<Seq> {
    let mut buried = Vec::new();
    for _ in 0..count {
        let lease = leased(store, epoch, new.job("app")).await;
        assert_eq!(finish(store, lease, dead()).await, APPLIED);
        buried.push(lease.job);
    }
    buried
}

pub async fn retries(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let event = admit_one(&store, new.event("a")).await;
    let delivery = NewJob { fifo: Some("客".into()), ..new.delivery(event, "app") };
    let first = leased(&store, epoch, delivery.clone()).await;
    assert_eq!(finish(&store, first, End::Retry { due_at: NOW }).await, APPLIED);
    let second = claim_from(&store, epoch, delivery.lane.clone(), 1, NOW).await[0].lease;
    let set = ChangeSet::end(second, dead(), NOW).with_attempt(attempt(500));
    assert_eq!(commit(&store, set).await, APPLIED);

    let unknown = Seq::from_i64(5);
    let asked = vec![unknown, delivery.id, delivery.id, event];
    let found = store.retry(asked, act("fixed")).await.expect(UP);
    assert_eq!(found, [false, true, false, false], "once, and only dead letters");
    assert_eq!(store.retry(vec![delivery.id], act("again")).await.expect(UP), [false]);
    assert_eq!(standing(&store, delivery.id).await, Some(Standing::Waiting(act("").at)));
    assert_eq!(store.find_dead(DeadFilter { limit: 10, ..DeadFilter::default() }).await.expect(UP), []);

    let jobs = claim_from(&store, epoch, delivery.lane.clone(), 10, act("").at).await;
    let lease = Lease { job: delivery.id, epoch, attempt: 3 };
    let expected = Job { lease, base: 2, due_at: act("").at, ..Job::born(delivery, epoch) };
    assert_eq!((jobs[0].tries(), &jobs[..]), (1, &[expected][..]));
    assert_eq!(finish(&store, second, done()).await, Committed::Lost, "the run that died");
    let set = ChangeSet::end(lease, done(), NOW).with_attempt(attempt(200));
    assert_eq!(commit(&store, set).await, APPLIED);
    let calls = store.find_attempts(lease.job).await.expect(UP);
    assert_eq!(calls, [(2, attempt(500)), (3, attempt(200))], "one story, from its first call to its last");
}

pub async fn discards(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let event = admit_one(&store, new.event("a")).await;
    let lease = claim(&store, epoch, 1, NOW).await[0];
    assert_eq!(finish(&store, lease, dead()).await, APPLIED);
    let evidence = dead_letter(&store, epoch, new.event("evidence"), death(), NOW).await;
    let other = dead_letters(&store, &mut new, epoch, 1).await[0];

    let asked = vec![event, event, Seq::from_i64(5), other, evidence];
    let found = store.discard(asked, act("a test of theirs")).await.expect(UP);
    assert_eq!(found, [true, false, false, true, true]);
    assert_eq!(store.discard(vec![event], act("again")).await.expect(UP), [false]);
    let note = "discarded by mika: a test of theirs";
    for (job, about, lane, attempts) in [
        (event, Some(event), Lane::settle(), 1),
        (evidence, Some(evidence), Lane::settle(), 1),
        (other, None, Lane::to_route("app"), 1),
    ] {
        let found = message(&store, job).await.expect("it left a trace");
        let outcome = Outcome::Discarded { note: note.into() };
        assert_eq!(found.standing, Standing::Done(outcome, act("").at));
        assert_eq!((found.event, found.lane, found.attempts), (about, lane, attempts));
    }
    for seq in [event, evidence] {
        let summary = store.find_event(seq).await.expect(UP).expect("it was stored").summary;
        assert_eq!((summary.status, summary.note.as_deref()), (Status::Skipped, Some(note)));
        assert_eq!(summary.processed_at, Some(act("").at));
    }
    assert_eq!(store.retry(vec![event, other], act("too late")).await.expect(UP), [false, false]);
    assert!(claim(&store, epoch, 10, act("").at).await.is_empty(), "it is no work");
}

pub async fn replays(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let event = admit_one(&store, new.event("a")).await;
    let replay = async |settle: Settle| {
        let asked = vec![Seq::from_i64(5), event, event];
        store.replay(asked, settle, act("look again")).await.expect(UP)
    };
    assert_eq!(replay(Settle::Once).await, [Replayed::Unknown, Replayed::Unfinished, Replayed::Unfinished]);
    let mut earlier = claim(&store, epoch, 1, NOW).await[0];
    assert_eq!(replay(Settle::Once).await[1], Replayed::Unfinished, "it is running");
    assert_eq!(finish(&store, earlier, End::Retry { due_at: NOW }).await, APPLIED);
    assert_eq!(replay(Settle::Once).await[1], Replayed::Unfinished, "it waits for its next try");

    for (end, left) in [(done(), Status::Success), (dead(), Status::Failed), (done(), Status::Success)] {
        earlier = claim(&store, epoch, 1, act("").at).await[0];
        assert_eq!(finish(&store, earlier, end).await, APPLIED);
        assert_eq!(status(&store, event).await, left);
        let attempts = earlier.attempt;
        assert_eq!(replay(Settle::Again).await, [Replayed::Unknown, Replayed::Queued, Replayed::Unfinished]);
        assert_eq!(status(&store, event).await, Status::Received);
        assert_eq!(finish(&store, earlier, done()).await, Committed::Lost, "it has gone to the queue again");

        let jobs = claim_from(&store, epoch, Lane::settle(), 10, act("").at).await;
        let lease = Lease { job: event, epoch, attempt: attempts + 1 };
        let job = Job::born_with(event, Settle::Again, act("").at, epoch);
        assert_eq!(jobs, [Job { lease, base: attempts, ..job }]);
        assert_eq!(jobs[0].tries(), 1);
        assert_eq!(finish(&store, earlier, done()).await, Committed::Lost, "an old lease fits no new run");
        assert_eq!(finish(&store, lease, End::Retry { due_at: NOW }).await, APPLIED);
    }
    let letters = store.find_dead(DeadFilter { limit: 10, ..DeadFilter::default() }).await.expect(UP);
    assert_eq!(letters, [], "a replayed dead letter is none any more");

    // The event's work is its own settling: deliveries have their own dead letters.
    let event = admit_one(&store, new.event("b")).await;
    let leases = claim(&store, epoch, 10, NOW).await;
    let lease = leases.into_iter().find(|lease| lease.job == event).expect("it is due");
    assert_eq!(finish(&store, lease, done()).await, APPLIED);
    let delivery = leased(&store, epoch, new.delivery(event, "app")).await;
    assert_eq!(finish(&store, delivery, dead()).await, APPLIED);
    let answer = store.replay(vec![event], Settle::Once, act("again")).await.expect(UP);
    assert_eq!(answer, [Replayed::Queued]);
    assert_eq!(standing(&store, delivery.job).await, Some(Standing::Dead(death(), NOW)));
}

pub async fn acts_at_once(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    let letters = dead_letters(&store, &mut new, epoch, 20).await;
    let mut runs = Vec::new();
    for n in 0..6 {
        let (store, mut letters) = (Arc::clone(&store), letters.clone());
        if n % 2 == 0 {
            letters.reverse();
        }
        runs.push(tokio::spawn(async move {
            let found = match n % 3 {
                0 => store.discard(letters, act("no")).await,
                _ => store.retry(letters, act("yes")).await,
            };
            found.expect(UP).into_iter().filter(|found| *found).count()
        }));
    }
    let mut found = 0;
    for run in runs {
        found += run.await.expect("no panic");
    }
    assert_eq!(found, letters.len());
    assert_eq!(audited(&store).await.len(), letters.len());
    let retried = claim_from(&store, epoch, Lane::to_route("app"), 100, act("").at).await.len();
    let mut discarded = 0;
    for job in letters {
        discarded += usize::from(matches!(standing(&store, job).await, Some(Standing::Done(..))));
    }
    assert_eq!(retried + discarded, found);

    // The same for an event that several people replay.
    let event = admit_one(&store, new.event("a")).await;
    let lease = claim(&store, epoch, 1, NOW).await[0];
    assert_eq!(finish(&store, lease, done()).await, APPLIED);
    let runs = (0..6).map(|_| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.replay(vec![event], Settle::Once, act("go")).await.expect(UP)[0] })
    });
    let mut queued = 0;
    for run in runs.collect::<Vec<_>>() {
        queued += usize::from(run.await.expect("no panic") == Replayed::Queued);
    }
    assert_eq!((queued, claim(&store, epoch, 10, act("").at).await.len()), (1, 1));
}

pub async fn audits(store: Arc<dyn Store>) {
    let mut new = Arrivals::new(1);
    let epoch = join(&store).await;
    admit(&store, vec![new.event("a")]).await;
    let event = claim(&store, epoch, 1, NOW).await[0];
    assert_eq!(finish(&store, event, done()).await, APPLIED);
    let letters = dead_letters(&store, &mut new, epoch, 3).await;
    assert_eq!(audited(&store).await, []);
    let unknown = Seq::from_i64(5);
    store.retry(vec![letters[0], unknown, letters[1]], act("one")).await.expect(UP);
    store.discard(vec![unknown, letters[2], letters[2]], act("二")).await.expect(UP);
    store.replay(vec![event.job, unknown, event.job], Settle::Once, act("three")).await.expect(UP);
    let entry = |action: &str, target: (&str, String), event, reason: &str| Entry {
        at: act("").at,
        actor: Some("mika".into()),
        role: Some("operator".into()),
        action: action.into(),
        target: (target.0.into(), target.1),
        tenant: None,
        event,
        details: format!(r#"{{"reason":"{reason}"}}"#),
    };
    let letter = |n: usize| ("message", letters[n].as_message().to_string());
    let replayed = ("event", event.job.as_event().to_string());
    let expected = [
        entry("event.replayed", replayed, Some(event.job), "three"),
        entry("dead_letter.discarded", letter(2), None, "二"),
        entry("dead_letter.retried", letter(1), None, "one"),
        entry("dead_letter.retried", letter(0), None, "one"),
    ];
    assert_eq!(audited(&store).await, expected, "what was done, and nothing that was not");
}
