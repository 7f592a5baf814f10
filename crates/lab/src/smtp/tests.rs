use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::*;

const HELLO: &str = "EHLO me\r\nMAIL FROM:<a@b.jp>\r\n";

/// Says all of this and returns what came until the server left or said goodbye.
fn talk(smtp: &Smtp, text: &str) -> String {
    let mut stream = TcpStream::connect(smtp.address()).unwrap();
    stream.set_read_timeout(Some(crate::http::TIMEOUT)).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut said = Vec::new();
    // A server that drops a connection with unread lines resets it.
    let _ = stream.read_to_end(&mut said);
    String::from_utf8(said).unwrap()
}

fn mail_to(to: &str) -> String {
    format!("{HELLO}RCPT TO:<{to}>\r\nDATA\r\nSubject: x\r\n\r\n..one\r\ntwo\r\n.\r\nQUIT\r\n")
}

#[test]
fn a_mail_is_kept_as_it_came_and_as_it_reads() {
    let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
    let body = "From: =?utf-8?b?5bGx55Sw?= <a@b.jp>\r\nSubject: =?utf-8?q?caf=C3=A9?=\r\n =?utf-8?B?44GC?= and\r\n more\r\n\
        Content-Type: multipart/alternative;\r\n boundary=\"xx\"\r\n\r\n--xx\r\n\
        Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
        =E3=81=82=\r\n!\r\n--xx\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\n\
        44GC\r\n44GE\r\n--xx--\r\n";
    talk(&smtp, &format!("{HELLO}RCPT TO:<C@d.jp>\r\nDATA\r\n{body}.\r\nQUIT\r\n"));
    let mail = &smtp.accepted()[0];
    assert_eq!((mail.from.as_str(), mail.to[0].as_str(), mail.connection), ("a@b.jp", "c@d.jp", 0));
    assert_eq!(mail.header("subject"), Some("caféあ and more"));
    assert_eq!(mail.header("from"), Some("山田 <a@b.jp>"));
    assert_eq!((mail.part("text/plain"), mail.part("text/html")), (Some("あ!"), Some("あい")));
    assert_eq!(mail.raw, body.as_bytes());
    assert_eq!((smtp.connections(), smtp.most_at_once(), smtp.tries("c@d.jp")), (1, 1, 1));
    assert!(smtp.conversations()[0].contains(&"C: DATA".to_owned()));
    assert!(mail.at_ms > 0 && !mail.encrypted);
}

#[test]
fn recipients_have_their_own_ways_and_first_tries() {
    let busy = SmtpBehaviour::First(1, Box::new(SmtpBehaviour::say(Point::Recipient, "450 busy")));
    let smtp = Smtp::start(SmtpBehaviour::To(vec![("busy".into(), busy)], Box::new(SmtpBehaviour::Accept)));
    let smtp = smtp.unwrap();
    for (to, taken) in [("busy1@b.jp", 0), ("c@d.jp", 1), ("busy1@b.jp", 2), ("busy2@b.jp", 2)] {
        talk(&smtp, &mail_to(to));
        assert_eq!(smtp.accepted().len(), taken, "{to}");
    }
    assert_eq!(smtp.accepted()[0].raw, b"Subject: x\r\n\r\n.one\r\ntwo\r\n");
}

#[test]
fn what_is_taken_and_not_told_is_kept_and_what_is_lost_before_is_not() {
    let smtp = Smtp::start(SmtpBehaviour::Accept).unwrap();
    for (point, taken, told) in [
        (Point::Greeting, 0, false),
        (Point::Sender, 0, false),
        (Point::Body, 0, false),
        (Point::End, 0, false),
        (Point::Taken, 1, false),
        (Point::Told, 2, true),
    ] {
        smtp.set(SmtpBehaviour::drop_at(point));
        let said = talk(&smtp, &mail_to("c@d.jp"));
        assert_eq!((smtp.accepted().len(), said.contains("queued as")), (taken, told), "{point:?} {said}");
    }
}

#[test]
fn slow_and_endless_answers_are_what_they_say() {
    let smtp =
        Smtp::start(SmtpBehaviour::At(Point::Taken, SmtpFault::Trickle(Duration::from_millis(1)))).unwrap();
    assert!(talk(&smtp, &mail_to("c@d.jp")).contains("250 2.0.0 Ok: queued as LAB1\r\n221"));
    for (fault, expected) in
        [(SmtpFault::EndlessLines, "250-and more\r\n250-"), (SmtpFault::EndlessLine, "250 xxxx")]
    {
        smtp.set(SmtpBehaviour::At(Point::Greeting, fault));
        let mut stream = TcpStream::connect(smtp.address()).unwrap();
        let mut said = vec![0; 100_000];
        stream.read_exact(&mut said).unwrap();
        assert!(said.starts_with(expected.as_bytes()));
    }
}

#[test]
fn a_mix_follows_its_seed() {
    let mix = SmtpBehaviour::Mix { seed: 7, parts: vec![(30, SmtpBehaviour::drop_at(Point::Taken))] };
    let dropped = (0..1_000).filter(|n| mix.fault(Point::Taken, Some(&format!("{n}@b.jp")), 0).is_some());
    let dropped = dropped.count();
    assert!((250..350).contains(&dropped), "{dropped}");
}

#[test]
fn without_its_login_no_mail_is_taken() {
    let settings = Settings { login: Some(Login::new("u", "p")), ..Settings::default() };
    let smtp = Smtp::start_with(settings).unwrap();
    assert!(talk(&smtp, &mail_to("c@d.jp")).contains("530 "));
    assert!(talk(&smtp, &format!("AUTH PLAIN AHUAeA==\r\n{}", mail_to("c@d.jp"))).contains("535 "));
    assert!(smtp.accepted().is_empty());
    assert!(talk(&smtp, &format!("AUTH PLAIN AHUAcA==\r\n{}", mail_to("c@d.jp"))).contains("235 "));
    assert!(talk(&smtp, &format!("AUTH LOGIN\r\ndQ==\r\ncA==\r\n{}", mail_to("c@d.jp"))).contains("235 "));
    assert_eq!(smtp.accepted().len(), 2);
}
