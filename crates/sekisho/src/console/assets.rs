//! The few files that pages are made with, inside the program: nothing is fetched from elsewhere.

use std::sync::LazyLock;

use axum::body::Body;
use http::{HeaderValue, Response, header};

use super::ROOT;
use super::page::{Answer, Page, PageMethod, PageNeeds, Reply, Visit};
use super::trouble::{Resource, Trouble};
use crate::token;

pub const PAGES: &[Page] = &[Page {
    method: PageMethod::Get,
    path: "/console/assets/{name}",
    needs: PageNeeds::Nothing,
    run: |visit| Box::pin(async move { file(&visit) }),
}];

struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

const ALL: [Asset; 3] = [
    Asset {
        name: "console.css",
        kind: "text/css; charset=utf-8",
        text: include_str!("../../assets/console.css"),
    },
    Asset {
        name: "console.js",
        kind: "text/javascript; charset=utf-8",
        text: include_str!("../../assets/console.js"),
    },
    Asset { name: "sekisho.svg", kind: "image/svg+xml", text: include_str!("../../assets/sekisho.svg") },
];

static MARKS: LazyLock<Vec<String>> =
    LazyLock::new(|| ALL.iter().map(|asset| token::hash(asset.text)[..12].to_owned()).collect());

/// It changes when the file does, so a browser may keep what it has.
pub fn address(name: &str) -> String {
    let n = ALL.iter().position(|asset| asset.name == name);
    let mark = n.map(|n| MARKS[n].as_str()).unwrap_or_default();
    format!("{ROOT}/assets/{name}?v={mark}")
}

fn file(visit: &Visit) -> Answer {
    let n = ALL.iter().position(|asset| asset.name == visit.id);
    let n = n.ok_or_else(|| Trouble::unknown(Resource::Page, &visit.here))?;
    let mut answer = Response::new(Body::from(ALL[n].text));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(ALL[n].kind));
    let kept =
        if visit.param("v") == Some(&*MARKS[n]) { "public, max-age=31536000, immutable" } else { "no-cache" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    Ok(Reply::Other(answer))
}
