//! A run that a person or an app asks for, and how sources stand.

use std::sync::Arc;

use sekisho_core::actor::Actor;
use sekisho_core::alert::{AlertName, AlertPhase, AlertState};
use sekisho_core::reconcile::{RunOrder, SourceRegister};
use sekisho_store::Store;

use super::{Reconciler, RunReport};
use crate::engine::Base;
use crate::env::Env;
use crate::node::{Health, Node};
use crate::refusal::{Refusal, Result};
use crate::telemetry::Tracer;
use crate::types::{NewReconciliation, Reconciliation, ReconciliationReport};

impl Reconciler {
    /// Compares a source now, and says what was found.
    pub async fn by_hand(
        &self,
        base: &Base,
        order: &NewReconciliation,
        actor: &Actor<'_>,
    ) -> Result<ReconciliationReport> {
        let NewReconciliation { source, since, dry_run } = order;
        if !self.compares(source) {
            return Err(Refusal::Conflict(format!(
                "the source {source} has no api_key, or reconcile = false; correct its [[source]] and restart"
            )));
        }
        let asked = RunOrder { by_hand: true, since: *since, dry_run: *dry_run };
        let run = self.run(base, source, asked, Some(actor)).await;
        let unwritten =
            |failure: sekisho_core::queue::Failure| Refusal::RetryLater { detail: failure.error, seconds: 5 };
        let RunReport { window, found, failure, .. } = run.map_err(unwritten)?;
        tracing::info!(
            source,
            actor = actor.name,
            listed = found.figures.listed,
            missing = found.figures.missing,
            dry_run,
            "a source was compared with its provider by hand"
        );
        Ok(ReconciliationReport {
            source: source.clone(),
            dry_run: *dry_run,
            complete: failure.is_none(),
            error: failure.map(|failure| failure.error),
            since: window.events_since,
            figures: found.figures.into(),
            differences: found.differences.iter().map(Into::into).collect(),
        })
    }

    /// The same where no server runs: as a node that joins for this one run. Servers of other machines may run on the store.
    pub async fn by_hand_alone(
        &self,
        store: &Arc<dyn Store>,
        order: &NewReconciliation,
        actor: &Actor<'_>,
    ) -> Result<ReconciliationReport> {
        let health = Arc::new(Health::default());
        let node = Arc::new(Node::join(Arc::clone(store), Arc::clone(&health), Env::system()).await?);
        let epoch = node.epoch();
        let base = Base {
            store: Arc::clone(store),
            node,
            health,
            metrics: Arc::default(),
            tracer: Arc::new(Tracer::off()),
        };
        let report = self.by_hand(&base, order, actor).await;
        store.leave(epoch).await?;
        report
    }

    /// How a source stands.
    pub async fn standing(
        &self,
        store: &dyn Store,
        source: &str,
        provider: Option<&str>,
    ) -> Result<Reconciliation> {
        let key = SourceRegister::key(source);
        let silent = AlertState::key(AlertName::Silent, source);
        let loaded = store.load(Vec::new(), vec![key.clone(), silent.clone()]).await?;
        let register = loaded.read::<SourceRegister>(&key)?.map(|known| known.value);
        let silent = loaded.read::<AlertState>(&silent).ok().flatten().map(|known| known.value);
        let fires = silent.filter(|state| state.phase == AlertPhase::Firing);
        let since = fires.and_then(|state| state.since);
        Ok(Reconciliation::of(source, provider, self.compares(source), register.as_ref(), since))
    }
}
