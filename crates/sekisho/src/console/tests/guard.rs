//! Nothing is served past the guard: every page, every rank, every form.

use std::net::{IpAddr, Ipv4Addr};

use http::HeaderName;
use sekisho_core::user::Rank;

use super::{PASSWORD, Room, by_proxy, csrf};
use crate::console::page::{PageMethod, PageNeeds, within};
use crate::console::pages;

const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

/// An address of a page: what stands in braces is a thing that is not there.
fn filled(path: &str) -> String {
    path.split('/')
        .map(|part| if part.starts_with('{') { "nothing" } else { part })
        .collect::<Vec<_>>()
        .join("/")
}

fn name(method: PageMethod) -> &'static str {
    match method {
        PageMethod::Get => "GET",
        PageMethod::Post => "POST",
    }
}

#[tokio::test]
async fn h1_every_page_is_for_those_it_is_for() {
    let room = Room::open().await;
    // So that streams end at once.
    room.health.stop();
    for page in pages() {
        let (path, method) = (filled(page.path), name(page.method));
        let form = format!("csrf={}", csrf(&format!("sekisho_seed={}", "5".repeat(64))));
        let seed = ("cookie", format!("sekisho_seed={}", "5".repeat(64)));
        for rank in [None, Some(Rank::Viewer), Some(Rank::Operator), Some(Rank::Admin)] {
            let mut headers = rank.map(by_proxy).unwrap_or_default();
            headers.push(seed.clone());
            let seen = room.ask(method, &path, &headers, &form).await;
            let what = format!("{method} {path} as {rank:?}: {}\n{}", seen.status(), seen.text);
            match (page.needs, rank) {
                (PageNeeds::Rank(_), None) if page.method == PageMethod::Get => {
                    assert_eq!(seen.status(), 303, "{what}");
                    assert!(seen.location().starts_with("/console/login?to="), "{what}");
                }
                (PageNeeds::Rank(_), None) => assert_eq!(seen.status(), 401, "{what}"),
                (PageNeeds::Rank(needed), Some(rank)) if rank < needed => {
                    assert_eq!(seen.status(), 403, "{what}");
                }
                (PageNeeds::Nothing | PageNeeds::Nobody, _) | (PageNeeds::Rank(_), Some(_)) => {
                    assert!(![401, 403, 405, 500].contains(&seen.status()), "{what}");
                }
            }
            let header = |name: &str| seen.head.headers[name].to_str().unwrap().to_owned();
            assert!(header("content-security-policy").contains("default-src 'none'"), "{what}");
            assert!(!header("content-security-policy").contains("script-src 'unsafe"), "{what}");
            assert_eq!(header("x-content-type-options"), "nosniff");
        }
    }
}

#[tokio::test]
async fn h1_an_act_without_our_own_form_is_not_carried_out() {
    let room = Room::open().await;
    let cookie = format!("sekisho_seed={}", "5".repeat(64));
    let foreign = csrf(&format!("sekisho_seed={}", "6".repeat(64)));
    for page in pages().filter(|page| page.method == PageMethod::Post) {
        let path = filled(page.path);
        let with = [by_proxy(Rank::Admin), vec![("cookie", cookie.clone())]].concat();
        let from_afar = [with.clone(), vec![("sec-fetch-site", "cross-site".into())]].concat();
        let from_beside = [with.clone(), vec![("sec-fetch-site", "same-site".into())]].concat();
        let without_cookie = by_proxy(Rank::Admin);
        let right = csrf(&cookie);
        for (headers, form) in [
            (&with, String::new()),
            (&with, "csrf=".into()),
            (&with, format!("csrf={foreign}")),
            (&without_cookie, format!("csrf={right}")),
            (&from_afar, format!("csrf={right}")),
            (&from_beside, format!("csrf={right}")),
        ] {
            let seen = room.ask("POST", &path, headers, &form).await;
            assert_eq!(seen.status(), 403, "{path} with {form:?}: {}", seen.text);
        }
    }
}

#[tokio::test]
async fn h1_a_session_counts_and_only_while_it_lives() {
    let room = Room::open().await;
    let cookie = room.settle_in("mika", Rank::Viewer).await;
    let look =
        async |cookie: &str| room.ask("GET", "/console/account", &[("cookie", cookie.into())], "").await;
    look(&cookie).await.says(&["mika", "this one"]);
    assert_eq!(look(&cookie.replace("mika.", "tomo.")).await.status(), 303);
    assert_eq!(look(&format!("{cookie}0")).await.status(), 303);
    let form = format!("csrf={}", csrf(&cookie));
    let left = room.ask("POST", "/console/logout", &[("cookie", cookie.clone())], &form).await;
    assert_eq!((left.status(), left.location()), (303, "/console/login"));
    assert_eq!(look(&cookie).await.status(), 303, "the token is worth nothing any more");
}

#[tokio::test]
async fn h1_cookies_are_for_these_pages_and_no_script() {
    let room = Room::open().await;
    room.settle_in("mika", Rank::Admin).await;
    let cookie = format!("sekisho_seed={}", "5".repeat(64));
    let form = format!("name=mika&password={}&csrf={}", PASSWORD.replace(' ', "+"), csrf(&cookie));
    let seen = room.ask("POST", "/console/login", &[("cookie", cookie)], &form).await;
    let set: Vec<_> =
        seen.head.headers.get_all("set-cookie").iter().map(|one| one.to_str().unwrap()).collect();
    let session = set.iter().find(|line| line.starts_with("sekisho_session=mika.")).expect("a session");
    for word in ["HttpOnly", "SameSite=Lax", "Path=/console"] {
        assert!(session.contains(word), "{session}");
    }
}

#[tokio::test]
async fn h1_a_proxy_is_believed_only_from_where_it_calls() {
    let room = Room::open().await;
    room.look(Rank::Viewer, "/console/account").await.says(&["no password and no session here"]);
    let mut request = http::Request::builder().uri("/console/account");
    for (name, value) in by_proxy(Rank::Admin) {
        request = request.header(HeaderName::from_static(name), value);
    }
    let mut request = request.body(axum::body::Body::empty()).unwrap();
    request.extensions_mut().insert(super::RemotePeer { socket: FAR, named: super::LOCAL });
    let answer = tower::ServiceExt::oneshot(room.router.clone(), request).await.unwrap();
    assert_eq!(answer.status(), 303);
}

#[test]
fn h1_one_is_led_nowhere_but_into_the_console() {
    for good in ["/console", "/console/events?type=a", "/console?x"] {
        assert_eq!(within(Some(good)), good);
    }
    for bad in [
        "https://evil.example",
        "//evil.example",
        "/consoles",
        "/console/\\evil",
        "/v1/keys",
        "/console/a\r\nb",
    ] {
        assert_eq!(within(Some(bad)), "/console", "{bad}");
    }
    assert_eq!(within(None), "/console");
}

#[tokio::test]
async fn h1_control_characters_are_looked_for_nowhere() {
    let room = Room::open().await;
    for (path, status) in [
        ("/console/payments/a%00b", 404),
        ("/console/events/a%1bb", 404),
        ("/console/payments?q=a%00b", 400),
        ("/console/notices?q=%00", 400),
    ] {
        assert_eq!(room.look(Rank::Viewer, path).await.status(), status, "{path}");
    }
    let form = "address=a%00@example.jp";
    assert_eq!(room.act(Rank::Operator, "/console/suppressions/add", form).await.status(), 400);
}

#[tokio::test]
async fn h1_what_is_not_there_says_so_and_leads_on() {
    let room = Room::open().await;
    for (path, en, ja, list) in [
        ("/console/nope", "There is no page /console/nope.", "ページ /console/nope は", None),
        ("/console/a/b/c?d=e", "There is no page /console/a/b/c.", "ページ /console/a/b/c は", None),
        ("/console/", "There is no page /console/.", "ページ /console/ は", None),
        ("/console/payments/pay_x", "There is no payment pay_x.", "決済 pay_x は", Some("/console/payments")),
        (
            "/console/billing/kyoto",
            "There is no billing of kyoto.",
            "定期課金 kyoto は",
            Some("/console/billing"),
        ),
        ("/console/dead/x", "There is no dead letter x.", "デッドレター x は", Some("/console/dead")),
        ("/console/events/x", "There is no event x.", "イベント x は", Some("/console/events")),
        ("/console/notices/x", "There is no notification x.", "通知 x は", Some("/console/notices")),
    ] {
        let english = room.look(Rank::Viewer, path).await;
        let japanese = room.look_ja(Rank::Viewer, path).await;
        for (seen, words) in [(english, en), (japanese, ja)] {
            assert_eq!(seen.status(), 404, "{path}");
            assert!(seen.text.contains(words), "{path}: {}", seen.text);
            let leads_to = |to: &str| seen.text.contains(&format!("href=\"{to}\""));
            assert!(leads_to("/console") && list.is_none_or(leads_to), "{path}: {}", seen.text);
        }
    }
    let stranger = room.ask("GET", "/console/nope", &[], "").await;
    assert_eq!(stranger.status(), 404, "whoever asks");
    assert_eq!(room.act(Rank::Admin, "/console/nope", "").await.status(), 404, "also by a form");
}

#[tokio::test]
async fn h1_a_login_header_that_comes_twice_is_nobodys() {
    let room = Room::open().await;
    let rank = |rank: &str| ("remote-rank", rank.to_owned());
    let user = |name: &str| ("remote-user", name.to_owned());
    for headers in [
        vec![user("attacker"), user("mika"), rank("viewer")],
        vec![user("mika"), rank("admin"), rank("viewer")],
        vec![user("mika"), user("mika")],
        vec![user("attacker, mika")],
    ] {
        let seen = room.ask("GET", "/console/account", &headers, "").await;
        assert_eq!(seen.status(), 303, "{headers:?}");
    }
    assert_eq!(room.ask("GET", "/console/account", &[user("mika"), rank("viewer")], "").await.status(), 200);
}

#[tokio::test]
async fn h1_a_form_from_another_origin_is_not_carried_out() {
    let room = Room::open().await;
    // A sibling of ours planted the seed, and so knows the token.
    let cookie = format!("sekisho_seed={}", "5".repeat(64));
    let form = format!("rank=admin&csrf={}", csrf(&cookie));
    let with = |origin: &str| {
        let more =
            [("cookie", cookie.clone()), ("host", "sekisho.example.jp".into()), ("origin", origin.into())];
        [by_proxy(Rank::Admin), more.to_vec()].concat()
    };
    for (origin, status) in
        [("http://evil.example.jp", 403), ("null", 403), ("https://sekisho.example.jp", 200)]
    {
        let seen = room.ask("POST", "/console/users/invite", &with(origin), &form).await;
        assert_eq!(seen.status(), status, "{origin}: {}", seen.text);
    }
}

#[tokio::test]
async fn h1_who_tries_many_passwords_is_told_to_wait_but_not_a_browser_that_logged_in_before() {
    let room = Room::open().await;
    room.settle_in("mika", Rank::Viewer).await;
    let cookie = format!("sekisho_seed={}", "5".repeat(64));
    let right = format!("name=mika&password={}&csrf={}", PASSWORD.replace(' ', "+"), csrf(&cookie));
    let enter =
        async |cookie: String| room.ask("POST", "/console/login", &[("cookie", cookie)], &right).await;
    let entered = enter(cookie.clone()).await;
    let set = entered.head.headers.get_all("set-cookie").iter().map(|line| line.to_str().unwrap());
    let device =
        set.filter_map(|line| line.split(';').next()).find(|line| line.starts_with("sekisho_device="));
    let device = format!("{cookie}; {}", device.unwrap());
    let form = |n: usize| format!("name=user-{n}&password=what+could+it+be&csrf={}", csrf(&cookie));
    for n in 0..20 {
        let seen = room.ask("POST", "/console/login", &[("cookie", cookie.clone())], &form(n)).await;
        assert_eq!(seen.status(), 200, "{n}");
    }
    let seen = room.ask("POST", "/console/login", &[("cookie", cookie.clone())], &form(20)).await;
    assert_eq!(seen.status(), 429);
    assert!(seen.head.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() <= 61);
    assert!(seen.text.contains("too many wrong passwords"), "{}", seen.text);
    assert_eq!(enter(cookie.clone()).await.status(), 429, "nobody knows this browser");
    assert_eq!(enter(device).await.status(), 303);
}
