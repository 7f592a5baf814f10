//! H3, R22: planted secrets are looked for in everything that is printed, answered or stored.

use sekisho_lab::redis::Redis;

use crate::support::{Gateway, Letter, Place, Provider, each_store, stripe_source, wait_until};

const GITLAB: &str = "canary_gitlab_token_77";
const SIGNING: &str = "whsec_Y2FuYXJ5X2dpdGxhYl9zaWduaW5n";
const PAYJP: &str = "whook_canary_payjp_88";
const PLAIN: &str = "whsec_canary_plain_99";
const REDIS: &str = "canary_redis_password";
const DATABASE: &str = "canary_database_password";

fn config(redis: &str) -> String {
    format!("[gate]\nredis = \"{redis}\"\n")
        + &stripe_source("")
        + "[[source]]\nname = \"gitlab_token\"\nprovider = \"gitlab_token\"\nsecrets = [\"env:GITLAB\"]\n"
        + "[[source]]\nname = \"gitlab_signing\"\nprovider = \"gitlab_signing\"\nsecrets = [\"env:SIGNING\"]\n"
        + "[[source]]\nname = \"payjp\"\nprovider = \"payjp\"\nsecrets = [\"file:payjp-secret\"]\n"
        + &format!("[[source]]\nname = \"plain\"\nprovider = \"stripe\"\nsecrets = [\"{PLAIN}\"]\n")
}

/// With a password everywhere a password can stand.
fn gateway(place: &Place, redis: &str) -> Gateway {
    let store = place.url.replace("postgres@", &format!("postgres:{DATABASE}@"));
    let mut gateway =
        Gateway::started(&store, &config(redis), &[("GITLAB", GITLAB), ("SIGNING", SIGNING)], |options| {
            std::fs::write(options.dir.join("payjp-secret"), PAYJP).unwrap();
            options
        })
        .unwrap();
    gateway.canaries.extend([PAYJP, PLAIN, REDIS, DATABASE].map(str::to_owned));
    gateway
}

#[test]
fn h3_no_secret_is_printed_answered_or_stored() {
    each_store(|place| {
        let redis = Redis::start().unwrap();
        redis.call(&format!("CONFIG SET requirepass {REDIS}")).unwrap();
        let gateway = gateway(place, &format!("redis://:{REDIS}@{}/", redis.address()));
        let honest = [
            Provider::stripe().event("evt_1"),
            Provider::new("gitlab_token", GITLAB).event("evt_2"),
            Provider::new("payjp", PAYJP).event("evt_3"),
            Provider::new("stripe", PLAIN).to("/webhooks/plain").event("evt_4"),
            // GitLab sends the token of a hook that has one, whether it signs or not.
            Provider::new("gitlab_signing", SIGNING).event("evt_8").with_header("x-gitlab-token", GITLAB),
        ];
        // Somebody sends a secret to the wrong door, or a body that holds no event.
        let astray = [
            Provider::new("gitlab_token", PAYJP).event("evt_5"),
            Letter { path: "/webhooks/payjp".into(), ..Provider::new("gitlab_token", GITLAB).event("evt_6") },
            Provider::stripe().event("evt_7").forged(),
        ];
        let mut answers = Vec::new();
        for letter in honest.iter().chain(&astray).chain(&[Provider::new("payjp", PAYJP).body("no event")]) {
            let carries = letter
                .clone()
                .with_header("authorization", &format!("Bearer {GITLAB}"))
                .with_header("cookie", &format!("session={PLAIN}"));
            let answer = gateway.send(&carries);
            gateway.search("an answer", &format!("{answer:?} {}", answer.text()));
            answers.push(answer.status);
        }
        assert_eq!(answers, [204, 204, 204, 204, 204, 400, 400, 400, 204]);
        wait_until("refusals recorded", || gateway.rejections().len() == 3);

        // Every command searches what it printed by itself.
        for event in gateway.events() {
            let id = event["id"].as_str().unwrap();
            for form in [&["events", "show", id][..], &["events", "show", id, "--json"]] {
                let shown = gateway.type_in(form).done().stdout.to_lowercase();
                for name in ["x-gitlab-token", "x-payjp-webhook-token", "authorization", "cookie"] {
                    assert!(!shown.contains(name), "{name} was stored: {shown}");
                }
            }
        }
        gateway.type_in(&["config", "check"]).done().mentions(&["warning", "plain text", "payjp"]);
        gateway.type_in(&["doctor"]).done();
        gateway.type_in(&["migrate"]);
        gateway.type_in(&["rejections"]).done();
        gateway.type_in_with_url(&["trigger", "charge.succeeded", "--source", "plain"]).done();
        std::fs::write(
            gateway.folder().join("saved"),
            "POST /x HTTP/1.1\r\nstripe-signature: t=1,v1=00\r\n\r\n{}",
        )
        .unwrap();
        for source in ["stripe", "plain", "gitlab_token", "payjp"] {
            gateway.type_in(&["verify", "--request", "saved", "--source", source]).failed(1);
        }
        for path in ["/metrics", "/health/ready", "/", "/nothing"] {
            gateway.search(path, &gateway.get(path).text());
        }
        // And the database itself holds none of the headers that carry them.
        if place.is_sqlite() {
            for file in std::fs::read_dir(place.folder.path()).unwrap() {
                let path = file.unwrap().path();
                let bytes = std::fs::read(&path).unwrap();
                gateway.search(&path.display().to_string(), &String::from_utf8_lossy(&bytes));
            }
        } else {
            gateway.search("the tables", &place.sql("SELECT event::text FROM event"));
            gateway.search("the tables", &place.sql("SELECT rejection::text FROM rejection"));
        }
    });
}

#[test]
fn h3_a_wrong_password_for_redis_is_logged_without_it() {
    each_store(|place| {
        let redis = Redis::start().unwrap();
        redis.call("CONFIG SET requirepass another").unwrap();
        let gateway = gateway(place, &format!("redis://:{REDIS}@{}/", redis.address()));
        for n in 0..3 {
            assert_eq!(gateway.send(&Provider::stripe().event(&format!("evt_{n}"))).status, 204);
        }
        wait_until("it is logged", || gateway.server.stderr().contains("Redis is unavailable"));
        gateway.type_in(&["doctor"]).mentions(&["Redis does not answer"]);
    });
}

#[test]
fn h3_every_line_of_the_log_is_json_with_a_sentence_and_a_good_event_is_told_at_debug() {
    each_store(|place| {
        for level in ["info", "debug"] {
            lines_at(place, level);
        }
    });
}

fn lines_at(place: &Place, level: &str) {
    let gateway = Gateway::started(&place.url, &stripe_source(""), &[], |mut options| {
        options.env.retain(|(name, _)| name != "SEKISHO_LOG_LEVEL");
        options.env.push(("SEKISHO_LOG_LEVEL".into(), level.into()));
        options
    });
    let mut gateway = gateway.unwrap();
    let id = format!("evt_{level}");
    gateway.send(&Provider::stripe().event(&id));
    gateway.send(&Provider::stripe().event(&id).forged());
    gateway.server.terminate().unwrap();
    let log = gateway.server.stderr();
    for line in log.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert!(line["message"].as_str().is_some_and(|words| words.len() > 5), "{line}");
        assert!(
            line["time"].is_string() && line["correlation_id"].is_string() && line["level"].is_string(),
            "{line}"
        );
    }
    let refused = log.lines().find(|line| line.contains("request rejected")).unwrap();
    for field in ["\"request_id\":\"req_", "\"peer\":\"127.0.0.1\"", "\"source\":\"stripe\"", "bad_signature"]
    {
        assert!(refused.contains(field), "{refused}");
    }
    let stored = log.lines().find(|line| line.contains("an event was acknowledged"));
    assert_eq!(stored.is_some(), level == "debug", "at {level}");
    if let Some(stored) = stored {
        assert!(stored.contains(&format!("\"event_id\":\"{id}\"")), "{stored}");
        assert!(stored.contains("\"request_id\":\"req_"), "{stored}");
    }
}
