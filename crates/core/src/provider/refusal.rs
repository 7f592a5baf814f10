//! Why a request is not believed.

use super::excerpt;

/// Why a request is not believed. The sender learns none of this; the operator all of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestRefusal {
    #[error("header {0} is missing")]
    MissingHeader(String),
    #[error("header {0} can't be read")]
    MalformedHeader(String),
    #[error("the body carries no readable signature")]
    MalformedBody,
    #[error("the signed time is {0} s old")]
    StaleTimestamp(i64),
    #[error("the signed time lies {0} s in the future")]
    FutureTimestamp(i64),
    #[error("no configured secret makes this signature")]
    BadSignature,
    #[error("the token is not the configured one")]
    BadToken,
    #[error("the certificate address {0:?} is not the provider's")]
    ForeignCertificate(String),
    #[error("the certificate {0}")]
    BadCertificate(&'static str),
    #[error("topic {0:?} is not a configured one")]
    ForeignTopic(String),
    #[error("signed for {0:?}, not for this endpoint")]
    ForeignUrl(String),
    #[error("the delivery is not signed at all")]
    Unsigned,
    #[error("not a call this provider makes: {0}")]
    ForeignCall(&'static str),
}

impl RequestRefusal {
    pub(super) fn missing(header: &str) -> Self {
        Self::MissingHeader(header.to_owned())
    }

    pub(super) fn malformed(header: &str) -> Self {
        Self::MalformedHeader(header.to_owned())
    }

    pub(super) fn foreign_certificate(url: &str) -> Self {
        Self::ForeignCertificate(excerpt(url))
    }

    pub(super) fn foreign_topic(topic: &str) -> Self {
        Self::ForeignTopic(excerpt(topic))
    }

    /// Stable word for metrics, lists and filters.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::MissingHeader(_) => "missing_header",
            Self::MalformedHeader(_) => "malformed_header",
            Self::MalformedBody => "malformed_body",
            Self::StaleTimestamp(_) => "stale_timestamp",
            Self::FutureTimestamp(_) => "future_timestamp",
            Self::BadSignature => "bad_signature",
            Self::BadToken => "bad_token",
            Self::ForeignCertificate(_) => "foreign_certificate",
            Self::BadCertificate(_) => "bad_certificate",
            Self::ForeignTopic(_) => "foreign_topic",
            Self::ForeignUrl(_) => "foreign_url",
            Self::Unsigned => "unsigned",
            Self::ForeignCall(_) => "foreign_call",
        }
    }
}
