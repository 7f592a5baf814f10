//! A report of the evidence as a page that can be printed and handed on. It is made from the report alone, so whoever has
//! the one can make the other.

use askama::Template;
use sekisho_core::language::Language;

use crate::types::{Payment, PaymentProof, ProofDecision, ProofEntry, ProofEvent, ProofLine, StoredEvent};
use crate::view::{show, words};

pub fn page(report: &PaymentProof, lang: Language) -> Result<String, askama::Error> {
    ProofPage { lang, r: report, payment: &report.payment.thing }.render()
}

#[derive(Template)]
#[template(path = "prove.html")]
struct ProofPage<'a> {
    lang: Language,
    r: &'a PaymentProof,
    payment: &'a Payment,
}

#[expect(
    clippy::unused_self,
    clippy::trivially_copy_pass_by_ref,
    clippy::ref_option,
    reason = "templates call methods, with references"
)]
impl ProofPage<'_> {
    fn t<'t>(&self, en: &'t str, ja: &'t str) -> &'t str {
        self.lang.t(en, ja)
    }

    fn s<'s>(&self, text: &'s Option<String>) -> &'s str {
        text.as_deref().unwrap_or_default()
    }

    fn gone(&self) -> &'static str {
        self.t("deleted by retention; recorded in the log:", "保存期間を過ぎ削除済み。監査ログの記録:")
    }

    fn label(&self, word: &str) -> String {
        words::status(word, self.lang).1.to_owned()
    }

    fn reason(&self, code: &str) -> String {
        words::reason(code, self.lang).to_owned()
    }

    /// In the payment's currency.
    fn money(&self, amount: &i64) -> String {
        show::money(*amount, self.currency())
    }

    fn posted(&self, line: &ProofLine) -> String {
        show::money(line.posted, &line.line.currency)
    }

    fn currency(&self) -> &str {
        self.payment.currency.as_deref().unwrap_or_default()
    }

    fn mode(&self) -> &'static str {
        match self.payment.livemode {
            Some(true) => self.t("live", "本番"),
            Some(false) => self.t("test", "テスト"),
            None => "",
        }
    }

    fn changes(&self, decision: &ProofDecision) -> Vec<String> {
        words::changes(&decision.before, &decision.after, self.currency(), self.lang)
    }

    /// Headers by which the sender proved itself; names only are in the report.
    fn proofs(&self, event: &StoredEvent) -> String {
        let names = event.header_names.iter().flatten().map(String::as_str);
        let names = names.filter(|name| {
            let name = name.to_ascii_lowercase();
            ["signature", "transmission", "token", "authorization", "hmac"]
                .iter()
                .any(|word| name.contains(word))
        });
        names.collect::<Vec<_>>().join(", ")
    }

    fn check(&self, name: &str) -> &'static str {
        match name {
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
