//! D7, D8: one payment with all the evidence for it, beside a running server and without one. What somebody changes behind
//! our back in the database is seen in the report.

use serde_json::{Value, json};

use crate::support::{Gateway, Place, Provider, each_store, route_to, stripe_source, wait_until};

/// Stripe says that an order was paid; whoever paid left an address.
fn pay(gateway: &Gateway, order: &str, amount: i64) {
    let body = json!({
        "id": format!("evt_{order}"), "object": "event", "type": "payment_intent.succeeded",
        "created": 1_790_000_000, "livemode": true,
        "data": { "object": {
            "id": format!("pi_{order}"), "object": "payment_intent", "status": "succeeded", "amount": amount,
            "amount_received": amount, "currency": "jpy", "receipt_email": "taro.yamada@example.com",
            "metadata": { "order_id": order },
        } },
    });
    assert_eq!(gateway.send(&Provider::stripe().body(&body.to_string())).status, 204);
    // Nobody listens where the announcement goes: its delivery is a dead letter.
    wait_until("it was announced", || {
        let said = gateway.type_in(&[
            "events",
            "list",
            "--own",
            "--json",
            "--type",
            "payment.paid",
            "--status",
            "failed",
        ]);
        said.code == 0 && said.stdout.contains(&format!("pi_{order}/"))
    });
}

fn prove(gateway: &Gateway, called: &str) -> Value {
    gateway.type_in(&["payments", "prove", called, "--json"]).done().lines().remove(0)
}

fn failed(gateway: &Gateway, called: &str, check: &str, words: &str) {
    let report = gateway.type_in(&["payments", "prove", called, "--json"]).failed(1).lines().remove(0);
    let checks = report["checks"].as_array().unwrap();
    let failed: Vec<_> = checks.iter().filter(|one| one["passed"] == false).collect();
    assert_eq!((failed.len(), &failed[0]["name"]), (1, &check.into()), "{checks:?}");
    assert!(failed[0]["fault"].as_str().unwrap().contains(words), "{failed:?}");
    gateway.type_in(&["payments", "prove", called]).failed(1).mentions(&["does not hold together", words]);
}

/// In both forms and both languages, and with nothing in them that must not be handed on.
fn is_printed(gateway: &Gateway, called: &str) {
    for (language, words) in [("en", "The evidence holds together"), ("ja", "決済証明書")] {
        let files = ["proof.html", "proof.json"];
        let words_typed = ["--html", files[0], "--out", files[1], "--language", language];
        let said = gateway.type_in(&[&["payments", "prove", called], &words_typed[..]].concat()).done();
        said.mentions(&["the evidence holds together", "written to proof.html"]);
        let [html, json] = files.map(|file| std::fs::read_to_string(gateway.folder().join(file)).unwrap());
        assert!(html.contains(words) && !html.contains("<script") && !html.contains("src="), "{html}");
        assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["passed"], true);
        for text in [html, json] {
            gateway.search("the proof", &text);
            assert!(!text.contains("taro.yamada"), "{text}");
        }
    }
}

#[test]
fn d7_a_payment_proves_itself() {
    each_store(|place: &Place| {
        let route = route_to("app", "http://127.0.0.1:9/", "send = \"settled\"\nretries = 0");
        let mut gateway = Gateway::with(place, &format!("{}{route}", stripe_source("")));
        pay(&gateway, "o_1", 1200);
        pay(&gateway, "o_2", 500);
        let beside = prove(&gateway, "o_1");
        is_printed(&gateway, "pi_o_1");
        assert!(gateway.server.terminate().unwrap().success());
        let alone = prove(&gateway, "o_1");
        for part in ["payment", "decisions", "books", "checks"] {
            assert_eq!(beside[part], alone[part], "{part}");
        }
        is_printed(&gateway, "o_1");
        assert_eq!(alone["payment"]["status"], "paid");
        assert_eq!(alone["deliveries"][0]["route"], "app");
        let types: Vec<_> = alone["events"].as_array().unwrap().iter().map(|one| &one["type"]).collect();
        assert_eq!(types, ["payment_intent.succeeded", "payment.paid"]);
        gateway.type_in(&["payments", "prove", "pay_0"]).failed(1).mentions(&["no payment is called pay_0"]);

        place.sql(
            "UPDATE event SET body = (SELECT body FROM event WHERE event_id = 'evt_o_2') WHERE event_id = 'evt_o_1'",
        );
        failed(&gateway, "o_1", "bodies", "is not the one that was settled");
        let other = prove(&gateway, "o_2")["payment"]["id"].as_str().unwrap().to_owned();
        place.sql(&format!(
            "UPDATE audit SET actor = 'kei' WHERE target_id = '{other}' AND action = 'payment.found'"
        ));
        failed(&gateway, "o_2", "links", "one was changed, removed or added");
        place.sql(&format!(
            "UPDATE audit SET actor = NULL WHERE target_id = '{other}' AND action = 'payment.found'"
        ));
        prove(&gateway, "o_2");
        place.sql(&format!("UPDATE posting SET amount = amount * 2 WHERE payment = '{other}'"));
        failed(&gateway, "o_2", "books", &other);
    });
}

#[test]
fn scratch_pictures() {
    use sekisho_lab::browser::{Driver, Look};
    let place = Place::sqlite();
    let config = format!(
        "{}{}",
        stripe_source(""),
        route_to("app", "http://127.0.0.1:9/", "send = \"settled\"\nretries = 0")
    );
    let gateway = Gateway::with(&place, &config);
    wait_until("link", || gateway.server.log().contains("/console/join/"));
    let log = gateway.server.log();
    let link = log
        .split_whitespace()
        .find(|word| word.contains("/console/join/"))
        .unwrap_or_else(|| panic!("{log}"))
        .to_owned();
    pay(&gateway, "ORD-1001", 1200);
    for n in 0..3 {
        pay(&gateway, &format!("ORD-20{n}"), 5000 + n);
    }
    let url = format!("http://{}", gateway.address());
    for kind in [
        "payment_intent.succeeded",
        "checkout.session.expired",
        "charge.dispute.created",
        "refund.created",
        "charge.refunded",
        "payment_intent.payment_failed",
        "customer.subscription.created",
        "invoice.paid",
        "payment_intent.processing",
    ] {
        gateway.type_in(&["trigger", kind, "--count", "3", "--url", &url]);
    }
    let send = |body: Value| {
        assert_eq!(gateway.send(&Provider::stripe().body(&body.to_string())).status, 204);
    };
    send(
        json!({"id":"evt_re1","object":"event","type":"refund.created","created":1_790_000_100,"livemode":true,"data":{"object":{"id":"re_1001","object":"refund","status":"succeeded","amount":300,"currency":"jpy","payment_intent":"pi_ORD-1001"}}}),
    );
    send(
        json!({"id":"evt_b1","object":"event","type":"payment_intent.succeeded","created":1_790_000_100,"livemode":true,"data":{"object":{"id":"pi_b1","object":"payment_intent","status":"succeeded","amount":3000,"amount_received":3000,"currency":"jpy","metadata":{"order_id":"TOP-1","customer_id":"taro","purpose":"balance","tenant_id":"office-7"}}}}),
    );
    send(
        json!({"id":"evt_s1","object":"event","type":"customer.subscription.created","created":1_790_000_100,"livemode":true,"data":{"object":{"id":"sub_77","object":"subscription","status":"active","customer":"cus_77","created":1_790_000_000,"currency":"jpy","metadata":{"tenant_id":"office-7"},"items":{"data":[{"current_period_start":1_790_000_000,"current_period_end":1_792_600_000_i64}]}}}}),
    );
    send(
        json!({"id":"evt_i1","object":"event","type":"invoice.paid","created":1_790_000_200,"livemode":true,"data":{"object":{"id":"in_77","object":"invoice","status":"paid","customer":"cus_77","subscription":"sub_77","amount_due":9800,"amount_paid":9800,"currency":"jpy","lines":{"data":[{"period":{"start":1_790_000_000,"end":1_792_600_000_i64}}]},"status_transitions":{"paid_at":1_790_000_150}}}}),
    );
    std::thread::sleep(std::time::Duration::from_secs(3));
    let id = prove(&gateway, "ORD-1001")["payment"]["id"].as_str().unwrap().to_owned();
    let driver = Driver::start().unwrap();
    let out = std::path::Path::new("/tmp/pc-shots");
    std::fs::create_dir_all(out).unwrap();
    let looks = [
        ("desk-ja", Look::desk("ja")),
        ("desk-en-dark", Look::desk("en").dark()),
        ("phone-ja", Look::phone("ja")),
        ("phone-en", Look::phone("en")),
    ];
    for (n, (name, look)) in looks.into_iter().enumerate() {
        let browser = driver.open(look);
        if n == 0 {
            browser.go(&link);
            browser.fill("input[name=name]", "mika");
            browser.fill("input[name=password]", "a gate in the hills");
            browser.fill("input[name=again]", "a gate in the hills");
        } else {
            browser.go(&format!("{url}/console/login?to=/console/account"));
            browser.fill("input[name=name]", "mika");
            browser.fill("input[name=password]", "a gate in the hills");
        }
        browser.click("main button");
        browser.wait_for_url("/console");
        for (page, path) in [
            ("payments", "/console/payments".to_owned()),
            ("payment", format!("/console/payments/{id}")),
            ("proof", format!("/console/payments/{id}/proof.html")),
            ("billing", "/console/billing".into()),
            ("billing-one", "/console/billing/office-7".into()),
            ("balances", "/console/balances".into()),
            ("balance", "/console/balances/taro".into()),
            ("books", "/console/books".into()),
        ] {
            browser.go(&format!("{url}{path}"));
            eprintln!(
                "{name} {page}: overflow {:?} unlabelled {:?}",
                browser.overflow(),
                browser.unlabelled()
            );
            if page == "books" && n == 0 {
                browser.click("main form button");
                browser.wait_for("[role=status]");
            }
            browser.screenshot(&out.join(format!("{page}-{name}.png")));
        }
        let bad: Vec<_> = browser.log().into_iter().filter(|line| line.starts_with("SEVERE")).collect();
        eprintln!("{name}: {bad:?}");
    }
}
