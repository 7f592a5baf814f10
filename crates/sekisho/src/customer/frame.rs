//! What every page of a customer has around it: whose shop it is, the language, the way to the policy; and what an answer can be.

use askama::Template;
use axum::body::Body;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header};
use sekisho_core::Time;
use sekisho_core::language::Language;

use super::{Customers, Trouble, Visit};

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// When it is worth asking again, for those who asked too often.
const AGAIN_SECONDS: u64 = 60;

/// What every template is handed.
pub struct CustomerFrame {
    pub lang: Language,
    pub title: String,
    pub shop: String,
    /// Of the shop itself.
    pub home: Option<String>,
    /// The page in the other language.
    pub other: String,
    pub policy: String,
}

impl CustomerFrame {
    /// Around a page of an order; `page` is the last part of its address.
    pub fn of(visit: &Visit, page: &str, title: &str) -> Self {
        let mut frame = Self::lone(&visit.shop, visit.lang, title);
        frame.other = format!("{}?lang={}", visit.path(page), visit.lang.other().name());
        frame
    }

    /// Around a page of no order.
    pub fn lone(shop: &Customers, lang: Language, title: &str) -> Self {
        let brand = &shop.house.brand;
        Self {
            lang,
            title: title.to_owned(),
            shop: brand.name.clone(),
            home: brand.url.clone(),
            other: format!("?lang={}", lang.other().name()),
            policy: format!("/policy?lang={}", lang.name()),
        }
    }

    pub fn t<'a>(&self, en: &'a str, ja: &'a str) -> &'a str {
        self.lang.t(en, ja)
    }

    /// A sentence that stands in [`super::text`], English first.
    pub fn say(&self, (en, ja): (&'static str, &'static str)) -> &'static str {
        self.lang.t(en, ja)
    }
}

pub enum Reply {
    Page(StatusCode, String),
    /// After an act: there, by GET.
    Go(String),
}

impl Reply {
    pub fn page(template: &impl Template) -> Self {
        Self::with(StatusCode::OK, template)
    }

    pub fn with(status: StatusCode, template: &impl Template) -> Self {
        Self::Page(status, template.render().expect("a template that compiled fills in"))
    }

    pub fn into_response(self) -> Response<Body> {
        match self {
            Self::Page(status, text) => {
                let mut answer = Response::new(Body::from(text));
                *answer.status_mut() = status;
                answer.headers_mut().insert(header::CONTENT_TYPE, HTML);
                answer
            }
            Self::Go(there) => {
                let mut answer = Response::new(Body::empty());
                *answer.status_mut() = StatusCode::SEE_OTHER;
                let there = HeaderValue::from_str(&there).expect("addresses of ours are ASCII");
                answer.headers_mut().insert(header::LOCATION, there);
                answer
            }
        }
    }
}

#[derive(Template)]
#[template(path = "customer/trouble.html")]
struct TroublePage<'a> {
    f: &'a CustomerFrame,
    heading: &'a str,
    text: &'a str,
}

pub fn trouble(frame: &CustomerFrame, trouble: &Trouble) -> Response<Body> {
    let (heading, text) = match trouble {
        Trouble::Unknown => (
            frame.t("This page does not exist", "ページが見つかりません"),
            frame.t(
                "The link may be incomplete or too old. Please open it again from your e-mail, or ask the shop for a new one.",
                "リンクが途中で切れているか、有効期限が過ぎています。メールのリンクをもう一度開くか、お店にお問い合わせください。",
            ),
        ),
        Trouble::TooMany => (
            frame.t("Too many requests", "アクセスが集中しています"),
            frame.t("Please wait a minute and try again.", "1分ほど待ってから、もう一度お試しください。"),
        ),
        Trouble::Refused => (
            frame.t("This could not be read", "送信内容を読み取れませんでした"),
            frame.t(
                "Please go back to the page of your order and try again.",
                "ご注文のページに戻って、もう一度お試しください。",
            ),
        ),
        Trouble::Later => (
            frame.t("We can't answer right now", "ただいま処理できません"),
            frame.t(
                "Nothing was changed. Please try again in a few minutes.",
                "内容は変更されていません。数分後にもう一度お試しください。",
            ),
        ),
    };
    let mut answer = Reply::with(trouble.status(), &TroublePage { f: frame, heading, text }).into_response();
    if matches!(trouble, Trouble::TooMany | Trouble::Later) {
        answer.headers_mut().insert(header::RETRY_AFTER, AGAIN_SECONDS.into());
    }
    answer
}

impl Visit {
    /// The address of one of its pages: `""` is the order itself.
    pub fn path(&self, page: &str) -> String {
        let end = if page.is_empty() { String::new() } else { format!("/{page}") };
        format!("/o/{}{end}", self.token)
    }

    /// The same, in the language that was chosen.
    pub fn link(&self, page: &str) -> String {
        let path = self.path(page);
        if self.is_chosen { format!("{path}?lang={}", self.lang.name()) } else { path }
    }

    pub fn field(&self, name: &str) -> &str {
        named(&self.form, name).unwrap_or_default()
    }

    pub fn param(&self, name: &str) -> Option<&str> {
        named(&self.params, name)
    }

    /// `2026年12月24日 19:00`, by the shop's clock.
    pub fn time(&self, at: Time) -> String {
        let shown = self.shop.zone.clock(at);
        let (date, clock) = shown.split_once(' ').unwrap_or((&shown, ""));
        let clock = clock.get(..5).unwrap_or(clock);
        let parts: Vec<&str> = date.split('-').collect();
        let zone = self.shop.zone.name();
        match (self.lang, &parts[..]) {
            (Language::Ja, [year, month, day]) => {
                let plain = |text: &str| text.trim_start_matches('0').to_owned();
                format!("{year}年{}月{}日 {clock}", plain(month), plain(day))
            }
            (Language::En | Language::Ja, _) => format!("{date} {clock} ({zone})"),
        }
    }
}

fn named<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

pub fn pairs(text: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(text).into_owned().collect()
}

/// The language that was chosen by hand, or else the order's, the browser's, the shop's; and whether it was chosen.
pub fn language(own: Option<Language>, headers: &HeaderMap, uri: &Uri, house: Language) -> (Language, bool) {
    let chosen = pairs(uri.query().unwrap_or_default().as_bytes());
    if let Some(chosen) = named(&chosen, "lang").and_then(|code| code.parse().ok()) {
        return (chosen, true);
    }
    let asked = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
    let mut asked = asked.unwrap_or_default().split(',').filter_map(|one| one.trim().get(..2)?.parse().ok());
    (own.or_else(|| asked.next()).unwrap_or(house), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f8_the_language_is_the_chosen_one_then_the_orders_then_the_browsers_then_the_shops() {
        let speak = |own, accept: &str, uri: &str| {
            let headers = [(header::ACCEPT_LANGUAGE, accept.parse().unwrap())].into_iter().collect();
            language(own, &headers, &uri.parse().unwrap(), Language::Ja)
        };
        assert_eq!(speak(Some(Language::Ja), "en-US", "/o/x?lang=en"), (Language::En, true));
        assert_eq!(speak(Some(Language::En), "ja", "/o/x"), (Language::En, false));
        assert_eq!(speak(None, "fr-FR, en;q=0.8", "/o/x?lang=fr"), (Language::En, false));
        assert_eq!(speak(None, "fr", "/o/x"), (Language::Ja, false));
    }
}
