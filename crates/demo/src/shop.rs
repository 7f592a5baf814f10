//! A shop's payments and everything Stripe says of them, from a seed: the same seed is the same traffic.
//!
//! Each [`Sale`] takes one [`Course`] and knows by itself how much money moved, so that whoever reads the events can be
//! compared with somebody who never did. The requests are as Stripe's are: mixed among each other, some out of order,
//! some late, some more than once. [`Forger`] sends beside it what is not Stripe's.

mod forger;
mod objects;
mod sale;

use std::collections::BTreeMap;

use ring::hmac;

use crate::rng::Rng;
use crate::traffic::{Traffic, now_seconds, post_signed, run_of};

pub use forger::{FORGERIES, Forger};
pub use sale::{Course, Sale, ShopDispute};

/// Per cent of the events that are sent more than once, and that come much later than they should.
const REPEATED: u64 = 10;
const LATE: u64 = 2;
/// Events of so many neighbouring sales overtake each other.
const JITTER: f64 = 4.0;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShopEvent {
    pub id: String,
    pub kind: &'static str,
    pub body: String,
}

#[derive(Debug)]
pub struct Shop {
    pub sales: Vec<Sale>,
    pub events: Vec<ShopEvent>,
    /// Which event each request carries, in the order of sending.
    requests: Vec<usize>,
    /// How many of the requests up to and with each are the first of their event.
    firsts: Vec<u64>,
    path: String,
    key: hmac::Key,
}

impl Shop {
    /// So many sales, which ended by `now` in seconds since 1970. Events go to `POST path`, signed with `secret`.
    pub fn open(seed: u64, sales: u32, now: u64, path: &str, secret: &str) -> Self {
        let mut rng = Rng::new(seed);
        let run = run_of(rng.next_u64());
        let (mut made, mut events, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for n in 0..sales {
            let (sale, said) = sale::tell(&mut rng.fork(), &run, n, sales, now);
            made.push(sale);
            for (event, after) in said {
                let mut place = f64::from(n) + after + JITTER * share(&mut rng);
                if rng.below(100) < LATE {
                    place += f64::from(sales) * (0.2 + 0.4 * share(&mut rng));
                }
                places.push((place, events.len()));
                if rng.below(100) < REPEATED {
                    // At once, so that copies meet in the same moment; or when the first is long done.
                    let wait = if rng.chance(0.5) { 0.0 } else { f64::from(sales) * 0.3 * share(&mut rng) };
                    places.extend((0..rng.between(1, 2)).map(|_| (place + wait, events.len())));
                }
                events.push(event);
            }
        }
        places.sort_by(|one, other| one.0.total_cmp(&other.0));
        let requests: Vec<usize> = places.into_iter().map(|(_, event)| event).collect();
        let mut seen = vec![false; events.len()];
        let mut so_far = 0;
        let firsts = requests.iter().map(|&event| {
            so_far += u64::from(!std::mem::replace(&mut seen[event], true));
            so_far
        });
        let firsts = firsts.collect();
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        Self { sales: made, events, requests, firsts, path: path.to_owned(), key }
    }

    /// Requests in all, repeats with them.
    pub fn requests(&self) -> u64 {
        self.requests.len() as u64
    }

    /// How many of the first `requests` repeat one before them.
    pub fn repeats_among(&self, requests: u64) -> u64 {
        let last = requests.min(self.requests()).checked_sub(1);
        last.map_or(0, |last| last + 1 - self.firsts[last as usize])
    }

    /// What is left at Stripe in each currency, by its own account.
    pub fn money(&self) -> BTreeMap<&'static str, Money> {
        let mut money = BTreeMap::<_, Money>::new();
        for sale in &self.sales {
            let sum = money.entry(sale.currency).or_default();
            sum.charged += sale.charged;
            sum.refunded += sale.refunded;
            sum.disputed += sale.dispute.as_ref().map_or(0, |dispute| dispute.taken + dispute.fee);
        }
        money
    }
}

/// In the currency's smallest unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Money {
    pub charged: i64,
    pub refunded: i64,
    /// Taken by disputes and not given back, with what they cost.
    pub disputed: i64,
}

impl Money {
    pub const fn left(&self) -> i64 {
        self.charged - self.refunded - self.disputed
    }
}

impl Traffic for Shop {
    fn write(&self, n: u64, request: &mut Vec<u8>) {
        let body = self.events[self.requests[n as usize]].body.as_bytes();
        post_signed(&self.path, &self.key, now_seconds(), body, body, request);
    }

    fn event_id(&self, n: u64) -> String {
        self.events[self.requests[n as usize]].id.clone()
    }
}

/// From 0 up to 1.
fn share(rng: &mut Rng) -> f64 {
    rng.below(1 << 20) as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests;
