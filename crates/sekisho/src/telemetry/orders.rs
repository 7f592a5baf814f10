//! Figures of orders: places that are asked for, what became of them, refunds, cases, the probe and customers' pages. Labels are
//! closed sets: no slot, order or customer is ever one.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use sekisho_core::compensation::CompensationKind;
use sekisho_core::event::Stored;
use sekisho_core::source_name::is_own;
use serde::Deserialize;

use super::{ResultLabels, SECONDS};
use crate::refusal::Refusal;

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OrderStatusLabels {
    pub status: &'static str,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct LevelLabels {
    pub level: u32,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct PageLabels {
    pub page: &'static str,
    /// `2xx`, `3xx`, `4xx` or `5xx`.
    pub answer: &'static str,
}

/// What announcements say that is counted.
#[derive(Default, Deserialize)]
struct Announced {
    #[serde(default)]
    about: AnnouncedAbout,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AnnouncedAbout {
    held_back: bool,
    by_hand: bool,
    #[serde(rename = "type")]
    kind: Option<CompensationKind>,
    level: u32,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct OrderFigures {
    pub holds: Family<ResultLabels, Counter>,
    pub hold_seconds: Histogram,
    pub lapses: Counter,
    pub reassigns: Counter,
    pub refund_orders: Family<OrderStatusLabels, Counter>,
    pub cases: Family<LevelLabels, Counter>,
    pub open_cases: Family<LevelLabels, Gauge>,
    pub overdue_cases: Gauge,
    pub probes: Family<ResultLabels, Counter>,
    pub page_answers: Family<PageLabels, Counter>,
}

impl Default for OrderFigures {
    fn default() -> Self {
        Self {
            holds: Family::default(),
            hold_seconds: Histogram::new(SECONDS),
            lapses: Counter::default(),
            reassigns: Counter::default(),
            refund_orders: Family::default(),
            cases: Family::default(),
            open_cases: Family::default(),
            overdue_cases: Gauge::default(),
            probes: Family::default(),
            page_answers: Family::default(),
        }
    }
}

impl OrderFigures {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("holds", "Requests for places", self.holds.clone());
        registry.register_with_unit(
            "hold",
            "From a request for places to its answer",
            Unit::Seconds,
            self.hold_seconds.clone(),
        );
        registry.register("lapses", "Holds that ended unpaid", self.lapses.clone());
        registry.register("reassigns", "Reservations that got other places", self.reassigns.clone());
        registry.register(
            "refund_orders",
            "Refund orders: ordered, held back, to be made by hand, done or given up",
            self.refund_orders.clone(),
        );
        registry.register("cases", "Levels of cases that were reached", self.cases.clone());
        registry.register(
            "open_cases",
            "Cases that are open now, by level; counted each minute by nodes that serve the API",
            self.open_cases.clone(),
        );
        registry.register(
            "overdue_cases",
            "Open cases that nobody answered in time",
            self.overdue_cases.clone(),
        );
        registry.register("probes", "Places that were taken and freed to try it", self.probes.clone());
        registry.register("page_answers", "Answers of customers' pages", self.page_answers.clone());
    }

    /// With one of each kind counted, for the reference.
    pub(super) fn have_one_of_each(&self) {
        let Self {
            holds,
            hold_seconds: _,
            lapses: _,
            reassigns: _,
            refund_orders,
            cases,
            open_cases,
            overdue_cases: _,
            probes,
            page_answers,
        } = self;
        for counted in [holds, probes] {
            drop(counted.get_or_create(&ResultLabels::default()));
        }
        drop(refund_orders.get_or_create(&OrderStatusLabels::default()));
        drop(cases.get_or_create(&LevelLabels::default()));
        drop(open_cases.get_or_create(&LevelLabels::default()));
        drop(page_answers.get_or_create(&PageLabels::default()));
    }

    /// Places were asked for, and this was answered.
    pub fn held(&self, answer: Result<(), &Refusal>, took: Duration) {
        let result = match answer {
            Ok(()) => "held",
            Err(Refusal::Full { .. }) => "full",
            Err(Refusal::RetryLater { .. }) => "busy",
            Err(Refusal::Store(_)) => "failed",
            Err(
                Refusal::Invalid(_)
                | Refusal::Fields(_)
                | Refusal::Missing(_)
                | Refusal::Conflict(_)
                | Refusal::Forbidden(_),
            ) => "refused",
        };
        self.holds.get_or_create(&ResultLabels { result }).inc();
        self.hold_seconds.observe(took.as_secs_f64());
    }

    pub fn probed(&self, is_good: bool) {
        let result = if is_good { "good" } else { "failed" };
        self.probes.get_or_create(&ResultLabels { result }).inc();
    }

    /// How many cases of each level are open now, and how many are overdue.
    pub fn count_cases(&self, by_level: [i64; 4], overdue: i64) {
        for (level, count) in (0..).zip(by_level) {
            self.open_cases.get_or_create(&LevelLabels { level }).set(count);
        }
        self.overdue_cases.set(overdue);
    }

    pub fn page(&self, page: &'static str, status: u16) {
        let answer = match status {
            0..300 => "2xx",
            300..400 => "3xx",
            400..500 => "4xx",
            500.. => "5xx",
        };
        self.page_answers.get_or_create(&PageLabels { page, answer }).inc();
    }

    /// An announcement of ours was settled: what it tells is counted, whichever node decided it.
    pub fn announced(&self, event: &Stored) {
        if !is_own(event) {
            return;
        }
        let about = || {
            let body: Announced = serde_json::from_slice(&event.body).unwrap_or_default();
            body.about
        };
        let order = |status| {
            self.refund_orders.get_or_create(&OrderStatusLabels { status }).inc();
        };
        match event.event_type.as_str() {
            "reservation.expired" => {
                self.lapses.inc();
            }
            "payment.refund_ordered" => {
                let about = about();
                order(match () {
                    () if about.held_back => "held_back",
                    () if about.by_hand => "by_hand",
                    () => "ordered",
                });
            }
            "payment.refund_given_up" => order("given_up"),
            "compensation.recorded" => match about().kind {
                Some(CompensationKind::Refund) => order("done"),
                Some(CompensationKind::SlotReassign) => {
                    self.reassigns.inc();
                }
                Some(CompensationKind::ManualResolution) | None => {}
            },
            "case.raised" => {
                let level = about().level.min(3);
                self.cases.get_or_create(&LevelLabels { level }).inc();
            }
            _ => {}
        }
    }
}
