//! Events: what came in, and how many of what kind.

use schemars::JsonSchema;
use sekisho_core::Time;
use sekisho_core::provider::encode_base64;
use serde::{Deserialize, Serialize};

use super::{EventDeliveries, Message};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// `evt_…`
    pub id: String,
    /// The provider's own id.
    pub event_id: String,
    pub source: String,
    #[serde(rename = "type")]
    pub event_type: String,
    /// `received`, `success`, `failed` or `skipped`.
    pub status: String,
    pub received_at: Time,
    /// When the provider made it.
    pub created_at: Option<Time>,
    /// What it is about, in the provider's ids.
    pub object: Option<Object>,
    /// The connected account at the provider.
    pub account: Option<String>,
    /// Null where the provider does not say.
    pub livemode: Option<bool>,
    /// `signed`, `token`, `fetched` (read from the provider itself) or `hint`.
    pub trust: String,
    /// `reconcile` when it never came and was read from the provider; else null.
    pub via: Option<String>,
    /// Another event came under this id before.
    pub id_reused: bool,
    /// Why it was skipped or failed.
    pub note: Option<String>,
    pub processed_at: Option<Time>,
    /// What became of its deliveries: `status` above is that of processing it.
    pub deliveries: EventDeliveries,
    pub about: About,
}

/// Something at the provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Object {
    pub kind: String,
    pub id: String,
}

impl From<&(String, String)> for Object {
    fn from((kind, id): &(String, String)) -> Self {
        Self { kind: kind.clone(), id: id.clone() }
    }
}

/// What an event turned out to be about, in Sekisho's ids.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct About {
    pub payment: Option<String>,
    pub billing: Option<String>,
    pub tenant: Option<String>,
}

impl From<&sekisho_core::event::About> for About {
    fn from(about: &sekisho_core::event::About) -> Self {
        let (payment, billing, tenant) = (about.payment.clone(), about.billing.clone(), about.tenant.clone());
        Self { payment, billing, tenant }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventDetail {
    #[serde(flatten)]
    pub event: Event,
    #[serde(flatten)]
    pub content: Content,
    /// The work that it caused.
    pub messages: Vec<Message>,
}

/// Headers and body, of a request or of an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Content {
    /// Each with its name and its value.
    pub headers: Option<Vec<(String, String)>>,
    /// Where it is text.
    pub body: Option<String>,
    /// Where it is not.
    pub body_base64: Option<String>,
    /// The body is not what came: addresses in it are masked, or it was left out because it may hold some.
    pub body_masked: bool,
}

impl Content {
    /// `headers` as they are stored: a JSON list of names and values.
    pub fn of(headers: Option<&str>, body: Option<&[u8]>) -> Self {
        let text = body.map(std::str::from_utf8);
        let bytes = body.filter(|_| text.is_some_and(|text| text.is_err()));
        Self {
            headers: headers.and_then(|headers| serde_json::from_str(headers).ok()),
            body: text.and_then(Result::ok).map(str::to_owned),
            body_base64: bytes.map(encode_base64),
            body_masked: false,
        }
    }
}

/// Events of one closed hour that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Count {
    /// When the hour began.
    pub hour: Time,
    pub source: String,
    #[serde(rename = "type")]
    pub event_type: String,
    pub status: String,
    pub events: i64,
}

/// Which events. All conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EventQuery {
    /// Only this source.
    pub source: Option<String>,
    /// Only this type; a `*` at the end stands for anything.
    #[serde(rename = "type")]
    pub event_type: Option<String>,
    /// `received`, `success` (or `processed`), `failed` or `skipped`.
    pub status: Option<String>,
    /// Only events of whose deliveries one stands so: `waiting`, `failed` or `cancelled`; or all are `delivered`.
    pub delivery: Option<String>,
    /// The provider's id of what the event is about.
    pub object: Option<String>,
    /// The payment that it turned out to be about.
    pub payment: Option<String>,
    /// The tenant that it turned out to be about.
    pub tenant: Option<String>,
    /// Received at or after.
    pub since: Option<Time>,
    /// Received before.
    pub until: Option<Time>,
    /// Also what Sekisho announced or fetched itself.
    pub own: bool,
}
