//! What those who took part did and heard themselves, for a proof that asks nobody else.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::programme::{DomeShow, Programme, VisitorCourse};
use super::refund_api::MadeRefund;

#[derive(Clone, Debug, Default)]
pub struct PlacesLedger {
    pub shows: Vec<DomeShow>,
    pub visitors: Vec<VisitorRecord>,
    /// As Stripe's stand-in made them.
    pub refunds: Vec<MadeRefund>,
    /// Answers to refunds that were cut off after the work was done, or given with a 500 before it.
    pub answers_lost: u64,
    pub webhooks: WebhookCount,
    /// By reservation, payment and order number.
    index: HashMap<String, usize>,
    messages: HashSet<String>,
}

/// What became of Stripe's events about orders.
#[derive(Clone, Debug, Default)]
pub struct WebhookCount {
    pub events: BTreeSet<String>,
    /// Requests that were planned: events and deliberate repeats.
    pub planned: u64,
    pub requests: u64,
    /// Once for each 2xx.
    pub acknowledged: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct VisitorRecord {
    /// Which of the shows.
    pub show: usize,
    pub course: VisitorCourse,
    pub quantity: u32,
    pub amount: i64,
    /// How often the answer was that the show is sold out.
    pub refused: u32,
    pub place: Option<SoldPlace>,
    /// `pi_…`, once the visitor paid.
    pub intent: Option<String>,
    /// When the visitor asked to cancel, and whether that was done.
    pub cancel_sent_ms: Option<u64>,
    pub is_cancelled: bool,
    /// Types of what the application heard of it, and when it heard of the confirmation.
    pub heard: BTreeSet<String>,
    pub confirmed_ms: Option<u64>,
    /// Runs of the video that the renderer said failed, and whether one was done.
    pub failed_runs: BTreeSet<u64>,
    pub is_made: bool,
    /// The course was followed to its end.
    pub is_over: bool,
}

/// Places that were held for a visitor. In milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoldPlace {
    pub reservation: String,
    pub payment: String,
    /// The path of the order's page.
    pub page: String,
    pub answered_ms: u64,
    /// Not before this moment do they end: counted from when they were first asked for.
    pub held_until_ms: u64,
}

impl PlacesLedger {
    /// As if all this had happened.
    pub fn with(
        shows: Vec<DomeShow>,
        visitors: Vec<VisitorRecord>,
        refunds: Vec<MadeRefund>,
        webhooks: WebhookCount,
    ) -> Self {
        Self { shows, visitors, refunds, webhooks, ..Self::default() }
    }

    pub(super) fn of(programme: &Programme) -> Self {
        let record = |visitor: &super::ShowVisitor| VisitorRecord {
            show: visitor.show,
            course: visitor.course,
            quantity: visitor.quantity,
            amount: programme.shows[visitor.show].price * i64::from(visitor.quantity),
            refused: 0,
            place: None,
            intent: None,
            cancel_sent_ms: None,
            is_cancelled: false,
            heard: BTreeSet::new(),
            confirmed_ms: None,
            failed_runs: BTreeSet::new(),
            is_made: false,
            is_over: false,
        };
        let of_reference = |(n, visitor): (usize, &super::ShowVisitor)| (visitor.reference.clone(), n);
        Self {
            shows: programme.shows.clone(),
            visitors: programme.visitors.iter().map(record).collect(),
            index: programme.visitors.iter().enumerate().map(of_reference).collect(),
            ..Self::default()
        }
    }

    /// Whether this message comes for the first time.
    pub(super) fn is_news(&mut self, message: &str) -> bool {
        self.messages.insert(message.to_owned())
    }

    pub(super) fn hold(&mut self, n: usize, place: SoldPlace) {
        self.index.extend([(place.reservation.clone(), n), (place.payment.clone(), n)]);
        self.visitors[n].place = Some(place);
    }

    /// Whom an announcement is about: a reservation, its payment, or what is made for it.
    pub(super) fn whose(&self, event: &Value) -> Option<usize> {
        let names = ["reservation", "reference", "id", "payment"].map(|name| event["data"][name].as_str());
        names.into_iter().flatten().find_map(|name| self.index.get(name).copied())
    }

    pub(super) fn hear(&mut self, event: &Value, at_ms: u64) {
        let (Some(n), Some(kind)) = (self.whose(event), event["type"].as_str()) else { return };
        let visitor = &mut self.visitors[n];
        visitor.heard.insert(kind.to_owned());
        if kind == "reservation.confirmed" {
            visitor.confirmed_ms.get_or_insert(at_ms);
        }
    }

    /// Visitors who got places.
    pub fn held(&self) -> impl Iterator<Item = (&VisitorRecord, &SoldPlace)> {
        self.visitors.iter().filter_map(|visitor| Some((visitor, visitor.place.as_ref()?)))
    }
}

impl VisitorRecord {
    pub fn has_heard(&self, kind: &str) -> bool {
        self.heard.contains(kind)
    }

    /// The money went back, or the bank did not take it.
    pub(super) fn is_refund_over(&self) -> bool {
        self.has_heard("payment.refunded") || self.has_heard("payment.refund_failed")
    }
}
