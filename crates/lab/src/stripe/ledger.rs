//! The requests, as they came and as they went, and what a checker asks of them.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::Stripe;
use super::books::text;
use crate::server::locked;

/// The metadata in which Sekisho writes the key of its refund order.
const ORDER_KEY: &str = "sekisho_refund";
const REFUNDS: &str = "/v1/refunds";

#[derive(Clone, Debug, PartialEq)]
pub struct StripeCall {
    pub method: String,
    /// Without its query.
    pub path: String,
    /// Of the form, or of the query when there is none: nested, every value a text.
    pub params: Value,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// `Idempotency-Key`.
    pub key: Option<String>,
    /// `Stripe-Account`.
    pub account: Option<String>,
    /// `Request-Id` of the answer; events that the request caused name it.
    pub request_id: String,
    /// When it came and when its answer was ready, counted in such moments.
    pub arrived: u64,
    pub answered: u64,
    /// What the answer says, whether or not it reaches the caller.
    pub status: u16,
    /// The connection was cut before the answer ended.
    pub is_cut: bool,
    /// Something was created or changed by this very request.
    pub worked: bool,
    /// Its id.
    pub made: Option<String>,
    pub replayed: bool,
}

impl StripeCall {
    /// `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// The payment intent or charge that it is about.
    pub fn payment(&self) -> Option<&str> {
        self.params["payment_intent"].as_str().or_else(|| self.params["charge"].as_str())
    }

    fn is_refund_post(&self) -> bool {
        self.method == "POST" && self.path == REFUNDS
    }

    /// A list of refunds that the caller could read.
    fn is_refund_list(&self) -> bool {
        self.method == "GET" && self.path == REFUNDS && self.status == 200 && !self.is_cut
    }

    /// Account and payment intent or charge.
    fn about(&self) -> About<'_> {
        (self.account.as_deref(), self.payment())
    }
}

type About<'a> = (Option<&'a str>, Option<&'a str>);

/// All requests, in the order of their answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallLedger {
    pub calls: Vec<StripeCall>,
}

impl CallLedger {
    /// How many POSTs came with each `Idempotency-Key`, whatever they were answered.
    pub fn posts_by_key(&self) -> BTreeMap<&str, usize> {
        self.by_key(|call| call.method == "POST")
    }

    /// How often each `Idempotency-Key` did its work: once, unless it was forgotten in between.
    pub fn works_by_key(&self) -> BTreeMap<&str, usize> {
        self.by_key(|call| call.worked)
    }

    fn by_key(&self, counts: impl Fn(&StripeCall) -> bool) -> BTreeMap<&str, usize> {
        let mut by_key = BTreeMap::new();
        for key in self.calls.iter().filter(|call| counts(call)).filter_map(|call| call.key.as_deref()) {
            *by_key.entry(key).or_default() += 1;
        }
        by_key
    }

    /// First refund POSTs of a key before which nobody had listed the refunds of that payment, by the same id.
    pub fn first_posts_without_list(&self) -> Vec<&StripeCall> {
        let (mut seen, lists) = (HashSet::new(), self.refund_lists());
        let mut posts = self.refund_posts();
        posts.retain(|post| seen.insert((post.account.as_deref(), post.key.as_deref())));
        posts.retain(|post| !lists.has_one_before(post, 0));
        posts
    }

    /// Refund POSTs between which and the POST before them, about the same payment, nobody listed its refunds. For one
    /// caller at a time: two callers may both look before they both post.
    pub fn posts_without_list(&self) -> Vec<&StripeCall> {
        let (mut last, lists) = (BTreeMap::new(), self.refund_lists());
        let mut posts = self.refund_posts();
        posts.retain(|post| {
            let since = last.insert(post.about(), post.arrived);
            !lists.has_one_before(post, since.unwrap_or_default())
        });
        posts
    }

    /// As they arrived.
    fn refund_posts(&self) -> Vec<&StripeCall> {
        let mut posts: Vec<_> = self.calls.iter().filter(|call| call.is_refund_post()).collect();
        posts.sort_by_key(|post| post.arrived);
        posts
    }

    fn refund_lists(&self) -> Lists<'_> {
        let mut lists = BTreeMap::<_, Vec<_>>::new();
        for call in self.calls.iter().filter(|call| call.is_refund_list()) {
            lists.entry(call.about()).or_default().push((call.arrived, call.answered));
        }
        Lists(lists)
    }
}

/// When lists about each payment came and were answered.
struct Lists<'a>(BTreeMap<About<'a>, Vec<(u64, u64)>>);

impl Lists<'_> {
    fn has_one_before(&self, post: &StripeCall, since: u64) -> bool {
        let mut lists = self.0.get(&post.about()).into_iter().flatten();
        lists.any(|(arrived, answered)| *arrived > since && *answered < post.arrived)
    }
}

impl Stripe {
    /// Every request so far, in the order of their answers.
    pub fn calls(&self) -> Vec<StripeCall> {
        locked(&self.shared.state).calls.clone()
    }

    /// [`Stripe::calls`], and forgets them: for runs that are too long to keep everything.
    pub fn take_calls(&self) -> Vec<StripeCall> {
        std::mem::take(&mut locked(&self.shared.state).calls)
    }

    pub fn ledger(&self) -> CallLedger {
        CallLedger { calls: self.calls() }
    }

    /// The refunds really made, by `metadata.sekisho_refund` (empty without it) and by payment intent or else charge,
    /// oldest first. Those that failed are among them.
    pub fn refunds_by_order(&self) -> BTreeMap<(String, String), Vec<Value>> {
        self.with_books(|books, _| {
            let mut by_order = BTreeMap::<_, Vec<_>>::new();
            for refund in books.all("refund") {
                let intent = text(refund, "payment_intent");
                let payment = if intent.is_empty() { text(refund, "charge") } else { intent };
                let order = text(&refund["metadata"], ORDER_KEY);
                by_order.entry((order, payment)).or_default().push(refund.clone());
            }
            by_order
        })
    }
}
