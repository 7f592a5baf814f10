//! A report of the evidence as a page that can be printed and handed on. It is made from the report alone, so whoever has
//! the one can make the other.

use askama::Template;
use sekisho_core::language::Language;
use serde_json::Value;

use crate::view::{show, words};

pub fn page(report: &Value, lang: Language) -> Result<String, askama::Error> {
    ProofPage { lang, r: report, payment: &report["payment"] }.render()
}

#[derive(Template)]
#[template(path = "prove.html")]
struct ProofPage<'a> {
    lang: Language,
    r: &'a Value,
    payment: &'a Value,
}

#[expect(clippy::unused_self, reason = "templates call methods")]
impl ProofPage<'_> {
    fn t<'t>(&self, en: &'t str, ja: &'t str) -> &'t str {
        self.lang.t(en, ja)
    }

    /// A value as text; nothing for null.
    fn s(&self, value: &Value) -> String {
        match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    fn each<'v>(&self, value: &'v Value) -> std::slice::Iter<'v, Value> {
        value.as_array().map(Vec::as_slice).unwrap_or_default().iter()
    }

    fn label(&self, word: &Value) -> String {
        words::status(word.as_str().unwrap_or_default(), self.lang).1.to_owned()
    }

    fn reason(&self, code: &Value) -> String {
        words::reason(code.as_str().unwrap_or_default(), self.lang).to_owned()
    }

    fn money(&self, amount: &Value, currency: &Value) -> String {
        let currency = currency.as_str().unwrap_or_default();
        amount.as_i64().map(|amount| show::money(amount, currency)).unwrap_or_default()
    }

    fn mode(&self) -> &'static str {
        match self.payment["livemode"].as_bool() {
            Some(true) => self.t("live", "本番"),
            Some(false) => self.t("test", "テスト"),
            None => "",
        }
    }

    fn changes(&self, decision: &Value) -> Vec<String> {
        let currency = self.payment["currency"].as_str().unwrap_or_default();
        words::changes(&decision["before"], &decision["after"], currency, self.lang)
    }

    /// Headers by which the sender proved itself; names only are in the report.
    fn proofs(&self, event: &Value) -> String {
        let names = self.each(&event["header_names"]).filter_map(Value::as_str);
        let names = names.filter(|name| {
            let name = name.to_ascii_lowercase();
            ["signature", "transmission", "token", "authorization", "hmac"]
                .iter()
                .any(|word| name.contains(word))
        });
        names.collect::<Vec<_>>().join(", ")
    }

    fn check(&self, name: &Value) -> &'static str {
        match name.as_str().unwrap_or_default() {
            "entries" => self.t(
                "Every decision hangs on a link of the audit log",
                "すべての判定が監査ログの鎖につながっている",
            ),
            "links" => {
                self.t("Each link's hash is that of its entries", "各リンクのハッシュが記録内容と一致する")
            }
            "order" => self.t(
                "What follows each link confirms its hash",
                "後続のリンクが各リンクのハッシュを裏付けている",
            ),
            "bodies" => self.t(
                "The events' bodies are those that were processed",
                "イベント本文が処理時のものと一致する",
            ),
            "standing" => self
                .t("The payment stands where the last decision put it", "決済の状態が最後の判定と一致する"),
            "books" => self.t(
                "The books say what the facts say, and sum to zero",
                "帳簿が事実と一致し、貸借の合計がゼロになる",
            ),
            _ => "",
        }
    }
}
