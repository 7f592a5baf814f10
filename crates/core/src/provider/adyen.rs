//! Adyen, in its two ways. Payment notifications carry one signature per item inside the JSON, over eight of its
//! fields: all other fields, the date among them, are unproven. Platform and management webhooks sign the whole body
//! in a header. The key is what the secret's hex digits say.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::signature::{BodyCode, Keys, from_base64, to_base64};
use super::text::Text;
use super::{
    AboutProvider, CannotSign, Draft, Provider, Request, RequestReading, RequestRefusal, Scheme, Setup,
    SetupError, Signed, Unusable, Verified, signed_time, subject,
};
use crate::event::{Created, Event, ObjectRef};
use crate::time::Time;

pub struct Adyen;
pub struct AdyenBanking;

const CODE: BodyCode = BodyCode::base64("hmacsignature");
const SECRET: &str = "the webhook's HMAC key, 64 hex digits (Customer Area → Developers → Webhooks)";

static PAYMENTS: AboutProvider = AboutProvider {
    proof: "HMAC-SHA256 over eight fields of each item",
    secret: SECRET,
    sample_type: "AUTHORISATION",
    sample: r#"{"live":"false","notificationItems":[{"NotificationRequestItem":{"pspReference":"{id}","merchantAccountCode":"Test","merchantReference":"order-1","amount":{"value":1200,"currency":"JPY"},"eventCode":"{type}","success":"true","eventDate":"{rfc3339}"}}]}"#,
    names_account: true,
    ..AboutProvider::new("adyen", "Adyen (payments)")
};

static BANKING: AboutProvider = AboutProvider {
    proof: "HMAC-SHA256 over the body",
    secret: SECRET,
    sample_type: "balancePlatform.transfer.updated",
    sample: r#"{"type":"{type}","data":{"id":"{id}"},"environment":"test","timestamp":"{rfc3339}"}"#,
    ..AboutProvider::new("adyen_banking", "Adyen (platforms, management)")
};

impl Provider for Adyen {
    fn about(&self) -> &'static AboutProvider {
        &PAYMENTS
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        Ok(Box::new(OpenPayments { keys: Keys::from_hex(setup)? }))
    }
}

impl Provider for AdyenBanking {
    fn about(&self) -> &'static AboutProvider {
        &BANKING
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        Ok(Box::new(OpenBanking { keys: Keys::from_hex(setup)? }))
    }
}

struct OpenPayments {
    keys: Keys,
}

struct OpenBanking {
    keys: Keys,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Batch<'r> {
    #[serde(borrow)]
    live: Option<Text<'r>>,
    #[serde(borrow)]
    notification_items: Vec<Wrapper<'r>>,
}

#[derive(Deserialize)]
struct Wrapper<'r> {
    #[serde(borrow, rename = "NotificationRequestItem")]
    item: &'r RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item<'r> {
    #[serde(borrow)]
    psp_reference: Option<Text<'r>>,
    #[serde(borrow)]
    original_reference: Option<Text<'r>>,
    #[serde(borrow)]
    merchant_account_code: Option<Text<'r>>,
    #[serde(borrow)]
    merchant_reference: Option<Text<'r>>,
    #[serde(borrow)]
    amount: Option<Amount<'r>>,
    #[serde(borrow)]
    event_code: Option<Text<'r>>,
    #[serde(borrow)]
    success: Option<Text<'r>>,
    #[serde(borrow)]
    event_date: Option<Text<'r>>,
    #[serde(borrow)]
    additional_data: Option<Additional<'r>>,
}

#[derive(Deserialize)]
struct Amount<'r> {
    #[serde(borrow)]
    value: Option<Text<'r>>,
    #[serde(borrow)]
    currency: Option<Text<'r>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Additional<'r> {
    #[serde(borrow)]
    hmac_signature: Option<Cow<'r, str>>,
}

#[derive(Deserialize)]
struct BankingBody<'r> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'r, str>,
    #[serde(borrow)]
    timestamp: Option<Cow<'r, str>>,
    #[serde(borrow)]
    environment: Option<Cow<'r, str>>,
    #[serde(borrow)]
    data: Option<BankingData<'r>>,
}

#[derive(Deserialize)]
struct BankingData<'r> {
    #[serde(borrow)]
    id: Option<Text<'r>>,
}

impl Scheme for OpenPayments {
    fn check(&self, request: &Request<'_>, _now: Time) -> Result<(), RequestRefusal> {
        let batch: Batch<'_> =
            serde_json::from_slice(request.body).map_err(|_| RequestRefusal::MalformedBody)?;
        if batch.notification_items.is_empty() {
            return Err(RequestRefusal::MalformedBody);
        }
        for wrapper in batch.notification_items {
            let item: Item<'_> =
                serde_json::from_str(wrapper.item.get()).map_err(|_| RequestRefusal::MalformedBody)?;
            let code = item.additional_data.as_ref().and_then(|data| data.hmac_signature.as_deref());
            let code = code.and_then(from_base64).ok_or(RequestRefusal::MalformedBody)?;
            if !self.keys.accept(&[signed_text(&item).as_bytes()], &[code]) {
                return Err(RequestRefusal::BadSignature);
            }
        }
        Ok(())
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let batch: Batch<'r> = request.json()?;
        let livemode = batch.live.map(|live| live.0 == "true");
        let event = |wrapper: Wrapper<'r>| {
            let item: Item<'r> =
                serde_json::from_str(wrapper.item.get()).map_err(|error| Unusable::json(&error))?;
            let psp = item.psp_reference.ok_or_else(|| Unusable::missing("pspReference"))?.0;
            let code = item.event_code.ok_or_else(|| Unusable::missing("eventCode"))?.0;
            let id = format!("{psp}:{code}:{}", plain(item.success.as_ref()));
            let at = item.event_date.and_then(|date| Time::parse_rfc3339(&date.0));
            // A refund or capture names its payment; a payment is its own.
            let payment = item.original_reference.map(|text| text.0).filter(|text| !text.is_empty());
            Ok(Event {
                created: at.map(|at| Created { at, immutable: false }),
                object: Some(ObjectRef::new("payment", payment.unwrap_or(psp))),
                account: item.merchant_account_code.map(|text| text.0),
                livemode,
                ..Event::new(id, code, wrapper.item.get().as_bytes())
            })
        };
        batch.notification_items.into_iter().map(event).collect::<Result<_, _>>().map(RequestReading::Events)
    }

    fn sign(&self, draft: Draft, _now: Time) -> Result<Signed, CannotSign> {
        let body = self.with_signatures(&draft.body).ok_or_else(|| {
            CannotSign("the body must hold notificationItems, each with a NotificationRequestItem".into())
        })?;
        Ok(Signed::json(Draft { body, ..draft }, Vec::new()))
    }
}

impl OpenPayments {
    fn with_signatures(&self, body: &[u8]) -> Option<Vec<u8>> {
        let mut batch: Value = serde_json::from_slice(body).ok()?;
        for wrapper in batch.get_mut("notificationItems")?.as_array_mut()? {
            let item = wrapper.get_mut("NotificationRequestItem")?;
            let text = signed_text(&serde_json::from_str(&item.to_string()).ok()?);
            let code = to_base64(self.keys.sign(&[text.as_bytes()]));
            let additional = item
                .as_object_mut()?
                .entry("additionalData")
                .or_insert_with(|| Value::Object(<_>::default()));
            additional.as_object_mut()?.insert("hmacSignature".into(), code.into());
        }
        Some(batch.to_string().into_bytes())
    }
}

impl Scheme for OpenBanking {
    fn check(&self, request: &Request<'_>, _now: Time) -> Result<(), RequestRefusal> {
        CODE.check(&self.keys, request)
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let body: BankingBody<'r> = request.json()?;
        let object = body.data.and_then(|data| data.id);
        // `balancePlatform.transfer.updated` is about a transfer.
        let family = body.kind.split_once('.').map_or(body.kind.as_ref(), |(_, rest)| subject(rest));
        Ok(RequestReading::event(Event {
            created: signed_time(body.timestamp.as_deref()),
            object: object.map(|id| ObjectRef::new(family.to_owned(), id.0)),
            livemode: body.environment.map(|name| name == "live"),
            ..Event::new(request.digest_id(), body.kind.clone(), request.body)
        }))
    }

    fn sign(&self, draft: Draft, _now: Time) -> Result<Signed, CannotSign> {
        let code = CODE.sign(&self.keys, &draft.body);
        Ok(Signed::json(draft, vec![code]))
    }
}

/// The eight signed fields; absent ones count as empty, and nothing is escaped.
fn signed_text(item: &Item<'_>) -> String {
    let amount = item.amount.as_ref();
    [
        item.psp_reference.as_ref(),
        item.original_reference.as_ref(),
        item.merchant_account_code.as_ref(),
        item.merchant_reference.as_ref(),
        amount.and_then(|amount| amount.value.as_ref()),
        amount.and_then(|amount| amount.currency.as_ref()),
        item.event_code.as_ref(),
        item.success.as_ref(),
    ]
    .map(plain)
    .join(":")
}

fn plain<'a>(text: Option<&'a Text<'_>>) -> &'a str {
    text.map_or("", |text| text.0.as_ref())
}
