//! What the program itself calls things by (statuses, reasons), put into words in both languages, with the tone that its
//! badge has. Every other text stands where it is shown: `t("Events", "イベント")`.

use sekisho_core::Time;
use sekisho_core::job::{JobKind, Lane};
use sekisho_core::language::Language;
use serde_json::Value;

use super::show;
use crate::types::Outage;

/// How good the news is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Good,
    Bad,
    Wait,
    Plain,
}

impl Tone {
    pub const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Wait => "wait",
            Self::Plain => "plain",
        }
    }
}

/// A status in words. What is not known here is shown as it is.
pub fn status(word: &str, lang: Language) -> (Tone, &str) {
    let (tone, en, ja) = match word {
        "received" => (Tone::Wait, "received", "受信済み"),
        "success" => (Tone::Good, "processed", "処理済み"),
        "failed" => (Tone::Bad, "failed", "失敗"),
        "skipped" => (Tone::Plain, "skipped", "対象外"),
        "discarded" => (Tone::Plain, "discarded", "破棄"),
        "waiting" => (Tone::Wait, "waiting", "待機中"),
        "running" => (Tone::Wait, "running", "実行中"),
        "dead" => (Tone::Bad, "dead letter", "デッドレター"),
        "delivered" => (Tone::Good, "delivered", "配送済み"),
        "done" => (Tone::Good, "done", "完了"),
        // payments and billing
        "unpaid" => (Tone::Wait, "unpaid", "未払い"),
        "processing" => (Tone::Wait, "processing", "処理中"),
        "expired" => (Tone::Plain, "expired", "期限切れ"),
        "cancelled" => (Tone::Plain, "cancelled", "キャンセル"),
        "partially_paid" => (Tone::Bad, "partly paid", "一部入金"),
        "paid" => (Tone::Good, "paid", "支払い済み"),
        "partially_refunded" => (Tone::Wait, "partly refunded", "一部返金"),
        "refunded" => (Tone::Plain, "refunded", "返金済み"),
        "none" => (Tone::Plain, "none", "なし"),
        "incomplete" => (Tone::Wait, "incomplete", "手続き中"),
        "paused" => (Tone::Wait, "paused", "一時停止"),
        "past_due" => (Tone::Bad, "past due", "支払い遅延"),
        "trialing" => (Tone::Good, "trial", "試用期間"),
        "active" => (Tone::Good, "active", "有効"),
        // refunds that were ordered here
        "ordered" => (Tone::Wait, "ordered", "指示済み"),
        "held_back" => (Tone::Bad, "held back", "承認待ち"),
        "met_elsewhere" => (Tone::Good, "refunded otherwise", "別途返金済み"),
        // reservations, cases, inquiries and rules
        "hold" => (Tone::Wait, "held", "仮押さえ中"),
        "confirmed" => (Tone::Good, "confirmed", "確定"),
        "case_open" | "inquiry_open" => (Tone::Bad, "open", "未対応"),
        "acknowledged" => (Tone::Wait, "acknowledged", "対応中"),
        "resolved" => (Tone::Good, "resolved", "解決済み"),
        "answered" => (Tone::Good, "closed", "対応済み"),
        "idle" => (Tone::Plain, "does not hold", "該当なし"),
        "rule_waiting" => (Tone::Wait, "holds", "該当"),
        "acted" => (Tone::Good, "has acted", "実行済み"),
        "stopped" => (Tone::Plain, "stopped by a person", "担当者が停止"),
        "unanswered" => (Tone::Bad, "can't be answered", "判定できない"),
        // what providers say of their objects
        "requires_action" => (Tone::Wait, "waits for the customer", "お客様の操作待ち"),
        "pending" => (Tone::Wait, "pending", "保留中"),
        "succeeded" => (Tone::Good, "succeeded", "成功"),
        "complete" => (Tone::Good, "completed", "完了"),
        "session_open" => (Tone::Wait, "open", "手続き中"),
        "needs_response" => (Tone::Bad, "needs an answer", "回答が必要"),
        "under_review" => (Tone::Wait, "under review", "審査中"),
        "inquiry" => (Tone::Wait, "inquiry", "照会中"),
        "inquiry_closed" => (Tone::Plain, "inquiry closed", "照会終了"),
        "won" => (Tone::Good, "won", "申し立て却下"),
        "lost" => (Tone::Bad, "lost", "申し立て認定"),
        "draft" => (Tone::Plain, "draft", "下書き"),
        "invoice_open" => (Tone::Wait, "open", "未払い"),
        "uncollectible" => (Tone::Bad, "uncollectible", "回収不能"),
        "void" => (Tone::Plain, "void", "無効"),
        "merged" => (Tone::Plain, "merged", "統合済み"),
        // notices
        "queued" => (Tone::Wait, "queued", "送信待ち"),
        "sending" => (Tone::Wait, "sending", "送信中"),
        "retrying" => (Tone::Wait, "retrying", "再送待ち"),
        "sent" => (Tone::Good, "sent", "送信済み"),
        "uncertain" => (Tone::Bad, "uncertain", "不明"),
        "suppressed" => (Tone::Bad, "suppressed", "配信停止中"),
        "rate_limited" => (Tone::Bad, "rate limited", "送信見合わせ（上限）"),
        "off" => (Tone::Plain, "switched off", "通知オフ"),
        "bounced" => (Tone::Bad, "bounced", "不達"),
        "complained" => (Tone::Bad, "reported as spam", "迷惑メール報告"),
        "released" => (Tone::Good, "released", "解除済み"),
        "bounce" => (Tone::Bad, "bounce", "不達"),
        "complaint" => (Tone::Bad, "complaint", "迷惑メール報告"),
        "manual" => (Tone::Plain, "by hand", "手動"),
        // whom it is for
        "customer" => (Tone::Plain, "the customer", "顧客"),
        "staff" => (Tone::Plain, "staff", "担当者"),
        "operators" => (Tone::Plain, "operators", "運用者"),
        "channel" => (Tone::Plain, "fixed destination of the channel", "送信経路の固定先"),
        // breakers
        "closed" => (Tone::Good, "healthy", "正常"),
        "open" => (Tone::Bad, "paused (circuit open)", "停止中（遮断）"),
        "half_open" => (Tone::Wait, "probing", "試行中"),
        "transient" => (Tone::Wait, "temporary", "一時的"),
        "terminal" => (Tone::Bad, "permanent", "恒久的"),
        "viewer" => (Tone::Plain, "viewer", "閲覧者"),
        "operator" => (Tone::Plain, "operator", "運用者"),
        "admin" => (Tone::Plain, "admin", "管理者"),
        _ => return (Tone::Plain, word),
    };
    (tone, lang.t(en, ja))
}

/// What a lane of work leads to.
pub fn lane(lane: &Lane, lang: Language) -> String {
    if let Some(route) = lane.route() {
        return match lang {
            Language::En => format!("to {route}"),
            Language::Ja => format!("{route} への配送"),
        };
    }
    if let Some(channel) = lane.channel() {
        return match lang {
            Language::En => format!("by {channel}"),
            Language::Ja => format!("{channel} での送信"),
        };
    }
    if let Some(provider) = lane.0.strip_prefix("fetch:") {
        return match lang {
            Language::En => format!("reading from {provider}"),
            Language::Ja => format!("{provider} への照会"),
        };
    }
    if let Some(provider) = lane.0.strip_prefix("refund:") {
        return match lang {
            Language::En => format!("refunding by {provider}"),
            Language::Ja => format!("{provider} での返金"),
        };
    }
    if let Some(provider) = lane.0.strip_prefix("checkout:") {
        return match lang {
            Language::En => format!("checkout by {provider}"),
            Language::Ja => format!("{provider} での決済画面"),
        };
    }
    let words = match &*lane.0 {
        "settle" => lang.t("processing", "イベント処理"),
        "notify" => lang.t("selecting recipients", "通知先の決定"),
        "timer" => lang.t("timers", "定期処理"),
        "reconcile" => lang.t("reconciliation", "照合"),
        "deadline" => lang.t("deadlines of orders", "注文の期限"),
        "suspect" => lang.t("run alone after crashes", "隔離実行"),
        other => other,
    };
    words.to_owned()
}

/// What a delivery waits for whose destination does not answer.
pub fn outage(outage: &Outage, now: Time, lang: Language) -> String {
    let down = show::distance(now.ms().saturating_sub(outage.since.ms()).max(0), lang);
    let probe = outage.next_probe_at.map(|at| show::distance((at.ms() - now.ms()).max(0), lang));
    match (lang, probe) {
        (Language::En, Some(probe)) => {
            format!("waits for {} (down for {down}), next probe in {probe}", outage.route)
        }
        (Language::En, None) => format!("waits for {} (down for {down}), a probe is under way", outage.route),
        (Language::Ja, Some(probe)) => {
            format!("{} の復旧待ち（{down}前から応答なし）。次の確認は {probe}後", outage.route)
        }
        (Language::Ja, None) => format!("{} の復旧待ち（{down}前から応答なし）。確認中", outage.route),
    }
}

/// A kind of work, for what has no event to be called by.
pub fn work(kind: JobKind, lang: Language) -> &'static str {
    let (en, ja) = match kind {
        JobKind::Settle => ("processing", "イベント処理"),
        JobKind::Deliver => ("delivery", "配送"),
        JobKind::Fetch => ("reading from the provider", "プロバイダーへの照会"),
        JobKind::Timer => ("timer", "タイマー"),
        JobKind::Notify => ("creating notifications", "通知の作成"),
        JobKind::Refund => ("refund", "返金"),
        JobKind::Checkout => ("checkout session", "決済画面の作成"),
        JobKind::Send => ("message", "メッセージの送信"),
    };
    lang.t(en, ja)
}

/// Why something failed, was refused, or wants a person, in words. What is not known here is shown as it is.
/// What a span is called.
pub fn span(name: &str, lang: Language) -> String {
    let (kind, rest) = name.split_once(' ').unwrap_or((name, ""));
    let rest = rest.strip_prefix("/webhooks/").unwrap_or(rest);
    let words = match kind {
        "POST" => lang.t("Request from", "受信:"),
        "announce" => lang.t("Event emitted:", "イベント発行:"),
        "settle" => lang.t("Settle", "状態の判定"),
        "deliver" => lang.t("Deliver to", "配送:"),
        "notify" => lang.t("Work out notices", "通知先の判定"),
        "send" => lang.t("Send by", "通知送信:"),
        "fetch" => lang.t("Read from", "照会:"),
        "refund" => lang.t("Refund at", "返金:"),
        _ => return name.to_owned(),
    };
    format!("{words} {rest}").trim_end().to_owned()
}

pub fn reason(code: &str, lang: Language) -> &str {
    let (en, ja) = match code {
        // why money goes back
        "requested_by_customer" => ("requested by the customer", "お客様の依頼"),
        "duplicate" => ("paid twice", "二重払い"),
        "other" => ("other", "その他"),
        // work that failed
        "charge_disputed" => ("disputed at the provider", "不審請求の申し立て中"),
        "more_than_left" => ("more than is left", "返金可能額を超過"),
        "no_session_made" => ("the provider made no session", "決済事業者で決済画面が作成されない"),
        "no_refund_made" => ("the provider made no refund", "決済事業者で返金が作成されない"),
        "object_not_found" => ("not known at the provider", "決済事業者に該当なし"),
        "refunds_not_allowed" => ("refunds are not allowed", "返金が許可されていない"),
        "too_many_refunds" => ("too many refunds", "返金件数が多すぎる"),
        "timeout" => ("no answer in time", "応答がタイムアウト"),
        "connect" => ("no connection", "接続できない"),
        "broken" => ("the connection broke", "接続が切れた"),
        "refused" => ("refused by the other side", "相手側が拒否"),
        "throttled" | "rate_limited" => ("too many requests", "リクエスト過多"),
        "non_retryable" => ("App refused permanently (489)", "アプリが恒久的に拒否（489）"),
        "forbidden_address" => ("an address that may not be called", "許可されていない宛先"),
        "route_removed" => ("route removed from the configuration", "配送先の設定が削除された"),
        "not_for_route" => ("not allowed on this route", "この配送先には送れないイベント"),
        "channel_removed" => ("channel removed from the configuration", "送信経路の設定が削除された"),
        "rule_removed" => ("rule removed from the configuration", "通知ルールが削除された"),
        "event_missing" => ("event not found", "イベントが見つからない"),
        "unreadable_event" => ("the event can't be read", "イベントを解釈できない"),
        "unreadable_state" => ("what is stored can't be read", "保存データを解釈できない"),
        "panicked" => ("internal error", "プログラムの異常"),
        "crashed" => ("the server crashed repeatedly while processing it", "処理中にサーバーが繰り返し停止"),
        "contended" => ("concurrent changes", "同時更新の競合"),
        "store_unavailable" => ("the database did not answer", "データベースが応答しない"),
        "bad_credentials" => ("user or password refused", "認証情報が拒否された"),
        "bad_recipient" => ("unknown recipient", "宛先が存在しない"),
        "not_raised_yet" => ("what it ends was not told yet", "開始の通知がまだ出ていない"),
        "no_address" | "no_address_yet" => ("no mail address is known", "メールアドレスがない"),
        "no_api_key" => ("no API key is configured", "API キーが未設定"),
        "no_tls" => ("no encryption offered", "暗号化に非対応"),
        "quota_used_up" => ("the day's quota is used up", "1日の上限に到達"),
        "too_big" | "too_large" => ("too large", "サイズ超過"),
        "uncertain" => ("unknown whether it arrived", "届いたか不明"),
        "no_rule" => ("no rule for this type", "この種類のルールなし"),
        "server_error" => ("the app answered with an error", "アプリがエラーを返した"),
        "client_error" => ("the app refused the request", "アプリがリクエストを拒否"),
        "redirect" => ("the app answered with a redirect", "リダイレクトが返された"),
        "dns" => ("its name can't be resolved", "名前解決に失敗"),
        "tls" => ("no secure connection", "TLS接続に失敗"),
        "cut_off" => ("cut off on the way", "途中で中断された"),
        "too_old" => ("older than the retention period", "保存期間より古い"),
        "unusable_body" => ("genuine, but without a usable event", "署名は正しいが本文を利用できない"),
        "unstorable" => ("can't be stored", "保存できない"),
        "unsendable" => ("can't be written as a message", "送信できない内容"),
        "template_error" => ("its template can't be filled", "テンプレートのエラー"),
        "notice_missing" => ("notification not found", "通知の記録が見つからない"),
        "unknown_task" | "unknown_timer" | "unknown_fetch" => ("task of another version", "未対応の処理"),
        "unknown_schedule" => ("schedule removed from the configuration", "スケジュールの設定が削除された"),
        // messages to people
        "notifications_off" => ("notifications are switched off", "通知オフ"),
        "bounce" | "bounced" => ("mail bounced", "不達"),
        "bounced_for_now" => ("the mailbox took no mail then", "一時的に受信できない"),
        "complaint" | "complained" => ("reported as spam", "迷惑メール報告"),
        "manual" => ("entered by hand", "手動で登録"),
        "reply_lost" => ("its answer was lost", "応答を受け取れなかった"),
        "deferred" | "unavailable" => ("put off by the mail server", "メールサーバーが保留"),
        "sender_refused" => ("the sender was refused", "差出人が拒否された"),
        "server_refused" => ("the mail server refuses us", "メールサーバーが接続を拒否"),
        "channel_gone" => ("destination not found", "送信先が存在しない"),
        "unreachable" => ("too many failures in a row", "連続して失敗"),
        // requests that were turned away
        "missing_header" => ("a header is missing", "ヘッダーがない"),
        "malformed_header" => ("a header can't be read", "ヘッダーの形式が不正"),
        "malformed_body" => ("the body can't be read", "本文の形式が不正"),
        "stale_timestamp" => ("signed too long ago", "署名の時刻が古い"),
        "future_timestamp" => ("signed in the future", "署名の時刻が未来"),
        "bad_signature" => ("wrong signature", "署名が一致しない"),
        "bad_token" => ("wrong token", "トークンが一致しない"),
        "foreign_certificate" => ("a certificate from elsewhere", "証明書の取得元が不正"),
        "bad_certificate" => ("a bad certificate", "証明書が無効"),
        "foreign_topic" => ("another topic", "想定外のトピック"),
        "foreign_url" => ("meant for another address", "宛先URLが不一致"),
        "second_body" => ("another body under one transmission", "同じ送信IDで別の本文"),
        "foreign_call" => ("not from the provider", "想定外の呼び出し元"),
        "unsigned" => ("not signed", "署名がない"),
        "certificate_not_at_hand" => ("its certificate could not be fetched", "証明書を取得できない"),
        "subscription_not_confirmed" => ("the subscription could not be confirmed", "購読を確認できない"),
        "too_slow" => ("sent too slowly", "受信タイムアウト"),
        "broken_off" => ("broken off", "受信中に切断"),
        "method_not_allowed" => ("not sent by POST", "POST以外のメソッド"),
        "unknown_source" => ("no such source", "未設定のソース"),
        "bad_key" => ("wrong API key", "API キーが一致しない"),
        "bad_login" => ("wrong name or password", "名前またはパスワードの誤り"),
        "two_names" => ("a login header came twice", "ログイン用ヘッダーの重複"),
        "address_not_allowed" => ("from an address that is not allowed", "許可されていない接続元"),
        // what a person should look at
        "currency_mismatch" => ("paid in another currency", "通貨が異なる"),
        "mode_mismatch" | "livemode_mismatch" => ("live and test mixed", "本番とテストの混在"),
        "account_mismatch" => ("of another account", "別のアカウント"),
        "conflict" => ("the provider contradicts itself", "情報が矛盾している"),
        "refund_failed" => ("a refund failed", "返金に失敗"),
        "refund_given_up" => ("a refund could not be made", "返金を実行できなかった"),
        "refund_held_back" => ("a refund waits for release", "返金が承認待ち"),
        "refund_by_hand" => ("refund it at the provider", "決済事業者側での返金が必要"),
        "refund_cancelled" => ("a refund was cancelled", "返金が取り消された"),
        "overpaid" => ("overpaid", "過入金"),
        "underpaid" => ("underpaid", "入金不足"),
        "over_refunded" => ("refunded more than received", "返金額が入金額を超過"),
        "unlinked" => ("no matching order", "紐付け先が不明"),
        "several_tenants" => ("several tenants claim it", "複数テナントが該当"),
        "unpaid" => ("unpaid", "未払い"),
        // why a line stands in the books
        "captured" => ("payment received", "入金"),
        "refunded" => ("refund", "返金"),
        "tip" => ("tip", "チップ"),
        "tip_refunded" => ("refund of a tip", "チップの返金"),
        "surcharge_refunded" => ("refund of the customer's fee", "お客様負担手数料の返金"),
        "fee" => ("provider's fee", "決済手数料"),
        "disputed" => ("taken by a dispute", "チャージバック"),
        "dispute_fee" => ("fee of a dispute", "チャージバック手数料"),
        _ => return code,
    };
    lang.t(en, ja)
}

/// What is another after than before, as people say it. Without a before nothing was changed, only told.
pub fn changes(before: &Value, after: &Value, currency: &str, lang: Language) -> Vec<String> {
    if !before.is_object() {
        return Vec::new();
    }
    let known = [
        ("status", lang.t("Status", "状態")),
        ("amount_received", lang.t("Received", "入金額")),
        ("amount_refunded", lang.t("Refunded", "返金額")),
        ("fee", lang.t("Fee", "手数料")),
        ("disputed", lang.t("Disputed", "チャージバック")),
        ("paid_invoices", lang.t("Paid invoices", "支払い済み請求書")),
        ("amount_paid_total", lang.t("Paid in total", "支払い総額")),
    ];
    let say = |name: &str, value: &Value| match value {
        Value::Null => "–".to_owned(),
        Value::Bool(true) => lang.t("yes", "あり").to_owned(),
        Value::Bool(false) => lang.t("no", "なし").to_owned(),
        Value::Number(number) if name != "paid_invoices" => {
            show::money(number.as_i64().unwrap_or_default(), currency)
        }
        Value::String(word) => status(word, lang).1.to_owned(),
        other => other.to_string(),
    };
    let changed =
        known.into_iter().filter(|(name, _)| after.get(name).is_some() && before[*name] != after[*name]);
    let changed = changed
        .map(|(name, label)| format!("{label}: {} → {}", say(name, &before[name]), say(name, &after[name])));
    changed.collect()
}

#[cfg(test)]
mod tests {
    use sekisho_core::fulfilment::FulfilmentStatus;
    use sekisho_core::notification::NoticeStatus;
    use sekisho_core::reservation::ReservationStatus;
    use sekisho_core::settlement::{billing, payment};

    use super::*;

    /// A word of the program is written as code where nobody put it into words: in Japanese any, in English one with `_`.
    fn check(code: &str, words: impl Fn(Language) -> String) {
        assert!(
            !words(Language::En).is_empty() && !words(Language::En).contains('_'),
            "no English for {code}"
        );
        assert!(!words(Language::Ja).is_ascii(), "no Japanese for {code}");
    }

    #[test]
    fn h1_every_reason_for_attention_has_words_in_both_languages() {
        let of_payments = payment::Attention::ALL.map(payment::Attention::name);
        let of_billing = billing::BillingAttention::ALL.map(billing::BillingAttention::name);
        for code in of_payments.into_iter().chain(of_billing) {
            check(code, |lang| reason(code, lang).to_owned());
        }
    }

    #[test]
    fn h1_every_status_has_words_in_both_languages() {
        let of_payments = payment::PaymentStatus::ALL.map(payment::PaymentStatus::name);
        let of_billing = billing::BillingStatus::ALL.map(billing::BillingStatus::name);
        let of_notices = NoticeStatus::ALL.map(NoticeStatus::name);
        let of_reservations = ReservationStatus::ALL.map(ReservationStatus::name);
        let of_fulfilments = FulfilmentStatus::ALL.map(FulfilmentStatus::name);
        let of_orders = of_reservations.into_iter().chain(of_fulfilments);
        for code in of_payments.into_iter().chain(of_billing).chain(of_notices).chain(of_orders) {
            check(code, |lang| status(code, lang).1.to_owned());
        }
    }

    #[test]
    fn c4_what_waits_for_a_destination_says_so() {
        let now = Time::from_ms(1_780_000_000_000);
        let outage = |probe: Option<i64>| Outage {
            route: "crm".into(),
            since: now.plus_ms(-17 * 60_000),
            next_probe_at: probe.map(|ms| now.plus_ms(ms)),
        };
        let said = |probe, lang| super::outage(&outage(probe), now, lang);
        assert_eq!(said(Some(42_000), Language::En), "waits for crm (down for 17 min), next probe in 42 s");
        assert_eq!(said(None, Language::En), "waits for crm (down for 17 min), a probe is under way");
        assert!(said(Some(-5), Language::En).ends_with("next probe in 0 s"));
        assert_eq!(
            said(Some(42_000), Language::Ja),
            "crm の復旧待ち（17 分前から応答なし）。次の確認は 42 秒後"
        );
    }

    #[test]
    fn h1_every_kind_of_work_has_words_in_both_languages() {
        for kind in JobKind::ALL {
            check(kind.name(), |lang| work(kind, lang).to_owned());
        }
    }
}
