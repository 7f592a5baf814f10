//! One notice: every step of it, what was written in it, and sending it once more.

use askama::Template;
use axum::body::Body;
use http::{HeaderValue, Response, header};
use sekisho_core::Time;
use sekisho_core::language::Language;
use sekisho_core::notification::{Notice, NoticeStatus, Rendered, Suppression};

use super::{Explanation, explain, shown, shown_text, shut};
use crate::acts::{self, Refusal};
use crate::console::frame::Frame;
use crate::console::page::{Answer, Reply, Visit};
use crate::console::trouble::{Resource, Trouble};
use crate::queries;
use crate::view::words;

/// What others wrote may look like anything, and do nothing.
const PREVIEW_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self'";

#[derive(Template)]
#[template(path = "console/notice.html")]
struct NoticePage {
    f: Frame,
    id: String,
    status: &'static str,
    explanation: Explanation,
    to: Option<String>,
    name: Option<String>,
    audience: &'static str,
    channel: String,
    template: String,
    language: &'static str,
    tenant: Option<String>,
    payment: Option<String>,
    event: Option<String>,
    batch: Option<String>,
    message: Option<String>,
    resent: u32,
    steps: Vec<StepRow>,
    /// Only for who may see what is personal.
    letter: Option<Result<Rendered, String>>,
    is_suppressed: bool,
    resend: Option<Resend>,
}

/// How it can be sent once more.
struct Resend {
    /// Only mail can go elsewhere.
    is_mail: bool,
    /// Whoever switched notifications off gets none where they were.
    needs_address: bool,
}

struct StepRow {
    at: Time,
    status: &'static str,
    tone: &'static str,
    reason: Option<String>,
    note: Option<String>,
}

pub async fn show(visit: Visit) -> Answer {
    let notice = find(&visit).await?;
    let f = visit.frame("notices", visit.lang.t("Notification", "通知"));
    let whole = f.may_operate();
    let suppression = match &notice.to {
        Some(address) => queries::suppression(&*visit.console.store, address).await?,
        None => None,
    };
    let is_suppressed = suppression.as_ref().and_then(Suppression::cause).is_some();
    let is_shut = shut(&visit).await?.contains_key(&notice.channel);
    let steps = notice.steps.iter().map(|step| StepRow {
        at: step.at,
        status: step.status.name(),
        tone: words::status(step.status.name(), Language::En).0.class(),
        reason: step.reason.clone(),
        note: step.note.as_deref().map(|note| shown_text(note, whole)),
    });
    let status = notice.status();
    Reply::page(&NoticePage {
        id: visit.id.clone(),
        status: status.name(),
        explanation: explain(&visit, &notice, is_shut, is_suppressed),
        to: notice.to.as_ref().map(|to| shown(to, whole)),
        name: notice.name.clone().filter(|_| whole),
        audience: notice.audience.name(),
        language: notice.language.name(),
        resent: notice.again,
        steps: steps.collect(),
        letter: whole.then(|| render(&visit, &notice)),
        is_suppressed,
        resend: (whole && status.is_over()).then(|| Resend {
            is_mail: super::is_mail(&visit, &notice.channel),
            needs_address: status == NoticeStatus::Off,
        }),
        channel: notice.channel,
        template: notice.template,
        tenant: notice.tenant,
        payment: notice.payment,
        event: notice.event,
        batch: notice.batch,
        message: notice.message,
        f,
    })
}

/// What would be sent now: with today's template, as the sender fills it.
fn render(visit: &Visit, notice: &Notice) -> Result<Rendered, String> {
    let rendered = visit.console.templates.render(&notice.template, notice.language, &notice.data);
    rendered.map_err(|flaw| flaw.to_string())
}

/// The HTML part alone, for a frame that nothing gets out of.
pub async fn preview(visit: Visit) -> Answer {
    let notice = find(&visit).await?;
    let html = render(&visit, &notice).map_err(Trouble::wrong)?.html;
    let html = html.ok_or_else(|| Trouble::missing("this message has no HTML part".into()))?;
    let mut answer = Response::new(Body::from(html));
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, PREVIEW_POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(Reply::Other(answer))
}

pub async fn resend(visit: Visit) -> Answer {
    let to = visit.field("to").map(|text| {
        text.parse().map_err(|error| Trouble::wrong(format!("{}: {error}", visit.lang.t("address", "宛先"))))
    });
    let home = format!("/console/notices/{}", visit.id);
    let to = match to.transpose() {
        Ok(to) => to,
        Err(trouble) => return Reply::failed(home, trouble.line(visit.lang)),
    };
    match acts::resend(&*visit.console.store, visit.console.env(), &visit.id, to, &visit.actor()).await {
        Ok(_) => {
            tracing::info!(notice = visit.id, actor = visit.who.name, "notice resent by an operator");
            Reply::done(home, visit.lang.t("It is queued to be resent.", "再送の待ち行列に入れました。"))
        }
        Err(refusal @ Refusal::Missing(_)) => Err(refusal.into()),
        Err(refusal) => visit.refused(&home, refusal),
    }
}

async fn find(visit: &Visit) -> Result<Notice, Trouble> {
    let found = queries::notice(&*visit.console.store, &visit.id).await?;
    let (_, notice) = found.ok_or_else(|| Trouble::unknown(Resource::Notice, &visit.id))?;
    Ok(notice)
}
