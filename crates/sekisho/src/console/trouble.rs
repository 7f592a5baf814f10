//! Every "no" of the console, as a page: what happened, in both languages, and what to do. The one `match` from refusals
//! to statuses stands here.

use askama::Template;
use axum::body::Body;
use http::{Response, StatusCode, header};
use sekisho_core::language::Language;
use sekisho_core::user::Rank;

use super::page::html_answer;
use super::{ROOT, assets, japanese};
use crate::acts::Refusal;
use crate::view::words;

/// What is looked for by name or id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Page,
    Event,
    Message,
    DeadLetter,
    Payment,
    Billing,
    Notice,
    Source,
    Route,
    Channel,
    Reservation,
    Slot,
    Fulfilment,
    Case,
    Inquiry,
    /// A payment, reservation or fulfilment.
    Order,
}

impl Resource {
    /// What it is called, and where all of them are.
    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Page => ("page", "ページ", ROOT),
            Self::Event => ("event", "イベント", "/console/events"),
            Self::Message => ("message", "メッセージ", "/console/events"),
            Self::DeadLetter => ("dead letter", "デッドレター", "/console/dead"),
            Self::Payment => ("payment", "決済", "/console/payments"),
            Self::Billing => ("billing of", "定期課金", "/console/billing"),
            Self::Notice => ("notification", "通知", "/console/notices"),
            Self::Source => ("source", "送信元", "/console/sources"),
            Self::Route => ("route", "配送先", "/console/sources"),
            Self::Channel => ("channel", "送信経路", "/console/sources"),
            Self::Reservation => ("reservation", "予約", "/console/reservations"),
            Self::Slot => ("slot", "枠", "/console/slots"),
            Self::Fulfilment => ("fulfilment", "制作", "/console/fulfilments"),
            Self::Case => ("case", "対応案件", "/console/cases"),
            Self::Inquiry => ("inquiry", "お問い合わせ", "/console/inquiries"),
            Self::Order => ("order", "注文", "/console/compensation_rules"),
        }
    }
}

#[derive(Debug)]
pub enum Trouble {
    /// Nobody is known here any more.
    Nobody,
    Rank(Rank),
    ForeignForm,
    Wrong(String),
    Missing(String),
    /// There is none under this name or id.
    Unknown(Resource, String),
    Conflict(String),
    /// In so many seconds.
    Later {
        detail: String,
        seconds: u64,
    },
    Store(String),
    /// A page of ours could not be made.
    Broken(String),
}

impl Trouble {
    pub const fn wrong(detail: String) -> Self {
        Self::Wrong(detail)
    }

    pub fn unknown(resource: Resource, id: impl Into<String>) -> Self {
        Self::Unknown(resource, id.into())
    }

    pub const fn missing(detail: String) -> Self {
        Self::Missing(detail)
    }

    const fn status(&self) -> StatusCode {
        match self {
            Self::Nobody => StatusCode::UNAUTHORIZED,
            Self::Rank(_) | Self::ForeignForm => StatusCode::FORBIDDEN,
            Self::Wrong(_) => StatusCode::BAD_REQUEST,
            Self::Missing(_) | Self::Unknown(..) => StatusCode::NOT_FOUND,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::Later { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// What happened, and what to do.
    fn words(&self, lang: Language) -> (&'static str, String) {
        let (en, ja, detail) = match self {
            Self::Nobody => (
                ("Your session has expired", "Log in again. Your last action was not carried out."),
                (
                    "ログインの期限が切れました",
                    "もう一度ログインしてください。送信した操作は実行されていません。",
                ),
                None,
            ),
            Self::Rank(rank) => (
                ("Forbidden", "Your role does not allow this. Ask an admin for the role named here."),
                (
                    "権限がありません",
                    "このアカウントでは実行できません。必要な権限を管理者に依頼してください。",
                ),
                Some(words::status(rank.name(), lang).1.to_owned()),
            ),
            Self::ForeignForm => (
                (
                    "The form is invalid or expired",
                    "Nothing was changed. Go back, reload the page and repeat it. If it happens every time behind a proxy, set console.url to the console's address.",
                ),
                (
                    "無効なフォームです",
                    "何も実行されていません。前のページを再読み込みして、もう一度操作してください。毎回発生し、プロキシを経由している場合は、設定の console.url にコンソールのURLを記入してください。",
                ),
                None,
            ),
            Self::Wrong(detail) => (
                ("Invalid input", "Correct the input and try again."),
                ("入力内容を解釈できません", "入力内容を直して、もう一度お試しください。"),
                Some(detail.clone()),
            ),
            Self::Missing(detail) => (
                ("Not found", "It may have been deleted, or the address is mistyped."),
                ("見つかりません", "削除されたか、アドレスが間違っている可能性があります。"),
                Some(detail.clone()),
            ),
            Self::Unknown(resource, id) => {
                let (en, ja, _) = resource.words();
                let cure = match lang {
                    Language::En => {
                        format!(
                            "There is no {en} {id}. It may have been deleted, or the address is mistyped."
                        )
                    }
                    Language::Ja => format!(
                        "{ja} {id} はありません。削除されたか、アドレスが間違っている可能性があります。"
                    ),
                };
                return (lang.t("Not found", "見つかりません"), cure);
            }
            Self::Conflict(detail) => (
                ("Conflict", "Nothing was changed. Check the current state."),
                ("現在の状態と矛盾します", "何も変更されていません。現在の状態を確認してください。"),
                Some(detail.clone()),
            ),
            Self::Later { detail, .. } => (
                ("Too many requests", "Wait a moment, then try again."),
                ("今は実行できません", "しばらく待ってから、もう一度お試しください。"),
                Some(detail.clone()),
            ),
            Self::Store(_) => (
                (
                    "The database does not respond",
                    "No data is lost. Try again in a moment; the server's log has details.",
                ),
                (
                    "データベースが応答しません",
                    "データは失われていません。しばらくしてから再度お試しください。詳細はサーバーのログにあります。",
                ),
                None,
            ),
            Self::Broken(_) => (
                ("Internal error", "This is a bug in Sekisho; the server's log has details."),
                ("ページを表示できません", "プログラムの不具合です。詳細はサーバーのログにあります。"),
                None,
            ),
        };
        let (title, cure) = if lang == Language::En { en } else { ja };
        let text = match (detail, lang) {
            (None, _) => cure.to_owned(),
            (Some(detail), Language::En) => format!("{cure} ({detail})"),
            (Some(detail), Language::Ja) => format!("{cure}（{}）", japanese::translated(&detail)),
        };
        (title, text)
    }

    /// One line, for the page where an act was tried.
    pub fn line(&self, lang: Language) -> String {
        let (title, text) = self.words(lang);
        format!("{title}{} {text}", lang.t(".", "。"))
    }

    pub fn into_response(self, lang: Language) -> Response<Body> {
        match &self {
            Self::Store(error) => tracing::error!(
                error_type = "store_unavailable",
                error,
                "console: the database does not respond"
            ),
            Self::Broken(error) => tracing::error!(
                error_type = "template_error",
                error,
                "a page of the console could not be rendered"
            ),
            _ => {}
        }
        let (title, text) = self.words(lang);
        let list = match self {
            Self::Unknown(resource, _) => Some(resource.words().2).filter(|list| *list != ROOT),
            _ => None,
        };
        let page = TroublePage { lang, title, text, list, root: ROOT, style: assets::address("console.css") };
        let html = page.render().unwrap_or_else(|_| title.to_owned());
        let mut answer = html_answer(self.status(), html, lang);
        if let Self::Later { seconds, .. } = self {
            answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        answer
    }
}

#[derive(Template)]
#[template(path = "console/trouble.html")]
struct TroublePage {
    lang: Language,
    title: &'static str,
    text: String,
    /// Where the others of its kind are.
    list: Option<&'static str>,
    root: &'static str,
    style: String,
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid(_) | Refusal::Fields(_) | Refusal::Forbidden(_) => {
                Self::Wrong(refusal.to_string())
            }
            Refusal::Missing(detail) => Self::Missing(detail),
            Refusal::Full { .. } => Self::Conflict(refusal.to_string()),
            Refusal::Conflict(detail) => Self::Conflict(detail),
            Refusal::RetryLater { detail, seconds } => Self::Later { detail, seconds },
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<sekisho_store::Error> for Trouble {
    fn from(error: sekisho_store::Error) -> Self {
        Self::Store(error.chain())
    }
}
