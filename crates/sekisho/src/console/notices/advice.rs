//! Why somebody did not get it, and what to do: one sentence each, in both languages. What is advised the core decides.

use sekisho_core::language::Language;
use sekisho_core::notification::advice::{Advice, Known};
use sekisho_core::notification::{Notice, NoticeStatus};

use crate::view::words;

/// What happened, and the next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub what: String,
    pub next: &'static str,
}

impl Explanation {
    /// `at` is when the notice came to stand so, by the house's clock.
    pub fn of(notice: &Notice, at: &str, known: Known, lang: Language) -> Self {
        Self { what: what(notice, at, known, lang), next: next(notice.advice(known), lang) }
    }
}

fn what(notice: &Notice, at: &str, known: Known, lang: Language) -> String {
    let channel = &notice.channel;
    let why = notice.steps.last().and_then(|step| step.reason.as_deref()).map_or_else(
        || lang.t("for no stated reason", "理由の記録なし"),
        |reason| words::reason(reason, lang),
    );
    let text = |en: String, ja: String| if lang == Language::En { en } else { ja };
    match notice.status() {
        NoticeStatus::Queued if known.is_shut => text(
            format!("Not sent yet: the channel {channel} is paused; waiting since {at}."),
            format!("まだ送信されていません。送信経路 {channel} が停止中のため、{at} から待機しています。"),
        ),
        NoticeStatus::Queued => text(
            format!("Not sent yet: it has been waiting its turn since {at}."),
            format!("まだ送信されていません。{at} から順番を待っています。"),
        ),
        NoticeStatus::Sending => {
            text(format!("It is being sent, since {at}."), format!("{at} から送信処理中です。"))
        }
        NoticeStatus::Retrying => text(
            format!("Not accepted at {at} ({why}); it is retried automatically."),
            format!("{at} の送信は受け付けられませんでした（{why}）。自動で再試行します。"),
        ),
        NoticeStatus::Sent if known.is_mail => text(
            format!("It was sent at {at}: the mail server accepted it."),
            format!("{at} に送信済みです。メールサーバーが受け付けています。"),
        ),
        NoticeStatus::Sent => text(
            format!("It was sent at {at}: {channel} accepted it."),
            format!("{at} に送信済みです。{channel} が受け付けています。"),
        ),
        NoticeStatus::Failed => text(
            format!("It was not sent; given up at {at}: {why}."),
            format!("送信できませんでした。{at} に中止（{why}）。"),
        ),
        NoticeStatus::Uncertain => text(
            format!("Unknown whether it arrived: the attempt at {at} broke off ({why})."),
            format!("届いたかどうか分かりません。{at} の送信が途中で切れました（{why}）。"),
        ),
        NoticeStatus::Suppressed => text(
            format!("It was not sent at {at}: the address was on the suppression list ({why})."),
            format!("{at} の時点で宛先が配信停止リストにあったため、送信していません（{why}）。"),
        ),
        NoticeStatus::RateLimited => text(
            format!("It was held back at {at}: this address reached the hourly limit."),
            format!("{at} に送信を見合わせました。この宛先への1時間あたりの送信数が上限に達していました。"),
        ),
        NoticeStatus::Off => text(
            format!("It was not sent at {at}: this person has notifications switched off."),
            format!("{at} の時点で通知がオフに設定されていたため、送信していません。"),
        ),
        NoticeStatus::Bounced => text(
            format!("It was sent and bounced at {at}: {why}."),
            format!("送信後、{at} に不達で戻りました（{why}）。"),
        ),
        NoticeStatus::Complained => text(
            format!("It arrived, and was reported as spam at {at}."),
            format!("届きましたが、{at} に迷惑メールとして報告されました。"),
        ),
    }
}

fn next(advice: Advice, lang: Language) -> &'static str {
    let (en, ja) = match advice {
        Advice::ResumeChannel => (
            "Correct the channel, then resume it under Sources and routes: waiting messages are sent automatically.",
            "送信経路を修復し、「送信元と配送先」で再開してください。待機分は自動で送信されます。",
        ),
        Advice::Wait => ("Look again in a minute.", "1分ほど待って、もう一度確認してください。"),
        Advice::ReleaseFirst => (
            "The address is on the suppression list by now: release it before you resend.",
            "宛先は現在、配信停止リストにあります。解除してから再送してください。",
        ),
        Advice::LookInSpam => (
            "Ask them to look in the spam folder; if it is not there, resend it.",
            "迷惑メールフォルダーの確認を依頼し、見つからなければ再送してください。",
        ),
        Advice::LookThere => {
            ("Look there; if it is gone, resend it.", "送信先を確認し、なければ再送してください。")
        }
        Advice::EnterAddress => (
            "Enter a mail address for them, then resend it to that address.",
            "メールアドレスを登録し、そのアドレスを指定して再送してください。",
        ),
        Advice::CorrectAddress => (
            "Correct the address, then resend it to the right one.",
            "アドレスを訂正し、正しい宛先を指定して再送してください。",
        ),
        Advice::CorrectTemplate => {
            ("Correct the template, then resend it.", "テンプレートを修正してから再送してください。")
        }
        Advice::RestoreChannel => (
            "Put the channel back into the configuration, then resend it.",
            "送信経路の設定を元に戻してから再送してください。",
        ),
        Advice::CorrectLogin => (
            "Correct the channel's login or sender in the configuration, then resend it.",
            "送信経路の認証情報または差出人の設定を直してから再送してください。",
        ),
        Advice::ReachServer => (
            "See that the mail server can be reached again, then resend it.",
            "メールサーバーに接続できることを確認してから再送してください。",
        ),
        Advice::MendWhatIsSaid => (
            "Correct the cause in the response below, then resend it.",
            "下の相手側の応答を確認し、原因を解消してから再送してください。",
        ),
        Advice::AskFirst => (
            "Ask whether it arrived before you resend it: they might get it twice.",
            "二重に届く恐れがあります。届いていないことを本人に確認してから再送してください。",
        ),
        Advice::Resend => (
            "The address was released meanwhile: resend it.",
            "宛先はすでに解除されています。再送してください。",
        ),
        Advice::ResendIfMeant => (
            "Check why there were so many: another person may have entered this address. If it is legitimate, resend it.",
            "短時間に多数発生した原因を確認してください（第三者がこのアドレスを入力した可能性があります）。正当なものであれば再送してください。",
        ),
        Advice::ReleaseIfTheyAsk => (
            "Release the address only if they ask for mail again, then resend it.",
            "本人が受信を希望した場合に限り、宛先を解除して再送してください。",
        ),
        Advice::CorrectOrRelease => (
            "Correct the address, or release it if it works again, then resend it.",
            "アドレスを訂正するか、復旧していれば解除してから再送してください。",
        ),
        Advice::SwitchOn => (
            "Switch notifications on for them: the next one is sent. For this one, resend it with an address.",
            "通知をオンにすると次回から届きます。この通知は宛先を指定すれば再送できます。",
        ),
        Advice::ResendLater => (
            "The mailbox did not accept mail then, it may be full: resend it later.",
            "受信側が一時的に受け取れませんでした（容量超過など）。時間をおいて再送してください。",
        ),
        Advice::ReplaceAddress => (
            "The address does not work: correct it, release the old one if needed, then resend it.",
            "アドレスが使われていません。訂正し、必要なら解除してから再送してください。",
        ),
        Advice::LeaveThemAlone => {
            ("Do not resend it without asking them.", "本人の了承なしに再送しないでください。")
        }
    };
    lang.t(en, ja)
}

#[cfg(test)]
mod tests {
    use sekisho_core::Time;
    use sekisho_core::notification::{Audience, Step};
    use serde_json::Value;

    use super::*;

    const MAIL: Known = Known { is_mail: true, is_shut: false, is_suppressed: false };

    fn check(status: NoticeStatus, reason: Option<&str>, known: Known, what: &str, next: &str) {
        let step = Step::new(Time::from_ms(0), status);
        let notice = Notice {
            key: "k".into(),
            channel: "ops".into(),
            audience: Audience::Customer,
            to: None,
            name: None,
            language: Language::Ja,
            template: "payment-received".into(),
            data: Value::Null,
            details: Value::Null,
            tenant: None,
            payment: None,
            event: None,
            batch: None,
            message: None,
            again: 0,
            trace: None,
            steps: vec![reason.map_or(step.clone(), |reason| step.because(reason, ""))],
        };
        let [en, ja] = [Language::En, Language::Ja]
            .map(|lang| Explanation::of(&notice, "2026-02-02 11:40:00", known, lang));
        assert!(en.what.contains(what), "{status:?}: {}", en.what);
        assert!(en.next.contains(next), "{status:?}: {}", en.next);
        for text in [&*ja.what, ja.next] {
            assert!(text.ends_with('。'), "a sentence: {text}");
            assert!(text.chars().any(|letter| ('\u{3040}'..='\u{30ff}').contains(&letter)), "{text}");
        }
        assert!(en.what.ends_with('.') && en.next.ends_with('.'), "{en:?}");
    }

    #[test]
    fn g5_a_notice_says_what_happened_and_what_to_do() {
        let shut = Known { is_shut: true, ..MAIL };
        let listed = Known { is_suppressed: true, ..MAIL };
        check(NoticeStatus::Queued, None, MAIL, "waiting its turn since 2026-02-02 11:40:00", "in a minute");
        check(NoticeStatus::Queued, None, shut, "channel ops is paused", "resume it");
        check(NoticeStatus::Sending, None, MAIL, "being sent", "in a minute");
        check(NoticeStatus::Retrying, Some("throttled"), MAIL, "too many requests", "in a minute");
        check(NoticeStatus::Sent, None, MAIL, "mail server accepted it", "spam folder");
        check(NoticeStatus::Sent, None, Known::default(), "ops accepted it", "Look there");
        check(NoticeStatus::Failed, Some("no_address"), MAIL, "no mail address", "Enter a mail address");
        check(NoticeStatus::Failed, Some("something_new"), MAIL, "something_new", "Correct the cause");
        check(NoticeStatus::Failed, None, MAIL, "no stated reason", "Correct the cause");
        check(
            NoticeStatus::Uncertain,
            Some("reply_lost"),
            MAIL,
            "Unknown whether it arrived",
            "Ask whether it arrived",
        );
        check(NoticeStatus::Suppressed, Some("complaint"), listed, "reported as spam", "only if they ask");
        check(NoticeStatus::Suppressed, Some("bounce"), MAIL, "suppression list", "released meanwhile");
        check(NoticeStatus::Off, Some("notifications_off"), MAIL, "switched off", "Switch notifications on");
        check(NoticeStatus::Bounced, Some("bounced"), MAIL, "bounced", "does not work");
        check(NoticeStatus::Complained, None, MAIL, "reported as spam", "without asking");
    }

    #[test]
    fn g5_no_status_is_left_without_words() {
        for status in NoticeStatus::ALL {
            for (is_shut, is_suppressed) in [(false, false), (true, false), (false, true), (true, true)] {
                check(status, None, Known { is_mail: true, is_shut, is_suppressed }, "", "");
            }
        }
    }
}
