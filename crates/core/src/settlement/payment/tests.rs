//! The traps of payments, one by one.

use serde_json::json;

use super::samples::*;
use super::scenarios::stored;
use super::*;
use crate::settlement::decide::Aggregate;
use crate::settlement::reading::{References, UnreadableEvent};
use crate::settlement::stripe;

#[test]
fn d2_an_unpaid_session_is_not_paid() {
    let waiting = ("checkout.session.completed", session("complete", "unpaid"));
    assert_eq!(derived(std::slice::from_ref(&waiting)).status, PaymentStatus::Processing);
    let claimed = ("checkout.session.completed", session("complete", "paid"));
    assert_eq!(derived(&[waiting.clone(), claimed]).received, 0, "a session is no evidence of money");
    let failed = ("checkout.session.async_payment_failed", session("complete", "unpaid"));
    assert_eq!(derived(&[waiting, failed]).status, PaymentStatus::Failed);
    let none = json!({ "amount_total": 0, "payment_intent": null });
    let free = with(session("complete", "no_payment_required"), none);
    let mut free = facts(&[("checkout.session.completed", free)]);
    assert_eq!((Derived::of(&free).status, Derived::of(&free).amount), (PaymentStatus::Paid, 0));
    assert_eq!(ask(&mut free), ["payment.paid"], "nothing was to be paid");
}

#[test]
fn d2_a_session_expires_unless_the_customer_went_on() {
    let expired = ("checkout.session.expired", session("expired", "unpaid"));
    assert_eq!(derived(std::slice::from_ref(&expired)).status, PaymentStatus::Expired);
    assert_eq!(derived(&[expired.clone(), voucher()]).status, PaymentStatus::Processing);
    assert_eq!(derived(&[expired, paid()]).status, PaymentStatus::Paid);
}

#[test]
fn d2_a_failed_attempt_is_not_final() {
    let error = json!({ "last_payment_error": { "code": "card_declined" } });
    let declined = ("payment_intent.payment_failed", with(intent("requires_payment_method", 0), error));
    let known = facts(std::slice::from_ref(&declined));
    assert_eq!(known.intents["pi_1"].failure.as_deref(), Some("card_declined"));
    assert_eq!(Derived::of(&known).status, PaymentStatus::Failed);
    let succeeded = ("payment_intent.succeeded", intent("succeeded", 1200));
    assert_eq!(derived(&[succeeded, declined]).status, PaymentStatus::Paid, "also when it is heard of last");
}

#[test]
fn d2_only_all_intents_cancelled_is_cancelled() {
    let cancelled = ("payment_intent.canceled", intent("canceled", 0));
    assert_eq!(derived(std::slice::from_ref(&cancelled)).status, PaymentStatus::Cancelled);
    let renamed = ("payment_intent.canceled", intent("called_off", 0));
    assert_eq!(derived(&[renamed]).status, PaymentStatus::Cancelled, "the event's type says it too");
    let second = with(intent("processing", 0), json!({ "id": "pi_2" }));
    assert_eq!(
        derived(&[cancelled, ("payment_intent.processing", second)]).status,
        PaymentStatus::Processing
    );
}

#[test]
fn d2_a_captured_charge_alone_is_evidence_and_an_authorised_one_is_not() {
    assert_eq!(derived(&[paid()]).status, PaymentStatus::Paid);
    let authorised = charge(json!({ "captured": false, "amount_captured": 0 }));
    let reserved = derived(&[("charge.succeeded", authorised.clone())]);
    assert_eq!((reserved.status, reserved.received), (PaymentStatus::Processing, 0));
    let released = with(authorised, json!({ "refunded": true, "amount_refunded": 1200 }));
    let let_go =
        derived(&[("charge.refunded", released), ("payment_intent.canceled", intent("canceled", 0))]);
    assert_eq!((let_go.status, let_go.refunded), (PaymentStatus::Cancelled, 0));
    let part = charge(json!({ "amount_captured": 800 }));
    assert_eq!(derived(&[("charge.captured", part)]).received, 800);
}

#[test]
fn d2_several_charges_of_an_intent_count_each_once() {
    let failed = ("charge.failed", charge(json!({ "id": "ch_0", "status": "failed", "paid": false })));
    let succeeded = ("payment_intent.succeeded", intent("succeeded", 1200));
    assert_eq!(derived(&[failed, paid(), succeeded]).received, 1200);
    let rest = charge(json!({ "id": "ch_2", "amount_captured": 300, "amount": 300 }));
    assert_eq!(derived(&[paid(), ("charge.succeeded", rest.clone())]).received, 1500);
    let loose = with(rest, json!({ "payment_intent": null }));
    assert_eq!(derived(&[paid(), ("charge.succeeded", loose)]).received, 1500);
}

#[test]
fn d2_a_refund_before_its_charge_waits_for_it() {
    let mut known = facts(&[refund("re_1", "succeeded", 500)]);
    let early = Derived::of(&known);
    assert_eq!((early.status, early.refunded, early.attention), (PaymentStatus::Unpaid, 500, None));
    assert!(ask(&mut known).is_empty());
    assert!(lines(&known, &early).is_empty());
    let (event_type, object) = paid();
    known.join(&read(event_type, object));
    assert_eq!(ask(&mut known), ["payment.paid", "payment.partially_refunded/500"]);
    assert_eq!(booked(&lines(&known, &Derived::of(&known)), "jpy", "refunded", "sales"), 500);
}

#[test]
fn d2_a_charge_that_says_more_than_its_refunds_is_believed() {
    let said = ("charge.refunded", charge(json!({ "amount_refunded": 700 })));
    assert_eq!(derived(std::slice::from_ref(&said)).refunded, 700);
    assert_eq!(derived(&[said.clone(), refund("re_1", "succeeded", 400)]).refunded, 700);
    assert_eq!(derived(&[said, refund("re_1", "failed", 400)]).refunded, 300, "less what came back");
}

#[test]
fn d2_a_refund_whose_charge_is_not_said_is_not_counted_twice() {
    let (event_type, object) = refund("re_1", "succeeded", 400);
    let homeless = (event_type, with(object, json!({ "charge": null })));
    let said = ("charge.refunded", charge(json!({ "amount_refunded": 400 })));
    assert_eq!(derived(&[said, homeless]).refunded, 400);
}

#[test]
fn d1_a_refund_that_fails_later_gives_the_money_back() {
    let whole = ("charge.refunded", charge(json!({ "amount_refunded": 1200 })));
    let mut known = facts(&[whole, refund("re_1", "succeeded", 1200)]);
    assert_eq!(ask(&mut known), ["payment.paid", "payment.refunded/1200"]);
    let (event_type, failed) = refund("re_1", "failed", 1200);
    known.join(&read(event_type, failed));
    let (event_type, late) = refund("re_1", "succeeded", 1200);
    known.join(&read(event_type, late));
    let now = Derived::of(&known);
    assert_eq!(
        (now.status, now.refunded, now.attention),
        (PaymentStatus::Paid, 0, Some(Attention::RefundFailed))
    );
    assert_eq!(ask(&mut known), ["payment.refund_failed/re_1"]);
    let (event_type, second) = refund("re_2", "succeeded", 1200);
    known.join(&read(event_type, second));
    assert_eq!(ask(&mut known), ["payment.refunded/1200-1200"]);
    assert_ne!(
        Derived::of(&known).attention,
        Some(Attention::RefundFailed),
        "the second one reached the customer"
    );
}

#[test]
fn d2_a_dispute_is_an_axis_of_its_own() {
    let taken = json!([{ "id": "txn_2", "amount": -1200, "fee": 1300, "currency": "jpy" }]);
    let back = json!([
        { "id": "txn_2", "amount": -1200, "fee": 1300, "currency": "jpy" },
        { "id": "txn_3", "amount": 1200, "fee": 0, "currency": "jpy" },
    ]);
    let mut known = facts(&[paid(), dispute("needs_response", taken.clone())]);
    assert_eq!(ask(&mut known), ["payment.paid", "payment.disputed/du_1"]);
    let open = Derived::of(&known);
    assert_eq!((open.status, open.net_of_dispute, open.dispute_fee), (PaymentStatus::Paid, 0, 1300));
    let closed = dispute("won", back);
    assert_eq!(derived(std::slice::from_ref(&closed)).disputed_amount, 0);
    assert_eq!(derived(&[paid(), closed.clone()]).dispute_fee, 1300, "the fee is not given back");
    let won = derived(&[paid(), closed, dispute("needs_response", taken.clone())]);
    assert_eq!((won.dispute_status, won.net_of_dispute), (Some(DisputeStatus::Won), 1200));
    let mut lost = facts(&[paid(), dispute("lost", taken)]);
    assert_eq!(ask(&mut lost), ["payment.paid", "payment.dispute_lost/du_1"], "what is over is not news");
    let entries = lines(&lost, &Derived::of(&lost));
    assert_eq!(booked(&entries, "jpy", "disputed", "disputes"), 1200);
    assert_eq!(booked(&entries, "jpy", "dispute_fee", "dispute_fees"), 1300);
}

#[test]
fn d2_an_inquiry_is_no_dispute() {
    for status in ["warning_needs_response", "warning_under_review", "warning_closed", "prevented"] {
        let mut known = facts(&[paid(), dispute(status, json!([]))]);
        assert!(!Derived::of(&known).disputed, "{status}");
        assert_eq!(ask(&mut known), ["payment.paid"], "{status}");
    }
}

#[test]
fn d2_a_dispute_settled_in_another_currency_takes_the_disputed_amount() {
    let taken = json!([{ "id": "txn_2", "amount": -900, "fee": 1500, "currency": "usd" }]);
    let now = derived(&[paid(), dispute("lost", taken)]);
    assert_eq!((now.disputed_amount, now.dispute_fee), (1200, 0));
}

#[test]
fn d2_a_bank_transfer_in_parts_is_paid_when_it_is_whole() {
    let partly = ("payment_intent.partially_funded", voucher().1);
    assert_eq!(derived(std::slice::from_ref(&partly)).status, PaymentStatus::Processing);
    assert_eq!(derived(&[("payment_intent.succeeded", intent("succeeded", 1200)), partly]).received, 1200);
}

#[test]
fn d2_amounts_are_whole_numbers_in_any_currency() {
    for (currency, amount) in [("jpy", 1200), ("kwd", 12_345), ("USD", 1)] {
        let object = charge(json!({ "currency": currency, "amount_captured": amount, "amount": amount }));
        let now = derived(&[("charge.succeeded", object)]);
        let lower = currency.to_lowercase();
        assert_eq!((now.received, now.currency.unwrap().as_str()), (amount, &*lower));
    }
}

#[test]
fn d2_a_session_s_currency_and_amount_give_way_to_those_of_the_money() {
    let dollars = with(session("complete", "paid"), json!({ "currency": "aud", "amount_total": 9 }));
    let opened = ("checkout.session.completed", dollars);
    let early = derived(std::slice::from_ref(&opened));
    assert_eq!((early.amount, early.currency.unwrap().as_str()), (9, "aud"));
    let tried = with(intent("canceled", 0), json!({ "id": "pi_0", "amount": 50 }));
    let events = [opened, paid(), ("payment_intent.canceled", tried), succeeded()];
    let now = derived(&events);
    assert_eq!((now.amount, now.received, now.currency.unwrap().as_str()), (1200, 1200, "jpy"));
    let euros = charge(json!({ "id": "ch_2", "payment_intent": "pi_2", "currency": "eur" }));
    let both = derived(&[paid(), ("charge.succeeded", euros)]);
    assert_eq!((both.currency.unwrap().as_str(), both.received), ("eur", 1200));
    assert_eq!(both.attention, Some(Attention::CurrencyMismatch), "nothing is added up across currencies");
}

#[test]
fn d1_live_and_test_and_accounts_never_share_a_name() {
    let event = |livemode, account| read_of_account(livemode, account, intent("succeeded", 1200));
    let (live, test) = (event(true, None), event(false, None));
    let names =
        |part: &Facts| -> BTreeSet<String> { part.names.iter().cloned().chain(part.claims()).collect() };
    assert!(names(&live).is_disjoint(&names(&test)), "{:?}", names(&live));
    let [one, other] = [event(true, Some("acct_1")), event(true, Some("acct_2"))];
    assert!(names(&one).is_disjoint(&names(&other)), "{:?}", names(&one));
    assert!(names(&one).contains("live/acct_1/order/-/o_1"));
    let mut mixed = live;
    mixed.join(&test);
    assert_eq!(Derived::of(&mixed).attention, Some(Attention::ModeMismatch));
}

#[test]
fn d2_older_shapes_say_the_same() {
    let old = with(
        charge(
            json!({ "invoice": "in_1", "refunds": { "object": "list", "data": [refund("re_1", "succeeded", 200).1] } }),
        ),
        json!({ "amount_captured": null, "amount_refunded": 200 }),
    );
    let reading = try_read("charge.refunded", old.clone()).unwrap().unwrap();
    let invoices = &reading.billing.as_ref().unwrap().invoices;
    assert!(invoices["in_1"].intents.contains("pi_1"));
    assert_eq!(reading.billing.unwrap().names.into_iter().collect::<Vec<_>>(), ["stripe/-/live/in_1"]);
    let now = derived(&[("charge.refunded", old.clone())]);
    assert_eq!((now.received, now.refunded, now.linked), (1200, 200, true));
    let with_list = with(
        intent("succeeded", 1200),
        json!({ "charges": { "data": [old] }, "customer": { "id": "cus_1" } }),
    );
    let known = facts(&[("payment_intent.succeeded", with_list)]);
    assert_eq!((known.charges.len(), known.refunds.len()), (1, 1));
    assert!(known.provider_customers.contains("cus_1"));
}

#[test]
fn d6_unknown_words_move_nothing() {
    let strange = "brand_new_status";
    let all = [
        ("payment_intent.processing", intent(strange, 0)),
        ("charge.updated", charge(json!({ "status": strange }))),
        ("checkout.session.completed", session(strange, strange)),
        refund("re_1", strange, 100),
        dispute(strange, json!(null)),
    ];
    let now = derived(&all);
    assert_eq!((now.status, now.received, now.disputed), (PaymentStatus::Processing, 0, false));
    assert_eq!(derived(&[paid(), refund("re_1", strange, 100)]).refund_pending, 100);
    let bare = ["payment_intent", "charge", "checkout.session", "refund", "dispute", "balance_transaction"];
    for kind in bare {
        let part = read(&format!("stripe.{kind}"), json!({ "object": kind, "id": "x_1" }));
        assert_eq!(part.names.into_iter().collect::<Vec<_>>(), ["stripe/-/live/x_1"], "{kind}");
    }
}

#[test]
fn d6_an_event_without_an_object_says_nothing() {
    let thin = json!({ "type": "v1.charge.succeeded", "object": "v2.core.event", "data": {},
        "created": "2026-02-02T02:40:00.000Z", "related_object": { "id": "ch_1", "type": "charge" } });
    assert_eq!(stripe::read(&stored(&thin), &References::default()), Ok(None));
    assert_eq!(try_read("charge.succeeded", json!(null)), Ok(None));
    assert_eq!(try_read("product.created", json!({ "object": "product", "id": "prod_1" })), Ok(None));
}

#[test]
fn d6_an_unknown_type_of_a_known_object_says_nothing() {
    for event_type in ["payment_intent.brand_new", "payment_intent.", "charge.succeeded", "refund.created"] {
        assert_eq!(try_read(event_type, intent("succeeded", 1200)), Ok(None), "{event_type}");
    }
    let (_, charged) = paid();
    assert_eq!(try_read("charge.brand_new", charged), Ok(None));
}

#[test]
fn d2_what_only_belongs_together_says_nothing_of_money() {
    let object = json!({
        "object": "invoice_payment", "id": "inpay_1", "invoice": "in_1", "status": "paid",
        "payment": { "type": "payment_intent", "payment_intent": "pi_1" },
    });
    let reading = try_read("invoice_payment.paid", object).unwrap().unwrap();
    assert!(!reading.payment.unwrap().says_something());
    assert!(!reading.billing.unwrap().says_something());
    assert!(facts(&[paid()]).says_something());
}

#[test]
fn d1_a_clients_reference_names_an_order_where_the_settings_say_so() {
    let object = with(session("complete", "paid"), json!({ "client_reference_id": "T", "metadata": {} }));
    let event =
        json!({ "type": "checkout.session.completed", "livemode": true, "data": { "object": object } });
    let claims = |references: &References| {
        let reading = stripe::read(&stored(&event), references).unwrap().unwrap();
        reading.payment.unwrap().claims()
    };
    assert_eq!(claims(&References::default()), [""; 0], "it may be a customer's id");
    let said = vec!["client_reference_id".to_owned()];
    let said = References { order: said, order_if_posted: Vec::new(), ..References::default() };
    assert_eq!(claims(&said), ["live/-/order/-/T"]);
}

#[test]
fn d2_absurd_amounts_and_currencies_are_refused() {
    for amount in [json!(-1), json!(i64::MAX), json!(i64::MIN), json!(10_000_000_000_001_i64)] {
        let refused = try_read("charge.succeeded", charge(json!({ "amount_captured": amount })));
        assert!(matches!(refused, Err(UnreadableEvent::Amount(_))), "{refused:?}");
        let (event_type, entry) = transaction(json!({ "net": i64::MIN }));
        assert!(matches!(try_read(event_type, entry), Err(UnreadableEvent::Amount(_))));
    }
    for wrong in
        [json!({ "amount": 1.5 }), json!({ "amount": 1e30 }), json!({ "amount": "12" }), json!({ "id": 1 })]
    {
        let refused = try_read("charge.succeeded", charge(wrong));
        assert!(matches!(refused, Err(UnreadableEvent::Body(_))), "{refused:?}");
    }
    let refused = try_read("charge.succeeded", charge(json!({ "currency": "bitcoin" })));
    assert!(matches!(refused, Err(UnreadableEvent::Currency(_))), "{refused:?}");
}

#[test]
fn d2_a_subscription_s_session_is_no_payment() {
    let subscribed =
        with(session("complete", "paid"), json!({ "mode": "subscription", "payment_intent": null }));
    assert_eq!(try_read("checkout.session.completed", subscribed.clone()).unwrap(), None);
    let with_intent = with(subscribed, json!({ "payment_intent": "pi_1" }));
    let part = read("checkout.session.completed", with_intent);
    assert!(part.orders.is_empty(), "who subscribes is not what is ordered");
}

#[test]
fn d2_what_we_asked_for_is_what_counts() {
    let ours = |amount, currency| MerchantOrder {
        amount,
        currency: crate::money::Currency::parse(currency),
        ..MerchantOrder::default()
    };
    let cases = [
        (ours(1200, "jpy"), None),
        (ours(1000, "jpy"), Some(Attention::Overpaid)),
        (ours(1500, "jpy"), Some(Attention::Underpaid)),
        (ours(1200, "usd"), Some(Attention::CurrencyMismatch)),
    ];
    for (ours, expected) in cases {
        let mut known = facts(&[paid()]);
        assert_eq!(Derived::of(&known).attention, Some(Attention::Unlinked));
        known.ours.insert("pay_1".into(), ours.clone());
        let now = Derived::of(&known);
        assert_eq!((now.attention, now.amount, now.linked), (expected, ours.amount, true));
    }
    let many = derived(&[paid(), refund("re_1", "succeeded", 1300), succeeded()]);
    assert_eq!(many.attention, Some(Attention::OverRefunded));
}

#[test]
fn d2_a_payment_is_shown_with_everything_that_belongs_to_it() {
    let completed = ("checkout.session.completed", session("complete", "paid"));
    let known = facts(&[paid(), refund("re_1", "requires_action", 200), completed]);
    let shown = view("pay_1", &known, &Derived::of(&known));
    assert_eq!(shown["status"], "paid");
    assert_eq!((&shown["amount_received"], &shown["amount_refund_pending"]), (&json!(1200), &json!(200)));
    assert_eq!((&shown["amount_refunded"], &shown["failed_tries"]), (&json!(0), &json!(0)));
    assert_eq!(
        (&shown["currency"], &shown["livemode"], &shown["fee"]),
        (&json!("jpy"), &json!(true), &json!(null))
    );
    assert_eq!(shown["references"]["charges"], json!(["ch_1"]));
    assert_eq!(shown["references"]["orders"], json!(["o_1"]));
    assert_eq!(shown["refunds"][0]["status"], "requires_action");
    assert_eq!(shown["facts"]["charges"]["ch_1"]["captured"], 1200);
    assert!(PaymentStatus::ALL.into_iter().all(|status| PaymentStatus::parse(status.name()) == Some(status)));
}

#[test]
fn g5_of_several_addresses_the_buyers_own_is_written_to_whichever_came_first() {
    let at_checkout = with(
        session("complete", "paid"),
        json!({ "customer_email": "admin@shop.example", "customer_details": { "email": "taro@example.jp" } }),
    );
    let prefilled = with(session("open", "unpaid"), json!({ "customer_email": "admin@shop.example" }));
    let billed = json!({ "billing_details": { "email": "boss@example.jp" } });
    let receipt = with(intent("succeeded", 1200), json!({ "receipt_email": "receipts@example.jp" }));
    let events = [
        ("checkout.session.expired", prefilled),
        ("charge.succeeded", charge(billed)),
        ("payment_intent.succeeded", receipt),
        ("checkout.session.completed", at_checkout),
    ];
    let best = |facts: &Facts| facts.email().map(|address| address.whole().to_owned()).unwrap_or_default();
    let expected = ["admin@shop.example", "boss@example.jp", "receipts@example.jp", "taro@example.jp"];
    for known in 1..=events.len() {
        let mut order: Vec<_> = events[..known].to_vec();
        for _ in 0..known {
            order.rotate_left(1);
            assert_eq!(best(&facts(&order)), expected[known - 1], "{known} in {order:?}");
        }
    }
    let (mut one, mut two) = (Facts::default(), Facts::default());
    one.reached_at(Some("b@example.jp"), Till::Buyer);
    one.reached_at(Some("B@example.jp "), Till::Prefilled);
    one.reached_at(Some("no address"), Till::Buyer);
    two.reached_at(Some("a@example.jp"), Till::Buyer);
    two.reached_at(Some("b@example.jp"), Till::Billing);
    let mut other = two.clone();
    other.join(&one);
    one.join(&two);
    assert_eq!((best(&one), &one), ("a@example.jp".into(), &other), "of two alike, always the same");
}
