//! How complete each source is: what its provider lists, compared with what came, day by day; and comparing it now.

use std::time::Duration;

use askama::Template;
use sekisho_core::Time;

use super::frame::Frame;
use super::page::{Answer, Method, OPERATOR, Page, Reply, VIEWER, Visit};
use super::trouble::{Resource, Trouble};
use crate::acts::Actor;
use crate::types::{NewReconciliation, Reconciliation};

pub const PAGES: &[Page] = &[
    Page {
        method: Method::Get,
        path: "/console/reconciliation",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: Method::Post,
        path: "/console/reconciliation/{name}/run",
        needs: OPERATOR,
        run: |visit| Box::pin(run(visit)),
    },
];

const HOME: &str = "/console/reconciliation";
/// How long a page waits for a run; a longer one goes on by itself.
const WAIT: Duration = Duration::from_secs(10);

#[derive(Template)]
#[template(path = "console/reconciliation.html")]
struct ReconciliationPage {
    f: Frame,
    rows: Vec<Reconciliation>,
}

impl ReconciliationPage {
    /// The newest day first.
    fn days(row: &Reconciliation) -> impl Iterator<Item = (&String, &crate::types::DayFigures)> {
        row.days.iter().rev()
    }

    fn differs(&self) -> bool {
        self.rows.iter().any(|row| !row.differences.is_empty())
    }
}

async fn list(visit: Visit) -> Answer {
    let console = &visit.console;
    let mut rows = Vec::new();
    for source in &console.summary.sources {
        let title = Some(source.about.title);
        rows.push(console.reconciler.standing(&*console.store, &source.name, title).await?);
    }
    Reply::page(&ReconciliationPage {
        rows,
        f: visit.frame("reconciliation", visit.lang.t("Reconciliation", "照合")),
    })
}

async fn run(visit: Visit) -> Answer {
    let console = &visit.console;
    let missing = || Trouble::unknown(Resource::Source, &visit.id);
    let source = console.summary.source(&visit.id).ok_or_else(missing)?.name.clone();
    let order = NewReconciliation { source, ..NewReconciliation::default() };
    let (reconciler, base) = (std::sync::Arc::clone(&console.reconciler), console.engine.base());
    let (name, role, at): (String, _, Time) = (visit.who.name.clone(), visit.actor().role, visit.at);
    let (tell, told) = tokio::sync::oneshot::channel();
    console.engine.spawn(async move {
        let actor = Actor { name: &name, role, tenant: None, at };
        // Whoever asked may not wait any more.
        let _ = tell.send(reconciler.by_hand(&base, &order, &actor).await);
    });
    let Ok(Ok(report)) = tokio::time::timeout(WAIT, told).await else {
        let text = visit
            .lang
            .t("Still running; the figures follow.", "照合を続けています。結果は後で表示されます。");
        return Reply::done(HOME, text);
    };
    let report = match report {
        Ok(report) => report,
        Err(refusal) => return visit.refused(HOME, refusal),
    };
    let figures = report.figures;
    if let Some(error) = report.error {
        let text = visit
            .lang
            .t("The provider could not be read to the end:", "決済事業者から最後まで読み取れませんでした：");
        return Reply::failed(HOME, format!("{text} {error}"));
    }
    let text = match visit.lang.t("en", "ja") {
        "ja" => format!(
            "{}件中、未着{}件を取り込みました。差異{}件。",
            figures.listed, figures.closed, figures.differing
        ),
        _ => format!(
            "{} events listed, {} missing ones taken in, {} differences.",
            figures.listed, figures.closed, figures.differing
        ),
    };
    Reply::done(HOME, text)
}
