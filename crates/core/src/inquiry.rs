//! What a customer asks by the form of their order's page. It is written once; a person closes it.

use serde::{Deserialize, Serialize};

use crate::language::Language;
use crate::mail_address::MailAddress;
use crate::time::Time;

pub const TAG: &str = "inq_";
/// Characters of what a customer writes.
pub const NAME_MAX: usize = 100;
pub const TEXT_MAX: usize = 2_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InquiryFacts {
    pub at: Time,
    /// The reservation or fulfilment from whose page it was sent.
    pub order: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    pub livemode: bool,
    pub name: String,
    pub email: MailAddress,
    pub text: String,
    pub language: Language,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<InquiryClosed>,
}

/// Who closed it, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InquiryClosed {
    pub at: Time,
    pub by: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InquiryStatus {
    Open,
    Closed,
}

impl InquiryStatus {
    pub const ALL: [Self; 2] = [Self::Open, Self::Closed];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == text)
    }
}

impl InquiryFacts {
    pub fn status(&self) -> InquiryStatus {
        if self.closed.is_some() { InquiryStatus::Closed } else { InquiryStatus::Open }
    }
}
