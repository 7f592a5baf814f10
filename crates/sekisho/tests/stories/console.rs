//! H1, B4, G5, A3: what operators do at the console, in a real browser, in both languages, on a phone and at a desk.

mod orders;
mod pages;
mod work;

use sekisho_lab::app::{Behaviour, DemoApp};
use sekisho_lab::smtp::{self, Point, Smtp};

use super::delivery::event;
use super::notices::mail;
use crate::support::{Gateway, Letter, Place, route_to, stripe_source, wait_until};

/// A shop in the middle of its day: somebody paid and got a receipt, somebody's receipt bounced off, somebody has not
/// paid, and the application refuses to hear of a fourth.
struct Shop {
    gateway: Gateway,
    app: DemoApp,
    _smtp: Smtp,
}

impl Shop {
    fn open(place: &Place) -> Self {
        let refuses = smtp::SmtpBehaviour::say(Point::Recipient, "550 5.1.1 no such user");
        let smtp = Smtp::start(smtp::SmtpBehaviour::To(
            vec![("nobody@".into(), refuses)],
            Box::new(smtp::SmtpBehaviour::Accept),
        ))
        .unwrap();
        let app = DemoApp::start(Behaviour::status(500)).unwrap();
        let route = route_to(
            "shop",
            &format!("{}/hook", app.url()),
            "retries = 0\nbreaker_failures = 0\nevents = [\"charge.*\"]",
        );
        let receipt = "[[notify]]\nname = \"receipt\"\nevents = [\"payment.paid\"]\nto = \"customer\"\nchannel = \"mail\"\n\
                       template = \"payment-received\"\n";
        let schedule =
            "[[schedule]]\nname = \"close-day\"\ntype = \"shop.day_closed\"\ncron = \"0 18 * * *\"\n";
        let config =
            stripe_source("") + &route + &mail(&smtp, "spacing = \"1ms\"\nrate = 1000") + receipt + schedule;
        let gateway = Gateway::with(place, &config);
        for letter in [
            charge("paid", "order-1001", "taro@example.jp"),
            charge("lost", "order-1002", "nobody@example.jp"),
            processing("slow", "order-1003"),
        ] {
            assert_eq!(gateway.send(&letter).status, 204);
        }
        assert_eq!(gateway.send(&charge("forged", "order-9", "eve@example.com").forged()).status, 400);
        let shop = Self { gateway, app, _smtp: smtp };
        wait_until("two deliveries are dead", || count("SELECT count(*) FROM dead", place) >= 2);
        wait_until("one receipt is sent and one has failed", || {
            let of = |status: &str| {
                count(
                    &format!("SELECT count(*) FROM state WHERE kind = 'notice' AND status = '{status}'"),
                    place,
                )
            };
            of("sent") == 1 && of("failed") == 1
        });
        shop
    }
}

fn count(sql: &str, place: &Place) -> usize {
    place.sql(sql).trim().parse().unwrap()
}

fn charge(n: &str, order: &str, email: &str) -> Letter {
    event(
        &format!("evt_{n}"),
        "charge.succeeded",
        &format!(
            ",\"livemode\":true,\"data\":{{\"object\":{{\"object\":\"charge\",\"id\":\"ch_{n}\",\"payment_intent\":\"pi_{n}\",\
             \"amount\":5000,\"amount_captured\":5000,\"captured\":true,\"paid\":true,\"status\":\"succeeded\",\
             \"currency\":\"jpy\",\"billing_details\":{{\"email\":\"{email}\"}},\
             \"metadata\":{{\"order_id\":\"{order}\",\"tenant_id\":\"tokyo\",\"client_secret\":\"hide-me\"}}}}}}"
        ),
    )
}

fn processing(n: &str, order: &str) -> Letter {
    event(
        &format!("evt_{n}"),
        "payment_intent.processing",
        &format!(
            ",\"livemode\":true,\"data\":{{\"object\":{{\"object\":\"payment_intent\",\"id\":\"pi_{n}\",\"status\":\"processing\",\
             \"amount\":1200,\"amount_received\":0,\"currency\":\"jpy\",\"metadata\":{{\"order_id\":\"{order}\",\"tenant_id\":\"tokyo\"}}}}}}"
        ),
    )
}
