//! The console's doors: who a proxy vouches for, whose form it is, and who may keep others out.

use std::time::Duration;

use serde_json::Value;

use super::Attack;
use super::house::PASSWORD;
use super::letter::Letter;
use crate::http::Response;

pub fn run(attack: &mut Attack<'_>) -> Result<(), String> {
    without_login(attack)?;
    doubled_headers(attack);
    foreign_forms(attack)?;
    lock_out(attack)?;
    washed_out(attack)
}

/// A page that only somebody who is known may see.
fn is_inside(answer: &Response) -> bool {
    answer.status == 200 && !answer.text().contains("name=\"password\"")
}

fn without_login(attack: &mut Attack<'_>) -> Result<(), String> {
    let kind = "console: without a login";
    let pages = [
        "",
        "/events",
        "/payments",
        "/users",
        "/audit",
        "/dead",
        "/notices",
        "/rejections",
        "/account",
        "/sources",
        "/live",
    ];
    for page in pages {
        let path = format!("/console{page}");
        for headers in [
            &[][..],
            &[("cookie", "sekisho_session=0000000000000000000000000000000000000000000000000000000000000000")],
            &[("remote-user", "")],
            &[("remote_user", "root")],
            &[("x-remote-user", "root")],
            &[("authorization", "Basic cm9vdDpyb290")],
        ] {
            let answer = attack.house.get(&path, headers);
            attack.book.line(kind).asked(&answer, || format!("{path} {headers:?}"), is_inside);
        }
        let answer = attack.house.ask(None, "POST", &path, &Value::Null);
        attack.book.line(kind).asked(&answer, || format!("POST {path}"), |answer| answer.status < 400);
    }
    Ok(())
}

/// Two names are nobody, and two ranks are the least.
fn doubled_headers(attack: &mut Attack<'_>) {
    let kind = "console: header login, doubled";
    let honest = attack.house.get("/console/users", &[("remote-user", "root"), ("remote-rank", "admin")]);
    // The door works at all: this one is let in.
    attack.book.line(kind).asked(
        &honest,
        || "the honest one is kept out".into(),
        |answer| !is_inside(answer),
    );
    for headers in [
        &[("remote-user", "mallory"), ("remote-user", "root"), ("remote-rank", "admin")][..],
        &[("remote-user", "root"), ("remote-user", "mallory"), ("remote-rank", "admin")],
        &[("remote-user", "root"), ("remote-user", "root"), ("remote-rank", "admin")],
        &[("remote-user", "root, mallory"), ("remote-rank", "admin")],
        &[("remote-user", "mallory"), ("remote-rank", "admin"), ("remote-rank", "viewer")],
        &[("remote-user", "mallory"), ("remote-rank", "viewer"), ("remote-rank", "admin")],
        &[("remote-user", "mallory"), ("remote-rank", "admin, viewer")],
    ] {
        let answer = attack.house.get("/console/users", headers);
        attack.book.line(kind).asked(&answer, || format!("{headers:?}"), is_inside);
    }
}

/// The token of a form, and the cookies that it goes with.
fn form(answer: &Response) -> Option<(String, String)> {
    let text = answer.text();
    let token = text.split_once("name=\"csrf\" value=\"")?.1.split('"').next()?.to_owned();
    let cookies = answer.headers.iter().filter(|(name, _)| name == "set-cookie");
    let cookies: Vec<_> = cookies.filter_map(|(_, value)| value.split(';').next()).collect();
    Some((token, cookies.join("; ")))
}

/// A sibling of ours in the same domain plants a cookie, works out the token that goes with it, and has an admin's browser
/// send the form.
fn foreign_forms(attack: &mut Attack<'_>) -> Result<(), String> {
    let kind = "console: forms of other sites";
    let house = attack.house;
    let admin = [("remote-user", "root"), ("remote-rank", "admin")];
    let host = house.server.address().to_string();
    let page = house.get("/console/users", &admin).map_err(|error| error.to_string())?;
    let (token, cookies) = form(&page).ok_or("the page of users has no form")?;
    let invite = |headers: &[(&str, &str)], token: &str| {
        let mut letter = Letter::post("/console/users/invite", &format!("csrf={token}&rank=admin"))
            .with("content-type", "application/x-www-form-urlencoded");
        for (name, value) in admin.iter().chain(headers) {
            letter = letter.and(name, value);
        }
        house.send(&letter)
    };
    let own = format!("http://{host}");
    let honest = invite(&[("cookie", &cookies), ("origin", &own), ("sec-fetch-site", "same-origin")], &token);
    let line = attack.book.line(kind);
    line.asked(&honest, || "the honest one is refused".into(), |answer| answer.status >= 400);
    for (headers, token) in [
        (vec![("cookie", &*cookies), ("origin", "http://evil.example")], &*token),
        (vec![("cookie", &*cookies), ("origin", "null")], &*token),
        (vec![("cookie", &*cookies), ("origin", "http://127.0.0.1")], &*token),
        (vec![("cookie", &*cookies), ("origin", "http://127.0.0.1.evil.example")], &*token),
        (vec![("cookie", &*cookies), ("origin", &*own), ("sec-fetch-site", "cross-site")], &*token),
        (vec![("cookie", &*cookies), ("origin", &*own), ("sec-fetch-site", "same-site")], &*token),
        (vec![("cookie", &*cookies), ("origin", &*own)], "0000"),
        (vec![("cookie", &*cookies), ("origin", &*own)], ""),
        (vec![("origin", &*own)], &*token),
    ] {
        let answer = invite(&headers, token);
        attack.book.line(kind).asked(
            &answer,
            || format!("{headers:?} {token}"),
            |answer| answer.status < 400,
        );
    }
    Ok(())
}

/// Wrong passwords of a stranger don't shut a user out who comes from elsewhere.
fn lock_out(attack: &mut Attack<'_>) -> Result<(), String> {
    let kind = "console: others locked out";
    let house = attack.house;
    let invite = house.run(&["users", "invite", "--rank", "operator", "--json"], &[]).done()?;
    let invite: Value = serde_json::from_str(invite.trim()).map_err(|error| error.to_string())?;
    let path = invite["path"].as_str().or(invite["url"].as_str()).unwrap_or_default();
    let path = path.find("/console").map(|at| &path[at..]).ok_or("the invitation has no address")?;
    let fill = |path: &str, from: &str, fields: &str| -> Result<Response, String> {
        let page = house.get(path, &[("x-forwarded-for", from)]).map_err(|error| error.to_string())?;
        let (token, cookies) = form(&page).ok_or_else(|| format!("{path} has no form: {}", page.text()))?;
        let letter = Letter::post(path, &format!("csrf={token}&{fields}"))
            .with("content-type", "application/x-www-form-urlencoded")
            .with("cookie", &cookies)
            .with("x-forwarded-for", from);
        house.send(&letter).map_err(|error| error.to_string())
    };
    let password = PASSWORD.replace(' ', "+");
    let joined = fill(path, "198.51.100.9", &format!("name=tomo&password={password}&again={password}"))?;
    let is_in = |answer: &Response| {
        answer.headers.iter().any(|(name, value)| name == "set-cookie" && value.contains("session="))
    };
    if !is_in(&joined) {
        return Err(format!("the user could not join: {} {}", joined.status, joined.text()));
    }
    for _ in 0..attack.depth.of(6, 12) {
        let wrong = fill("/console/login", "203.0.113.7", "name=tomo&password=wrong+wrong+wrong")?;
        attack.book.line(kind).asked(&Ok(wrong), || "a wrong password".into(), is_in);
    }
    let right = fill("/console/login", "198.51.100.9", &format!("name=tomo&password={password}"))?;
    attack.book.line(kind).asked(
        &Ok(right),
        || "the user is shut out by a stranger".into(),
        |answer| !is_in(answer),
    );
    let guess = fill("/console/login", "203.0.113.7", &format!("name=tomo&password={password}"))?;
    attack.book.line(kind).asked(&Ok(guess), || "the guesser is not shut out".into(), is_in);
    Ok(())
}

/// Whoever forges much leaves few lines: alike ones of an hour are one.
fn washed_out(attack: &mut Attack<'_>) -> Result<(), String> {
    let kind = "rejections washed out";
    let house = attack.house;
    let forged = |from: &str| Letter::post("/webhooks/komoju", "{}").with("x-forwarded-for", from);
    let victim = house.send(&forged("198.51.100.77"));
    attack.book.line(kind).asked(&victim, || "a forger".into(), |answer| answer.status < 300);
    for _ in 0..attack.depth.of(4, 30) {
        for _ in 0..10 {
            let answer = house.send(&forged("203.0.113.77"));
            attack.book.line(kind).asked(&answer, || "a forger".into(), |answer| answer.status < 300);
        }
        // Longer than refusals are gathered before they are written.
        std::thread::sleep(Duration::from_millis(400));
    }
    let lines = |from: &str| -> Result<usize, String> {
        let page = house.see("/v1/rejections?limit=1000")?;
        let lines = page["items"].as_array().into_iter().flatten();
        Ok(lines.filter(|line| line["peer"] == from && line["source"] == "komoju").count())
    };
    house.wait("the refusal is written down", || Ok(lines("198.51.100.77")? > 0))?;
    // Two, when the hour ended in between.
    let many = lines("203.0.113.77")?;
    attack.book.line(kind).tried(many > 2, || format!("one forger has {many} lines"));
    attack.book.line(kind).tried(many == 0, || "the forger has no line".into());
    Ok(())
}
