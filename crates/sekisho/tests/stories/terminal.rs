//! H2, H3: what commands show to a proxy of the environment, and what they print of strangers' words.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{self, Receiver};

use sekisho_core::text::is_hidden;
use sekisho_lab::app::{Behaviour, DemoApp, Reply};
use sekisho_lab::smtp::{self, Point, Smtp};

use super::notices::{FAST, RECEIPT, mail, paid, statuses};
use crate::support::{Gateway, Provider, Said, each_store, route_to, stripe_source, wait_until};

/// Stands where `http_proxy` leads, and remembers what it was shown.
struct Proxy {
    url: String,
    shown: Receiver<String>,
}

impl Proxy {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tell, shown) = mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut bytes = [0; 4096];
                let read = stream.read(&mut bytes).unwrap_or_default();
                let _ = stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n");
                if tell.send(String::from_utf8_lossy(&bytes[..read]).into_owned()).is_err() {
                    return;
                }
            }
        });
        Self { url, shown }
    }

    fn env(&self) -> [(&str, &str); 4] {
        ["http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"].map(|name| (name, &*self.url))
    }
}

#[test]
fn h3_a_proxy_of_the_environment_sees_no_key_and_no_request_to_this_machine() {
    each_store(|place| {
        let proxy = Proxy::start();
        let config = stripe_source("")
            + "[[key]]\nname = \"ops\"\nsecret = \"env:OPS\"\nscopes = [\"operate\"]\n"
            + "[[source]]\nname = \"payjp\"\nprovider = \"payjp\"\nsecrets = [\"env:PAYJP\"]\n";
        let [one, two, three, four] = proxy.env();
        let own = [("OPS", "canary-ops-0123456789"), ("PAYJP", "whook_canary_payjp")];
        let gateway = Gateway::with_env(place, &config, &[one, two, three, four, own[0], own[1]]);
        // By the note; by an address of this machine, with the note's key or another; at the front door.
        gateway.type_in(&["keys", "list"]).done();
        gateway.type_in(&["tenants", "create", "a"]).done();
        let port = gateway.address().port();
        for host in ["127.0.0.1", "localhost"] {
            let server = format!("http://{host}:{port}");
            gateway.type_in(&["tenants", "create", "b", "--server", &server]).done();
            gateway
                .type_in(&["tenants", "create", "c", "--server", &server, "--key", "canary-ops-0123456789"])
                .done();
        }
        gateway.type_in_with_url(&["trigger", "payment_intent.succeeded", "--source", "stripe"]).done();
        gateway.type_in_with_url(&["send", "--source", "payjp"]).done();
        gateway.type_in(&["doctor"]).done().mentions(&["and ready"]);
        let shown: Vec<_> = proxy.shown.try_iter().collect();
        assert!(shown.is_empty(), "{shown:?}");
        // Nor for a server elsewhere.
        let elsewhere = ["tenants", "create", "d", "--server", "http://elsewhere.invalid", "--key", "any"];
        gateway.type_in(&elsewhere).failed(1).mentions(&["no server answers at http://elsewhere.invalid"]);
        let shown: Vec<_> = proxy.shown.try_iter().collect();
        assert!(shown.is_empty(), "{shown:?}");
    });
}

/// Clipboard, screen, colours by one byte, and a line that runs backwards.
const ODD: &str = "\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2J\u{7f}\u{9b}31m\u{202e}cba\u{2066}";
const WRITTEN: &str = r"\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2J\u{7f}\u{9b}31m\u{202e}cba\u{2066}";

/// What was printed holds nothing that a terminal obeys.
fn harmless(what: &str, said: &Said) {
    let odd = said.all().chars().find(|letter| is_hidden(*letter) && !matches!(letter, '\n' | '\t'));
    assert_eq!(odd, None, "{what} prints it:\n{:?}", said.all());
}

#[test]
fn h2_letters_that_a_terminal_obeys_are_never_printed() {
    each_store(|place| {
        let smtp =
            Smtp::start(smtp::SmtpBehaviour::say(Point::Recipient, &format!("550 5.1.1 no {ODD}"))).unwrap();
        let app =
            DemoApp::start(Behaviour::Answer(Reply::status(400).with_body(&format!("no\n{ODD}")))).unwrap();
        let config = stripe_source("")
            + &mail(&smtp, FAST)
            + RECEIPT
            + &route_to("app", &format!("http://{}", app.address()), "sources = [\"stripe\"]\nretries = 0");
        let gateway = Gateway::with(place, &config);
        let show = |words: &[&str]| {
            let said = gateway.type_in(words).done();
            harmless(&words.join(" "), &said);
            said
        };

        // A genuine body that is no event is kept as it is, with the headers it came with.
        let body = format!("no event\t{ODD}\r\nsecond line");
        let kept = gateway.send(&Provider::stripe().body(&body).with_header("x-odd", "\u{9b}2J\u{202e}"));
        let id = kept.header("sekisho-message-id").unwrap().to_owned();
        let shown = show(&["events", "show", &id]);
        assert!(shown.stdout.contains(&format!("no event\t{WRITTEN}\nsecond line")), "{}", shown.stdout);
        assert!(shown.stdout.contains(r"x-odd: \u{9b}2J\u{202e}"), "{}", shown.stdout);
        show(&["events", "list"]);
        show(&["dead", "list"]);
        let dead = show(&["dead", "list", "--json"]).lines()[0]["id"].as_str().unwrap().to_owned();
        show(&["dead", "show", &dead]);
        // For programs it is what it was.
        assert_eq!(gateway.type_in(&["events", "show", &id, "--body"]).done().stdout, body);
        let json = show(&["events", "show", &id, "--json"]).lines().remove(0);
        assert_eq!(json["body"], *body);

        // An event whose names turn around; the app's answer; what a mail server says.
        let mut turned = paid("1", "taro@example.jp");
        turned.body = String::from_utf8(turned.body).unwrap().replace("evt_1", "evt_\u{202e}1").into();
        let turned = Provider::stripe().body(&String::from_utf8(turned.body).unwrap());
        let sent = gateway.send(&turned);
        assert_eq!(sent.status, 204);
        let id = sent.header("sekisho-message-id").unwrap().to_owned();
        wait_until("the app refused it", || {
            gateway.type_in(&["events", "show", &id]).done().stdout.contains("dead")
        });
        wait_until("the mail server refused it", || statuses(place).get("failed") == Some(&1));
        assert!(show(&["events", "list"]).stdout.contains(r"evt_\u{202e}1"));
        show(&["events", "show", &id]);
        let letters = show(&["dead", "list", "--json"]).lines();
        for letter in &letters {
            show(&["dead", "show", letter["id"].as_str().unwrap()]);
        }
        let message = letters.iter().find(|letter| letter["route"] == "app").expect("a delivery died");
        let shown = show(&["messages", "show", message["id"].as_str().unwrap()]);
        assert!(shown.stdout.contains(WRITTEN), "{}", shown.stdout);
        let notice = show(&["notices", "--json"]).lines()[0]["id"].as_str().unwrap().to_owned();
        let shown = show(&["notices", "show", &notice]);
        assert!(shown.stdout.contains("5.1.1 no") && !shown.stdout.contains(r"\u{"), "{}", shown.stdout);
        let kept = place.sql("SELECT facts FROM state WHERE kind = 'notice'");
        assert!(!kept.contains(r"\u001b") && !kept.contains('\u{9b}'), "{kept}");

        // A reason that an operator pasted.
        let add = ["suppressions", "add", "gone@example.jp", "--reason", "left \u{202e}tfel"];
        show(&add);
        assert!(show(&["suppressions", "list"]).stdout.contains(r"left \u{202e}tfel"));
        show(&["suppressions", "list", "--json"]);
        show(&["audit", "list"]);
        harmless("an error", &gateway.type_in(&["events", "show", "no\u{1b}[2Jid"]).failed(1));
    });
}
