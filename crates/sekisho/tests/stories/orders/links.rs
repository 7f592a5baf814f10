//! F7, F8: customers' links are keys: nobody guesses one, none opens another order, and looking changes nothing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sekisho_core::link::{LinkKeys, LinkedOrder, OrderLink};
use sekisho_core::secret::Secret;
use sekisho_core::{Seq, Time};
use sekisho_lab::postgres::Postgres;
use sekisho_lab::rng::Rng;
use serde_json::json;

use crate::reservations::{Shop, json_of};
use crate::support::{Place, Response, seed};

const PAGES: &str = "[pages]\nurl = \"http://pay.example.jp\"\n";
const FORGED: usize = 1_000_000;
const NOW: Time = Time::from_ms(1_790_000_000_000);

fn keys(text: &str) -> LinkKeys {
    LinkKeys::new(vec![Secret::new(text)])
}

#[test]
fn f8_of_a_million_forged_links_none_is_believed() {
    let mut rng = Rng::new(seed("forged links"));
    let (own, other) = (keys("the house's own key"), keys("somebody else's key"));
    let link = |n: i64| OrderLink {
        order: LinkedOrder::Reservation(Seq::from_i64(Seq::floor_of(NOW).as_i64() + n)),
        expires_at: NOW.plus_ms(86_400_000),
        generation: 0,
    };
    let genuine: Vec<String> = (0..64).map(|n| own.sign_link(&link(n)).unwrap()).collect();
    assert!(genuine.iter().all(|token| own.read_link(token, NOW).is_some()));
    let foreign = other.sign_link(&link(1)).unwrap();
    let mut believed = Vec::new();
    for n in 0..FORGED {
        let token = rng.pick(&genuine).unwrap();
        let mut bytes = URL_SAFE_NO_PAD.decode(token).unwrap();
        match n % 6 {
            // Anything at all; the same with a head that looks right.
            0 => rng.fill(&mut bytes),
            1 => rng.fill(&mut bytes[16..]),
            // One bit, somewhere.
            2 => bytes[rng.below(32) as usize] ^= 1 << rng.below(8),
            // Another order, a later end or another generation under the same proof.
            3 => {
                let at = rng.between(1, 15) as usize;
                bytes[at] = bytes[at].wrapping_add(rng.between(1, 255) as u8);
            }
            // The proof of another link.
            4 => {
                let proof = URL_SAFE_NO_PAD.decode(rng.pick(&genuine).unwrap()).unwrap();
                bytes[16..].copy_from_slice(&proof[16..]);
                bytes[9] ^= 0x80;
            }
            // Another house's, with our mark; or too short, or too long.
            _ => match rng.below(3) {
                0 => {
                    let mark = bytes[0];
                    bytes = URL_SAFE_NO_PAD.decode(&foreign).unwrap();
                    bytes[0] = mark;
                }
                1 => bytes.truncate(rng.below(32) as usize),
                _ => bytes.push(rng.below(256) as u8),
            },
        }
        let forged = URL_SAFE_NO_PAD.encode(&bytes);
        if own.read_link(&forged, NOW).is_some() && !genuine.contains(&forged) {
            believed.push(forged);
        }
    }
    assert_eq!(believed, [""; 0]);
}

fn visit(shop: &Shop, method: &str, path: &str) -> Response {
    sekisho_lab::http::request(shop.gateway.address(), method, path, &[], b"").unwrap()
}

/// Where the customer of a new order finds it.
fn page_of(shop: &Shop, reference: &str, live: bool) -> String {
    let more = json!({ "livemode": live, "retry_url": "https://shop.example.jp/pay" });
    let held = json_of(&shop.hold_with(&format!("slot-{reference}"), reference, more));
    let url = held["customer_url"].as_str().unwrap().to_owned();
    url.strip_prefix("http://pay.example.jp").unwrap().to_owned()
}

const SUBPAGES: [&str; 5] = ["", "/failed", "/thanks", "/cancel", "/contact"];

/// While the database is down, a forged link gets its answer all the same: nobody asked the store.
#[test]
fn f8_a_forged_link_is_refused_before_the_store_is_asked() {
    let server = Postgres::start().unwrap_or_else(|error| panic!("{error}"));
    let place = Place::on(&server);
    let shop = Shop::open(&place, PAGES);
    let path = page_of(&shop, "A-1", false);
    let forged = format!("/o/{}", "A".repeat(43));
    let before = visit(&shop, "GET", &forged);
    server.stop_immediate().unwrap();
    let refused = visit(&shop, "GET", &forged);
    assert_eq!((refused.status, refused.text()), (404, before.text()));
    assert_eq!(visit(&shop, "GET", &path).status, 503, "a genuine one asks it");
    server.start_again().unwrap();
}

#[test]
fn f8_no_page_opens_without_a_link_by_any_method() {
    let place = Place::sqlite();
    let shop = Shop::open(&place, PAGES);
    let before = written(&place);
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        for page in ["/o", "/o/", "/o//cancel", "/o/assets", "/o/../v1/reservations"] {
            let answer = visit(&shop, method, page);
            assert!([400, 404, 405].contains(&answer.status), "{method} {page}: {}", answer.status);
        }
    }
    // The same words, whatever is wrong with it.
    let mut answers: Vec<(u16, String)> = Vec::new();
    for page in SUBPAGES.iter().chain(&["/paying", "/x"]) {
        for token in ["x", &"A".repeat(43)] {
            let answer = visit(&shop, "GET", &format!("/o/{token}{page}"));
            answers.push((answer.status, answer.text()));
        }
    }
    let answer = answers[0].clone();
    assert_eq!(answer.0, 404);
    assert!(answers.iter().all(|other| *other == answer), "{answers:?}");
    for method in ["PUT", "PATCH", "DELETE"] {
        for page in SUBPAGES {
            let answer = visit(&shop, method, &format!("/o/{}{page}", "A".repeat(43)));
            assert!([404, 405].contains(&answer.status), "{method} {page}: {}", answer.status);
        }
    }
    assert_eq!(written(&place), before);
}

/// Everything that a look could have changed: rows, and versions of what is kept.
fn written(place: &Place) -> String {
    place.sql(
        "SELECT (SELECT count(*) FROM state), (SELECT coalesce(sum(version), 0) FROM state), (SELECT count(*) FROM event), \
         (SELECT count(*) FROM audit WHERE action NOT LIKE 'audit.%'), (SELECT count(*) FROM posting), (SELECT count(*) FROM name)",
    )
}

#[test]
fn f7_get_of_every_page_writes_nothing() {
    let place = Place::sqlite();
    let shop = Shop::open(&place, PAGES);
    let path = page_of(&shop, "A-1", false);
    let before = written(&place);
    for _ in 0..3 {
        for page in SUBPAGES {
            let answer = visit(&shop, "GET", &format!("{path}{page}"));
            assert!([200, 303].contains(&answer.status), "{page}: {}", answer.status);
        }
    }
    assert_eq!(visit(&shop, "GET", "/policy").status, 200);
    assert_eq!(written(&place), before);
}

#[test]
fn f8_a_link_shows_its_own_order_and_is_in_no_log_line() {
    let place = Place::sqlite();
    let shop = Shop::open(&place, &format!("[log]\nlevel = \"debug\"\n{PAGES}"));
    let (live, test) = (page_of(&shop, "LIVE-1", true), page_of(&shop, "TEST-1", false));
    for (path, own, other) in [(&live, "LIVE-1", "TEST-1"), (&test, "TEST-1", "LIVE-1")] {
        for page in SUBPAGES {
            let text = visit(&shop, "GET", &format!("{path}{page}")).text();
            assert!(!text.contains(other), "{other} on {page} of {own}");
        }
        assert!(visit(&shop, "GET", path).text().contains(own));
    }
    // What names a reservation names no fulfilment, and the other way round.
    for path in [&live, &test] {
        let mut bytes = URL_SAFE_NO_PAD.decode(path.strip_prefix("/o/").unwrap()).unwrap();
        bytes[1] = b'f';
        assert_eq!(visit(&shop, "GET", &format!("/o/{}", URL_SAFE_NO_PAD.encode(bytes))).status, 404);
    }
    let log = shop.gateway.server.stderr();
    for path in [&live, &test] {
        assert!(!log.contains(path.strip_prefix("/o/").unwrap()), "a link is a key");
    }
}
