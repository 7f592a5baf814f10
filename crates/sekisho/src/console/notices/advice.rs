//! Why somebody did not get it, and what to do: one sentence each, in both languages, from how a notice ended and what is
//! known by now. Pure; times come in as the house's clock shows them.

use sekisho_core::notification::Status;

use crate::console::words::{self, Lang};

/// A notice as far as the question goes.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    pub status: Status,
    pub reason: Option<&'a str>,
    /// When it came to stand so, as it is shown.
    pub at: &'a str,
    pub channel: &'a str,
    pub is_mail: bool,
    /// The channel sends nothing at the moment.
    pub is_shut: bool,
    /// The address is on the suppression list now.
    pub is_suppressed: bool,
}

/// What happened, and the next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    pub what: String,
    pub next: &'static str,
}

pub fn advice(case: &Case<'_>, lang: Lang) -> Advice {
    Advice { what: what(case, lang), next: next(case, lang) }
}

fn what(case: &Case<'_>, lang: Lang) -> String {
    let Case { at, channel, .. } = case;
    let why = case.reason.map_or_else(
        || lang.t("for no stated reason", "理由の記録なし"),
        |reason| words::reason(reason, lang),
    );
    let text = |en: String, ja: String| if lang == Lang::En { en } else { ja };
    match case.status {
        Status::Queued if case.is_shut => text(
            format!("Not sent yet: the channel {channel} is shut, and it has been waiting since {at}."),
            format!("まだ送信されていません。送信経路 {channel} が停止中のため、{at} から待機しています。"),
        ),
        Status::Queued => text(
            format!("Not sent yet: it has been waiting its turn since {at}."),
            format!("まだ送信されていません。{at} から順番を待っています。"),
        ),
        Status::Sending => {
            text(format!("It is being sent, since {at}."), format!("{at} から送信処理中です。"))
        }
        Status::Retrying => text(
            format!("Not taken at {at} ({why}); it is tried again by itself."),
            format!("{at} の送信は受け付けられませんでした（{why}）。自動で再試行します。"),
        ),
        Status::Sent if case.is_mail => text(
            format!("It was sent at {at}: the mail server took it."),
            format!("{at} に送信済みです。メールサーバーが受け付けています。"),
        ),
        Status::Sent => text(
            format!("It was sent at {at}: {channel} took it."),
            format!("{at} に送信済みです。{channel} が受け付けています。"),
        ),
        Status::Failed => text(
            format!("It was not sent; given up at {at}: {why}."),
            format!("送信できませんでした。{at} に中止（{why}）。"),
        ),
        Status::Uncertain => text(
            format!("Nobody knows whether it arrived: the try at {at} broke off ({why})."),
            format!("届いたかどうか分かりません。{at} の送信が途中で切れました（{why}）。"),
        ),
        Status::Suppressed => text(
            format!("It was not sent at {at}: the address was on the suppression list ({why})."),
            format!("{at} の時点で宛先が配信停止リストにあったため、送信していません（{why}）。"),
        ),
        Status::Off => text(
            format!("It was not sent at {at}: this person has notifications switched off."),
            format!("{at} の時点で通知がオフに設定されていたため、送信していません。"),
        ),
        Status::Bounced => text(
            format!("It was sent and came back at {at}: {why}."),
            format!("送信後、{at} に不達で戻りました（{why}）。"),
        ),
        Status::Complained => text(
            format!("It arrived, and was reported as spam at {at}."),
            format!("届きましたが、{at} に迷惑メールとして報告されました。"),
        ),
    }
}

fn next(case: &Case<'_>, lang: Lang) -> &'static str {
    let (en, ja) = match (case.status, case.reason) {
        (Status::Queued, _) if case.is_shut => (
            "Mend the channel, then resume it under Sources and routes: what waits is sent by itself.",
            "送信経路を修復し、「送信元と配送先」で再開してください。待機分は自動で送信されます。",
        ),
        (Status::Queued | Status::Sending | Status::Retrying, _) => {
            ("Look again in a minute.", "1分ほど待って、もう一度確認してください。")
        }
        // Whatever it was, nothing goes to this address now.
        (Status::Failed | Status::Uncertain | Status::Sent | Status::Off, _) if case.is_suppressed => (
            "The address is on the suppression list by now: release it before you resend.",
            "宛先は現在、配信停止リストにあります。解除してから再送してください。",
        ),
        (Status::Sent, _) if case.is_mail => (
            "Ask them to look in the spam folder; if it is not there, resend it.",
            "迷惑メールフォルダーの確認を依頼し、見つからなければ再送してください。",
        ),
        (Status::Sent, _) => {
            ("Look there; if it is gone, resend it.", "送信先を確認し、なければ再送してください。")
        }
        (Status::Failed, Some("no_address" | "no_address_yet")) => (
            "Enter a mail address for them, then resend it to that address.",
            "メールアドレスを登録し、そのアドレスを指定して再送してください。",
        ),
        (Status::Failed, Some("bad_recipient")) => (
            "Correct the address, then resend it to the right one.",
            "アドレスを訂正し、正しい宛先を指定して再送してください。",
        ),
        (Status::Failed, Some("template_error" | "too_big")) => {
            ("Correct the template, then resend it.", "テンプレートを修正してから再送してください。")
        }
        (Status::Failed, Some("channel_removed" | "channel_gone" | "rule_removed")) => (
            "Put the channel back into the configuration, then resend it.",
            "送信経路の設定を元に戻してから再送してください。",
        ),
        (Status::Failed, Some("bad_credentials" | "no_tls" | "sender_refused" | "server_refused")) => (
            "Correct the channel's login or sender in the configuration, then resend it.",
            "送信経路の認証情報または差出人の設定を直してから再送してください。",
        ),
        (
            Status::Failed,
            Some(
                "timeout" | "connect" | "dns" | "tls" | "broken" | "throttled" | "unavailable" | "deferred"
                | "server_error",
            ),
        ) => (
            "See that the mail server can be reached again, then resend it.",
            "メールサーバーに接続できることを確認してから再送してください。",
        ),
        (Status::Failed, _) => (
            "Mend what the other side said below, then resend it.",
            "下の相手側の応答を確認し、原因を解消してから再送してください。",
        ),
        (Status::Uncertain, _) => (
            "Ask whether it arrived before you resend it: they might get it twice.",
            "二重に届く恐れがあります。届いていないことを本人に確認してから再送してください。",
        ),
        (Status::Suppressed, _) if !case.is_suppressed => (
            "The address was released meanwhile: resend it.",
            "宛先はすでに解除されています。再送してください。",
        ),
        (Status::Suppressed, Some("complaint")) => (
            "Release the address only if they ask for mail again, then resend it.",
            "本人が受信を希望した場合に限り、宛先を解除して再送してください。",
        ),
        (Status::Suppressed, _) => (
            "Correct the address, or release it if it works again, then resend it.",
            "アドレスを訂正するか、復旧していれば解除してから再送してください。",
        ),
        (Status::Off, _) => (
            "Switch notifications on for them: the next one is sent. For this one, resend it with an address.",
            "通知をオンにすると次回から届きます。この通知は宛先を指定すれば再送できます。",
        ),
        (Status::Bounced, Some("bounced_for_now")) => (
            "The mailbox took nothing then, perhaps it is full: resend it later.",
            "受信側が一時的に受け取れませんでした（容量超過など）。時間をおいて再送してください。",
        ),
        (Status::Bounced, _) => (
            "The address does not work: correct it, release the old one if needed, then resend it.",
            "アドレスが使われていません。訂正し、必要なら解除してから再送してください。",
        ),
        (Status::Complained, _) => {
            ("Do not resend it without asking them.", "本人の了承なしに再送しないでください。")
        }
    };
    lang.t(en, ja)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: Case<'_> = Case {
        status: Status::Sent,
        reason: None,
        at: "2026-02-02 11:40:00",
        channel: "mail",
        is_mail: true,
        is_shut: false,
        is_suppressed: false,
    };

    fn check(case: Case<'_>, what: &str, next: &str) {
        let [en, ja] = [Lang::En, Lang::Ja].map(|lang| advice(&case, lang));
        assert!(en.what.contains(what), "{case:?}: {}", en.what);
        assert!(en.next.contains(next), "{case:?}: {}", en.next);
        for text in [&*ja.what, ja.next] {
            assert!(text.ends_with('。'), "a sentence: {text}");
            assert!(text.chars().any(|letter| ('\u{3040}'..='\u{30ff}').contains(&letter)), "{text}");
        }
        assert!(en.what.ends_with('.') && en.next.ends_with('.'), "{en:?}");
    }

    #[test]
    fn g5_every_end_of_a_notice_has_its_sentence_and_its_next_step() {
        let because = |status, reason| Case { status, reason: Some(reason), ..CASE };
        let plain = |status| Case { status, ..CASE };
        check(plain(Status::Queued), "waiting its turn since 2026-02-02 11:40:00", "in a minute");
        check(Case { is_shut: true, ..plain(Status::Queued) }, "channel mail is shut", "resume it");
        check(plain(Status::Sending), "being sent", "in a minute");
        check(because(Status::Retrying, "throttled"), "too many requests", "in a minute");
        check(plain(Status::Sent), "mail server took it", "spam folder");
        check(Case { is_mail: false, channel: "ops", ..CASE }, "ops took it", "Look there");
        check(Case { is_suppressed: true, ..CASE }, "took it", "release it before");
        check(because(Status::Failed, "no_address"), "no mail address", "Enter a mail address");
        check(because(Status::Failed, "bad_recipient"), "no such recipient", "Correct the address");
        check(because(Status::Failed, "template_error"), "template", "Correct the template");
        check(because(Status::Failed, "channel_removed"), "channel is gone", "Put the channel back");
        check(because(Status::Failed, "bad_credentials"), "refused", "login or sender");
        check(because(Status::Failed, "connect"), "no connection", "can be reached");
        check(because(Status::Failed, "something_new"), "something_new", "Mend what");
        check(plain(Status::Failed), "no stated reason", "Mend what");
        check(because(Status::Uncertain, "reply_lost"), "Nobody knows", "Ask whether it arrived");
        let listed = |reason| Case { is_suppressed: true, ..because(Status::Suppressed, reason) };
        check(listed("bounce"), "came back", "Correct the address, or release it");
        check(listed("complaint"), "called spam", "only if they ask");
        check(because(Status::Suppressed, "bounce"), "suppression list", "released meanwhile");
        check(because(Status::Off, "notifications_off"), "switched off", "Switch notifications on");
        check(because(Status::Bounced, "bounced"), "came back", "does not work");
        check(because(Status::Bounced, "bounced_for_now"), "came back", "resend it later");
        check(plain(Status::Complained), "reported as spam", "without asking");
    }

    #[test]
    fn g5_no_status_is_left_without_words() {
        for status in Status::ALL {
            for (is_shut, is_suppressed) in [(false, false), (true, false), (false, true), (true, true)] {
                check(Case { status, is_shut, is_suppressed, ..CASE }, "", "");
            }
        }
    }
}
