//! Stripe's objects as they stand in events, with the fields that a shop's handler looks at.

use serde_json::{Value, json};

use crate::rng::Rng;

/// What somebody buys.
pub struct ShopOrder {
    run: String,
    n: u32,
    pub amount: i64,
    pub currency: &'static str,
    pub has_checkout: bool,
    buyer: (&'static str, &'static str),
    tenant: &'static str,
    goods: &'static str,
}

/// Name, and the part of the address before the @.
const BUYERS: [(&str, &str); 12] = [
    ("佐藤 花子", "hanako.sato"),
    ("鈴木 一郎", "ichiro.suzuki"),
    ("高橋 美咲", "misaki.takahashi"),
    ("田中 健太", "kenta.tanaka"),
    ("渡辺 さくら", "sakura.watanabe"),
    ("山本 大輔", "daisuke.yamamoto"),
    ("小林 陽菜", "hina.kobayashi"),
    ("ヨハンソン エリック", "erik.johansson"),
    ("Maria García", "maria.garcia"),
    ("Seán O'Brien", "sean.obrien"),
    ("Zoë Müller", "zoe.mueller"),
    ("Nguyễn Thị Lan", "lan.nguyen"),
];
const TENANTS: [&str; 4] = ["tokyo", "osaka", "sapporo", "naha"];
const GOODS: [&str; 8] = [
    "星空プロジェクション 30分",
    "誕生日ムービー",
    "結婚式スライドショー",
    "卒業記念ビデオ",
    "桜まつり 壁面投影",
    "Aurora night, 20 min",
    "Birthday film",
    "Anniversary slideshow",
];
/// One sale in so many is in dollars.
const DOLLARS_EVERY: u64 = 8;

impl ShopOrder {
    pub fn make(rng: &mut Rng, run: &str, n: u32) -> Self {
        let in_dollars = rng.below(DOLLARS_EVERY) == 0;
        // Yen by the ten, dollars by the cent.
        let (currency, amount) = if in_dollars {
            ("usd", rng.between(900, 25_000) as i64)
        } else {
            ("jpy", rng.between(98, 4_800) as i64 * 10)
        };
        Self {
            run: run.to_owned(),
            n,
            amount,
            currency,
            has_checkout: rng.chance(0.5),
            buyer: *rng.pick(&BUYERS).expect("there are buyers"),
            tenant: rng.pick(&TENANTS).expect("there are tenants"),
            goods: rng.pick(&GOODS).expect("there are goods"),
        }
    }

    /// `pi_…`, `ch_…`: Stripe's id of what belongs to this order.
    pub fn id(&self, prefix: &str) -> String {
        format!("{prefix}_{}{:06}", self.run, self.n)
    }

    fn email(&self) -> String {
        format!("{}@example.test", self.buyer.1)
    }

    fn metadata(&self) -> Value {
        json!({
            "order_id": format!("ORD-{}-{:06}", self.run, self.n),
            "tenant_id": self.tenant,
            "customer_id": self.buyer.1,
            "customer_name": self.buyer.0,
            "item": self.goods,
        })
    }
}

pub fn intent(order: &ShopOrder, status: &str, received: i64, error: Option<&str>) -> Value {
    let error = error.map(|code| {
        let charge = order.id("chf");
        json!({ "charge": charge, "code": code, "type": "card_error", "message": "Your card was declined." })
    });
    json!({
        "id": order.id("pi"),
        "object": "payment_intent",
        "amount": order.amount,
        "amount_received": received,
        "capture_method": "automatic_async",
        "currency": order.currency,
        "customer": format!("cus_{}", order.buyer.1.replace('.', "")),
        "description": order.goods,
        "last_payment_error": error,
        "latest_charge": (received > 0).then(|| order.id("ch")),
        "livemode": false,
        "metadata": order.metadata(),
        "next_action": (status == "requires_action").then(|| json!({ "type": "konbini_display_details" })),
        "payment_method": order.id("pm"),
        "payment_method_types": ["card", "konbini"],
        "receipt_email": order.email(),
        "status": status,
    })
}

/// `captured` 0 is a charge that failed.
pub fn charge(order: &ShopOrder, prefix: &str, captured: i64, refunded: i64) -> Value {
    let worked = captured > 0;
    json!({
        "id": order.id(prefix),
        "object": "charge",
        "amount": order.amount,
        "amount_captured": captured,
        "amount_refunded": refunded,
        "balance_transaction": null,
        "billing_details": { "email": order.email(), "name": order.buyer.0, "phone": null },
        "captured": worked,
        "currency": order.currency,
        "description": order.goods,
        "failure_code": (!worked).then_some("card_declined"),
        "livemode": false,
        "metadata": order.metadata(),
        "paid": worked,
        "payment_intent": order.id("pi"),
        "payment_method": order.id("pm"),
        "receipt_url": format!("https://pay.example.test/receipts/{}", order.id(prefix)),
        "refunded": worked && refunded == captured,
        "status": if worked { "succeeded" } else { "failed" },
    })
}

pub fn session(order: &ShopOrder) -> Value {
    json!({
        "id": order.id("cs"),
        "object": "checkout.session",
        "amount_total": order.amount,
        "client_reference_id": order.metadata()["order_id"],
        "currency": order.currency,
        "customer_details": { "email": order.email(), "name": order.buyer.0 },
        "livemode": false,
        "metadata": order.metadata(),
        "mode": "payment",
        "payment_intent": order.id("pi"),
        "payment_status": "paid",
        "status": "complete",
    })
}

pub fn refund(order: &ShopOrder, which: &str, status: &str, amount: i64) -> Value {
    json!({
        "id": order.id("re") + which,
        "object": "refund",
        "amount": amount,
        "charge": order.id("ch"),
        "currency": order.currency,
        "payment_intent": order.id("pi"),
        "reason": "requested_by_customer",
        "status": status,
    })
}

/// `moved` are the entries of Stripe's books: amount and fee.
pub fn dispute(order: &ShopOrder, status: &str, moved: &[(i64, i64)]) -> Value {
    let entry = |(n, (amount, fee)): (usize, &(i64, i64))| {
        json!({
            "id": format!("{}d{n}", order.id("txn")),
            "object": "balance_transaction",
            "amount": amount,
            "currency": order.currency,
            "fee": fee,
            "net": amount - fee,
            "source": order.id("du"),
            "type": "adjustment",
        })
    };
    json!({
        "id": order.id("du"),
        "object": "dispute",
        "amount": order.amount,
        "balance_transactions": moved.iter().enumerate().map(entry).collect::<Vec<_>>(),
        "charge": order.id("ch"),
        "currency": order.currency,
        "livemode": false,
        "payment_intent": order.id("pi"),
        "reason": "fraudulent",
        "status": status,
    })
}
