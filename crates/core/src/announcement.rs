//! What Sekisho itself has to tell: an event like any other, of a type of ours.

mod types;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::change::Arrival;
use crate::event::{About, DedupeKey, Trust};
use crate::id::Seq;
use crate::source_name::OWN;
use crate::state::Kind;
use crate::time::Time;

pub use types::{TYPES, is_alert, is_announced, is_like_announced};

/// What an announcement of ours is about. It names its thing and whose it is; what providers write into their own events
/// names nothing of ours.
pub fn about_own(source: &str, object: Option<&(String, String)>, body: &[u8]) -> About {
    #[derive(Deserialize)]
    struct Body {
        tenant: Option<String>,
    }

    if source != OWN {
        return About::default();
    }
    let of = |kind: Kind| object.filter(|(own, _)| own == kind.name()).map(|(_, id)| id.clone());
    let tenant = serde_json::from_slice::<Body>(body).ok().and_then(|body| body.tenant);
    About { payment: of(Kind::Payment), billing: of(Kind::Billing), tenant }
}

/// Something to be told: a fact of business that has just become true.
#[derive(Clone, Debug, PartialEq)]
pub struct Announcement {
    /// Names the fact by the provider's objects: the same for ever, whatever announces it.
    pub id: String,
    pub event_type: String,
    pub livemode: Option<bool>,
    /// (kind, id).
    pub object: (&'static str, String),
    pub tenant: Option<String>,
    /// What exactly changed: the refund, the dispute, the amount.
    pub about: Value,
    /// The thing as it is now.
    pub data: Value,
    pub at: Time,
}

impl Announcement {
    /// As an event that is stored, found, replayed and delivered like any other.
    pub fn arrival(self, seq: Seq) -> Arrival {
        debug_assert!(
            is_announced(&self.event_type),
            "{} is missing in announcement/types.rs",
            self.event_type
        );
        let body = json!({
            "id": self.id,
            "type": self.event_type,
            "created_at": self.at,
            "livemode": self.livemode,
            "tenant": self.tenant,
            "about": self.about,
            "data": self.data,
        });
        Arrival {
            key: DedupeKey::new(OWN, &self.id, None),
            first_body: None,
            seq,
            received_at: self.at,
            source: OWN.into(),
            event_id: self.id,
            event_type: self.event_type,
            created_at: Some(self.at),
            object: Some((self.object.0.to_owned(), self.object.1)),
            account: None,
            livemode: self.livemode,
            trust: Trust::Signed,
            headers: JSON_HEADERS.into(),
            body: body.to_string().into(),
            held: None,
        }
    }
}

/// The headers of what we make ourselves.
pub(crate) const JSON_HEADERS: &str = r#"[["content-type","application/json"]]"#;
