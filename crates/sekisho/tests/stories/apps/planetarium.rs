//! F1–F8 with the app of `examples/` that sells places and makes videos: Sekisho does the rest, and the app hears of it.

use sekisho_lab::http;
use sekisho_lab::stripe::{self, Stripe};
use serde_json::{Value, json};

use super::{App, ENV, Handler, OLD};
use crate::support::{Gateway, Place, Provider, Response, each_store, wait_until};

const NODE: Handler = Handler { file: "node/planetarium.mjs", config: "planetarium.toml" };
const PYTHON: Handler = Handler { file: "python/planetarium_app.py", config: "planetarium.toml" };

const KEY: &str = "canary-planetarium-key-0123456789";
const SHOW: &str = "dome-1:winter-stars";
/// The scene that the example can't render.
const IMPOSSIBLE: u32 = 13;

#[test]
fn f1_f8_the_planetarium_in_node_sells_places_and_makes_videos() {
    each_store(|place| sells_places_and_makes_videos(NODE, place));
}

#[test]
fn f1_f8_the_planetarium_in_python_sells_places_and_makes_videos() {
    each_store(|place| sells_places_and_makes_videos(PYTHON, place));
}

fn sells_places_and_makes_videos(handler: Handler, place: &Place) {
    // What takes a day in the shop takes a second here.
    let soon = "[[compensation]]\nname = \"RENDER_FAILURE_TIMEOUT\"\nafter = \"1s\"\n";
    let theatre = Theatre::open(handler, place, soon);

    // From choosing to the video.
    let happy = theatre.book(1);
    theatre.pay(&happy);
    theatre.hears("reservation.confirmed", &happy.reference);
    theatre.hears("fulfilment.done", ".mp4");

    // Three places, and this is the last.
    let (unlucky, regretful) = (theatre.book(IMPOSSIBLE), theatre.book(2));
    let full = theatre.asks_for(3);
    assert_eq!((full.status, &json_of(&full)["error"]), (409, &json!("sold out")), "{}", full.text());

    // What can't be made is refunded, once.
    let sold = theatre.pay(&unlucky);
    theatre.hears("fulfilment.failed", "could not be made");
    theatre.hears("payment.refunded", "");
    theatre.hears("reservation.cancelled", &unlucky.reference);
    assert_eq!(theatre.stripe.refunds_of(&sold).len(), 1);
    let case = &theatre.get("/v1/cases")["items"][0];
    assert_eq!(
        (&case["trigger"], &case["status"], &case["level"]),
        (&json!("RENDER_FAILURE"), &json!("resolved"), &json!(3))
    );
    let made = theatre.get(&format!("/v1/fulfilments/{}", case["subject"].as_str().unwrap()));
    assert_eq!((&made["retry_count"], &made["last_error"]), (&json!(3), &json!("out of memory")));

    // A visitor cancels in time.
    let sold = theatre.pay(&regretful);
    theatre.hears("reservation.confirmed", &regretful.reference);
    let asked = theatre.ask("POST", &format!("{}/cancel", regretful.page), &[]);
    assert_eq!(asked.status, 303, "{}", asked.text());
    theatre.hears("reservation.cancelled", &format!("{}: cancelled by CUSTOMER", regretful.reference));
    wait_until("the refund", || theatre.stripe.refunds_of(&sold).len() == 1);

    // One place is sold; the two that were given back are free.
    let slot = theatre.get(&format!("/v1/slots/{SHOW}?livemode=false"));
    assert_eq!((&slot["sold"], &slot["free"]), (&json!(1), &json!(2)));
    let told: Vec<_> = theatre.app.accepted().into_iter().map(|(id, _)| id).collect();
    let mut once = told.clone();
    once.dedup();
    assert_eq!(told, once, "each of it once");
}

#[test]
fn f1_the_planetarium_hears_of_places_that_nobody_paid_for() {
    for handler in [NODE, PYTHON] {
        let place = Place::sqlite();
        let theatre = Theatre::open(handler, &place, "[reservations]\nhold = \"1s\"\ngrace = \"0s\"\n");
        let idle = theatre.book(1);
        theatre.hears("reservation.expired", &idle.reference);
        // Money that comes too late goes back. Stripe says in whole seconds when it came.
        theatre.stripe.set_clock(sekisho::now().seconds() + 60);
        let sold = theatre.pay(&idle);
        wait_until("the refund", || theatre.stripe.refunds_of(&sold).len() == 1);
    }
}

/// The app, Sekisho before it, and Stripe behind both.
struct Theatre {
    app: App,
    gateway: Gateway,
    stripe: Stripe,
}

/// What a visitor is told.
struct Booked {
    reference: String,
    /// The path of the order's page.
    page: String,
}

impl Theatre {
    fn open(handler: Handler, place: &Place, more: &str) -> Self {
        let stripe = Stripe::start().unwrap();
        let [app, sekisho] = [(); 2].map(|()| sekisho_lab::free_address().unwrap());
        let written = "refunds = true";
        let config = handler.config_for(app);
        assert!(config.contains(written));
        let api = format!("api_url = \"{}\"\n{written}", stripe.url());
        let config = config.replacen(written, &api, 1) + more;
        let env = [&ENV[..], &[("STRIPE_API_KEY", stripe::KEY), ("SEKISHO_KEY", KEY)]].concat();
        let gateway = Gateway::started(&place.url, &config, &env, |mut options| {
            options.listen = Some(sekisho);
            options
        });
        let gateway = gateway.unwrap_or_else(|error| panic!("{error}"));
        let url = format!("http://{sekisho}");
        let env = [("APP_SECRET", OLD), ("SEKISHO_URL", url.as_str()), ("SEKISHO_KEY", KEY)];
        Self { app: App::start_at(handler, app, &env), gateway, stripe }
    }

    fn asks_for(&self, scene: u32) -> Response {
        let wish = json!({ "show": SHOW, "scene": scene, "message": "Hello, Orion" });
        http::post(self.app.address, "/book", &[], wish.to_string().as_bytes()).unwrap()
    }

    fn book(&self, scene: u32) -> Booked {
        let answer = self.asks_for(scene);
        assert_eq!(answer.status, 201, "{}", answer.text());
        let booked = json_of(&answer);
        let text = |key: &str| booked[key].as_str().unwrap().to_owned();
        let page = text("page");
        let page = page.split_once("/o/").map(|(_, token)| format!("/o/{token}")).unwrap();
        Booked { reference: text("reference"), page }
    }

    /// The visitor pays, and Stripe says so; the payment intent.
    fn pay(&self, booked: &Booked) -> String {
        let sold = self.stripe.sell(1_200, "jpy", json!({ "order_id": booked.reference }));
        self.hear_of_stripe();
        sold.payment_intent
    }

    fn hear_of_stripe(&self) {
        for event in self.stripe.take_unsent() {
            assert_eq!(self.gateway.send(&Provider::stripe().body(&event.to_string())).status, 204);
        }
    }

    /// Until the app has heard of it; Stripe goes on telling meanwhile.
    fn hears(&self, event_type: &str, words: &str) {
        wait_until(&format!("{event_type} {words}"), || {
            self.hear_of_stripe();
            let is_it = |line: &Value| {
                line["type"] == event_type && line["says"].as_str().unwrap_or_default().contains(words)
            };
            self.app.lines().iter().any(is_it)
        });
    }

    fn get(&self, path: &str) -> Value {
        let answer = self.ask("GET", path, &[("authorization", &format!("Bearer {KEY}"))]);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        json_of(&answer)
    }

    fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
        http::request(self.gateway.address(), method, path, headers, b"").unwrap()
    }
}

fn json_of(answer: &Response) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}
