//! H2, H6: what a person types, from the first minute on, and what they read.

use std::process::{Command, Stdio};
use std::time::Duration;

use sekisho_lab::process::{Server, ServerOptions};

use crate::support::{
    BINARY, Gateway, Place, Provider, Storm, Watching, each_store, say, stripe_source, vector, wait_until,
};

#[test]
fn h6_the_first_minute_in_an_empty_folder() {
    let folder = tempfile::tempdir().unwrap();
    say(folder.path(), &["events", "list"], &[]).failed(1).mentions(&["sekisho serve"]);
    let server = Server::start(ServerOptions::new(BINARY, folder.path())).unwrap();
    wait_until("the banner", || server.stdout().contains(" events list"));
    let banner = server.stdout();
    let url = format!("http://{}/webhooks/stripe", server.address());
    for words in [url.as_str(), "sqlite:./sekisho-data/sekisho.db", "secret", "stripe-secret"] {
        assert!(banner.contains(words), "nothing about {words} in\n{banner}");
    }
    let line_with = |words: &str| {
        banner
            .lines()
            .find(|line| line.contains(words))
            .unwrap_or_else(|| panic!("no {words} in\n{banner}"))
            .trim()
    };
    // Exactly as printed, in a shell.
    let shell = |line: &str| {
        let output = Command::new("sh").args(["-c", line]).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let answer = shell(line_with(" trigger payment_intent.succeeded"));
    assert!(answer.starts_with("204 accepted evt_"), "{answer}");
    let list = shell(line_with(" events list"));
    assert!(list.contains("payment_intent.succeeded") && list.contains("stripe"), "{list}");

    let secret = std::fs::read_to_string(folder.path().join("sekisho-data/stripe-secret")).unwrap();
    assert!(!server.log().contains(secret.trim()), "the banner tells where the secret is, not what it is");
    let mode = |path: &str| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(folder.path().join(path)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode("sekisho-data"), mode("sekisho-data/stripe-secret")), (0o700, 0o600));
}

#[test]
fn h6_without_any_word_it_serves() {
    let folder = tempfile::tempdir().unwrap();
    let address = sekisho_lab::free_address().unwrap();
    let (banner, webhooks) = (folder.path().join("banner"), format!("http://{address}/webhooks/stripe"));
    let mut child = Command::new(BINARY)
        .env("SEKISHO_SERVER_LISTEN", address.to_string())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&banner).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let said = std::panic::catch_unwind(|| {
        wait_until("the banner", || std::fs::read_to_string(&banner).unwrap().contains(&webhooks));
        assert_eq!(sekisho_lab::http::get(address, "/health/ready").unwrap().status, 200);
    });
    child.kill().unwrap();
    child.wait().unwrap();
    said.unwrap();
}

#[test]
fn h6_a_second_start_keeps_the_secret_and_the_events() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(ServerOptions::new(BINARY, folder.path())).unwrap();
    let url = format!("http://{}", server.address());
    say(folder.path(), &["trigger", "charge.succeeded", "--url", &url], &[]).done();
    assert!(server.terminate().unwrap().success());
    server.start_again().unwrap();
    say(folder.path(), &["trigger", "charge.succeeded", "--url", &url], &[]).done();
    assert_eq!(say(folder.path(), &["events", "list", "--json"], &[]).done().lines().len(), 2);
}

#[test]
fn h6_trouble_made_on_purpose_is_counted_and_comes_out_right() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        let words = ["trigger", "payment_intent.succeeded", "--count", "20", "--chaos", "dup,reorder,forge"];
        let said = gateway.type_in_with_url(&words).done();
        assert_eq!(said.stdout, "accepted    20\nduplicates  40\nrefused     20\n");
        assert_eq!(gateway.events().len(), 20);

        let lines = gateway.type_in_with_url(&[&words[..], &["--json"]].concat()).done().lines();
        assert_eq!(lines.len(), 80);
        let accepted = lines.iter().filter(|line| line["outcome"] == "accepted");
        assert!(accepted.clone().all(|line| line["status"] == 204));
        assert_eq!(accepted.count(), 20);

        let list = gateway.type_in(&["trigger", "--list"]).done();
        for kind in ["checkout.session.completed", "charge.refunded", "invoice.paid"] {
            assert!(list.stdout.lines().any(|line| line == kind), "{}", list.stdout);
        }
        let types = gateway.type_in(&["trigger", "--list", "--json"]).done().lines();
        assert!(types.iter().map(|one| one["type"].as_str().unwrap()).eq(list.stdout.lines()));
        gateway.type_in_with_url(&["trigger", "no.such.type"]).failed(1).mentions(&["--list", "--body"]);
        let own = gateway.folder().join("own.json");
        std::fs::write(&own, r#"{"id":"x","object":"event","type":"own.type","created":1}"#).unwrap();
        gateway.type_in_with_url(&["trigger", "own.type", "--body", "own.json"]).done();
        let found = gateway.type_in(&["events", "list", "--json", "--type", "own.*"]).done().lines();
        assert_eq!(found.len(), 1);
    });
}

#[test]
fn h6_triggering_nobody_says_who_is_missing() {
    let place = Place::sqlite();
    let gateway = Gateway::open(&place);
    let nobody = format!("http://{}", sekisho_lab::free_address().unwrap());
    let words = ["trigger", "charge.succeeded", "--url", &nobody];
    gateway.type_in(&words).failed(1).mentions(&["no server answers at", "sekisho serve", "--url"]);
}

#[test]
fn h2_the_operator_lists_filters_and_shows_events() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        let body = |id: &str, kind: &str| {
            let object = kind.split_once('.').map_or("", |(object, _)| object);
            format!(
                r#"{{"id":"{id}","object":"event","type":"{kind}","created":2100000000,"livemode":false,"data":{{"object":{{"id":"pi_{id}","object":"{object}"}}}}}}"#
            )
        };
        let kinds = ["payment_intent.created", "payment_intent.succeeded", "charge.failed"];
        for (n, kind) in kinds.iter().enumerate() {
            let letter = Provider::stripe().body(&body(&format!("evt_{n}"), kind));
            assert_eq!(gateway.send(&letter).status, 204);
        }
        wait_until("all settled", || gateway.events().iter().all(|event| event["status"] == "success"));
        let events = gateway.events();
        assert_eq!(
            events.iter().map(|event| event["event_id"].as_str().unwrap()).collect::<Vec<_>>(),
            ["evt_2", "evt_1", "evt_0"]
        );
        let newest = &events[0];
        assert_eq!(newest["source"], "stripe");
        assert_eq!(newest["type"], "charge.failed");
        assert!(newest["id"].as_str().unwrap().starts_with("evt_"));
        assert!(newest["received_at"].as_str().unwrap().ends_with('Z'));
        assert_eq!(newest["created_at"], "2036-07-18T13:20:00.000Z");
        assert_eq!(newest["object"], serde_json::json!({ "kind": "charge", "id": "pi_evt_2" }));
        assert_eq!((&newest["livemode"], &newest["trust"]), (&false.into(), &"signed".into()));

        let list = |words: &[&str]| -> Vec<String> {
            let all = [&["events", "list", "--json"], words].concat();
            let lines = gateway.type_in(&all).done().lines();
            lines.iter().map(|event| event["event_id"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(list(&["--type", "payment_intent.*"]), ["evt_1", "evt_0"]);
        assert_eq!(list(&["--type", "charge.failed"]), ["evt_2"]);
        assert_eq!(list(&["--object", "pi_evt_1"]), ["evt_1"]);
        assert_eq!(list(&["--limit", "1"]), ["evt_2"]);
        assert_eq!(list(&["--limit", "1", "--before", newest["id"].as_str().unwrap()]), ["evt_1"]);
        assert_eq!(list(&["--status", "skipped"]), [""; 0]);
        for word in ["success", "processed"] {
            assert_eq!(list(&["--status", word]), ["evt_2", "evt_1", "evt_0"], "{word}");
        }
        assert_eq!(list(&["--source", "other"]), [""; 0]);
        gateway.type_in(&["events", "list", "--status", "odd"]).failed(2).mentions(&["received, success"]);
        let table =
            gateway.type_in(&["events", "list"]).done().mentions(&["RECEIVED", "STATUS", "charge.failed"]);
        assert_eq!(table.stdout.lines().count(), 4);

        // By our id and by the provider's.
        for id in [newest["id"].as_str().unwrap(), "evt_2"] {
            let shown = gateway.type_in(&["events", "show", id]).done();
            shown.mentions(&["charge.failed", "charge pi_evt_2", "stripe-signature: t=", "\"evt_2\""]);
            let json = &gateway.type_in(&["events", "show", id, "--json"]).done().lines()[0];
            assert_eq!(json["body"], body("evt_2", "charge.failed"));
            assert!(json["headers"].as_array().unwrap().iter().any(|header| header[0] == "content-type"));
            let raw = gateway.type_in(&["events", "show", id, "--body"]).done();
            assert_eq!(raw.stdout, body("evt_2", "charge.failed"));
        }
        gateway
            .type_in(&["events", "show", "evt_nobody"])
            .failed(1)
            .mentions(&["no event has the id evt_nobody", "sekisho events list"]);
    });
}

#[test]
fn h1_an_invitation_says_where_it_leads_and_until_when() {
    let place = Place::sqlite();
    let gateway = Gateway::open(&place);
    let made = &gateway.type_in(&["users", "invite", "--rank", "operator", "--json"]).done().lines()[0];
    let door = format!("http://{}/console/join/", gateway.address());
    assert!(made["url"].as_str().unwrap().starts_with(&door), "{made}");
    assert!(made["expires_at"].is_string() && made["rank"] == "operator", "{made}");
    // No key decides about people.
    let help = gateway.type_in(&["users", "invite", "--help"]).done().stdout;
    assert!(!help.contains("--key"), "{help}");
}

#[test]
fn h2_all_events_are_listed_page_after_page() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        let words = ["trigger", "charge.succeeded", "--count", "1234", "--json"];
        assert_eq!(gateway.type_in_with_url(&words).done().lines().len(), 1234);
        let mut ids = gateway.event_ids();
        ids.dedup();
        assert_eq!(ids.len(), 1234);
        let some = gateway.type_in(&["events", "list", "--json", "--limit", "777"]).done().lines();
        assert_eq!(some.len(), 777);
    });
}

#[test]
fn h2_new_events_are_shown_as_they_come() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        assert_eq!(gateway.send(&Provider::stripe().event("evt_old")).status, 204);
        let tail = Watching::start(&gateway, &["events", "tail", "--json"], &place.url);
        // When it began to watch is its own affair: events come until one is seen.
        let mut n = 0;
        let mut seen = None;
        wait_until("an event to be shown", || {
            n += 1;
            gateway.send(&Provider::stripe().event(&format!("evt_new_{n}")));
            seen = tail.seen(Duration::from_millis(500));
            seen.is_some()
        });
        let first: serde_json::Value = serde_json::from_str(&seen.unwrap()).unwrap();
        assert!(first["event_id"].as_str().unwrap().starts_with("evt_new_"), "{first}");
        // From then on every one of them, in order.
        gateway.send(&Provider::stripe().event("evt_last"));
        let mut after = Vec::new();
        wait_until("the last one", || {
            after.extend(tail.seen(Duration::from_millis(100)));
            after.last().is_some_and(|line| line.contains("evt_last"))
        });
        assert!(after.iter().all(|line| !line.contains("evt_old")));
    });
}

#[test]
fn h2_the_tail_misses_nothing_under_load() {
    each_store(|place| {
        let gateway = Gateway::open(place);
        let second = (!place.is_sqlite()).then(|| Gateway::open(place));
        let tail = Watching::start(&gateway, &["events", "tail", "--json"], &place.url);
        let storms = [
            Storm::start(gateway.address(), 8),
            Storm::start(second.as_ref().unwrap_or(&gateway).address(), 8),
        ];
        let seen_id = |wait| {
            let line = tail.seen(wait)?;
            let event: serde_json::Value = serde_json::from_str(&line).unwrap();
            Some((event["id"].as_str().unwrap().to_owned(), event["event_id"].as_str().unwrap().to_owned()))
        };
        let mut seen = Vec::new();
        wait_until("enough events", || {
            seen.extend(std::iter::from_fn(|| seen_id(Duration::from_millis(20))).take(500));
            seen.len() >= 1_500
        });
        storms.into_iter().for_each(|storm| drop(storm.stop()));
        gateway.send(&Provider::stripe().event("evt_last"));
        wait_until("the last one", || {
            seen.extend(std::iter::from_fn(|| seen_id(Duration::from_millis(20))));
            seen.iter().any(|(_, event_id)| event_id == "evt_last")
        });
        // Everything from the first one shown on, each once.
        let first = seen.iter().map(|(id, _)| id.clone()).min().unwrap();
        let mut stored: Vec<_> =
            gateway.events().iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect();
        stored.retain(|id| *id >= first);
        stored.sort();
        let mut shown: Vec<_> = seen.into_iter().map(|(id, _)| id).collect();
        shown.sort();
        let missed: Vec<_> = stored.iter().filter(|id| shown.binary_search(id).is_err()).collect();
        assert!(missed.is_empty(), "{} of {} never shown: {missed:?}", missed.len(), stored.len());
        assert_eq!(shown.len(), stored.len(), "some were shown twice");
    });
}

#[test]
fn h6_all_published_signature_vectors_pass() {
    let folder = tempfile::tempdir().unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests-data/signatures.json");
    let said = say(folder.path(), &["verify", "--vectors", file], &[]).done();
    let lines: Vec<_> = said.stdout.lines().collect();
    assert_eq!(lines.len(), 88);
    assert!(lines[..87].iter().all(|line| line.starts_with("ok ")), "{}", said.stdout);
    assert_eq!(lines[87], "87 passed, 0 failed");
    let told = say(folder.path(), &["verify", "--vectors", file, "--json"], &[]).done().lines();
    assert_eq!(told.len(), 87);
    assert!(told.iter().all(|one| one["passed"] == true && one["name"].is_string()));

    let broken = std::fs::read_to_string(file).unwrap().replacen(
        "\"expect\": \"valid\"",
        "\"expect\": \"invalid\"",
        1,
    );
    std::fs::write(folder.path().join("broken.json"), broken).unwrap();
    let said = say(folder.path(), &["verify", "--vectors", "broken.json"], &[]).failed(1);
    assert_eq!(said.stdout.lines().last(), Some("86 passed, 1 failed"));
    assert!(said.stdout.lines().any(|line| line.starts_with("FAIL")));
    let told = say(folder.path(), &["verify", "--vectors", "broken.json", "--json"], &[]).failed(1).lines();
    assert_eq!(told.iter().filter(|one| one["passed"] == false).count(), 1);
}

#[test]
fn h6_without_its_certificate_a_request_is_not_judged() {
    let folder = tempfile::tempdir().unwrap();
    for (provider, name, setting) in
        [("paypal", "valid", "webhook_id=1JE4291016473214C"), ("sns", "valid-v2-ses-bounce", "topic_arn=")]
    {
        let (letter, about) = vector(provider, name);
        let body = String::from_utf8(letter.body).unwrap();
        let saved = serde_json::json!({ "headers": letter.headers, "body": body });
        std::fs::write(folder.path().join("saved.json"), saved.to_string()).unwrap();
        let message: serde_json::Value = serde_json::from_str(&body).unwrap();
        let setting = setting.to_owned() + message["TopicArn"].as_str().unwrap_or_default();
        let (url, pem) = about["context"]["cert_url_to_pem"].as_object().unwrap().iter().next().unwrap();
        std::fs::write(folder.path().join("certificate.pem"), pem.as_str().unwrap()).unwrap();
        let at = about["now_unix"].to_string();
        let verify = |more: &[&str]| {
            let words = ["verify", "--request", "saved.json", "--provider", provider, "--set", &setting];
            say(folder.path(), &[&words[..], &["--at", &at], more].concat(), &[])
        };
        let said = verify(&[]).failed(1).mentions(&["can't be told", url, "curl", "--certificate"]);
        assert!(!said.stdout.contains("FAIL") && !said.stdout.contains("refused"), "{}", said.stdout);
        let told = &verify(&["--json"]).failed(1).lines()[0];
        assert_eq!((&told["genuine"], &told["needed_certificate"]), (&().into(), &url.as_str().into()));
        verify(&["--certificate", "certificate.pem"]).done().mentions(&["the request is genuine"]);
    }
}

#[test]
fn h6_a_refused_request_is_explained() {
    let place = Place::sqlite();
    let gateway = Gateway::open(&place);
    let (letter, about) = vector("stripe", "valid");
    let now = about["now_unix"].as_i64().unwrap();
    let secret = about["secrets"][0].as_str().unwrap();
    let save = |body: &[u8]| {
        let mut text = format!("POST {} HTTP/1.1\r\n", letter.path).into_bytes();
        for (name, value) in &letter.headers {
            text.extend(format!("{name}: {value}\r\n").bytes());
        }
        text.extend(b"\r\n");
        text.extend(body);
        std::fs::write(gateway.folder().join("saved.http"), text).unwrap();
    };
    let judge = |secret: &str, at: i64| {
        std::fs::write(gateway.folder().join("secret"), secret).unwrap();
        let words = ["verify", "--request", "saved.http", "--provider", "stripe", "--secret", "file:secret"];
        gateway.type_in(&[&words[..], &["--at", &at.to_string()]].concat())
    };
    save(&letter.body);
    judge(secret, now).done().mentions(&["the request is genuine"]);
    judge("whsec_wrong", now).failed(1).mentions(&["would be refused", "likely cause", "secret"]);
    judge(secret, now + 3600).failed(1).mentions(&["likely cause", "clock"]);
    let value: serde_json::Value = serde_json::from_slice(&letter.body).unwrap();
    save(serde_json::to_string_pretty(&value).unwrap().as_bytes());
    judge(secret, now).failed(1).mentions(&["likely cause", "body"]);
    // As the configured source would, in JSON.
    let said = gateway.type_in(&["verify", "--request", "saved.http", "--json"]).failed(1);
    assert_eq!(said.lines()[0]["genuine"], false);
    gateway.type_in(&["verify", "--request", "none.http"]).failed(1).mentions(&["none.http"]);
}

#[test]
fn h2_measurements_are_told_to_programs_too() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["bench", "ingest", "--seconds", "1", "--rounds", "1", "--connections", "2", "--json"];
    let rows = say(folder.path(), &words, &[]).done().lines();
    let row = |name: &str, load: &str| {
        let found = rows.iter().find(|row| row["measured"] == name && row["load"] == load);
        found.unwrap_or_else(|| panic!("no {name} at {load} load in {rows:?}"))
    };
    for (name, load) in [
        ("bare", "full"),
        ("verify-only", "full"),
        ("real", "full"),
        ("verify-only", "half"),
        ("real", "half"),
    ] {
        let row = row(name, load);
        assert!(row["events_per_second"].as_f64() > Some(0.0) && row["p99_ms"].is_number(), "{row}");
    }
    let ratio = rows.iter().find(|row| row["measured"] == "real / verify-only").unwrap();
    assert!(ratio["value"].is_number() && ratio["store"] == "SQLite");
}

#[test]
fn h5_the_example_configuration_is_itself_good() {
    let folder = tempfile::tempdir().unwrap();
    let example = say(folder.path(), &["config", "example"], &[]).done().stdout;
    std::fs::write(folder.path().join("sekisho.toml"), &example).unwrap();
    let env = [("STRIPE_WEBHOOK_SECRET", "whsec_canary_example")];
    let said = say(folder.path(), &["config", "check"], &env).done().mentions(&["configuration OK"]);
    assert!(!said.all().contains("canary"));
    let told = say(folder.path(), &["config", "check", "--json"], &env).done();
    assert!(!told.all().contains("canary"));
    let told = &told.lines()[0];
    assert_eq!((&told["good"], &told["sources"][0]["secrets"]), (&true.into(), &1.into()));
    for line in ["[server]", "[store]", "[gate]", "[admission]", "[log]", "[[source]]"] {
        assert!(example.lines().any(|own| own == line), "{line}");
    }
    // Every variable that the example speaks of works.
    let env = [env[0], ("SEKISHO_SERVER_LISTEN", "127.0.0.1:9999")];
    say(folder.path(), &["config", "check"], &env).done().mentions(&["127.0.0.1:9999"]);
    let env = [env[0], ("SEKISHO_SERVER_LISTEN", "nowhere")];
    say(folder.path(), &["config", "check"], &env).failed(1).mentions(&["SEKISHO_SERVER_LISTEN"]);
}

#[test]
fn h5_the_doctor_speaks_in_words() {
    each_store(|place| {
        let mut gateway = Gateway::open(place);
        let listen = format!("[server]\nlisten = \"{}\"\n", gateway.address());
        std::fs::write(gateway.folder().join("sekisho.toml"), listen + &stripe_source("")).unwrap();
        let sound = gateway.type_in(&["doctor"]).done();
        sound.mentions(&[
            "OK: no problems found",
            "and ready",
            if place.is_sqlite() { "SQLite" } else { "PostgreSQL" },
        ]);
        let lines = gateway.type_in(&["doctor", "--json"]).done().lines();
        assert!(lines.iter().all(|line| line["grade"] != "bad" && line["text"].is_string()), "{lines:?}");
        gateway.server.kill9();
        gateway.type_in(&["doctor"]).done().mentions(&["not running at"]);
        std::fs::write(gateway.folder().join("sekisho.toml"), "[server]\nlisten = 1\n").unwrap();
        gateway
            .type_in(&["doctor"])
            .failed(1)
            .mentions(&["sekisho.toml:2", "Problems found: correct the lines marked bad"]);
    });
}
