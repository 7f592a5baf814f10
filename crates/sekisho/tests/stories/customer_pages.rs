//! F7, F8: a customer sees their order, cancels it in time, asks about it; and nobody else does.

use sekisho_lab::chat::{Chat, SLACK_PATH};
use serde_json::{Value, json};

use crate::reservations::{Shop, json_of};
use crate::support::{Place, Response, each_store, wait_until};

const PAGES: &str = "[pages]\nurl = \"http://pay.example.jp\"\n";
const DAY_MS: i64 = 86_400_000;

/// An order that was asked for, and where its customer finds it.
struct Order {
    id: String,
    path: String,
}

fn order(shop: &Shop, reference: &str, in_ms: i64, more: &Value) -> Order {
    let starts_at = sekisho::now().plus_ms(in_ms).to_string();
    let mut body =
        json!({ "starts_at": starts_at, "language": "ja", "retry_url": "https://shop.example.jp/pay" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let held = shop.hold_with(&format!("slot-{reference}"), reference, body);
    assert_eq!(held.status, 201, "{}", held.text());
    let held = json_of(&held);
    let url = held["customer_url"].as_str().unwrap();
    let path = url.strip_prefix("http://pay.example.jp").unwrap().to_owned();
    Order { id: held["id"].as_str().unwrap().to_owned(), path }
}

fn visit(shop: &Shop, method: &str, path: &str, form: &str) -> Response {
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    sekisho_lab::http::request(shop.gateway.address(), method, path, &headers, form.as_bytes()).unwrap()
}

fn page(shop: &Shop, path: &str) -> String {
    let answer = visit(shop, "GET", path, "");
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    for (name, value) in
        [("cache-control", "no-store"), ("referrer-policy", "no-referrer"), ("x-robots-tag", "noindex")]
    {
        assert_eq!(answer.header(name), Some(value), "{path}");
    }
    answer.text()
}

#[test]
fn f8_a_customer_sees_the_order_and_pays_once_more() {
    each_store(|place| {
        let shop = Shop::open(place, PAGES);
        let order = order(
            &shop,
            "A-1",
            10 * DAY_MS,
            &json!({ "email": "taro@example.jp", "customer": "Taro Yamada" }),
        );
        let held = page(&shop, &order.path);
        for words in
            ["仮押さえ中", "Planetarium", "¥4,800", "A-1", "お問い合わせ", "https://shop.example.jp/pay"]
        {
            assert!(held.contains(words), "{words} in {held}");
        }
        let english = page(&shop, &format!("{}?lang=en", order.path));
        assert!(english.contains("On hold") && english.contains("lang=\"en\""), "{english}");
        for hidden in ["taro@", "Yamada"] {
            assert!(!held.contains(hidden) && !english.contains(hidden), "{hidden}");
        }
        let failed = page(&shop, &format!("{}/failed?try=1", order.path));
        assert!(
            failed.contains("決済処理中にエラーが発生しました。再度お試しください。")
                && failed.contains("再試行"),
            "{failed}"
        );
        let third = page(&shop, &format!("{}/failed?try=3", order.path));
        assert!(third.contains("お問い合わせください") && !third.contains("再試行"), "{third}");
        // Coming back from paying proves nothing.
        assert!(page(&shop, &format!("{}/thanks", order.path)).contains("お支払いを確認しています"));
        shop.pay("A-1");
        shop.wait_for(&order.id, "confirmed");
        let paid = page(&shop, &format!("{}/thanks", order.path));
        assert!(
            paid.contains("予約確定") && paid.contains("お支払い済み") && !paid.contains("確認しています"),
            "{paid}"
        );
        assert!(!paid.contains("https://shop.example.jp/pay"));
        assert_eq!(visit(&shop, "GET", &format!("{}/failed", order.path), "").status, 303);
    });
}

#[test]
fn f7_a_customer_cancels_in_time_once_and_the_money_goes_back() {
    each_store(|place| {
        let shop = Shop::open(place, PAGES);
        let early = order(&shop, "B-1", 2 * DAY_MS + 60_000, &json!({}));
        let late = order(&shop, "B-2", 2 * DAY_MS - 60_000, &json!({}));
        for (one, reference) in [(&early, "B-1"), (&late, "B-2")] {
            shop.pay(reference);
            shop.wait_for(&one.id, "confirmed");
        }
        let cancel = |order: &Order| format!("{}/cancel", order.path);
        // GET asks, and does nothing.
        assert!(page(&shop, &cancel(&early)).contains("全額をお支払い方法に返金します"));
        assert_eq!(shop.get(&format!("/v1/reservations/{}", early.id))["status"], "confirmed");
        for _ in 0..2 {
            let done = visit(&shop, "POST", &cancel(&early), "");
            assert_eq!((done.status, done.header("location")), (303, Some(&*early.path)));
        }
        shop.wait_for_refund(&early.id);
        wait_until("the refund to be shown", || page(&shop, &early.path).contains("返金済み"));
        let shown = page(&shop, &early.path);
        assert!(shown.contains("キャンセル済み"), "{shown}");
        let cancelled = shop.get(&format!("/v1/reservations/{}", early.id))["cancelled"].clone();
        assert_eq!(cancelled["by"], "CUSTOMER");
        let log = shop.get("/v1/compensations");
        assert_eq!(log["items"][0]["trigger"], "CUSTOMER_CANCEL", "{log}");

        let refused = visit(&shop, "POST", &cancel(&late), "");
        assert_eq!(refused.status, 303);
        assert!(page(&shop, &cancel(&late)).contains("お問い合わせください"));
        assert_eq!(shop.get(&format!("/v1/reservations/{}", late.id))["status"], "confirmed");
    });
}

#[test]
fn f8_a_question_knows_its_order_and_is_told_once() {
    each_store(|place| {
        let shop = Shop::open(place, PAGES);
        let order = order(&shop, "C-1", 10 * DAY_MS, &json!({}));
        let path = format!("{}/contact", order.path);
        assert!(page(&shop, &path).contains("C-1"));
        let wrong = visit(&shop, "POST", &path, "name=&email=nobody&text=");
        assert_eq!(wrong.status, 422);
        let text = wrong.text();
        for words in ["お名前を100文字以内", "taro@example.jp のように", "2,000文字以内", "nobody"]
        {
            assert!(text.contains(words), "{words} in {text}");
        }
        // What a program fills in that no person sees is thrown away.
        let trap = visit(&shop, "POST", &path, "name=x&email=x%40example.jp&text=buy&website=spam");
        assert_eq!(trap.status, 303);
        let sent =
            visit(&shop, "POST", &path, "name=Taro&email=taro%40example.jp&text=%3Cb%3EWhen%3F%3C%2Fb%3E");
        assert_eq!(sent.status, 303);
        assert!(page(&shop, sent.header("location").unwrap()).contains("受け付けました"));
        let events = shop.get("/v1/events?source=sekisho&type=inquiry.received");
        assert_eq!(events["items"].as_array().unwrap().len(), 1, "{events}");
        let inquiries = shop.get("/v1/inquiries");
        let inquiry = &inquiries["items"][0];
        assert_eq!((&inquiry["order"], &inquiry["status"]), (&json!(order.id), &json!("open")));
        assert_eq!((&inquiry["name"], &inquiry["text"]), (&json!("Taro"), &json!("<b>When?</b>")));
        let id = inquiry["id"].as_str().unwrap();
        for _ in 0..2 {
            assert_eq!(shop.post(&format!("/v1/inquiries/{id}/close"), &json!({}))["status"], "closed");
        }
        assert_eq!(shop.get("/v1/inquiries?status=open")["items"], json!([]));
        let more: Vec<u16> = (0..3)
            .map(|n| {
                visit(&shop, "POST", &path, &format!("name=T&email=t%40example.jp&text=again+{n}")).status
            })
            .collect();
        assert_eq!(more, [303, 303, 429]);
    });
}

#[test]
fn f5_operators_hear_of_failures_cases_and_questions_in_words() {
    each_store(|place| {
        let chat = Chat::start().unwrap();
        let url = format!("{}{SLACK_PATH}", chat.url());
        let channel = format!(
            "[[channel]]\nname = \"alerts\"\nkind = \"slack\"\nurl = \"{url}\"\nallow_private = true\n"
        );
        let shop = Shop::open(place, &format!("{PAGES}[fulfilment]\nattempts = 1\n{channel}"));
        let order = order(&shop, "F-1", 10 * DAY_MS, &json!({ "fulfilment": { "kind": "video" } }));
        shop.pay("F-1");
        shop.wait_for(&order.id, "confirmed");
        let id =
            shop.get(&format!("/v1/reservations/{}", order.id))["fulfilment"].as_str().unwrap().to_owned();
        let result = json!({ "run": 1, "status": "failed", "error": "out of memory" });
        shop.post(&format!("/v1/fulfilments/{id}/result"), &result);
        let contact = format!("{}/contact", order.path);
        let asked = visit(&shop, "POST", &contact, "name=Taro&email=taro%40example.jp&text=Where+is+it%3F");
        assert_eq!(asked.status, 303);
        let heard = |words: &[&str]| {
            let all: Vec<String> = chat.received().iter().map(|got| got.json().to_string()).collect();
            all.iter().filter(|text| words.iter().all(|word| text.contains(word))).count()
        };
        for words in [
            &["VIDEO_RENDER_FAILURE", &*id, "out of memory"][..],
            &["RENDER_FAILURE (", &id],
            &["Where is it?", &order.id],
        ] {
            wait_until(&format!("operators hear {words:?}"), || heard(words) > 0);
        }
        assert_eq!(heard(&["Where is it?"]), 1);
        assert_eq!(heard(&["VIDEO_RENDER_FAILURE"]), 1);
    });
}

#[test]
fn f8_what_failed_is_said_with_the_promise_and_its_deadline() {
    each_store(|place| {
        let shop = Shop::open(place, &format!("{PAGES}[fulfilment]\nattempts = 1\n"));
        let made = json!({ "fulfilment": { "kind": "video", "name": "星空" } });
        let order = order(&shop, "D-1", 10 * DAY_MS, &made);
        shop.pay("D-1");
        shop.wait_for(&order.id, "confirmed");
        wait_until("it is being made", || page(&shop, &order.path).contains("生成中"));
        let id =
            shop.get(&format!("/v1/reservations/{}", order.id))["fulfilment"].as_str().unwrap().to_owned();
        shop.post(
            &format!("/v1/fulfilments/{id}/result"),
            &json!({ "run": 1, "status": "failed", "error": "no memory" }),
        );
        let shown = page(&shop, &order.path);
        for words in [
            "生成失敗",
            "動画の生成に問題が発生しました。24時間以内に解決しない場合、自動的に返金されます。お急ぎの場合はお問い合わせください。",
            "自動返金の期限:",
        ] {
            assert!(shown.contains(words), "{words} in {shown}");
        }
        assert!(!shown.contains("no memory"));
    });
}

#[test]
fn f8_wrong_links_get_one_answer_and_a_look_changes_nothing() {
    let place = Place::sqlite();
    let shop = Shop::open(&place, PAGES);
    let order = order(&shop, "E-1", 10 * DAY_MS, &json!({}));
    let token = order.path.strip_prefix("/o/").unwrap();
    let mut altered = token.to_owned();
    altered.replace_range(10..11, if &token[10..11] == "A" { "B" } else { "A" });
    let unknown = visit(&shop, "GET", &format!("/o/{altered}"), "");
    assert_eq!(unknown.status, 404);
    for wrong in ["/o/x", "/o/%ff", &format!("/o/{token}/nothing"), &format!("/o/{altered}/cancel")] {
        let answer = visit(&shop, "GET", wrong, "");
        assert_eq!((answer.status, answer.text()), (404, unknown.text()), "{wrong}");
    }
    let before = shop.get(&format!("/v1/reservations/{}", order.id));
    for path in ["", "/failed", "/thanks", "/cancel", "/contact", "?lang=en"] {
        page(&shop, &format!("{}{path}", order.path));
    }
    assert_eq!(shop.get(&format!("/v1/reservations/{}", order.id)), before);
    let foreign = [("sec-fetch-site", "cross-site")];
    let path = format!("{}/cancel", order.path);
    let refused = sekisho_lab::http::request(shop.gateway.address(), "POST", &path, &foreign, b"").unwrap();
    assert_eq!(refused.status, 400);
    assert_eq!(shop.get(&format!("/v1/reservations/{}", order.id))["status"], "hold");
    let policy = page(&shop, "/policy?lang=ja");
    for words in [
        "返金ポリシー",
        "投影予定日の48時間前までキャンセル・返金可能です",
        "システム障害により動画生成ができなかった場合、全額返金いたします",
        "返金処理には3〜5営業日かかる場合があります",
    ] {
        assert!(policy.contains(words), "{words}");
    }
    assert!(!shop.gateway.server.stderr().contains(token), "a link is a key: it is in no log line");
}

#[test]
fn f2_a_renderer_answers_for_its_run_by_the_token_it_was_sent() {
    each_store(|place| {
        let shop = Shop::open(place, "");
        let made =
            shop.post("/v1/fulfilments", &json!({ "kind": "video", "tier": "free", "livemode": false }));
        let id = made["id"].as_str().unwrap().to_owned();
        let find = || shop.get("/v1/events?source=sekisho&type=fulfilment.requested")["items"][0].clone();
        wait_until("the request", || !find().is_null());
        let event = format!("/v1/events/{}", find()["id"].as_str().unwrap());
        assert!(
            !shop.get(&event)["body"].as_str().unwrap().contains("frt_"),
            "masked where bodies are shown"
        );
        let event = shop.get(&format!("{event}?addresses=full"));
        let body: Value = serde_json::from_str(event["body"].as_str().unwrap()).unwrap();
        let (url, token) =
            (body["about"]["result_url"].as_str().unwrap(), body["about"]["result_token"].as_str().unwrap());
        assert!(url.ends_with(&format!("/v1/fulfilments/{id}/result")), "{url}");
        let answer = |path: &str, token: &str, run: u32| {
            let bearer = format!("Bearer {token}");
            let headers = [("authorization", &*bearer), ("content-type", "application/json")];
            let body =
                json!({ "run": run, "status": "done", "url": "https://cdn.example.jp/1.mp4" }).to_string();
            sekisho_lab::http::request(shop.gateway.address(), "POST", path, &headers, body.as_bytes())
                .unwrap()
        };
        let path = format!("/v1/fulfilments/{id}/result");
        assert_eq!(answer(&path, &format!("{token}A"), 1).status, 401);
        assert_eq!(answer("/v1/fulfilments/ful_0000000000000/result", token, 1).status, 401);
        assert_eq!(answer(&path, token, 2).status, 422, "it speaks for its own run");
        for other in [format!("/v1/fulfilments/{id}/retry"), "/v1/slots".to_owned()] {
            assert_eq!(answer(&other, token, 1).status, 401, "{other}");
        }
        let done = answer(&path, token, 1);
        assert_eq!((done.status, &json_of(&done)["counted"]), (200, &json!(true)), "{}", done.text());
        assert_eq!(shop.get(&format!("/v1/fulfilments/{id}"))["status"], "done");
    });
}
