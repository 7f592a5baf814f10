//! The audit log: what changed, by whom, and why; whether it is as it was written.

use sekisho_core::Time;
use sekisho_store::{AuditFilter, AuditLink};

use super::endpoint::{Answer, Call, Endpoint, Method, Success, schema};
use super::params::{BEFORE, LIMIT, Parameter, TENANT};
use super::problem;
use crate::config::Scope;
use crate::queries::AuditReport;
use crate::types::{AuditCheck, AuditEntry, ExportedEntry, Page};
use crate::{queries, view};

pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::Get,
        path: "/v1/audit",
        scope: Some(Scope::Read),
        for_tenants: true,
        summary: "What people and events changed, the newest first",
        parameters: &[
            TENANT,
            Parameter::text("action", "Such as payment.paid; a * at the end stands for anything"),
            Parameter::text("target", "The id of what was changed"),
            Parameter::text("actor", "Who did it"),
            SINCE,
            UNTIL,
            BEFORE,
            LIMIT,
        ],
        query: None,
        body: None,
        answer: schema::<Page<AuditEntry, i64>>,
        success: Success::Done,
        run: |call| Box::pin(list(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/audit/verify",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Check every entry and every link between them; reads the whole log",
        parameters: &[],
        query: None,
        body: None,
        answer: schema::<AuditCheck>,
        success: Success::Done,
        run: |call| Box::pin(verify(call)),
    },
    Endpoint {
        method: Method::Get,
        path: "/v1/audit/export",
        scope: Some(Scope::Read),
        for_tenants: false,
        summary: "Entries with all that their hashes are made of, each chain from its beginning. A page may be empty, and still lead on",
        parameters: &[SINCE, UNTIL, AFTER, LIMIT],
        query: None,
        body: None,
        answer: schema::<Page<ExportedEntry>>,
        success: Success::Done,
        run: |call| Box::pin(export(call)),
    },
];

const SINCE: Parameter = Parameter::time("since", "At or after");
const UNTIL: Parameter = Parameter::time("until", "Before");
const AFTER: Parameter = Parameter::text("after", "Go on after this link: `next` of the page before");

async fn list(call: Call) -> Answer {
    let text = |name: &str| call.params.get(name).map(str::to_owned);
    let before = call.params.get(BEFORE.name).map(|text| {
        let wanted =
            || problem::parameter(BEFORE.name, "expected `next` of the page before, a number".into());
        text.parse().map_err(|_| wanted())
    });
    let filter = AuditFilter {
        tenant: call.of_tenant()?,
        action: text("action"),
        target: text("target"),
        actor: text("actor"),
        since: call.params.time("since")?,
        until: call.params.time("until")?,
        before: before.transpose()?,
        limit: call.params.limit()?,
    };
    let found = call.api.store.find_audit(filter).await?;
    let items = found.entries.iter().map(view::audit).collect();
    Ok(Page { items, next: found.next }.into())
}

async fn verify(call: Call) -> Answer {
    let AuditReport { check, anchor } = queries::verify_audit(&*call.api.store).await?;
    let check = AuditCheck {
        entries: check.entries,
        links: check.links,
        anchors: check.anchors,
        faults: check.faults.iter().map(ToString::to_string).collect(),
        anchored_at: anchor.map(|(_, at)| at),
        anchor: anchor.map(|(number, _)| number),
    };
    Ok(check.into())
}

/// What was written together stays together: the hash of a link is over all its entries, so an entry outside the range
/// is written out with those on its link that are inside.
async fn export(call: Call) -> Answer {
    let (since, until, limit) =
        (call.params.time(SINCE.name)?, call.params.time(UNTIL.name)?, call.params.limit()?);
    let after = call.params.get(AFTER.name).map(|text| {
        let parsed = text.split_once('/').and_then(|(chain, n)| Some((chain.parse().ok()?, n.parse().ok()?)));
        parsed.ok_or_else(|| problem::parameter(AFTER.name, "expected `next` of the page before".into()))
    });
    let links = call.api.store.find_links(after.transpose()?, limit).await?;
    let next = links.last().filter(|_| links.len() == limit).map(|last| format!("{}/{}", last.chain, last.n));
    let is_meant = |link: &&AuditLink| link.entries.iter().any(|one| is_within(one.entry.at, since, until));
    let items = links.iter().filter(is_meant).flat_map(view::exported).collect();
    Ok(Page::<ExportedEntry> { items, next }.into())
}

fn is_within(at: Time, since: Option<Time>, until: Option<Time>) -> bool {
    since.is_none_or(|since| at >= since) && until.is_none_or(|until| at < until)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d8_a_range_begins_with_its_first_moment_and_ends_before_its_last() {
        let [since, until] = [10, 20].map(|ms| Some(Time::from_ms(ms)));
        let inside = |ms| is_within(Time::from_ms(ms), since, until);
        assert_eq!([9, 10, 19, 20].map(inside), [false, true, true, false]);
        assert!(is_within(Time::from_ms(9), None, None));
    }
}
