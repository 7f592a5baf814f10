//! One visitor: comes, asks for places, and follows the course that the seed gave.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::ledger::{SoldPlace, VisitorRecord};
use super::programme::{ShowVisitor, VisitorCourse};
use super::{House, now_ms};
use crate::server::locked;

/// Stripe says when somebody paid in whole seconds: who pays late waits that long more.
const SECOND: Duration = Duration::from_millis(1_100);
/// Who cancels thinks about it first.
const THINKS: Duration = Duration::from_millis(400);

pub(super) async fn visit(house: &Arc<House>, n: usize, started: Instant) {
    let visitor = &house.programme.visitors[n];
    tokio::time::sleep(visitor.comes_after.saturating_sub(started.elapsed())).await;
    let mut waits = visitor.tries_after.iter();
    let mut tries = 0;
    let place = loop {
        tries += 1;
        let sent_ms = now_ms();
        match house.until_answered(|| ask(house, visitor, tries, sent_ms)).await {
            Some(Booked::Place(place)) => break place,
            Some(Booked::Full) => locked(&house.ledger).visitors[n].refused += 1,
            None => return,
        }
        let Some(wait) = waits.next() else {
            locked(&house.ledger).visitors[n].is_over = true;
            return;
        };
        tokio::time::sleep(*wait).await;
    };
    locked(&house.ledger).hold(n, place.clone());
    let is_over = match visitor.course {
        VisitorCourse::Abandons => house.wait_for(n, |own| own.has_heard("reservation.expired")).await,
        VisitorCourse::PaysLate => {
            house.wait_for(n, |own| own.has_heard("reservation.expired")).await;
            tokio::time::sleep(SECOND + house.settings.grace).await;
            pay(house, n);
            house.wait_for(n, VisitorRecord::is_refund_over).await
        }
        VisitorCourse::Keeps | VisitorCourse::FailsOnce => {
            pay(house, n);
            house.wait_for(n, |own| own.confirmed_ms.is_some() && own.has_heard("fulfilment.done")).await
        }
        VisitorCourse::NeverMade => {
            pay(house, n);
            house.wait_for(n, |own| own.has_heard("fulfilment.failed") && own.is_refund_over()).await
        }
        VisitorCourse::Cancels => {
            pay(house, n);
            house.wait_for(n, |own| own.confirmed_ms.is_some()).await;
            tokio::time::sleep(THINKS).await;
            cancel(house, n, &place).await;
            house.wait_for(n, |own| own.has_heard("reservation.cancelled") && own.is_refund_over()).await
        }
    };
    locked(&house.ledger).visitors[n].is_over = is_over;
}

/// What a visitor is answered.
enum Booked {
    Place(SoldPlace),
    /// Too few places are free.
    Full,
}

/// `None` when there was no answer.
async fn ask(house: &House, visitor: &ShowVisitor, tries: u32, sent_ms: u64) -> Option<Booked> {
    let show = &house.programme.shows[visitor.show];
    let hold_s = visitor.course.hold_s();
    let order = json!({
        "slot": show.id,
        "quantity": visitor.quantity,
        "hold": format!("{hold_s}s"),
        "reference": visitor.reference,
        "livemode": false,
        "payment": {
            "amount": show.price * i64::from(visitor.quantity),
            "currency": "jpy",
            "description": show.title,
        },
        "fulfilment": { "kind": "video", "tier": "paid", "name": show.title },
    });
    let mut headers = house.with_key();
    // The same try asked twice holds once.
    headers.push(("idempotency-key".to_owned(), format!("{}/{tries}", visitor.reference)));
    let answer = house.ask("POST", "/v1/reservations", headers, order.to_string()).await?;
    let answered_ms = now_ms();
    let body: Value = serde_json::from_slice(&answer.body).ok()?;
    if answer.status == 409 && body["type"].as_str().is_some_and(|kind| kind.ends_with("slot_full")) {
        return Some(Booked::Full);
    }
    if !(200..300).contains(&answer.status) {
        return None;
    }
    let text = |name: &str| body[name].as_str().map(str::to_owned);
    let page = text("customer_url")?;
    Some(Booked::Place(SoldPlace {
        reservation: text("id")?,
        payment: text("payment")?,
        page: page.find("/o/").map(|at| page[at..].to_owned())?,
        answered_ms,
        held_until_ms: sent_ms + hold_s * 1_000,
    }))
}

fn pay(house: &Arc<House>, n: usize) {
    let mut ledger = locked(&house.ledger);
    let visitor = &mut ledger.visitors[n];
    let intent = house.stripe.pay(visitor.amount, &house.programme.visitors[n].reference);
    visitor.intent = Some(intent);
}

/// On the order's page, as a person does: looks, then sends the form.
async fn cancel(house: &House, n: usize, place: &SoldPlace) {
    let path = format!("{}/cancel", place.page);
    let get = || async {
        let answer = house.ask("GET", &path, Vec::new(), String::new()).await?;
        (answer.status == 200).then_some(())
    };
    house.until_answered(get).await;
    locked(&house.ledger).visitors[n].cancel_sent_ms = Some(now_ms());
    let post = || async {
        let answer = house.ask("POST", &path, Vec::new(), String::new()).await?;
        (answer.status == 303).then_some(())
    };
    let done = house.until_answered(post).await.is_some();
    locked(&house.ledger).visitors[n].is_cancelled = done;
}
