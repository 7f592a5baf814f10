//! Every promise of [`Store`], as a test that any implementation must pass on a fresh, empty store.

mod acts;
mod arrival;
mod books;
pub mod chain;
mod deliveries;
mod fifo;
mod find;
mod group;
mod groups;
mod made;
mod nodes;
mod scan;
mod state;
mod upkeep;
mod work;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use sekisho_core::audit::{Entry, Role};
use sekisho_core::change::{Act, Admission, Arrival, ChangeSet, Committed};
use sekisho_core::event::{DedupeKey, Trust};
use sekisho_core::id::Sequence;
use sekisho_core::job::{Attempt, DeadReason, End, Job, Lane, Lease, NewJob, Outcome, Task, delivery_key};
use sekisho_core::state::{self as things, Index, Key, Naming, Posting, State, Write};
use sekisho_core::{Epoch, Seq, Time};

use crate::{AuditFilter, EventFilter, LineFilter, Standing, Status, Store, StoredMessage};

pub type Promise = (&'static str, fn(Arc<dyn Store>) -> Pin<Box<dyn Future<Output = ()> + Send>>);

/// The list itself. A new promise is a new line here and a function in the file it names.
#[rustfmt::skip]
pub const PROMISES: &[Promise] = &[
    ("a7: one Admitted per key, however many copies", |s| Box::pin(arrival::one_admitted_per_key(s))),
    ("a7: copies of one event inside one batch are one row", |s| Box::pin(arrival::copies_in_one_batch(s))),
    ("a7: concurrent batches in opposite order neither deadlock nor double", |s| Box::pin(arrival::opposite_orders(s))),
    ("a5: the same rows again after an unknown outcome are Admitted again", |s| Box::pin(arrival::same_rows_again(s))),
    ("a5: everything of an event comes back as it was given", |s| Box::pin(arrival::comes_back_as_given(s))),
    ("a5: odd texts, bytes and dates are stored or refused alone", |s| Box::pin(arrival::odd_rows(s))),
    ("a3: what was held back at the door is settled with why, until a person retries it", |s| Box::pin(arrival::evidence(s))),
    ("a4: a second body under an id that no proof covers is an event of its own, and shown as such", |s| Box::pin(arrival::ids_reused(s))),
    ("a2: a second body under one transmission is not stored", |s| Box::pin(arrival::transmissions(s))),
    ("a7: of bodies that come at once under one id exactly one is the first", |s| Box::pin(arrival::first_bodies_at_once(s))),
    ("a7: known finds exactly what is stored", |s| Box::pin(arrival::known_is_exact(s))),
    ("a5: first jobs born leased belong to the node that took the event in", |s| Box::pin(arrival::first_jobs_born_leased(s))),
    ("a5: load_events gives what was stored, in order, without the unknown", |s| Box::pin(arrival::loads(s))),

    ("b2: a job is leased to one node at a time, oldest first, never early", |s| Box::pin(work::claims(s))),
    ("c4: a claim of several lanes keeps each lane's limit", |s| Box::pin(work::claims_lanes(s))),
    ("b2: concurrent claims give every job once", |s| Box::pin(work::concurrent_claims(s))),
    ("b2: a commit without its lease writes nothing", |s| Box::pin(work::fences(s))),
    ("b2: a run that could only wait spends no try", |s| Box::pin(work::waits(s))),
    ("b2: a set of a run that goes on is guarded by its lease, and keeps it", |s| Box::pin(work::goes_on(s))),
    ("b2: a set whose lease is lost leaves no job, no key and no attempt", |s| Box::pin(work::lost_sets(s))),
    ("b2: a key makes one job, for ever", |s| Box::pin(work::one_job_per_key(s))),
    ("b2: a key makes one job when many queue it at once", |s| Box::pin(work::one_job_per_key_at_once(s))),
    ("b1: a queued job comes back as it was given", |s| Box::pin(work::queued_as_given(s))),
    ("b2: jobs born leased are owned at attempt 1 and swept when their node dies", |s| Box::pin(work::born_leased(s))),
    ("b4: attempts are kept in order and come back as they were given", |s| Box::pin(work::attempts(s))),
    ("b2: start says whether the lease held", |s| Box::pin(work::starts(s))),
    ("b2: a released job can be claimed at once and spent no attempt", |s| Box::pin(work::releases(s))),
    ("b1: lanes with work are listed with when their oldest is due", |s| Box::pin(work::lanes(s))),

    ("b2: an epoch is never given twice and a node that was given up hears it", |s| Box::pin(nodes::epochs(s))),
    ("b2: no two nodes that live have one number, and who was given up keeps theirs while another is free", |s| Box::pin(nodes::numbers(s))),
    ("b2: work of a dead node is freed, work of a living one is not", |s| Box::pin(nodes::sweeps(s))),
    ("r10: what a clock ahead put off is due at a start with the right one, timers are not", |s| Box::pin(nodes::hastens(s))),
    ("b2: crashes are counted and lead to the suspect lane, where only started ones count", |s| Box::pin(nodes::suspects(s))),
    ("b2: a sweep never brings a finished job back (river #1302)", |s| Box::pin(nodes::sweep_against_commit(s))),
    ("b2: a job is finished exactly once, whoever thinks to hold it (solid_queue #589)", |s| Box::pin(nodes::finished_once(s))),
    ("b2: a node adopts what it holds and has lost sight of, never more", |s| Box::pin(nodes::adopts(s))),

    ("c4: of a fifo only the lowest unfinished can be had", |s| Box::pin(fifo::one_after_the_other(s))),
    ("c4: a retry keeps the head's place, a dead or done head lets the next pass", |s| Box::pin(fifo::heads(s))),
    ("c4: a fifo holds up neither other fifos nor its lane", |s| Box::pin(fifo::holds_up_nobody(s))),
    ("c4: hundreds of followers are freed one by one, in order", |s| Box::pin(fifo::many_followers(s))),
    ("c4: a head whose node died keeps its place", |s| Box::pin(fifo::orphaned_head(s))),
    ("c4: a retried dead letter goes before those that wait", |s| Box::pin(fifo::retried_head(s))),
    ("c4: nodes that claim at once never run two of a fifo, nor out of order", |s| Box::pin(fifo::concurrent_claims(s))),

    ("b4: a retried dead letter keeps its id and numbers, and has all its tries again", |s| Box::pin(acts::retries(s))),
    ("b4: a discarded dead letter is skipped and says who and why", |s| Box::pin(acts::discards(s))),
    ("b4: an event is replayed once its work is finished, and no earlier lease holds", |s| Box::pin(acts::replays(s))),
    ("b4: a dead letter that many take out at once goes to one of them", |s| Box::pin(acts::acts_at_once(s))),
    ("b4: an unfinished delivery is cancelled once, and only while no node runs it", |s| Box::pin(deliveries::cancels(s))),
    ("c4: a cancelled head of a fifo lets the next pass", |s| Box::pin(deliveries::cancelled_head(s))),
    ("b4: every act is audited, newest first", |s| Box::pin(acts::audits(s))),

    ("b5: every event has the status its work left", |s| Box::pin(find::statuses(s))),
    ("b5: an event is failed while any dead letter is about it", |s| Box::pin(find::failed_by_a_delivery(s))),
    ("h2: pages are bounded, ordered and filtered", |s| Box::pin(find::pages(s))),
    ("b4: dead letters are filtered and paged, and hold what is needed to redo them", |s| Box::pin(find::dead_letters(s))),
    ("b4: dead letters that are alike are grouped, with the money that hangs on them", |s| Box::pin(groups::dead_groups(s))),
    ("h2: a message is found in every standing", |s| Box::pin(find::messages(s))),
    ("h1: deliveries are one list, wherever they stand, filtered and paged", |s| Box::pin(deliveries::pages(s))),
    ("h1: a search for deliveries looks at so many and leads on", |s| Box::pin(deliveries::scans(s))),
    ("h1: what became of an event's deliveries is counted by route, the newest of each", |s| Box::pin(deliveries::counts(s))),
    ("a3: rejections alike are one line of their hour, each network has its share, newest first, filtered and paged", |s| Box::pin(find::rejections(s))),
    ("h2: a search for events looks at so many and leads on, in both directions", |s| Box::pin(scan::events(s))),
    ("h2: what is about a payment or a tenant, failed or waits is found among any number of others", |s| Box::pin(scan::led_events(s))),
    ("h4: a search of the audit log looks at so many and leads on; actors and times are found at once", |s| Box::pin(scan::audit(s))),
    ("h1: unfinished work is counted by lane, as it waits, is retried or runs", |s| Box::pin(groups::work(s))),
    ("h1: living nodes are listed with when they joined", |s| Box::pin(nodes::lists(s))),

    ("b2: a set ends several jobs, each with its own end, attempt and subject", |s| Box::pin(group::several_ends(s))),
    ("b2: one lost lease refuses the whole set", |s| Box::pin(group::one_lost_lease(s))),
    ("b2: a lease shown twice in one call is spent once, by the first set", |s| Box::pin(group::a_lease_twice(s))),
    ("b2: a set that contradicts itself is never written", |s| Box::pin(group::contradictions(s))),
    ("b5: what an event turned out to be about is kept with its outcome", |s| Box::pin(group::about(s))),

    ("d1: a write must show the version that is stored, and 0 means absent", |s| Box::pin(state::versions(s))),
    ("c4: of those who write a state from one version exactly one wins", |s| Box::pin(state::races(s))),
    ("d1: writes of several things at once neither deadlock nor lose one", |s| Box::pin(state::transfers(s))),
    ("d1: a name leads to one thing, and giving it again to the same is fine", |s| Box::pin(state::names(s))),
    ("d1: a name moves only from where it is", |s| Box::pin(state::moves(s))),
    ("d1: of those who claim a name at once exactly one has it", |s| Box::pin(state::name_races(s))),
    ("d1: a stale set writes nothing at all, and disturbs no other", |s| Box::pin(state::stale_sets(s))),
    ("d1: sets of one call that touch the same thing come one after the other", |s| Box::pin(state::same_thing(s))),
    ("d1: load sees what was applied, by name and by key, and leaves out the unknown", |s| Box::pin(state::loads(s))),
    ("h2: the words that follow a prefix in names are found, each once", |s| Box::pin(state::branches(s))),
    ("h2: things are filtered and paged, newest first", |s| Box::pin(state::pages(s))),

    ("d6: what an account holds is the sum of its lines, by currency and mode", |s| Box::pin(books::sums(s))),
    ("d6: lines are filtered and paged, newest first", |s| Box::pin(books::lines(s))),

    ("h4: entries come back as they were given, filtered and paged", |s| Box::pin(chain::entries(s))),
    ("h4: every entry hangs on a link, and every link on the one before it", |s| Box::pin(chain::links(s))),
    ("h4: chains hold when many write at once", |s| Box::pin(chain::many_writers(s))),

    ("d3: an event made by a change comes once, with its first job", |s| Box::pin(made::once(s))),
    ("d3: first jobs of made events are born leased to the set's node", |s| Box::pin(made::born_leased(s))),
    ("d3: an event that is known is left out with everything of it", |s| Box::pin(made::known(s))),
    ("d3: an event made by many changes at once comes once", |s| Box::pin(made::at_once(s))),

    ("b6: an hour is counted once, and counting again replaces", |s| Box::pin(upkeep::counts(s))),
    ("h1: money of an hour is summed up by mode, currency and cause", |s| Box::pin(upkeep::money(s))),
    ("b6: forgetting is bounded and leaves no trace", |s| Box::pin(upkeep::forgets(s))),
    ("b6: what is remembered of first bodies goes with its event, and stays with it", |s| Box::pin(upkeep::forgets_first_bodies(s))),
    ("b6: what has unfinished work or a dead letter is never forgotten (convoy #1723)", |s| Box::pin(upkeep::keeps(s))),
    ("b6: requests that nobody sends again go, with their names", |s| Box::pin(upkeep::forgets_requests(s))),
    ("b6: traces of timers go, unfinished timers stay", |s| Box::pin(upkeep::forgets_timers(s))),
    ("b6: traces of notices and reminders go", |s| Box::pin(upkeep::forgets_notices(s))),
    ("b6: meters between two ids go, the oldest first", |s| Box::pin(upkeep::forgets_meters(s))),
    ("h5: upkeep may run at any time, twice", |s| Box::pin(upkeep::upkeep(s))),
];

const NOW: Time = Time::from_ms(1_780_000_000_000);
const UP: &str = "the store is up";
/// A limit no promise here reaches, for reads that want everything.
const ALL: usize = 1_000;
/// Crashes that make a suspect, where a promise is not about them.
const SUSPECT_AFTER: i32 = 3;

/// A source of arrivals and jobs for tests: same seed, same rows.
pub struct Arrivals {
    sequence: Sequence,
}

impl Arrivals {
    pub fn new(node: i64) -> Self {
        Self { sequence: Sequence::new(Epoch(node), Seq::ZERO) }
    }

    pub fn id(&mut self) -> Seq {
        self.sequence.next(NOW)
    }

    pub fn event(&mut self, id: &str) -> Arrival {
        Arrival {
            key: DedupeKey::new("shop", id, None),
            first_body: None,
            seq: self.id(),
            received_at: NOW,
            source: "shop".into(),
            event_id: id.into(),
            event_type: "payment.paid".into(),
            created_at: Some(NOW),
            object: Some(("payment".into(), format!("pay_{id}"))),
            account: None,
            livemode: Some(false),
            trust: Trust::Signed,
            headers: r#"[["content-type","application/json"]]"#.into(),
            body: Bytes::from(format!(r#"{{"id":"{id}"}}"#)),
            held: None,
        }
    }

    /// An event that came at another time, and is numbered so.
    pub fn event_at(&mut self, id: &str, received_at: Time) -> Arrival {
        let row = self.event(id);
        let within_ms = row.seq.as_i64() - Seq::floor_of(row.seq.made_at()).as_i64();
        let seq = Seq::from_i64(Seq::floor_of(received_at).as_i64() + within_ms);
        Arrival { seq, received_at, ..row }
    }

    /// Work about nothing, in the lane of a route.
    pub fn job(&mut self, route: &str) -> NewJob {
        NewJob {
            id: self.id(),
            key: None,
            task: Task::Deliver { route: route.into() },
            lane: Lane::to_route(route),
            fifo: None,
            due_at: NOW,
            event: None,
            owner: None,
        }
    }

    pub fn delivery(&mut self, event: Seq, route: &str) -> NewJob {
        let job = self.job(route);
        NewJob { key: Some(delivery_key(event, &job.lane, 0)), event: Some(event), ..job }
    }

    fn jobs_of_fifo(&mut self, fifo: &str, count: usize) -> Vec<NewJob> {
        (0..count).map(|_| NewJob { fifo: Some(fifo.into()), ..self.job("app") }).collect()
    }
}

async fn admit(store: &Arc<dyn Store>, arrivals: Vec<Arrival>) -> Vec<Admission> {
    store.admit(arrivals.into(), None).await.expect(UP)
}

async fn admit_one(store: &Arc<dyn Store>, arrival: Arrival) -> Seq {
    let seq = arrival.seq;
    assert_eq!(admit(store, vec![arrival]).await, [Admission::Admitted]);
    seq
}

async fn count(store: &Arc<dyn Store>) -> usize {
    store.find_events(EventFilter { limit: ALL, ..EventFilter::default() }).await.expect(UP).events.len()
}

async fn join(store: &Arc<dyn Store>) -> Epoch {
    store.join(NOW).await.expect(UP).epoch
}

/// From the settle lane.
async fn claim(store: &Arc<dyn Store>, epoch: Epoch, limit: usize, now: Time) -> Vec<Lease> {
    leases(&claim_from(store, epoch, Lane::settle(), limit, now).await)
}

async fn claim_from(store: &Arc<dyn Store>, epoch: Epoch, lane: Lane, limit: usize, now: Time) -> Vec<Job> {
    store.claim(epoch, vec![(lane, limit)], now).await.expect(UP)
}

fn leases(jobs: &[Job]) -> Vec<Lease> {
    jobs.iter().map(|job| job.lease).collect()
}

fn ids(jobs: &[Job]) -> Vec<Seq> {
    jobs.iter().map(|job| job.lease.job).collect()
}

async fn commit(store: &Arc<dyn Store>, set: ChangeSet) -> Committed {
    store.commit(vec![set]).await.expect(UP).remove(0)
}

async fn finish(store: &Arc<dyn Store>, lease: Lease, end: End) -> Committed {
    commit(store, ChangeSet::end(lease, end, NOW)).await
}

/// Queues jobs and gives back which were repeated.
async fn queue(store: &Arc<dyn Store>, jobs: Vec<NewJob>) -> Vec<Seq> {
    match commit(store, ChangeSet::queue(jobs, NOW)).await {
        Committed::Applied { repeated } => repeated,
        refused => panic!("a set without a guard can't be refused: {refused:?}"),
    }
}

/// Queues one job in the lane of `app` and leases it.
async fn leased(store: &Arc<dyn Store>, epoch: Epoch, job: NewJob) -> Lease {
    let (id, lane) = (job.id, job.lane.clone());
    queue(store, vec![job]).await;
    let jobs = claim_from(store, epoch, lane, ALL, NOW).await;
    jobs.into_iter().map(|job| job.lease).find(|lease| lease.job == id).expect("it is due")
}

const APPLIED: Committed = Committed::Applied { repeated: Vec::new() };

const fn done() -> End {
    End::Done(Outcome::SUCCESS)
}

fn dead() -> End {
    End::Dead(death())
}

fn death() -> DeadReason {
    DeadReason::terminal("no", "it can't be")
}

fn act(reason: &str) -> Act {
    Act { at: NOW.plus_ms(60_000), actor: "mika".into(), role: Role::Operator, reason: reason.into() }
}

/// Stores an event whose settling fails for good.
async fn dead_letter(
    store: &Arc<dyn Store>,
    epoch: Epoch,
    arrival: Arrival,
    death: DeadReason,
    at: Time,
) -> Seq {
    let seq = arrival.seq;
    assert_eq!(store.admit(vec![arrival].into(), Some(epoch)).await.expect(UP), [Admission::Admitted]);
    let set = ChangeSet::end(Lease::born(seq, epoch), End::Dead(death), at);
    assert_eq!(commit(store, set).await, APPLIED);
    seq
}

fn attempt(status: i32) -> Attempt {
    Attempt {
        at: NOW,
        took_ms: 12,
        status: Some(status),
        reason: Some("app_error".into()),
        error: Some("the app answered 500".into()),
        headers: Some(r#"[["content-type","text/plain"]]"#.into()),
        body: Some(Bytes::from_static(b"no")),
    }
}

fn payment(id: &str) -> Key {
    Key::new(things::Kind::Payment, id)
}

fn write(key: &Key, version: i64, facts: &str) -> Write {
    Write { key: key.clone(), version, facts: facts.into(), index: Index::default() }
}

fn writes(writes: Vec<Write>) -> ChangeSet {
    ChangeSet { writes, ..ChangeSet::nothing(NOW) }
}

fn claim_name(name: &str, key: &Key) -> Naming {
    Naming { name: name.into(), key: key.clone(), was: None }
}

fn posting(account: &str, amount: i64, payment: &str) -> Posting {
    Posting {
        account: account.into(),
        currency: "JPY".into(),
        livemode: Some(true),
        amount,
        payment: payment.into(),
        cause: "captured".into(),
    }
}

fn entry(action: &str, target: &str) -> Entry {
    Entry {
        at: NOW,
        actor: None,
        role: None,
        action: action.into(),
        target: ("payment".into(), target.into()),
        tenant: None,
        event: None,
        details: "{}".into(),
    }
}

async fn stored(store: &Arc<dyn Store>, key: &Key) -> Option<State> {
    store.load(Vec::new(), vec![key.clone()]).await.expect(UP).states.remove(key)
}

async fn version(store: &Arc<dyn Store>, key: &Key) -> i64 {
    stored(store, key).await.map_or(0, |state| state.version)
}

async fn leads_to(store: &Arc<dyn Store>, name: &str) -> Option<Key> {
    store.load(vec![name.into()], Vec::new()).await.expect(UP).names.remove(name)
}

/// The newest first.
async fn audited(store: &Arc<dyn Store>) -> Vec<Entry> {
    let filter = AuditFilter { limit: ALL, ..AuditFilter::default() };
    store.find_audit(filter).await.expect(UP).entries.into_iter().map(|found| found.entry).collect()
}

async fn booked(store: &Arc<dyn Store>) -> Vec<Posting> {
    let filter = LineFilter { limit: ALL, ..LineFilter::default() };
    store.find_lines(filter).await.expect(UP).into_iter().map(|line| line.posting).collect()
}

async fn status(store: &Arc<dyn Store>, seq: Seq) -> Status {
    store.find_event(seq).await.expect(UP).expect("it was stored").summary.status
}

async fn message(store: &Arc<dyn Store>, job: Seq) -> Option<StoredMessage> {
    store.find_message(job).await.expect(UP)
}

async fn standing(store: &Arc<dyn Store>, job: Seq) -> Option<Standing> {
    message(store, job).await.map(|message| message.standing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn memory_keeps_every_promise() {
        for (name, promise) in PROMISES {
            println!("{name}");
            promise(Arc::new(MemoryStore::default())).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sqlite_keeps_every_promise() {
        for (name, promise) in PROMISES {
            println!("{name}");
            let folder = tempfile::tempdir().unwrap();
            let access = crate::Access::Serve { allow_unsafe_durability: false };
            promise(Arc::new(crate::sqlite::open(&folder.path().join("s.db"), access).await.unwrap())).await;
        }
    }
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn postgresql_keeps_every_promise() {
        let server = sekisho_lab::postgres::shared().unwrap();
        for (name, promise) in PROMISES {
            println!("{name}");
            let database = server.fresh_database().unwrap();
            let access = crate::Access::Serve { allow_unsafe_durability: false };
            promise(Arc::new(crate::postgres::open(&server.url(&database), access).await.unwrap())).await;
            server.drop_database(&database).unwrap();
        }
    }
}
