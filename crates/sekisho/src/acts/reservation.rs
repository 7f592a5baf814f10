//! Reservations that an app asks for: read and checked here, decided in [`holds`](super::holds), many at once.

use sekisho_core::Seq;
use sekisho_core::actor::Actor;
use sekisho_core::audit::Role;
use sekisho_core::fulfilment as ful;
use sekisho_core::money::{AMOUNT_MAX, Currency};
use sekisho_core::reservation::{ReservationFacts, ReservationRequest as Asked, TAG};
use sekisho_core::settlement::decide::Aggregate;
use sekisho_core::settlement::follow::{Hold, OrderPart, OrderPolicy};
use sekisho_core::settlement::order::MerchantRequest;
use sekisho_core::settlement::payment::{Facts as Payment, MerchantOrder, SessionWish};
use sekisho_core::settlement::{Cause, Input, Reading};
use sekisho_core::slot::{Slot, SlotName, is_slot_id};

use super::checkout::{asked, read_wish};
use crate::config::Reservations;
use crate::refusal::{Refusal, Result};
use crate::types::{FieldError, NewReservation, ReservedFulfilment};

/// Characters of texts, and bytes of what is handed to whoever makes something.
pub(super) const TEXT_MAX: usize = 200;
const DESCRIPTION_MAX: usize = 500;
const INPUT_MAX: usize = 16 << 10;
const METADATA_MAX: usize = 50;

/// A reservation that is asked for, read and checked; its ids are drawn when it is decided.
#[derive(Clone, Debug)]
pub struct HoldDraft {
    ours: Asked,
    slot: Slot,
    payment: Option<MerchantOrder>,
    fulfilment: Option<ful::FulfilmentRequest>,
    /// The session that is made for it.
    checkout: Option<SessionWish>,
    cause: Cause,
}

impl HoldDraft {
    /// What a body asks for.
    pub fn read(
        body: NewReservation,
        settings: Reservations,
        policy: &OrderPolicy,
        actor: &Actor<'_>,
    ) -> Result<Self> {
        let mut wrong: Vec<FieldError> = Vec::new();
        let mut say = |field: &str, detail: String| wrong.push(FieldError::new(field, detail));
        if !is_slot_id(&body.slot) {
            say("slot", SLOT_ID.into());
        }
        let quantity = body.quantity.unwrap_or(1);
        if !(1..=settings.quantity_max).contains(&quantity) {
            say("quantity", format!("expected 1 to {} places", settings.quantity_max));
        }
        let hold_ms = match body.hold.as_deref().map(parse_hold) {
            None => settings.hold_ms,
            Some(Some(ms)) if (1_000..=policy.delayed_max_ms).contains(&ms) => ms,
            Some(_) => {
                say(
                    "hold",
                    format!("expected a time such as 30m, up to {} hours", policy.delayed_max_ms / 3_600_000),
                );
                0
            }
        };
        for (field, text, most) in [
            ("reference", &body.reference, TEXT_MAX),
            ("customer", &body.customer, TEXT_MAX),
            ("retry_url", &body.retry_url, 2_000),
        ] {
            if text.as_deref().is_some_and(|text| !is_text(text, most)) {
                say(field, format!("expected 1 to {most} characters without control characters"));
            }
        }
        if body
            .retry_url
            .as_deref()
            .is_some_and(|url| !url.starts_with("https://") && !url.starts_with("http://"))
        {
            say("retry_url", "expected an address that begins with https://".into());
        }
        if body.metadata.len() > METADATA_MAX {
            say("metadata", format!("expected at most {METADATA_MAX} entries"));
        }
        let email = body.email.as_deref().map(str::parse);
        if let Some(Err(error)) = &email {
            say("email", format!("is {error}"));
        }
        let language = body.language.as_deref().map(str::parse);
        if let Some(Err(error)) = &language {
            say("language", format!("is {error}"));
        }
        let tenant = body.tenant.clone().or_else(|| actor.tenant.map(str::to_owned));
        let payment = body.payment.filter(|payment| payment.amount != 0).map(|payment| {
            if !(1..=AMOUNT_MAX).contains(&payment.amount) {
                say(
                    "payment.amount",
                    "expected a whole number of the currency's smallest unit, 0 or more".into(),
                );
            }
            let currency = Currency::parse(&payment.currency).filter(|currency| currency.is_known());
            if currency.is_none() {
                say(
                    "payment.currency",
                    format!("{:?} is no currency; expected one such as jpy", payment.currency),
                );
            }
            if payment.description.as_deref().is_some_and(|text| !is_text(text, DESCRIPTION_MAX)) {
                say("payment.description", format!("expected 1 to {DESCRIPTION_MAX} characters"));
            }
            MerchantOrder {
                amount: payment.amount,
                currency,
                tenant: tenant.clone(),
                customer: body.customer.clone(),
                reference: body.reference.clone(),
                for_all: actor.tenant.is_none(),
                description: payment.description,
                metadata: body.metadata.clone(),
                ..MerchantOrder::default()
            }
        });
        let livemode = body.livemode.unwrap_or(true);
        let fulfilment = body.fulfilment.map(|asked| {
            let asked = read_fulfilment(asked, &mut say);
            ful::FulfilmentRequest {
                at: actor.at,
                livemode,
                tenant: tenant.clone(),
                customer: body.customer.clone(),
                ..asked
            }
        });
        if body.checkout.is_some() && payment.is_none() {
            say("checkout", "nothing is to be paid; give payment an amount, or leave checkout out".into());
        }
        let checkout =
            body.checkout.map(|asked| read_wish(asked, "checkout.", livemode, policy, actor, &mut say));
        if !wrong.is_empty() {
            return Err(Refusal::Fields(wrong));
        }
        actor.check_tenant(tenant.as_deref())?;
        let name = SlotName { livemode, tenant: tenant.clone(), id: body.slot };
        let ours = Asked {
            slot: name.key().id,
            quantity,
            at: actor.at,
            starts_at: body.starts_at,
            livemode,
            tenant,
            reference: body.reference,
            payment: None,
            fulfilment: None,
            customer: body.customer,
            email: email.and_then(std::result::Result::ok),
            language: language.and_then(std::result::Result::ok),
            retry_url: body.retry_url,
            hold_ms,
            metadata: body.metadata,
        };
        let slot = Slot { capacity: 1, starts_at: body.starts_at, title: None };
        Ok(Self { ours, slot, payment, fulfilment, checkout, cause: cause(actor) })
    }

    /// As an input to be decided, under ids that nobody has.
    pub fn input(&self, seq: Seq) -> Input {
        let id = seq.tagged(TAG);
        let payment = self.payment.is_some().then(|| seq.tagged(Payment::TAG));
        let made = self.fulfilment.as_ref().map(|asked| {
            let ours = ful::FulfilmentRequest {
                payment: payment.clone(),
                reservation: Some(id.clone()),
                ..asked.clone()
            };
            (seq.tagged(ful::TAG), ful::FulfilmentFacts { ours, ..ful::FulfilmentFacts::default() })
        });
        let fulfilment = made.as_ref().map(|(id, _)| id.clone());
        let ours = Asked { payment, fulfilment: fulfilment.clone(), ..self.ours.clone() };
        let until = ours.at.plus_ms(ours.hold_ms);
        let hold = Hold {
            id: id.clone(),
            reservation: ReservationFacts { ours, until, ..ReservationFacts::default() },
            slot: self.slot.clone(),
            fulfilment: made,
        };
        let mut input = match &self.payment {
            Some(ours) => {
                let order = MerchantRequest { ours: ours.clone(), livemode: Some(self.ours.livemode) };
                order.input(seq, self.cause.clone())
            }
            None => Input { seq, reading: Reading::default(), cause: self.cause.clone() },
        };
        if let Some(payment) = &mut input.reading.payment {
            payment.members.insert(id);
            payment.members.extend(fulfilment);
            payment.session_tries.extend(self.checkout.clone().map(|wish| (1, asked(wish))));
        }
        input.reading.order = vec![OrderPart::Hold(Box::new(hold))];
        input
    }

    /// What no two may be asked for under at once: a reference of one tenant and mode.
    pub fn claim(&self) -> Option<String> {
        let reference = self.payment.as_ref()?.reference.as_ref()?;
        let tenant = self.ours.tenant.as_deref().unwrap_or("-");
        Some(format!("{}/{tenant}/{reference}", self.ours.livemode))
    }

    /// Whether a session is made for it.
    pub fn checks_out(&self) -> bool {
        self.checkout.is_some()
    }

    pub fn reference(&self) -> Option<&str> {
        self.ours.reference.as_deref()
    }
}

/// What may be asked for as a slot.
pub const SLOT_ID: &str = "expected 1 to 100 letters, digits, or . _ : -";

fn read_fulfilment(asked: ReservedFulfilment, say: &mut impl FnMut(&str, String)) -> ful::FulfilmentRequest {
    let tier = asked.tier.as_deref().map_or(Some(ful::Tier::Paid), ful::Tier::parse);
    if tier.is_none() {
        say("fulfilment.tier", "expected paid or free".into());
    }
    if !is_text(&asked.kind, 100) {
        say("fulfilment.kind", "expected 1 to 100 characters".into());
    }
    if asked.name.as_deref().is_some_and(|name| !is_text(name, TEXT_MAX)) {
        say("fulfilment.name", format!("expected 1 to {TEXT_MAX} characters"));
    }
    let input = asked.input.map(|input| input.to_string());
    if input.as_ref().is_some_and(|input| input.len() > INPUT_MAX) {
        say("fulfilment.input", format!("expected at most {INPUT_MAX} bytes of JSON"));
    }
    ful::FulfilmentRequest {
        kind: asked.kind,
        tier: tier.unwrap_or_default(),
        name: asked.name,
        input,
        ..ful::FulfilmentRequest::default()
    }
}

pub(super) fn is_text(text: &str, most: usize) -> bool {
    !text.trim().is_empty() && text.chars().count() <= most && !text.contains(char::is_control)
}

/// `30m`, `2h`, `90s`, `7d`.
fn parse_hold(text: &str) -> Option<i64> {
    let units = [("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let (number, unit) = units.iter().find_map(|(unit, ms)| Some((text.strip_suffix(unit)?, *ms)))?;
    number.parse::<u32>().ok().map(|number| i64::from(number) * unit)
}

pub(super) fn cause(actor: &Actor<'_>) -> Cause {
    Cause { actor: Some(actor.name.to_owned()), role: actor.role.of_entry(), ..Cause::default() }
}

/// Who acts, in the words of facts.
pub(super) fn by(actor: &Actor<'_>) -> String {
    match actor.role {
        Role::System => "SYSTEM".to_owned(),
        Role::ApiKey => format!("API:{}", actor.name),
        Role::Customer => "CUSTOMER".to_owned(),
        Role::Viewer | Role::Operator | Role::Admin => format!("ADMIN:{}", actor.name),
    }
}
