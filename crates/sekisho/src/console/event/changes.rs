//! What an event changed, read from the audit log and put into words: before and after, field by field.

use sekisho_core::Time;
use sekisho_core::audit::Entry;
use sekisho_core::language::Language;
use sekisho_store::Store;
use serde_json::Value;

use crate::console::frame::Frame;
use crate::view::{show, words};

pub struct ChangeRow {
    pub at: Time,
    pub title: String,
    pub lines: Vec<ChangedField>,
}

/// One field that is not what it was.
pub struct ChangedField {
    pub label: &'static str,
    pub before: String,
    pub after: String,
}

/// Something that was announced because of it.
pub struct AnnouncedRow {
    pub at: Time,
    pub event_type: String,
    /// The announcement's own event.
    pub id: Option<String>,
}

/// What a person did with it.
pub struct ActView {
    pub at: Time,
    pub actor: String,
    pub action: String,
    pub reason: String,
}

impl ActView {
    pub fn of(entry: &Entry) -> Self {
        let details: Value = serde_json::from_str(&entry.details).unwrap_or_default();
        Self {
            at: entry.at,
            actor: entry.actor.clone().unwrap_or_default(),
            action: entry.action.clone(),
            reason: details["reason"].as_str().unwrap_or_default().to_owned(),
        }
    }

    pub fn words<'a>(&'a self, f: &Frame) -> &'a str {
        let lang = f.lang;
        match &*self.action {
            "event.replayed" => lang.t("Replayed", "リプレイ"),
            "dead_letter.created" => lang.t("Became a dead letter", "デッドレターになりました"),
            "dead_letter.retried" => lang.t("Retried", "再試行"),
            "dead_letter.discarded" => lang.t("Discarded", "破棄"),
            other => other,
        }
    }
}

/// Field of a summary, what it is called, and whether it is money.
const FIELDS: [(&str, &str, &str, bool); 7] = [
    ("status", "Status", "状態", false),
    ("amount_received", "Received", "入金額", true),
    ("amount_refunded", "Refunded", "返金額", true),
    ("fee", "Fee", "手数料", true),
    ("disputed", "Disputed", "チャージバック", false),
    ("paid_invoices", "Paid invoices", "支払い済み請求書", false),
    ("amount_paid_total", "Paid so far", "累計支払額", true),
];

impl ChangeRow {
    pub fn of(entry: &Entry, currency: Option<&str>, lang: Language) -> Self {
        let details: Value = serde_json::from_str(&entry.details).unwrap_or_default();
        let (before, after) = (&details["before"], &details["after"]);
        let is_new = entry.action.rsplit('.').next() == Some("found");
        let write = |value: &Value, field: &str, is_money: bool| match value {
            Value::Null => "–".to_owned(),
            Value::Bool(yes) => {
                lang.t(if *yes { "yes" } else { "no" }, if *yes { "あり" } else { "なし" }).into()
            }
            Value::String(word) if field == "status" => words::status(word, lang).1.to_owned(),
            Value::String(text) => text.clone(),
            Value::Number(number) => match (number.as_i64(), currency) {
                (Some(amount), Some(currency)) if is_money => show::money(amount, currency),
                _ => number.to_string(),
            },
            Value::Array(_) | Value::Object(_) => value.to_string(),
        };
        let mut lines = Vec::new();
        for (field, en, ja, is_money) in FIELDS {
            let (old, new) = (&before[field], &after[field]);
            if old != new || (is_new && field == "status") {
                lines.push(ChangedField {
                    label: lang.t(en, ja),
                    before: if is_new { String::new() } else { write(old, field, is_money) },
                    after: write(new, field, is_money),
                });
            }
        }
        Self { at: entry.at, title: title(&entry.action, lang), lines }
    }
}

fn title(action: &str, lang: Language) -> String {
    let words = match action {
        "payment.found" => lang.t("Payment created", "決済を新規に確認しました"),
        "payment.changed" => lang.t("Payment changed", "決済を更新しました"),
        "payment.merged" => lang.t("Payments merged", "同一の決済を統合しました"),
        "payment.parted" => {
            lang.t("Part of the payment moved to another", "決済の一部を別の決済へ移しました")
        }
        "billing.parted" => {
            lang.t("A subscription moved to another tenant", "定期課金を別のテナントへ移しました")
        }
        "billing.found" => lang.t("Subscription created", "定期課金を新規に確認しました"),
        "billing.changed" => lang.t("Subscription changed", "定期課金を更新しました"),
        "billing.merged" => lang.t("Subscriptions merged", "同一の定期課金を統合しました"),
        other => other,
    };
    words.to_owned()
}

/// The id of what was announced, if that is what an entry says.
pub fn told(entry: &Entry) -> Option<String> {
    let details: Value = serde_json::from_str(&entry.details).unwrap_or_default();
    details["id"].as_str().map(str::to_owned)
}

pub async fn announced(
    store: &dyn Store,
    entry: &Entry,
    told: String,
) -> sekisho_store::Result<AnnouncedRow> {
    let seq = store.find_seq("sekisho", &told).await?;
    let id = seq.map(|seq| seq.as_event().to_string());
    Ok(AnnouncedRow { at: entry.at, event_type: entry.action.clone(), id })
}
