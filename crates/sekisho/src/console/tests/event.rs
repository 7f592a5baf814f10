//! One event: its story from the request to its deliveries, what of it is shown to whom, and replaying it.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use sekisho_core::audit::died::Case;
use sekisho_core::change::{Arrival, ChangeSet, Ended};
use sekisho_core::event::{Event, Identity, Trust};
use sekisho_core::id::Sequence;
use sekisho_core::job::{Attempt, Class, DeadReason, End, Lane, NewJob, Outcome, Task, delivery_key};
use sekisho_core::user::Rank;
use sekisho_core::{Epoch, Seq};
use sekisho_store::Store;
use sekisho_store::memory::MemoryStore;

use super::Room;
use crate::config::{self, Config};
use crate::now;

pub const ATTACK: &str = "<script>alert(1)</script>\"'>";

/// A store, and hands that work in it.
pub struct Hands {
    pub store: Arc<MemoryStore>,
    epoch: Epoch,
    sequence: Sequence,
}

impl Hands {
    pub async fn new() -> Self {
        let store = Arc::new(MemoryStore::default());
        let epoch = store.join(now()).await.unwrap().epoch;
        Self { store, epoch, sequence: Sequence::new(epoch, Seq::ZERO) }
    }

    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store) as Arc<dyn Store>
    }

    /// An event comes in and is settled; a delivery to each of these routes waits.
    pub async fn take_in(&mut self, event_id: &str, event_type: &str, body: &str, routes: &[&str]) -> Seq {
        let seq = self.sequence.next(now());
        let event = match event_id.strip_prefix("unsigned:") {
            None => Event::new(event_id, event_type, body.as_bytes()),
            Some(_) => Event::with_open_id(event_id, event_type, body.as_bytes()),
        };
        let Identity { key, first_body } = Identity::of("shop", &event, None);
        let arrival = Arrival {
            key,
            first_body,
            seq,
            received_at: now(),
            source: "shop".into(),
            event_id: event_id.to_owned(),
            event_type: event_type.to_owned(),
            created_at: Some(now()),
            object: Some(("payment_intent".into(), format!("pi_{event_id}"))),
            account: None,
            livemode: Some(false),
            trust: Trust::Signed,
            headers: serde_json::json!([
                ["authorization", "Bearer very-secret"],
                ["stripe-signature", "t=1,v1=0123456789abcdef0123456789abcdef"],
                ["x-odd", ATTACK],
                ["from", "taro@example.jp"],
            ])
            .to_string()
            .into(),
            body: Bytes::from(body.to_owned()),
            held: None,
        };
        self.store.admit(Arc::from([arrival]), None).await.unwrap();
        let jobs = self.store.claim(self.epoch, vec![(Lane::settle(), 10)], now()).await.unwrap();
        for job in jobs {
            let deliveries = routes.iter().map(|route| {
                let lane = Lane::to_route(route);
                NewJob {
                    id: self.sequence.next(now()),
                    key: Some(delivery_key(seq, &lane, 0)),
                    task: Task::Deliver { route: (*route).to_owned() },
                    lane,
                    fifo: None,
                    due_at: now(),
                    event: Some(seq),
                    owner: None,
                }
            });
            let jobs = deliveries.collect();
            let set = ChangeSet { jobs, ..ChangeSet::end(job.lease, End::Done(Outcome::SUCCESS), now()) };
            self.store.commit(vec![set]).await.unwrap();
        }
        seq
    }

    /// Every delivery that waits for a route ends so, after a call that was answered with this.
    pub async fn deliver(&self, route: &str, status: i32, answer: &str, end: &End) -> Vec<Seq> {
        let jobs = self.store.claim(self.epoch, vec![(Lane::to_route(route), 1000)], now()).await.unwrap();
        let mut ids = Vec::new();
        for job in jobs {
            let attempt = Attempt {
                at: now(),
                took_ms: 1_234,
                status: Some(status),
                reason: (status >= 300).then(|| "server_error".to_owned()),
                error: (status >= 300).then(|| format!("the app answered {status} {ATTACK} jiro@example.jp")),
                headers: Some(serde_json::json!([["set-cookie", "very-secret"]]).to_string()),
                body: Some(Bytes::from(answer.to_owned())),
            };
            ids.push(job.lease.job);
            let set = ChangeSet {
                ends: vec![Ended { attempt: Some(attempt), ..Ended::new(job.lease, end.clone()) }],
                ..ChangeSet::nothing(now())
            };
            let audit = match end {
                End::Dead(death) => vec![Case::default().entry(job.lease, death, set.at)],
                End::Done(_) | End::Retry { .. } | End::Wait { .. } | End::NotYet => Vec::new(),
            };
            self.store.commit(vec![ChangeSet { audit, ..set }]).await.unwrap();
        }
        ids
    }
}

pub fn dead(reason: &str) -> End {
    let error = format!("down {ATTACK} saburo@example.jp");
    End::Dead(DeadReason { class: Class::Transient, reason: reason.to_owned(), error })
}

/// A configuration with one source and one route.
pub fn config() -> Config {
    let text = "[[source]]\nname = \"shop\"\nprovider = \"stripe\"\nsecrets = [\"whsec_c2VjcmV0\"]\n\
         [[route]]\nname = \"app\"\nurl = \"https://app.example.jp/hook\"\nsecrets = [\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"]\n";
    match config::load(Path::new("sekisho.toml"), text, std::iter::empty()) {
        Ok(loaded) => loaded.config,
        Err(problems) => {
            panic!("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
        }
    }
}

fn body() -> String {
    serde_json::json!({ "id": ATTACK, "client_secret": "very-secret", "email": "taro@example.jp", ATTACK: 1 })
        .to_string()
        .replace(":1,", ":12345678901234567890.10,")
}

fn is_clean(text: &str) {
    assert!(!text.contains("<script>alert") && !text.contains("\"'>"), "{text}");
    assert!(!text.contains("very-secret"), "{text}");
}

#[tokio::test]
async fn h3_an_event_is_told_from_the_request_to_every_delivery() {
    let mut hands = Hands::new().await;
    let seq = hands.take_in("evt_1", &format!("odd.{ATTACK}"), &body(), &["app", "books", "late"]).await;
    hands.deliver("app", 204, r#"{"ok":true}"#, &End::Done(Outcome::SUCCESS)).await;
    hands.deliver("late", 503, "busy", &End::Retry { due_at: now().plus_ms(3 * 60_000 + 30_000) }).await;
    let letter = hands.deliver("books", 500, ATTACK, &dead("server_error")).await[0];
    let room = Room::with(config(), hands.store()).await;
    let path = format!("/console/events/{}", seq.as_event());

    let link = format!("/console/dead/{}", letter.as_message());
    let seen = room.look(Rank::Operator, &path).await.says(&[
        "signature checked",
        "evt_1",
        "pi_evt_1",
        "to app",
        "delivered",
        "to books",
        "dead letter",
        &link,
        "to late",
        "retrying",
        "in 3 min",
        "503",
        "1,234 ms",
        "12345678901234567890.10",
        "taro@example.jp",
        "t=1,v1=0123456789abcdef0…",
        "/replay",
        "/body",
    ]);
    is_clean(&seen.text);
    let seen = room.look_ja(Rank::Viewer, &path).await.says(&[
        "t***@example.jp",
        "j***@example.jp",
        "署名検証済み",
        "3 分後",
    ]);
    is_clean(&seen.text);
    for hidden in ["taro@", "jiro@", "saburo@", "/replay\"", "/body\""] {
        assert!(!seen.text.contains(hidden), "{hidden}: {}", seen.text);
    }

    // By the provider's id, too; and each message has its own page.
    let seen = room.look(Rank::Viewer, "/console/events/evt_1").await;
    assert_eq!((seen.status(), seen.location()), (303, &*path));
    let seen = room.look(Rank::Viewer, &format!("/console/messages/{}", letter.as_message())).await;
    is_clean(&seen.says(&["the app answered with an error", &path]).text);
    assert_eq!(room.look(Rank::Viewer, "/console/events/evt_none").await.status(), 404);
}

#[tokio::test]
async fn a4_an_event_whose_id_was_used_before_says_so_and_leads_to_the_first() {
    let mut hands = Hands::new().await;
    let first = hands.take_in("unsigned:7", "push", "old", &[]).await;
    let second = hands.take_in("unsigned:7", "push", "new", &[]).await;
    let room = Room::with(config(), hands.store()).await;
    let page = |seq: Seq| format!("/console/events/{}", seq.as_event());
    room.look(Rank::Viewer, &page(second)).await.says(&["id used before", "does not sign", &page(first)]);
    room.look_ja(Rank::Viewer, &page(second)).await.says(&["ID重複", "署名の対象外", &page(first)]);
    let seen = room.look(Rank::Viewer, &page(first)).await;
    assert!(!seen.text.contains("id used before"), "{}", seen.text);
    let listed = room.look(Rank::Viewer, "/console/events").await;
    assert_eq!(listed.text.matches("id used before").count(), 1, "{}", listed.text);
}

#[tokio::test]
async fn h3_the_body_as_it_came_is_for_operators_and_no_page() {
    let mut hands = Hands::new().await;
    let seq = hands.take_in("evt_1", "a.b", &body(), &[]).await;
    let room = Room::with(config(), hands.store()).await;
    let path = format!("/console/events/{}/body", seq.as_event());
    assert_eq!(room.look(Rank::Viewer, &path).await.status(), 403);
    let seen = room.look(Rank::Operator, &path).await;
    assert_eq!(seen.text, body());
    let header = |name: &str| seen.head.headers[name].to_str().unwrap();
    assert!(header("content-disposition").starts_with("attachment; filename=\"evt_"));
    assert_eq!(header("content-type"), "application/octet-stream");
}

#[tokio::test]
async fn h3_a_replay_says_first_what_comes_of_it() {
    let mut hands = Hands::new().await;
    let one = hands.take_in("evt_1", "a.b", r#"{"n":1}"#, &["app"]).await;
    hands.take_in("evt_2", "a.c", r#"{"n":2}"#, &[]).await;
    hands.deliver("app", 204, "", &End::Done(Outcome::SUCCESS)).await;
    let room = Room::with(config(), hands.store()).await;
    let path = format!("/console/events/{}/replay", one.as_event());
    assert_eq!(room.look(Rank::Viewer, &path).await.status(), 403);
    room.look(Rank::Operator, &path).await.says(&["Delivered before", "name=\"again\"", "app"]);

    let done = room.act(Rank::Operator, &path, "again=1&reason=asked+by+the+shop").await;
    assert_eq!(done.location(), format!("/console/events/{}", one.as_event()));
    assert!(done.told().contains("processed again"), "{}", done.told());
    room.look(Rank::Operator, done.location()).await.says(&["Replayed", "asked by the shop", "waiting"]);
    // Its work is under way now: a second one does nothing, and says so.
    assert!(room.act(Rank::Operator, &path, "").await.told().contains("still being processed"));
}

#[tokio::test]
async fn h3_many_are_replayed_by_a_filter_as_a_run() {
    let mut hands = Hands::new().await;
    for n in 0..3 {
        hands.take_in(&format!("evt_{n}"), if n == 2 { "other" } else { "a.b" }, "{}", &[]).await;
    }
    let room = Room::with(config(), hands.store()).await;
    let seen = room.look(Rank::Operator, "/console/events/replay?type=a.*&source=shop").await;
    let seen = seen.says(&["<strong>2</strong> events", "New: delivered", "name=\"until\""]);
    assert!(seen.text.contains("value=\"a.*\""));
    let started = room.act(Rank::Operator, "/console/events/replay", "type=a.*&reason=new+route").await;
    let seen = super::dead::ended(&room, started.location()).await;
    seen.says(&["finished", "<strong>2</strong> / 2", "new route"]);
    assert_eq!(room.act(Rank::Viewer, "/console/events/replay", "type=a.*").await.status(), 403);
    assert_eq!(room.act(Rank::Operator, "/console/events/replay", "since=whenever").await.status(), 400);
}
