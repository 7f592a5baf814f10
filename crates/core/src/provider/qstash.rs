//! QStash: `Upstash-Signature`, a JWT with HS256 that names issuer, our address, its time window and the body's
//! SHA-256. The current and the next signing key are both configured. Messages have no type, and their id stands in a
//! header that the token does not cover.

use ring::hmac;
use serde::{Deserialize, Serialize};

use super::signature::{Keys, from_base64url, sha256, to_base64url};
use super::{
    AboutProvider, CannotSign, Draft, FUTURE_SKEW_S, Provider, Request, RequestReading, RequestRefusal,
    Scheme, Setup, SetupError, Signed, Unusable, Verified,
};
use crate::event::Event;
use crate::time::Time;

pub struct QStash;

const SIGNATURE: &str = "upstash-signature";
const MESSAGE_ID: &str = "upstash-message-id";
const ISSUER: &str = "Upstash";
const KIND: &str = "qstash.message";
const LIFETIME_S: i64 = 300;

static ABOUT: AboutProvider = AboutProvider {
    proof: "JWT (HS256) over our address, its time window and the body",
    secret: "the current and the next signing key, `sig_…` (Upstash Console → QStash → Signing Keys)",
    signs_url: true,
    sample_type: KIND,
    sample: r#"{"id":"{id}"}"#,
    ..AboutProvider::new("qstash", "QStash")
};

impl Provider for QStash {
    fn about(&self) -> &'static AboutProvider {
        &ABOUT
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Scheme>, SetupError> {
        Ok(Box::new(Open {
            keys: Keys::from_text(setup, hmac::HMAC_SHA256)?,
            url: setup.required_public_url()?.to_owned(),
        }))
    }
}

struct Open {
    keys: Keys,
    url: String,
}

#[derive(Deserialize, Serialize)]
struct Head {
    alg: String,
    #[serde(default)]
    typ: String,
}

#[derive(Deserialize, Serialize)]
struct Claims {
    iss: String,
    sub: String,
    exp: i64,
    nbf: i64,
    /// Not looked at, but receivers may want them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    iat: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jti: Option<String>,
    body: String,
}

impl Scheme for Open {
    fn check(&self, request: &Request<'_>, now: Time) -> Result<(), RequestRefusal> {
        let malformed = || RequestRefusal::malformed(SIGNATURE);
        let (text, code) = request.header(SIGNATURE)?.rsplit_once('.').ok_or_else(malformed)?;
        let code = from_base64url(code).ok_or_else(malformed)?;
        if !self.keys.accept(&[text.as_bytes()], &[code]) {
            return Err(RequestRefusal::BadSignature);
        }
        let (head, claims) = text.split_once('.').ok_or_else(malformed)?;
        let head: Head = decode(head).ok_or_else(malformed)?;
        let claims: Claims = decode(claims).ok_or_else(malformed)?;
        // The algorithm is ours whatever the token says; one that says otherwise was not made for us.
        if head.alg != "HS256" || claims.iss != ISSUER {
            return Err(malformed());
        }
        if claims.sub != self.url {
            return Err(RequestRefusal::ForeignUrl(claims.sub));
        }
        let now = now.seconds();
        if now >= claims.exp {
            return Err(RequestRefusal::StaleTimestamp(now.saturating_sub(claims.nbf)));
        }
        if claims.nbf > now.saturating_add(FUTURE_SKEW_S) {
            return Err(RequestRefusal::FutureTimestamp(claims.nbf.saturating_sub(now)));
        }
        let same = from_base64url(&claims.body).is_some_and(|hash| hash == sha256(request.body).as_ref());
        if same { Ok(()) } else { Err(RequestRefusal::BadSignature) }
    }

    fn read<'r>(&self, request: &Verified<'r>) -> Result<RequestReading<'r>, Unusable> {
        Ok(RequestReading::event(Event::with_open_id(request.needed_header(MESSAGE_ID)?, KIND, request.body)))
    }

    fn sign(&self, draft: Draft, now: Time) -> Result<Signed, CannotSign> {
        let head = Head { alg: "HS256".into(), typ: "JWT".into() };
        let claims = Claims {
            iss: ISSUER.into(),
            sub: self.url.clone(),
            exp: now.seconds().saturating_add(LIFETIME_S),
            // Receivers forgive no clock that is behind ours, so the token is valid since a while.
            nbf: now.seconds().saturating_sub(FUTURE_SKEW_S),
            iat: Some(now.seconds().saturating_sub(FUTURE_SKEW_S)),
            jti: Some(format!("jwt_{}_{}", draft.id, now.ms())),
            body: to_base64url(sha256(&draft.body)),
        };
        let text = format!("{}.{}", encode(&head), encode(&claims));
        let token = format!("{text}.{}", to_base64url(self.keys.sign(&[text.as_bytes()])));
        let headers = vec![(SIGNATURE, token), (MESSAGE_ID, draft.id.clone())];
        Ok(Signed::json(draft, headers))
    }
}

fn decode<T: for<'de> Deserialize<'de>>(part: &str) -> Option<T> {
    serde_json::from_slice(&from_base64url(part)?).ok()
}

fn encode(part: &impl Serialize) -> String {
    to_base64url(serde_json::to_vec(part).expect("a struct of text and numbers is JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::{Setup, verify};
    use crate::secret::Secret;
    use http::{HeaderMap, Method};

    #[test]
    fn a2_a_token_may_say_when_it_was_made_and_which_it_is_or_not() {
        let now = Time::from_ms(1_770_000_000_000);
        let setup = Setup {
            secrets: vec![Secret::new("sig_1")],
            public_url: Some("https://pay.example.com/q".into()),
            ..Setup::default()
        };
        let keys = Keys::from_text(&setup, hmac::HMAC_SHA256).unwrap();
        let scheme = QStash.open(&setup).unwrap();
        for (iat, jti) in [(None, None), (Some(now.seconds()), Some("jwt_1".to_owned()))] {
            let claims = Claims {
                iss: ISSUER.into(),
                sub: "https://pay.example.com/q".into(),
                exp: now.seconds() + 300,
                nbf: now.seconds(),
                iat,
                jti,
                body: to_base64url(sha256(b"hello")),
            };
            let text =
                format!("{}.{}", encode(&Head { alg: "HS256".into(), typ: "JWT".into() }), encode(&claims));
            let token = format!("{text}.{}", to_base64url(keys.sign(&[text.as_bytes()])));
            let mut headers = HeaderMap::new();
            headers.insert(SIGNATURE, token.parse().unwrap());
            let request = Request {
                method: &Method::POST,
                headers: &headers,
                query: "",
                body: b"hello",
                certificate: None,
            };
            assert!(verify(scheme.as_ref(), request, now).is_ok());
        }
    }
}
