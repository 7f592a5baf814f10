//! Links from what is shown to things that may have been deleted meanwhile.

use sekisho_core::directory::Register;
use sekisho_core::state::{Key, Kind};

use super::{
    About, Billing, Customer, Dated, DeadLetter, DeadLetterDetail, Event, EventDetail, Member, Payment,
};
use super::{Staff, Subject};

/// Where a thing is kept, and the field that leads to it.
pub type Link<'a> = (Key, &'a mut Option<String>);

/// What leads to tenants, customers or billing.
pub trait Linked {
    fn links(&mut self) -> Vec<Link<'_>>;
}

/// Whose a thing is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    pub tenant: Option<String>,
    pub customer: Option<String>,
}

impl Linked for Owner {
    fn links(&mut self) -> Vec<Link<'_>> {
        to_owner(&mut self.tenant, &mut self.customer)
    }
}

fn to_owner<'a>(tenant: &'a mut Option<String>, customer: &'a mut Option<String>) -> Vec<Link<'a>> {
    let key = customer.as_deref().map(|id| Register::Customers.key(tenant.as_deref(), id));
    let to_customer = key.map(|key| (key, customer));
    to_tenant(tenant).into_iter().chain(to_customer).collect()
}

fn to_tenant(tenant: &mut Option<String>) -> Option<Link<'_>> {
    let key = Register::Tenants.key(None, tenant.as_deref()?);
    Some((key, tenant))
}

impl Linked for About {
    fn links(&mut self) -> Vec<Link<'_>> {
        let to_billing = self.billing.as_deref().map(|id| Key::new(Kind::Billing, id));
        let to_billing = to_billing.map(|key| (key, &mut self.billing));
        to_tenant(&mut self.tenant).into_iter().chain(to_billing).collect()
    }
}

impl Linked for Event {
    fn links(&mut self) -> Vec<Link<'_>> {
        self.about.links()
    }
}

impl Linked for EventDetail {
    fn links(&mut self) -> Vec<Link<'_>> {
        self.event.links()
    }
}

impl Linked for DeadLetter {
    fn links(&mut self) -> Vec<Link<'_>> {
        self.about.links()
    }
}

impl Linked for DeadLetterDetail {
    fn links(&mut self) -> Vec<Link<'_>> {
        self.letter.links()
    }
}

impl Linked for Payment {
    fn links(&mut self) -> Vec<Link<'_>> {
        to_owner(&mut self.tenant, &mut self.customer)
    }
}

impl Linked for Billing {
    fn links(&mut self) -> Vec<Link<'_>> {
        to_tenant(&mut self.tenant).into_iter().collect()
    }
}

impl Linked for Member {
    fn links(&mut self) -> Vec<Link<'_>> {
        let link = match self {
            Self::Tenant(_) => None,
            Self::Customer(Customer { tenant, .. })
            | Self::Staff(Staff { tenant, .. })
            | Self::Subject(Subject { tenant, .. }) => to_tenant(tenant),
        };
        link.into_iter().collect()
    }
}

impl<T: Linked> Linked for Dated<T> {
    fn links(&mut self) -> Vec<Link<'_>> {
        self.thing.links()
    }
}
