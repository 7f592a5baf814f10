//! Whether the evidence holds together. Each check says what it looked at, and what is wrong if something is.

use sekisho_core::audit::{Hash, link};
use sekisho_core::provider::encode_hex;
use serde_json::Value;

use super::{Evidence, Hook, details};
use crate::types::ProofCheck;

fn check(name: &str, looked_at: usize, faults: Vec<String>) -> ProofCheck {
    let fault = Some(faults.join("; ")).filter(|_| !faults.is_empty());
    ProofCheck { name: name.to_owned(), passed: fault.is_none(), looked_at, fault }
}

impl Evidence {
    /// `shown` is the payment as it stands.
    pub(super) fn checks(&self, shown: &Value) -> Vec<ProofCheck> {
        vec![self.entries(), self.links(), self.order(), self.bodies(), self.standing(shown), self.books()]
    }

    /// Every entry about the payment hangs on a link.
    fn entries(&self) -> ProofCheck {
        let hooks = self.hooks.iter().filter(|hook| !hook.link.hash.is_empty());
        let hanging: Vec<i64> = hooks.flat_map(|hook| &hook.link.entries).map(|one| one.number).collect();
        let loose = self.dossier.entries.iter().filter(|one| !hanging.contains(&one.number));
        let faults = loose.map(|one| format!("entry {} belongs to no link: it was inserted", one.number));
        check("entries", self.dossier.entries.len(), faults.collect())
    }

    /// Every link's hash is that of its entries.
    fn links(&self) -> ProofCheck {
        let faults = self.hooks.iter().filter(|hook| !fits(hook)).map(|hook| {
            let (chain, n) = (hook.link.chain, hook.link.n);
            format!("link {n} of chain {chain} does not fit its entries: one was changed, removed or added")
        });
        check("links", self.hooks.len(), faults.collect())
    }

    /// What comes after a link, or the head of its chain, says the same of it.
    fn order(&self) -> ProofCheck {
        let faults = self.hooks.iter().filter(|hook| !self.is_followed(hook)).map(|hook| {
            format!("what follows link {} of chain {} says another hash of it", hook.link.n, hook.link.chain)
        });
        check("order", self.hooks.len(), faults.collect())
    }

    fn is_followed(&self, hook: &Hook) -> bool {
        let Hook { link, followed_as } = hook;
        let head = self.heads.iter().find(|head| head.chain == link.chain);
        match followed_as {
            Some(hash) => *hash == link.hash,
            None => head.is_some_and(|head| head.n != link.n || head.hash == link.hash),
        }
    }

    /// The body of every event is the one that was settled.
    fn bodies(&self) -> ProofCheck {
        let sealed = self.sealed();
        let there = sealed.iter().filter_map(|(seq, entry)| Some((seq, entry, self.digests.get(seq)?)));
        let (mut looked_at, mut faults) = (0, Vec::new());
        for (seq, entry, digest) in there {
            looked_at += 1;
            if details(entry).body_sha256.as_ref() != Some(&digest.body_sha256) {
                let id = seq.as_event();
                faults.push(format!("the body of {id} is not the one that was processed: it was changed"));
            }
        }
        check("bodies", looked_at, faults)
    }

    /// It stands where the last decision put it.
    fn standing(&self, shown: &Value) -> ProofCheck {
        let id = &self.dossier.state.key.id;
        let own = self.dossier.entries.iter().rev().filter(|one| one.entry.target.1 == *id);
        let after = own.map(|one| details(one).after).find(Value::is_object);
        let Some(after) = after else {
            return check("standing", 0, vec!["the log has no decision about it".into()]);
        };
        let differs = |(name, value): &(&String, &Value)| shown[name.as_str()] != **value;
        let faults = after.as_object().into_iter().flatten().filter(differs).map(|(name, value)| {
            format!("{name} is {}, but the last decision says {value}", shown[name.as_str()])
        });
        check("standing", 1, faults.collect())
    }

    /// The books say what the facts say.
    fn books(&self) -> ProofCheck {
        let faults = self.differences.iter().map(ToString::to_string);
        check("books", self.dossier.lines.len(), faults.collect())
    }
}

fn fits(hook: &Hook) -> bool {
    let Ok(previous) = Hash::try_from(hook.link.previous.as_slice()) else { return false };
    let digests = hook.link.entries.iter().map(|one| one.entry.digest());
    encode_hex(link(&previous, digests)) == encode_hex(&hook.link.hash)
}
