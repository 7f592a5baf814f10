//! What may be done about users: somebody stays who can let others in, a name is one person's, and an invitation works
//! once.

use serde_json::json;

use super::{Invite, User, UserAct};
use crate::actor::Actor;
use crate::change::ChangeSet;
use crate::state::{Versioned, Write};

/// Why it is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserRefusal {
    #[error("there is no user {0}")]
    Unknown(String),
    #[error("{0} is the last admin: make another user admin first")]
    LastAdmin(String),
    #[error("a user named {0} already exists; choose another name")]
    TakenName(String),
    #[error("this invitation is used, expired or unknown; ask for another")]
    NoInvite,
    #[error("too many wrong passwords: wait a quarter of an hour")]
    ShutOut,
}

impl UserRefusal {
    /// For how many seconds somebody waits who was shut out.
    pub const SHUT_OUT_SECONDS: u64 = 15 * 60;
}

/// Carries it out. The last admin keeps rank and entry; `others` are the users who may be admins besides.
pub fn change_user(
    mut user: Versioned<User>,
    act: UserAct,
    others: impl IntoIterator<Item = Versioned<User>>,
    actor: &Actor<'_>,
) -> Result<(ChangeSet, User), UserRefusal> {
    let name = user.key.id.clone();
    let was_admin = user.value.is_admin();
    let (action, details) = user.value.carry_out(act, actor.at);
    let mut writes = vec![user.write()];
    if was_admin && !user.value.is_admin() {
        let stays = others.into_iter().find(|other| other.key != user.key && other.value.is_admin());
        let stays = stays.ok_or_else(|| UserRefusal::LastAdmin(name.clone()))?;
        // The one who stays is written too, as they are: two who put each other out can't both succeed.
        writes.push(stays.write());
    }
    let audit = vec![actor.entry(None, action, ("user", &name), &details)];
    Ok((ChangeSet { writes, audit, ..ChangeSet::nothing(actor.at) }, user.value))
}

/// Somebody who takes up an invitation. The actor is the new user.
pub struct Joining<'a> {
    pub user: &'a User,
    /// Whether somebody has the name already.
    pub is_taken: bool,
    /// The invitations that were looked at, by their own id and by that of the first.
    pub invites: Vec<Versioned<Invite>>,
    /// Of the token that is shown.
    pub hash: &'a str,
    /// Who gave the invitation, if it was a user.
    pub voucher: Option<&'a User>,
}

impl Joining<'_> {
    pub fn join(self, actor: &Actor<'_>) -> Result<ChangeSet, UserRefusal> {
        let name = actor.name;
        let is_meant = |invite: &Invite| invite.opens(self.hash, self.voucher, actor.at);
        let taken = self.invites.iter().find(|invite| is_meant(&invite.value));
        let by = taken.ok_or(UserRefusal::NoInvite)?.value.by.clone();
        if self.is_taken {
            return Err(UserRefusal::TakenName(name.to_owned()));
        }
        // Once there is somebody, the link for whoever comes first is void, by whichever link they came.
        let invites = self.invites.into_iter().filter(|invite| invite.value.used_by.is_none());
        let used = invites.map(|mut invite| {
            invite.value.used_by = Some(name.to_owned());
            invite.write()
        });
        let details = json!({ "rank": self.user.rank, "by": by });
        Ok(ChangeSet {
            writes: used.chain([Write::of(&User::key(name), 0, self.user)]).collect(),
            audit: vec![actor.entry(None, "user.joined", ("user", name), &details)],
            ..ChangeSet::nothing(actor.at)
        })
    }
}

/// Takes an invitation back: its link leads nowhere from now on.
pub fn withdraw_invite(
    found: Option<Versioned<Invite>>,
    actor: &Actor<'_>,
) -> Result<ChangeSet, UserRefusal> {
    let found = found.filter(|found| found.value.is_open(actor.at));
    let mut invite = found.ok_or(UserRefusal::NoInvite)?;
    invite.value.withdrawn_by = Some(actor.name.to_owned());
    let details = json!({ "rank": invite.value.rank, "by": invite.value.by });
    let target = ("invite", invite.value.id());
    Ok(ChangeSet {
        writes: vec![invite.write()],
        audit: vec![actor.entry(None, "user.invitation_withdrawn", target, &details)],
        ..ChangeSet::nothing(actor.at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Role;
    use crate::time::Time;
    use crate::user::{FIRST_INVITE, Rank, invite_key};

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    fn actor(name: &str) -> Actor<'_> {
        Actor { name, role: Role::Admin, tenant: None, at: NOW }
    }

    fn user(name: &str, rank: Rank) -> Versioned<User> {
        Versioned { key: User::key(name), version: 2, value: User::new(rank, "hash".into(), NOW) }
    }

    fn written(set: &ChangeSet) -> Vec<(&str, i64)> {
        set.writes.iter().map(|write| (&*write.key.id, write.version)).collect()
    }

    #[test]
    fn h1_the_last_admin_stays() {
        let (mika, tomo) = (user("mika", Rank::Admin), user("tomo", Rank::Admin));
        for act in [UserAct::Disable, UserAct::Rank(Rank::Viewer)] {
            let last =
                change_user(mika.clone(), act, [mika.clone(), user("eve", Rank::Operator)], &actor("x"));
            assert_eq!(last, Err(UserRefusal::LastAdmin("mika".into())));
            let out = User { disabled_at: Some(NOW), ..tomo.value.clone() };
            let last =
                change_user(mika.clone(), act, [Versioned { value: out, ..tomo.clone() }], &actor("x"));
            assert!(last.is_err(), "who is out lets nobody in");
            let (set, _) = change_user(mika.clone(), act, [mika.clone(), tomo.clone()], &actor("x")).unwrap();
            assert_eq!(written(&set), [("mika", 2), ("tomo", 2)], "the one who stays is guarded");
        }
        let (set, _) = change_user(mika, UserAct::EndSessions, [], &actor("x")).unwrap();
        assert_eq!(written(&set), [("mika", 2)]);
    }

    #[test]
    fn h1_an_invitation_makes_one_user_and_voids_the_first() {
        let invite = |id: &str, hash: &str| Versioned {
            key: invite_key(id),
            version: 1,
            value: Invite::new(Rank::Viewer, hash.into(), None, NOW),
        };
        let new = user("mika", Rank::Viewer).value;
        let join = |invites: Vec<Versioned<Invite>>, hash: &str, is_taken: bool| {
            let joining = Joining { user: &new, is_taken, invites, hash, voucher: None };
            joining.join(&actor("mika"))
        };
        let both = || vec![invite("a", "a"), invite(FIRST_INVITE, "f")];
        let set = join(both(), "a", false).unwrap();
        assert_eq!(written(&set), [("a", 1), ("first", 1), ("mika", 0)]);
        assert_eq!(set.audit[0].action, "user.joined");
        assert_eq!(join(both(), "b", false), Err(UserRefusal::NoInvite));
        assert_eq!(join(both(), "a", true), Err(UserRefusal::TakenName("mika".into())));
        let mut used = invite("a", "a");
        used.value.used_by = Some("tomo".into());
        assert_eq!(join(vec![used], "a", false), Err(UserRefusal::NoInvite));
    }

    #[test]
    fn h1_an_invitation_that_was_taken_back_opens_nothing() {
        let invite = Invite::new(Rank::Viewer, "hash".into(), None, NOW);
        let found = Versioned { key: invite_key("hash"), version: 1, value: invite };
        let set = withdraw_invite(Some(found.clone()), &actor("tomo")).unwrap();
        assert!(set.writes[0].facts.contains(r#""withdrawn_by":"tomo""#));
        let late = Actor { at: NOW.plus_ms(i64::from(u32::MAX)), ..actor("tomo") };
        assert_eq!(withdraw_invite(Some(found), &late), Err(UserRefusal::NoInvite));
        assert_eq!(withdraw_invite(None, &actor("tomo")), Err(UserRefusal::NoInvite));
    }
}
