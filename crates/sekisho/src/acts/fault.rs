//! Faults of the system: a node reports what does not work, or that it works again.

use sekisho_core::Time;
use sekisho_core::case::FaultReport;
use sekisho_core::settlement::follow::{OrderPart, OrderPolicy};
use sekisho_core::settlement::{Cause, Input, Reading};
use sekisho_core::state::Wanted;
use sekisho_store::Store;

use super::decided::{Prepared, decided};
use crate::env::Env;
use crate::refusal::Result;

/// Takes a report in: it opens a case, keeps it open, or closes it.
pub async fn report_fault(
    store: &dyn Store,
    env: &Env,
    policy: &OrderPolicy,
    report: &FaultReport,
    at: Time,
) -> Result<()> {
    let prepare = |_: &sekisho_core::state::Loaded| {
        let reading = Reading { order: vec![OrderPart::Fault(report.clone())], ..Reading::default() };
        Ok(Prepared::Decide(vec![Input { seq: env.fresh_seq(at), reading, cause: Cause::system() }], ()))
    };
    decided(store, env, policy, at, Wanted::default(), prepare, |(), _| Ok(((), Vec::new()))).await
}
