//! What an entry of the audit log says, for people: the act in words, where its target is shown, and its details as
//! lines with what was there before.

use sekisho_core::language::Language;
use sekisho_core::slot::SlotName;
use serde_json::Value;

use super::super::{balances, slots};

/// One line of an entry's details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    pub name: String,
    /// Only where something was changed.
    pub before: Option<String>,
    pub after: String,
}

/// Lines that are shown of one entry, and letters of each.
const DETAILS_MAX: usize = 60;
const VALUE_LETTERS_MAX: usize = 600;

/// The act in words. What is not known here is shown as it is.
pub fn action(code: &str, lang: Language) -> &str {
    let (en, ja) = match code {
        "payment.found" => ("payment created", "決済を検知"),
        "payment.merged" => ("payments merged", "同一の決済を統合"),
        "payment.parted" => ("part of a payment moved to another", "決済の一部を別の決済へ移動"),
        "payment.unlinked" => ("payment assignment corrected", "入金の対応付けを訂正"),
        "billing.parted" => ("a subscription moved to another tenant", "定期課金を別のテナントへ移動"),
        "payment.processing" => ("a payment is being processed", "決済を処理中"),
        "payment.overpaid" => ("a payment was overpaid", "過入金を検知"),
        "payment.underpaid" => ("underpaid", "入金不足を検知"),
        "payment.currency_mismatch" => ("payment received in another currency", "異なる通貨での入金を検知"),
        "payment.refund_pending" => ("a refund is on its way", "返金処理中"),
        "payment.checkout_ready" => ("a checkout session was made", "決済画面を作成"),
        "payment.refund_ordered" => ("a refund was ordered", "返金を指示"),
        "payment.refund_waiting" => ("a refund waits for funds", "返金が残高不足で待機中"),
        "payment.refund_given_up" => ("a refund could not be made", "返金を実行できず"),
        "payment.refund_cancelled" => ("a refund was cancelled", "返金が取り消し"),
        "payment.linked" => ("a payment was linked to an order", "決済を注文に紐付け"),
        "payment.fee_known" => ("the fee of a payment became known", "決済手数料が確定"),
        "payment.created" => ("a payment was created", "決済を登録"),
        "payment.changed" | "payment.updated" => ("a payment changed", "決済の内容が変化"),
        "payment.paid" => ("a payment was paid", "支払いを確認"),
        "payment.failed" => ("a payment failed", "支払いに失敗"),
        "payment.refunded" => ("a payment was refunded", "全額返金"),
        "payment.partially_refunded" => ("a payment was partly refunded", "一部返金"),
        "payment.refund_failed" => ("a refund failed", "返金に失敗"),
        "payment.cancelled" => ("a payment was cancelled", "決済をキャンセル"),
        "payment.expired" => ("a payment expired", "決済が期限切れ"),
        "payment.disputed" => ("a payment was disputed", "チャージバックを受領"),
        "payment.dispute_won" => ("a dispute was won", "チャージバックの却下"),
        "payment.dispute_lost" => ("a dispute was lost", "チャージバックの確定"),
        "slot.set" => ("a slot was set", "枠を設定"),
        "reservation.held" => ("places were reserved", "予約枠を仮押さえ"),
        "reservation.changed" => ("a reservation changed", "予約の内容が変化"),
        "reservation.confirmed" => ("a reservation was confirmed", "予約が確定"),
        "reservation.expired" => ("a hold expired", "仮押さえが期限切れ"),
        "reservation.extended" => ("a hold was extended", "仮押さえを延長"),
        "reservation.cancelled" => ("a reservation was cancelled", "予約をキャンセル"),
        "fulfilment.created" => ("a fulfilment was requested", "制作を登録"),
        "fulfilment.changed" => ("a fulfilment changed", "制作の状況が変化"),
        "fulfilment.requested" => ("a run was requested", "制作を依頼"),
        "fulfilment.retrying" => ("a run failed and is retried", "制作に失敗し再試行"),
        "fulfilment.done" => ("a fulfilment was done", "制作が完了"),
        "fulfilment.failed" => ("a fulfilment failed", "制作に失敗"),
        "fulfilment.downgraded" => ("a fulfilment was downgraded", "返金により無料プランへ変更"),
        "case.opened" => ("a case was opened", "対応案件を起票"),
        "case.changed" => ("a case changed", "対応案件の状況が変化"),
        "case.raised" => ("a case was raised", "対応案件をエスカレーション"),
        "case.overdue" => ("a case is overdue", "対応案件の期限超過"),
        "case.acknowledged" => ("a case was acknowledged", "対応案件を確認"),
        "case.resolved" => ("a case was resolved", "対応案件を解決"),
        "inquiry.received" => ("a customer asked something", "お客様からの問い合わせを受付"),
        "inquiry.forgotten" => {
            ("an inquiry was kept long enough, and deleted", "保管期限を過ぎた問い合わせを削除")
        }
        "inquiry.closed" => ("an inquiry was closed", "問い合わせを完了"),
        "order_link.revoked" => ("links to an order's page were revoked", "お客様用リンクを無効化"),
        "compensation.recorded" => ("a compensation was recorded", "補償を記録"),
        "billing.found" => ("billing created", "定期課金を検知"),
        "billing.merged" => ("billings merged", "同一の定期課金を統合"),
        "billing.trialing" => ("a trial began", "試用期間を開始"),
        "billing.active" => ("billing became active", "定期課金が有効化"),
        "billing.past_due" => ("billing is past due", "定期課金の支払いが遅延"),
        "billing.unpaid" => ("billing is unpaid", "定期課金が未払い"),
        "billing.paused" => ("billing was paused", "定期課金を一時停止"),
        "billing.cancelled" => ("billing was cancelled", "定期課金を解約"),
        "billing.payment_succeeded" => ("billing payment received", "定期課金の入金を確認"),
        "balance.credited" => ("balance credited", "残高に加算"),
        "balance.debited" => ("balance debited", "残高から減算"),
        "billing.changed" => ("billing changed", "定期課金の内容が変化"),
        "billing.deleted" => ("billing was deleted", "定期課金を削除"),
        "event.replayed" => ("an event was replayed", "イベントを再処理"),
        "dead_letter.created" => ("a job failed permanently", "処理を断念しデッドレターへ"),
        "dead_letter.retried" => ("a dead letter was retried", "デッドレターを再試行"),
        "dead_letter.discarded" => ("a dead letter was discarded", "デッドレターを破棄"),
        "breaker.reset" => ("a route's breaker was reset", "配送先の遮断を解除"),
        "delivery.cancelled" => ("a delivery was cancelled", "配送を取り消し"),
        "delivery.dead" => ("a delivery failed permanently", "配送に失敗"),
        "route.paused" => ("deliveries to a destination were paused", "配送先への配送を停止"),
        "route.resumed" => ("deliveries to a destination were resumed", "配送先への配送を再開"),
        "channel.resumed" => ("a channel was resumed", "送信経路を再開"),
        "channel.paused" => ("a channel was paused", "送信経路が停止"),
        "address.suppressed" => ("an address was suppressed", "アドレスを配信停止に登録"),
        "address.released" => ("an address was released", "アドレスの配信停止を解除"),
        "notice.sent" | "deadline_notification_sent" => ("a notice was sent", "通知を送信"),
        "notice.resent" => ("a notice was resent", "通知を再送"),
        "notice.failed" => ("a notice failed", "通知の送信に失敗"),
        "notice.uncertain" => ("a notice may or may not have arrived", "通知が届いたか不明"),
        "notice.suppressed" => ("a notice was suppressed", "通知を配信停止"),
        "notice.rate_limited" => ("a notice was rate limited", "送信数の上限により通知を見合わせ"),
        "notice.off" => ("a notice was not sent: notifications are off", "通知オフのため送信せず"),
        "notice.bounced" => ("a notice bounced", "通知が不達"),
        "notice.complained" => ("a notice was reported as spam", "通知が迷惑メール報告"),
        "reminders.run" => ("reminders were run", "リマインダーを実行"),
        "user.invited" => ("a user was invited", "利用者を招待"),
        "user.invitation_withdrawn" => ("an invitation was withdrawn", "招待を取り消し"),
        "user.joined" => ("a user joined", "利用者が登録"),
        "user.entered" => ("a user logged in", "ログイン"),
        "user.refused" => ("a log-in was refused", "ログインを拒否"),
        "user.rank_changed" => ("a role was changed", "権限を変更"),
        "user.password_changed" => ("a password was changed", "パスワードを変更"),
        "user.sessions_ended" => ("sessions were ended", "セッションを終了"),
        "user.disabled" => ("a user was deactivated", "利用者を停止"),
        "user.enabled" => ("a user was reactivated", "利用者を再開"),
        "api_key.created" => ("an API key was created", "API キーを作成"),
        "api_key.revoked" => ("an API key was revoked", "API キーを無効化"),
        "tenant.created" | "customer.created" | "staff.created" | "subject.created" => {
            ("an entry was created", "台帳に登録")
        }
        "tenant.changed" | "customer.changed" | "staff.changed" | "subject.changed" => {
            ("an entry was changed", "台帳を変更")
        }
        "tenant.deleted" | "customer.deleted" | "staff.deleted" | "subject.deleted" => {
            ("an entry was deleted", "台帳から削除")
        }
        "source.reconciled" => ("a source was compared with its provider", "プロバイダーと照合"),
        "source.differs" => ("the provider's records differ from ours", "決済事業者の記録との不一致を検知"),
        "source.gap_closed" => {
            ("missing events were read from the provider", "届かなかったイベントを取り込み")
        }
        "source.key_accepted" => {
            ("the provider accepts our API key again", "プロバイダーの API キーが再び有効")
        }
        "source.key_refused" => ("the provider refuses our API key", "プロバイダーが API キーを拒否"),
        "alert.fired" => ("an alert fires", "警報が発生"),
        "alert.repeated" => ("an alert still fires", "警報が継続"),
        "alert.resolved" => ("an alert is over", "警報が解消"),
        "alert.silenced" => ("silenced an alert", "警報を一時停止"),
        "alert.tried" => ("sent a trial of an alert", "警報のテストを送信"),
        "source.tested" => ("a test event was sent", "テストイベントを送信"),
        "user.left" => ("a user logged out", "ログアウト"),
        "audit.anchored" => ("the log was anchored", "監査ログにアンカーを記録"),
        _ => return code,
    };
    lang.t(en, ja)
}

/// The page that shows a target, if there is one. Billing is shown by its tenant.
pub fn link(kind: &str, id: &str, tenant: Option<&str>) -> Option<String> {
    if kind == "customer" {
        return Some(balances::address(tenant, id));
    }
    if kind == "slot" {
        return SlotName::parse(id).map(|name| slots::address(&name));
    }
    let id = if kind == "billing" { tenant? } else { id };
    let id: String = form_urlencoded::byte_serialize(id.as_bytes()).collect();
    // A path has `%20` where a form has `+`.
    let id = id.replace('+', "%20");
    match kind {
        "payment" => Some(format!("/console/payments/{id}")),
        "billing" => Some(format!("/console/billing/{id}")),
        "event" => Some(format!("/console/events/{id}")),
        "notice" => Some(format!("/console/notices/{id}")),
        "message" => Some(format!("/console/messages/{id}")),
        "reservation" => Some(format!("/console/reservations/{id}")),
        "fulfilment" => Some(format!("/console/fulfilments/{id}")),
        "case" => Some(format!("/console/cases/{id}")),
        "inquiry" => Some(format!("/console/inquiries/{id}")),
        "compensation" => Some("/console/compensations".into()),
        "user" => Some("/console/users".into()),
        "route" | "channel" => Some("/console/sources".into()),
        "address" => Some("/console/suppressions".into()),
        _ => None,
    }
}

/// An entry's details as lines. Where there is a before and an after, what differs is told.
pub fn details(text: &str) -> Vec<Detail> {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    let Value::Object(all) = &value else {
        let is_nothing = value.is_null();
        let lone = Detail { name: String::new(), before: None, after: shown(&value) };
        return if is_nothing { Vec::new() } else { vec![lone] };
    };
    let mut lines = Vec::new();
    let both = all.get("before").zip(all.get("after"));
    if let Some((before, after)) = both {
        differences("", before, after, &mut lines);
    }
    let rest = all.iter().filter(|(name, _)| both.is_none() || !["before", "after"].contains(&name.as_str()));
    lines.extend(rest.filter(|(_, value)| !is_empty(value)).map(|(name, value)| Detail {
        name: name.clone(),
        before: None,
        after: shown(value),
    }));
    lines.truncate(DETAILS_MAX);
    lines
}

fn differences(path: &str, before: &Value, after: &Value, lines: &mut Vec<Detail>) {
    let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else {
        if before != after {
            let name = path.to_owned();
            lines.push(Detail { name, before: Some(shown(before)), after: shown(after) });
        }
        return;
    };
    let mut names: Vec<_> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    for name in names {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let (was, is) = (old.get(name).unwrap_or(&Value::Null), new.get(name).unwrap_or(&Value::Null));
        differences(&path, was, is, lines);
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => "–".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.chars().take(VALUE_LETTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use sekisho_core::announcement::TYPES;
    use sekisho_core::notification::NoticeStatus;

    use super::*;

    fn line(name: &str, before: Option<&str>, after: &str) -> Detail {
        Detail { name: name.into(), before: before.map(str::to_owned), after: after.into() }
    }

    #[test]
    fn d8_details_tell_what_changed_and_nothing_else() {
        let cases: [(&str, Vec<Detail>); 7] = [
            (r#"{"before":{"a":1,"b":2},"after":{"a":1,"b":3}}"#, vec![line("b", Some("2"), "3")]),
            (r#"{"before":{"a":{"x":"1"}},"after":{"a":{"x":"2"}}}"#, vec![line("a.x", Some("1"), "2")]),
            (
                r#"{"before":"viewer","after":"admin","why":"x"}"#,
                vec![line("", Some("viewer"), "admin"), line("why", None, "x")],
            ),
            (r#"{"before":null,"after":{"a":1}}"#, vec![line("", Some("–"), r#"{"a":1}"#)]),
            (r#"{"before":{"a":1}}"#, vec![line("before", None, r#"{"a":1}"#)]),
            (r#"{"reason":"","was":null}"#, vec![]),
            ("not json", vec![line("", None, "not json")]),
        ];
        for (text, expected) in cases {
            assert_eq!(details(text), expected, "{text}");
        }
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(9_000));
        assert_eq!(details(&long)[0].after.len(), VALUE_LETTERS_MAX);
    }

    #[test]
    fn d8_every_announcement_and_every_end_of_a_notice_has_words_in_both_languages() {
        let is_end = |status: &&NoticeStatus| {
            !matches!(status, NoticeStatus::Queued | NoticeStatus::Sending | NoticeStatus::Retrying)
        };
        let ends = NoticeStatus::ALL.iter().filter(is_end).map(|status| format!("notice.{}", status.name()));
        for code in TYPES.into_iter().map(str::to_owned).chain(ends) {
            assert_ne!(action(&code, Language::En), code, "no English for {code}");
            assert!(!action(&code, Language::Ja).is_ascii(), "no Japanese for {code}");
        }
    }

    #[test]
    fn d8_targets_lead_to_their_pages_whatever_they_are_called() {
        for (kind, id, tenant, page) in [
            ("payment", "pay_1", None, Some("/console/payments/pay_1")),
            ("event", "a b/\"><", None, Some("/console/events/a%20b%2F%22%3E%3C")),
            ("billing", "bil_1", Some("aozora"), Some("/console/billing/aozora")),
            ("billing", "bil_1", None, None),
            ("customer", "c 1", None, Some("/console/balances/c%201")),
            ("customer", "c1", Some("青空"), Some("/console/balances/c1?tenant=%E9%9D%92%E7%A9%BA")),
            ("reservation", "rsv_1", None, Some("/console/reservations/rsv_1")),
            ("case", "case_1", None, Some("/console/cases/case_1")),
            ("slot", "test/acme/dome:1", None, Some("/console/slots/dome%3A1?mode=test&tenant=acme")),
            ("slot", "live/-/dome", None, Some("/console/slots/dome")),
            ("reminders", "2026-11-16", None, None),
        ] {
            assert_eq!(link(kind, id, tenant).as_deref(), page, "{kind} {id}");
        }
    }
}
