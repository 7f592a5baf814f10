//! G4, G5, H2: reminders, notices, suppressions and channels at the command line, beside a running server and without
//! one. "I did not get the mail" is answered on one screen, with the next step; whoever takes it, goes on.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use sekisho_lab::smtp::{Point, Smtp, SmtpBehaviour, SmtpFault};
use serde_json::{Value, json};

use crate::support::{BINARY, Gateway, Place, STRIPE_SECRET, each_store, say, stripe_source, wait_until};

/// No day on which the server reminds by itself.
const DAY: &str = "2031-01-10";
const BATCH: &str = "reminders/2031-01-10";

fn mail_channel(smtp: &Smtp) -> String {
    format!(
        "[notifications]\nreminders = \"mail\"\n[[channel]]\nname = \"mail\"\nkind = \"smtp\"\nhost = \"127.0.0.1\"\n\
         port = {}\ntls = \"none\"\nauth = \"none\"\nfrom = \"no-reply@example.jp\"\nattempts = 1\n",
        smtp.address().port()
    )
}

fn open(place: &Place, smtp: &Smtp) -> Gateway {
    Gateway::with(place, &format!("{}{}", stripe_source(""), mail_channel(smtp)))
}

/// Refuses some, takes the others.
fn choosy() -> Smtp {
    let refuse = SmtpBehaviour::say(Point::Recipient, "550 5.1.1 <refused@example.jp> no such user");
    Smtp::start(SmtpBehaviour::To(vec![("refused".into(), refuse)], Box::new(SmtpBehaviour::Accept))).unwrap()
}

/// An office with something due, and these people who are reminded of it; `off` does not want to be.
fn office(gateway: &Gateway, place: &Place, people: &[&str]) {
    gateway.type_in(&["tenants", "create", "off_1", "--name", "Aozora"]).done();
    for name in people {
        let staff = json!({
            "tenant": "off_1", "family_name": "Yamada", "given_name": name, "email": format!("{name}@example.jp"),
            "language": "en", "notifications": *name != "off", "threshold_days": 30,
        });
        keep(place, "staff", name, &staff);
    }
    let subject = json!({
        "tenant": "off_1", "name": "Sato", "renewal_due_on": "2031-01-20", "assessment_due_on": "2031-06-01",
    });
    keep(place, "subject", "x_1", &subject);
}

fn keep(place: &Place, kind: &str, id: &str, facts: &Value) {
    place.sql(&format!(
        "INSERT INTO state (kind, id, version, facts, tenant, created_at, changed_at)
         VALUES ('{kind}', '{id}', 1, '{facts}', 'off_1', 0, 0)"
    ));
}

fn stop(gateway: &mut Gateway) {
    assert!(gateway.server.terminate().unwrap().success());
}

fn found(gateway: &Gateway, words: &[&str]) -> Vec<Value> {
    gateway.type_in(&[&["notices", "list", "--json"], words].concat()).done().lines()
}

fn id_of(gateway: &Gateway, address: &str) -> String {
    found(gateway, &["--to", address])[0]["id"].as_str().unwrap().to_owned()
}

fn becomes(gateway: &Gateway, id: &str, status: &str) {
    wait_until(&format!("{id} is {status}"), || {
        let said = gateway.type_in(&["notices", "show", id, "--json"]).done();
        said.lines()[0]["status"] == status
    });
}

fn recipients(smtp: &Smtp) -> Vec<String> {
    let mut all: Vec<_> = smtp.accepted().iter().map(|mail| mail.to.join(",")).collect();
    all.sort();
    all
}

#[test]
fn g4_reminders_are_foretold_sent_and_added_up() {
    each_store(|place| {
        let smtp = choosy();
        let gateway = open(place, &smtp);
        office(&gateway, place, &["taro", "refused", "off", "gone"]);
        gateway.type_in(&["suppressions", "add", "gone@example.jp", "--reason", "left"]).done();
        let run = |words: &[&str]| gateway.type_in(&[&["reminders", "run", "--date", DAY], words].concat());

        let said = run(&["--dry-run"]).done();
        assert!(!said.all().contains("taro@"), "{}", said.all());
        said.mentions(&[
            "t***@example.jp",
            "Yamada taro",
            "Aozora",
            "4 new (would be queued 3, 1 recorded only",
        ]);
        assert!(found(&gateway, &[]).is_empty(), "a dry run writes nothing");

        let said = run(&[]).failed(1);
        said.mentions(&["4 reminders for 2031-01-10 of 1 office: 4 new", "SENT", "UNCERTAIN", "CAME BACK"])
            .mentions(&[&format!("notices --batch {BATCH} --status failed")]);
        let report = &run(&["--json"]).failed(1).lines()[0];
        assert_eq!((&report["new"], &report["due"]), (&json!(0), &json!(4)));
        let by_status = json!({ "sent": 1, "off": 1, "suppressed": 1, "failed": 1 });
        assert_eq!(report["summary"][0]["by_status"], by_status);
        assert_eq!(recipients(&smtp), ["taro@example.jp"], "once, however often it is run");

        let shown = gateway.type_in(&["reminders", "show", DAY, "--json"]).done().lines().remove(0);
        assert_eq!((&shown["total"], &shown["waiting"]), (&json!(4), &json!(0)));
        let of_other = gateway.type_in(&["reminders", "show", DAY, "--tenant", "other", "--json"]).done();
        assert_eq!(of_other.lines()[0]["total"], 0);
        let mail = &smtp.accepted()[0];
        assert!(mail.part("text/plain").unwrap().contains("Sato"), "{mail:?}");
    });
}

#[test]
fn g5_i_did_not_get_the_mail_is_answered_with_the_next_step() {
    each_store(|place| {
        let smtp = choosy();
        let gateway = open(place, &smtp);
        office(&gateway, place, &["taro", "refused", "off", "gone"]);
        gateway.type_in(&["suppressions", "add", "gone@example.jp", "--reason", "left"]).done();
        gateway.type_in(&["reminders", "run", "--date", DAY]).failed(1);
        let show = |id: &str| gateway.type_in(&["notices", "show", id]).done();
        let cases: [(&str, &[&str]); 4] = [
            ("taro", &["sent", "look in the spam folder", "2.0.0 Ok: queued as"]),
            ("refused", &["failed", "bad_recipient", "550 5.1.1", "--to", "deadline-reminder"]),
            ("off", &["off", "switch them on"]),
            ("gone", &["suppressed", "manual", "release it, then resend"]),
        ];
        for (name, words) in cases {
            let address = format!("{name}@example.jp");
            let said = show(&id_of(&gateway, &address)).mentions(words);
            assert!(!said.all().contains(&address), "masked: {}", said.all());
            said.mentions(&["renewal_alert_count", "assessment_alert_count", "email_threshold_days", BATCH]);
            let details = &found(&gateway, &["--to", &address])[0]["details"];
            let counts = ["renewal_alert_count", "assessment_alert_count", "email_threshold_days"];
            assert_eq!(counts.map(|name| details[name].as_i64().unwrap()), [1, 0, 30]);
        }
        let refused = id_of(&gateway, "Refused@example.jp");
        gateway.type_in(&["notices", "show", &refused, "--full"]).done().mentions(&["refused@example.jp"]);
        gateway.type_in(&["notices", "--full"]).done().mentions(&["refused@example.jp", "taro@example.jp"]);
        let counts: [(&[&str], usize); 8] = [
            (&["--status", "failed"], 1),
            (&["--batch", BATCH], 4),
            (&["--batch", "reminders/2031-01-11"], 0),
            (&["--template", "deadline-reminder", "--since", "1h"], 4),
            (&["--until", "1h"], 0),
            (&["--tenant", "other"], 0),
            (&["--payment", "pay_1"], 0),
            (&["--channel", "mail", "--limit", "3"], 3),
        ];
        for (words, expected) in counts {
            assert_eq!(found(&gateway, words).len(), expected, "{words:?}");
        }

        let resend =
            |id: &str, words: &[&str]| gateway.type_in(&[&["notices", "resend", id], words].concat());
        resend(&refused, &["--to", "jiro@example.jp"]).done().mentions(&["is sent again to j***@example.jp"]);
        becomes(&gateway, &refused, "sent");
        show(&refused).mentions(&["resent by cli:", "deadline_notification_sent", "notice.resent"]);
        let gone = id_of(&gateway, "gone@example.jp");
        resend(&gone, &[]).failed(1).mentions(&["release it first"]);
        let release = ["suppressions", "release", "gone@example.jp", "--reason", "back again"];
        gateway.type_in(&["suppressions"]).done().mentions(&["g***@example.jp", "manual", "left"]);
        gateway.type_in(&release).done().mentions(&["g***@example.jp is released"]);
        gateway.type_in(&release).failed(1).mentions(&["not on the suppression list"]);
        gateway.type_in(&["suppressions"]).done().mentions(&["nothing is suppressed"]);
        gateway
            .type_in(&["suppressions", "--all", "--full"])
            .done()
            .mentions(&["gone@example.jp", "back again"]);
        resend(&gone, &[]).done();
        becomes(&gateway, &gone, "sent");
        assert_eq!(recipients(&smtp), ["gone@example.jp", "jiro@example.jp", "taro@example.jp"]);
        gateway.type_in(&["reminders", "run", "--date", DAY]).done();
        gateway.type_in(&["audit", "verify"]).done();
        for name in ["taro", "jiro", "gone", "refused"] {
            assert!(!gateway.server.log().contains(&format!("{name}@")), "no log has a whole address");
        }
    });
}

#[test]
fn g4_without_a_server_reminders_wait_for_one() {
    each_store(|place| {
        let smtp = choosy();
        let mut gateway = open(place, &smtp);
        office(&gateway, place, &["taro", "off"]);
        stop(&mut gateway);
        let said = gateway.type_in(&["reminders", "run", "--date", DAY]).done();
        said.mentions(&["2 new (queued 1, 1 recorded only", "they are sent when one does"]);
        let taro = id_of(&gateway, "taro@example.jp");
        gateway.type_in(&["notices", "resend", &taro]).failed(1).mentions(&["queued: it is on its way"]);
        let off = id_of(&gateway, "off@example.jp");
        gateway.type_in(&["notices", "resend", &off]).failed(1).mentions(&["switched off", "--to"]);
        let resend = ["notices", "resend", &off, "--to", "off@example.jp"];
        gateway.type_in(&resend).done().mentions(&["when the server runs"]);
        gateway.type_in(&["suppressions", "add", "hana@example.jp", "--reason", "asked"]).done();
        gateway.type_in(&["channels"]).done().mentions(&["mail", "smtp", "closed", "50000"]);
        gateway.server.start_again().unwrap();
        becomes(&gateway, &taro, "sent");
        gateway.type_in(&["reminders", "run", "--date", DAY]).done();
        assert_eq!(recipients(&smtp), ["off@example.jp", "taro@example.jp"]);
    });
}

#[test]
fn g2_a_channel_that_is_shut_is_named_and_resumed() {
    each_store(|place| {
        let smtp = Smtp::start(SmtpBehaviour::say(Point::Sender, "530 5.7.0 login needed")).unwrap();
        let gateway = open(place, &smtp);
        office(&gateway, place, &["taro"]);
        let said = gateway.type_in(&["reminders", "run", "--date", DAY]).failed(1);
        said.mentions(&[
            "1 wait, and the channel mail is paused until",
            "bad_credentials",
            "channels resume mail",
        ]);
        let channel = &gateway.type_in(&["channels", "--json"]).done().lines()[0];
        assert_eq!((&channel["breaker"], &channel["kind"]), (&json!("open"), &json!("smtp")), "{channel}");
        smtp.set(SmtpBehaviour::Accept);
        gateway.type_in(&["channels", "resume", "fax"]).failed(1).mentions(&["configured are: mail"]);
        gateway
            .type_in(&["channels", "resume", "mail"])
            .done()
            .mentions(&["Reset the breaker of mail; it was open"]);
        gateway.type_in(&["reminders", "run", "--date", DAY]).done();
        assert_eq!(recipients(&smtp), ["taro@example.jp"]);
        gateway.type_in(&["audit", "--action", "channel.resumed"]).done().mentions(&["cli:", "mail"]);
    });
}

#[test]
fn g4_an_interrupt_ends_the_waiting_and_nothing_else() {
    let place = Place::sqlite();
    let smtp = Smtp::start(SmtpBehaviour::At(Point::Greeting, SmtpFault::Silence)).unwrap();
    let gateway = open(&place, &smtp);
    office(&gateway, &place, &["taro"]);
    let words = ["reminders", "run", "--date", DAY, "--config", "sekisho.toml", "--store", &place.url];
    let mut command = Command::new(BINARY);
    command.args(words).current_dir(gateway.folder()).env("STRIPE_SECRET", STRIPE_SECRET);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.contains("0 of 1 are over"), "{line}");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success(), "{rest}");
    assert!(rest.contains("the server goes on sending them"), "{rest}");
    smtp.set(SmtpBehaviour::Accept);
}

#[test]
fn g1_a_channel_is_tested_without_a_store_or_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let smtp = choosy();
    let slack = "[[channel]]\nname = \"ops\"\nkind = \"slack\"\nurl = \"https://hooks.example.com/x\"\n";
    std::fs::write(folder.path().join("sekisho.toml"), format!("{}{slack}", mail_channel(&smtp))).unwrap();
    let test = |words: &[&str]| say(folder.path(), &[&["notify", "test"], words].concat(), &[]);
    let taro = ["mail", "--to", "taro@example.jp"];
    test(&taro).done().mentions(&["accepted by mail: 2.0.0 Ok: queued as"]);
    test(&[&taro[..], &["--language", "en"]].concat()).done();
    let mails = smtp.accepted();
    assert!(mails[1].part("text/plain").unwrap().contains("This is a test"), "{:?}", mails[1]);
    let refused = test(&["mail", "--to", "refused@example.jp", "--json"]).failed(1).lines().remove(0);
    assert_eq!((&refused["outcome"], &refused["reason"]), (&json!("refused"), &json!("bad_recipient")));
    smtp.set(SmtpBehaviour::drop_at(Point::Taken));
    test(&taro).failed(1).mentions(&["uncertain", "check whether it arrived"]);
    smtp.set(SmtpBehaviour::say(Point::Sender, "530 5.7.0 login needed"));
    test(&taro).failed(1).mentions(&["paused, mail sends nothing", "user name and password"]);
    drop(smtp);
    test(&taro).failed(1).mentions(&["refused by mail"]);
    test(&["fax"]).failed(1).mentions(&["there is no channel fax; configured are: mail, ops"]);
    test(&["mail"]).failed(1).mentions(&["mail is mail: say whom it is for with --to"]);
    test(&["ops", "--to", "taro@example.jp"]).failed(1).mentions(&["leave --to out"]);
    test(&["mail", "--to", "taro"]).failed(2).mentions(&["no mail address; expected one such as"]);
    test(&["mail", "--language", "fr"]).failed(2).mentions(&["expected ja or en"]);
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(left, ["sekisho.toml"], "nothing was kept");
}

#[test]
fn h2_what_is_wrongly_asked_of_notifications_says_what_to_write() {
    let place = Place::sqlite();
    let gateway = Gateway::open(&place);
    let cases: [(&[&str], i32, &str); 14] = [
        (&["notices", "--to", "taro"], 2, "no mail address"),
        (&["notices", "--status", "lost"], 2, "expected one of queued, sending"),
        (&["notices", "--since", "soon"], 2, "30m, 2h, 3d"),
        (&["notices", "show", "ntc_none"], 1, "notices --to ADDRESS"),
        (&["notices", "resend", "ntc_none"], 1, "there is no notice ntc_none"),
        (&["notices", "resend", "../keys"], 1, "there is no notice ../keys"),
        (&["suppressions", "add", "taro@example.jp"], 2, "--reason"),
        (&["suppressions", "add", "taro", "--reason", "x"], 2, "no mail address"),
        (&["suppressions", "add", "taro@example.jp", "--reason", " "], 2, "reason: expected a text"),
        (&["suppressions", "--before", "x"], 2, "sup_"),
        (&["channels", "resume", "mail"], 1, "there is no channel mail"),
        (&["reminders", "run", "--date", "2031-02-30"], 2, "expected YYYY-MM-DD"),
        (&["reminders", "run"], 2, "reminders = \"mail\""),
        (&["notify", "test", "mail"], 1, "has no [[channel]]"),
    ];
    for (words, code, expected) in cases {
        gateway.type_in(words).failed(code).mentions(&[expected]);
    }
    for (words, nothing) in [
        (&["notices"][..], "no notices"),
        (&["suppressions"], "nothing is suppressed"),
        (&["channels"], "the configuration has no [[channel]]"),
    ] {
        gateway.type_in(words).done().mentions(&[nothing]);
    }
}
