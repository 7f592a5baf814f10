//! Bugs as people make them, planted between the product and its store, its clock and its callers. Each has to be found, or the
//! laws are too weak.

use sekisho_core::change::{Arrival, ChangeSet};
use sekisho_core::event::DedupeKey;
use sekisho_core::job::{Task, Timer};
use sekisho_core::settlement::follow::OrderPolicy;
use sekisho_core::state::{Key, Kind, State, Write};
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderBug {
    /// A hold ends at its time, to the millisecond.
    NoGrace,
    /// Places are promised, and nobody writes it down.
    BlockNotWritten,
    /// Who takes a case in hand has resolved it.
    AckResolves,
    /// Who takes a case in hand has stopped the refund.
    AckStopsRefund,
    /// A result of an older run counts for the newest.
    OlderRunCounted,
    /// What is cancelled keeps its places.
    ClaimStaysOnCancel,
    /// Money that came too late makes an order confirmed, though it has no place.
    ConfirmedWithoutPlace,
    /// A refund whose answer was lost is made once more, without a look.
    RefundMadeTwice,
    /// Operators hear of one level twice.
    LevelToldTwice,
    /// What a person resolved comes up again.
    CaseReopened,
    /// Holds never end.
    HoldsNeverEnd,
    /// The slots of all tenants are one.
    TenantIgnored,
    /// The slots of test and live orders are one.
    ModesMerged,
    /// Customers cancel until the beginning.
    CancelAfterLimit,
    /// What was done is not recorded.
    NothingRecorded,
    /// A partial refund counts as a whole one.
    PartialRefundCancels,
    /// Money counts as paid when its webhook came.
    PaidWhenHeard,
    /// Nobody plans to look again.
    NoTimer,
    /// What expired is told to nobody.
    ExpiryUntold,
}

impl OrderBug {
    pub const ALL: [Self; 19] = [
        Self::NoGrace,
        Self::BlockNotWritten,
        Self::AckResolves,
        Self::AckStopsRefund,
        Self::OlderRunCounted,
        Self::ClaimStaysOnCancel,
        Self::ConfirmedWithoutPlace,
        Self::RefundMadeTwice,
        Self::LevelToldTwice,
        Self::CaseReopened,
        Self::HoldsNeverEnd,
        Self::TenantIgnored,
        Self::ModesMerged,
        Self::CancelAfterLimit,
        Self::NothingRecorded,
        Self::PartialRefundCancels,
        Self::PaidWhenHeard,
        Self::NoTimer,
        Self::ExpiryUntold,
    ];
}

/// What passes in one life, distorted by at most one bug.
#[derive(Clone, Copy, Default)]
pub struct Planted(pub Option<OrderBug>);

impl Planted {
    fn is(self, bug: OrderBug) -> bool {
        self.0 == Some(bug)
    }

    /// The rules that the product works by.
    pub fn policy(self, policy: &mut OrderPolicy) {
        match self.0 {
            Some(OrderBug::NoGrace) => policy.grace_ms = 0,
            Some(OrderBug::CancelAfterLimit) => policy.cancel_until_ms = 0,
            _ => {}
        }
    }

    /// An event as the product hears it.
    pub fn hear(self, event: &mut Value, now_seconds: i64, whole: i64) {
        let object = &mut event["data"]["object"];
        if self.is(OrderBug::PartialRefundCancels) && object["object"] == "refund" {
            object["amount"] = json!(whole);
        }
        if self.is(OrderBug::PaidWhenHeard) && object["object"] == "charge" {
            object["created"] = json!(now_seconds);
        }
    }

    /// The run that a result is taken for.
    pub fn run(self, said: u32, newest: u32) -> u32 {
        if self.is(OrderBug::OlderRunCounted) { newest } else { said }
    }

    pub fn forgets_to_look(self) -> bool {
        self.is(OrderBug::RefundMadeTwice)
    }

    /// Where something is kept.
    pub fn key(self, key: &Key) -> Key {
        if !matches!(key.kind, Kind::Slot | Kind::SlotBlock) {
            return key.clone();
        }
        let mut parts: Vec<&str> = key.id.splitn(3, '/').collect();
        match self.0 {
            Some(OrderBug::TenantIgnored) => parts[1] = "-",
            Some(OrderBug::ModesMerged) => parts[0] = "live",
            _ => return key.clone(),
        }
        Key::new(key.kind, parts.join("/"))
    }

    /// What is loaded.
    pub fn read(self, state: &mut State) {
        if state.key.kind != Kind::Case {
            return;
        }
        match self.0 {
            Some(OrderBug::CaseReopened) => change(&mut state.facts, |facts| {
                each_episode(facts, |episode| {
                    let by_hand = episode["resolved"]["by"].as_str().is_some_and(|by| by != "SYSTEM");
                    if by_hand && episode["cleared"].is_null() {
                        episode["resolved"] = Value::Null;
                    }
                });
            }),
            Some(OrderBug::AckStopsRefund) => change(&mut state.facts, |facts| {
                each_episode(facts, |episode| {
                    if episode["acknowledged"].is_object() {
                        episode["since"].as_object_mut().unwrap().remove("RENDER_FAILURE_TIMEOUT");
                        episode["fired"] =
                            json!(["RENDER_FAILURE_FIRST", "RENDER_FAILURE_THIRD", "RENDER_FAILURE_TIMEOUT"]);
                    }
                });
            }),
            _ => {}
        }
    }

    /// What is committed.
    pub fn write(self, set: &mut ChangeSet) {
        match self.0 {
            Some(OrderBug::BlockNotWritten) => set.writes.retain(|write| write.key.kind != Kind::SlotBlock),
            Some(OrderBug::NothingRecorded) => {
                set.writes.retain(|write| write.key.kind != Kind::Compensation);
            }
            Some(OrderBug::ExpiryUntold) => {
                set.events.retain(|told| told.event_type != "reservation.expired");
            }
            Some(OrderBug::NoTimer) => {
                set.jobs.retain(|job| !matches!(job.task, Task::Timer(Timer::Deadline { .. })));
            }
            Some(OrderBug::AckResolves) => of_kind(set, Kind::Case, |facts| {
                each_episode(facts, |episode| {
                    if episode["resolved"].is_null() {
                        episode["resolved"] = episode["acknowledged"].clone();
                    }
                });
            }),
            Some(OrderBug::HoldsNeverEnd) => of_kind(set, Kind::SlotBlock, |facts| {
                for claim in facts.as_object_mut().unwrap().values_mut() {
                    claim["sold"] = json!(true);
                }
            }),
            Some(OrderBug::ClaimStaysOnCancel) => {
                let is_cancel = set.events.iter().any(|told| told.event_type == "reservation.cancelled");
                set.writes.retain(|write| !is_cancel || write.key.kind != Kind::SlotBlock);
            }
            Some(OrderBug::ConfirmedWithoutPlace) => {
                let is_ordered = set.events.iter().any(|told| told.event_type == "payment.refund_ordered");
                of_kind(set, Kind::Reservation, |facts| {
                    if is_ordered && facts["cancelled"].is_null() {
                        facts["confirmed"] = json!(facts["lapsed"].as_u64().unwrap_or(0) + 1);
                    }
                });
            }
            Some(OrderBug::LevelToldTwice) => {
                let raised = set.events.iter().filter(|told| told.event_type == "case.raised");
                let again: Vec<Arrival> = raised.cloned().map(under_another_id).collect();
                set.events.extend(again);
            }
            _ => {}
        }
    }
}

fn of_kind(set: &mut ChangeSet, kind: Kind, bend: impl Fn(&mut Value)) {
    let own = set.writes.iter_mut().filter(|write| write.key.kind == kind);
    own.for_each(|write: &mut Write| change(&mut write.facts, &bend));
}

fn change(facts: &mut String, bend: impl Fn(&mut Value)) {
    let mut value: Value = serde_json::from_str(facts).unwrap();
    bend(&mut value);
    *facts = value.to_string();
}

fn each_episode(facts: &mut Value, bend: impl Fn(&mut Value)) {
    facts["episodes"].as_object_mut().unwrap().values_mut().for_each(bend);
}

fn under_another_id(mut told: Arrival) -> Arrival {
    let mut body: Value = serde_json::from_slice(&told.body).unwrap();
    told.event_id = format!("{}/again", told.event_id);
    told.key = DedupeKey::new("sekisho", &told.event_id, None);
    told.seq = sekisho_core::Seq::from_i64(told.seq.as_i64() + 1);
    body["id"] = json!(told.event_id);
    told.body = body.to_string().into();
    told
}
