//! What templates are filled with: the shape, and samples of it.
//!
//! | key | what it is |
//! |---|---|
//! | `recipient` | `name` or null, `language` |
//! | `tenant`, `customer` | `id`, `name` or null; or null |
//! | `time_zone` | IANA name, for `date` and `datetime` |
//! | `brand` | who sends it: `name`; `url`, `support` (a mail address or a link) or null |
//! | `event` | what caused it: `id`, `type`, `at` |
//! | `payment` | as `GET /v1/payments/{id}` shows it, or null |
//! | `about` | what exactly changed, as the event has it; or null |
//! | `billing` | as `GET /v1/billing/{id}` shows it, or null |
//! | `reminder` | `office`, `staff_name`, `threshold_days`, `renewals` and `assessments` (the first 200: `name`, `due_on`, `days_left`), `renewal_count` and `assessment_count` (all), `dashboard_url` or null, `today`; or null |
//! | `alert` | `title`, `detail`, `happened_at`, `link` or null, `fields` (`name`, `value`); or null |
//! | `fulfilment` | `id`; `name`, `error`, `refund_by`, `link` or null; or null |
//! | `reservation` | as `GET /v1/reservations/{id}` shows it, with `title` of its slot or null; or null |
//! | `order_url` | the page of the customer's order, or null |
//! | `language`, `subject` | of the mail itself; the subject is not known in the subject |
//!
//! Every key is always there: [`complete`] adds what a caller left out as null, so that a strict template never stumbles
//! over an event that knows less. `payment.metadata` and `payment.facts` are as they come.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::language::Language;

/// What a notice is about: the one thing in its data that is never null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleKind {
    Payment,
    Billing,
    /// With the payment that it is for, if there is one.
    Fulfilment,
    /// With the payment that it is for, if there is one.
    Reservation,
    Reminder,
    Alert,
    /// About nothing: a sign of life.
    Test,
}

impl SampleKind {
    pub fn of_shipped(template: &str) -> Option<Self> {
        match template {
            "payment-received" | "payment-failed" | "refund-done" | "refund-failed" | "refund-pending" => {
                Some(Self::Payment)
            }
            "video-render-failure" => Some(Self::Fulfilment),
            "reservation-confirmed" | "reservation-expired" | "reservation-cancelled" => {
                Some(Self::Reservation)
            }
            "deadline-reminder" => Some(Self::Reminder),
            "operator-alert" => Some(Self::Alert),
            "test" => Some(Self::Test),
            _ => None,
        }
    }

    fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Payment => &["payment", "about"],
            Self::Billing => &["billing", "about"],
            Self::Fulfilment => &["fulfilment", "payment"],
            Self::Reservation => &["reservation", "about", "payment"],
            Self::Reminder => &["reminder"],
            Self::Alert => &["alert"],
            Self::Test => &[],
        }
    }
}

const THINGS: [&str; 7] = ["payment", "about", "billing", "reminder", "alert", "fulfilment", "reservation"];

/// Never null as a whole.
const ALWAYS: [&str; 3] = ["recipient", "brand", "event"];

/// A template is shown everything there can be, and then only what is always there. Without a kind, all things at once.
pub fn both(kind: Option<SampleKind>, language: Language) -> Vec<(&'static str, Value)> {
    let mut samples = vec![("full", full(language)), ("sparse", sparse(language))];
    let Some(kind) = kind else { return samples };
    for (_, data) in &mut samples {
        for thing in THINGS.iter().filter(|thing| !kind.keys().contains(thing)) {
            data[*thing] = Value::Null;
        }
    }
    if matches!(kind, SampleKind::Fulfilment | SampleKind::Reservation) {
        samples[1].1["payment"] = Value::Null;
    }
    if kind == SampleKind::Reminder {
        let name = Words::of(language).care_brand;
        samples[0].1["brand"] =
            json!({ "name": name, "url": "https://care.example", "support": "support@care.example" });
    }
    samples
}

/// Every key there can be. Objects of which not all keys are known beforehand are [open](is_open).
pub fn shape() -> &'static Value {
    static SHAPE: LazyLock<Value> = LazyLock::new(|| full(Language::En));
    &SHAPE
}

/// Has this object whatever keys its maker gave it?
pub fn is_open(path: &str) -> bool {
    matches!(path, "payment.metadata" | "payment.facts" | "reservation.metadata")
}

/// The data with every key of the shape.
pub fn complete(data: &Value) -> Value {
    let mut data = if data.is_object() { data.clone() } else { json!({}) };
    for key in ALWAYS.iter().filter(|key| !data[**key].is_object()).collect::<Vec<_>>() {
        data[*key] = json!({});
    }
    fill_in(&mut data, shape(), "");
    data
}

fn fill_in(data: &mut Value, shape: &Value, path: &str) {
    if is_open(path) {
        return;
    }
    match (data, shape) {
        (Value::Object(data), Value::Object(shape)) => {
            for (key, shape) in shape {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                fill_in(data.entry(key).or_insert(Value::Null), shape, &path);
            }
        }
        (Value::Array(data), Value::Array(shape)) => {
            let Some(shape) = shape.first() else { return };
            data.iter_mut().for_each(|one| fill_in(one, shape, path));
        }
        _ => {}
    }
}

fn full(language: Language) -> Value {
    let words = Words::of(language);
    json!({
        "language": language.name(),
        "subject": "",
        "recipient": { "name": words.person, "language": language.name() },
        "tenant": { "id": "ten_4tR8", "name": words.office },
        "customer": { "id": "cus_81K2", "name": words.person },
        "time_zone": "Asia/Tokyo",
        "brand": { "name": words.brand, "url": "https://hoshizora.example", "support": "support@hoshizora.example" },
        "event": { "id": "evt_01KA5Z7Q", "type": "payment.paid", "at": "2026-11-16T05:05:00.000Z" },
        "payment": payment(&words),
        "about": {
            "amount": 5000, "amount_missing": 0, "amount_received": 5000, "amount_refunded": 2000,
            "amount_refund_pending": 1000, "at": "2026-11-16T05:05:00.000Z", "by": "CUSTOMER", "claim": 1, "currency": "jpy", "customer": "cus_81K2", "dispute": "dp_1",
            "expected_currency": "jpy", "failed_tries": 2, "failure": "expired_or_canceled_card", "fee": 180, "invoice": "in_1", "net": 4820,
            "paid_at": "2026-11-16T05:05:00.000Z", "paid_through": "2026-12-16T05:05:00.000Z",
            "payment_intents": ["pi_3PqZ"], "previous_status": "past_due", "reason": "fraudulent",
            "reference": "A-20261116-0042", "refund": "re_1", "requires_action": true, "status": "active", "subscription": "sub_1",
            "tenant": "ten_4tR8", "until": "2026-11-16T05:35:00.000Z", "why": "ill",
        },
        "billing": billing(),
        "reminder": {
            "office": words.office, "staff_name": words.staff, "threshold_days": 30, "today": "2026-11-16",
            "renewals": [
                { "name": words.users[0], "due_on": "2026-12-10", "days_left": 24 },
                { "name": words.users[1], "due_on": "2026-11-14", "days_left": -2 },
                { "name": words.users[2], "due_on": "2026-11-19", "days_left": 3 },
            ],
            "assessments": [
                { "name": words.users[3], "due_on": "2026-11-16", "days_left": 0 },
                { "name": words.users[0], "due_on": "2026-12-01", "days_left": 15 },
            ],
            "renewal_count": 3, "assessment_count": 2,
            "dashboard_url": "https://care.example/dashboard",
        },
        "alert": {
            "title": words.alert[0], "detail": words.alert[1], "happened_at": "2026-11-16T05:05:00.000Z",
            "link": "https://sekisho.example/console/dead",
            "fields": [
                { "name": "route", "value": "app" },
                { "name": "dead letters", "value": 3 },
                { "name": "last error", "value": "503 Service Unavailable" },
            ],
        },
        "fulfilment": {
            "id": "ful_7Hq2", "name": words.video, "error": "encoder exited with 137",
            "refund_by": "2026-11-17T05:05:00.000Z", "link": "https://hoshizora.example/orders/A-20261116-0042",
        },
        "reservation": reservation(&words),
        "order_url": "https://hoshizora.example/orders/A-20261116-0042",
    })
}

fn reservation(words: &Words) -> Value {
    json!({
        "id": "rsv_4kT9", "object": "reservation", "status": "confirmed", "slot": "dome-1:2026-11-22T19:00", "title": words.product,
        "quantity": 2, "starts_at": "2026-11-22T10:00:00.000Z", "hold_expires_at": "2026-11-16T05:35:00.000Z",
        "cancel_until": "2026-11-20T10:00:00.000Z", "confirmed_at": "2026-11-16T05:05:00.000Z",
        "cancelled": { "at": "2026-11-17T05:05:00.000Z", "by": "CUSTOMER", "reason": "ill" },
        "reference": "A-20261116-0042", "payment": "pay_01KA5Z7Q3M", "fulfilment": "ful_7Hq2", "customer": "cus_81K2",
        "language": "ja", "livemode": true, "tenant": "ten_4tR8", "metadata": {}, "created_at": "2026-11-16T05:00:00.000Z",
    })
}

fn payment(words: &Words) -> Value {
    let mut payment = json!({
        "id": "pay_01KA5Z7Q3M", "object": "payment", "status": "partially_refunded",
        "amount": 5000, "currency": "jpy", "amount_received": 5000, "amount_missing": 0, "amount_tip": 0, "amount_surcharge": 0, "failed_tries": 1,
        "amount_refunded": 2000, "amount_refund_pending": 1000, "fee": 180, "net": 4820, "settled": [{ "currency": "usd", "amount": 3300, "fee": 119, "net": 3181 }], "disputed": false, "dispute_status": "under_review",
        "dispute_fee": 0, "net_of_dispute": 4820, "livemode": true, "tenant": "ten_4tR8", "customer": "cus_81K2",
        "purpose": "order", "reference": "A-20261116-0042", "description": words.product,
        "metadata": { "order_id": "A-20261116-0042" }, "linked": true, "attention": "overpaid",
        "references": {
            "payment_intents": ["pi_3PqZ"], "charges": ["ch_3PqZ"], "sessions": ["cs_live_a1"],
            "orders": ["A-20261116-0042"], "invoices": ["in_1"], "customers": ["cus_Stripe1"],
        },
        "refunds": [
            { "id": "re_1", "status": "pending", "amount": 1000, "reason": "requested_by_customer", "failure": "" },
        ],
        "disputes": [
            { "id": "dp_1", "status": "under_review", "amount": 5000, "reason": "fraudulent",
              "withdrawn": 5000, "reinstated": 0, "fee": 1500, "fee_returned": 0 },
        ],
        "receipt_url": "https://pay.example/receipts/4242",
        "dashboard_url": "https://dashboard.stripe.com/payments/pi_3PqZ",
        "facts": {},
    });
    payment["refund_orders"] = json!([refund_order()]);
    payment
}

fn refund_order() -> Value {
    json!({
        "order": "request/1", "status": "pending", "amount": 1000, "currency": "jpy", "trigger": "OPERATOR",
        "by": "ADMIN:tomo", "reason": "requested_by_customer", "notes": "", "by_hand": false,
        "ordered_at": "2026-11-16T05:05:00.000Z", "released_at": "", "released_by": "", "refunds": ["re_1"], "error": "",
    })
}

fn billing() -> Value {
    let (from, until) = ("2026-11-16T05:05:00.000Z", "2026-12-16T05:05:00.000Z");
    json!({
        "id": "bil_01KA5Z", "object": "billing", "tenant": "ten_4tR8", "status": "active", "access": true,
        "entitled_until": until, "paid_through": until, "current_period": { "start": from, "end": until },
        "trial_end": from, "cancel_at": until, "ended_at": until, "currency": "jpy", "paid_invoices": 3,
        "amount_paid_total": 15000, "livemode": true, "attention": "several_subscriptions",
        "subscriptions": [
            { "id": "sub_1", "status": "active", "currency": "jpy", "current_period": { "start": from, "end": until },
              "trial_end": from, "cancel_at": until, "ended_at": until, "paid_through": until },
        ],
        "invoices": [
            { "id": "in_1", "status": "paid", "subscription": "sub_1", "amount_due": 5000, "amount_paid": 5000,
              "currency": "jpy", "paid_at": from, "paid_through": until, "payment_intents": ["pi_3PqZ"] },
        ],
        "references": { "customers": ["cus_Stripe1"], "subscriptions": ["sub_1"] },
    })
}

/// The same things, of which only is known what always is.
fn sparse(language: Language) -> Value {
    let words = Words::of(language);
    let nothing: [&str; 0] = [];
    let data = json!({
        "language": language.name(),
        "subject": "",
        "recipient": { "language": language.name() },
        "time_zone": "UTC",
        "brand": { "name": words.brand },
        "event": { "id": "evt_1", "type": "payment.paid", "at": "2026-11-16T05:05:00.000Z" },
        "payment": {
            "id": "pay_1", "object": "payment", "status": "paid", "amount": 0, "amount_received": 0,
            "amount_missing": 0, "amount_tip": 0, "amount_surcharge": 0, "failed_tries": 0, "amount_refunded": 0, "amount_refund_pending": 0, "disputed": false, "dispute_fee": 0,
            "net_of_dispute": 0, "metadata": {}, "linked": false, "refunds": nothing, "refund_orders": nothing, "disputes": nothing,
            "references": {
                "payment_intents": nothing, "charges": nothing, "sessions": nothing, "orders": nothing,
                "invoices": nothing, "customers": nothing,
            },
            "facts": {},
        },
        "billing": {
            "id": "bil_1", "object": "billing", "status": "none", "access": false, "current_period": {},
            "paid_invoices": 0, "amount_paid_total": 0, "subscriptions": nothing, "invoices": nothing,
            "references": { "customers": nothing, "subscriptions": nothing },
        },
        "reminder": {
            "office": words.office, "staff_name": words.staff, "threshold_days": 30, "today": "2026-11-16",
            "renewals": nothing, "assessments": nothing, "renewal_count": 0, "assessment_count": 0,
            "dashboard_url": null,
        },
        "alert": { "title": words.alert[0], "happened_at": "2026-11-16T05:05:00.000Z", "fields": nothing },
        "fulfilment": { "id": "ful_1" },
        "reservation": {
            "id": "rsv_1", "object": "reservation", "status": "hold", "slot": "s", "quantity": 1, "livemode": true,
            "metadata": {}, "created_at": "2026-11-16T05:00:00.000Z",
        },
    });
    complete(&data)
}

struct Words {
    person: &'static str,
    staff: &'static str,
    office: &'static str,
    brand: &'static str,
    care_brand: &'static str,
    product: &'static str,
    video: &'static str,
    users: [&'static str; 4],
    alert: [&'static str; 2],
}

impl Words {
    const fn of(language: Language) -> Self {
        match language {
            Language::Ja => Self {
                person: "山田 太郎",
                staff: "佐藤 花子",
                office: "ひまわり介護支援事業所",
                brand: "ほしぞらシアター",
                care_brand: "ケアカレンダー",
                product: "プラネタリウム投影 11月22日(日)夜の部",
                video: "記念動画「ふたりの星空」",
                users: ["高橋 一郎", "鈴木 節子", "田中 実", "伊藤 和子"],
                alert: [
                    "届けられなかったイベントがあります",
                    "アプリへの配送が3件失敗し、再試行も終わりました。\n原因を直してから、コンソールで再送してください。",
                ],
            },
            Language::En => Self {
                person: "Taro Yamada",
                staff: "Sato Hanako",
                office: "Sunflower Care Office",
                brand: "Starlight Theater",
                care_brand: "Care Calendar",
                product: "Planetarium show, Nov 22, evening",
                video: "Keepsake video “Our Night Sky”",
                users: ["Takahashi Ichiro", "Suzuki Setsuko", "Tanaka Minoru", "Ito Kazuko"],
                alert: [
                    "Events could not be delivered",
                    "Three deliveries to the app failed, and so did every retry.\nMend the cause, then send them again from the console.",
                ],
            },
        }
    }
}
