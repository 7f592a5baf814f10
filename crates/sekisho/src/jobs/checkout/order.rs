//! The order that a session is for: what is known of it, and what the provider is asked to sell.

use sekisho_core::Time;
use sekisho_core::language::Language;
use sekisho_core::queue::Failure;
use sekisho_core::reservation::{ReservationFacts, TAG};
use sekisho_core::settlement::follow::view;
use sekisho_core::settlement::payment::{Facts, SessionTry};
use sekisho_core::settlement::{checkout, refund};
use sekisho_core::state::{Key, Kind, Wanted};

use super::super::unavailable;
use super::Run;
use crate::effects::stripe::SessionRequest;

/// Where a session says which order it pays, if the operator has not chosen another field.
const ORDER_FIELD: &str = "order_id";

impl Run<'_> {
    /// Everything known of the payment, and of the places that are held for it.
    pub(super) async fn load(&self) -> Result<(Facts, Option<ReservationFacts>), Failure> {
        let broken = |error: serde_json::Error| Failure::terminal("unreadable_state", error.to_string());
        let name = self.call.payment_name();
        let mut wanted = Wanted::names([name.clone()]);
        loop {
            let (names, keys) = (wanted.names.iter().cloned(), wanted.keys.iter().cloned());
            let loaded =
                self.engine.store.load(names.collect(), keys.collect()).await.map_err(unavailable)?;
            let key = wanted.keys.last().or_else(|| loaded.names.get(&name));
            let Some(state) = key.and_then(|key| loaded.states.get(key)) else {
                return Ok((Facts::default(), None));
            };
            let facts = Facts::parse(&state.facts).map_err(broken)?;
            if let Some(into) = &facts.merged_into {
                wanted = Wanted::keys([Key::new(Kind::Payment, into)]);
                continue;
            }
            let id = facts.members.iter().find(|id| id.starts_with(TAG));
            let Some(key) = id.map(|id| Key::new(Kind::Reservation, id)) else { return Ok((facts, None)) };
            let loaded = self.engine.store.load(Vec::new(), vec![key.clone()]).await.map_err(unavailable)?;
            let state = loaded.states.get(&key);
            let held = state.map(|state| serde_json::from_str(&state.facts).map_err(broken)).transpose()?;
            return Ok((facts, held));
        }
    }

    /// What is sold, and where the customer goes then; the same in every run.
    pub(super) fn request(
        &self,
        facts: &Facts,
        one: &SessionTry,
        reservation: Option<&ReservationFacts>,
        expires_at: Time,
    ) -> Option<SessionRequest> {
        let sold = checkout::sold(facts)?;
        let ours = reservation.map(|facts| &facts.ours);
        let language = ours.and_then(|ours| ours.language).unwrap_or(Language::Ja);
        let id = facts.members.iter().find(|id| id.starts_with(TAG));
        let page =
            id.zip(reservation).and_then(|(id, facts)| view::reservation_link(id, facts, &self.of.orders));
        let own = self.call.payment.clone();
        let field = self.of.references.order.iter().find_map(|field| field.strip_prefix("metadata."));
        let thanks = || page.as_ref().map(|page| format!("{page}/thanks"));
        Some(SessionRequest {
            amount: sold.amount,
            currency: sold.currency,
            name: sold.description.unwrap_or_else(|| language.t("Your order", "ご注文")).to_owned(),
            reference: sold.reference.unwrap_or(&own).to_owned(),
            metadata: vec![
                (field.unwrap_or(ORDER_FIELD).to_owned(), own.clone()),
                (checkout::TRY.to_owned(), self.call.label()),
                (refund::PAYMENT.to_owned(), own),
            ],
            email: ours.and_then(|ours| ours.email.as_ref()).map(|email| email.whole().to_owned()),
            language,
            expires_at,
            success_url: one.wish.success_url.clone().or_else(thanks)?,
            cancel_url: page.map(|page| format!("{page}/failed?try={}", self.call.number)),
            methods: one.wish.methods.clone(),
        })
    }
}
