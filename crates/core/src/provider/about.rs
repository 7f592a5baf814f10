//! What a provider is in words, and a source's configuration as a provider sees it.

use std::collections::BTreeMap;

use super::Draft;
use crate::event::Trust;
use crate::secret::Secret;
use crate::time::Time;

/// What a provider is, in words: for the README, the example configuration, error messages and `doctor`.
#[derive(Debug)]
pub struct AboutProvider {
    /// As written in `provider = "…"`.
    pub name: &'static str,
    pub title: &'static str,
    /// How its requests are proven, in one line.
    pub proof: &'static str,
    /// What `secrets` holds and where to find it; empty when the provider has none.
    pub secret: &'static str,
    pub trust: Trust,
    /// Seconds a signed timestamp may lie in the past; `None` when the scheme signs no timestamp, or one with a window of
    /// its own. Only where there is some may a source set another.
    pub tolerance_s: Option<i64>,
    /// Signs with a certificate that is fetched, so a source may give it instead.
    pub has_certificate: bool,
    /// Its events may say which account they belong to, so a source may take those of one only.
    pub names_account: bool,
    /// The signature covers the address the provider calls, so `public_url` must be configured.
    pub signs_url: bool,
    /// Headers that carry a secret and so are never stored.
    pub secret_headers: &'static [&'static str],
    /// Of a hint: the headers it is stored and delivered with. Its sender's are not, since anybody may have written them.
    pub hint_headers: &'static [(&'static str, &'static str)],
    /// Settings of this provider alone, written beside the common ones in `[[source]]`.
    pub settings: &'static [ProviderSetting],
    /// An event type this provider sends, for test traffic that names none.
    pub sample_type: &'static str,
    /// The smallest body that reads as an event, with the placeholders of [`AboutProvider::draft`]; empty when the
    /// provider's requests have no body or can't be signed here.
    pub sample: &'static str,
}

impl AboutProvider {
    /// The common answers, to be overridden by the few that differ.
    pub const fn new(name: &'static str, title: &'static str) -> Self {
        Self {
            name,
            title,
            proof: "",
            secret: "",
            trust: Trust::Signed,
            tolerance_s: None,
            has_certificate: false,
            names_account: false,
            signs_url: false,
            secret_headers: &[],
            hint_headers: &[],
            settings: &[],
            sample_type: "test.event",
            sample: "",
        }
    }

    /// The sample with its placeholders filled: `{id}`, `{type}`, and the creation time as `{seconds}`, `{ms}` or
    /// `{rfc3339}`.
    pub fn draft(&self, id: &str, kind: &str, now: Time) -> Draft {
        let written = |text: &str| {
            if self.sample.starts_with('{') {
                let quoted = serde_json::Value::from(text).to_string();
                quoted[1..quoted.len() - 1].to_owned()
            } else {
                form_urlencoded::byte_serialize(text.as_bytes()).collect()
            }
        };
        let body = self
            .sample
            .replace("{seconds}", &now.seconds().to_string())
            .replace("{ms}", &now.ms().to_string())
            .replace("{rfc3339}", &now.to_string())
            .replace("{type}", &written(kind))
            .replace("{id}", &written(id));
        Draft { id: id.to_owned(), kind: kind.to_owned(), body: body.into_bytes() }
    }
}

#[derive(Debug)]
pub struct ProviderSetting {
    pub name: &'static str,
    pub help: &'static str,
    pub example: &'static str,
    pub required: bool,
}

/// A source's configuration as a provider sees it.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    pub secrets: Vec<Secret>,
    pub public_url: Option<String>,
    pub tolerance_s: Option<i64>,
    /// By [`ProviderSetting::name`].
    pub settings: BTreeMap<String, String>,
}

impl Setup {
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// A setting or, in words, what to write.
    pub(super) fn required(&self, name: &'static str) -> Result<&str, SetupError> {
        self.setting(name).filter(|value| !value.is_empty()).ok_or_else(|| {
            SetupError(format!("`{name}` is missing: this provider can't verify anything without it"))
        })
    }

    pub(super) fn required_public_url(&self) -> Result<&str, SetupError> {
        self.public_url.as_deref().ok_or_else(|| {
            SetupError(
                "`public_url` is missing: this provider signs the address it calls, so write it exactly as registered there"
                    .into(),
            )
        })
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct SetupError(pub String);
