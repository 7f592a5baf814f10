//! How complete each source is: what its provider lists, compared with what came, day by day; and comparing it now.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use sekisho_core::Time;
use sekisho_core::language::Language;
use sekisho_core::settlement::ApiProvider;

use super::frame::Frame;
use super::japanese::translated;
use super::page::{Answer, OPERATOR, Page, PageMethod, Reply, VIEWER, Visit};
use super::trouble::{Resource, Trouble};
use crate::acts::Actor;
use crate::types::{NewReconciliation, Reconciliation};

pub const PAGES: &[Page] = &[
    Page {
        method: PageMethod::Get,
        path: "/console/reconciliation",
        needs: VIEWER,
        run: |visit| Box::pin(list(visit)),
    },
    Page {
        method: PageMethod::Post,
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
    /// Sources whose provider has no lists that are read.
    unlisted: Vec<String>,
}

impl ReconciliationPage {
    /// The newest day first.
    fn days(row: &Reconciliation) -> impl Iterator<Item = (&String, &crate::types::DayFigures)> {
        row.days.iter().rev()
    }

    fn is_listed(&self, row: &Reconciliation) -> bool {
        !self.unlisted.contains(&row.source)
    }

    fn differs(&self) -> bool {
        self.rows.iter().any(|row| !row.differences.is_empty())
    }
}

async fn list(visit: Visit) -> Answer {
    let console = &visit.console;
    let (mut rows, mut unlisted) = (Vec::new(), Vec::new());
    for source in &console.summary.sources {
        let title = Some(source.about.title);
        let mut row = console.reconciler.standing(&*console.store, &source.name, title).await?;
        if visit.lang == Language::Ja {
            let sentences = row.differences.iter_mut().map(|one| &mut one.detail).chain(&mut row.error);
            sentences.for_each(|sentence| *sentence = translated(sentence).into_owned());
        }
        rows.push(row);
        if ApiProvider::parse(source.about.name).is_none_or(ApiProvider::only_hints) {
            unlisted.push(source.name.clone());
        }
    }
    Reply::page(&ReconciliationPage {
        rows,
        unlisted,
        f: visit.frame("reconciliation", visit.lang.t("Reconciliation", "照合")),
    })
}

async fn run(visit: Visit) -> Answer {
    let console = &visit.console;
    let missing = || Trouble::unknown(Resource::Source, &visit.id);
    let source = console.summary.source(&visit.id).ok_or_else(missing)?.name.clone();
    let dry_run = visit.field("dry_run").is_some();
    let order = NewReconciliation { source, dry_run, ..NewReconciliation::default() };
    let (reconciler, base) = (Arc::clone(&console.reconciler), console.engine.base());
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
    let (listed, missing, differing) = (figures.listed, figures.missing, figures.differing);
    Reply::done(
        HOME,
        match (visit.lang, dry_run) {
            (Language::Ja, true) => {
                format!("{listed}件中、未着{missing}件、差異{differing}件。何も取り込んでいません。")
            }
            (Language::Ja, false) => {
                format!("{listed}件中、未着{missing}件を取り込みました。差異{differing}件。")
            }
            (Language::En, true) => {
                format!(
                    "{listed} events listed, {missing} missing, {differing} differences. Nothing was taken in."
                )
            }
            (Language::En, false) => {
                format!("{listed} events listed, {missing} missing ones taken in, {differing} differences.")
            }
        },
    )
}
