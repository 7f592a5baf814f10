//! A planetarium that sells places of its shows by the API, beside the shop: more visitors than places, some of whom never
//! pay, pay too late or cancel, and a renderer that fails for some.
//!
//! The [`Programme`] comes from the seed: the shows, the visitors, and what each would do. Who gets a place is decided by who
//! comes first. What happened is in a [`PlacesLedger`], by what visitors, renderer and Stripe's stand-in ([`RefundApi`]) did and
//! heard themselves. Runs on a thread of its own until everybody is done, or it is dropped.

mod ledger;
mod programme;
mod refund_api;
mod renderer;
mod sender;
mod visitor;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::app::SeenDelivery;
use crate::http::{self, Response};
use crate::server::locked;
pub use ledger::{PlacesLedger, SoldPlace, VisitorRecord, WebhookCount};
pub use programme::{DomeShow, Programme, ShowVisitor, VisitorCourse};
pub use refund_api::{MadeRefund, RefundApi};
use sender::WebhookSender;

/// Most requests under way at once.
const AT_ONCE: usize = 24;
/// How long somebody who got no answer, or no good one, waits before asking again.
const AGAIN_AFTER: Duration = Duration::from_millis(150);
const POLL: Duration = Duration::from_millis(50);
/// Nobody waits longer for what must happen.
const PATIENCE: Duration = Duration::from_mins(2);
/// For requests that are under way when it ends.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Where the planetarium finds the others.
#[derive(Clone, Debug)]
pub struct PlanetariumSettings {
    pub sekisho: SocketAddr,
    /// Of Sekisho's API.
    pub key: String,
    /// Where Stripe's events go, and what signs them.
    pub webhooks: String,
    pub secret: String,
    /// The path at which the application is asked for videos.
    pub renderer: String,
    /// How long places are kept when their hold is over.
    pub grace: Duration,
}

/// What the application got, for the planetarium to hear: handed to [`crate::app::Settings`].
pub fn deliveries() -> (UnboundedSender<SeenDelivery>, UnboundedReceiver<SeenDelivery>) {
    unbounded_channel()
}

#[derive(Debug)]
pub struct Planetarium {
    house: Arc<House>,
    thread: Option<JoinHandle<()>>,
}

/// What all who take part share.
#[derive(Debug)]
struct House {
    settings: PlanetariumSettings,
    programme: Arc<Programme>,
    ledger: Mutex<PlacesLedger>,
    stripe: RefundApi,
    sender: WebhookSender,
    /// Visitors and videos that are not over.
    open: AtomicUsize,
    /// Events of Stripe's are being taken over.
    in_hand: AtomicBool,
    stop: AtomicBool,
}

impl Planetarium {
    /// Makes the slots and lets the visitors in.
    pub fn open(
        settings: PlanetariumSettings,
        programme: Arc<Programme>,
        stripe: RefundApi,
        heard: UnboundedReceiver<SeenDelivery>,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(AT_ONCE)
            .build()?;
        let visitors = programme.visitors.len();
        let house = Arc::new(House {
            sender: WebhookSender::new(&settings.secret, programme.seed),
            ledger: Mutex::new(PlacesLedger::of(&programme)),
            open: AtomicUsize::new(visitors),
            in_hand: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            settings,
            programme,
            stripe,
        });
        let inside = Arc::clone(&house);
        let thread = std::thread::spawn(move || {
            runtime.block_on(inside.play(heard));
            runtime.shutdown_timeout(END_WITHIN);
        });
        Ok(Self { house, thread: Some(thread) })
    }

    /// Every visitor is done, every video was answered for, and everything that Stripe had to say was acknowledged.
    pub fn is_over(&self) -> bool {
        self.house.is_over()
    }

    /// What is known so far.
    pub fn ledger(&self) -> PlacesLedger {
        let mut ledger = locked(&self.house.ledger).clone();
        ledger.refunds = self.house.stripe.refunds();
        ledger.answers_lost = self.house.stripe.answers_lost();
        ledger.webhooks = self.house.sender.count();
        ledger
    }
}

impl Drop for Planetarium {
    fn drop(&mut self) {
        self.house.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl House {
    async fn play(self: &Arc<Self>, mut heard: UnboundedReceiver<SeenDelivery>) {
        let started = Instant::now();
        for show in &self.programme.shows {
            self.until_answered(|| self.make(show)).await;
        }
        for n in 0..self.programme.visitors.len() {
            let house = Arc::clone(self);
            tokio::spawn(async move {
                visitor::visit(&house, n, started).await;
                house.open.fetch_sub(1, Ordering::Relaxed);
            });
        }
        while !self.is_stopped() {
            self.in_hand.store(true, Ordering::SeqCst);
            for event in self.stripe.take_events() {
                self.send(&event);
            }
            self.in_hand.store(false, Ordering::SeqCst);
            while let Ok(delivery) = heard.try_recv() {
                self.hear(&delivery);
            }
            tokio::time::sleep(POLL / 5).await;
        }
    }

    /// Order matters: what is not with Stripe any more is in hand or with the sender.
    fn is_over(&self) -> bool {
        let is_open = self.open.load(Ordering::SeqCst) > 0 || self.stripe.has_events();
        !is_open && !self.in_hand.load(Ordering::SeqCst) && self.sender.is_idle()
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// An announcement, or a video to be made. It may come more than once, under the id it had.
    fn hear(self: &Arc<Self>, delivery: &SeenDelivery) {
        let Ok(event) = serde_json::from_slice::<Value>(&delivery.body) else { return };
        if !locked(&self.ledger).is_news(&delivery.message) {
            return;
        }
        if delivery.path == self.settings.renderer {
            self.open.fetch_add(1, Ordering::Relaxed);
            let house = Arc::clone(self);
            tokio::spawn(async move {
                renderer::render(&house, &event).await;
                house.open.fetch_sub(1, Ordering::Relaxed);
            });
        } else {
            locked(&self.ledger).hear(&event, delivery.at_ms);
        }
    }

    /// Tells Sekisho what Stripe has to say, until it is acknowledged.
    fn send(self: &Arc<Self>, event: &Value) {
        let house = Arc::clone(self);
        let sending = self.sender.plan(event);
        tokio::spawn(async move {
            for wait in sending.waits {
                tokio::time::sleep(wait).await;
                house.until_answered(|| house.post_signed(&sending.body)).await;
                house.sender.acknowledged(&sending.id);
            }
            house.sender.done();
        });
    }

    async fn post_signed(&self, body: &str) -> Option<()> {
        let headers = self.sender.headers(body);
        self.sender.requested();
        let answer = self.ask("POST", &self.settings.webhooks, headers, body.to_owned()).await?;
        (200..300).contains(&answer.status).then_some(())
    }

    async fn make(&self, show: &DomeShow) -> Option<()> {
        let answer = self.ask("POST", "/v1/slots", self.with_key(), show.slot().to_string()).await?;
        (200..300).contains(&answer.status).then_some(())
    }

    fn with_key(&self) -> Vec<(String, String)> {
        vec![("authorization".to_owned(), format!("Bearer {}", self.settings.key))]
    }

    /// `None` when no answer came: the server may have been killed.
    async fn ask(
        &self,
        method: &'static str,
        path: &str,
        headers: Vec<(String, String)>,
        body: String,
    ) -> Option<Response> {
        let (address, path) = (self.settings.sekisho, path.to_owned());
        let asked = tokio::task::spawn_blocking(move || {
            let headers: Vec<_> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
            http::request(address, method, &path, &headers, body.as_bytes())
        });
        asked.await.ok()?.ok()
    }

    /// Asks again and again; `None` only when it ends before.
    async fn until_answered<T, F>(&self, ask: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = Option<T>>,
    {
        while !self.is_stopped() {
            if let Some(answer) = ask().await {
                return Some(answer);
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        None
    }

    /// Waits until a visitor's record says so; false when it never does.
    async fn wait_for(&self, n: usize, is_so: impl Fn(&VisitorRecord) -> bool) -> bool {
        let started = Instant::now();
        while !self.is_stopped() && started.elapsed() < PATIENCE {
            if is_so(&locked(&self.ledger).visitors[n]) {
                return true;
            }
            tokio::time::sleep(POLL).await;
        }
        false
    }
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

#[cfg(test)]
mod tests;
