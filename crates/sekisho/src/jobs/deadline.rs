//! A time that an order waited for has come: it is decided again, with nothing new but the clock. What is not due, or not any
//! more, changes nothing.

use std::sync::Arc;

use sekisho_core::change::{ChangeSet, Ended};
use sekisho_core::job::{End, Outcome};
use sekisho_core::queue::Failure;
use sekisho_core::settlement::follow::{OrderPart, OrderPolicy};
use sekisho_core::settlement::{Cause, Change, Input, Reading, Terms, decide, names};
use sekisho_core::state::{Key, Kind, Loaded};

use super::accounts::ApiAccounts;
use super::unwritten;
use crate::engine::{Engine, Ran, Work};
use crate::transact::{Decision, transact_in_steps};

/// Orders that are looked at at once.
pub const AT_ONCE: usize = 16;

pub struct Deadlines {
    orders: Arc<OrderPolicy>,
    accounts: Arc<ApiAccounts>,
}

impl Deadlines {
    pub fn new(orders: Arc<OrderPolicy>, accounts: Arc<ApiAccounts>) -> Self {
        Self { orders, accounts }
    }

    pub async fn run(&self, engine: &Engine, work: &Work, kind: &str, id: &str) -> Result<Ran, Failure> {
        let kind = Kind::parse(kind)
            .ok_or_else(|| Failure::terminal("unknown_timer", format!("nothing of the kind {kind} waits")))?;
        let seq = engine.node.next_seq(engine.node.now());
        let part = OrderPart::Deadline(Key::new(kind, id));
        let reading = Reading { order: vec![part], ..Reading::default() };
        let inputs = [Input { seq, reading, cause: Cause::system() }];
        let mut wanted = names(&inputs);
        let can_fetch = |realm: &str| self.accounts.can_fetch(realm);
        let ended = transact_in_steps(&*engine.store, wanted.clone(), |loaded: &Loaded| {
            let at = engine.node.now();
            let terms = Terms { can_fetch: &can_fetch, ..Terms::of(at, &self.orders) };
            match decide(&inputs, &wanted, loaded, &terms) {
                Ok(changes) => {
                    let change = changes.into_iter().next().unwrap_or_default();
                    Ok(Decision::Write(end(engine, work, change), ()))
                }
                Err(more) => {
                    wanted.extend(more.clone());
                    Ok(Decision::Load(more))
                }
            }
        });
        ended.await.map_err(|error| unwritten(error, "others changed the same order all the time"))?;
        Ok(Ran::Committed)
    }
}

/// What follows, with the end of the run.
fn end(engine: &Engine, work: &Work, change: Change) -> ChangeSet {
    let at = engine.node.now();
    let lease = work.job.lease;
    if let Some(refused) = change.refused {
        let failure = Failure::terminal("unreadable_state", refused);
        return ChangeSet::end(lease, engine.end_of_failed(work, &failure), at);
    }
    let set = change.into_set(at, || engine.node.next_seq(at));
    ChangeSet { ends: vec![Ended::new(lease, End::Done(Outcome::SUCCESS))], ..set }
}
