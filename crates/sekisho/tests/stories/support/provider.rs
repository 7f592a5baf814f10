//! Somebody who signs as a payment provider does, and what they send.

use std::sync::OnceLock;

use http::Method;
use sekisho_core::provider::{self, Draft, Scheme, Setup};
use sekisho_core::{Secret, Time};
use serde_json::Value;

pub struct Provider {
    name: &'static str,
    path: String,
    scheme: Box<dyn Scheme>,
}

/// One request, ready to be sent as often as wanted.
#[derive(Clone, Debug)]
pub struct Letter {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Provider {
    /// One whose webhooks go to the source of its own name.
    pub fn new(name: &'static str, secret: &str) -> Self {
        Self::with(name, &[secret], &[], None)
    }

    pub fn stripe() -> Self {
        Self::new("stripe", super::STRIPE_SECRET)
    }

    pub fn with(
        name: &'static str,
        secrets: &[&str],
        settings: &[(&str, &str)],
        public_url: Option<&str>,
    ) -> Self {
        let setup = Setup {
            secrets: secrets.iter().map(|secret| Secret::new(*secret)).collect(),
            public_url: public_url.map(str::to_owned),
            tolerance_s: None,
            settings: settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        };
        let scheme = provider::find(name).expect("a provider we know").open(&setup).unwrap();
        Self { name, path: format!("/webhooks/{name}"), scheme }
    }

    #[must_use]
    pub fn to(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// The provider's smallest event. However often it is written, it was created at one time.
    pub fn event(&self, id: &str) -> Letter {
        static CREATED: OnceLock<Time> = OnceLock::new();
        let about = provider::find(self.name).expect("a provider we know").about();
        let draft = about.draft(id, about.sample_type, *CREATED.get_or_init(sekisho::now));
        self.sign(draft, sekisho::now())
    }

    /// Any body, properly signed.
    pub fn body(&self, body: &str) -> Letter {
        self.body_at(body, sekisho::now())
    }

    pub fn body_at(&self, body: &str, at: Time) -> Letter {
        self.sign(Draft { id: "evt_own".into(), kind: "own".into(), body: body.into() }, at)
    }

    fn sign(&self, draft: Draft, at: Time) -> Letter {
        let signed = self.scheme.sign(draft, at).unwrap();
        let query = signed.query.map(|query| format!("?{query}")).unwrap_or_default();
        Letter {
            method: signed.method.to_string(),
            path: format!("{}{query}", self.path),
            headers: signed.headers.into_iter().map(|(name, value)| (name.into_owned(), value)).collect(),
            body: signed.body,
        }
    }
}

impl Letter {
    pub fn unsigned(path: &str, body: &str) -> Self {
        Self { method: Method::POST.to_string(), path: path.into(), headers: Vec::new(), body: body.into() }
    }

    /// The same signature over other words.
    #[must_use]
    pub fn forged(mut self) -> Self {
        self.body.insert(1, b' ');
        self
    }

    /// As it goes over the wire, on a connection that stays open.
    pub fn write(&self, request: &mut Vec<u8>) {
        request.extend(format!("{} {} HTTP/1.1\r\nhost: lab\r\n", self.method, self.path).bytes());
        for (name, value) in &self.headers {
            request.extend(format!("{name}: {value}\r\n").bytes());
        }
        request.extend(format!("content-length: {}\r\n\r\n", self.body.len()).bytes());
        request.extend(&self.body);
    }

    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// One of the 84 published signature vectors.
pub fn vector(provider: &str, name: &str) -> (Letter, Value) {
    let text = include_str!("../../../../core/tests-data/signatures.json");
    let all: Value = serde_json::from_str(text).unwrap();
    let found = all["vectors"].as_array().unwrap().iter();
    let found = found.filter(|one| one["provider"] == provider && one["name"] == name).collect::<Vec<_>>();
    assert_eq!(found.len(), 1, "{provider} {name}");
    let headers = found[0]["headers"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let letter = Letter {
        method: "POST".into(),
        path: format!("/webhooks/{provider}"),
        headers: headers.map(|pair| (text(&pair[0]), text(&pair[1]))).collect(),
        body: provider::decode_base64(found[0]["body_base64"].as_str().unwrap()).unwrap(),
    };
    (letter, found[0].clone())
}
