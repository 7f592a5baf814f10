//! F1, F2, F5, H2: orders at the command line, beside a running server and without one: places are made, held, paid, given back;
//! what must be made is retried; cases are answered.

use serde_json::{Value, json};

use crate::support::{Gateway, Place, Provider, each_store, stripe_source, wait_until};

/// Stripe says that an order was paid.
fn pay(gateway: &Gateway, order: &str, amount: i64) {
    let body = json!({
        "id": format!("evt_{order}"), "object": "event", "type": "payment_intent.succeeded",
        "created": 2_100_000_000, "livemode": false,
        "data": { "object": {
            "id": format!("pi_{order}"), "object": "payment_intent", "status": "succeeded", "amount": amount,
            "amount_received": amount, "currency": "jpy", "metadata": { "order_id": order },
        } },
    });
    assert_eq!(gateway.send(&Provider::stripe().body(&body.to_string())).status, 204);
}

fn stop(gateway: &mut Gateway) {
    assert!(gateway.server.terminate().unwrap().success());
}

fn one(gateway: &Gateway, words: &[&str]) -> Value {
    gateway.type_in(&[words, &["--json"]].concat()).done().lines().remove(0)
}

fn count(gateway: &Gateway, words: &[&str]) -> usize {
    gateway.type_in(&[words, &["--json"]].concat()).done().lines().len()
}

fn status(gateway: &Gateway, what: &str, id: &str) -> String {
    one(gateway, &[what, "show", id])["status"].as_str().unwrap().to_owned()
}

/// Holds a place of a slot for 4,800 yen; says the id.
fn hold(gateway: &Gateway, slot: &str, order: &str, more: &[&str]) -> String {
    let words = [
        &[
            "reservations",
            "hold",
            slot,
            "--amount",
            "4800",
            "--currency",
            "jpy",
            "--reference",
            order,
            "--test",
        ],
        more,
    ];
    one(gateway, &words.concat())["id"].as_str().unwrap().to_owned()
}

/// Makes a slot of two places and fills it; nobody gets a third.
fn sell_out(gateway: &Gateway) {
    let set = ["slots", "set", "dome-1", "--capacity", "2", "--title", "Stars", "--test"];
    gateway.type_in(&set).done().mentions(&["dome-1: 2 of 2 free"]);
    let held = one(
        gateway,
        &["reservations", "hold", "dome-1", "--quantity", "2", "--amount", "9600", "--currency", "JPY"]
            .iter()
            .chain(&[
                "--reference",
                "o_1",
                "--hold",
                "45m",
                "--customer",
                "c_1",
                "--metadata",
                "seat=A1",
                "--test",
            ])
            .copied()
            .collect::<Vec<_>>(),
    );
    assert_eq!((&held["status"], &held["quantity"]), (&"hold".into(), &2.into()));
    assert_eq!(held["metadata"], json!({ "seat": "A1" }));
    let full = gateway.type_in(&["reservations", "hold", "dome-1", "--test"]).failed(1);
    let full = full.mentions(&["too few places are free: 0", "the next hold ends in 2", "seconds"]);
    assert_eq!(full.stdout, "");
    let slot = one(gateway, &["slots", "show", "dome-1", "--test"]);
    assert_eq!((&slot["held"], &slot["sold"], &slot["free"]), (&2.into(), &0.into(), &0.into()));
    gateway.type_in(&["slots", "set", "dome-1", "--capacity", "1", "--test"]).failed(1);
    gateway.type_in(&["slots", "--test"]).done().mentions(&["CAPACITY", "dome-1", "Stars"]);
    gateway.type_in(&["slots", "--live"]).done().mentions(&["no slots"]);
}

/// Holds longer, confirms and cancels by hand.
fn act_by_hand(gateway: &Gateway) {
    let id = one(gateway, &["reservations", "--slot", "dome-1"])["id"].as_str().unwrap().to_owned();
    let extended = gateway.type_in(&["reservations", "extend", &id, "--until", "2h"]).done();
    extended.mentions(&[&id, "hold until 20", "2 of dome-1"]);
    let confirm = ["reservations", "confirm", &id, "--reason", "paid in cash"];
    gateway.type_in(&confirm).done().mentions(&[&format!("{id}: confirmed")]);
    gateway.type_in(&["reservations", "show", &id]).done().mentions(&[
        "status     confirmed",
        "seat=A1",
        "(unpaid)",
        "reference  o_1",
    ]);
    let cancel = ["reservations", "cancel", &id, "--reason", "rain", "--no-refund"];
    gateway.type_in(&cancel).done().mentions(&[&format!("{id}: cancelled")]);
    let shown = one(gateway, &["reservations", "show", &id]);
    assert_eq!(shown["cancelled"]["reason"], "rain");
    for (words, expected) in [
        (["--status", "cancelled"], 1),
        (["--status", "hold"], 0),
        (["--customer", "c_1"], 1),
        (["--customer", "c_2"], 0),
        (["--slot", "dome-2"], 0),
        (["--tenant", "other"], 0),
    ] {
        assert_eq!(count(gateway, &[&["reservations", "list"], &words[..]].concat()), expected, "{words:?}");
    }
    gateway.type_in(&["audit", "--target", &id]).done().mentions(&["cli:"]);
}

#[test]
fn f1_places_are_sold_at_the_command_line_beside_a_server() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        sell_out(&gateway);
        act_by_hand(&gateway);
    });
}

#[test]
fn f1_places_are_sold_at_the_command_line_without_a_server() {
    each_store(|place| {
        let mut gateway = Gateway::open(place);
        stop(&mut gateway);
        sell_out(&gateway);
        act_by_hand(&gateway);
    });
}

#[test]
fn f1_who_pays_is_confirmed_and_a_repeated_order_holds_once() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        let once = ["--idempotency-key", "k1"];
        let id = hold(&gateway, "s", "o_1", &once);
        assert_eq!(hold(&gateway, "s", "o_1", &once), id);
        pay(&gateway, "o_1", 4_800);
        wait_until("it is confirmed", || status(&gateway, "reservations", &id) == "confirmed");
        gateway.type_in(&["reservations", "show", &id]).done().mentions(&["(paid)"]);
        let coloured = gateway.type_in(&["reservations", "--color", "always"]).done();
        assert!(coloured.stdout.contains("\x1b[32mconfirmed"), "{}", coloured.stdout);
        let free = gateway.type_in(&["reservations", "hold", "gift"]).done();
        assert!(free.stdout.contains(": confirmed, 1 of gift\n"), "{}", free.stdout);
    });
}

/// Something that is made in vain three times; says its id.
fn fail_thrice(gateway: &Gateway) -> String {
    let id = hold(gateway, "s", "o_1", &["--fulfilment", "video", "--input", "{\"scene\":3}"]);
    let made = one(gateway, &["reservations", "show", &id])["fulfilment"].as_str().unwrap().to_owned();
    gateway
        .type_in(&["fulfilments", "show", &made])
        .done()
        .mentions(&["waiting", "no run was requested yet"]);
    pay(gateway, "o_1", 4_800);
    wait_until("the first run", || status(gateway, "fulfilments", &made) == "processing");
    let fail = |run: &str| {
        let words =
            ["fulfilments", "result", &made, "--run", run, "--status", "failed", "--error", "no memory"];
        gateway.type_in(&words).done()
    };
    fail("1").mentions(&["processing"]);
    fail("1").mentions(&["not counted", "newer run"]);
    fail("2");
    fail("3").mentions(&["failed"]);
    fail("3").mentions(&["not counted", "said before"]);
    made
}

#[test]
fn f2_what_failed_is_retried_and_what_became_of_a_run_is_said() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        let made = fail_thrice(&gateway);
        gateway.type_in(&["fulfilments"]).done().mentions(&[&made, "failed", "video", "no memory"]);
        let page = gateway.type_in(&["fulfilments", "show", &made]).done();
        page.mentions(&["scene", "RUN", "3    failed", "no memory"]);
        let retry = ["fulfilments", "retry", &made, "--reason", "more memory"];
        gateway.type_in(&retry).done().mentions(&["processing, run 4"]);
        gateway.type_in(&retry).failed(1).mentions(&["only one that failed"]);
        let done =
            ["fulfilments", "result", &made, "--run", "4", "--status", "done", "--url", "https://x.jp/v"];
        gateway.type_in(&done).done().mentions(&[&format!("{made}: done")]);
        assert_eq!(count(&gateway, &["fulfilments", "--status", "done", "--test"]), 1);
        assert_eq!(count(&gateway, &["fulfilments", "--status", "failed"]), 0);
        assert_eq!(count(&gateway, &["fulfilments", "--live"]), 0);
    });
}

#[test]
fn f5_a_case_is_answered_at_the_command_line_and_recorded() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        let made = fail_thrice(&gateway);
        let case = one(&gateway, &["cases", "--status", "open", "--trigger", "RENDER_FAILURE"]);
        assert_eq!(case["subject"], *made);
        let id = case["id"].as_str().unwrap();
        gateway.type_in(&["cases"]).done().mentions(&["ANSWER BY", "REFUND AT", id, "open"]);
        gateway.type_in(&["cases", "show", id]).done().mentions(&[
            "RENDER_FAILURE_TIMEOUT",
            "refund",
            "level      2",
        ]);
        let seen = gateway.type_in(&["cases", "ack", id, "--note", "on it"]).done();
        seen.mentions(&["acknowledged", "RENDER_FAILURE_TIMEOUT"]);
        gateway
            .type_in(&["cases", "resolve", id, "--how", "magic"])
            .failed(2)
            .mentions(&["fixed, by_hand, no_action"]);
        let over = ["cases", "resolve", id, "--how", "by_hand", "--note", "sent a DVD"];
        gateway.type_in(&over).done().mentions(&[&format!("{id}: resolved")]);
        gateway.type_in(&["cases", "ack", id]).failed(1).mentions(&["was resolved"]);
        gateway.type_in(&["cases", "show", id]).done().mentions(&["by_hand", "sent a DVD"]);
        let log = gateway.type_in(&["compensation", "list", "--type", "MANUAL_RESOLUTION"]).done();
        log.mentions(&["RENDER_FAILURE", "sent a DVD", "ADMIN:"]);
        assert_eq!(count(&gateway, &["compensation", "--type", "REFUND"]), 0);
    });
}

#[test]
fn f4_which_rules_hold_for_an_order_and_when_they_act_is_said_from_any_part_of_it() {
    each_store(|place| {
        let config = "[[compensation]]\nname = \"RENDER_FAILURE_TIMEOUT\"\nafter = \"12h\"\n";
        let mut gateway = Gateway::with(place, &(stripe_source("") + config));
        let made = fail_thrice(&gateway);
        let shown = one(&gateway, &["fulfilments", "show", &made]);
        let (reservation, payment) =
            (shown["reservation"].as_str().unwrap(), shown["payment"].as_str().unwrap());
        let check = |gateway: &Gateway| {
            let of = |id: &str| one(gateway, &["compensation", "check", id])["rules"].clone();
            let rules = of(&made);
            assert_eq!((&of(reservation), &of(payment)), (&rules, &rules));
            let find = |name: &str| rules.as_array().unwrap().iter().find(|one| one["rule"] == name).cloned();
            let first = find("RENDER_FAILURE_FIRST").unwrap();
            assert_eq!((&first["status"], &first["subject"]), (&"done".into(), &made.as_str().into()));
            let refund = find("RENDER_FAILURE_TIMEOUT").unwrap();
            assert_eq!((&refund["status"], &refund["action"]), (&"waiting".into(), &"refund".into()));
            let case = one(gateway, &["cases", "show", refund["case"].as_str().unwrap()]);
            assert_eq!(refund["acts_at"], case["refund_at"], "a rule acts when its case says so");
            assert_eq!(find("EXPIRED_AFTER_PAYMENT").unwrap()["status"], "idle");
            assert_eq!(find("DUPLICATE_PAYMENT"), None, "it is switched off");
            let table = gateway.type_in(&["compensation", "check", &made]).done();
            assert!(!table.stdout.contains("EXPIRED_AFTER_PAYMENT"), "{}", table.stdout);
            table.mentions(&["ACTS AT", "RENDER_FAILURE_TIMEOUT", "waiting", "--all"]);
            let rules = gateway.type_in(&["compensation", "rules"]).done();
            rules.mentions(&[
                "RENDER_FAILURE_TIMEOUT   RENDER_FAILURE     12h",
                "4h",
                "amount_kept > 0",
                "false",
            ]);
        };
        check(&gateway);
        let create = ["keys", "create", "--scopes", "read", "--tenant", "other", "--name", "other"];
        let bearer = format!("Bearer {}", gateway.type_in(&create).done().stdout.trim());
        let of_another = |path: &str| {
            let headers = [("authorization", bearer.as_str())];
            sekisho_lab::http::request(gateway.address(), "GET", path, &headers, b"").unwrap().status
        };
        assert_eq!(of_another(&format!("/v1/compensation_rules/check/{made}")), 404);
        assert_eq!(of_another("/v1/compensation_rules"), 403);
        let case = one(&gateway, &["cases"])["id"].as_str().unwrap().to_owned();
        stop(&mut gateway);
        check(&gateway);
        gateway.type_in(&["cases", "resolve", &case, "--how", "fixed"]).done();
        gateway.type_in(&["compensation", "check", &made]).done().mentions(&["stopped"]);
    });
}

#[test]
fn h2_what_is_wrong_with_an_order_is_said_and_how_to_write_it() {
    let place = Place::sqlite();
    let gateway = Gateway::open(&place);
    let cases: [(&[&str], i32, &str); 16] = [
        (&["slots", "show", "nope"], 1, "there is no slot nope"),
        (&["slots", "set", "a b"], 2, "id: "),
        (&["slots", "set", "a", "--capacity", "0"], 2, "capacity: "),
        (&["slots", "set", "a", "--starts-at", "soon"], 2, "2026-02-02"),
        (&["reservations", "show", "rsv_x"], 1, "no reservation has the id rsv_x"),
        (&["reservations", "--status", "held"], 2, "hold, confirmed, expired, cancelled"),
        (&["reservations", "hold", "s", "--hold", "soon"], 2, "hold: "),
        (&["reservations", "hold", "s", "--amount", "100"], 2, "--currency"),
        (&["reservations", "hold", "s", "--fulfilment", "video", "--input", "{"], 2, "expected JSON"),
        (&["reservations", "extend", "rsv_x", "--until", "later"], 2, "how long from now"),
        (&["reservations", "cancel", "rsv_x"], 2, "--reason"),
        (&["fulfilments", "--status", "paid"], 2, "waiting, processing, done, failed"),
        (&["fulfilments", "retry", "ful_x", "--reason", "x"], 1, "no fulfilment has the id ful_x"),
        (&["cases", "show", "case_x"], 1, "no case has the id case_x"),
        (&["compensation", "check", "pay_x"], 1, "no payment, reservation or fulfilment has the id pay_x"),
        (&["compensation", "--type", "GIFT"], 2, "REFUND, SLOT_REASSIGN, MANUAL_RESOLUTION"),
    ];
    for (words, code, said) in cases {
        gateway.type_in(words).failed(code).mentions(&[said]);
    }
}
