//! What providers send, made cheaply: the driver shares the machine with the server it measures.
//!
//! A request is a template in which ids, times and signature have fixed places; making one is a copy, a few
//! patches and one HMAC. Every `n` makes its own event, so that an answer can be traced back to it.

use std::ops::Range;
use std::time::SystemTime;

use ring::hmac;

use crate::rng::Rng;

/// Makes the `n`-th request.
pub trait Traffic: Send + Sync {
    /// Appends the whole request to `request`.
    fn write(&self, n: u64, request: &mut Vec<u8>);

    /// The provider's id of the event in the `n`-th request.
    fn event_id(&self, n: u64) -> String {
        n.to_string()
    }
}

impl<F: Fn(u64, &mut Vec<u8>) + Send + Sync> Traffic for F {
    fn write(&self, n: u64, request: &mut Vec<u8>) {
        self(n, request);
    }
}

/// Signed Stripe events, `payment_intent.succeeded`.
#[derive(Debug)]
pub struct StripeTraffic {
    key: hmac::Key,
    run: String,
    repeats: u64,
    template: Vec<u8>,
    body_at: usize,
    signed_at: usize,
    signature_at: usize,
    /// When the traffic was made: the creation time of repeated events, the same in every copy.
    created: [u8; SECONDS_DIGITS],
    /// Where ids and times stand.
    numbers_at: Vec<usize>,
    created_at: Vec<usize>,
}

/// Stripe's own events have about this size.
pub const BODY_BYTES: usize = 3_000;

const RUN_LETTERS: usize = 8;
const NUMBER_DIGITS: usize = 12;
const SECONDS_DIGITS: usize = 10;
const SIGNATURE_DIGITS: usize = 64;

/// Stand-ins of the right length, each unlike anything else in the template.
const NUMBER: &str = "############";
const SECONDS: &str = "@@@@@@@@@@";
const SIGNATURE: &str = "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~";

impl StripeTraffic {
    /// Events for `POST path`, signed with `secret` (`whsec_…`), each with a body of about `body_bytes`. Ids are
    /// unlike those of any other run.
    pub fn new(path: &str, secret: &str, body_bytes: usize) -> Self {
        let nanos = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |age| age.as_nanos() as u64);
        Self::with_seed(path, secret, body_bytes, nanos ^ u64::from(std::process::id()).rotate_left(48))
    }

    /// As [`StripeTraffic::new`], with the same ids for the same seed.
    pub fn with_seed(path: &str, secret: &str, body_bytes: usize, seed: u64) -> Self {
        let run = run_of(seed);
        Self::of_body(path, secret, run.clone(), body(&run, body_bytes))
    }

    /// The same about products, which no rule settles: what they cost is the queue alone.
    pub fn of_products(path: &str, secret: &str, body_bytes: usize, seed: u64) -> Self {
        let run = run_of(seed);
        let body = body(&run, body_bytes)
            .replace("\"object\": \"payment_intent\"", "\"object\": \"product\"")
            .replace("payment_intent.succeeded", "product.updated");
        Self::of_body(path, secret, run, body)
    }

    fn of_body(path: &str, secret: &str, run: String, body: String) -> Self {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: Stripe/1.0 (+https://stripe.com/docs/webhooks)\r\n\
             accept: */*\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: {}\r\n\
             stripe-signature: t={SECONDS},v1={SIGNATURE}\r\n\r\n",
            body.len()
        );
        let place = |mark: &str| head.find(mark).expect("the head holds every mark");
        let text = format!("{head}{body}");
        let all =
            |mark: &str| text.match_indices(mark).map(|(at, _)| at).filter(|at| *at >= head.len()).collect();
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()),
            repeats: 1,
            created: digits(now_seconds()),
            body_at: head.len(),
            signed_at: place(SECONDS),
            signature_at: place(SIGNATURE),
            numbers_at: all(NUMBER),
            created_at: all(SECONDS),
            run,
            template: text.into_bytes(),
        }
    }

    /// Sends each event this many times in a row: traffic of which all but one in `times` are duplicates.
    #[must_use]
    pub fn repeated(mut self, times: u64) -> Self {
        self.repeats = times.max(1);
        self
    }
}

/// A word that keeps the ids of one seed apart from those of another.
pub fn run_of(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    (0..RUN_LETTERS).filter_map(|_| rng.pick(ID_LETTERS)).map(|&letter| char::from(letter)).collect()
}

/// Signed Stripe events as a shop has them: [`CheckoutTraffic::EVENTS`] for each payment, one after the other.
#[derive(Debug)]
pub struct CheckoutTraffic {
    each: Vec<StripeTraffic>,
}

impl CheckoutTraffic {
    /// Events that speak of one payment.
    pub const EVENTS: u64 = 4;

    pub fn with_seed(path: &str, secret: &str, body_bytes: usize, seed: u64) -> Self {
        let run = run_of(seed);
        let succeeded = body(&run, body_bytes);
        let created = succeeded
            .replace("\"amount_received\": 4980", "\"amount_received\": 0")
            .replace("\"latest_charge\": \"ch_", "\"latest_charge\": null, \"unused\": \"ch_")
            .replace("\"status\": \"succeeded\"", "\"status\": \"requires_confirmation\"")
            .replace("payment_intent.succeeded", "payment_intent.created");
        let charge = |kind: &str| {
            succeeded
                .replace(&format!("\"id\": \"pi_{run}{NUMBER}\""), &format!("\"id\": \"ch_{run}{NUMBER}\", \"payment_intent\": \"pi_{run}{NUMBER}\", \"amount_captured\": 4980, \"captured\": true, \"paid\": true"))
                .replace("\"object\": \"payment_intent\"", "\"object\": \"charge\"")
                .replace("payment_intent.succeeded", kind)
        };
        let (taken, updated) = (charge("charge.succeeded"), charge("charge.updated"));
        let bodies = [created, taken, succeeded, updated].into_iter().enumerate();
        let each = bodies.map(|(n, body)| {
            // Each kind of event counts for itself.
            let own = format!("{}{n}", &run[..RUN_LETTERS - 1]);
            let body = body.replace(&format!("\"id\": \"evt_{run}"), &format!("\"id\": \"evt_{own}"));
            StripeTraffic::of_body(path, secret, own, body)
        });
        Self { each: each.collect() }
    }

    fn part(&self, n: u64) -> (&StripeTraffic, u64) {
        (&self.each[(n % Self::EVENTS) as usize], n / Self::EVENTS)
    }
}

impl Traffic for CheckoutTraffic {
    fn write(&self, n: u64, request: &mut Vec<u8>) {
        let (traffic, payment) = self.part(n);
        traffic.write(payment, request);
    }

    fn event_id(&self, n: u64) -> String {
        let (traffic, payment) = self.part(n);
        traffic.event_id(payment)
    }
}

impl Traffic for StripeTraffic {
    fn write(&self, n: u64, request: &mut Vec<u8>) {
        let start = request.len();
        request.extend_from_slice(&self.template);
        let request = &mut request[start..];

        let number: [u8; NUMBER_DIGITS] = digits(n / self.repeats);
        let seconds: [u8; SECONDS_DIGITS] = digits(now_seconds());
        for &at in &self.numbers_at {
            request[at..at + NUMBER_DIGITS].copy_from_slice(&number);
        }
        let created = if self.repeats == 1 { &seconds } else { &self.created };
        for &at in &self.created_at {
            request[at..at + SECONDS_DIGITS].copy_from_slice(created);
        }
        request[self.signed_at..self.signed_at + SECONDS_DIGITS].copy_from_slice(&seconds);

        let mut context = hmac::Context::with_key(&self.key);
        context.update(&seconds);
        context.update(b".");
        context.update(&request[self.body_at..]);
        write_hex(context.sign().as_ref(), request, self.signature_at..self.signature_at + SIGNATURE_DIGITS);
    }

    fn event_id(&self, n: u64) -> String {
        format!("evt_{}{:0NUMBER_DIGITS$}", self.run, n / self.repeats)
    }
}

/// Appends `POST path` with this body as Stripe would send it: signed at this second. `says` is what its signature is
/// over; anything but the body is a forgery.
pub fn post_signed(path: &str, key: &hmac::Key, at: u64, says: &[u8], body: &[u8], request: &mut Vec<u8>) {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: Stripe/1.0 (+https://stripe.com/docs/webhooks)\r\n\
         content-type: application/json; charset=utf-8\r\ncontent-length: {}\r\nstripe-signature: t={at},v1={}\r\n\r\n",
        body.len(),
        signature(key, at, says)
    );
    request.extend_from_slice(head.as_bytes());
    request.extend_from_slice(body);
}

/// Stripe's signature of a body at this second, in hexadecimal digits.
pub fn signature(key: &hmac::Key, at: u64, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(key);
    context.update(at.to_string().as_bytes());
    context.update(b".");
    context.update(body);
    let mut signature = [0; SIGNATURE_DIGITS];
    write_hex(context.sign().as_ref(), &mut signature, 0..SIGNATURE_DIGITS);
    String::from_utf8_lossy(&signature).into_owned()
}

pub fn now_seconds() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |age| age.as_secs())
}

/// What an order's lines are made of. With them a body of [`BODY_BYTES`] shrinks under lz4 to 0.51 of its size, as
/// recorded events of that size do (0.50 to 0.54): what the database writes is what it would write of real ones.
const WARES: &[&str] = &[
    "cotton shirt",
    "linen apron",
    "tea bowl",
    "hand towel",
    "notebook",
    "wool scarf",
    "rice cooker lid",
    "incense",
    "fountain pen",
    "paper lantern",
];

const ID_LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz123456789";

/// A `payment_intent.succeeded` event as Stripe writes it, filled up with the lines of an order to `bytes`.
fn body(run: &str, bytes: usize) -> String {
    let with = |padding: &str| {
        format!(
            r#"{{
  "id": "evt_{run}{NUMBER}",
  "object": "event",
  "api_version": "2025-09-30.clover",
  "created": {SECONDS},
  "data": {{
    "object": {{
      "id": "pi_{run}{NUMBER}",
      "object": "payment_intent",
      "amount": 4980,
      "amount_capturable": 0,
      "amount_details": {{ "tip": {{}} }},
      "amount_received": 4980,
      "application": null,
      "application_fee_amount": null,
      "automatic_payment_methods": {{ "allow_redirects": "always", "enabled": true }},
      "canceled_at": null,
      "cancellation_reason": null,
      "capture_method": "automatic_async",
      "client_secret": "pi_{run}{NUMBER}_secret_lab",
      "confirmation_method": "automatic",
      "created": {SECONDS},
      "currency": "jpy",
      "customer": "cus_{run}{NUMBER}",
      "description": "Order {NUMBER}",
      "last_payment_error": null,
      "latest_charge": "ch_{run}{NUMBER}",
      "livemode": false,
      "metadata": {{ "order_id": "ord_{run}{NUMBER}", "note": "{padding}" }},
      "next_action": null,
      "payment_method": "pm_{run}{NUMBER}",
      "payment_method_options": {{ "card": {{ "installments": null, "mandate_options": null, "network": null, "request_three_d_secure": "automatic" }} }},
      "payment_method_types": ["card"],
      "processing": null,
      "receipt_email": null,
      "setup_future_usage": null,
      "shipping": null,
      "source": null,
      "statement_descriptor": null,
      "status": "succeeded",
      "transfer_data": null,
      "transfer_group": null
    }}
  }},
  "livemode": false,
  "pending_webhooks": 1,
  "request": {{ "id": "req_{run}{NUMBER}", "idempotency_key": "order-{NUMBER}" }},
  "type": "payment_intent.succeeded"
}}"#
        )
    };
    let missing = bytes.saturating_sub(with("").len());
    let mut rng = Rng::new(bytes as u64);
    let mut padding = String::with_capacity(missing + 40);
    while padding.len() < missing {
        let (count, price) = (rng.between(1, 9), rng.between(100, 9_999));
        padding += &format!("{count} x {}, {price} yen; ", rng.pick(WARES).unwrap_or(&""));
    }
    padding.truncate(missing);
    with(&padding)
}

fn digits<const N: usize>(mut number: u64) -> [u8; N] {
    let mut text = [b'0'; N];
    for digit in text.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    text
}

fn write_hex(bytes: &[u8], text: &mut [u8], place: Range<usize>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in text[place].chunks_exact_mut(2).zip(bytes) {
        pair[0] = HEX[usize::from(byte >> 4)];
        pair[1] = HEX[usize::from(byte & 15)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(traffic: &StripeTraffic, n: u64) -> String {
        let mut bytes = Vec::new();
        traffic.write(n, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn every_event_has_its_own_id_and_the_wanted_size() {
        let traffic = StripeTraffic::with_seed("/in/stripe", "whsec_lab", BODY_BYTES, 7);
        let text = request(&traffic, 41);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with("POST /in/stripe HTTP/1.1\r\n") && head.contains("content-length: 3000"),
            "{head}"
        );
        assert_eq!(body.len(), BODY_BYTES);
        assert!(body.contains(&format!("\"id\": \"{}\"", traffic.event_id(41))), "{body}");
        assert!(!text.contains([NUMBER, SECONDS, SIGNATURE].map(|mark| mark.as_bytes()[0].into())), "{text}");
        assert_ne!(traffic.event_id(41), traffic.event_id(42));
        let (one, two) = (StripeTraffic::new("/", "s", 0), StripeTraffic::new("/", "s", 0));
        assert_ne!(one.event_id(0), two.event_id(0), "two runs never share an id");
    }

    #[test]
    fn a_checkout_is_four_events_about_one_payment() {
        let traffic = CheckoutTraffic::with_seed("/", "s", BODY_BYTES, 7);
        let texts: Vec<_> = (8..12)
            .map(|n| {
                let mut bytes = Vec::new();
                traffic.write(n, &mut bytes);
                let text = String::from_utf8(bytes).unwrap();
                assert!(text.contains(&traffic.event_id(n)), "{text}");
                text
            })
            .collect();
        let intent = format!("pi_{}{:012}", run_of(7), 2);
        assert!(texts.iter().all(|text| text.contains(&intent)), "{texts:?}");
        for (text, kind) in
            texts.iter().zip(["intent.created", "charge.succeeded", "intent.succeeded", "charge.updated"])
        {
            assert!(text.contains(kind));
        }
    }

    #[test]
    fn repeated_traffic_sends_the_same_event_again() {
        let traffic = StripeTraffic::with_seed("/", "s", 0, 7).repeated(3);
        assert_eq!(traffic.event_id(3), traffic.event_id(5));
        assert_ne!(traffic.event_id(2), traffic.event_id(3));
        assert!(request(&traffic, 5).contains(&traffic.event_id(3)));
    }

    #[test]
    fn a2_the_product_takes_it_for_stripes() {
        use sekisho_core::provider::{self, Request, RequestReading, Setup};
        use sekisho_core::{Secret, Time};

        let setup = Setup { secrets: vec![Secret::new("whsec_lab")], ..Setup::default() };
        let scheme = provider::find("stripe").unwrap().open(&setup).unwrap();
        let traffic = StripeTraffic::new("/in", "whsec_lab", BODY_BYTES);
        let text = request(&traffic, 3);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let headers: http::HeaderMap = head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap()))
            .collect();
        let request = Request {
            method: &http::Method::POST,
            headers: &headers,
            query: "",
            body: body.as_bytes(),
            certificate: None,
        };
        let now = Time::from_seconds(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() as i64);
        let verified = provider::verify(scheme.as_ref(), request, now).unwrap();
        let RequestReading::Events(events) = scheme.read(&verified).unwrap() else { panic!("no event") };
        assert_eq!(
            (events[0].id.as_ref(), events[0].kind.as_ref()),
            (&*traffic.event_id(3), "payment_intent.succeeded")
        );
    }
}
