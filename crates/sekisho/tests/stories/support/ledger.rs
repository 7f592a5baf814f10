//! Traffic that remembers what was acknowledged, and the question it is kept for: is all of it stored, once?

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use sekisho_lab::load::{Load, LoadResend, Recording, Report, RunningLoad};
use sekisho_lab::traffic::StripeTraffic;

use super::{Gateway, PATIENCE, STRIPE_SECRET, wait_until};

/// A provider that goes on sending, and sends again what was not acknowledged, until told to stop.
pub struct Storm(RunningLoad);

impl Storm {
    pub fn start(address: SocketAddr, connections: usize) -> Self {
        let load = Load {
            connections,
            duration: PATIENCE * 5,
            answer_timeout: PATIENCE,
            resend: LoadResend::UntilAcknowledged,
            ledger: Recording::Memory,
            ..Load::new(address)
        };
        let traffic = StripeTraffic::new("/webhooks/stripe", STRIPE_SECRET, 1_500);
        Self(load.start(Arc::new(traffic)))
    }

    pub fn stop(self) -> Report {
        self.0.stop()
    }
}

/// Several storms over one store, as one.
pub fn together(reports: impl IntoIterator<Item = Report>) -> Report {
    let all = reports.into_iter().reduce(|mut one, two| {
        one.ledger.acknowledged.extend(two.ledger.acknowledged);
        one.ledger.unknown.extend(two.ledger.unknown);
        one.ledger.refused.extend(two.ledger.refused);
        one
    });
    all.expect("at least one storm")
}

impl Gateway {
    /// Every acknowledged event is stored exactly once, nothing is stored twice, and all work gets done.
    pub fn check_ledger(&self, report: &Report) {
        assert!(!report.ledger.acknowledged.is_empty(), "nothing was acknowledged: {report}");
        let mut stored: BTreeMap<String, usize> = BTreeMap::new();
        for id in self.event_ids() {
            *stored.entry(id).or_default() += 1;
        }
        let twice: Vec<_> = stored.iter().filter(|(_, times)| **times > 1).collect();
        assert!(twice.is_empty(), "stored more than once: {twice:?}");
        let lost: Vec<_> = report.ledger.acknowledged.iter().filter(|id| !stored.contains_key(*id)).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}\n{report}");
        let sent =
            report.ledger.acknowledged.len() + report.ledger.unknown.len() + report.ledger.refused.len();
        assert!(stored.len() <= sent, "{} stored of {sent} sent", stored.len());
        wait_until(&format!("all work done in {}", self.folder().display()), || {
            let left = self.type_in(&["events", "list", "--json", "--status", "received", "--limit", "1"]);
            left.done().stdout.is_empty()
        });
    }
}
