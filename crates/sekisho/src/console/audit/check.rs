//! The log checked on request, and written out so that others can check it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::stream;
use http::{HeaderValue, Response, header};
use sekisho_core::Time;
use sekisho_core::audit::ChainFault;
use sekisho_core::language::Language;
use sekisho_store::{AuditLink, FIND_MAX, Store};
use serde_json::json;

use crate::console::page::{Answer, Reply, Visit};
use crate::console::trouble::Trouble;
use crate::queries::{self, AuditReport};
use crate::view;

/// How long the page looks; `sekisho audit verify` looks as long as it takes.
const VERIFY_WITHIN: Duration = Duration::from_secs(20);
/// Faults that are shown.
const FAULTS_MAX: usize = 50;

/// One at a time: it reads everything.
static VERIFYING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// What came of a check.
pub enum Checked {
    Whole {
        entries: u64,
        links: u64,
        anchors: u64,
        anchored_at: Option<Time>,
    },
    Broken {
        entries: u64,
        count: usize,
        faults: Vec<String>,
    },
    /// There is more than can be read in the time.
    Unfinished {
        seconds: u64,
    },
    Busy,
}

pub async fn verify(store: &dyn Store, lang: Language) -> Result<Checked, Trouble> {
    let Ok(_alone) = VERIFYING.try_lock() else { return Ok(Checked::Busy) };
    let Ok(done) = tokio::time::timeout(VERIFY_WITHIN, queries::verify_audit(store)).await else {
        return Ok(Checked::Unfinished { seconds: VERIFY_WITHIN.as_secs() });
    };
    let AuditReport { check, anchor } = done?;
    if check.faults.is_empty() {
        let anchored_at = anchor.map(|(_, at)| at);
        let (entries, links, anchors) = (check.entries, check.links, check.anchors);
        return Ok(Checked::Whole { entries, links, anchors, anchored_at });
    }
    let faults = check.faults.iter().take(FAULTS_MAX).map(|fault| told(fault, lang)).collect();
    Ok(Checked::Broken { entries: check.entries, count: check.faults.len(), faults })
}

fn told(fault: &ChainFault, lang: Language) -> String {
    if lang == Language::En {
        return fault.to_string();
    }
    match fault {
        ChainFault::Loose { numbers } => {
            format!("記録 {numbers:?} はどの鎖にもつながっていません（後から挿入された疑い）")
        }
        ChainFault::Changed { chain, n, numbers } => {
            format!("鎖 {chain} の {n} 番が記録 {numbers:?} と一致しません（変更・削除・追加の疑い）")
        }
        ChainFault::Gap { chain, after, before } => {
            format!("鎖 {chain} の {after} 番と {before} 番の間が欠けています")
        }
        ChainFault::Torn { chain, n } => format!("鎖 {chain} の {n} 番が直前の記録とつながっていません"),
        ChainFault::CutOff { chain, n, anchor } => {
            format!(
                "記録 {anchor} のアンカーが確認した鎖 {chain} の {n} 番が、消失または別物です（末尾の切り取りの疑い）"
            )
        }
    }
}

/// The whole log, or what was written between two moments, as lines of JSON; read while it is sent.
pub async fn export(visit: &Visit, since: Option<Time>, until: Option<Time>) -> Answer {
    let store = Arc::clone(&visit.console.store);
    // Only what is there now: a server goes on writing.
    let heads: BTreeMap<_, _> =
        store.chain_heads().await?.into_iter().map(|head| (head.chain, head.n)).collect();
    let holds = move |link: &AuditLink| {
        let is_there = link.hash.is_empty() || heads.get(&link.chain).is_some_and(|head| link.n <= *head);
        let within = |at: Time| since.is_none_or(|since| at >= since) && until.is_none_or(|until| at < until);
        is_there && link.entries.iter().any(|one| within(one.entry.at))
    };
    let begin = (store, holds, Some(None::<(i64, i64)>));
    let lines = stream::try_unfold(begin, |(store, holds, place)| async move {
        let Some(after) = place else { return Ok(None) };
        let page = store.find_links(after, FIND_MAX).await?;
        let next = page.last().map(|last| Some((last.chain, last.n)));
        let mut text = String::new();
        for entry in page.iter().filter(|link| holds(link)).flat_map(view::exported) {
            text.push_str(&json!(entry).to_string());
            text.push('\n');
        }
        Ok::<_, sekisho_store::Error>(Some((Bytes::from(text), (store, holds, next))))
    });
    let mut answer = Response::new(Body::from_stream(lines));
    for (name, value) in [
        (header::CONTENT_TYPE, "application/jsonl; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"sekisho-audit.jsonl\""),
    ] {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    tracing::info!(actor = visit.who.name, "the audit log is written out");
    Ok(Reply::Other(answer))
}
