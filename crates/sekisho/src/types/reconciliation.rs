//! Reconciliations: what a provider lists, compared with what came.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use sekisho_core::Time;
use sekisho_core::reconcile::{self, SourceRegister};
use serde::{Deserialize, Serialize};

/// How a source stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reconciliation {
    pub source: String,
    pub provider: Option<String>,
    /// Whether it is compared at all: it has an api_key, and reconcile is not false.
    pub enabled: bool,
    pub last_run_at: Option<Time>,
    /// The last run that read every page.
    pub last_good_at: Option<Time>,
    /// The last run that read all that the provider still lists.
    pub last_deep_at: Option<Time>,
    /// The newest event that was listed.
    pub high_water: Option<Time>,
    /// Why the last run broke off.
    pub error: Option<String>,
    /// Of a hundred listed events of all days below, how many are here; null before the first run.
    pub completeness: Option<u64>,
    /// What the last run found.
    #[serde(flatten)]
    pub figures: ReconciliationFigures,
    /// By date in UTC.
    pub days: BTreeMap<String, DayFigures>,
    /// The newest first.
    pub differences: Vec<ReconciliationDifference>,
    /// Since when operators know that nothing comes.
    pub silent_since: Option<Time>,
}

impl Reconciliation {
    /// What is remembered, as it is shown.
    pub fn of(
        source: &str,
        provider: Option<&str>,
        enabled: bool,
        register: Option<&SourceRegister>,
        silent_since: Option<Time>,
    ) -> Self {
        let known = register.cloned().unwrap_or_default();
        Self {
            source: source.to_owned(),
            provider: provider.map(str::to_owned),
            enabled,
            last_run_at: known.last_run,
            last_good_at: known.last_good,
            last_deep_at: known.last_deep,
            high_water: known.high_water,
            error: known.error.as_ref().map(|(_, error)| error.clone()),
            completeness: register.map(SourceRegister::percent),
            figures: known.last.into(),
            days: known.days.iter().map(|(date, day)| (date.clone(), day.into())).collect(),
            differences: known.differences.iter().map(Into::into).collect(),
            silent_since,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReconciliationFigures {
    /// Events in the provider's list.
    pub listed: u64,
    /// Those that had come, or may still be on their way.
    pub known: u64,
    pub missing: u64,
    /// Those of the missing that were taken in.
    pub closed: u64,
    /// Objects that do not say what we say.
    pub differing: u64,
}

impl From<reconcile::RunFigures> for ReconciliationFigures {
    fn from(figures: reconcile::RunFigures) -> Self {
        let reconcile::RunFigures { listed, known, missing, closed, differing } = figures;
        Self { listed, known, missing, closed, differing }
    }
}

/// How complete a day is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DayFigures {
    pub listed: u64,
    /// Those that did not come by themselves.
    pub missing: u64,
    /// Those of the missing that were taken in.
    pub closed: u64,
    /// Of a hundred that were listed, how many are here.
    pub completeness: u64,
}

impl From<&reconcile::DayCount> for DayFigures {
    fn from(day: &reconcile::DayCount) -> Self {
        Self { listed: day.listed, missing: day.missing, closed: day.closed, completeness: day.percent() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReconciliationDifference {
    /// What it is at the provider, such as `payment_intent`.
    pub object: String,
    /// The provider's id.
    pub id: String,
    /// `theirs_only`: we were behind, and it was taken in. `ours_only`: we say what the provider denies; a person decides.
    pub kind: String,
    pub detail: String,
    pub at: Time,
}

impl From<&reconcile::Discrepancy> for ReconciliationDifference {
    fn from(one: &reconcile::Discrepancy) -> Self {
        let reconcile::Discrepancy { object, id, kind, detail, at } = one.clone();
        Self { object, id, kind, detail, at }
    }
}

/// A run by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewReconciliation {
    pub source: String,
    /// How far to look back; without it, all events that the provider still lists, and objects of the last three days (60 where
    /// the provider lists no events). Old events that are missing are delivered to routes like any other.
    #[serde(default)]
    pub since: Option<Time>,
    /// Only say what is missing: nothing is taken in, processed or delivered.
    #[serde(default)]
    pub dry_run: bool,
}

/// What a run by hand found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReconciliationReport {
    pub source: String,
    pub dry_run: bool,
    /// Whether every page was read.
    pub complete: bool,
    /// Why not; what was found until then is here.
    pub error: Option<String>,
    /// How far it looked back for events.
    pub since: Time,
    #[serde(flatten)]
    pub figures: ReconciliationFigures,
    pub differences: Vec<ReconciliationDifference>,
}
