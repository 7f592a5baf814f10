//! What the provider says of a session, in the words of a payment's facts.

use sekisho_core::job::{CheckoutStep, End, Outcome};
use sekisho_core::queue::Failure;
use sekisho_core::settlement::checkout::MadeSession;
use sekisho_core::settlement::payment::{Facts, SessionTry};
use sekisho_core::settlement::{self, Fetch};

use super::{Outset, Run};
use crate::effects::stripe;

impl Run<'_> {
    /// What the provider says of a session, and of its intent, as it is joined with what is known.
    pub(super) fn learn(
        &self,
        session: &stripe::ApiObject,
        intent: Option<&(String, stripe::ApiObject)>,
    ) -> Result<Outset, Failure> {
        let broken = || Failure::transient("broken", "the answer is no session of this try");
        let made = MadeSession::read(session.get()).ok_or_else(broken)?;
        let is_told = matches!(self.call.step, CheckoutStep::Expire { .. });
        if !is_told && made.label.as_deref() != Some(&*self.call.label()) {
            return Err(broken());
        }
        let sessions = [(made.id.clone(), made.place)].into();
        let mut inputs = vec![self.call.input(self.seq(), SessionTry { sessions, ..SessionTry::default() })];
        let objects = [
            Some(("checkout.session", &made.id, session)),
            intent.map(|(id, one)| ("payment_intent", id, one)),
        ];
        let facts = inputs[0].reading.payment.as_mut().ok_or_else(broken)?;
        for (object, id, answer) in objects.into_iter().flatten() {
            facts.join(&self.reading(object, id, answer).ok_or_else(broken)?);
        }
        Ok((inputs, End::Done(Outcome::SUCCESS)))
    }

    fn reading(&self, object: &str, id: &str, answer: &stripe::ApiObject) -> Option<Facts> {
        let fetch = Fetch {
            provider: self.call.provider,
            account: None,
            livemode: self.call.livemode,
            object: object.to_owned(),
            id: id.to_owned(),
            after_days: 0,
            moment: None,
            trace: None,
        };
        let event = fetch.arrival(self.seq(), self.now(), answer).stored();
        settlement::read(Fetch::origin(&event), &event, &self.of.references).ok()??.payment
    }
}
