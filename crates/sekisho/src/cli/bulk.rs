//! What every command that may touch many things has in common: a preview, a question at the terminal, a report.

use super::output::{is_attended, is_confirmed};

#[derive(clap::Args)]
pub struct BulkOptions {
    /// Only say what would happen
    #[arg(long)]
    pub dry_run: bool,
    /// Don't ask
    #[arg(long, short)]
    yes: bool,
    /// The report as one JSON object
    #[arg(long)]
    pub json: bool,
}

impl BulkOptions {
    /// Whether the operator at the terminal should see first what it is about. One thing named by its id needs no question.
    pub fn must_ask(&self, ids: &[String]) -> bool {
        !self.dry_run && !self.yes && ids.len() != 1 && is_attended()
    }
}

/// Asks when more than one thing is touched; an error is the answer no.
pub fn confirm(found: usize) -> anyhow::Result<()> {
    anyhow::ensure!(found <= 1 || is_confirmed("Continue?")?, "cancelled; nothing was changed");
    Ok(())
}
