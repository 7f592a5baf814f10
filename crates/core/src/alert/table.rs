//! Every alert: what it is about, what its figures are taken from, how long it must be so, and what people are told to do.
//! Shipped rules for others are made from the same table.

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

/// One alert. Its threshold is a setting of `[alerts]` with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlertRule {
    pub name: AlertName,
    pub subject: AlertSubject,
    /// Windows in milliseconds, each with its least number of samples; any of them is enough. Without one it is about now.
    pub windows: &'static [(i64, u64)],
    /// True for so long in a row before it fires.
    pub hold_ms: i64,
    /// Clear for so long before it is over.
    pub clear_ms: i64,
    /// Of a thousandth of the threshold: below this it is clear.
    pub clear_below: u64,
    /// When it fires, in English and in Japanese; `{}` stands for the threshold.
    pub fires: Words,
    /// A line that says what is wrong; `{}` stands for the subject.
    pub title: Words,
    /// What to do.
    pub advice: Words,
    /// Where it is looked into.
    pub page: &'static str,
}

/// In English, and in Japanese.
pub type Words = (&'static str, &'static str);

/// What a subject names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertSubject {
    /// It has none: it is about the whole installation.
    Installation,
    Lane,
    /// `inside`, or the lane of a route.
    Worker,
    Source,
    /// `SOURCE/TYPE`.
    EventType,
    /// `settled` or `delivered`.
    Stage,
    Channel,
}

macro_rules! alert_names {
    ($($variant:ident $name:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum AlertName {
            $($variant,)*
        }

        impl AlertName {
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

alert_names! {
    PublishFailures "publish_failures",
    WorkerErrors "worker_errors",
    DeadLetters "dead_letters",
    DeadLettersOld "dead_letters_old",
    Slow "slow",
    Rejections "rejections",
    WrongSecret "wrong_secret",
    Unusual "unusual",
    Silent "silent",
    Reconciliation "reconciliation",
    MailFailures "mail_failures",
    Late "late",
    Stalled "stalled",
    DestinationDown "destination_down",
}

impl AlertName {
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|alert| alert.name() == text)
    }

    pub fn rule(self) -> &'static AlertRule {
        ALERTS.iter().find(|rule| rule.name == self).expect("the table has every alert")
    }
}

pub const ALERTS: [AlertRule; AlertName::ALL.len()] = [
    AlertRule {
        name: AlertName::PublishFailures,
        subject: AlertSubject::Installation,
        windows: &[(5 * MINUTE, 100), (HOUR, 20)],
        hold_ms: MINUTE,
        clear_ms: 10 * MINUTE,
        clear_below: 500,
        fires: (
            "more than {} of events could not be stored when they came",
            "受信イベントの保存失敗が {} を超えたとき",
        ),
        title: ("Events could not be stored when they came", "受信したイベントを保存できませんでした"),
        advice: (
            "Providers send them again. Look at the database: is it reachable, is its disk full, is it slow? See /health/ready.",
            "決済事業者は再送します。データベースに接続できるか、ディスクの空き、応答の遅れを確認してください（/health/ready）。",
        ),
        page: "/console",
    },
    AlertRule {
        name: AlertName::WorkerErrors,
        subject: AlertSubject::Worker,
        windows: &[(5 * MINUTE, 200), (HOUR, 50)],
        hold_ms: 2 * MINUTE,
        clear_ms: 10 * MINUTE,
        clear_below: 500,
        fires: ("more than {} of runs failed", "処理の失敗が {} を超えたとき"),
        title: ("Too much work fails: {}", "処理の失敗が増えています: {}"),
        advice: (
            "Failed runs are retried. Look at the answers of the destination, or at the log if the failures are inside.",
            "失敗した処理は再試行されます。配送先の応答を、内部の失敗ならログを確認してください。",
        ),
        page: "/console/events?status=received",
    },
    AlertRule {
        name: AlertName::DeadLetters,
        subject: AlertSubject::Lane,
        windows: &[],
        hold_ms: 0,
        clear_ms: 0,
        clear_below: 1_000,
        fires: ("more than {} dead letters wait", "デッドレターが {} 件を超えたとき"),
        title: ("Dead letters wait: {}", "デッドレターがあります: {}"),
        advice: (
            "Read why they failed, correct the cause, then retry or discard them (`sekisho dead list`).",
            "失敗の理由を確認し、原因を直してから、再実行または破棄してください（`sekisho dead list`）。",
        ),
        page: "/console/dead",
    },
    AlertRule {
        name: AlertName::DeadLettersOld,
        subject: AlertSubject::Installation,
        windows: &[],
        hold_ms: 0,
        clear_ms: 0,
        clear_below: 1_000,
        fires: ("a dead letter is older than {}", "デッドレターが {} より古いとき"),
        title: ("A dead letter has waited for too long", "古いデッドレターが残っています"),
        advice: (
            "Decide about the oldest dead letters: retry or discard them (`sekisho dead list`).",
            "古いデッドレターを再実行するか、破棄するかを決めてください（`sekisho dead list`）。",
        ),
        page: "/console/dead",
    },
    AlertRule {
        name: AlertName::Slow,
        subject: AlertSubject::Stage,
        windows: &[(15 * MINUTE, 20)],
        hold_ms: 2 * MINUTE,
        clear_ms: 15 * MINUTE,
        clear_below: 800,
        fires: (
            "5 of 100 events take longer than {} from receipt",
            "受信からの時間が {} を超えるイベントが5％を超えたとき",
        ),
        title: ("Events take too long: {}", "処理に時間がかかっています: {}"),
        advice: (
            "Look for a destination that answers slowly, work that waits, or a slow database.",
            "応答の遅い配送先、滞留、データベースの遅れを確認してください。",
        ),
        page: "/console",
    },
    AlertRule {
        name: AlertName::Rejections,
        subject: AlertSubject::Source,
        windows: &[(5 * MINUTE, 0)],
        hold_ms: MINUTE,
        clear_ms: 15 * MINUTE,
        clear_below: 500,
        fires: (
            "{} or more requests are refused, five times the usual",
            "拒否したリクエストが {} 件以上で、普段の5倍を超えたとき",
        ),
        title: ("Many requests are refused: {}", "拒否したリクエストが急増しています: {}"),
        advice: (
            "See from where and why they are refused. If the provider sends them, compare the secret with its dashboard.",
            "送信元と拒否の理由を確認してください。事業者からのものなら、署名の秘密鍵を管理画面と照合してください。",
        ),
        page: "/console/rejections",
    },
    AlertRule {
        name: AlertName::WrongSecret,
        subject: AlertSubject::Source,
        windows: &[(15 * MINUTE, 0)],
        hold_ms: 0,
        clear_ms: 0,
        clear_below: 1_000,
        fires: (
            "{} or more signatures are wrong and none is right",
            "署名の誤りが {} 件以上で、正しいものがないとき",
        ),
        title: (
            "Every request is refused: the secret is probably another endpoint's: {}",
            "すべてのリクエストを拒否しています（秘密鍵の誤りの可能性）: {}",
        ),
        advice: (
            "Copy the signing secret of this endpoint from the provider's dashboard into `secrets` of the source.",
            "事業者の管理画面から、このエンドポイントの署名シークレットを送信元の `secrets` に設定してください。",
        ),
        page: "/console/rejections",
    },
    AlertRule {
        name: AlertName::Unusual,
        subject: AlertSubject::EventType,
        windows: &[(HOUR, 0)],
        hold_ms: 0,
        clear_ms: 0,
        clear_below: 1_000,
        fires: ("an hour's count is {} from the usual", "1時間の件数が普段から {} 以上離れたとき"),
        title: ("An unusual number of events: {}", "イベントの件数が普段と異なります: {}"),
        advice: (
            "Compare with the provider's dashboard: was there a sale or a campaign, or do events get lost?",
            "事業者の管理画面と比べ、催しなどの理由があるか、届いていないイベントがないかを確認してください。",
        ),
        page: "/console/events",
    },
    AlertRule {
        name: AlertName::Silent,
        subject: AlertSubject::Source,
        windows: &[],
        hold_ms: 0,
        clear_ms: 0,
        clear_below: 1_000,
        fires: (
            "no event comes for longer than chance explains ({})",
            "偶然とは考えにくいほど受信がないとき（{}）",
        ),
        title: ("No events arrive from a source: {}", "イベントが届いていません: {}"),
        advice: (
            "Check the webhook endpoint at the provider: is it enabled, is its address right, what does it log?",
            "事業者側のWebhook設定（有効か、URLが正しいか、送信ログ）を確認してください。",
        ),
        page: "/console/sources",
    },
    AlertRule {
        name: AlertName::Reconciliation,
        subject: AlertSubject::Source,
        windows: &[],
        hold_ms: 0,
        clear_ms: 0,
        clear_below: 1_000,
        fires: (
            "no good run for {} intervals, or a gap stays open",
            "照合が {} 回分成功していないか、差が残っているとき",
        ),
        title: (
            "A source could not be compared with its provider: {}",
            "決済事業者との照合ができていません: {}",
        ),
        advice: (
            "Read why the last run broke off (`sekisho reconcile`), and whether the key of the source may read lists.",
            "最後の照合が中断した理由（`sekisho reconcile`）と、API キーの権限を確認してください。",
        ),
        page: "/console/reconciliation",
    },
    AlertRule {
        name: AlertName::MailFailures,
        subject: AlertSubject::Channel,
        windows: &[(HOUR, 20)],
        hold_ms: 2 * MINUTE,
        clear_ms: HOUR,
        clear_below: 500,
        fires: (
            "more than {} of mails fail, or the last 5",
            "メールの失敗が {} を超えたか、直近5件が失敗したとき",
        ),
        title: ("Mails fail: {}", "メールを送信できていません: {}"),
        advice: (
            "Read what the mail server says on the page of a failed notification; correct it, then resend them.",
            "失敗した通知の画面でメールサーバーの応答を確認し、直してから再送してください。",
        ),
        page: "/console/notices?status=failed",
    },
    AlertRule {
        name: AlertName::Late,
        subject: AlertSubject::Lane,
        windows: &[],
        hold_ms: 2 * MINUTE,
        clear_ms: 0,
        clear_below: 200,
        fires: ("work has been due for longer than {}", "期限を {} 過ぎた処理があるとき"),
        title: ("Work waits for too long: {}", "処理が滞留しています: {}"),
        advice: (
            "Is a node with the role worker running? Raise the concurrency or the rate of the route, or add a node.",
            "worker の役割を持つノードが動いているか確認し、同時実行数やノードを増やしてください。",
        ),
        page: "/console",
    },
    AlertRule {
        name: AlertName::Stalled,
        subject: AlertSubject::Lane,
        windows: &[(10 * MINUTE, 0)],
        hold_ms: 0,
        clear_ms: 0,
        clear_below: 1_000,
        fires: (
            "work runs and waits, and none has ended for {}",
            "{} の間、実行中の処理が1件も終わらないとき",
        ),
        title: ("Work runs and never ends: {}", "実行中の処理が終わりません: {}"),
        advice: (
            "The destination takes calls and does not answer. Restart it, or lower `timeout` of the route.",
            "配送先が応答していません。配送先を再起動するか、経路の `timeout` を短くしてください。",
        ),
        page: "/console",
    },
    AlertRule {
        name: AlertName::DestinationDown,
        subject: AlertSubject::Lane,
        windows: &[],
        hold_ms: 0,
        clear_ms: 0,
        clear_below: 1_000,
        fires: ("a breaker has been open for longer than {}", "ブレーカーが {} を超えて開いているとき"),
        title: ("A destination is down: {}", "配送先に接続できません: {}"),
        advice: (
            "Its messages wait and are delivered when it answers again. Start it, or correct its address.",
            "メッセージは待機し、応答が戻りしだい配送されます。配送先を起動するか、URLを直してください。",
        ),
        page: "/console/sources",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h4_the_table_has_every_alert_once_with_words_in_both_languages() {
        let names = ALERTS.map(|rule| rule.name);
        assert_eq!(names, AlertName::ALL);
        for rule in ALERTS {
            for (en, ja) in [rule.fires, rule.title, rule.advice] {
                assert!(en.is_ascii() && !ja.is_ascii(), "{}", rule.name.name());
            }
            assert!(rule.fires.0.contains("{}") && rule.fires.1.contains("{}"), "{}", rule.name.name());
            let has_subject = rule.subject != AlertSubject::Installation;
            assert_eq!(rule.title.0.contains("{}"), has_subject, "{}", rule.name.name());
            assert!(rule.page.starts_with("/console") && rule.clear_below <= 1_000);
            assert_eq!(AlertName::parse(rule.name.name()).map(AlertName::rule), Some(&rule));
        }
    }
}
