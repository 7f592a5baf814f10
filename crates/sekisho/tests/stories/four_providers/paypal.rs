//! PayPal: orders that buyers approve, and captures that take the money.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sekisho_lab::certificate::CertificateSigner;
use serde_json::{Value, json};

use super::{Order, Shop};
use crate::support::{Letter, each_store};

const WEBHOOK: &str = "1JE4291016473214C";
const CERTIFICATE: &str = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594";

fn yen(value: &str) -> Value {
    json!({ "currency_code": "JPY", "value": value })
}

fn event(n: &str, which: &str, kind: &str, of: &str, resource: &Value) -> Value {
    json!({
        "id": format!("WH-{which}-{n}"), "create_time": sekisho::now().to_string(), "event_type": kind,
        "resource_type": of, "resource_version": "2.0", "resource": resource,
    })
}

fn order(n: &str, kind: &str, status: &str) -> Value {
    let resource = json!({
        "id": format!("PO{n}"), "intent": "CAPTURE", "status": status,
        "payer": { "email_address": "hanako@example.com", "payer_id": "QYR5Z8XDVJNXQ" },
        "purchase_units": [{ "reference_id": "default", "custom_id": n, "amount": yen("1200") }],
    });
    event(n, status, kind, "checkout-order", &resource)
}

fn capture(n: &str, which: &str, kind: &str, status: &str) -> Value {
    let resource = json!({
        "id": format!("PC{which}{n}"), "status": status, "amount": yen("1200"), "custom_id": n, "final_capture": true,
        "supplementary_data": { "related_ids": { "order_id": format!("PO{n}") } },
        "seller_receivable_breakdown":
            { "gross_amount": yen("1200"), "paypal_fee": yen("83"), "net_amount": yen("1117") },
    });
    event(n, &format!("{which}{status}"), kind, "capture", &resource)
}

fn refund(n: &str, which: &str, kind: &str, value: &str) -> Value {
    let up = format!("https://api.paypal.com/v2/payments/captures/PC1{n}");
    let resource = json!({
        "id": format!("PR{which}{n}"), "status": "COMPLETED", "amount": yen(value),
        "links": [{ "rel": "up", "method": "GET", "href": up }],
    });
    event(n, which, kind, "refund", &resource)
}

fn dispute(n: &str, kind: &str, status: &str, outcome: Option<&str>) -> Value {
    let resource = json!({
        "dispute_id": format!("PP-D-{n}"), "status": status, "reason": "UNAUTHORISED",
        "dispute_life_cycle_stage": "CHARGEBACK", "dispute_amount": yen("1200"),
        "dispute_outcome": { "outcome_code": outcome },
        "disputed_transactions": [{ "seller_transaction_id": format!("PC1{n}") }],
    });
    event(n, status, kind, "dispute", &resource)
}

fn approved(n: &str) -> Value {
    order(n, "CHECKOUT.ORDER.APPROVED", "APPROVED")
}

fn completed(n: &str) -> Value {
    capture(n, "1", "PAYMENT.CAPTURE.COMPLETED", "COMPLETED")
}

const PAID: Order = Order {
    name: "paid",
    asked: 1200,
    events: |n| vec![approved(n), capture(n, "1", "PAYMENT.CAPTURE.PENDING", "PENDING"), completed(n)],
    status: "paid",
    received: 1200,
    refunded: 0,
    told: &["payment.paid", "payment.fee_known"],
    perhaps: &["payment.processing", "payment.failed"],
};

const ORDERS: [Order; 7] = [
    PAID,
    Order {
        name: "declined",
        events: |n| vec![approved(n), capture(n, "0", "PAYMENT.CAPTURE.DECLINED", "DECLINED")],
        status: "failed",
        received: 0,
        told: &["payment.failed"],
        ..PAID
    },
    Order {
        name: "declined-then-paid",
        events: |n| vec![approved(n), capture(n, "0", "PAYMENT.CAPTURE.DENIED", "DECLINED"), completed(n)],
        ..PAID
    },
    Order {
        name: "never-captured",
        events: |n| {
            let resource = json!({
                "order_id": format!("PO{n}"), "purchase_units": [{ "reference_id": "default", "custom_id": n }],
            });
            let mut lapsed = event(n, "l", "CHECKOUT.PAYMENT-APPROVAL.REVERSED", "", &resource);
            lapsed.as_object_mut().unwrap().remove("resource_type");
            vec![approved(n), lapsed]
        },
        status: "expired",
        received: 0,
        told: &["payment.expired"],
        ..PAID
    },
    Order {
        name: "voided",
        events: |n| vec![approved(n), order(n, "CHECKOUT.ORDER.VOIDED", "VOIDED")],
        status: "cancelled",
        received: 0,
        told: &["payment.cancelled"],
        ..PAID
    },
    Order {
        name: "refunded",
        events: |n| {
            vec![
                completed(n),
                refund(n, "1", "PAYMENT.CAPTURE.REFUNDED", "500"),
                refund(n, "2", "PAYMENT.CAPTURE.REFUNDED", "700"),
            ]
        },
        status: "refunded",
        refunded: 1200,
        told: &["payment.paid", "payment.fee_known", "payment.refunded"],
        perhaps: &["payment.partially_refunded"],
        ..PAID
    },
    Order {
        name: "disputed",
        events: |n| {
            vec![
                completed(n),
                dispute(n, "CUSTOMER.DISPUTE.CREATED", "WAITING_FOR_SELLER_RESPONSE", None),
                dispute(n, "CUSTOMER.DISPUTE.RESOLVED", "RESOLVED", Some("RESOLVED_BUYER_FAVOUR")),
                refund(n, "9", "PAYMENT.CAPTURE.REVERSED", "1200"),
            ]
        },
        status: "refunded",
        refunded: 1200,
        told: &["payment.paid", "payment.fee_known", "payment.refunded", "payment.dispute_lost"],
        perhaps: &["payment.disputed"],
        ..PAID
    },
];

#[test]
fn d2_orders_paid_by_paypal_settle_whichever_way_they_are_told() {
    each_store(|place| {
        let signer = CertificateSigner::new().unwrap();
        let pem = place.folder.path().join("paypal.pem");
        std::fs::write(&pem, signer.certificate().unwrap()).unwrap();
        let source = format!(
            "[[source]]\nname = \"paypal\"\nprovider = \"paypal\"\nwebhook_id = \"{WEBHOOK}\"\ncertificate = \"file:{}\"\n",
            pem.display()
        );
        let shop = Shop::open(place, &source, move |body| signed(&signer, body));
        shop.sell(&ORDERS);
        for id in ["POpaid-back", "PC1paid-back"] {
            assert_eq!(shop.payment(id)["reference"], "paid-back");
        }
    });
}

/// As PayPal signs: ids, a time, and a checksum of the body.
fn signed(signer: &CertificateSigner, body: &str) -> Letter {
    let (sum, time) = (crc32(body.as_bytes()), sekisho::now().to_string());
    let id = format!("{sum:08x}-d67a-11e5-baa3-778b53f4ae55");
    let text = format!("{id}|{time}|{WEBHOOK}|{sum}");
    let signature = STANDARD.encode(signer.sign(text.as_bytes()).unwrap());
    Letter::unsigned("/webhooks/paypal", body)
        .with_header("paypal-transmission-id", &id)
        .with_header("paypal-transmission-time", &time)
        .with_header("paypal-transmission-sig", &signature)
        .with_header("paypal-cert-url", CERTIFICATE)
        .with_header("paypal-auth-algo", "SHA256withRSA")
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32| if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 };
    !bytes.iter().fold(u32::MAX, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), |sum, _| step(sum)))
}
