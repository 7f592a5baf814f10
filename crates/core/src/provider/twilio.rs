//! Twilio: `X-Twilio-Signature`, HMAC-SHA1 in base 64 over the address it calls, keyed by the account's auth token. A
//! form's decoded fields follow the address, sorted; any other body is bound by its SHA-256 in the address's query. The
//! address is the configured one: never rebuilt from `Host`, which the sender writes.

use std::borrow::Cow;

use ring::hmac;

use super::signature::{Keys, from_base64, from_hex, sha256, to_base64, to_hex};
use super::{
    AboutProvider, CannotSign, Draft, Provider, Request, RequestReading, RequestRefusal, Scheme, Setup,
    SetupError, Signed, Unusable, Verified,
};
use crate::event::{Event, ObjectRef};
use crate::time::Time;

pub struct Twilio;

const SIGNATURE: &str = "x-twilio-signature";
/// The same on a retry; not signed.
const IDEMPOTENCY_TOKEN: &str = "i-twilio-idempotency-token";
const BODY_SHA256: &str = "bodySHA256";
const OTHER_KIND: &str = "twilio.request";

static ABOUT: AboutProvider = AboutProvider {
    proof: "HMAC-SHA1 over our address and the form's fields",
    secret: "the account's auth token (Console → Account → API keys & tokens)",
    signs_url: true,
    sample_type: "call.completed",
    sample: "AccountSid=AC0&CallSid={id}&CallStatus=completed",
    names_account: true,
    ..AboutProvider::new("twilio", "Twilio")
};

impl Provider for Twilio {
    fn about(&self) -> &'static AboutProvider {
        &ABOUT
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        Ok(Box::new(Open {
            keys: Keys::from_text(setup, hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY)?,
            url: setup.required_public_url()?.to_owned(),
        }))
    }
}

struct Open {
    keys: Keys,
    url: String,
}

impl Scheme for Open {
    fn check(&self, request: &Request<'_>, _now: Time) -> Result<(), RequestRefusal> {
        let code =
            from_base64(request.header(SIGNATURE)?).ok_or_else(|| RequestRefusal::malformed(SIGNATURE))?;
        let url = self.called_url(request.query);
        let genuine = if let Some(digest) = body_digest(&url) {
            // The digest is no secret, and the signature over it is what is compared in constant time.
            from_hex(&digest).is_some_and(|digest| digest == sha256(request.body).as_ref())
                && self.keys.accept(&[url.as_bytes()], &[code])
        } else {
            self.keys.accept(&[url.as_bytes(), sorted_fields(request.body).as_bytes()], &[code])
        };
        if genuine { Ok(()) } else { Err(RequestRefusal::BadSignature) }
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        let event = |id: Cow<'r, str>, kind: Cow<'r, str>| match request.optional_header(IDEMPOTENCY_TOKEN) {
            Some(token) => Event::with_open_id(token, kind, request.body),
            None => Event::new(id, kind, request.body),
        };
        if body_digest(&self.called_url(request.query)).is_some() {
            return Ok(RequestReading::event(event(request.digest_id().into(), OTHER_KIND.into())));
        }
        let field = |wanted: &str| {
            form_urlencoded::parse(request.body).find(|(name, _)| name == wanted).map(|(_, value)| value)
        };
        let (family, sid, status) = if let Some(sid) = field("CallSid") {
            ("call", sid, field("CallStatus"))
        } else if let Some(sid) = field("MessageSid").or_else(|| field("SmsSid")) {
            ("message", sid, field("MessageStatus").or_else(|| field("SmsStatus")))
        } else {
            return Err(Unusable("the form has neither CallSid nor MessageSid".into()));
        };
        let (id, kind) = match &status {
            Some(status) => (format!("{sid}:{status}").into(), format!("{family}.{status}").into()),
            None => (sid.clone(), Cow::Borrowed(OTHER_KIND)),
        };
        Ok(RequestReading::event(Event {
            object: Some(ObjectRef::new(family, sid)),
            account: field("AccountSid"),
            ..event(id, kind)
        }))
    }

    fn sign(&self, draft: Draft, _now: Time) -> Result<Signed, CannotSign> {
        let token = (IDEMPOTENCY_TOKEN, draft.id.clone());
        if draft.body.starts_with(b"{") || draft.body.starts_with(b"[") {
            let query = format!("{BODY_SHA256}={}", to_hex(sha256(&draft.body)));
            let joint = if self.url.contains('?') { '&' } else { '?' };
            let code = to_base64(self.keys.sign(&[format!("{}{joint}{query}", self.url).as_bytes()]));
            let signed = Signed::json(draft, vec![(SIGNATURE, code), token]);
            return Ok(Signed { query: Some(query), ..signed });
        }
        let code = self.keys.sign(&[self.url.as_bytes(), sorted_fields(&draft.body).as_bytes()]);
        Ok(Signed::form(draft, vec![(SIGNATURE, to_base64(code)), token]))
    }
}

impl Open {
    /// The configured address, with what Twilio has added to its query.
    fn called_url<'a>(&'a self, query: &str) -> Cow<'a, str> {
        let (base, own) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let is_longer = query
            .strip_prefix(own)
            .is_some_and(|added| !added.is_empty() && (own.is_empty() || added.starts_with('&')));
        if is_longer { format!("{base}?{query}").into() } else { Cow::Borrowed(&self.url) }
    }
}

fn body_digest(url: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let (_, digest) = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == BODY_SHA256)?;
    Some(digest.into_owned())
}

/// Names and values, decoded, sorted and run together; a repeated pair counts once.
fn sorted_fields(body: &[u8]) -> String {
    let mut fields: Vec<_> = form_urlencoded::parse(body).collect();
    fields.sort_unstable();
    fields.dedup();
    fields.iter().flat_map(|(name, value)| [name.as_ref(), value.as_ref()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Secret;

    #[test]
    fn a2_the_signed_address_is_ours_with_what_twilio_added() {
        let called = |url: &str, query: &str| {
            let setup = Setup { secrets: vec![Secret::new("x")], ..Setup::default() };
            let keys = Keys::from_text(&setup, hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY).unwrap();
            Open { keys, url: url.into() }.called_url(query).into_owned()
        };
        assert_eq!(called("https://a/b", ""), "https://a/b");
        assert_eq!(called("https://a/b", "bodySHA256=1"), "https://a/b?bodySHA256=1");
        assert_eq!(called("https://a/b?x=1", "x=1"), "https://a/b?x=1");
        assert_eq!(called("https://a/b?x=1", "x=1&bodySHA256=1"), "https://a/b?x=1&bodySHA256=1");
        // Another query is not ours, so it is not what we verify.
        assert_eq!(called("https://a/b?x=1", "x=12"), "https://a/b?x=1");
        assert_eq!(called("https://a/b?x=1", ""), "https://a/b?x=1");
    }
}
