use std::fs;
use std::net::Ipv4Addr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::app::Reply;
use crate::server::{ServedRequest, StubServer};
use crate::sink::REQUEST_MAX;

const SHOP: &str = r#"<!doctype html><html><head><meta charset="utf-8"><title>Shop</title>
<meta name="viewport" content="width=device-width"></head><body>
<h1>Orders</h1>
<form action="/bought"><label>Name <input id="name" name="name" value="old"></label>
<label>Day <input id="day" name="day" type="date"></label>
<label>Size <select id="size" name="size"><option value="s">Small</option><option value="l">Large</option></select></label>
<button id="buy">Buy</button></form>
<button class="act">First</button><button class="act" style="display:none">Later hidden</button>
<button class="act" id="later">Later</button><button id="ask">Ask</button>
<ul><li>one</li><li>two</li></ul><p id="keys"></p><p id="asked"></p><p id="busy" hidden>Busy</p>
<script src="/shop.js"></script></body></html>"#;
const SHOP_SCRIPT: &str = r"
const at = (id) => document.getElementById(id);
at('later').onclick = () => {
  at('busy').hidden = false;
  setTimeout(() => { at('busy').hidden = true; at('keys').insertAdjacentHTML('afterend', '<b id=done>Done</b>'); }, 100);
};
at('ask').onclick = () => { at('asked').textContent = confirm('Really?') ? 'yes' : 'no'; };
document.onkeydown = (event) => { at('keys').textContent += `${event.shiftKey ? 'S-' : ''}${event.key} `; };
";

const BROKEN: &str = r#"<!doctype html><html><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width"></head><body>
<div style="overflow-x:auto"><div style="width:2000px">a table</div></div>
<main><p class="wide" style="width:700px">too wide</p></main>
<label>Named <input id="named"></label><label for="other">Other</label><select id="other"></select>
<a href="/">Link</a><button aria-label="Close"></button><button hidden></button><input type="hidden">
<input id="bare" placeholder="only this"><a class="icon" href="/"><svg></svg></a><button id="empty"></button>
<script>document.title = 'never'</script><script src="/broken.js"></script></body></html>"#;
const GOOD: &str = r#"<!doctype html><html><head><meta name="viewport" content="width=device-width"></head><body>
<div style="overflow-x:auto"><div style="width:2000px">a table</div></div></body></html>"#;

fn answer(request: &ServedRequest) -> Reply {
    let page = |kind: &str, body: &str| {
        let reply = Reply::status(200).with_header("content-type", kind).with_body(body);
        reply.with_header("content-security-policy", "script-src 'self'")
    };
    let language = request.header("accept-language").unwrap_or_default();
    match request.path.split('?').next().unwrap_or_default() {
        "/shop" => {
            page("text/html", SHOP).with_header("set-cookie", "desk=42; HttpOnly; SameSite=Lax; Path=/")
        }
        "/shop.js" => page("text/javascript", SHOP_SCRIPT),
        "/broken" => page("text/html", BROKEN),
        "/broken.js" => page("text/javascript", "console.warn('careful'); nowhere.to.be.found();"),
        "/good" => page("text/html", GOOD),
        "/bought" => page("text/plain", &format!("{} in {language}", request.path)),
        _ => Reply::status(404),
    }
}

async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        if let Some((request, end)) = ServedRequest::parse(&bytes)? {
            bytes.drain(..end);
            stream.write_all(&answer(&request).encode()).await?;
        } else if bytes.len() > REQUEST_MAX || stream.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
    }
}

fn site() -> (StubServer, String) {
    let server = StubServer::start((Ipv4Addr::LOCALHOST, 0).into(), serve).unwrap();
    let url = format!("http://{}", server.address());
    (server, url)
}

#[test]
fn a_person_reads_clicks_types_and_waits() {
    let (_site, url) = site();
    let browser = Driver::start().unwrap().open(Look::desk("en"));
    browser.go(&format!("{url}/shop"));
    assert_eq!((browser.title().as_str(), browser.text("h1").as_str()), ("Shop", "Orders"));
    assert_eq!((browser.count("li"), browser.texts("li")), (2, vec!["one".to_owned(), "two".to_owned()]));
    assert_eq!(browser.attribute("#buy", "id").as_deref(), Some("buy"));
    assert_eq!(browser.attribute("#buy", "class"), None);
    assert_eq!(browser.eval("[1, 2].map((n) => n + 1)"), json!([2, 3]));
    assert_eq!(browser.eval("Promise.resolve('later')"), "later");
    let cookies = browser.cookies();
    assert_eq!((cookies.len(), cookies[0].name.as_str(), cookies[0].http_only), (1, "desk", true));
    assert_eq!((cookies[0].same_site.as_str(), cookies[0].expires_at), ("Lax", None));

    browser.click_text("button.act", "Later");
    browser.wait_for("#done");
    browser.wait_for_text("Done");
    browser.wait_gone("#busy");
    assert!(browser.page_text().contains("Done") && !browser.page_text().contains("Busy"));

    browser.press("/");
    browser.press("j");
    browser.press("Shift+Tab");
    assert_eq!(browser.text("#keys"), "/ j S-Shift S-Tab");

    browser.click("#ask");
    assert_eq!(browser.accept_dialog().as_deref(), Some("Really?"));
    assert_eq!((browser.text("#asked").as_str(), browser.accept_dialog()), ("yes", None));
    browser.click("#ask");
    browser.dismiss_dialog();
    assert_eq!(browser.text("#asked"), "no");

    browser.fill("#name", "関所 🚧");
    browser.fill("#day", "2026-07-28");
    browser.choose("#size", "l");
    assert_eq!((browser.value("#name").as_str(), browser.value("#size").as_str()), ("関所 🚧", "l"));
    browser.fill("#name", "関");
    browser.press("Enter");
    browser.wait_for_url("/bought");
    assert!(browser.page_text().contains("name=%E9%96%A2&day=2026-07-28&size=l"), "{}", browser.page_text());
    browser.back();
    browser.reload();
    assert_eq!(browser.url(), format!("{url}/shop"));
}

#[test]
fn a_page_is_seen_at_exactly_its_width_in_its_language_and_colours() {
    let (_site, url) = site();
    let driver = Driver::start().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let check = |look: Look, date: &str| {
        let browser = driver.open(look);
        browser.go(&format!("{url}/bought"));
        assert!(browser.page_text().ends_with(&format!("in {}", look.language)), "{}", browser.page_text());
        browser.go(&format!("{url}/shop"));
        assert_eq!(browser.eval("[innerWidth, innerHeight]"), json!([look.width, look.height]));
        assert_eq!(browser.eval("navigator.language"), look.language);
        assert_eq!(browser.eval("matchMedia('(prefers-color-scheme: dark)').matches"), look.dark);
        assert_eq!(browser.eval("new Date(2026, 6, 28).toLocaleDateString()"), date);
        browser.eval("void (document.querySelector('h1').style.height = '3000px')");
        let file = dir.path().join(format!("{}.png", look.width));
        browser.screenshot(&file);
        let (width, height) = png_size(&file);
        assert_eq!(width, look.width);
        assert!(height > 3000, "{height}");
    };
    check(Look::phone("ja").dark(), "2026/7/28");
    check(Look::desk("en"), "7/28/2026");
}

fn png_size(file: &Path) -> (u32, u32) {
    let bytes = fs::read(file).unwrap();
    assert_eq!(&bytes[1..4], b"PNG");
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[test]
fn what_is_wrong_with_a_page_is_found() {
    let (_site, url) = site();
    let mut browser = Driver::start().unwrap().open(Look::phone("en"));
    browser.go(&format!("{url}/good"));
    assert_eq!((browser.overflow(), browser.unlabelled()), (None, vec![]));
    browser.go(&format!("{url}/broken"));
    let wide = browser.overflow().unwrap();
    assert!(wide.starts_with("main > p.wide (the page is 7") && wide.ends_with("the screen 390)"), "{wide}");
    assert_eq!(browser.unlabelled(), ["#bare", "a.icon:nth-of-type(2)", "#empty"]);
    for _ in 0..2 {
        let log = browser.log();
        let has =
            |level: &str, text: &str| log.iter().any(|own| own.starts_with(level) && own.contains(text));
        assert!(has("SEVERE", "Content Security Policy"), "{log:?}");
        assert!(has("SEVERE", "nowhere is not defined") && has("WARNING", "careful"), "{log:?}");
    }

    browser.limit = Duration::from_millis(100);
    let failed = catch_unwind(AssertUnwindSafe(|| browser.wait_for("#never"))).unwrap_err();
    let message = failed.downcast_ref::<String>().unwrap();
    for part in ["see #never within 100ms", &format!("at {url}/broken"), "too wide", "nowhere is not defined"]
    {
        assert!(message.contains(part), "{part} in {message}");
    }
    // Nothing but this machine is within reach.
    let left = catch_unwind(AssertUnwindSafe(|| browser.go("http://example.com/"))).unwrap_err();
    assert!(left.downcast_ref::<String>().unwrap().contains("ERR_NAME_NOT_RESOLVED"));
}

#[test]
fn nothing_is_left_of_a_browser_even_when_nobody_closes_it() {
    let error = Chromedriver::start("no-such-chromedriver").unwrap_err();
    assert!(error.contains("`chromium-driver`"), "{error}");

    let driver = Driver::start().unwrap();
    let (dir, group) = (driver.0.dir.clone(), driver.0.child.id());
    let browser = driver.open(Look::desk("en"));
    drop(driver);
    assert!(alive(group) > 1 && dir.exists(), "a browser keeps its driver");
    drop(browser);
    assert_gone(group, &dir);

    // As after SIGKILL: nobody closes the browser, only the warden acts.
    let mut driver = Chromedriver::start("chromedriver").unwrap();
    let (dir, group) = (driver.dir.clone(), driver.child.id());
    let opened = json!(capabilities(Look::phone("ja"))).to_string();
    assert_eq!(crate::http::post(driver.address, "/session", &[], opened.as_bytes()).unwrap().status, 200);
    assert!(alive(group) > 1 && dir.exists());
    driver.warden.act();
    assert_gone(group, &dir);
}

#[track_caller]
fn assert_gone(group: u32, dir: &Path) {
    assert!(!dir.exists());
    // The kernel takes its time over killed processes.
    let since = Instant::now();
    while alive(group) > 0 {
        assert!(since.elapsed() < START, "{} still run", alive(group));
        sleep(POLL);
    }
}

/// Processes of a group that still run.
fn alive(group: u32) -> usize {
    let of_group = |stat: &str| {
        let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
        let running = !matches!(fields.next(), None | Some("Z" | "X"));
        running && fields.nth(1) == Some(&group.to_string())
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|process| fs::read_to_string(process.path().join("stat")).ok());
    stats.filter(|stat| of_group(stat)).count()
}
