//! What a person can do about a dead letter, by why it died.

use sekisho_core::job::{Class, DeadReason};
use sekisho_core::language::Language;

pub fn of(death: &DeadReason, lang: Language) -> &'static str {
    let (en, ja) = match &*death.reason {
        "timeout" | "connect" | "broken" | "server_error" | "dns" | "tls" | "throttled" | "rate_limited"
        | "cut_off" => (
            "The other side was down or overloaded until all attempts were used. Check that it runs again, then retry; it comes with the same message id, so an app that remembers ids does not process it twice.",
            "相手側が停止または過負荷のまま、すべての再試行を使い切りました。復旧を確認してから再試行してください。同じメッセージIDで届くため、IDを記録しているアプリでは二重に処理されません。",
        ),
        "client_error" | "redirect" | "non_retryable" | "refused" => (
            "The other side received the request and refused it. Its response below says why. Correct the cause and retry; if it is right to refuse, discard it with a reason.",
            "相手側がリクエストを受け取ったうえで拒否しました。下の応答で理由を確認してください。原因を直して再試行するか、拒否が正しければ理由を書いて破棄してください。",
        ),
        "route_removed" | "channel_removed" | "rule_removed" | "unknown_schedule" => (
            "Its destination is no longer configured. Restore it and retry, or discard it with a reason.",
            "宛先の設定が削除されています。設定を戻して再試行するか、理由を書いて破棄してください。",
        ),
        "forbidden_address" | "not_for_route" | "no_api_key" | "bad_credentials" | "no_tls"
        | "template_error" | "unsendable" => (
            "A setting prevents it; the sentence above names it. Correct it, restart the server, then retry.",
            "設定に問題があります。上の説明にある項目を直し、サーバーを再起動してから再試行してください。",
        ),
        "livemode_mismatch" | "account_mismatch" | "too_old" | "unusable_body" => (
            "It was held back on purpose, and a retry ends here again. Check the provider's webhook settings; discard it with a reason once it is clear why it came.",
            "意図的に保留されたもので、再試行しても同じ結果になります。プロバイダー側のWebhook設定を確認し、原因が分かったら理由を書いて破棄してください。",
        ),
        "unreadable_event" | "unreadable_state" | "too_big" | "unstorable" | "unknown_task"
        | "unknown_timer" | "unknown_fetch" => (
            "This version can't read it. Compare the body with the provider's documentation; after an update, retry.",
            "現在のバージョンでは解釈できません。プロバイダーの仕様と本文を見比べ、更新後に再試行してください。",
        ),
        "bad_recipient" | "no_address" | "no_address_yet" | "suppressed" => (
            "It can't reach this recipient. Correct the address in the directory, or release it from the suppression list, then retry.",
            "この宛先には届きません。登録されたメールアドレスを直すか、配信停止を解除してから再試行してください。",
        ),
        "uncertain" => (
            "It is unknown whether it arrived, so it is never resent automatically. Ask the recipient or look into the mail server's log first: a retry may reach them twice.",
            "届いたかどうか不明なため、自動では再送されません。受信者やメールサーバーのログを先に確認してください。再試行すると二重に届く可能性があります。",
        ),
        "quota_used_up" => (
            "The day's quota of the channel is used up. Retry after midnight, or raise the quota.",
            "送信経路の1日の上限に達しました。翌日に再試行するか、上限を引き上げてください。",
        ),
        "panicked" | "crashed" | "contended" | "store_unavailable" | "event_missing" | "notice_missing" => (
            "An error on Sekisho's side; see the server's log at that time. Correct the cause, then retry.",
            "Sekisho側で問題が起きました。該当時刻のサーバーログを確認し、原因を取り除いてから再試行してください。",
        ),
        _ => match death.class {
            Class::Transient => (
                "The cause may be gone by now: check the response, then retry.",
                "すでに解消している可能性があります。応答を確認して再試行してください。",
            ),
            Class::Terminal => (
                "It will fail again unless something changes. Correct the cause and retry, or discard it with a reason.",
                "原因を取り除かない限り再び失敗します。直してから再試行するか、理由を書いて破棄してください。",
            ),
        },
    };
    lang.t(en, ja)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h4_what_can_be_done_depends_on_why_it_died() {
        for (reason, class, words) in [
            ("server_error", Class::Transient, "down or overloaded"),
            ("client_error", Class::Transient, "refused it"),
            ("route_removed", Class::Terminal, "no longer configured"),
            ("not_for_route", Class::Terminal, "A setting prevents it"),
            ("bad_credentials", Class::Terminal, "restart the server"),
            ("livemode_mismatch", Class::Terminal, "held back on purpose"),
            ("unreadable_event", Class::Terminal, "can't read it"),
            ("bad_recipient", Class::Terminal, "Correct the address"),
            ("uncertain", Class::Terminal, "reach them twice"),
            ("quota_used_up", Class::Transient, "quota"),
            ("crashed", Class::Terminal, "Sekisho's side"),
            ("of_another_version", Class::Transient, "The cause may be gone"),
            ("of_another_version", Class::Terminal, "It will fail again"),
        ] {
            let death = DeadReason { class, reason: reason.into(), error: String::new() };
            assert!(of(&death, Language::En).contains(words), "{reason}");
            assert!(of(&death, Language::Ja).ends_with('。'), "{reason}");
        }
    }
}
