//! The far door: the real binary over HTTP, with one node or several. Everything is signed, sent in parallel to any of the nodes
//! and repeated; what is seen is what the API answers.

use std::collections::BTreeMap;

use sekisho_lab::http;
use sekisho_lab::rng::Rng;
use serde_json::{Value, json};

use super::compare::{self, Seen};
use super::door::{balance, filled, posted};
use super::play::{self, Step};
use super::told::Told;
use super::world::{Key, When, World};
use super::{scenes, sender, truth};
use crate::support::{Gateway, Place, wait_until};

const OPERATOR: &str = "canary-key-of-histories-0123456789";
/// Requests under way at once.
const SENDERS: usize = 8;

/// Tells so many histories to one installation, and says what is wrong at the end of each.
pub fn faults(place: &Place, nodes: usize, histories: u64, seed: u64) -> Vec<String> {
    let town = Town::open(place, nodes);
    let now = sekisho::now().seconds();
    let mut told: Vec<_> = (0..histories).map(|n| History::new(seed.wrapping_add(n), n, now)).collect();
    for history in &mut told {
        town.post(history, When::Before);
    }
    let mut letters: Vec<_> = told.iter().flat_map(History::letters).collect();
    shuffle(&mut letters, &mut Rng::new(seed));
    town.send(&letters, now);
    for history in &mut told {
        town.post(history, When::Among);
    }
    town.is_settled();
    for history in &mut told {
        town.post(history, When::After);
    }
    // Providers repeat themselves days later, too.
    town.send(&letters[..letters.len() / 5], now);
    town.is_settled();
    let seen = town.look();
    let mut found = Vec::new();
    for history in &told {
        let seen = town.of(&seen, history);
        let faults = compare::differences(&history.world, &truth::of(&history.world), &seen);
        found.extend(faults.into_iter().map(|fault| format!("SEKISHO_SEED={} {fault}", history.seed)));
    }
    found
}

/// One history among others, with a mark of its own in every name.
struct History {
    seed: u64,
    mark: String,
    world: World,
    posted: Vec<Option<String>>,
    problems: Vec<String>,
}

impl History {
    fn new(seed: u64, n: u64, now: i64) -> Self {
        let mark = format!("h{n:03}");
        let mut world = scenes::history(seed, &mark, now);
        // Nobody can be asked for balance transactions here.
        world.fees = false;
        let posted = vec![None; world.orders.len()];
        Self { seed, mark, world, posted, problems: Vec::new() }
    }

    /// What is sent, as often as it is sent.
    fn letters(&self) -> Vec<(Told, String)> {
        let steps = play::steps(&self.world, self.seed).into_iter();
        let told = steps.filter_map(|step| match step {
            Step::Tell(told) => Some(told),
            Step::Post(_) | Step::Settle { .. } => None,
        });
        told.map(|told| (told.clone(), filled(&told.body, &self.posted))).collect()
    }
}

struct Town {
    nodes: Vec<Gateway>,
    _certificate: tempfile::NamedTempFile,
}

impl Town {
    fn open(place: &Place, nodes: usize) -> Self {
        let certificate = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(certificate.path(), &sender::paypal().pem).unwrap();
        let key = "[[key]]\nname = \"operator\"\nsecret = \"env:OPERATOR\"\nscopes = [\"admin\"]\n";
        let config = sender::configuration(&certificate.path().display().to_string()) + key;
        let open = |_| Gateway::with_env(place, &config, &[("OPERATOR", OPERATOR)]);
        Self { nodes: (0..nodes).map(open).collect(), _certificate: certificate }
    }

    fn ask(&self, key: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        let answer = http::request(self.nodes[0].address(), method, path, &headers, body.as_bytes()).unwrap();
        (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
    }

    fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask(OPERATOR, "GET", path, "");
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// The app posts those of its orders whose time has come.
    fn post(&self, history: &mut History, when: When) {
        for (n, order) in history.world.orders.iter().enumerate().filter(|(_, order)| order.when == when) {
            let key = match (&order.tenant, order.by) {
                (Some(tenant), Key::OwnTenant) => {
                    let name = format!("{tenant}-{n}");
                    let wanted = json!({ "name": name, "scopes": ["write"], "tenant": tenant });
                    let (status, made) = self.ask(OPERATOR, "POST", "/v1/keys", &wanted.to_string());
                    assert_eq!(status, 201, "{made}");
                    made["key"].as_str().unwrap().to_owned()
                }
                _ => OPERATOR.to_owned(),
            };
            let (status, made) =
                self.ask(&key, "POST", "/v1/payments", &Value::from(posted(order)).to_string());
            if status == 201 {
                history.posted[n] = made["id"].as_str().map(str::to_owned);
            } else {
                history.problems.push(format!("order#{n} was refused: {status} {}", made["detail"]));
            }
        }
    }

    fn send(&self, letters: &[(Told, String)], now: i64) {
        std::thread::scope(|scope| {
            for (sender, share) in letters.chunks(letters.len().div_ceil(SENDERS).max(1)).enumerate() {
                scope.spawn(move || {
                    for (n, (told, body)) in share.iter().enumerate() {
                        let letter = sender::letter(&sender::sources()[told.source], body.clone(), now);
                        let node = &self.nodes[(sender + n) % self.nodes.len()];
                        let status = node.send_until_acknowledged(&letter).status;
                        assert_eq!(status, 204, "{}", told.line());
                    }
                });
            }
        });
    }

    fn is_settled(&self) {
        wait_until("everything is settled", || {
            self.get("/v1/events?status=received&limit=1")["items"].as_array().unwrap().is_empty()
        });
        let failed = self.get("/v1/events?status=failed&limit=10");
        assert!(failed["items"].as_array().unwrap().is_empty(), "{failed}");
    }

    fn all(&self, path: &str) -> Vec<Value> {
        let (mut items, mut before) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("{path}limit=500{before}"));
            items.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next"].as_str() {
                Some(next) => before = format!("&before={next}"),
                None => return items,
            }
        }
    }

    fn look(&self) -> Seen {
        let told = self.all("/v1/events?source=sekisho&");
        let whole = |event: &Value| self.get(&format!("/v1/events/{}", event["id"].as_str().unwrap()));
        let announcements = told.iter().map(whole).map(|event| body_of(&event));
        Seen {
            payments: self.all("/v1/payments?"),
            billings: self.all("/v1/billing?"),
            announcements: announcements.collect(),
            ..Seen::default()
        }
    }

    /// What is one history's of what was seen. Whatever mentions one of its names is.
    fn of(&self, all: &Seen, history: &History) -> Seen {
        let (mark, tenants) = (format!("z{}", history.mark), format!("office-a{}", history.mark));
        let mut orders = Vec::new();
        for id in &history.posted {
            let now = id.as_ref().map(|id| self.get(&format!("/v1/payments/{id}"))["id"].clone());
            orders.push(now.and_then(|id| id.as_str().map(str::to_owned)));
        }
        let is_own = |value: &&Value| {
            let text = value.to_string();
            text.contains(&mark)
                || text.contains(&tenants)
                || orders.iter().flatten().any(|id| value["id"] == id.as_str())
        };
        let own = |values: &[Value]| values.iter().filter(is_own).cloned().collect::<Vec<_>>();
        let mut balances = BTreeMap::new();
        for order in &history.world.orders {
            let Some(customer) = &order.top_up_of else { continue };
            let tenant = order.tenant.as_deref().unwrap_or_default();
            let path = format!("/v1/balances/{customer}?tenant={tenant}");
            let (_, found) = self.ask(OPERATOR, "GET", &path, "");
            balances.insert(customer.clone(), balance(&found));
        }
        Seen {
            payments: own(&all.payments),
            billings: own(&all.billings),
            announcements: own(&all.announcements),
            balances,
            problems: history.problems.clone(),
            orders,
        }
    }
}

/// The body of an event as `GET /v1/events/{id}` shows it.
fn body_of(event: &Value) -> Value {
    match &event["body"] {
        Value::String(text) => serde_json::from_str(text).unwrap(),
        other => other.clone(),
    }
}

fn shuffle<T>(all: &mut [T], rng: &mut Rng) {
    for n in (1..all.len()).rev() {
        all.swap(n, rng.below(n as u64 + 1) as usize);
    }
}
