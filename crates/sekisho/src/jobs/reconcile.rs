//! Comparing what a provider lists with what came: every page of its events, then the objects that money hangs on. What is
//! missing goes in like any other event, under the source it should have come by; what was found is committed at the end
//! ([`ReconcileResult`]). A run that breaks off loses nothing: what it took in is here, and the next one begins where it did.

mod by_hand;
mod events;
mod objects;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use anyhow::Context as _;
use sekisho_core::Time;
use sekisho_core::actor::Actor;
use sekisho_core::change::{Arrival, ChangeSet};
use sekisho_core::event::Trust;
use sekisho_core::job::{Outcome, Timer};
use sekisho_core::provider::Scheme;
use sekisho_core::queue::Failure;
use sekisho_core::reconcile::{
    Found, Heard, Reach, ReconcilePolicy, ReconcileResult, RunOrder, SourceRegister, Window,
};
use sekisho_core::settlement::References;
use sekisho_core::source_name::Origin;
use sekisho_core::state::{Versioned, Wanted};
use sekisho_store::EventFilter;

use super::accounts::{ApiAccount, ApiAccounts, Use};
use super::{unavailable, unwritten};
use crate::config::Config;
use crate::effects::call::ApiCall;
use crate::effects::listing::{ListedPage, Lister};
use crate::engine::{Base, Engine};
use crate::env::Env;
use crate::telemetry::SourceLabels;
use crate::transact::{TransactError, transact};

/// Sources that are compared at once.
pub const AT_ONCE: usize = 2;

/// Pages of one list that a run reads; no provider's month is longer.
const PAGES_MAX: usize = 10_000;
/// Newest events of a source among which one is looked for that came by itself.
const HEARD_MAX: usize = 50;
/// Pages of unsettled events that are looked through: of more, some objects are taken in before their events are settled.
const UNSETTLED_PAGES_MAX: usize = 50;
/// A source that this node does not know is left for others so long: they may have a newer configuration.
const STRANGE_MS: i64 = 10 * 60_000;

/// By which way an event came that was listed.
const VIA: &str = r#"[["content-type","application/json"],["sekisho-via","reconcile"]]"#;

pub struct Reconciler {
    accounts: Arc<ApiAccounts>,
    doors: Vec<Door>,
    policy: ReconcilePolicy,
    references: References,
    kept_ms: i64,
}

/// A source as its webhooks find it.
struct Door {
    name: Arc<str>,
    origin: Origin,
    /// The one account that it takes.
    account: Option<String>,
    scheme: Box<dyn Scheme>,
}

/// What came of a run.
pub struct RunReport {
    pub window: Window,
    pub found: Found,
    /// As it stands now, or would.
    pub register: SourceRegister,
    pub failure: Option<Failure>,
}

impl Reconciler {
    pub fn new(config: &Config, accounts: Arc<ApiAccounts>) -> anyhow::Result<Self> {
        let compared = config.sources.iter().filter(|source| accounts.of_source(&source.name).is_some());
        let door = |source: &crate::config::Source| {
            let (provider, livemode) = (source.provider.about().name, source.livemode);
            let scheme = source.provider.open(&source.setup);
            let scheme = scheme.with_context(|| format!("source {}", source.name))?;
            let origin = Origin { provider, livemode };
            anyhow::Ok(Door {
                name: Arc::clone(&source.name),
                origin,
                account: source.account.clone(),
                scheme,
            })
        };
        Ok(Self {
            doors: compared.map(door).collect::<Result<_, _>>()?,
            accounts,
            policy: config.reconcile.clone(),
            references: config.references.clone(),
            kept_ms: config.retention.kept_ms(),
        })
    }

    /// With keys of its own, for a command while no server runs.
    pub fn alone(config: &Config) -> anyhow::Result<Self> {
        Self::new(config, Arc::new(ApiAccounts::new(config, &Env::system())?))
    }

    /// Whether a source is compared with its provider.
    pub fn compares(&self, source: &str) -> bool {
        self.doors.iter().any(|door| *door.name == *source)
    }

    /// When the next run of each source is due.
    pub fn due(&self, at: Time) -> impl Iterator<Item = (Timer, Time)> {
        let next = self.policy.next_after(at);
        let timer = |door: &Door| Timer::Reconcile { source: door.name.to_string() };
        self.doors.iter().map(move |door| (timer(door), next))
    }

    /// A run that was planned. One that breaks off is made good by the next.
    pub async fn fire(
        &self,
        engine: &Engine,
        source: &str,
        due_at: Time,
    ) -> Result<(Outcome, Option<Time>), Failure> {
        let now = engine.node.now();
        if !self.compares(source) {
            if now.ms() - due_at.ms() < STRANGE_MS {
                let error = format!("this node does not compare the source {source}; a newer one may");
                return Err(Failure::transient("unknown_source", error));
            }
            let note = format!("the source {source} is no longer compared with its provider");
            return Ok((Outcome::Skipped { note }, None));
        }
        if now.ms() - due_at.ms() > self.policy.every_ms {
            // A run before it took longer than that, or nobody ran: the next one sees the same.
            let note = "a later run does the same".to_owned();
            return Ok((Outcome::Skipped { note }, Some(self.policy.next_after(now))));
        }
        let report = self.run(&engine.base(), source, RunOrder::default(), None).await?;
        let figures = report.found.figures;
        let outcome = match report.failure {
            Some(failure) => {
                tracing::warn!(
                    source,
                    error_type = failure.reason,
                    error = failure.error,
                    "a source could not be compared with its provider; the next run begins where this one did"
                );
                Outcome::Skipped { note: failure.error }
            }
            None if report.found.has_found() => {
                tracing::warn!(
                    error_type = "events_missing",
                    source,
                    listed = figures.listed,
                    missing = figures.missing,
                    differing = figures.differing,
                    "events that had not come were read from the provider"
                );
                Outcome::Success { note: Some(format!("{} events had not come", figures.missing)) }
            }
            None => Outcome::SUCCESS,
        };
        Ok((outcome, Some(self.policy.next_after(engine.node.now()))))
    }

    /// One run. It fails here only where nothing could be written; how the provider failed is in the report.
    pub async fn run(
        &self,
        base: &Base,
        source: &str,
        order: RunOrder,
        actor: Option<&Actor<'_>>,
    ) -> Result<RunReport, Failure> {
        let (door, account) = self.find(source)?;
        let at = base.node.now();
        let before = load(base, source).await?;
        let born = match before.as_ref().and_then(|known| known.born) {
            Some(born) => born,
            None => first(base, source, at).await?,
        };
        let register = before.unwrap_or(SourceRegister { born: Some(born), ..SourceRegister::default() });
        let lister = account.lister(&self.policy.events).ok_or_else(|| not_compared(source))?;
        let reach = Reach { listed_ms: lister.events_kept_ms(), kept_ms: self.kept_ms };
        let window = self.policy.window(&register, reach, order, at);
        let mut reader = Reader {
            base,
            own: self,
            door,
            account,
            lister: &*lister,
            register: &register,
            dry_run: order.dry_run,
            started: at,
            found: Found::default(),
            touched: BTreeSet::new(),
        };
        let failure = reader.read(window).await.err();
        let found = reader.found;
        if let Some(failure) = failure.as_ref().filter(|failure| failure.reason == "store_unavailable") {
            return Err(failure.clone());
        }
        let heard = heard(base, source).await?;
        let run =
            ReconcileResult { source, at, window, found: &found, failure: failure.as_ref(), born, heard };
        let register = if order.dry_run {
            let mut shown = register.clone();
            run.conclude(&mut shown, &self.policy);
            shown
        } else {
            let written = self.write(base, &run, actor).await?;
            note(base, source, &found, &written);
            written
        };
        Ok(RunReport { window, found, register, failure })
    }

    fn find(&self, source: &str) -> Result<(&Door, &ApiAccount), Failure> {
        let door = self.doors.iter().find(|door| *door.name == *source);
        door.zip(self.accounts.of_source(source)).ok_or_else(|| not_compared(source))
    }

    /// The register, what operators hear and what the audit log keeps, in one commit.
    async fn write(
        &self,
        base: &Base,
        run: &ReconcileResult<'_>,
        actor: Option<&Actor<'_>>,
    ) -> Result<SourceRegister, Failure> {
        let key = SourceRegister::key(run.source);
        let written = transact(&*base.store, Wanted::keys([key.clone()]), |loaded| {
            let broken = |error: sekisho_core::state::Unreadable| {
                Failure::terminal("unreadable_state", error.to_string())
            };
            let known = loaded.read::<SourceRegister>(&key).map_err(broken)?;
            let (version, mut value) = known.map_or_else(Default::default, |one| (one.version, one.value));
            let alerts = run.conclude(&mut value, &self.policy);
            let told = |alert: sekisho_core::notification::Alert| {
                alert.announcement(run.at).arrival(base.node.next_seq(run.at))
            };
            let written = Versioned { key: key.clone(), version, value };
            let set = ChangeSet {
                writes: vec![written.write()],
                audit: run.entry(actor).into_iter().collect(),
                events: alerts.into_iter().map(told).collect(),
                ..ChangeSet::nothing(run.at)
            };
            Ok::<_, Failure>((set, written.value))
        });
        written.await.map_err(|error| match error {
            TransactError::Refused(failure) => failure,
            TransactError::Contended => contended(TransactError::Contended),
            TransactError::Lost => contended(TransactError::Lost),
            TransactError::Store(error) => contended(TransactError::Store(error)),
        })
    }
}

fn contended(error: TransactError<Infallible>) -> Failure {
    unwritten(error, "others wrote down their runs of this source all the time")
}

/// What is remembered of a source's runs.
fn not_compared(source: &str) -> Failure {
    Failure::terminal("not_compared", format!("the source {source} has no api_key, or its provider no lists"))
}

async fn load(base: &Base, source: &str) -> Result<Option<SourceRegister>, Failure> {
    let key = SourceRegister::key(source);
    let loaded = base.store.load(Vec::new(), vec![key.clone()]).await.map_err(unavailable)?;
    let broken =
        |error: sekisho_core::state::Unreadable| Failure::terminal("unreadable_state", error.to_string());
    Ok(loaded.read::<SourceRegister>(&key).map_err(broken)?.map(|known| known.value))
}

/// Where a source began: with its oldest event that is kept, or when this process began to listen for it. What the
/// provider made before then was not for us, and is no gap.
async fn first(base: &Base, source: &str, at: Time) -> Result<Time, Failure> {
    let order = sekisho_store::Order::OldestFirst;
    let filter = EventFilter { source: Some(source.to_owned()), order, limit: 1, ..EventFilter::default() };
    let page = base.store.find_events(filter).await.map_err(unavailable)?;
    let oldest = page.events.first().map(|event| event.created_at.unwrap_or(event.received_at));
    let listens_since = at.plus_ms(-(base.node.age().as_millis() as i64));
    Ok(oldest.map_or(listens_since, |oldest| oldest.min(listens_since)))
}

/// The last event that came by itself.
pub async fn heard(base: &Base, source: &str) -> Result<Option<Heard>, Failure> {
    let filter = EventFilter { source: Some(source.to_owned()), limit: HEARD_MAX, ..EventFilter::default() };
    let page = base.store.find_events(filter).await.map_err(unavailable)?;
    let came = || page.events.iter().filter(|event| event.trust != Trust::Fetched.name());
    let created = came().filter_map(|event| event.created_at).max();
    Ok(came().next().map(|last| Heard {
        event: last.event_id.clone(),
        created: created.unwrap_or(last.received_at),
        received: last.received_at,
    }))
}

fn note(base: &Base, source: &str, found: &Found, register: &SourceRegister) {
    let labels = SourceLabels { source: source.to_owned() };
    let metrics = &base.metrics.reconcile;
    metrics.listed.get_or_create(&labels).inc_by(found.figures.listed);
    metrics.missing.get_or_create(&labels).inc_by(found.figures.missing);
    metrics.differing.get_or_create(&labels).inc_by(found.figures.differing);
    metrics.completeness.get_or_create(&labels).set(register.percent() as i64);
}

/// Reads a provider's lists.
struct Reader<'r> {
    base: &'r Base,
    own: &'r Reconciler,
    door: &'r Door,
    account: &'r ApiAccount,
    lister: &'r dyn Lister,
    /// As it was when the run began.
    register: &'r SourceRegister,
    dry_run: bool,
    started: Time,
    found: Found,
    /// Names of payments of which something is on its way: they are compared by the next run.
    touched: BTreeSet<String>,
}

impl Reader<'_> {
    async fn read(&mut self, window: Window) -> Result<(), Failure> {
        if let Some(until) = self.account.left_until(Use::List, self.started) {
            let error = format!("the provider refuses the key of this source; it is tried again at {until}");
            return Err(Failure::transient("key_refused", error));
        }
        let lists_events = self.lister.events_kept_ms().is_some();
        if lists_events {
            self.events(window.events_since).await?;
        }
        self.look_for_unsettled().await?;
        let differing = self.objects(window.objects_since).await?;
        if !differing.is_empty() && lists_events {
            // What changed while objects were read has an event by now: then nothing was lost.
            self.look_for_young().await?;
        }
        self.join(differing).await
    }

    /// Notes what an answer says of the key; gives the page.
    async fn page(&self, call: ApiCall<ListedPage>) -> Result<ListedPage, Failure> {
        self.account.judge(self.base, Use::List, call.result.as_ref().err()).await;
        call.result
    }

    /// Puts events in; says of each whether it was new.
    async fn admit(&self, arrivals: Vec<Arrival>) -> Result<Vec<bool>, Failure> {
        let mut new = Vec::with_capacity(arrivals.len());
        for piece in arrivals.chunks(sekisho_store::ADMIT_MAX) {
            let admitted = self.base.store.admit(piece.into(), None).await.map_err(unavailable)?;
            new.extend(admitted.iter().map(sekisho_core::change::Admission::is_stored));
        }
        Ok(new)
    }
}

fn too_long() -> Failure {
    Failure::terminal("too_many_pages", format!("the provider's list has more than {PAGES_MAX} pages"))
}
