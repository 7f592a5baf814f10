//! Random lives of a few orders that want the same places, and what must hold of all of them. What is checked is worked out
//! from what each customer did and was told, and not from how places are kept.

use super::*;

/// A generator that is the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What the outside knows of an order.
struct Customer {
    id: String,
    reference: String,
    quantity: u32,
    paid: Option<Time>,
    is_told: bool,
}

fn play(seed: u64) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 7);
    let capacity = [1, 2, 5, 300][dice.roll(4) as usize];
    let mut shop = Shop::open();
    shop.world.policy.late_payment = [LatePayment::Refund, LatePayment::Reassign][dice.roll(2) as usize];
    let mut customers: Vec<Customer> = Vec::new();
    for step in 0..40 {
        match dice.roll(8) {
            0 | 1 => {
                let quantity =
                    if capacity == 300 { 1 + dice.roll(120) as u32 } else { 1 + dice.roll(2) as u32 };
                let reference = format!("o{step}");
                let declined = shop.world.declined.len();
                let id = shop.hold(&reference, quantity, capacity);
                if shop.world.declined.len() == declined {
                    customers.push(Customer { id, reference, quantity, paid: None, is_told: false });
                }
            }
            2 | 3 if !customers.is_empty() => {
                let n = dice.roll(customers.len() as u64) as usize;
                let now = shop.world.now();
                customers[n].paid = customers[n].paid.or(Some(now));
                // The webhook comes now, or when somebody asks again.
                if dice.roll(3) > 0 {
                    customers[n].is_told = true;
                    shop.pays(&customers[n].reference, 1_000, customers[n].paid.unwrap());
                }
            }
            4 if !customers.is_empty() && dice.roll(3) == 0 => {
                let n = dice.roll(customers.len() as u64) as usize;
                let refund = dice.roll(2) == 0;
                shop.cancels(&customers[n].id, ["CUSTOMER", "ADMIN:tomo"][dice.roll(2) as usize], refund);
            }
            5 => shop.wait([1, MINUTE, 10 * MINUTE, 40 * MINUTE][dice.roll(4) as usize]),
            6 => shop.wait_unswept([1, MINUTE, 35 * MINUTE][dice.roll(3) as usize]),
            _ => {
                for customer in customers.iter_mut().filter(|one| one.paid.is_some()) {
                    customer.is_told = true;
                    shop.pays(&customer.reference, 1_000, customer.paid.unwrap());
                }
            }
        }
        check_places(&shop, &customers, capacity, seed);
    }
    // All news arrives, and all clocks run out.
    for customer in customers.iter().filter(|one| one.paid.is_some()) {
        shop.pays(&customer.reference, 1_000, customer.paid.unwrap());
    }
    shop.wait(DAY_MS);
    check_places(&shop, &customers, capacity, seed);
    for customer in &customers {
        let Customer { id, paid, .. } = customer;
        let status = shop.status(id);
        let orders = shop.refunds(id);
        let was_confirmed = shop.reservation(id).confirmed > 0;
        let is_kept = shop.reservation(id).cancelled.is_some_and(|one| !one.refund) && was_confirmed;
        assert!(orders.len() <= 1, "seed {seed}: {id} is refunded twice: {orders:?}");
        match (paid, status) {
            (Some(_), "confirmed") => assert!(orders.is_empty(), "seed {seed}: {id} has both"),
            // An operator kept the money of a sold place.
            (Some(_), _) if is_kept => assert!(orders.is_empty(), "seed {seed}"),
            (Some(_), _) => assert_eq!(orders.len(), 1, "seed {seed}: {id} is {status} and lost its money"),
            (None, status) => {
                assert!(["expired", "cancelled"].contains(&status), "seed {seed}: {id} is {status}");
                assert!(orders.is_empty(), "seed {seed}");
            }
        }
    }
    let mut told: Vec<&str> = shop.world.told.iter().map(|told| &*told.id).collect();
    let count = told.len();
    told.sort_unstable();
    told.dedup();
    assert_eq!(told.len(), count, "seed {seed}: something was told twice");
}

/// No place is two people's: those who were told that a place is theirs, and those who may still pay for one.
fn check_places(shop: &Shop, customers: &[Customer], capacity: u32, seed: u64) {
    let has_place = |customer: &&Customer| ["hold", "confirmed"].contains(&shop.status(&customer.id));
    let taken: u32 = customers.iter().filter(has_place).map(|customer| customer.quantity).sum();
    assert!(taken <= capacity, "seed {seed}: {taken} of {capacity} are taken");
}

#[test]
fn f1_places_are_sold_once_and_money_ends_confirmed_or_refunded_in_every_schedule() {
    #[allow(clippy::disallowed_methods)] // how long a test runs is no setting
    let lives = std::env::var("SEKISHO_ORDERS").ok().and_then(|lives| lives.parse().ok()).unwrap_or(3_000);
    for seed in 0..lives {
        play(seed);
    }
}
