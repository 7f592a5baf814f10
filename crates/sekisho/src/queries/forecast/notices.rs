//! Who would be told of replayed events. What was worked out or written down before is not told again, and whoever has
//! no address gets nothing.

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::Time;
use sekisho_core::event::Stored;
use sekisho_core::job::Notify;
use sekisho_core::notification::{Notice, NoticeStatus, NotifyRule, Suppression, compose, post};
use sekisho_core::rule::{RuleError, Variables};
use sekisho_core::state::{Key, State};
use sekisho_store::{Loaded, Store, StoredMessage};

use crate::queries::context::OrderContext;
use crate::queries::notices::parties_with;
use crate::refusal::Result;
use crate::types::NoticeForecast;

/// What every rule would tell.
pub struct NoticeOutlook<'k> {
    context: &'k OrderContext,
    at: Time,
    forecasts: Vec<NoticeForecast>,
    /// Names of notices that were counted: one event may make them for all that come after it.
    counted: BTreeSet<String>,
}

impl<'k> NoticeOutlook<'k> {
    pub fn new(context: &'k OrderContext, at: Time) -> Self {
        let forecast = |rule: &NotifyRule| NoticeForecast {
            rule: rule.name.clone(),
            channel: rule.channel.clone(),
            ..NoticeForecast::default()
        };
        Self {
            context,
            at,
            forecasts: context.rules.iter().map(forecast).collect(),
            counted: BTreeSet::new(),
        }
    }

    /// Asks every rule about an event; says which have no answer.
    pub async fn ask(
        &mut self,
        store: &dyn Store,
        event: &Stored,
        variables: &Variables<'_>,
        before: &[StoredMessage],
        drafts: &BTreeMap<Key, State>,
    ) -> Result<Vec<(&'k str, RuleError)>> {
        let mut unanswered = Vec::new();
        for (n, rule) in self.context.rules.iter().enumerate() {
            match rule.matches(event, variables) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => {
                    unanswered.push((&*rule.name, error));
                    continue;
                }
            }
            let parties = parties_with(store, rule.to, event, drafts).await?;
            let notices = compose(rule, event, &parties, &self.context.house, self.at);
            let key = Notify::Tell(rule.name.clone()).key(Some(event.seq));
            if before.iter().any(|message| message.key.as_ref() == Some(&key)) {
                self.forecasts[n].told += notices.len();
                continue;
            }
            let addresses = notices.iter().filter_map(|notice| notice.to.as_ref()).map(Suppression::key);
            let names = notices.iter().map(post::name).collect();
            let loaded = store.load(names, addresses.collect()).await?;
            notices.iter().for_each(|notice| self.count(n, notice, &loaded));
        }
        Ok(unanswered)
    }

    fn count(&mut self, n: usize, notice: &Notice, loaded: &Loaded) {
        let name = post::name(notice);
        let forecast = &mut self.forecasts[n];
        if loaded.names.contains_key(&name) || !self.counted.insert(name) {
            forecast.told += 1;
            return;
        }
        let suppression = notice.to.as_ref().and_then(|to| loaded.states.get(&Suppression::key(to)));
        let is_suppressed =
            suppression.and_then(Suppression::read).is_some_and(|known| known.cause().is_some());
        let is_sent = notice.status() == NoticeStatus::Queued && !is_suppressed;
        *(if is_sent { &mut forecast.new } else { &mut forecast.unsent }) += 1;
    }

    /// Those of rules that were asked about something of theirs.
    pub fn forecasts(self) -> Vec<NoticeForecast> {
        self.forecasts.into_iter().filter(|one| one.new + one.told + one.unsent > 0).collect()
    }
}
