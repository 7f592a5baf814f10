//! Makes histories up: a few tenants who use the same order numbers, the same Stripe customers and whatever keys they have.
//!
//! Where the rules say nothing (two orders of the whole installation under one number, and a payment that names no tenant), nothing
//! is made up either.

use std::collections::BTreeSet;

use sekisho_lab::rng::Rng;

use super::told;
use super::world::{
    Api, Buyer, Course, DAY, Dispute, Key, Life, Object, Order, Purchase, Reference, Refund, RefundEnd, Says,
    Shop, Subscription, SubscriptionObject, When, World,
};

/// One history. `mark` stands in every name, so that several can be told to one gateway.
pub fn history(seed: u64, mark: &str, now: i64) -> World {
    let mut rng = Rng::new(seed);
    let tenants = rng.between(1, 3) as usize;
    let mut author = Author {
        mark: mark.to_owned(),
        tenants: ["a", "b", "c"][..tenants].iter().map(|letter| format!("office-{letter}{mark}")).collect(),
        taken: BTreeSet::new(),
        bare: BTreeSet::new(),
        whole: BTreeSet::new(),
        world: World { now, fees: rng.chance(0.7), ..World::default() },
        rng,
    };
    for _ in 0..author.rng.between(1, 4) {
        if author.rng.chance(0.7) {
            author.sale();
        } else {
            author.subscribe();
        }
    }
    author.world
}

/// How the payments of a sale are tied to it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tie {
    /// They name tenant and order.
    Named,
    /// They name the order only, and it was posted for the whole installation.
    BareOfWhole,
    /// They name the order only, and a tenant posted it: not theirs.
    BareOfTenant,
    BareAlone,
    OurId,
    Nothing,
}

struct Author {
    rng: Rng,
    mark: String,
    tenants: Vec<String>,
    /// Order numbers in use: by tenant and mode.
    taken: BTreeSet<(Option<String>, String, bool)>,
    /// Numbers that payments without a tenant use, and numbers of orders for the whole installation.
    bare: BTreeSet<(String, bool)>,
    whole: BTreeSet<(String, bool)>,
    world: World,
}

impl Author {
    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        *self.rng.pick(all).expect("something to choose from")
    }

    fn next(&mut self, kind: &str) -> String {
        let number = self.world.parts();
        format!("z{}{kind}{number}x", self.mark)
    }

    fn sale(&mut self) {
        use Tie::{BareAlone, BareOfTenant, BareOfWhole, Named, Nothing, OurId};
        let ties =
            [Named, Named, Named, Named, BareOfWhole, BareOfWhole, BareOfTenant, BareAlone, OurId, Nothing];
        let tie = self.one_of(&ties);
        let live = self.rng.chance(0.8);
        let tenant = self.rng.pick(&self.tenants).cloned();
        let tenant = tenant.filter(|_| !matches!(tie, BareOfWhole | OurId) || self.rng.chance(0.8));
        let is_posted =
            matches!(tie, BareOfWhole | BareOfTenant | OurId) || tie == Named && self.rng.chance(0.7);
        let by = match tie {
            BareOfWhole => Key::WholeInstallation,
            BareOfTenant => Key::OwnTenant,
            _ if tenant.is_some() && self.rng.chance(0.5) => Key::OwnTenant,
            _ => Key::WholeInstallation,
        };
        let (number, is_own) =
            self.number(tie, tenant.as_deref(), is_posted && by == Key::WholeInstallation, live);
        let amount = i64::try_from(self.rng.between(10, 90)).unwrap_or(10) * 100;
        let order = is_posted.then(|| self.post(tie, &number, tenant.clone(), by, amount, live, is_own));
        let says = Says {
            tenant: tenant.filter(|_| tie == Named || tie == OurId && self.rng.chance(0.5)),
            reference: match tie {
                Named | BareOfWhole | BareOfTenant | BareAlone => Some(Reference::Text(number)),
                OurId => order.map(Reference::OurIdOf),
                Nothing => None,
            },
            ..Says::default()
        };
        self.pay(&says, amount, live, order);
    }

    /// A number that leads to one answer: one that others use too, or a new one.
    fn number(&mut self, tie: Tie, tenant: Option<&str>, for_whole: bool, live: bool) -> (String, bool) {
        let is_bare = matches!(tie, Tie::BareOfWhole | Tie::BareOfTenant | Tie::BareAlone);
        for attempt in ["1001", "1001", "1002", "1003"] {
            let number = format!("{attempt}{}", self.mark);
            let (place, owner) = ((number.clone(), live), tenant.map(str::to_owned));
            let is_ambiguous = is_bare && self.bare.contains(&place)
                || for_whole && self.whole.contains(&place)
                || for_whole && tenant.is_none();
            if !is_ambiguous && !self.taken.contains(&(owner.clone(), number.clone(), live)) {
                self.taken.insert((owner, number.clone(), live));
                if is_bare {
                    self.bare.insert(place.clone());
                }
                if for_whole {
                    self.whole.insert(place);
                }
                return (number, false);
            }
        }
        let own = self.next("n");
        (format!("{own}-{}", self.taken.len()), true)
    }

    #[expect(clippy::too_many_arguments, reason = "an order has that many sides")]
    fn post(
        &mut self,
        tie: Tie,
        number: &str,
        tenant: Option<String>,
        by: Key,
        amount: i64,
        live: bool,
        is_own_number: bool,
    ) -> usize {
        let name = self.next("o");
        let when = match tie {
            Tie::OurId => When::Before,
            _ => self.one_of(&[When::Before, When::Among, When::After]),
        };
        let is_top_up = self.rng.chance(0.12);
        self.world.orders.push(Order {
            reference: Some(number.to_owned()).filter(|_| tie != Tie::OurId || self.rng.chance(0.5)),
            by: if tenant.is_none() { Key::WholeInstallation } else { by },
            tenant,
            amount,
            live: Some(live).filter(|_| !is_own_number || self.rng.chance(0.5)),
            top_up_of: is_top_up.then(|| format!("kato{name}")),
            when,
        });
        self.world.orders.len() - 1
    }

    /// How the customer pays for it.
    fn pay(&mut self, says: &Says, amount: i64, live: bool, order: Option<usize>) {
        let is_top_up = order.is_some_and(|order| self.world.orders[order].is_top_up());
        match self.rng.below(if is_top_up { 50 } else { 100 }) {
            0..50 => {
                let course = self.any_course();
                let purchase = self.purchase(says, amount, live, course);
                self.world.purchases.push(purchase);
                self.after_sale(is_top_up);
            }
            50..65 => {
                let lost =
                    self.one_of(&[Course::Open, Course::Expired, Course::VoucherExpired, Course::Cancelled]);
                let first = self.purchase(says, amount, live, lost);
                self.world.purchases.push(first);
                let second = self.paid(says, amount, live);
                self.world.purchases.push(second);
            }
            65..74 if order.is_some() => {
                let part = self.paid(says, amount / 2, live);
                self.world.purchases.push(part);
            }
            74..80 if order.is_some() => {
                for _ in 0..2 {
                    let half = self.paid(says, amount / 2, live);
                    self.world.purchases.push(half);
                }
            }
            80..88 => {
                for _ in 0..2 {
                    let whole = self.paid(says, amount, live);
                    self.world.purchases.push(whole);
                }
            }
            88..93 if order.is_some() => {
                let mut foreign = self.purchase(says, amount, live, Course::PaidByCard);
                foreign.shop = Shop::Stripe;
                foreign.currency = "usd";
                self.world.purchases.push(marked(foreign));
            }
            93..97 if order.is_none() => {
                let free = self.purchase(says, 0, live, Course::Free);
                self.world.purchases.push(free);
            }
            _ => {
                let mut invoiced = self.purchase(says, amount, live, Course::PaidByCard);
                invoiced.shop = Shop::Stripe;
                invoiced.invoiced = true;
                self.world.purchases.push(marked(invoiced));
            }
        }
    }

    fn any_course(&mut self) -> Course {
        self.one_of(&[
            Course::Open,
            Course::Expired,
            Course::Cancelled,
            Course::VoucherOpen,
            Course::Authorised,
            Course::VoucherExpired,
            Course::PaidByCard,
            Course::PaidByCard,
            Course::PaidByCard,
            Course::PaidByVoucher,
            Course::PaidByVoucher,
            Course::PaidByCapture,
            Course::PaidByCapture,
        ])
    }

    fn paid(&mut self, says: &Says, amount: i64, live: bool) -> Purchase {
        let course = self.one_of(&[Course::PaidByCard, Course::PaidByCard, Course::PaidByVoucher]);
        self.purchase(says, amount, live, course)
    }

    fn purchase(&mut self, says: &Says, amount: i64, live: bool, course: Course) -> Purchase {
        let shop = self.shop_for(course, says.tenant.is_some());
        let declines = match shop {
            Shop::Stripe if course == Course::Free => 0,
            Shop::Stripe => self.rng.below(4).saturating_sub(1) as usize,
            _ => usize::from(course == Course::Open),
        };
        let is_paid = matches!(course, Course::PaidByCard | Course::PaidByVoucher | Course::PaidByCapture);
        let captures = match (course, shop) {
            _ if !is_paid => Vec::new(),
            (Course::PaidByCapture, Shop::Stripe | Shop::Square) if self.rng.chance(0.5) => {
                vec![amount / 5 * 2, amount - amount / 5 * 2]
            }
            (Course::PaidByCapture, Shop::Stripe | Shop::PayJp) => vec![amount / 5 * 4],
            _ => vec![amount],
        };
        let mut says = says.clone();
        let everywhere = self.rng.chance(0.4);
        for object in [Object::Session, Object::Intent, Object::Charge] {
            if says.tenant.is_some() && (everywhere || self.rng.chance(0.4)) {
                says.tenant_on.insert(object);
            }
            if says.reference.is_some() && (everywhere || self.rng.chance(0.4)) {
                says.reference_on.insert(object);
            }
        }
        let buyer = self.rng.chance(0.3).then(|| format!("cus_{}shared{live}", self.mark));
        marked(Purchase {
            name: self.next("p"),
            shop,
            live,
            at: self.world.now - 40 * DAY + self.rng.below(DAY as u64) as i64,
            amount,
            currency: "jpy",
            says,
            declines,
            course,
            captures,
            tells_fee: self.rng.chance(0.7),
            refunds: Vec::new(),
            dispute: None,
            api: self.one_of(&[Api::Old, Api::Basil]),
            buyer,
            invoiced: false,
        })
    }

    /// A provider where such a thing can happen, and where what is said can be written.
    fn shop_for(&mut self, course: Course, names_tenant: bool) -> Shop {
        let can = |shop: &Shop| shop.has_metadata() >= names_tenant && told::can_tell(*shop, course);
        let shops: Vec<_> = Shop::ALL.into_iter().filter(can).collect();
        if self.rng.chance(0.4) { Shop::Stripe } else { self.one_of(&shops) }
    }

    /// What happens to the last purchase once it was paid.
    fn after_sale(&mut self, is_top_up: bool) {
        let Some(mut paid) = self.world.purchases.pop() else { return };
        if paid.is_paid() && self.rng.chance(0.5) {
            let ends: &[RefundEnd] = match paid.shop {
                Shop::Stripe => &[
                    RefundEnd::Done,
                    RefundEnd::Done,
                    RefundEnd::Pending,
                    RefundEnd::WaitsForCustomer,
                    RefundEnd::Failed,
                    RefundEnd::Cancelled,
                ],
                Shop::Square if paid.captures.len() == 1 => {
                    &[RefundEnd::Done, RefundEnd::Pending, RefundEnd::Failed]
                }
                Shop::Square => &[],
                Shop::PayPal | Shop::Komoju | Shop::PayJp => &[RefundEnd::Done],
            };
            let parts: &[i64] = self.one_of(&[&[100][..], &[40], &[40, 60], &[30, 30], &[20, 30, 50]]);
            for part in parts.iter().filter(|_| !ends.is_empty()) {
                let end = self.one_of(ends);
                paid.refunds.push(Refund { amount: paid.received() / 100 * part, end });
            }
        } else if paid.is_paid() && !is_top_up && self.rng.chance(0.3) {
            let all = [Dispute::Open, Dispute::Won, Dispute::Lost, Dispute::LostThenWon, Dispute::Inquiry];
            paid.dispute = match paid.shop {
                Shop::Stripe => Some(self.one_of(&all)),
                Shop::PayPal => Some(self.one_of(&all[..3])),
                Shop::Komoju | Shop::PayJp | Shop::Square => None,
            };
        }
        self.world.purchases.push(paid);
    }

    /// One or two subscriptions, of customers who may have others.
    fn subscribe(&mut self) {
        let live = self.rng.chance(0.8);
        let number = self.rng.below(2);
        let id = format!("cus_{}{number}{live}", self.mark);
        if self.world.buyers.iter().all(|buyer| buyer.id != id) {
            let tenant = self.rng.pick(&self.tenants).cloned().filter(|_| number == 1);
            self.world.buyers.push(Buyer { id: id.clone(), live, tenant });
        }
        for _ in 0..self.rng.between(1, 2) {
            use SubscriptionObject::{Invoice, Session, Subscription as Itself};
            let all =
                [&[Itself][..], &[Session], &[Invoice], &[Itself, Session], &[Itself, Session, Invoice], &[]];
            let tenant_on: BTreeSet<_> = self.one_of(&all).iter().copied().collect();
            let tenant = self.rng.pick(&self.tenants).cloned().filter(|_| !tenant_on.is_empty());
            let lives = [
                Life::Trial,
                Life::TrialPaid,
                Life::Active,
                Life::PastDue,
                Life::Recovered,
                Life::Cancelled,
                Life::Forgotten,
            ];
            let name = self.next("s");
            let price = i64::try_from(self.rng.between(10, 30)).unwrap_or(10) * 100;
            let (life, api) = (self.one_of(&lives), self.one_of(&[Api::Old, Api::Basil]));
            let buyer = id.clone();
            self.world.subscriptions.push(Subscription {
                name,
                buyer,
                live,
                api,
                price,
                tenant,
                tenant_on,
                life,
            });
        }
    }
}

/// With what it says on objects that events show, and on one at least.
fn marked(mut purchase: Purchase) -> Purchase {
    let shown =
        [Object::Intent, Object::Session, Object::Charge].map(|one| purchase.shows(one).then_some(one));
    let shown: Vec<_> = shown.into_iter().flatten().collect();
    for on in [&mut purchase.says.tenant_on, &mut purchase.says.reference_on] {
        on.retain(|object| shown.contains(object));
    }
    if purchase.says.tenant.is_some() && purchase.says.tenant_on.is_empty() {
        purchase.says.tenant_on.insert(shown[0]);
    }
    if purchase.says.reference.is_some() && purchase.says.reference_on.is_empty() {
        purchase.says.reference_on.insert(shown[0]);
    }
    purchase
}
