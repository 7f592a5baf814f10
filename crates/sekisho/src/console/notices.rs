//! What was told to whom: why did somebody not get a mail? One box takes whatever is at hand, and the page answers with a
//! sentence and the next step for each of the newest notices.

mod advice;
mod detail;
mod search;

use std::collections::BTreeMap;

use askama::Template;
use sekisho_core::Time;
use sekisho_core::language::Language;
use sekisho_core::mail_address::{MailAddress, mask_text};
use sekisho_core::notification::{Notice, NoticeStatus, NotifyRule, Suppression};
use sekisho_core::queue::Breaker;

use super::frame::Frame;
use super::page::{Answer, OPERATOR, Page, PageMethod, Reply, VIEWER, Visit};
use super::trouble::Trouble;
use crate::queries::NoticeQuery;
use crate::view::{self, words};
use advice::Explanation;
use search::{AskedFor, Directory, FoundPerson};

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/notices",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/notices/{id}",
        needs: VIEWER,
        run: |visit| Box::pin(detail::show(visit)),
    },
    Page {
        method: PageMethod::Get,
        path: "/console/notices/{id}/preview",
        needs: OPERATOR,
        run: |visit| Box::pin(detail::preview(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/notices/{id}/resend",
        needs: OPERATOR,
        run: |visit| Box::pin(detail::resend(visit)),
    },
];

/// Notices on a page, and those of them that are answered in a sentence.
const PAGE: usize = 50;
const ANSWERED: usize = 5;

#[derive(Template)]
#[template(path = "console/notices.html")]
struct NoticesPage {
    f: Frame,
    q: String,
    found: Option<Found>,
    statuses: [NoticeStatus; 11],
    status: String,
    templates: Vec<String>,
    template: String,
    channels: Vec<String>,
    channel: String,
    batch: String,
    rows: Vec<NoticeRow>,
    next: Option<String>,
}

struct NoticeRow {
    id: String,
    status: &'static str,
    reason: String,
    to: String,
    template: String,
    channel: String,
    at: Option<Time>,
    payment: Option<String>,
}

/// The answer to a question.
struct Found {
    about: &'static str,
    /// The address or the payment that it came to.
    what: String,
    people: Vec<PersonRow>,
    looked: usize,
    suppressed: Option<SuppressedRow>,
    shut: Vec<ShutRow>,
    answers: Vec<AnswerRow>,
    rules: Vec<RuleRow>,
}

struct PersonRow {
    is_staff: bool,
    /// What to ask for instead, where several have the id.
    link: Option<String>,
    id: String,
    name: String,
    tenant: String,
    language: &'static str,
    to: Option<String>,
    is_off: bool,
}

struct SuppressedRow {
    cause: &'static str,
    at: Time,
    note: String,
    /// For the link to the list; whoever may not see it whole gets none.
    address: Option<String>,
}

struct ShutRow {
    name: String,
    why: String,
}

struct AnswerRow {
    id: String,
    template: String,
    tone: &'static str,
    explanation: Explanation,
}

struct RuleRow {
    name: String,
    events: String,
    to: &'static str,
    channel: String,
    template: String,
}

/// Channels that send nothing now, with why.
async fn shut(visit: &Visit) -> Result<BTreeMap<String, String>, Trouble> {
    let console = &visit.console;
    let channels = view::channels(&console.channels, &*console.store, visit.at).await?;
    let shut = channels.into_iter().filter(|one| one.breaker != Breaker::default().state());
    Ok(shut.map(|one| (one.name, one.why.unwrap_or_default())).collect())
}

fn is_mail(visit: &Visit, channel: &str) -> bool {
    visit.console.channels.iter().any(|configured| configured.name == channel && configured.kind == "smtp")
}

/// An address as whoever looks may see it.
fn shown(address: &MailAddress, whole: bool) -> String {
    if whole { address.whole().to_owned() } else { address.masked() }
}

fn shown_text(text: &str, whole: bool) -> String {
    if whole { text.to_owned() } else { mask_text(text) }
}

/// The sentence for one notice.
fn explain(visit: &Visit, notice: &Notice, is_shut: bool, is_suppressed: bool) -> Explanation {
    let at = notice.steps.last().map(|step| visit.zone.clock(step.at)).unwrap_or_default();
    let known = sekisho_core::notification::advice::Known {
        is_mail: is_mail(visit, &notice.channel),
        is_shut,
        is_suppressed,
    };
    Explanation::of(notice, &at, known, visit.lang)
}

async fn list(visit: Visit) -> Answer {
    let text = |name: &str| visit.param(name).unwrap_or_default().to_owned();
    let (console, q) = (&visit.console, text("q"));
    let known = match visit.param("q") {
        Some(q) => Some(search::find(&*console.store, q).await?),
        None => None,
    };
    if let Some(Directory { asked: AskedFor::Notice(id), .. }) = &known {
        return Ok(Reply::Go { to: format!("/console/notices/{id}"), flash: None });
    }
    let page = match query(&visit, known.as_ref())? {
        Some(query) => {
            let before = visit.param("before").map(str::to_owned);
            if before.as_ref().is_some_and(|before| !before.starts_with("ntc_")) {
                return Err(Trouble::wrong("before: expected the end of a page, ntc_…".into()));
            }
            query.page(&*console.store, before, PAGE).await?
        }
        None => crate::queries::NoticePage::default(),
    };
    let found = match known {
        Some(known) => Some(found(&visit, known, &page.notices).await?),
        None => None,
    };
    let f = visit.frame("notices", visit.lang.t("Notifications", "通知"));
    let whole = f.may_operate();
    Reply::page(&NoticesPage {
        q,
        found,
        statuses: NoticeStatus::ALL,
        status: text("status"),
        templates: console.templates.names().into_iter().map(str::to_owned).collect(),
        template: text("template"),
        channels: console.channels.iter().map(|configured| configured.name.clone()).collect(),
        channel: text("channel"),
        batch: text("batch"),
        rows: page.notices.iter().map(|(id, notice)| NoticeRow::of(id, notice, whole)).collect(),
        next: page.next,
        f,
    })
}

/// Which notices are meant; `None` when there can be none.
fn query(visit: &Visit, known: Option<&Directory>) -> Result<Option<NoticeQuery>, Trouble> {
    let text = |name: &str| visit.param(name).map(str::to_owned);
    let status = visit.param("status").map(|word| {
        NoticeStatus::parse(word)
            .ok_or_else(|| Trouble::wrong(format!("status: {word:?} is none of a notice")))
    });
    let mut query = NoticeQuery {
        status: status.transpose()?,
        template: text("template"),
        channel: text("channel"),
        batch: text("batch"),
        ..NoticeQuery::default()
    };
    match known.map(|known| &known.asked) {
        None => {}
        Some(AskedFor::Address(address)) => query.to = Some(address.clone()),
        Some(AskedFor::Payment { id, since }) => {
            query.payment = Some(id.clone());
            // Nothing is told of a payment before it is known.
            query.since = Some(*since);
        }
        Some(AskedFor::Unreachable | AskedFor::Several | AskedFor::Nothing | AskedFor::Notice(_)) => {
            return Ok(None);
        }
    }
    Ok(Some(query))
}

async fn found(visit: &Visit, known: Directory, notices: &[(String, Notice)]) -> Result<Found, Trouble> {
    let whole = visit.who.rank >= sekisho_core::user::Rank::Operator;
    let shut = shut(visit).await?;
    let turn = known.suppression.as_ref().and_then(Suppression::cause);
    let answers = notices.iter().take(ANSWERED).map(|(id, notice)| AnswerRow {
        id: id.clone(),
        template: notice.template.clone(),
        tone: words::status(notice.status().name(), Language::En).0.class(),
        explanation: explain(visit, notice, shut.contains_key(&notice.channel), turn.is_some()),
    });
    let (about, what) = match &known.asked {
        AskedFor::Address(address) => ("address", shown(address, whole)),
        AskedFor::Payment { id, .. } => ("payment", id.clone()),
        AskedFor::Unreachable => ("unreachable", String::new()),
        AskedFor::Several => ("several", String::new()),
        AskedFor::Nothing | AskedFor::Notice(_) => ("nothing", String::new()),
    };
    let address = match &known.asked {
        AskedFor::Address(address) if whole => Some(address.whole().to_owned()),
        _ => None,
    };
    Ok(Found {
        about,
        what,
        looked: known.looked,
        suppressed: turn.map(|turn| SuppressedRow {
            cause: turn.cause.name(),
            at: turn.at,
            note: turn.note.as_deref().map(|note| shown_text(note, whole)).unwrap_or_default(),
            address,
        }),
        answers: answers.collect(),
        people: known
            .people
            .into_iter()
            .map(|person| PersonRow::of(person, about == "several", whole))
            .collect(),
        shut: shut.into_iter().map(|(name, why)| ShutRow { name, why: shown_text(&why, whole) }).collect(),
        rules: visit.console.summary.rules.iter().map(RuleRow::of).collect(),
    })
}

impl NoticeRow {
    fn of(id: &str, notice: &Notice, whole: bool) -> Self {
        let reason = notice.steps.last().and_then(|step| step.reason.clone());
        Self {
            id: id.to_owned(),
            status: notice.status().name(),
            reason: reason.unwrap_or_default(),
            to: notice.to.as_ref().map(|to| shown(to, whole)).unwrap_or_default(),
            template: notice.template.clone(),
            channel: notice.channel.clone(),
            at: notice.steps.first().map(|step| step.at),
            payment: notice.payment.clone(),
        }
    }
}

impl PersonRow {
    fn of(person: FoundPerson, is_one_of_several: bool, whole: bool) -> Self {
        Self {
            is_staff: person.is_staff,
            link: is_one_of_several.then_some(person.key),
            id: person.id,
            name: person.name.unwrap_or_default(),
            tenant: person.tenant.unwrap_or_default(),
            language: person.language.unwrap_or_default(),
            to: person.address.as_ref().map(|address| shown(address, whole)),
            is_off: person.is_off,
        }
    }
}

impl RuleRow {
    fn of(rule: &NotifyRule) -> Self {
        let events: Vec<_> = rule.events.iter().map(sekisho_core::pattern::Pattern::as_str).collect();
        Self {
            name: rule.name.clone(),
            events: events.join(", "),
            to: rule.to.name(),
            channel: rule.channel.clone(),
            template: rule.template.clone(),
        }
    }
}
