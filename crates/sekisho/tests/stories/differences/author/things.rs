//! What sets do to things, names, books and the audit log, and how those are asked for.

use sekisho_core::audit::Entry;
use sekisho_core::state::{Index, Key, Kind, Naming, Posting, Write};
use sekisho_store::{AuditFilter, LineFilter, StateFilter};

use super::Author;

/// Few things and names, so that sets get in each other's way.
pub(super) const KINDS: [Kind; 2] = [Kind::Payment, Kind::Request];
pub(super) const THINGS: [&str; 2] = ["a", "客"];
pub(super) const NAMES: [&str; 4] = ["p:one/a/x", "p:one/三/x", "p:one/三/y", "four"];

impl Author {
    pub(super) fn thing(&mut self) -> Key {
        Key::new(KINDS[self.rng.below(2) as usize], THINGS[self.rng.below(2) as usize])
    }

    pub(super) fn write(&mut self) -> Write {
        let said = |author: &mut Self, words: [&str; 2]| {
            author.rng.chance(0.6).then(|| words[author.rng.below(2) as usize].to_owned())
        };
        let index = Index {
            status: said(self, ["paid", "open"]),
            tenant: said(self, ["t1", "t2"]),
            customer: said(self, ["客", "c"]),
            livemode: [None, Some(true), Some(false)][self.rng.below(3) as usize],
            amount: self.rng.chance(0.8).then(|| self.small()),
            currency: self.rng.chance(0.8).then(|| ["JPY", "USD"][self.rng.below(2) as usize].into()),
            attention: said(self, ["unlinked", "refund_failed"]),
        };
        let facts = format!("{{\"n\":{}}}", self.rng.below(9));
        Write { key: self.thing(), version: self.small(), facts, index }
    }

    pub(super) fn naming(&mut self) -> Naming {
        let was = self.rng.chance(0.2).then(|| self.thing());
        Naming { name: NAMES[self.rng.below(4) as usize].into(), key: self.thing(), was }
    }

    pub(super) fn posting(&mut self) -> Posting {
        Posting {
            account: self.account(),
            currency: ["JPY", "USD"][self.rng.below(2) as usize].into(),
            livemode: [None, Some(true), Some(false)][self.rng.below(3) as usize],
            amount: self.small() - 1,
            payment: THINGS[self.rng.below(2) as usize].into(),
            cause: "captured".into(),
        }
    }

    pub(super) fn payment(&mut self) -> &'static str {
        THINGS[self.rng.below(2) as usize]
    }

    pub(super) fn account(&mut self) -> String {
        ["cash", "owed"][self.rng.below(2) as usize].into()
    }

    pub(super) fn entry(&mut self) -> Entry {
        Entry {
            at: self.time(),
            actor: self.rng.chance(0.5).then(|| "mika".into()),
            role: self.rng.chance(0.5).then(|| "operator".into()),
            action: ["payment.noted", "tenant.made"][self.rng.below(2) as usize].into(),
            target: ("payment".into(), THINGS[self.rng.below(2) as usize].into()),
            tenant: self.rng.chance(0.5).then(|| "t1".into()),
            event: self.rng.chance(0.5).then(|| self.event()),
            details: "{}".into(),
        }
    }

    pub(super) fn some_names(&mut self) -> Vec<String> {
        (0..self.rng.below(4)).map(|_| NAMES[self.rng.below(4) as usize].into()).collect()
    }

    pub(super) fn state_filter(&mut self) -> StateFilter {
        let like = self.write();
        let maybe = |author: &mut Self, word: Option<String>| word.filter(|_| author.rng.chance(0.4));
        StateFilter {
            status: maybe(self, like.index.status),
            tenant: maybe(self, like.index.tenant),
            customer: maybe(self, like.index.customer),
            livemode: like.index.livemode.filter(|_| self.rng.chance(0.4)),
            attention: if self.rng.chance(0.2) {
                Some(String::new())
            } else {
                maybe(self, like.index.attention)
            },
            before: self.rng.chance(0.3).then(|| THINGS[self.rng.below(2) as usize].into()),
            ..StateFilter::all(like.key.kind, self.rng.below(4) as usize)
        }
    }

    pub(super) fn line_filter(&mut self) -> LineFilter {
        LineFilter {
            account: self.rng.chance(0.5).then(|| self.account()),
            payment: self.rng.chance(0.5).then(|| THINGS[self.rng.below(2) as usize].into()),
            before: self.rng.chance(0.3).then(|| self.small()),
            limit: self.rng.below(5) as usize,
        }
    }

    pub(super) fn audit_filter(&mut self) -> AuditFilter {
        let texts = ["payment.noted", "payment.*", "event.*", "pay%", "*", ""];
        AuditFilter {
            tenant: self.rng.chance(0.2).then(|| "t1".into()),
            action: self.rng.chance(0.4).then(|| texts[self.rng.below(6) as usize].into()),
            target: self.rng.chance(0.3).then(|| THINGS[self.rng.below(2) as usize].into()),
            actor: self.rng.chance(0.3).then(|| "mika".into()),
            since: self.rng.chance(0.2).then(|| self.time()),
            until: self.rng.chance(0.2).then(|| self.time()),
            before: self.rng.chance(0.3).then(|| self.small() + 1),
            limit: self.rng.below(5) as usize,
        }
    }
}
