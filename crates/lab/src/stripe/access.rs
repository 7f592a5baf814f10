//! What the secret key is good for, changed while callers are at work.

use super::Stripe;
use crate::server::locked;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyAccess {
    #[default]
    Full,
    /// A restricted key: lists and objects, and 403 for everything that would change something.
    ReadOnly,
    /// 401 for everything, as after the key was rolled.
    Refused,
}

impl Stripe {
    /// Every request gets 401, whatever key it has, until [`Stripe::accept_key`].
    pub fn refuse_key(&self) {
        self.set_access(KeyAccess::Refused);
    }

    /// The key may read and change nothing: a POST gets 403, until [`Stripe::accept_key`].
    pub fn restrict_key(&self) {
        self.set_access(KeyAccess::ReadOnly);
    }

    pub fn accept_key(&self) {
        self.set_access(KeyAccess::Full);
    }

    /// The key that is right from now on.
    pub fn set_key(&self, key: &str) {
        key.clone_into(&mut locked(&self.shared.state).key);
    }

    fn set_access(&self, access: KeyAccess) {
        locked(&self.shared.state).access = access;
    }
}
