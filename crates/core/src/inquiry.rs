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

/// What stays of an inquiry that was kept long enough: that there was one, about which order, and who closed it when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgottenInquiry {
    pub at: Time,
    pub order: String,
    pub closed: Option<InquiryClosed>,
    pub forgotten_at: Time,
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
    /// Without whoever asked, and what they asked.
    pub fn forget(self, at: Time) -> ForgottenInquiry {
        ForgottenInquiry { at: self.at, order: self.order, closed: self.closed, forgotten_at: at }
    }

    pub fn status(&self) -> InquiryStatus {
        if self.closed.is_some() { InquiryStatus::Closed } else { InquiryStatus::Open }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f8_what_stays_of_an_inquiry_names_nobody() {
        let at = Time::from_ms(1_780_000_000_000);
        let facts = InquiryFacts {
            at,
            order: "rsv_1".into(),
            payment: None,
            tenant: None,
            livemode: true,
            name: "Taro".into(),
            email: "taro@example.jp".parse().unwrap(),
            text: "When does it begin?".into(),
            language: Language::En,
            closed: None,
        };
        let stays = serde_json::to_string(&facts.forget(at)).unwrap();
        assert!(stays.contains("rsv_1") && !stays.contains("aro") && !stays.contains("When"), "{stays}");
    }
}
