//! Invitations: links by which somebody becomes a user, once.
//!
//! The first is made by whoever starts the server, while there is no user. It has a fixed id, so that of several nodes and
//! several starts only the newest one works, and once.

use serde::{Deserialize, Serialize};

use super::{Rank, User, check_name};
use crate::state::{Key, Kind};
use crate::time::Time;

/// How long an invitation can be taken up.
const INVITE_MS_MAX: i64 = 24 * 3_600_000;
/// Of an invitation's hash: enough to tell invitations apart.
const ID_LETTERS: usize = 12;
/// The id of the invitation of whoever comes first; all others have their hash.
pub const FIRST_INVITE: &str = "first";

pub fn invite_key(id: &str) -> Key {
    Key::new(Kind::Invite, id)
}

/// A way in, for one person, once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invite {
    pub rank: Rank,
    /// Of its token.
    pub hash: String,
    /// Who gave it; nobody gave the first.
    pub by: Option<String>,
    pub expires_at: Time,
    /// Who took it up.
    pub used_by: Option<String>,
    /// Who took it back.
    pub withdrawn_by: Option<String>,
}

impl Invite {
    pub fn new(rank: Rank, hash: String, by: Option<String>, now: Time) -> Self {
        Self { rank, hash, by, expires_at: now.plus_ms(INVITE_MS_MAX), used_by: None, withdrawn_by: None }
    }

    pub fn is_open(&self, now: Time) -> bool {
        self.used_by.is_none() && self.withdrawn_by.is_none() && self.expires_at > now
    }

    /// What it is called by whoever may not know its token.
    pub fn id(&self) -> &str {
        self.hash.get(..ID_LETTERS).unwrap_or(&self.hash)
    }

    /// Who must still be an admin for it to be worth something, if it was a user. At a terminal, anybody can give one.
    pub fn voucher(&self) -> Option<&str> {
        self.by.as_deref().filter(|by| check_name(by).is_ok())
    }

    /// Whether it can be taken up with a token of this hash. `voucher` is the user who gave it, as far as there is one.
    pub fn opens(&self, hash: &str, voucher: Option<&User>, now: Time) -> bool {
        let is_vouched = self.voucher().is_none() || voucher.is_none_or(User::is_admin);
        self.hash == hash && self.is_open(now) && is_vouched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    #[test]
    fn h1_an_invitation_is_taken_up_once_and_in_time() {
        let mut invite = Invite::new(Rank::Admin, "hash".into(), None, NOW);
        assert!(invite.is_open(NOW) && !invite.is_open(NOW.plus_ms(INVITE_MS_MAX)));
        invite.used_by = Some("mika".into());
        assert!(!invite.is_open(NOW));
    }

    #[test]
    fn h1_an_invitation_is_worth_what_its_giver_may_do_now() {
        let user = |rank| User::new(rank, "hash".into(), NOW);
        let invite = |by: &str| Invite::new(Rank::Admin, "hash".into(), Some(by.to_owned()), NOW);
        assert!(invite("eve").opens("hash", Some(&user(Rank::Admin)), NOW));
        assert!(!invite("eve").opens("other", Some(&user(Rank::Admin)), NOW));
        assert!(!invite("eve").opens("hash", Some(&user(Rank::Viewer)), NOW));
        let out = User { disabled_at: Some(NOW), ..user(Rank::Admin) };
        assert!(!invite("eve").opens("hash", Some(&out), NOW));
        assert!(invite("cli:tomo").opens("hash", None, NOW), "no user can be called so");
    }
}
