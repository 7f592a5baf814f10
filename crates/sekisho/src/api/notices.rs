//! Notices: what was told to whom and what became of it, the answer to "I did not get the mail".

use sekisho_core::mail_address::MailAddress;
use sekisho_core::notification::NoticeStatus;
use serde_json::{Map, Value};

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::params::{ADDRESSES, BEFORE, LIMIT, Parameter, TENANT};
use super::problem;
use crate::acts::{self, Fields};
use crate::config::Scope;
use crate::http::Problem;
use crate::queries::{self, NoticeQuery};
use crate::types::{Notice, NoticeDetail, Page, Resend};
use crate::view;

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/notices",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "Notices, the newest first. A page may be short, or empty, and still lead on",
        parameters: &[
            TO,
            Parameter::time("since", "Created at or after"),
            Parameter::time("until", "Created before"),
            STATUS,
            Parameter::text("template", "Only those made from this template"),
            Parameter::text("channel", "Only those by this channel"),
            TENANT,
            Parameter::text("payment", "Only those about this payment: pay_…"),
            Parameter::text("batch", "Only those of this run: reminders/2026-11-16"),
            ADDRESSES,
            BEFORE,
            LIMIT,
        ],
        query: None,
        body: None,
        answer: schema::<Page<Notice>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/notices/{id}",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "One notice with every step, the next thing to do, and what the audit log says of it",
        parameters: &[ADDRESSES],
        query: None,
        body: None,
        answer: schema::<NoticeDetail>,
        success: Success::Done,
        run: |call| Box::pin(show(call)),
    },
    Endpoint {
        method: Method::Post,
        path: "/v1/notices/{id}/resend",
        scope: Some(Scope::Operate),
        for_tenants: true,
        summary: "Resend a notice, to its address or another; 409 while it is being sent",
        parameters: &[],
        query: None,
        body: Some(schema::<Resend>),
        answer: schema::<Notice>,
        success: Success::Done,
        run: |call| Box::pin(resend(call)),
    },
];

const TO: Parameter = Parameter::text("to", "Only those to this whole mail address");
const STATUS: Parameter = Parameter::text(
    "status",
    "queued, sending, retrying, sent, failed, uncertain, suppressed, off, bounced, complained",
);

async fn list(call: Call) -> Answer {
    let (query, whole) = (query(&call)?, call.wants_addresses()?);
    let before = call.params.get(BEFORE.name).map(str::to_owned);
    if before.as_ref().is_some_and(|before| !before.starts_with("ntc_")) {
        return Err(problem::parameter(BEFORE.name, "expected `next` of the page before: ntc_…".into()));
    }
    let page = query.page(&*call.api.store, before, call.params.limit()?).await?;
    let items = page.notices.iter().map(|(id, notice)| view::notice(id, notice, whole));
    Ok(Page { items: items.collect(), next: page.next }.into())
}

fn query(call: &Call) -> Result<NoticeQuery, Problem> {
    let text = |name: &str| call.params.get(name).map(str::to_owned);
    let status = call.params.get(STATUS.name).map(|text| {
        let wrong = || problem::parameter(STATUS.name, format!("expected one of {}", STATUS.about));
        NoticeStatus::parse(text).ok_or_else(wrong)
    });
    let to = call
        .params
        .get(TO.name)
        .map(|text| text.parse().map_err(|error| problem::parameter(TO.name, format!("is {error}"))));
    Ok(NoticeQuery {
        to: to.transpose()?,
        status: status.transpose()?,
        tenant: call.of_tenant()?,
        template: text("template"),
        channel: text("channel"),
        payment: text("payment"),
        batch: text("batch"),
        since: call.params.time("since")?,
        until: call.params.time("until")?,
    })
}

async fn show(call: Call) -> Answer {
    let (store, whole) = (&*call.api.store, call.wants_addresses()?);
    let found = queries::notice(store, &call.path).await?;
    let found = found.filter(|(_, notice)| call.may_see(notice.tenant.as_deref()));
    let missing = || {
        let hint = "GET /v1/notices?to=… finds those to an address";
        problem::missing(format!("no notice has the id {}; {hint}", call.path))
    };
    let (_, notice) = found.ok_or_else(missing)?;
    Ok(view::notice_with_all(store, &call.path, &notice, whole).await?.into())
}

async fn resend(call: Call) -> Answer {
    let to = recipient(call.order()?)?;
    let resent = acts::resend(&*call.api.store, &call.api.env, &call.path, to, &call.actor()).await?;
    tracing::info!(notice = call.path, actor = call.actor, "notice resent by an operator");
    Ok(view::notice(&call.path, &resent, false).into())
}

fn recipient(order: Map<String, Value>) -> acts::Result<Option<MailAddress>> {
    let mut fields = Fields::new(order);
    let to = fields.take("to").email();
    fields.finish()?;
    Ok(to)
}
