//! What is to be done, and how it is written in a job's columns `kind` and `payload`. Nothing else reads or writes them.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{CheckoutCall, Fetch, Notify, RefundCall, Timer};
use crate::traceparent::Traceparent;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Find out what an event means.
    Settle(Settle),
    /// Send an event to the app.
    Deliver { route: String },
    /// Send one notice.
    Send { notice: String },
    /// Work out who is told what.
    Notify(Notify),
    /// Read something from the provider; the answer becomes an event.
    Fetch(Fetch),
    /// Have the provider give money back.
    Refund(Box<RefundCall>),
    /// Have the provider make or expire a Checkout Session.
    Checkout(Box<CheckoutCall>),
    /// Do what is due.
    Timer(Timer),
    /// What another version wrote, and this one can't read. It is kept as it is, and a person decides.
    Unreadable { kind: JobKind, payload: String },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settle {
    /// Its effects are caused once, however often it is settled.
    Once,
    /// Deliveries that were made before are repeated.
    Again,
    /// It must not be acted upon; why is a reason to filter by, and a sentence for a person.
    Held { reason: String, error: String },
}

/// A task's first column: what jobs are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobKind {
    Settle,
    Deliver,
    Timer,
    Fetch,
    Notify,
    Send,
    Refund,
    Checkout,
}

impl Task {
    pub const fn kind(&self) -> JobKind {
        match self {
            Self::Settle(_) => JobKind::Settle,
            Self::Deliver { .. } => JobKind::Deliver,
            Self::Send { .. } => JobKind::Send,
            Self::Notify(_) => JobKind::Notify,
            Self::Fetch(_) => JobKind::Fetch,
            Self::Refund(_) => JobKind::Refund,
            Self::Checkout(_) => JobKind::Checkout,
            Self::Timer(_) => JobKind::Timer,
            Self::Unreadable { kind, .. } => *kind,
        }
    }

    pub fn payload(&self) -> Cow<'_, str> {
        match self {
            Self::Settle(settle) => settle.payload(),
            Self::Deliver { route } => Cow::Borrowed(route),
            Self::Send { notice } => Cow::Borrowed(notice),
            Self::Notify(notify) => Cow::Owned(json(notify)),
            Self::Fetch(fetch) => Cow::Owned(json(fetch)),
            Self::Refund(call) => Cow::Owned(json(call)),
            Self::Checkout(call) => Cow::Owned(json(call)),
            Self::Timer(timer) => Cow::Owned(json(timer)),
            Self::Unreadable { payload, .. } => Cow::Borrowed(payload),
        }
    }

    /// `None` when no version of ours has such a kind.
    pub fn parse(kind: &str, payload: &str) -> Option<Self> {
        let kind = JobKind::parse(kind)?;
        let task = match kind {
            JobKind::Settle => Settle::parse(payload).map(Self::Settle),
            JobKind::Deliver => Some(Self::Deliver { route: payload.to_owned() }),
            JobKind::Send => Some(Self::Send { notice: payload.to_owned() }),
            JobKind::Notify => read(payload).map(Self::Notify),
            JobKind::Fetch => read(payload).map(Self::Fetch),
            JobKind::Refund => read(payload).map(Box::new).map(Self::Refund),
            JobKind::Checkout => read(payload).map(Box::new).map(Self::Checkout),
            JobKind::Timer => read(payload).map(Self::Timer),
        };
        Some(task.unwrap_or_else(|| Self::Unreadable { kind, payload: payload.to_owned() }))
    }

    /// The same task after a person took its job out of the dead letters: why an event was held back was theirs to judge.
    #[must_use]
    pub fn retried(self) -> Self {
        match self {
            Self::Settle(Settle::Held { .. }) => Self::Settle(Settle::Once),
            Self::Settle(Settle::Once | Settle::Again)
            | Self::Deliver { .. }
            | Self::Send { .. }
            | Self::Notify(_)
            | Self::Fetch(_)
            | Self::Refund(_)
            | Self::Checkout(_)
            | Self::Timer(_)
            | Self::Unreadable { .. } => self,
        }
    }

    /// The same task, in the trace of what made it. What is done for an event has the event's; a session is asked for by a person.
    pub fn carry(&mut self, trace: Traceparent) {
        match self {
            Self::Fetch(fetch) => fetch.trace = Some(trace.to_string()),
            Self::Refund(call) => call.trace = Some(trace.to_string()),
            Self::Settle(_)
            | Self::Deliver { .. }
            | Self::Send { .. }
            | Self::Notify(_)
            | Self::Checkout(_)
            | Self::Timer(_)
            | Self::Unreadable { .. } => {}
        }
    }

    /// The trace that it carries itself.
    pub fn trace(&self) -> Option<Traceparent> {
        match self {
            Self::Fetch(fetch) => fetch.trace.as_deref().and_then(Traceparent::parse),
            Self::Refund(call) => call.trace.as_deref().and_then(Traceparent::parse),
            Self::Settle(_)
            | Self::Deliver { .. }
            | Self::Send { .. }
            | Self::Notify(_)
            | Self::Checkout(_)
            | Self::Timer(_)
            | Self::Unreadable { .. } => None,
        }
    }

    /// The notice it sends, if that is what it does.
    pub fn notice(&self) -> Option<&str> {
        if let Self::Send { notice } = self { Some(notice) } else { None }
    }
}

impl Settle {
    pub fn payload(&self) -> Cow<'_, str> {
        match self {
            Self::Once => Cow::Borrowed(""),
            Self::Again => Cow::Borrowed(AGAIN),
            Self::Held { reason, error } => Cow::Owned(format!("{HELD}{reason}:{error}")),
        }
    }

    fn parse(payload: &str) -> Option<Self> {
        match payload {
            "" => Some(Self::Once),
            AGAIN => Some(Self::Again),
            held => {
                let (reason, error) = held.strip_prefix(HELD)?.split_once(':')?;
                Some(Self::Held { reason: reason.to_owned(), error: error.to_owned() })
            }
        }
    }
}

const AGAIN: &str = "again";
const HELD: &str = "held:";

impl JobKind {
    pub const ALL: [Self; 8] = [
        Self::Settle,
        Self::Deliver,
        Self::Timer,
        Self::Fetch,
        Self::Notify,
        Self::Send,
        Self::Refund,
        Self::Checkout,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Settle => "settle",
            Self::Deliver => "deliver",
            Self::Timer => "timer",
            Self::Fetch => "fetch",
            Self::Notify => "notify",
            Self::Send => "send",
            Self::Refund => "refund",
            Self::Checkout => "checkout",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == text)
    }
}

fn json(task: &impl Serialize) -> String {
    serde_json::to_string(task).expect("texts serialise")
}

fn read<T: DeserializeOwned>(payload: &str) -> Option<T> {
    serde_json::from_str(payload).ok()
}

#[cfg(test)]
mod tests {
    use super::super::CheckoutStep;
    use super::super::fetch::ApiProvider;
    use super::*;
    use crate::id::Seq;
    use crate::job::{Wave, WaveCause};

    fn all() -> Vec<(Task, &'static str, &'static str)> {
        let held = Settle::Held { reason: "too_old".into(), error: "older: than anything".into() };
        let fetch = Fetch {
            provider: ApiProvider::Stripe,
            account: None,
            livemode: Some(true),
            object: "balance_transaction".into(),
            id: "txn_1".into(),
            after_days: 0,
            moment: None,
            trace: None,
        };
        let again = Fetch { after_days: 3, ..fetch.clone() };
        let fetched_again = r#"{"provider":"stripe","account":null,"livemode":true,"object":"balance_transaction","id":"txn_1","after_days":3}"#;
        let refund = RefundCall {
            provider: ApiProvider::Stripe,
            account: None,
            livemode: Some(true),
            object: "payment_intent".into(),
            id: "pi_1".into(),
            order: "request/7".into(),
            generation: 2,
            payment: "pay_1".into(),
            trace: None,
        };
        let refunded = r#"{"provider":"stripe","account":null,"livemode":true,"object":"payment_intent","id":"pi_1","order":"request/7","generation":2,"payment":"pay_1"}"#;
        let checkout = |step| {
            let (provider, livemode) = (ApiProvider::Stripe, Some(true));
            let call = CheckoutCall { provider, livemode, payment: "pay_1".into(), number: 2, step };
            Task::Checkout(Box::new(call))
        };
        let create = checkout(CheckoutStep::Create { generation: 1 });
        let created =
            r#"{"provider":"stripe","livemode":true,"payment":"pay_1","try":2,"create":{"generation":1}}"#;
        let expire = checkout(CheckoutStep::Expire { session: "cs_1".into() });
        let expired =
            r#"{"provider":"stripe","livemode":true,"payment":"pay_1","try":2,"expire":{"session":"cs_1"}}"#;
        let fetched = r#"{"provider":"stripe","account":null,"livemode":true,"object":"balance_transaction","id":"txn_1"}"#;
        let remind = Notify::Remind { tenant: "t".into(), date: "2026-05-28".into() };
        let reconcile = Timer::Reconcile { source: "stripe".into() };
        let retry_dead = Timer::RetryDead { route: "app".into(), wave: None };
        let began = crate::time::Time::from_ms(1_780_000_000_000);
        let wave = Wave::new(WaveCause::Answered, began).with_batch([(Seq::from_i64(7), 4)], began);
        let wave = Timer::RetryDead { route: "app".into(), wave: Some(wave) };
        let waved = r#"{"retry_dead":{"route":"app","wave":{"cause":"answered","began":"2026-05-28T20:26:40.000Z","batches":1,"batch":[[7,4]],"since":"2026-05-28T20:26:40.000Z"}}}"#;
        vec![
            (Task::Settle(Settle::Once), "settle", ""),
            (Task::Settle(Settle::Again), "settle", "again"),
            (Task::Settle(held), "settle", "held:too_old:older: than anything"),
            (Task::Deliver { route: "app".into() }, "deliver", "app"),
            (Task::Send { notice: "ntc_1".into() }, "send", "ntc_1"),
            (Task::Notify(Notify::Tell("receipt".into())), "notify", r#"{"tell":"receipt"}"#),
            (Task::Notify(Notify::Feedback), "notify", r#""feedback""#),
            (Task::Notify(remind), "notify", r#"{"remind":{"tenant":"t","date":"2026-05-28"}}"#),
            (Task::Fetch(fetch), "fetch", fetched),
            (Task::Fetch(again), "fetch", fetched_again),
            (Task::Refund(Box::new(refund)), "refund", refunded),
            (create, "checkout", created),
            (expire, "checkout", expired),
            (Task::Timer(Timer::Schedule("daily".into())), "timer", r#"{"schedule":"daily"}"#),
            (Task::Timer(Timer::Count), "timer", r#""count""#),
            (Task::Timer(Timer::Forget), "timer", r#""forget""#),
            (Task::Timer(Timer::Anchor), "timer", r#""anchor""#),
            (Task::Timer(Timer::Remind), "timer", r#""remind""#),
            (Task::Timer(Timer::Watch), "timer", r#""watch""#),
            (Task::Timer(reconcile), "timer", r#"{"reconcile":{"source":"stripe"}}"#),
            (Task::Timer(retry_dead), "timer", r#"{"retry_dead":{"route":"app"}}"#),
            (Task::Timer(wave), "timer", waved),
            (Task::Unreadable { kind: JobKind::Timer, payload: "odd".into() }, "timer", "odd"),
            (Task::Unreadable { kind: JobKind::Settle, payload: "odd".into() }, "settle", "odd"),
        ]
    }

    #[test]
    fn b1_a_task_is_read_as_it_was_written_and_the_words_stay() {
        for (task, kind, payload) in all() {
            assert_eq!((task.kind().name(), &*task.payload()), (kind, payload));
            assert_eq!(Task::parse(kind, payload), Some(task));
        }
        assert_eq!(Task::parse("dance", ""), None);
    }

    #[test]
    fn b3_only_what_was_held_back_changes_when_a_person_retries_it() {
        for (task, ..) in all() {
            let after = task.clone().retried();
            match task {
                Task::Settle(Settle::Held { .. }) => assert_eq!(after, Task::Settle(Settle::Once)),
                other => assert_eq!(after, other),
            }
        }
    }
}
