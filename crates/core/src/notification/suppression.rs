//! Addresses that nothing is sent to, because mail to them came back or was called spam, and what such news changes.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::actor::Actor;
use crate::audit::{Entry, Role};
use crate::change::ChangeSet;
use crate::id::Seq;
use crate::mail_address::MailAddress;
use crate::state::{self, Index, Key, State, Write};
use crate::time::Time;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suppression {
    pub address: MailAddress,
    pub history: Vec<Turn>,
}

/// It was suppressed, or released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    pub at: Time,
    pub cause: SuppressionCause,
    /// What the mail server or the operator said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Who did it, if it was a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SuppressionCause {
    Bounce,
    Complaint,
    /// Entered by a person.
    Manual,
    Released,
}

impl SuppressionCause {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bounce => "bounce",
            Self::Complaint => "complaint",
            Self::Manual => "manual",
            Self::Released => "released",
        }
    }
}

/// Why a person can't enter or release an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SuppressionRefusal {
    #[error("{0} is not on the suppression list")]
    NotSuppressed(MailAddress),
    #[error("{0} is on the suppression list already: {cause}", cause = .1.name())]
    Already(MailAddress, SuppressionCause),
}

impl Suppression {
    pub fn key(address: &MailAddress) -> Key {
        Key::new(state::Kind::Suppression, address.whole())
    }

    pub fn new(address: MailAddress) -> Self {
        Self { address, history: Vec::new() }
    }

    pub fn read(state: &State) -> Option<Self> {
        serde_json::from_str(&state.facts).ok()
    }

    /// Why nothing may be sent there, if that is so.
    pub fn cause(&self) -> Option<&Turn> {
        self.history.last().filter(|turn| turn.cause != SuppressionCause::Released)
    }

    pub fn turn(&mut self, turn: Turn) {
        self.history.push(turn);
    }

    /// A person enters the address, or releases it.
    pub fn turned(
        address: &MailAddress,
        known: Option<&State>,
        cause: SuppressionCause,
        reason: &str,
        actor: &Actor<'_>,
    ) -> Result<(ChangeSet, Self), SuppressionRefusal> {
        let releases = cause == SuppressionCause::Released;
        let read = known.and_then(Self::read);
        let mut suppression = read.unwrap_or_else(|| Self::new(address.clone()));
        match suppression.cause() {
            None if releases => return Err(SuppressionRefusal::NotSuppressed(address.clone())),
            Some(turn) if !releases => {
                return Err(SuppressionRefusal::Already(address.clone(), turn.cause));
            }
            None | Some(_) => {}
        }
        let note = Some(reason.to_owned()).filter(|reason| !reason.is_empty());
        suppression.turn(Turn { at: actor.at, cause, note, by: Some(actor.name.to_owned()) });
        let action = if releases { "address.released" } else { "address.suppressed" };
        let details = json!({ "reason": reason });
        let set = ChangeSet {
            writes: vec![suppression.write(known.map_or(0, |state| state.version))],
            audit: vec![actor.entry(None, action, ("address", &address.masked()), &details)],
            ..ChangeSet::nothing(actor.at)
        };
        Ok((set, suppression))
    }

    /// What the audit log says of a turn. The address is masked; its state has it whole.
    pub fn entry(&self, action: &str, event: Option<Seq>, at: Time, details: Value) -> Entry {
        Entry {
            at,
            actor: None,
            role: Role::System.of_entry(),
            action: action.to_owned(),
            target: ("address".into(), self.address.masked()),
            tenant: None,
            event,
            details: details.to_string(),
        }
    }

    pub fn write(&self, version: i64) -> Write {
        let status = self.history.last().map(|turn| turn.cause.name().to_owned());
        Write {
            key: Self::key(&self.address),
            version,
            facts: serde_json::to_string(self).expect("a suppression is plain data"),
            index: Index {
                attention: self.cause().map(|turn| turn.cause.name().to_owned()),
                status,
                ..Index::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g2_an_address_is_suppressed_until_a_person_releases_it() {
        let mut suppression = Suppression::new("taro@example.jp".parse().unwrap());
        assert_eq!(suppression.cause(), None);
        let at = Time::from_ms(1);
        suppression.turn(Turn { at, cause: SuppressionCause::Bounce, note: Some("550".into()), by: None });
        assert_eq!(suppression.cause().map(|turn| turn.cause), Some(SuppressionCause::Bounce));
        suppression.turn(Turn { at, cause: SuppressionCause::Released, note: None, by: Some("tomo".into()) });
        assert_eq!(suppression.cause(), None);
        assert_eq!(suppression.write(3).index.attention, None);
    }
    #[test]
    fn g2_a_person_enters_an_address_once_and_releases_what_is_entered() {
        let taro: MailAddress = "taro@example.jp".parse().unwrap();
        let at = Time::from_ms(1);
        let actor = Actor { name: "tomo", role: Role::Operator, tenant: None, at };
        let turned = |known: Option<&State>, cause| Suppression::turned(&taro, known, cause, "asked", &actor);
        assert_eq!(
            turned(None, SuppressionCause::Released),
            Err(SuppressionRefusal::NotSuppressed(taro.clone()))
        );
        let (set, _) = turned(None, SuppressionCause::Manual).unwrap();
        let Write { key, version, facts, index } = set.writes[0].clone();
        assert_eq!((version, &*set.audit[0].action), (0, "address.suppressed"));
        assert!(!set.audit[0].target.1.contains("taro"), "{:?}", set.audit[0].target);
        let known = State { key, version: 1, facts, index, created_at: at, changed_at: at };
        let again = turned(Some(&known), SuppressionCause::Manual);
        assert_eq!(again, Err(SuppressionRefusal::Already(taro.clone(), SuppressionCause::Manual)));
        let (set, released) = turned(Some(&known), SuppressionCause::Released).unwrap();
        assert_eq!((set.writes[0].version, released.cause()), (1, None));
        assert_eq!((released.history.len(), &*set.audit[0].action), (2, "address.released"));
    }
}
