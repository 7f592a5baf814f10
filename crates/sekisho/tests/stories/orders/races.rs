//! F1, F3, F5: what happens at the same moment ends the same in every order, or one of the two was first and the other is told so.

use serde_json::{Value, json};

use super::bugs::Planted;
use super::desk::{Desk, Who};
use super::ledger::{DAY, EXTRA, HOUR, MINUTE, text};
use super::life;
use super::till::{Taking, session};
use super::watched::WatchedStore;

const HALF_HOUR: i64 = 30 * MINUTE;

/// One shop on a store in memory, with two nodes.
fn shop() -> Desk {
    let store = WatchedStore::new(super::memory(), 1, 0.0, Planted::default());
    Desk::open(store, life::policy(), 2, 1, "R", 1_790_000_000_000)
}

fn play<T>(story: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(story)
}

async fn hold(desk: &Desk, number: &str) -> Option<Value> {
    let body = json!({
        "slot": "hall", "reference": number, "payment": { "amount": 1_000, "currency": "jpy" },
        "fulfilment": { "kind": "video" },
    });
    desk.hold(0, &body).await
}

/// The customer pays; what the provider says of it.
fn pays(desk: &Desk, number: &str) -> Value {
    let at = desk.now() / 1_000;
    let taking = Taking { number: number.into(), house: None, live: true, amount: 1_000, at };
    let id = desk.till.borrow_mut().take(taking);
    desk.till.borrow().tell_taking(&id)
}

async fn fire_due(desk: &Desk) {
    for (kind, id) in desk.due(false) {
        desk.fire(&kind, &id).await;
    }
}

/// Status of a booking, and the orders for refunds of its money.
async fn end(desk: &Desk, id: &str) -> (String, Vec<String>) {
    let seen = desk.look(&[id.to_owned()], &[]).await;
    let orders = seen.payments[id]["refund_orders"].as_array().unwrap().iter();
    (text(&seen.bookings[id], "status"), orders.map(|order| text(order, "trigger")).collect())
}

/// Every order of three.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

#[test]
fn f1_the_last_place_is_one_nodes_and_the_other_is_told_that_it_is_full() {
    play(async {
        let desk = shop();
        let bodies: Vec<Value> = (0..8)
            .map(|n| json!({ "slot": "hall", "reference": format!("o{n}"), "payment": { "amount": 1_000, "currency": "jpy" } }))
            .collect();
        let asked = bodies.iter().enumerate().map(|(n, body)| desk.hold(n, body));
        let answers = futures_util::future::join_all(asked).await;
        assert_eq!(answers.iter().flatten().count(), 1);
    });
}

#[test]
fn f1_a_payment_beside_the_sweep_ends_the_same_in_every_order() {
    for is_wanted in [false, true] {
        for order in ["payment first", "sweep first", "at once"] {
            play(async {
                let desk = shop();
                let id = text(&hold(&desk, "o1").await.unwrap(), "id");
                desk.wait(HALF_HOUR);
                let paid = pays(&desk, "o1");
                desk.wait(EXTRA);
                if is_wanted {
                    // Somebody has the place before either is written.
                    assert!(hold(&desk, "o2").await.is_some());
                }
                match order {
                    "payment first" => {
                        desk.hear(&[paid], 1).await;
                        fire_due(&desk).await;
                    }
                    "sweep first" => {
                        fire_due(&desk).await;
                        desk.hear(&[paid], 1).await;
                    }
                    _ => drop(tokio::join!(desk.hear(std::slice::from_ref(&paid), 1), fire_due(&desk))),
                }
                let (status, refunds) = end(&desk, &id).await;
                if is_wanted {
                    assert_eq!(
                        (&*status, &refunds[..]),
                        ("expired", &["WEBHOOK_DELAY".to_owned()][..]),
                        "{order}"
                    );
                } else {
                    assert_eq!((&*status, refunds.len()), ("confirmed", 0), "{order}");
                }
            });
        }
    }
}

#[test]
fn f1_a_voucher_beside_the_sweep_keeps_the_place() {
    for at_once in [false, true] {
        play(async {
            let desk = shop();
            let id = text(&hold(&desk, "o1").await.unwrap(), "id");
            desk.wait(HALF_HOUR + EXTRA - 1);
            let voucher = [session("o1", None, true, "complete")];
            if at_once {
                tokio::join!(desk.hear(&voucher, 1), fire_due(&desk));
            } else {
                desk.hear(&voucher, 1).await;
            }
            desk.wait(1);
            fire_due(&desk).await;
            assert_eq!(end(&desk, &id).await.0, "hold");
            desk.wait(8 * DAY);
            fire_due(&desk).await;
            assert_eq!(end(&desk, &id).await.0, "expired");
        });
    }
}

/// Nodes whose clocks are a minute apart: within the grace, nobody who paid in time loses the place.
#[test]
fn f1_clocks_that_differ_within_the_grace_take_no_paid_place() {
    for skew in [-MINUTE, -1, 1, MINUTE, EXTRA - 1] {
        play(async {
            let desk = shop();
            let id = text(&hold(&desk, "o1").await.unwrap(), "id");
            desk.wait(HALF_HOUR);
            let paid = pays(&desk, "o1");
            desk.wait(skew);
            fire_due(&desk).await;
            desk.hear(&[paid], 1).await;
            assert_eq!(end(&desk, &id).await, ("confirmed".to_owned(), Vec::new()), "{skew} ms");
        });
    }
}

#[test]
fn f1_money_in_another_currency_confirms_nothing() {
    play(async {
        let desk = shop();
        let id = text(&hold(&desk, "o1").await.unwrap(), "id");
        let mut paid = pays(&desk, "o1");
        paid["data"]["object"]["currency"] = json!("usd");
        desk.hear(&[paid], 1).await;
        let seen = desk.look(std::slice::from_ref(&id), &[]).await;
        assert_eq!(text(&seen.bookings[&id], "status"), "hold");
        assert_eq!(seen.payments[&id]["attention"], "currency_mismatch");
    });
}

#[test]
fn f3_the_app_cancels_while_the_customer_pays_and_the_money_goes_back_once() {
    for order in 0..3 {
        play(async {
            let desk = shop();
            let id = text(&hold(&desk, "o1").await.unwrap(), "id");
            let paid = [pays(&desk, "o1")];
            match order {
                0 => {
                    desk.hear(&paid, 1).await;
                    desk.cancel(&id, Who::App, true).await;
                }
                1 => {
                    desk.cancel(&id, Who::App, true).await;
                    desk.hear(&paid, 1).await;
                }
                _ => drop(tokio::join!(desk.hear(&paid, 1), desk.cancel(&id, Who::App, true))),
            }
            let (status, refunds) = end(&desk, &id).await;
            assert_eq!((&*status, refunds.len()), ("cancelled", 1), "{order}: {refunds:?}");
        });
    }
}

/// What was paid for has failed for good; says the booking and its case.
async fn failed(desk: &Desk) -> (String, String) {
    let held = hold(desk, "o1").await.unwrap();
    let (id, work) = (text(&held, "id"), text(&held, "fulfilment"));
    let paid = pays(desk, "o1");
    desk.hear(&[paid], 1).await;
    for run in 1..=3 {
        assert_eq!(desk.result(&work, run, run, "failed").await, Some(true));
    }
    let case = desk.store.written().cases.first().cloned().unwrap();
    (id, case)
}

#[test]
fn f5_ack_resolve_and_fire_in_all_orders() {
    for order in ORDERS {
        play(async {
            let desk = shop();
            let (id, case) = failed(&desk).await;
            desk.wait(DAY - 1);
            let (mut fired, mut resolved) = (false, false);
            for step in order {
                match step {
                    0 => drop(desk.say(&case, false).await),
                    1 => {
                        let may = desk.say(&case, true).await;
                        assert_eq!(may, !fired, "{order:?}: what was ordered can't be called back");
                        resolved = may;
                    }
                    _ => {
                        desk.wait(1);
                        fire_due(&desk).await;
                        fired = true;
                    }
                }
            }
            let (status, refunds) = end(&desk, &id).await;
            assert_eq!((&*status, refunds.len()), ("confirmed", usize::from(!resolved)), "{order:?}");
            let seen = desk.look(&[id], &[]).await;
            let wanted = if resolved { "resolved" } else { "acknowledged" };
            assert_eq!(text(&seen.cases[&case], "status"), wanted, "{order:?}");
            let raised = |level: u64| {
                let of = |news: &&Value| news["type"] == "case.raised" && news["about"]["level"] == level;
                desk.store.written().told.iter().filter(of).count()
            };
            assert_eq!([raised(1), raised(2), raised(3)], [1, 1, usize::from(!resolved)], "{order:?}");
        });
    }
}

#[test]
fn f5_resolve_beside_the_refund_at_24_hours_is_one_or_the_other() {
    play(async {
        let desk = shop();
        let (id, case) = failed(&desk).await;
        desk.wait(DAY);
        let (resolved, ()) = tokio::join!(desk.say(&case, true), fire_due(&desk));
        let refunds = end(&desk, &id).await.1;
        assert_eq!(refunds.len(), usize::from(!resolved), "{resolved}: {refunds:?}");
    });
}

/// Level 3 and the refund come at 24 hours, and an answer is overdue at four: neither before nor twice.
#[test]
fn f5_times_are_kept_to_the_millisecond_and_a_timer_that_comes_early_moves_nothing() {
    play(async {
        let desk = shop();
        let (id, _) = failed(&desk).await;
        let told = |kind: &str| desk.store.written().told.iter().filter(|news| news["type"] == kind).count();
        let fire_all = async || {
            for (kind, id) in desk.due(true) {
                desk.fire(&kind, &id).await;
            }
        };
        desk.wait(4 * HOUR - 1);
        fire_all().await;
        assert_eq!(told("case.overdue"), 0);
        desk.wait(1);
        fire_all().await;
        assert_eq!(told("case.overdue"), 1);
        desk.wait(20 * HOUR - 1);
        fire_all().await;
        assert_eq!(end(&desk, &id).await.1.len(), 0, "not at 23:59");
        desk.wait(1);
        fire_all().await;
        fire_all().await;
        assert_eq!(end(&desk, &id).await.1, ["RENDER_FAILURE"]);
    });
}

#[test]
fn f3_customer_and_rule_and_double_click_refund_once_in_all_orders() {
    for order in ORDERS {
        for at_once in [false, true] {
            play(async {
                let desk = shop();
                let (id, _) = failed(&desk).await;
                desk.wait(DAY);
                let step = async |n: usize| match n {
                    0 | 1 => drop(desk.cancel(&id, Who::Operator, true).await),
                    _ => fire_due(&desk).await,
                };
                if at_once {
                    tokio::join!(step(order[0]), step(order[1]), step(order[2]));
                } else {
                    for n in order {
                        step(n).await;
                    }
                }
                let (status, refunds) = end(&desk, &id).await;
                assert_eq!((&*status, refunds.len()), ("cancelled", 1), "{order:?} {at_once}: {refunds:?}");
            });
        }
    }
}
