//! What is wrong now, since when and what to do about it; and silencing an alert for a while.

use askama::Template;

use super::frame::Frame;
use super::page::{Answer, OPERATOR, Page, PageMethod, Reply, VIEWER, Visit};
use crate::acts;
use crate::types::{AlertStanding, SilenceAlert};
use crate::view;

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/alerts",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Post,
        path: "/console/alerts/silence",
        needs: OPERATOR,
        run: |visit| Box::pin(silence(visit)),
    },
];

const HOME: &str = "/console/alerts";

#[derive(Template)]
#[template(path = "console/alerts.html")]
struct AlertsPage {
    f: Frame,
    rows: Vec<AlertStanding>,
    /// The channel that operators hear of it by.
    channel: Option<String>,
    reason_max: usize,
}

impl AlertsPage {
    fn firing(&self) -> impl Iterator<Item = &AlertStanding> {
        self.rows.iter().filter(|row| row.state == "firing")
    }

    fn others(&self) -> impl Iterator<Item = &AlertStanding> {
        self.rows.iter().filter(|row| row.state != "firing")
    }

    fn is_well(&self) -> bool {
        self.firing().next().is_none()
    }
}

async fn list(visit: Visit) -> Answer {
    let console = &visit.console;
    let rows = view::alerts(&*console.store, &console.alerts, visit.lang, visit.at).await?;
    Reply::page(&AlertsPage {
        rows,
        channel: console.notifications.alerts.clone(),
        reason_max: acts::REASON_MAX,
        f: visit.frame("alerts", visit.lang.t("Alerts", "警報")),
    })
}

async fn silence(visit: Visit) -> Answer {
    let text = |name: &str| visit.field(name).unwrap_or_default().to_owned();
    let order = SilenceAlert { lasts: text("for"), reason: text("reason") };
    let done = acts::silence_alert(&*visit.console.store, &text("id"), &order, &visit.actor()).await;
    visit.after(
        HOME,
        done,
        (
            "The silence was set. What still fires when it ends is told then.",
            "一時停止を設定しました。終了時に続いている警報は、その時点で通知します。",
        ),
    )
}
