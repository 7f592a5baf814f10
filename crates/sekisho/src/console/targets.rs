//! Whether what was promised is reached: each target over the last hour, day and 30 days, and its course of a day.

use askama::Template;
use sekisho_core::target::TargetName;

use super::frame::Frame;
use super::page::{Answer, Page, PageMethod, Reply, VIEWER, Visit};
use crate::types::{TargetStanding, TargetWindow};
use crate::{queries, view};

pub const PAGES: &[Page] = &[Page {
    method: PageMethod::Get,
    path: "/console/targets",
    needs: VIEWER,
    run: |visit| Box::pin(show(visit)),
}];

#[derive(Template)]
#[template(path = "console/targets.html")]
struct TargetsPage {
    f: Frame,
    rows: Vec<TargetRow>,
}

struct TargetRow {
    target: TargetStanding,
    page: &'static str,
    /// Of each of the last 24 hours, how bad it was, from 0 to 20; `None` where nothing was counted.
    course: Vec<Option<u64>>,
}

impl TargetsPage {
    fn tone(window: &TargetWindow) -> &'static str {
        match window.verdict.as_str() {
            "met" => "good",
            "missed" => "bad",
            _ => "plain",
        }
    }

    fn word(&self, window: &TargetWindow) -> &'static str {
        match window.verdict.as_str() {
            "met" => self.f.lang.t("met", "達成"),
            "missed" => self.f.lang.t("missed", "未達"),
            _ => self.f.lang.t("too little to say", "件数不足"),
        }
    }
}

async fn show(visit: Visit) -> Answer {
    let console = &visit.console;
    let (store, policy) = (&*console.store, &console.targets);
    let standings = view::targets(store, policy, visit.lang, visit.at).await?;
    let mut rows = Vec::new();
    for (target, standing) in TargetName::ALL.into_iter().zip(standings) {
        let course = queries::target_course(store, target, policy, visit.at).await?;
        let most = course.iter().flatten().copied().max().unwrap_or_default().max(1);
        let course = course.into_iter().map(|one| one.map(|bad| bad * 20 / most)).collect();
        rows.push(TargetRow { target: standing, page: target.page(), course });
    }
    Reply::page(&TargetsPage { rows, f: visit.frame("targets", visit.lang.t("Targets", "目標")) })
}
