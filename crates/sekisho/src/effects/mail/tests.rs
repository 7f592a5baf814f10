use sekisho_core::job::Class;
use sekisho_core::language::Language;
use sekisho_core::notification::message::Recipient;
use sekisho_core::queue::Failure;
use sekisho_lab::smtp::{self, Mail, Point, Smtp, SmtpBehaviour, SmtpFault};
use serde_json::Value;

use super::*;

mod tls;

/// Far away: no test waits for it.
const LONG: Duration = Duration::from_secs(20);
/// What a stalling server costs a test.
const SHORT: Duration = Duration::from_secs(2);
const TO: &str = "taro@example.jp";

fn settings(smtp: &Smtp) -> Settings {
    Settings {
        host: "localhost".into(),
        port: smtp.address().port(),
        tls: Tls::None,
        login: None,
        from: Mailbox {
            name: Some("関所ショップ".into()), address: "shop@example.com".parse().unwrap()
        },
        reply_to: None,
        ca: smtp.certificate().map(str::to_owned),
    }
}

fn mailer(smtp: &Smtp) -> Mailer {
    Mailer::new(settings(smtp), &Env::system()).unwrap()
}

fn message() -> Message {
    Message {
        id: "ntc_1".into(),
        key: "acct/pi_1".into(),
        closes: false,
        to: Some(Recipient { address: TO.parse().unwrap(), name: Some("山田 太郎".into()) }),
        language: Language::Ja,
        subject: "お支払いを確認しました".into(),
        text: "山田様\n\n.\nありがとうございます。\n".into(),
        html: Some("<p>山田様</p>".into()),
        template: "paid".into(),
        data: Value::Null,
        trace: None,
    }
}

/// Long enough that no buffer between two processes takes all of it.
fn long_message() -> Message {
    Message { text: format!("{}\n", "0123456789 ".repeat(6)).repeat(85_000), html: None, ..message() }
}

async fn send(mailer: &Mailer, message: &Message, within: Duration) -> Sent {
    let started = Instant::now();
    let sent = mailer.send(message, within).await;
    assert!(started.elapsed() < within + Duration::from_secs(2), "the time does not hold: {sent:?}");
    sent
}

async fn sent_by(behaviour: SmtpBehaviour, within: Duration) -> (Sent, Smtp) {
    let smtp = Smtp::start(behaviour).unwrap();
    let sent = send(&mailer(&smtp), &message(), within).await;
    (sent, smtp)
}

/// The one mail that was taken.
fn taken(smtp: &Smtp) -> Mail {
    let mut accepted = smtp.accepted();
    assert_eq!(accepted.len(), 1);
    accepted.remove(0)
}

/// A word for the class, and its reason.
fn class(sent: &Sent) -> (&'static str, &'static str) {
    let of = |failure: &Failure| match failure.class {
        Class::Transient => "again",
        Class::Terminal => "never",
    };
    match sent {
        Sent::Accepted(_) => ("accepted", ""),
        Sent::Failed(failure) => (of(failure), failure.reason),
        Sent::Uncertain(failure) => ("uncertain", failure.reason),
        Sent::Closed { failure, .. } => ("closed", failure.reason),
    }
}

#[tokio::test]
async fn g2_a_mail_arrives_with_its_headers_and_both_parts() {
    let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
    let reply_to = Mailbox { name: None, address: "help@example.com".parse().unwrap() };
    let mailer =
        Mailer::new(Settings { reply_to: Some(reply_to), ..settings(&smtp) }, &Env::system()).unwrap();
    let sent = send(&mailer, &message(), LONG).await;
    let Sent::Accepted(receipt) = sent else { panic!("{sent:?}") };
    assert_eq!(receipt.answer, "2.0.0 Ok: queued as LAB1");
    assert_eq!(receipt.reference.as_deref(), Some("LAB1"));

    let mail = taken(&smtp);
    assert_eq!((mail.from.as_str(), mail.to.as_slice()), ("shop@example.com", &[TO.to_owned()][..]));
    for (name, value) in [
        ("from", "関所ショップ <shop@example.com>"),
        ("to", "山田 太郎 <taro@example.jp>"),
        ("reply-to", "help@example.com"),
        ("subject", "お支払いを確認しました"),
        ("message-id", "<ntc_1@example.com>"),
        ("auto-submitted", "auto-generated"),
        ("x-sekisho-notice", "ntc_1"),
        ("mime-version", "1.0"),
    ] {
        assert_eq!(mail.header(name), Some(value), "{name}");
    }
    assert!(mail.header("date").is_some_and(|date| date.ends_with("+0000")), "{:?}", mail.header("date"));
    assert!(mail.header("content-type").unwrap().starts_with("multipart/alternative"));
    // Mails are read with CRLF.
    assert_eq!(mail.part("text/plain").unwrap().trim_end(), "山田様\r\n\r\n.\r\nありがとうございます。");
    assert_eq!(mail.part("text/html").unwrap().trim_end(), "<p>山田様</p>");
    assert!(mail.raw.is_ascii());
    let longest = mail.raw.split(|byte| *byte == b'\n').map(<[u8]>::len).max();
    assert!(longest < Some(999), "{longest:?}");
}

#[tokio::test]
async fn g2_every_try_of_a_message_has_the_same_message_id() {
    let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
    let mailer = mailer(&smtp);
    for id in ["ntc_1", "ntc_1", "ntc_1.1"] {
        send(&mailer, &Message { id: id.into(), html: None, ..message() }, LONG).await;
    }
    let ids: Vec<_> =
        smtp.accepted().iter().map(|mail| mail.header("message-id").unwrap().to_owned()).collect();
    assert_eq!(ids, ["<ntc_1@example.com>", "<ntc_1@example.com>", "<ntc_1.1@example.com>"]);
}

#[tokio::test]
async fn g2_long_and_odd_texts_come_back_as_they_were() {
    let names = [
        "山田 太郎".to_owned(),
        "とても長い名前".repeat(20),
        "O'Neil, \"Bob\" <b@c.jp>; (x) \\".to_owned(),
        "a@b.jp".to_owned(),
        "Zoë 🙂".to_owned(),
        "=?utf-8?b?44GC?=".to_owned(),
        "x".repeat(300),
        "mixed 日本語 and ASCII words, again and again, 交互に ".repeat(4).trim().to_owned(),
    ];
    let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
    let mailer = mailer(&smtp);
    for name in names {
        let mut message = message();
        message.subject.clone_from(&name);
        message.to.as_mut().unwrap().name = Some(name.clone());
        message.text = format!("{}\n.{name}", name.repeat(50));
        assert!(matches!(send(&mailer, &message, LONG).await, Sent::Accepted(_)), "{name}");
        let mail = smtp.accepted().pop().unwrap();
        // An encoded word that was somebody's text is decoded by the reader, as everywhere.
        let expected = if name.starts_with("=?") { "あ" } else { &name };
        let subject = mail.header("subject").unwrap();
        assert!(subject == expected || subject == name, "{subject} {}", String::from_utf8_lossy(&mail.raw));
        let to = mail.header("to").unwrap().replace("\\\"", "\"").replace("\\\\", "\\");
        let own = to.strip_suffix(" <taro@example.jp>").unwrap_or_else(|| panic!("{to}"));
        let own = own.strip_prefix('"').and_then(|own| own.strip_suffix('"')).unwrap_or(own);
        assert!(own == expected || own == name, "{to} {}", String::from_utf8_lossy(&mail.raw));
        assert_eq!(mail.part("text/plain").unwrap().replace("\r\n", "\n").trim_end(), message.text);
        assert!(mail.raw.is_ascii());
    }
}

#[tokio::test]
async fn g2_no_field_can_add_a_header_or_end_the_mail() {
    let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
    let mailer = mailer(&smtp);
    send(&mailer, &message(), LONG).await;
    let names = |mail: &Mail| mail.headers.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let expected = names(&taken(&smtp));
    for evil in [
        "\r\nBcc: eve@example.com",
        "\nBcc: eve@example.com\n\nnew body",
        "\rBcc: eve@example.com",
        "\r\n.\r\nMAIL FROM:<eve@example.com>\r\n",
        "\u{2028}Bcc: x\0\u{85}",
    ] {
        for lead in ["plain", "山田"] {
            let text = format!("{lead}{evil}");
            let mut message = message();
            message.subject.clone_from(&text);
            message.to.as_mut().unwrap().name = Some(text.clone());
            (message.text, message.html) = (text.clone(), Some(text));
            let before = smtp.accepted().len();
            assert!(matches!(send(&mailer, &message, LONG).await, Sent::Accepted(_)), "{evil:?}");
            let accepted = smtp.accepted();
            assert_eq!(accepted.len(), before + 1, "{evil:?}");
            let mail = accepted.last().unwrap();
            assert_eq!(names(mail), expected, "{evil:?}");
            assert_eq!(mail.to, [TO]);
        }
    }
    let heard = smtp.conversations().concat();
    assert!(!heard.iter().any(|line| line.starts_with("C: ") && line.contains("eve@")), "{heard:?}");
}

#[tokio::test]
async fn g2_every_answer_has_its_class() {
    use Point::{Body, Data, End, Greeting, Hello, Recipient, Sender, Taken, Told};
    let say = SmtpBehaviour::say;
    let drop_at = SmtpBehaviour::drop_at;
    let cases = [
        (say(Greeting, "421 4.3.2 closing"), "again", "unavailable", 0),
        (say(Greeting, "554 no"), "closed", "server_refused", 0),
        (say(Greeting, "HTTP/1.1 400 Bad Request"), "again", "broken", 0),
        (drop_at(Greeting), "again", "broken", 0),
        (drop_at(Hello), "again", "broken", 0),
        (say(Sender, "530 Authentication required"), "closed", "bad_credentials", 0),
        (drop_at(Sender), "again", "broken", 0),
        (say(Recipient, "450 4.2.0 busy"), "again", "deferred", 0),
        (say(Recipient, "550 5.1.1 no such user"), "never", "bad_recipient", 0),
        (drop_at(Recipient), "again", "broken", 0),
        (say(Data, "451 4.3.0 disk"), "again", "deferred", 0),
        (say(End, "451 4.3.0 disk"), "again", "deferred", 0),
        (say(End, "554 5.7.1 spam"), "never", "refused", 0),
        (say(End, "554 5.7.1 rejected temporarily"), "again", "deferred", 0),
        (say(End, "454 Throttling failure: Maximum sending rate exceeded."), "again", "throttled", 0),
        (say(End, "454 Throttling failure: Daily message quota exceeded."), "closed", "quota_used_up", 0),
        (say(End, "554 Message rejected: Email address is not verified."), "closed", "sender_refused", 0),
        (say(End, "nonsense"), "uncertain", "reply_lost", 0),
        (drop_at(End), "uncertain", "reply_lost", 0),
        (drop_at(Taken), "uncertain", "reply_lost", 1),
        (drop_at(Told), "accepted", "", 1),
        (say(Taken, "250 Ok 0106018f-000000"), "accepted", "", 1),
        // Said before the mail was whole: whatever it is, it is no yes.
        (say(Data, "354 go on\r\n421 4.3.2 closing"), "again", "unavailable", 0),
        (say(Data, "354 go on\r\n250 2.0.0 Ok: queued as EARLY"), "again", "broken", 0),
        (say(Sender, "250 Ok\r\n250 Ok"), "again", "broken", 0),
        (say(Body, "421 4.3.2 closing"), "again", "unavailable", 0),
    ];
    for (behaviour, kind, reason, stored) in cases {
        // The answer comes while the mail is being written, not at some moment after it.
        let is_body = matches!(behaviour, SmtpBehaviour::At(Body, _));
        let message = if is_body { long_message() } else { message() };
        let smtp = Smtp::start(behaviour.clone()).unwrap();
        let sent = send(&mailer(&smtp), &message, LONG).await;
        assert_eq!(class(&sent), (kind, reason), "{behaviour:?} {sent:?}");
        assert_eq!(smtp.accepted().len(), stored, "{behaviour:?}");
    }
}

#[tokio::test]
async fn g2_a_connection_lost_inside_the_mail_is_certain_and_lost_after_it_is_not() {
    let smtp = Smtp::start(SmtpBehaviour::drop_at(Point::Body)).unwrap();
    let mailer = mailer(&smtp);
    assert_eq!(class(&send(&mailer, &long_message(), LONG).await), ("again", "broken"));
    for (point, stored) in [(Point::End, 0), (Point::Taken, 1)] {
        smtp.set(SmtpBehaviour::drop_at(point));
        let sent = send(&mailer, &long_message(), LONG).await;
        assert_eq!(class(&sent), ("uncertain", "reply_lost"), "{point:?}");
        assert_eq!(smtp.accepted().len(), stored);
    }
    let Sent::Uncertain(failure) = send(&mailer, &message(), LONG).await else { panic!("it was told") };
    assert!(failure.error.contains("the whole mail to t***@example.jp was sent"), "{}", failure.error);
}

#[tokio::test]
async fn g2_a_try_ends_in_time_whatever_the_server_does() {
    let faults = [
        SmtpFault::Silence,
        SmtpFault::Trickle(Duration::from_secs(1)),
        SmtpFault::EndlessLine,
        SmtpFault::EndlessLines,
    ];
    let points = [Point::Greeting, Point::Hello, Point::Sender, Point::Recipient, Point::Data, Point::Taken];
    // All at once: together they take as long as one.
    let cases = points.iter().flat_map(|point| faults.iter().map(move |fault| (*point, fault.clone())));
    let tried = futures_util::future::join_all(cases.map(|(point, fault)| async move {
        let (sent, smtp) = sent_by(SmtpBehaviour::At(point, fault.clone()), SHORT).await;
        (point, fault, sent, smtp)
    }));
    for (point, fault, sent, smtp) in tried.await {
        let expected = match (point, &fault) {
            // The code was said, and it is a yes.
            (Point::Taken, SmtpFault::EndlessLines) => ("accepted", ""),
            (Point::Taken, _) => ("uncertain", "reply_lost"),
            (_, SmtpFault::EndlessLine | SmtpFault::EndlessLines) => ("again", "broken"),
            (_, _) => ("again", "timeout"),
        };
        assert_eq!(class(&sent), expected, "{point:?} {fault:?}");
        assert_eq!(smtp.accepted().len(), usize::from(point == Point::Taken));
    }
    let smtp = Smtp::start(SmtpBehaviour::At(Point::End, SmtpFault::Silence)).unwrap();
    assert_eq!(class(&send(&mailer(&smtp), &message(), SHORT).await), ("uncertain", "reply_lost"));
}

#[tokio::test]
async fn g2_a_server_that_stops_listening_inside_the_mail_does_not_have_it() {
    let smtp = Smtp::start(SmtpBehaviour::At(Point::Body, SmtpFault::Deafness)).unwrap();
    assert_eq!(class(&send(&mailer(&smtp), &long_message(), SHORT).await), ("again", "timeout"));
    assert_eq!(class(&send(&mailer(&smtp), &message(), Duration::ZERO).await), ("again", "timeout"));
}

#[tokio::test]
async fn g2_a_half_open_server_is_a_time_out() {
    // Its backlog takes connections; nobody ever takes them from there.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
    for tls in [Tls::None, Tls::Starttls, Tls::Implicit] {
        let port = listener.local_addr().unwrap().port();
        let mailer = Mailer::new(Settings { port, tls, ..settings(&smtp) }, &Env::system()).unwrap();
        assert_eq!(class(&send(&mailer, &message(), SHORT).await), ("again", "timeout"));
    }
}

#[tokio::test]
async fn g2_a_server_that_can_not_be_reached_is_tried_again() {
    let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
    let free = sekisho_lab::free_address().unwrap();
    // A label this long fails in the resolver itself: no test asks a name server.
    let unknown = format!("{}.invalid", "x".repeat(64));
    let cases = [
        (Settings { port: free.port(), ..settings(&smtp) }, "connect"),
        (Settings { host: unknown, ..settings(&smtp) }, "dns"),
        (Settings { tls: Tls::Implicit, ..settings(&smtp) }, "tls"),
    ];
    for (settings, reason) in cases {
        let sent = send(&Mailer::new(settings, &Env::system()).unwrap(), &message(), LONG).await;
        assert_eq!(class(&sent), ("again", reason), "{sent:?}");
        let Sent::Failed(failure) = sent else { unreachable!() };
        assert!(failure.blames_destination);
    }
    assert!(smtp.accepted().is_empty());
}

#[tokio::test]
async fn g2_one_refused_mail_never_stops_the_rest() {
    let refused = SmtpBehaviour::say(Point::Recipient, "550 5.1.1 <nobody@example.jp>: no such user");
    let flaky =
        SmtpBehaviour::First(2, Box::new(SmtpBehaviour::say(Point::End, "451 4.3.0 try again later")));
    let smtp = Smtp::start(SmtpBehaviour::To(
        vec![("nobody@".into(), refused), ("flaky@".into(), flaky)],
        Box::new(SmtpBehaviour::Accept),
    ));
    let smtp = smtp.unwrap();
    let mailer = mailer(&smtp);
    let to = |address: &str| {
        let recipient = Recipient { address: address.parse().unwrap(), name: None };
        Message { to: Some(recipient), ..message() }
    };
    let mut seen = Vec::new();
    for address in ["nobody@example.jp", TO, "flaky@example.jp", "flaky@example.jp", TO, "flaky@example.jp"] {
        let sent = send(&mailer, &to(address), LONG).await;
        assert!(!format!("{sent:?}").contains("nobody@"), "{sent:?}");
        seen.push(class(&sent).0);
    }
    assert_eq!(seen, ["never", "accepted", "again", "again", "accepted", "accepted"]);
    assert_eq!((smtp.tries("flaky@example.jp"), smtp.connections()), (3, 1));
}

#[tokio::test]
async fn g2_connections_are_used_again_only_while_they_live() {
    let smtp = Smtp::start(SmtpBehaviour::drop_at(Point::Told)).unwrap();
    let mailer = mailer(&smtp);
    for n in 1..=3 {
        assert_eq!(class(&send(&mailer, &message(), LONG).await), ("accepted", ""));
        assert_eq!((smtp.connections(), smtp.accepted().len()), (n, n));
    }
    smtp.set(SmtpBehaviour::Accept);
    for _ in 0..101 {
        assert_eq!(class(&send(&mailer, &message(), LONG).await), ("accepted", ""));
    }
    assert_eq!(smtp.connections(), 5, "a hundred by one connection, and the next by another");
    let many = futures_util::future::join_all((0..8).map(|_| {
        let mailer = &mailer;
        async move { class(&send(mailer, &message(), LONG).await) }
    }));
    assert!(many.await.iter().all(|class| *class == ("accepted", "")));
    assert!(smtp.most_at_once() <= 8);
    assert_eq!(smtp.accepted().len(), 3 + 101 + 8);
}

#[tokio::test]
async fn g2_what_is_too_big_or_no_mail_is_not_sent() {
    let smtp = Smtp::start_with(smtp::Settings { size_max: 2_000, ..smtp::Settings::default() }).unwrap();
    let mailer = mailer(&smtp);
    let longer = |letters: usize| Message { text: "x ".repeat(letters / 2), ..message() };
    let cases = [
        (longer(3_000), "too_big"),
        (longer(message::LETTER_MAX_BYTES + 2), "too_big"),
        (longer(message::LETTER_MAX_BYTES - 2), "too_big"),
        (Message { to: None, ..message() }, "unsendable"),
        (Message { id: "a b".into(), ..message() }, "unsendable"),
        (Message { id: "a>\r\nBcc: b".into(), ..message() }, "unsendable"),
        (Message { id: String::new(), ..message() }, "unsendable"),
    ];
    for (message, reason) in cases {
        let sent = send(&mailer, &message, LONG).await;
        assert_eq!(class(&sent), ("never", reason), "{:.300}", format!("{sent:?}"));
        let Sent::Failed(failure) = sent else { unreachable!() };
        assert!(failure.error.contains("then resend it"), "{}", failure.error);
    }
    assert!(!smtp.conversations().concat().iter().any(|line| line.starts_with("C: MAIL")));
}

#[tokio::test]
async fn g2_addresses_that_need_quotes_or_letters_of_another_script_are_reached() {
    let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
    let mailer = mailer(&smtp);
    for (address, written) in
        [("a..b.@docomo.ne.jp", "\"a..b.\"@docomo.ne.jp"), ("a@日本.jp", "a@xn--wgv71a.jp")]
    {
        let recipient = Recipient { address: address.parse().unwrap(), name: Some("太郎".into()) };
        let sent = send(&mailer, &Message { to: Some(recipient), ..message() }, LONG).await;
        assert_eq!(class(&sent), ("accepted", ""), "{sent:?}");
        let mail = smtp.accepted().pop().unwrap();
        assert_eq!((mail.to[0].as_str(), mail.header("to")), (written, Some(&*format!("太郎 <{written}>"))));
    }
}
