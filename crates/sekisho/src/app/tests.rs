//! A whole process in a world of the test's own: no socket, no clock, no chance of this machine.

use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use sekisho_core::Time;
use sekisho_core::delivery::{Answer, Fault};
use sekisho_core::notification::{Message, Receipt, Sent};
use sekisho_core::provider::{self, Setup};
use sekisho_store::memory::MemoryStore;
use tokio::time::Instant;

use super::*;
use crate::config;
use crate::env::{Channel, Exchange, Outside};

const START: Time = Time::from_ms(1_780_000_000_000);
const SECRET: &str = "whsec_c2VraXNobw==";
const CONFIG: &str = r#"
[[source]]
name = "github"
provider = "github"
secrets = ["whsec_c2VraXNobw=="]

[[route]]
name = "app"
url = "https://app.example/hook"
secrets = ["whsec_c2VraXNobw=="]
events = ["*"]

[[channel]]
name = "room"
kind = "slack"
url = "https://hooks.slack.com/services/T/B/X"

[[notify]]
name = "tell"
events = ["push"]
sources = ["github"]
to = "channel"
channel = "room"
template = "operator-alert"
"#;

/// What the world outside saw, in its order.
#[derive(Default)]
struct Ledger(Mutex<Vec<String>>);

impl Ledger {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

struct World {
    began: Instant,
    ledger: Arc<Ledger>,
}

#[async_trait]
impl Exchange for World {
    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        _body_max: usize,
        _deadline: Instant,
    ) -> Result<Answer, Fault> {
        let at = self.began.elapsed().as_millis();
        self.ledger.note(format!("{at} {} {:?}", request.uri(), request.headers()));
        Ok(Answer { status: 200, headers: Vec::new(), body: Bytes::new(), truncated: false })
    }
}

struct Room(Arc<Ledger>);

#[async_trait]
impl Channel for Room {
    async fn send(&self, message: &Message, _within: Duration) -> Sent {
        self.0.note(format!("told {} {}", message.id, message.subject));
        Sent::Accepted(Receipt { answer: "ok".into(), reference: None })
    }
}

/// Plays the same story in a fresh world, and gives back what was seen outside.
async fn play() -> Vec<String> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (began, ledger) = (Instant::now(), Arc::<Ledger>::default());
    let room = Arc::clone(&ledger);
    let outside = Outside::network()
        .with_exchange(Arc::new(World { began, ledger: Arc::clone(&ledger) }))
        .with_channels(move |_| Box::new(Room(Arc::clone(&room))));
    let env = Env::system()
        .with_wall(move || START.plus_ms(began.elapsed().as_millis() as i64))
        .with_chance(|bytes| bytes.fill(7))
        .with_exit(|code| panic!("it exits with {code}"))
        .with_outside(outside);
    let config = config::load("test.toml".as_ref(), CONFIG, std::iter::empty()).unwrap().config;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let running = App::assemble(config, store, env, &ProcessRole::ALL, None).await.unwrap().start();

    let github = provider::find("github").unwrap();
    let setup = Setup { secrets: vec![Secret::new(SECRET)], ..Setup::default() };
    let signed =
        github.open(&setup).unwrap().sign(github.about().draft("evt_1", "push", START), START).unwrap();
    let peer = ([192, 0, 2, 1], 443).into();
    for _ in 0..2 {
        let mut request = Request::post("/webhooks/github");
        for (name, value) in &signed.headers {
            request = request.header(name.as_ref(), value);
        }
        let request = request.body(Full::new(Bytes::from(signed.body.clone()))).unwrap();
        let answer = running.front.take(peer, request).await;
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        ledger.note(format!("{:?}", answer.headers()));
    }
    while ledger.lines().len() < 4 {
        assert!(began.elapsed() < Duration::from_mins(1), "{:?}", ledger.lines());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    running.stop().await;
    ledger.lines()
}

#[tokio::test(start_paused = true)]
async fn r12_a_process_in_the_same_world_does_the_same_again() {
    let seen = play().await;
    let of = |word: &str| seen.iter().filter(|line| line.contains(word)).count();
    assert_eq!((of("https://app.example/hook"), of("told ")), (1, 1), "{seen:#?}");
    assert_eq!(seen, play().await);
}
