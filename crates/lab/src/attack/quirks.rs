//! Requests that two servers would read in two ways, and paths that lead elsewhere than they seem to.

use std::time::Duration;

use serde_json::json;

use super::letter::{Letter, charge};
use super::{Attack, Depth};
use crate::hostile::{self, HostileTarget};

pub fn run(attack: &mut Attack<'_>) -> Result<(), String> {
    smuggled(attack)?;
    paths(attack);
    crowds(attack)
}

/// A genuine event hides where only one of two readings sees it. It must not come in.
fn smuggled(attack: &mut Attack<'_>) -> Result<(), String> {
    let kind = "HTTP requests of two readings";
    // Answered well, so that the connection stays open for what comes behind it.
    let outer = Letter { method: "GET".into(), ..Letter::post("/health/live", "") };
    let framings = |inner: usize| {
        let chunked_end = "0\r\n\r\n".len();
        vec![
            format!("content-length: {}\r\ntransfer-encoding: chunked\r\n", inner + chunked_end),
            format!("transfer-encoding: chunked\r\ncontent-length: {}\r\n", inner + chunked_end),
            "content-length: 5\r\ncontent-length: 0\r\n".to_owned(),
            format!("content-length: 5\r\ncontent-length: {}\r\n", inner + 5),
            "content-length: 5, 6\r\n".to_owned(),
            "content-length: +5\r\n".to_owned(),
            "content-length: 0x5\r\n".to_owned(),
            "content-length: 5 \t5\r\n".to_owned(),
            "content-length: -1\r\n".to_owned(),
            "content-length: 99999999999999999999\r\n".to_owned(),
            "content-length : 5\r\n".to_owned(),
            "transfer-encoding: xchunked\r\n".to_owned(),
            format!("content-length: {}\r\ntransfer-encoding: identity, chunked\r\n", inner + chunked_end),
            "transfer-encoding: chunked, identity\r\n".to_owned(),
            "transfer-encoding : chunked\r\n".to_owned(),
            "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n".to_owned(),
            " transfer-encoding: chunked\r\n".to_owned(),
            "x: y\r\n transfer-encoding: chunked\r\n".to_owned(),
            "x: y\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n".to_owned(),
            "x: y\rtransfer-encoding: chunked\r\ncontent-length: 5\r\n".to_owned(),
            "x: y\0\r\ncontent-length: 5\r\n".to_owned(),
        ]
    };
    let inner = |n: usize| charge(&format!("smuggled_{n}"), &json!({}), "x@example.jp").whole();
    let mut requests = Vec::new();
    for n in 0..framings(0).len() {
        let framing = &framings(inner(n).len())[n];
        requests.push((framing.clone(), [outer.bytes(framing), b"0\r\n\r\n".to_vec(), inner(n)].concat()));
    }
    let chunks = ["5;\n5\r\n", "5\n", "+5\r\n", "0x5\r\n", "fffffffffffffffff\r\n", "-1\r\n", "\r\n"];
    for (n, chunk) in chunks.iter().enumerate() {
        let body = [chunk.as_bytes(), b"hello\r\n0\r\n\r\n", &inner(100 + n)].concat();
        let head = outer.bytes("transfer-encoding: chunked\r\n");
        requests.push((format!("chunk {chunk}"), [head, body].concat()));
    }
    let came_in = |heard: &str| heard.contains("sekisho-event-id: evt_smuggled");
    // Where there is one reading only, the second request is one.
    let plain = [outer.bytes("content-length: 5\r\n"), b"0\r\n\r\n".to_vec(), inner(200)].concat();
    let honest = attack.house.speak_all(vec![("honest".into(), plain)]);
    if !honest.iter().all(|(_, heard)| came_in(heard)) {
        return Err(format!("a second request on a connection does not come in at all: {honest:?}"));
    }
    for (how, heard) in attack.house.speak_all(requests) {
        attack.book.line(kind).tried(came_in(&heard), || format!("{how:?}: {heard}"));
    }
    Ok(())
}

/// Nobody's way to what only keys open.
fn paths(attack: &mut Attack<'_>) {
    let mut requests = Vec::new();
    for path in [
        "/webhooks/../v1/keys",
        "/webhooks/%2e%2e/v1/keys",
        "/webhooks/..%2fv1/keys",
        "//v1/keys",
        "/./v1/keys",
        "/%76%31/keys",
        "/v1/keys;x=1",
        "/v1/keys/",
        "/v1//keys",
        "/V1/keys",
        "/v1/keys%00",
        "/v1/keys%20",
        "/v1\\keys",
        "/v1/openapi.json/../keys",
        "http://127.0.0.1/v1/keys",
        "http://elsewhere.example/v1/keys",
        "/console/..;/v1/keys",
        "/console/login/../users",
        "/console/assets/../users",
        "/console/assets/%2e%2e/%2e%2e/v1/keys",
        "*",
    ] {
        for version in ["1.1", "1.0"] {
            let request = format!("GET {path} HTTP/{version}\r\nhost: lab\r\nconnection: close\r\n\r\n");
            requests.push((path.to_owned(), request.into_bytes()));
        }
    }
    for (path, heard) in attack.house.speak_all(requests) {
        let status = heard.split(' ').nth(1).unwrap_or_default();
        let line = attack.book.line("paths that lead elsewhere");
        line.tried(status.starts_with(['2', '5']), || format!("{path}: {heard}"));
    }
}

/// Many at once that never come to a point: all are sent away in time, and nobody else waits for it.
fn crowds(attack: &mut Attack<'_>) -> Result<(), String> {
    let target = HostileTarget {
        address: attack.house.server.address(),
        path: "/webhooks/stripe".into(),
        connections: attack.depth.of(20, 300),
        limit: Duration::from_secs(30),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let seed = attack.rng.next_u64();
    let mut reports = runtime.block_on(async {
        let (garbage, many, huge, body) = tokio::join!(
            hostile::garbage(&target, seed, 2_000),
            hostile::header_bomb(&target, 1_000, 100),
            hostile::header_bomb(&target, 1, 1 << 20),
            hostile::oversized_announced(&target, 64 << 20),
        );
        vec![("garbage", garbage), ("many headers", many), ("a huge header", huge), ("a huge body", body)]
    });
    if attack.depth == Depth::Full {
        reports.extend(runtime.block_on(async {
            let (endless, body, headers, silence) = tokio::join!(
                hostile::endless_body(&target, 64 << 20),
                hostile::slow_body(&target),
                hostile::slow_headers(&target),
                hostile::silence(&target),
            );
            [
                ("an endless body", endless),
                ("a slow body", body),
                ("slow headers", headers),
                ("silence", silence),
            ]
        }));
    }
    for (what, report) in reports {
        let line = attack.book.line("clients that never come to a point");
        line.tried += report.connections.saturating_sub(1);
        let accepted = report.statuses.keys().any(|status| *status < 300 || *status >= 500);
        line.tried(report.still_open > 0 || accepted, || format!("{what}: {report}"));
    }
    Ok(())
}
