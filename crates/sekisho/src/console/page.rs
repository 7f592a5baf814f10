//! One page: what stands in the table, what its answer is made from, and what an answer can be.

use std::pin::Pin;
use std::sync::Arc;

use askama::Template;
use axum::body::Body;
use axum::routing::MethodFilter;
use http::{HeaderValue, Response, StatusCode, header};
use sekisho_core::calendar::Zone;
use sekisho_core::language::Language;
use sekisho_core::state::Kind;
use sekisho_core::user::Rank;
use sekisho_core::{Seq, Time};
use sekisho_store::StateFilter;

use super::frame::Frame;
use super::trouble::{Resource, Trouble};
use super::waiting::Waiting;
use super::{Console, ROOT, session};
use crate::acts::{Actor, Refusal, SessionTicket};
use crate::view::show;

pub struct Page {
    pub method: PageMethod,
    pub path: &'static str,
    pub needs: PageNeeds,
    pub run: fn(Visit) -> RunningPage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageMethod {
    Get,
    /// An act: its form must carry the token of our own page.
    Post,
}

impl PageMethod {
    pub(super) const fn filter(self) -> MethodFilter {
        match self {
            Self::Get => MethodFilter::GET,
            Self::Post => MethodFilter::POST,
        }
    }
}

/// Whom a page is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageNeeds {
    /// Nothing is asked, not even who it is: what pages are made with.
    Nothing,
    /// Anybody, known or not: the way in.
    Nobody,
    Rank(Rank),
}

/// How long work that is done for one at a time may take; then it is worth asking again.
pub const BUSY_SECONDS: u64 = 10;

pub const VIEWER: PageNeeds = PageNeeds::Rank(Rank::Viewer);
pub const OPERATOR: PageNeeds = PageNeeds::Rank(Rank::Operator);
pub const ADMIN: PageNeeds = PageNeeds::Rank(Rank::Admin);

pub type Answer = Result<Reply, Trouble>;
pub type RunningPage = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Somebody at the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    pub name: String,
    pub rank: Rank,
    /// The hash of their session's token; none for whom a proxy vouches.
    pub session: Option<String>,
}

impl Who {
    pub fn nobody() -> Self {
        Self { name: String::new(), rank: Rank::Viewer, session: None }
    }

    pub fn is_somebody(&self) -> bool {
        !self.name.is_empty()
    }
}

/// What is said once, on the page after an act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flash {
    pub is_good: bool,
    pub text: String,
}

/// One request, admitted and read.
pub struct Visit {
    pub console: Arc<Console>,
    pub who: Who,
    pub lang: Language,
    /// By whose clock times are read and shown: as was chosen, or else the office's.
    pub zone: Zone,
    pub is_zone_chosen: bool,
    /// What stands for the braces of the path.
    pub id: String,
    /// Path and query, to come back to.
    pub here: String,
    pub params: Vec<(String, String)>,
    pub form: Vec<(String, String)>,
    pub csrf: String,
    pub flash: Option<Flash>,
    /// What its browser was given when it logged in before.
    pub device: Option<String>,
    pub agent: String,
    pub last_event_id: Option<String>,
    pub peer: String,
    /// What waits for a person, for the menu.
    pub waiting: Waiting,
    pub at: Time,
}

impl Visit {
    /// A parameter after the `?`; an empty one is none.
    pub fn param(&self, name: &str) -> Option<&str> {
        named(&self.params, name)
    }

    /// A field of the form; an empty one is none.
    pub fn field(&self, name: &str) -> Option<&str> {
        named(&self.form, name)
    }

    /// The same, to keep.
    pub fn text(&self, name: &str) -> Option<String> {
        self.param(name).map(str::to_owned)
    }

    /// Only live, only test, or both.
    pub fn livemode(&self) -> Option<bool> {
        match self.param("mode") {
            Some("live") => Some(true),
            Some("test") => Some(false),
            _ => None,
        }
    }

    /// The cursor of a list.
    pub fn before(&self) -> Result<Option<Seq>, Trouble> {
        let parse = |text: &str| text.parse().map_err(|error| Trouble::wrong(format!("before: {error}")));
        self.param("before").map(parse).transpose()
    }

    /// The id in the path, of such a resource.
    pub fn seq(&self, resource: Resource) -> Result<Seq, Trouble> {
        self.id.parse().map_err(|_| Trouble::unknown(resource, &self.id))
    }

    /// For work that reads everything: one at a time, and the next is told so.
    pub fn alone(&self) -> Result<tokio::sync::MutexGuard<'_, ()>, Trouble> {
        let busy = || {
            let text =
                self.lang.t("another user is running a large request", "ほかの人が重い処理を実行中です");
            Trouble::Later { detail: text.to_owned(), seconds: BUSY_SECONDS }
        };
        self.console.alone.try_lock().map_err(|_| busy())
    }

    pub fn actor(&self) -> Actor<'_> {
        Actor { name: &self.who.name, role: self.who.rank.role(), tenant: None, at: self.at }
    }

    /// After an act: back to where it was asked for, with what came of it.
    pub fn after<T>(&self, home: &str, done: Result<T, Refusal>, (en, ja): (&str, &str)) -> Answer {
        match done {
            Ok(_) => Reply::done(home, self.lang.t(en, ja)),
            Err(refusal) => self.refused(home, refusal),
        }
    }

    /// The same, when nothing came of it.
    pub fn refused(&self, home: &str, refusal: Refusal) -> Answer {
        match Trouble::from(refusal) {
            trouble @ Trouble::Store(_) => Err(trouble),
            trouble => Reply::failed(home, trouble.line(self.lang)),
        }
    }

    /// What a list of things is narrowed to. `any` stands for every reason that a person should look at one: an empty
    /// field is no filter here.
    pub fn things(&self, kind: Kind, statuses: &[&str], limit: usize) -> Result<StateFilter, Trouble> {
        let status = self.text("status");
        if status.as_deref().is_some_and(|status| !statuses.contains(&status)) {
            return Err(Trouble::wrong(format!("status: expected one of {}", statuses.join(", "))));
        }
        Ok(StateFilter {
            status,
            tenant: self.text("tenant"),
            livemode: self.livemode(),
            attention: self.text("attention").map(|word| if word == "any" { String::new() } else { word }),
            before: self.text("before"),
            ..StateFilter::all(kind, limit)
        })
    }

    /// What every page is framed by; `section` is its place in the menu.
    pub fn frame(&self, section: &'static str, title: impl Into<String>) -> Frame {
        Frame::new(self, section, title.into())
    }
}

fn named<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim());
    found.filter(|value| !value.is_empty())
}

/// A time that somebody typed under this name, by the house's clock.
pub fn time(name: &str, typed: Option<&str>, zone: &Zone) -> Result<Option<Time>, Trouble> {
    let Some(text) = typed else { return Ok(None) };
    let wrong = || Trouble::wrong(format!("{name}: expected a time such as 2026-02-02T11:40, not {text:?}"));
    show::moment(text, zone).map(Some).ok_or_else(wrong)
}

/// Names and values of a query or a form.
pub fn pairs(bytes: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(bytes).into_owned().collect()
}

pub enum Reply {
    Page(StatusCode, String),
    /// Elsewhere, and what is said there.
    Go {
        to: String,
        flash: Option<Flash>,
    },
    /// The same, as somebody who is known from then on.
    Known {
        to: String,
        ticket: SessionTicket,
    },
    /// The same, as nobody.
    Left {
        to: String,
    },
    Language {
        to: String,
        lang: Language,
    },
    Zone {
        to: String,
        zone: Zone,
    },
    /// Whatever else: files, streams.
    Other(Response<Body>),
}

impl Reply {
    pub fn page(template: &impl Template) -> Answer {
        let html = template.render().map_err(|error| Trouble::Broken(error.to_string()))?;
        Ok(Self::Page(StatusCode::OK, html))
    }

    /// After an act that went well.
    pub fn done(to: impl Into<String>, text: impl Into<String>) -> Answer {
        Ok(Self::Go { to: to.into(), flash: Some(Flash { is_good: true, text: text.into() }) })
    }

    /// After an act that did not.
    pub fn failed(to: impl Into<String>, text: impl Into<String>) -> Answer {
        Ok(Self::Go { to: to.into(), flash: Some(Flash { is_good: false, text: text.into() }) })
    }

    /// To the door, and back to where somebody wanted to go.
    pub fn enter(here: &str) -> Self {
        let to: String = form_urlencoded::byte_serialize(here.as_bytes()).collect();
        Self::Go { to: format!("{ROOT}/login?to={to}"), flash: None }
    }

    pub fn into_response(self, lang: Language, is_secure: bool) -> Response<Body> {
        match self {
            Self::Page(status, html) => html_answer(status, html, lang),
            Self::Go { to, flash } => {
                let mut answer = elsewhere(&to);
                session::set_flash(answer.headers_mut(), flash.as_ref(), is_secure);
                answer
            }
            Self::Known { to, ticket } => {
                let mut answer = elsewhere(&to);
                session::set_token(answer.headers_mut(), Some(&ticket.token), is_secure);
                session::set_device(answer.headers_mut(), &ticket.device, is_secure);
                answer
            }
            Self::Left { to } => {
                let mut answer = elsewhere(&to);
                session::set_token(answer.headers_mut(), None, is_secure);
                answer
            }
            Self::Language { to, lang } => {
                let mut answer = elsewhere(&to);
                session::set_language(answer.headers_mut(), lang, is_secure);
                answer
            }
            Self::Zone { to, zone } => {
                let mut answer = elsewhere(&to);
                session::set_zone(answer.headers_mut(), &zone, is_secure);
                answer
            }
            Self::Other(answer) => answer,
        }
    }
}

pub const HTML: &str = "text/html; charset=utf-8";

pub fn html_answer(status: StatusCode, html: String, lang: Language) -> Response<Body> {
    let mut answer = Response::new(Body::from(html));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(HTML));
    headers.insert(header::CONTENT_LANGUAGE, HeaderValue::from_static(lang.name()));
    headers.insert(header::VARY, HeaderValue::from_static("cookie, accept-language"));
    answer
}

fn elsewhere(to: &str) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::SEE_OTHER;
    let to = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static(ROOT));
    answer.headers_mut().insert(header::LOCATION, to);
    answer
}

/// Only ever within the console, whatever the address says.
pub fn within(to: Option<&str>) -> String {
    let is_ours = |to: &&str| {
        let rest = to.strip_prefix(ROOT);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']))
            && to.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
    };
    to.filter(is_ours).unwrap_or(ROOT).to_owned()
}
