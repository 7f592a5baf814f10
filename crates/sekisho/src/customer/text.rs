//! The sentences of the pages. Those about failure, promise and policy are what customers were promised, word for word; only
//! the hours and the word for the day follow the settings.

use sekisho_core::fulfilment::FulfilmentStatus;
use sekisho_core::language::Language;
use sekisho_core::reservation::ReservationStatus;

use crate::config::Pages;

const HOUR_MS: i64 = 3_600_000;

pub const FAILED: (&str, &str) = (
    "An error occurred while your payment was being processed. Please try again.",
    "決済処理中にエラーが発生しました。再度お試しください。",
);
pub const RETRY: (&str, &str) = ("Try again", "再試行");
pub const AFTER_THREE: (&str, &str) = ("Please contact us", "お問い合わせください");
pub const CONTACT: (&str, &str) = ("Contact us", "お問い合わせ");
pub const POLICY: (&str, &str) = ("Refund policy", "返金ポリシー");

/// What happens when what was paid for could not be made. `within_ms` is the delay of the rule that refunds.
pub fn promise(lang: Language, within_ms: i64) -> String {
    let hours = hours(within_ms);
    match lang {
        Language::En => format!(
            "There was a problem making your video. If it is not solved within {hours} hours, you will be refunded \
             automatically. If it is urgent, please contact us."
        ),
        Language::Ja => format!(
            "動画の生成に問題が発生しました。{hours}時間以内に解決しない場合、自動的に返金されます。お急ぎの場合はお問い合わせください。"
        ),
    }
}

/// The same where no money goes back by itself.
pub const fn problem(lang: Language) -> &'static str {
    lang.t(
        "There was a problem making your video. We are looking into it. If it is urgent, please contact us.",
        "動画の生成に問題が発生しました。現在対応しています。お急ぎの場合はお問い合わせください。",
    )
}

/// The three sentences of the policy.
pub fn policy(lang: Language, pages: &Pages, cancel_until_ms: i64) -> [String; 3] {
    let hours = hours(cancel_until_ms);
    match lang {
        Language::En => [
            format!(
                "You can cancel and get your money back until {hours} hours before {}.",
                pages.date_word_en
            ),
            "If your video could not be made because of a fault of our system, we refund the full amount."
                .to_owned(),
            "Refunds may take 3 to 5 business days.".to_owned(),
        ],
        Language::Ja => [
            format!("{}の{hours}時間前までキャンセル・返金可能です", pages.date_word),
            "システム障害により動画生成ができなかった場合、全額返金いたします".to_owned(),
            "返金処理には3〜5営業日かかる場合があります".to_owned(),
        ],
    }
}

/// Whole hours, rounded down: nobody is promised more than is kept.
fn hours(ms: i64) -> i64 {
    ms / HOUR_MS
}

pub const fn reservation(status: ReservationStatus, lang: Language) -> &'static str {
    match status {
        ReservationStatus::Hold => lang.t("On hold", "仮押さえ中"),
        ReservationStatus::Confirmed => lang.t("Confirmed", "予約確定"),
        ReservationStatus::Expired => lang.t("Expired", "期限切れ"),
        ReservationStatus::Cancelled => lang.t("Cancelled", "キャンセル済み"),
    }
}

pub const fn fulfilment(status: FulfilmentStatus, lang: Language) -> &'static str {
    match status {
        FulfilmentStatus::Waiting => lang.t("Waiting", "生成待ち"),
        FulfilmentStatus::Processing => lang.t("Being made", "生成中"),
        FulfilmentStatus::Done => lang.t("Ready", "完成"),
        FulfilmentStatus::Failed => lang.t("Could not be made", "生成失敗"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn f7_f8_the_sentences_are_those_that_were_promised() {
        let pages = Config::default().pages;
        let (ja, en) = (Language::Ja, Language::En);
        assert_eq!(
            promise(ja, 24 * HOUR_MS),
            "動画の生成に問題が発生しました。24時間以内に解決しない場合、自動的に返金されます。お急ぎの場合はお問い合わせください。"
        );
        assert_eq!(
            promise(en, 24 * HOUR_MS),
            "There was a problem making your video. If it is not solved within 24 hours, you will be refunded automatically. \
             If it is urgent, please contact us."
        );
        assert_eq!(
            policy(ja, &pages, 48 * HOUR_MS),
            [
                "投影予定日の48時間前までキャンセル・返金可能です",
                "システム障害により動画生成ができなかった場合、全額返金いたします",
                "返金処理には3〜5営業日かかる場合があります",
            ]
        );
        assert_eq!(
            policy(en, &pages, 48 * HOUR_MS)[0],
            "You can cancel and get your money back until 48 hours before the date of projection."
        );
        assert!(policy(ja, &pages, 72 * HOUR_MS)[0].contains("72時間前"));
        assert_eq!(fulfilment(FulfilmentStatus::Failed, ja), "生成失敗");
    }
}
