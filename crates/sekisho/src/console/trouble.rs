//! Every "no" of the console, as a page: what happened, in both languages, and what to do. The one `match` from refusals
//! to statuses stands here.

use askama::Template;
use axum::body::Body;
use http::{Response, StatusCode};
use sekisho_core::notification::Language;
use sekisho_core::user::Rank;

use super::page::html_answer;
use super::{ROOT, assets};
use crate::transition::Refusal;

/// What is looked for by name or id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
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
}

impl Thing {
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
    Unknown(Thing, String),
    Conflict(String),
    Later(String),
    Store(String),
    /// A page of ours could not be made.
    Broken(String),
}

impl Trouble {
    pub const fn wrong(detail: String) -> Self {
        Self::Wrong(detail)
    }

    pub fn unknown(thing: Thing, id: impl Into<String>) -> Self {
        Self::Unknown(thing, id.into())
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
            Self::Later(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// What happened, and what to do.
    fn words(&self, lang: Language) -> (&'static str, String) {
        let (en, ja, detail) = match self {
            Self::Nobody => (
                ("You are not logged in any more", "Log in again. What you sent was not carried out."),
                (
                    "ログインの期限が切れました",
                    "もう一度ログインしてください。送信した操作は実行されていません。",
                ),
                None,
            ),
            Self::Rank(rank) => (
                ("This is not for you", "Your account may not do this. Ask an admin for the rank it needs."),
                (
                    "権限がありません",
                    "このアカウントでは実行できません。必要な権限を管理者に依頼してください。",
                ),
                Some(rank.name().to_owned()),
            ),
            Self::ForeignForm => (
                (
                    "This form is not ours, or too old",
                    "Nothing was done. Go back, load the page again and repeat it.",
                ),
                (
                    "無効なフォームです",
                    "何も実行されていません。前のページを再読み込みして、もう一度操作してください。",
                ),
                None,
            ),
            Self::Wrong(detail) => (
                ("That can't be understood", "Change what was entered, and try again."),
                ("入力内容を解釈できません", "入力内容を直して、もう一度お試しください。"),
                Some(detail.clone()),
            ),
            Self::Missing(detail) => (
                ("There is no such thing", "It may be gone, or the address has a slip in it."),
                ("見つかりません", "削除されたか、アドレスが間違っている可能性があります。"),
                Some(detail.clone()),
            ),
            Self::Unknown(thing, id) => {
                let (en, ja, _) = thing.words();
                let cure = match lang {
                    Language::En => {
                        format!("There is no {en} {id}. It may be gone, or the address has a slip in it.")
                    }
                    Language::Ja => format!(
                        "{ja} {id} はありません。削除されたか、アドレスが間違っている可能性があります。"
                    ),
                };
                return (lang.t("Not found", "見つかりません"), cure);
            }
            Self::Conflict(detail) => (
                ("It contradicts what is there", "Nothing was changed. Look again at how things stand."),
                ("現在の状態と矛盾します", "何も変更されていません。現在の状態を確認してください。"),
                Some(detail.clone()),
            ),
            Self::Later(detail) => (
                ("Not now", "Wait a little, then try again."),
                ("今は実行できません", "しばらく待ってから、もう一度お試しください。"),
                Some(detail.clone()),
            ),
            Self::Store(_) => (
                (
                    "The store does not answer",
                    "Nothing is lost. Try again in a moment; the server's log says more.",
                ),
                (
                    "データベースが応答しません",
                    "データは失われていません。しばらくしてから再度お試しください。詳細はサーバーのログにあります。",
                ),
                None,
            ),
            Self::Broken(_) => (
                ("This page could not be made", "That is our mistake; the server's log says more."),
                ("ページを表示できません", "プログラムの不具合です。詳細はサーバーのログにあります。"),
                None,
            ),
        };
        let (title, cure) = if lang == Language::En { en } else { ja };
        (title, detail.map_or_else(|| cure.to_owned(), |detail| format!("{cure} ({detail})")))
    }

    /// One line, for the page where an act was tried.
    pub fn line(&self, lang: Language) -> String {
        let (title, text) = self.words(lang);
        format!("{title}{} {text}", lang.t(".", "。"))
    }

    pub fn into_response(self, lang: Language) -> Response<Body> {
        match &self {
            Self::Store(error) => tracing::error!(error, "the console could not reach the store"),
            Self::Broken(error) => tracing::error!(error, "a page of the console could not be made"),
            _ => {}
        }
        let (title, text) = self.words(lang);
        let list = match self {
            Self::Unknown(thing, _) => Some(thing.words().2).filter(|list| *list != ROOT),
            _ => None,
        };
        let page = TroublePage { lang, title, text, list, root: ROOT, style: assets::address("console.css") };
        html_answer(self.status(), page.render().unwrap_or_else(|_| title.to_owned()), lang)
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
            Refusal::Wrong(_) | Refusal::Fields(_) | Refusal::Foreign(_) => Self::Wrong(refusal.to_string()),
            Refusal::Missing(detail) => Self::Missing(detail),
            Refusal::Conflict(detail) => Self::Conflict(detail),
            Refusal::Later { detail, .. } => Self::Later(detail),
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<sekisho_store::Error> for Trouble {
    fn from(error: sekisho_store::Error) -> Self {
        Self::Store(error.chain())
    }
}
