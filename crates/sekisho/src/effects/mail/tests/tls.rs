use sekisho_lab::smtp::Login;

use super::*;

const PASSWORD: &str = "canary-password-7c2e";

fn encrypting(tls: smtp::SmtpTls, mechanisms: &str) -> Smtp {
    let login = Login { mechanisms: mechanisms.into(), ..Login::new("AKIA1", PASSWORD) };
    Smtp::start_with(smtp::Settings { tls, login: Some(login), ..smtp::Settings::default() }).unwrap()
}

fn login(password: &str) -> Option<(String, Secret)> {
    Some(("AKIA1".into(), Secret::new(password)))
}

#[tokio::test]
async fn g1_mail_goes_encrypted_and_with_a_login() {
    for (theirs, ours) in [(smtp::SmtpTls::Starttls, Tls::Starttls), (smtp::SmtpTls::Implicit, Tls::Implicit)]
    {
        for mechanisms in ["PLAIN LOGIN", "LOGIN", "CRAM-MD5 PLAIN"] {
            let smtp = encrypting(theirs, mechanisms);
            let mailer = Mailer::new(
                Settings { tls: ours, login: login(PASSWORD), ..settings(&smtp) },
                &Env::system(),
            );
            let mailer = mailer.unwrap();
            for _ in 0..2 {
                let sent = send(&mailer, &message(), LONG).await;
                assert_eq!(class(&sent), ("accepted", ""), "{ours:?} {mechanisms} {sent:?}");
            }
            assert!(smtp.accepted().iter().all(|mail| mail.encrypted));
            assert_eq!(smtp.connections(), 1);
        }
        // The middle of a mail and its end are told apart under TLS, too.
        let smtp = encrypting(theirs, "PLAIN");
        let mailer =
            Mailer::new(Settings { tls: ours, login: login(PASSWORD), ..settings(&smtp) }, &Env::system())
                .unwrap();
        for (point, expected) in
            [(Point::Body, ("again", "broken")), (Point::Taken, ("uncertain", "reply_lost"))]
        {
            smtp.set(SmtpBehaviour::drop_at(point));
            assert_eq!(class(&send(&mailer, &long_message(), LONG).await), expected, "{point:?}");
        }
    }
}

#[tokio::test]
async fn g2_refused_credentials_close_the_channel_and_are_never_told() {
    let cases = [("PLAIN LOGIN", "canary-wrong-1"), ("LOGIN", "canary-wrong-2"), ("CRAM-MD5", PASSWORD)];
    for (mechanisms, password) in cases {
        let smtp = encrypting(smtp::SmtpTls::Starttls, mechanisms);
        let mailer = Mailer::new(
            Settings { tls: Tls::Starttls, login: login(password), ..settings(&smtp) },
            &Env::system(),
        )
        .unwrap();
        let sent = send(&mailer, &message(), LONG).await;
        let Sent::Closed { failure, for_ms } = &sent else { panic!("{sent:?}") };
        assert_eq!((failure.reason, *for_ms), ("bad_credentials", None));
        assert!(!format!("{sent:?} {mailer:?}").contains("canary"), "{sent:?} {mailer:?}");
    }
    let smtp = encrypting(smtp::SmtpTls::Starttls, "PLAIN");
    let mailer = Mailer::new(Settings { tls: Tls::Starttls, ..settings(&smtp) }, &Env::system()).unwrap();
    assert_eq!(class(&send(&mailer, &message(), LONG).await), ("closed", "bad_credentials"));
}

#[tokio::test]
async fn g2_nothing_goes_out_in_clear_unless_told() {
    let smtp = Smtp::start_with(smtp::Settings {
        login: Some(Login::new("AKIA1", PASSWORD)),
        ..smtp::Settings::default()
    });
    let smtp = smtp.unwrap();
    let encrypted = Settings { tls: Tls::Starttls, login: login(PASSWORD), ..settings(&smtp) };
    let sent = send(&Mailer::new(encrypted.clone(), &Env::system()).unwrap(), &message(), LONG).await;
    let Sent::Closed { failure, for_ms } = sent else { panic!("{sent:?}") };
    assert_eq!((failure.reason, for_ms), ("no_tls", None));
    let said: Vec<_> =
        smtp.conversations().concat().into_iter().filter(|line| line.starts_with("C: ")).collect();
    assert_eq!(said, ["C: EHLO example.com"]);

    let clear = Mailer::new(Settings { tls: Tls::None, ..encrypted }, &Env::system()).unwrap();
    assert_eq!(class(&send(&clear, &message(), LONG).await), ("accepted", ""));
}

#[tokio::test]
async fn g2_a_certificate_nobody_vouches_for_is_not_trusted() {
    for (theirs, ours) in [(smtp::SmtpTls::Starttls, Tls::Starttls), (smtp::SmtpTls::Implicit, Tls::Implicit)]
    {
        let (smtp, stranger) = (encrypting(theirs, "PLAIN"), encrypting(theirs, "PLAIN"));
        for ca in [None, stranger.certificate().map(str::to_owned)] {
            let mailer = Mailer::new(
                Settings { tls: ours, ca, login: login(PASSWORD), ..settings(&smtp) },
                &Env::system(),
            )
            .unwrap();
            assert_eq!(class(&send(&mailer, &message(), LONG).await), ("again", "tls"));
        }
        assert!(
            !smtp.conversations().concat().iter().any(|line| line.contains("AUTH ") && line.starts_with('C'))
        );
    }
    // What whoever stands between says after STARTTLS, and before it is encrypted, is not taken for the server's.
    let smtp = encrypting(smtp::SmtpTls::Starttls, "PLAIN");
    smtp.set(SmtpBehaviour::say(Point::Starttls, "220 go on\r\n250 AUTH PLAIN"));
    let mailer = Mailer::new(Settings { tls: Tls::Starttls, ..settings(&smtp) }, &Env::system()).unwrap();
    assert_eq!(class(&send(&mailer, &message(), LONG).await), ("again", "tls"));
    for ca in ["", "-----BEGIN CERTIFICATE-----\nnonsense"] {
        let bad = Settings { tls: Tls::Starttls, ca: Some(ca.into()), ..settings(&smtp) };
        assert!(Mailer::new(bad, &Env::system()).is_err());
    }
}
