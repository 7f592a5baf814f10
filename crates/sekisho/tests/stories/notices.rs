//! G: whoever should hear of something hears of it once, by mail or in a chat room; what could not be told is in the
//! record with its reason; a channel in trouble keeps what waits for it.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sekisho_lab::certificate::CertificateSigner;
use sekisho_lab::chat::{Chat, SLACK_PATH, Service};
use sekisho_lab::smtp::{Point, Smtp, SmtpBehaviour, SmtpFault};
use serde_json::json;

use super::delivery::event;
use crate::support::{Gateway, Letter, Place, each_store, stripe_source, wait_until};

/// A mail channel to the lab's server that is in no hurry to be polite, and a receipt for whoever paid.
pub fn mail(smtp: &Smtp, more: &str) -> String {
    let (host, port) = (smtp.address().ip(), smtp.address().port());
    format!(
        "[[channel]]\nname = \"mail\"\nkind = \"smtp\"\nhost = \"{host}\"\nport = {port}\ntls = \"none\"\nauth = \"none\"\n\
         from = \"青空ショップ <no-reply@example.jp>\"\n{more}\n"
    )
}

pub const FAST: &str = "spacing = \"1ms\"\nrate = 1000";

pub const RECEIPT: &str = "[[notify]]\nname = \"receipt\"\nevents = [\"payment.paid\"]\nto = \"customer\"\nchannel = \"mail\"\n\
                       template = \"payment-received\"\n";

fn slack(chat: &Chat) -> String {
    let url = format!("{}{SLACK_PATH}", chat.url());
    format!("[[channel]]\nname = \"ops\"\nkind = \"slack\"\nurl = \"{url}\"\nallow_private = true\n")
}

/// Somebody paid, and left this address at the till.
pub fn paid(n: &str, email: &str) -> Letter {
    event(
        &format!("evt_{n}"),
        "charge.succeeded",
        &format!(
            ",\"livemode\":true,\"data\":{{\"object\":{{\"object\":\"charge\",\"id\":\"ch_{n}\",\"payment_intent\":\"pi_{n}\",\
             \"amount\":5000,\"amount_captured\":5000,\"captured\":true,\"paid\":true,\"status\":\"succeeded\",\
             \"currency\":\"jpy\",\"billing_details\":{{\"email\":\"{email}\"}}}}}}"
        ),
    )
}

/// The same payment, as another event tells it.
fn paid_too(n: &str) -> Letter {
    event(
        &format!("evt_{n}b"),
        "payment_intent.succeeded",
        &format!(
            ",\"livemode\":true,\"data\":{{\"object\":{{\"object\":\"payment_intent\",\"id\":\"pi_{n}\",\"status\":\"succeeded\",\
             \"amount\":5000,\"amount_received\":5000,\"currency\":\"jpy\",\"latest_charge\":\"ch_{n}\"}}}}"
        ),
    )
}

/// How many notices there are of each status.
pub fn statuses(place: &Place) -> BTreeMap<String, usize> {
    let rows = place.sql("SELECT status || ' ' || count(*) FROM state WHERE kind = 'notice' GROUP BY status");
    let pair =
        |line: &str| line.rsplit_once(' ').map(|(status, count)| (status.to_owned(), count.parse().unwrap()));
    rows.lines().filter_map(pair).collect()
}

fn status_of(place: &Place, address: &str) -> String {
    place.sql(&format!("SELECT status FROM state WHERE kind = 'notice' AND customer = '{address}'"))
}

fn wait_for(place: &Place, status: &str, count: usize) {
    wait_until(&format!("{count} notices are {status}"), || statuses(place).get(status) == Some(&count));
}

#[test]
fn g5_a_payment_is_told_once_whatever_announces_it_and_no_log_shows_the_address() {
    each_store(|place| {
        let (smtp, chat) = (Smtp::start(SmtpBehaviour::Accept).unwrap(), Chat::start().unwrap());
        let room = "[[notify]]\nname = \"room\"\nevents = [\"payment.*\"]\nto = \"channel\"\nchannel = \"ops\"\n\
                    template = \"payment-received\"\n";
        let config = stripe_source("") + &mail(&smtp, FAST) + &slack(&chat) + RECEIPT + room;
        let gateway = Gateway::with_env(place, &config, &[("PLANTED", "canary-taro@example.jp")]);
        for letter in
            [paid("1", "Canary-Taro@example.jp"), paid_too("1"), paid("1", "Canary-Taro@example.jp")]
        {
            assert_eq!(gateway.send(&letter).status, 204);
        }
        wait_for(place, "sent", 2);
        gateway.type_in(&["events", "replay", "--all", "--reason", "again"]).done();
        std::thread::sleep(Duration::from_secs(1));
        wait_for(place, "sent", 2);
        let mails = smtp.accepted();
        assert_eq!(mails.len(), 1);
        assert_eq!(mails[0].to, ["canary-taro@example.jp"]);
        assert!(mails[0].part("text/plain").unwrap().contains("5,000"), "{:?}", mails[0].parts);
        assert!(mails[0].part("text/html").unwrap().contains("5,000"));
        assert!(mails[0].header("message-id").unwrap().starts_with("<ntc_"));
        assert!(mails[0].header("from").unwrap().contains("青空ショップ"));
        assert_eq!(chat.seen(Service::Slack), 1);
        gateway.type_in(&["audit", "list", "--json"]).done().mentions(&["notice.sent", "c***@example.jp"]);
        gateway.type_in(&["audit", "verify"]).done();
    });
}

#[test]
fn g2_each_kind_of_failure_ends_as_promised_and_none_delays_another() {
    each_store(|place| {
        let say = |point, text: &str| SmtpBehaviour::say(point, text);
        let first = |n, behaviour| SmtpBehaviour::First(n, Box::new(behaviour));
        // Whom it goes to, how the server behaves, how it ends, how often it is tried, and whether the server has it.
        let cases = [
            ("well", SmtpBehaviour::Accept, "sent", 1, 1),
            ("busy", first(2, say(Point::Recipient, "450 4.2.1 busy")), "sent", 3, 1),
            ("never", say(Point::End, "451 4.3.0 later"), "failed", 3, 0),
            ("nobody", say(Point::Recipient, "550 5.1.1 no such user"), "failed", 1, 0),
            ("spam", say(Point::End, "554 5.7.1 refused"), "failed", 1, 0),
            (
                "hiccup",
                first(1, say(Point::End, "554 5.3.0 temporarily unavailable, try again")),
                "sent",
                2,
                1,
            ),
            ("lost", SmtpBehaviour::drop_at(Point::Taken), "uncertain", 1, 1),
            ("gone", SmtpBehaviour::drop_at(Point::End), "uncertain", 1, 0),
            ("told", SmtpBehaviour::drop_at(Point::Told), "sent", 1, 1),
        ];
        let some = cases.iter().map(|case| (case.0.to_owned(), case.1.clone())).collect();
        let smtp = Smtp::start(SmtpBehaviour::To(some, Box::new(SmtpBehaviour::Accept))).unwrap();
        let gateway = Gateway::with(place, &(stripe_source("") + &mail(&smtp, FAST) + RECEIPT));
        for case in &cases {
            assert_eq!(gateway.send(&paid(case.0, &format!("{}@example.jp", case.0))).status, 204);
        }
        wait_until("all are over", || {
            let all = statuses(place);
            all.get("sent") == Some(&4) && all.get("failed") == Some(&3) && all.get("uncertain") == Some(&2)
        });
        for (name, _, status, tries, taken) in &cases {
            let address = format!("{name}@example.jp");
            assert_eq!(&status_of(place, &address), status, "{name}");
            assert_eq!(smtp.tries(&address), *tries, "{name}");
            let has = smtp.accepted().iter().filter(|mail| mail.to == [address.clone()]).count();
            assert_eq!(has, *taken, "{name}");
        }
        assert!(smtp.most_at_once() <= 5);
        let dead = gateway.type_in(&["dead", "list", "--json"]).done();
        assert_eq!(
            dead.lines().len(),
            5,
            "what failed, and what is in doubt, waits for a person: {}",
            dead.stdout
        );
    });
}

#[test]
fn g2_five_hung_recipients_stop_nobody_and_are_given_up_in_time() {
    let place = Place::sqlite();
    let hung = SmtpBehaviour::At(Point::Recipient, SmtpFault::Silence);
    let smtp =
        Smtp::start(SmtpBehaviour::To(vec![("hung".into(), hung)], Box::new(SmtpBehaviour::Accept))).unwrap();
    let gateway = Gateway::with(&place, &(stripe_source("") + &mail(&smtp, FAST) + RECEIPT));
    for n in 0..5 {
        gateway.send(&paid(&format!("h{n}"), &format!("hung{n}@example.jp")));
    }
    wait_until("all five hang", || smtp.most_at_once() == 5);
    for n in 0..20 {
        gateway.send(&paid(&format!("w{n}"), &format!("well{n}@example.jp")));
    }
    wait_for(&place, "sent", 20);
    let waiting = statuses(&place).get("failed").copied().unwrap_or_default();
    assert!(waiting < 5, "the others did not wait for them to be given up");
    wait_for(&place, "failed", 5);
    let steps = place.sql("SELECT facts FROM state WHERE kind = 'notice' AND status = 'failed'");
    for line in steps.lines() {
        let notice: serde_json::Value = serde_json::from_str(line).unwrap();
        let at = |step: &serde_json::Value| {
            sekisho_core::Time::parse_rfc3339(step["at"].as_str().unwrap()).unwrap().ms()
        };
        let steps = notice["steps"].as_array().unwrap();
        let first = steps.iter().find(|step| step["status"] == "sending").unwrap();
        let took = at(steps.last().unwrap()) - at(first);
        assert!(took <= 32_000, "30 s and what it takes to write it down: {took} ms\n{notice}");
    }
}

#[test]
fn g2_a_channel_that_cannot_log_in_is_shut_and_keeps_its_mail() {
    each_store(|place| {
        let chat = Chat::start().unwrap();
        let smtp =
            Smtp::start(SmtpBehaviour::say(Point::Sender, "530 5.7.0 Authentication required")).unwrap();
        let alerts = "[notifications]\nalerts = \"ops\"\n";
        let config = alerts.to_owned() + &stripe_source("") + &mail(&smtp, FAST) + &slack(&chat) + RECEIPT;
        let gateway = Gateway::with(place, &config);
        for n in 0..3 {
            gateway.send(&paid(&n.to_string(), &format!("a{n}@example.jp")));
        }
        wait_until("operators hear of it", || chat.seen(Service::Slack) == 1);
        wait_until("all wait", || statuses(place).get("queued") == Some(&3));
        assert!(smtp.accepted().is_empty());
        let why = place.sql("SELECT facts FROM state WHERE kind = 'breaker' AND id = 'by:mail'");
        assert!(why.contains("bad_credentials"), "{why}");
        smtp.set(SmtpBehaviour::Accept);
        gateway.type_in(&["channels", "resume", "mail"]).done();
        wait_until("they go out", || smtp.accepted().len() == 3);
        wait_until("and are recorded", || {
            place.sql("SELECT count(*) FROM state WHERE kind = 'notice' AND status = 'sent' AND customer IS NOT NULL") == "3"
        });
    });
}

#[test]
fn g2_what_is_over_the_days_quota_waits() {
    each_store(|place| {
        let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
        let gateway = Gateway::with(
            place,
            &(stripe_source("") + &mail(&smtp, "daily = 3\nspacing = \"1ms\"") + RECEIPT),
        );
        for n in 0..5 {
            gateway.send(&paid(&n.to_string(), &format!("a{n}@example.jp")));
        }
        wait_until("three are sent and two wait", || {
            statuses(place) == BTreeMap::from([("sent".into(), 3), ("queued".into(), 2)])
        });
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(smtp.accepted().len(), 3);
        let why = place.sql("SELECT facts FROM state WHERE kind = 'breaker' AND id = 'by:mail'");
        assert!(why.contains("quota_used_up"), "{why}");
    });
}

#[test]
fn g2_killed_while_it_sends_it_holds_what_may_have_arrived() {
    each_store(|place| {
        let smtp = Smtp::start(SmtpBehaviour::At(Point::Taken, SmtpFault::Silence)).unwrap();
        let mut gateway = Gateway::with(place, &(stripe_source("") + &mail(&smtp, FAST) + RECEIPT));
        gateway.send(&paid("1", "taro@example.jp"));
        wait_until("the server has it", || smtp.accepted().len() == 1);
        gateway.server.kill9();
        smtp.set(SmtpBehaviour::Accept);
        gateway.server.restart().unwrap();
        wait_for(place, "uncertain", 1);
        assert_eq!(smtp.accepted().len(), 1, "it is not sent again by itself");
        gateway
            .type_in(&["dead", "retry", "--all"])
            .done()
            .mentions(&["1 notice skipped: delivery is uncertain"]);
        assert_eq!(statuses(place), BTreeMap::from([("uncertain".into(), 1)]), "nor with others");
        let id = place.sql("SELECT id FROM state WHERE kind = 'notice'");
        gateway.type_in(&["notices", "resend", &id]).done();
        wait_for(place, "sent", 1);
        assert!(
            gateway.type_in(&["dead", "list", "--json"]).done().lines().is_empty(),
            "nothing waits for a person"
        );
        let ids: Vec<_> =
            smtp.accepted().iter().map(|mail| mail.header("message-id").unwrap().to_owned()).collect();
        assert_eq!(ids, [format!("<{id}@example.jp>"), format!("<{id}.1@example.jp>")]);
        gateway.type_in(&["audit", "list", "--json"]).done().mentions(&[
            "notice.uncertain",
            "notice.resent",
            "notice.sent",
        ]);
    });
}

#[test]
fn g2_retried_and_resent_at_once_it_is_still_one_mail() {
    each_store(|place| {
        let smtp = Smtp::start(SmtpBehaviour::say(Point::Recipient, "550 5.1.1 no such user")).unwrap();
        let mut gateway = Gateway::with(place, &(stripe_source("") + &mail(&smtp, FAST) + RECEIPT));
        gateway.send(&paid("1", "taro@example.jp"));
        wait_for(place, "failed", 1);
        gateway.server.terminate().unwrap();
        smtp.set(SmtpBehaviour::Accept);
        // Two people help at the same time, while nothing runs.
        let id = place.sql("SELECT id FROM state WHERE kind = 'notice'");
        gateway.type_in(&["dead", "retry", "--all"]).done();
        gateway.type_in(&["notices", "resend", &id]).done();
        gateway.server.start_again().unwrap();
        wait_for(place, "sent", 1);
        wait_until("nothing is left to do", || {
            place.sql("SELECT count(*) FROM job WHERE kind = 'send'") == "0"
        });
        assert_eq!(smtp.accepted().len(), 1);
        assert!(gateway.type_in(&["dead", "list", "--json"]).done().lines().is_empty());
    });
}

#[test]
fn h4_an_alert_that_fails_raises_no_alert() {
    let place = Place::sqlite();
    let wrong = SmtpBehaviour::say(Point::Recipient, "550 5.1.1 no such user");
    let smtp = Smtp::start(SmtpBehaviour::To(vec![("gone".into(), wrong)], Box::new(SmtpBehaviour::Accept)))
        .unwrap();
    let tell = "[[notify]]\nname = \"told\"\nevents = [\"notice.failed\"]\nto = \"operators\"\nchannel = \"mail\"\n\
                template = \"operator-alert\"\n";
    let house = "[notifications]\noperators = [\"gone@example.jp\", \"ops@example.jp\"]\n";
    let config = house.to_owned() + &stripe_source("") + &mail(&smtp, FAST) + RECEIPT + tell;
    let gateway = Gateway::with(&place, &config);
    gateway.send(&paid("1", "gone-too@example.jp"));
    wait_until("operators hear of it", || smtp.accepted().len() == 1);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(smtp.accepted().len(), 1, "and of nothing else");
    assert_eq!(statuses(&place), BTreeMap::from([("failed".into(), 2), ("sent".into(), 1)]));
}

#[test]
fn g2_told_to_stop_it_hands_back_what_it_has_not_begun() {
    let place = Place::sqlite();
    let smtp = Smtp::start(SmtpBehaviour::say(Point::Recipient, "450 4.2.1 busy")).unwrap();
    let mut gateway = Gateway::with(&place, &(stripe_source("") + &mail(&smtp, FAST) + RECEIPT));
    gateway.send(&paid("1", "taro@example.jp"));
    wait_until("it waits for its next try", || statuses(&place).contains_key("retrying"));
    gateway.server.terminate().unwrap();
    smtp.set(SmtpBehaviour::Accept);
    gateway.server.start_again().unwrap();
    wait_for(&place, "sent", 1);
    assert_eq!(smtp.accepted().len(), 1);
}

#[test]
fn g2_a_bounce_suppresses_the_address_until_somebody_releases_it() {
    each_store(|place| {
        let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
        let topic = Topic::new(place);
        let config = stripe_source("") + &topic.source + &mail(&smtp, FAST) + RECEIPT;
        let gateway = Gateway::with(place, &config);
        let (taro, stranger) = ("taro@example.jp", "stranger@example.jp");
        gateway.send(&paid("1", taro));
        wait_for(place, "sent", 1);

        // Nobody wrote to the one; the other's bounce is of somebody else's AWS account.
        assert_eq!(gateway.send(&topic.bounce(stranger, ACCOUNT)).status, 204);
        wait_until("why it waits is said", || gateway.server.log().contains("no_notice_yet"));
        assert_eq!(gateway.send(&topic.bounce(taro, "210987654321")).status, 204);
        let notes = || place.sql("SELECT note FROM outcome WHERE note LIKE '%owns the topic'");
        wait_until("it was heard in vain", || !notes().is_empty());
        let suppressed = || place.sql("SELECT id FROM state WHERE kind = 'suppression'");
        assert_eq!(suppressed(), "");

        assert_eq!(gateway.send(&topic.bounce(taro, ACCOUNT)).status, 204);
        wait_until("the address is on the list", || suppressed() == taro);
        gateway.send(&paid("2", taro));
        wait_for(place, "suppressed", 1);
        assert_eq!(smtp.accepted().len(), 1);
        gateway.type_in(&["suppressions", "release", taro, "--reason", "she has a new mailbox"]).done();
        gateway.send(&paid("3", taro));
        wait_for(place, "sent", 2);
    });
}

const ACCOUNT: &str = "123456789012";

/// A topic of SNS that SES publishes to, and a source that believes its certificate.
struct Topic {
    signer: CertificateSigner,
    source: String,
}

impl Topic {
    fn new(place: &Place) -> Self {
        let signer = CertificateSigner::new().unwrap();
        let pem = place.folder.path().join("sns.pem");
        std::fs::write(&pem, signer.certificate().unwrap()).unwrap();
        let source = format!(
            "[[source]]\nname = \"sns\"\nprovider = \"sns\"\ntopic_arn = \"{}\"\ncertificate = \"file:{}\"\n",
            Self::arn(),
            pem.display()
        );
        Self { signer, source }
    }

    fn arn() -> String {
        format!("arn:aws:sns:ap-northeast-1:{ACCOUNT}:ses-events")
    }

    /// SES says that a mail, which this account sent there, came back for good. It names no mail that we know.
    fn bounce(&self, address: &str, sender: &str) -> Letter {
        let (at, id) = (sekisho::now().to_string(), format!("bounce-{address}-{sender}"));
        let message = json!({
            "notificationType": "Bounce",
            "bounce": {
                "bounceType": "Permanent",
                "bounceSubType": "General",
                "bouncedRecipients": [{ "emailAddress": address }],
                "timestamp": at,
            },
            "mail": { "messageId": id, "sendingAccountId": sender, "destination": [address] },
        })
        .to_string();
        let lines = [
            ("Message", &*message),
            ("MessageId", &*id),
            ("Timestamp", &*at),
            ("TopicArn", &*Self::arn()),
            ("Type", "Notification"),
        ]
        .map(|(name, value)| format!("{name}\n{value}\n"));
        let body = json!({
            "Type": "Notification",
            "MessageId": id,
            "TopicArn": Self::arn(),
            "Message": message,
            "Timestamp": at,
            "SignatureVersion": "2",
            "SigningCertURL": "https://sns.ap-northeast-1.amazonaws.com/SimpleNotificationService-1.pem",
            "Signature": STANDARD.encode(self.signer.sign(lines.concat().as_bytes()).unwrap()),
        });
        Letter::unsigned("/webhooks/sns", &body.to_string())
    }
}

#[test]
fn g5_who_has_no_address_is_in_the_record_and_can_be_helped() {
    let place = Place::sqlite();
    let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
    let config = stripe_source("")
        + &mail(&smtp, FAST)
        + "[[notify]]\nname = \"staff\"\nevents = [\"payment.paid\"]\nto = \"customer\"\nchannel = \"mail\"\ntemplate = \"payment-received\"\n";
    let gateway = Gateway::with(&place, &config);
    gateway.send(&paid_too("1"));
    wait_for(&place, "failed", 1);
    let id = place.sql("SELECT id FROM state WHERE kind = 'notice'");
    gateway.type_in(&["notices", "show", &id]).done().mentions(&["no_address"]);
    gateway.type_in(&["notices", "resend", &id, "--to", "taro@example.jp"]).done();
    wait_for(&place, "sent", 1);
    assert_eq!(smtp.accepted()[0].to, ["taro@example.jp"]);
}

/// The charge of a payment with a link to its receipt.
fn charged(n: &str) -> Letter {
    event(
        &format!("evt_{n}c"),
        "charge.succeeded",
        &format!(
            ",\"livemode\":true,\"data\":{{\"object\":{{\"object\":\"charge\",\"id\":\"ch_{n}\",\"payment_intent\":\"pi_{n}\",\
             \"amount\":5000,\"amount_captured\":5000,\"captured\":true,\"paid\":true,\"status\":\"succeeded\",\
             \"currency\":\"jpy\",\"receipt_url\":\"https://pay.example/receipts/{n}\"}}}}"
        ),
    )
}

/// The money came, says the intent, and where to write; it knows of no receipt.
fn succeeded(n: &str) -> Letter {
    event(
        &format!("evt_{n}i"),
        "payment_intent.succeeded",
        &format!(
            ",\"livemode\":true,\"data\":{{\"object\":{{\"object\":\"payment_intent\",\"id\":\"pi_{n}\",\"status\":\"succeeded\",\
             \"amount\":5000,\"amount_received\":5000,\"currency\":\"jpy\",\"latest_charge\":\"ch_{n}\",\
             \"receipt_email\":\"taro{n}@example.jp\"}}}}"
        ),
    )
}

#[test]
fn d2_the_link_to_the_receipt_is_in_the_mail_whatever_comes_first() {
    each_store(|place| {
        let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
        let gateway = Gateway::with(place, &(stripe_source("") + &mail(&smtp, FAST) + RECEIPT));
        assert_eq!(gateway.send(&succeeded("1")).status, 204);
        wait_until("it is paid, and waits for its receipt", || {
            place.sql("SELECT count(*) FROM job WHERE lane = 'notify' AND attempt > 0") == "1"
        });
        assert_eq!(statuses(place).len(), 0, "nobody was told yet");
        for letter in [charged("1"), charged("2"), succeeded("2")] {
            assert_eq!(gateway.send(&letter).status, 204);
        }
        wait_for(place, "sent", 2);
        for mail in smtp.accepted() {
            let n = &mail.to[0]["taro".len()..="taro".len()];
            let text = mail.part("text/plain").unwrap();
            assert!(text.contains(&format!("https://pay.example/receipts/{n}")), "{:?}: {text}", mail.to);
        }
    });
}

#[test]
fn d2_a_receipt_that_never_comes_keeps_nobody_waiting_for_ever() {
    let place = Place::sqlite();
    let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
    let gateway = Gateway::with(&place, &(stripe_source("") + &mail(&smtp, FAST) + RECEIPT));
    assert_eq!(gateway.send(&succeeded("1")).status, 204);
    wait_for(&place, "sent", 1);
    assert!(!smtp.accepted()[0].part("text/plain").unwrap().contains("pay.example"));
}

#[test]
fn g2_tries_that_were_made_are_not_made_again_after_a_restart() {
    each_store(|place| {
        let smtp = Smtp::start(SmtpBehaviour::say(Point::Recipient, "450 4.2.1 busy")).unwrap();
        let mut gateway = Gateway::with(place, &(stripe_source("") + &mail(&smtp, FAST) + RECEIPT));
        assert_eq!(gateway.send(&paid("1", "taro@example.jp")).status, 204);
        wait_until("it was tried once", || smtp.tries("taro@example.jp") >= 1);
        assert!(gateway.server.terminate().unwrap().success());
        gateway.server.start_again().unwrap();
        wait_until("it is given up", || status_of(place, "taro@example.jp") == "failed");
        assert_eq!(smtp.tries("taro@example.jp"), 3);
    });
}
