//! "Why is this payment not paid?", in one sentence: what happened, and what there is to do. Which sentence the core
//! decides ([`Why`]).

use sekisho_core::language::Language;
use sekisho_core::money::Currency;
use sekisho_core::settlement::payment::{Derived, Facts, Why};

use crate::view::show;
use crate::view::words::Tone;

/// The news, how good it is.
pub fn why(facts: &Facts, derived: &Derived, lang: Language) -> (Tone, String) {
    let (tone, en, ja) = sentences(&Why::of(facts, derived), derived);
    (tone, if lang == Language::En { en } else { ja })
}

fn sentences(why: &Why<'_>, derived: &Derived) -> (Tone, String, String) {
    let money = |amount: i64| show::money(amount, derived.currency.as_ref().map_or("", Currency::as_str));
    let asked = money(derived.amount);
    let (came, back) = (money(derived.received), money(derived.refunded));
    let plain = |tone, en: &str, ja: &str| (tone, en.to_owned(), ja.to_owned());
    match why {
        Why::Disputed(amount) => {
            let amount = money(*amount);
            (
                Tone::Bad,
                format!(
                    "The customer's bank disputes {amount}: answer it at the provider before its deadline"
                ),
                format!(
                    "{amount} について不審請求の申し立て（チャージバック）があります。決済事業者の管理画面で期限までに回答してください"
                ),
            )
        }
        Why::UnderReview(amount) => {
            let amount = money(*amount);
            (
                Tone::Wait,
                format!("{amount} is disputed, and the bank is deciding: nothing to do yet"),
                format!("{amount} の不審請求の申し立てを銀行が審査中です。今は対応不要です"),
            )
        }
        Why::DisputeLost(amount) => {
            let amount = money(*amount);
            (
                Tone::Bad,
                format!("Paid, but a dispute was lost: {amount} was taken back"),
                format!("支払い済みでしたが、不審請求の申し立てに敗れ、{amount} が差し引かれました"),
            )
        }
        Why::OtherCurrency => plain(
            Tone::Bad,
            "Payment received in another currency than the amount due: it is booked but not counted. Decide what to do with it",
            "請求と異なる通貨で入金されました。帳簿には記録しましたが入金額には含めていません。対応を判断してください",
        ),
        Why::MixedModes => plain(
            Tone::Bad,
            "Live and test objects belong to it, which should not happen: check the provider objects below",
            "本番とテストの情報が混ざっています。下の決済サービス側の情報を確認してください",
        ),
        Why::Conflict(others) => {
            let others = others.join(", ");
            (
                Tone::Bad,
                format!("Something of it also named {others}: check which order this money is for"),
                format!("{others} も同じ情報に結び付いています。どちらの注文の入金か確認してください"),
            )
        }
        Why::RefundFailed(amount) => {
            let amount = money(*amount);
            (
                Tone::Bad,
                format!("A refund of {amount} failed: the money is still here, refund it another way"),
                format!("{amount} の返金に失敗しました。資金は残っているので、別の方法で返金してください"),
            )
        }
        Why::RefundGivenUp(error) => (
            Tone::Bad,
            format!(
                "A refund that was ordered could not be made ({}): refund it at the provider, or order it again",
                error.unwrap_or("no reason known")
            ),
            format!(
                "ご指定の返金を実行できませんでした（{}）。決済事業者の管理画面で返金するか、もう一度返金を指示してください",
                error.unwrap_or("理由不明")
            ),
        ),
        Why::RefundHeldBack(amount) => {
            let amount = money(*amount);
            (
                Tone::Bad,
                format!(
                    "A refund of {amount} waits for you: more was refunded automatically in one hour than is allowed"
                ),
                format!(
                    "{amount} の返金が承認待ちです。1 時間あたりの自動返金の上限を超えたため、承認するまで実行されません"
                ),
            )
        }
        Why::RefundByHand(amount) => {
            let amount = money(*amount);
            (
                Tone::Bad,
                format!(
                    "{amount} is to be refunded: do it at the provider, and it is taken note of here by itself"
                ),
                format!(
                    "{amount} を決済事業者の管理画面で返金してください。返金は自動的にここへ反映されます"
                ),
            )
        }
        Why::RefundCancelled(amount) => {
            let amount = money(*amount);
            (
                Tone::Bad,
                format!("A refund of {amount} was cancelled: the money is still here, refund it another way"),
                format!(
                    "{amount} の返金が取り消されました。資金は残っているので、別の方法で返金してください"
                ),
            )
        }
        Why::Overpaid(more) => {
            let more = money(*more);
            (
                Tone::Bad,
                format!("{came} received, {asked} due: refund {more}"),
                format!("請求 {asked} に対して {came} の入金がありました。差額 {more} を返金してください"),
            )
        }
        Why::Underpaid => (
            Tone::Bad,
            format!("{came} of {asked} received: request the rest"),
            format!("{asked} のうち {came} だけ入金されています。残額を請求してください"),
        ),
        Why::OverRefunded => (
            Tone::Bad,
            format!("{back} refunded, but only {came} received: check the refunds"),
            format!("入金 {came} に対して {back} が返金されています。返金の内容を確認してください"),
        ),
        Why::Unlinked => (
            Tone::Bad,
            format!("{came} received without a matching order: find the order it is for"),
            format!("{came} の入金がありましたが、対応する注文が不明です。注文を特定してください"),
        ),
        Why::Free => plain(
            Tone::Good,
            "Nothing was to be paid, and the order was completed",
            "支払額は 0 で、注文は完了しています",
        ),
        Why::Paid => on_its_way(
            derived.refund_pending,
            money,
            (Tone::Good, format!("Paid: {came} received"), format!("支払い済みです（入金 {came}）")),
        ),
        Why::PartlyRefunded => on_its_way(
            derived.refund_pending,
            money,
            (
                Tone::Good,
                format!("Paid; {back} refunded"),
                format!("支払い済みです。うち {back} を返金しました"),
            ),
        ),
        Why::Refunded => on_its_way(
            derived.refund_pending,
            money,
            (
                Tone::Plain,
                format!("Paid and fully refunded: {back}"),
                format!("全額（{back}）を返金しました"),
            ),
        ),
        Why::Cancelled => plain(
            Tone::Plain,
            "Cancelled before payment: nothing to do",
            "入金前にキャンセルされました。対応不要です",
        ),
        Why::Expired => plain(
            Tone::Plain,
            "The session expired before payment: the customer has to order again",
            "入金前に決済ページの有効期限が切れました。再度の注文が必要です",
        ),
        Why::Failed(reason) => (
            Tone::Bad,
            format!(
                "The last attempt failed{}, {} in all: the customer can try again",
                reason.map(|reason| format!(" ({reason})")).unwrap_or_default(),
                derived.failed_tries
            ),
            format!(
                "直近の支払いが失敗しました{}。失敗は計 {} 回です。お客様は再試行できます",
                reason.map(|reason| format!("（{reason}）")).unwrap_or_default(),
                derived.failed_tries
            ),
        ),
        Why::CustomerMustAct => plain(
            Tone::Wait,
            "The customer still has to pay elsewhere, such as at the konbini or by bank transfer: wait, or remind them",
            "お客様のお支払い待ちです（コンビニでの支払いや銀行振込など）。お待ちいただくか、お客様にご案内ください",
        ),
        Why::BankWorksOnIt => plain(
            Tone::Wait,
            "The customer's bank is still working on it: nothing to do yet",
            "お客様の銀行で処理中です。今は対応不要です",
        ),
        Why::Reserved => plain(
            Tone::Wait,
            "The money is reserved and not taken yet: it comes when the order is captured",
            "与信枠を確保済みですが、まだ売上確定（キャプチャ）されていません",
        ),
        Why::OnItsWay => plain(
            Tone::Wait,
            "The customer has ordered, and the money is on its way: nothing to do yet",
            "お客様の手続きは完了し、入金待ちです。今は対応不要です",
        ),
        Why::AtThePaymentPage => plain(
            Tone::Wait,
            "The customer has the payment page and has not paid yet: nothing to do yet",
            "お客様が決済ページで手続き中です。まだ支払われていません",
        ),
        Why::Unheard => plain(
            Tone::Wait,
            "No event from the provider yet: waiting for the first one",
            "決済事業者からまだ何も届いていません。最初のイベントを待っています",
        ),
        Why::CustomerMustPay => plain(
            Tone::Wait,
            "The provider waits for the customer to pay: nothing to do yet",
            "お客様の支払いを待っています。今は対応不要です",
        ),
    }
}

/// Beside that, how much is on its way back.
fn on_its_way(
    pending: i64,
    money: impl Fn(i64) -> String,
    (tone, mut en, mut ja): (Tone, String, String),
) -> (Tone, String, String) {
    if pending > 0 {
        let way = money(pending);
        en += &format!("; {way} is on its way back");
        ja += &format!("（{way} は返金処理中）");
    }
    (tone, en, ja)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn check(facts: Value, tone: Tone, en: &str, ja: &str) {
        let mut facts: Facts = serde_json::from_value(facts).unwrap();
        facts.realms.insert("stripe/-/live".into());
        let derived = Derived::of(&facts);
        for (lang, part) in [(Language::En, en), (Language::Ja, ja)] {
            let (found, text) = why(&facts, &derived, lang);
            assert!(text.contains(part), "{text:?} says nothing of {part:?}");
            assert_eq!(found, tone, "{text}");
        }
    }

    fn asked(amount: i64) -> Value {
        json!({ "pay_1": { "amount": amount, "currency": "jpy" } })
    }

    fn intent(status: &str, received: i64) -> Value {
        json!({ "pi_1": { "status": status, "amount": 1200, "received": received, "currency": "jpy" } })
    }

    #[test]
    fn h1_a_payment_says_in_one_sentence_why_it_stands_where_it_stands() {
        let paid = intent("succeeded", 1200);
        let refund = |status: &str, amount: i64| json!({ "re_1": { "status": status, "amount": amount, "currency": "jpy" } });
        let dispute = |status: &str| json!({ "dp_1": { "status": status, "amount": 1200, "currency": "jpy", "withdrawn": 1200 } });
        let session =
            |status: &str| json!({ "cs_1": { "status": status, "amount": 1200, "currency": "jpy" } });
        let failed = json!({ "pi_1": { "failed": true, "failure": "card_declined", "currency": "jpy" } });
        let cases = [
            (json!({ "ours": asked(1200) }), Tone::Wait, "waiting for the first one", "最初のイベント"),
            (
                json!({ "sessions": session("open") }),
                Tone::Wait,
                "has the payment page",
                "決済ページで手続き中",
            ),
            (
                json!({ "intents": intent("waiting", 0) }),
                Tone::Wait,
                "waits for the customer to pay",
                "支払いを待っています",
            ),
            (json!({ "intents": intent("requires_action", 0) }), Tone::Wait, "konbini", "コンビニ"),
            (
                json!({ "intents": intent("processing", 0) }),
                Tone::Wait,
                "bank is still working on it: nothing to do yet",
                "銀行で処理中",
            ),
            (
                json!({ "charges": { "ch_1": { "status": "pending", "amount": 5 } } }),
                Tone::Wait,
                "reserved",
                "キャプチャ",
            ),
            (json!({ "sessions": session("complete") }), Tone::Wait, "on its way", "入金待ち"),
            (
                json!({ "sessions": session("expired") }),
                Tone::Plain,
                "The session expired before payment",
                "有効期限",
            ),
            (
                json!({ "intents": intent("cancelled", 0) }),
                Tone::Plain,
                "Cancelled before payment",
                "キャンセル",
            ),
            (
                json!({ "intents": failed }),
                Tone::Bad,
                "failed (card_declined)",
                "失敗しました（card_declined）",
            ),
            (
                json!({ "ours": asked(1200), "intents": paid }),
                Tone::Good,
                "Paid: ¥1,200 received",
                "入金 ¥1,200",
            ),
            (
                json!({ "ours": asked(1200), "intents": intent("succeeded", 500) }),
                Tone::Bad,
                "¥500 of ¥1,200 received: request the rest",
                "¥1,200 のうち ¥500",
            ),
            (json!({ "ours": asked(1000), "intents": paid }), Tone::Bad, "refund ¥200", "差額 ¥200"),
            (json!({ "intents": paid }), Tone::Bad, "without a matching order", "注文が不明"),
            (
                json!({ "ours": asked(1200), "intents": paid, "refunds": refund("succeeded", 300) }),
                Tone::Good,
                "Paid; ¥300 refunded",
                "うち ¥300 を返金",
            ),
            (
                json!({ "ours": asked(1200), "intents": paid, "refunds": refund("pending", 300) }),
                Tone::Good,
                "Paid: ¥1,200 received; ¥300 is on its way back",
                "¥300 は返金処理中",
            ),
            (
                json!({ "ours": asked(1200), "intents": paid, "refunds": refund("succeeded", 1200) }),
                Tone::Plain,
                "fully refunded",
                "全額",
            ),
            (
                json!({ "ours": asked(1200), "intents": paid, "refunds": refund("succeeded", 1300) }),
                Tone::Bad,
                "¥1,300 refunded",
                "¥1,300 が返金",
            ),
            (
                json!({ "ours": asked(1200), "intents": paid, "refunds": refund("failed", 300) }),
                Tone::Bad,
                "A refund of ¥300 failed",
                "¥300 の返金に失敗",
            ),
            (
                json!({ "ours": asked(1200), "intents": paid, "refunds": refund("cancelled", 300) }),
                Tone::Bad,
                "A refund of ¥300 was cancelled",
                "¥300 の返金が取り消され",
            ),
            (
                json!({ "ours": asked(1200), "intents": paid, "conflicts": ["pay_2"] }),
                Tone::Bad,
                "pay_2",
                "pay_2",
            ),
            (
                json!({ "ours": asked(1200), "intents": paid, "disputes": dispute("needs_response") }),
                Tone::Bad,
                "disputes ¥1,200: answer it",
                "期限までに回答",
            ),
            (
                json!({ "ours": asked(1200), "intents": paid, "disputes": dispute("under_review") }),
                Tone::Wait,
                "the bank is deciding",
                "審査中",
            ),
            (
                json!({ "ours": asked(1200), "intents": paid, "disputes": dispute("lost") }),
                Tone::Bad,
                "dispute was lost: ¥1,200",
                "敗れ",
            ),
            (
                json!({ "ours": asked(1200), "charges": { "ch_1": { "status": "succeeded", "captured": 9, "currency": "usd" } } }),
                Tone::Bad,
                "another currency",
                "異なる通貨",
            ),
            (
                json!({ "sessions": { "cs_1": { "status": "complete", "paid": true } } }),
                Tone::Good,
                "Nothing was to be paid",
                "支払額は 0",
            ),
        ];
        for (facts, tone, en, ja) in cases {
            check(facts, tone, en, ja);
        }
    }
}
