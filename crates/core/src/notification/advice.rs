//! The next step, for whoever asks why nothing came: from how a notice ended and what else is known by now. Words are for
//! whoever shows it.

use super::{Notice, NoticeStatus};

/// What is known beside the notice itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    pub is_mail: bool,
    /// The channel sends nothing at the moment.
    pub is_shut: bool,
    /// The address is on the suppression list now.
    pub is_suppressed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Mend the channel, then let it send again.
    ResumeChannel,
    Wait,
    /// The address is on the suppression list by now: first release it.
    ReleaseFirst,
    LookInSpam,
    /// Chat and the like.
    LookThere,
    EnterAddress,
    CorrectAddress,
    CorrectTemplate,
    RestoreChannel,
    CorrectLogin,
    ReachServer,
    MendWhatIsSaid,
    /// They might get it twice.
    AskFirst,
    /// The address was released meanwhile.
    Resend,
    /// Too many for one address: somebody else may have caused them.
    ResendIfMeant,
    ReleaseIfTheyAsk,
    CorrectOrRelease,
    SwitchOn,
    ResendLater,
    ReplaceAddress,
    LeaveThemAlone,
}

impl Notice {
    pub fn advice(&self, known: Known) -> Advice {
        advice(self.status(), self.steps.last().and_then(|step| step.reason.as_deref()), known)
    }
}

fn advice(status: NoticeStatus, reason: Option<&str>, known: Known) -> Advice {
    match status {
        NoticeStatus::Queued if known.is_shut => Advice::ResumeChannel,
        NoticeStatus::Queued | NoticeStatus::Sending | NoticeStatus::Retrying => Advice::Wait,
        // Whatever it was, nothing goes to this address now.
        NoticeStatus::Failed
        | NoticeStatus::Uncertain
        | NoticeStatus::Sent
        | NoticeStatus::Off
        | NoticeStatus::RateLimited
            if known.is_suppressed =>
        {
            Advice::ReleaseFirst
        }
        NoticeStatus::RateLimited => Advice::ResendIfMeant,
        NoticeStatus::Sent if known.is_mail => Advice::LookInSpam,
        NoticeStatus::Sent => Advice::LookThere,
        NoticeStatus::Failed => after_failure(reason),
        NoticeStatus::Uncertain => Advice::AskFirst,
        NoticeStatus::Suppressed if !known.is_suppressed => Advice::Resend,
        NoticeStatus::Suppressed if reason == Some("complaint") => Advice::ReleaseIfTheyAsk,
        NoticeStatus::Suppressed => Advice::CorrectOrRelease,
        NoticeStatus::Off => Advice::SwitchOn,
        NoticeStatus::Bounced if reason == Some("bounced_for_now") => Advice::ResendLater,
        NoticeStatus::Bounced => Advice::ReplaceAddress,
        NoticeStatus::Complained => Advice::LeaveThemAlone,
    }
}

fn after_failure(reason: Option<&str>) -> Advice {
    match reason.unwrap_or_default() {
        "no_address" | "no_address_yet" => Advice::EnterAddress,
        "bad_recipient" => Advice::CorrectAddress,
        "template_error" | "too_big" => Advice::CorrectTemplate,
        "channel_removed" | "channel_gone" | "rule_removed" => Advice::RestoreChannel,
        "bad_credentials" | "no_tls" | "sender_refused" | "server_refused" => Advice::CorrectLogin,
        "timeout" | "connect" | "dns" | "tls" | "broken" | "throttled" | "unavailable" | "deferred"
        | "server_error" => Advice::ReachServer,
        _ => Advice::MendWhatIsSaid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIL: Known = Known { is_mail: true, is_shut: false, is_suppressed: false };

    #[test]
    fn g5_every_end_of_a_notice_has_its_next_step() {
        let listed = Known { is_suppressed: true, ..MAIL };
        for (status, reason, known, expected) in [
            (NoticeStatus::Queued, None, MAIL, Advice::Wait),
            (NoticeStatus::Queued, None, Known { is_shut: true, ..MAIL }, Advice::ResumeChannel),
            (NoticeStatus::Sending, None, MAIL, Advice::Wait),
            (NoticeStatus::Retrying, Some("throttled"), MAIL, Advice::Wait),
            (NoticeStatus::Sent, None, MAIL, Advice::LookInSpam),
            (NoticeStatus::Sent, None, Known::default(), Advice::LookThere),
            (NoticeStatus::Sent, None, listed, Advice::ReleaseFirst),
            (NoticeStatus::Failed, Some("no_address"), MAIL, Advice::EnterAddress),
            (NoticeStatus::Failed, Some("bad_recipient"), MAIL, Advice::CorrectAddress),
            (NoticeStatus::Failed, Some("template_error"), MAIL, Advice::CorrectTemplate),
            (NoticeStatus::Failed, Some("channel_removed"), MAIL, Advice::RestoreChannel),
            (NoticeStatus::Failed, Some("bad_credentials"), MAIL, Advice::CorrectLogin),
            (NoticeStatus::Failed, Some("connect"), MAIL, Advice::ReachServer),
            (NoticeStatus::Failed, Some("something_new"), MAIL, Advice::MendWhatIsSaid),
            (NoticeStatus::Failed, None, MAIL, Advice::MendWhatIsSaid),
            (NoticeStatus::Failed, Some("bad_recipient"), listed, Advice::ReleaseFirst),
            (NoticeStatus::Uncertain, Some("reply_lost"), MAIL, Advice::AskFirst),
            (NoticeStatus::Suppressed, Some("bounce"), listed, Advice::CorrectOrRelease),
            (NoticeStatus::Suppressed, Some("complaint"), listed, Advice::ReleaseIfTheyAsk),
            (NoticeStatus::Suppressed, Some("bounce"), MAIL, Advice::Resend),
            (NoticeStatus::RateLimited, Some("rate_limited"), MAIL, Advice::ResendIfMeant),
            (NoticeStatus::RateLimited, Some("rate_limited"), listed, Advice::ReleaseFirst),
            (NoticeStatus::Off, Some("notifications_off"), MAIL, Advice::SwitchOn),
            (NoticeStatus::Bounced, Some("bounced"), MAIL, Advice::ReplaceAddress),
            (NoticeStatus::Bounced, Some("bounced_for_now"), MAIL, Advice::ResendLater),
            (NoticeStatus::Complained, None, listed, Advice::LeaveThemAlone),
        ] {
            assert_eq!(advice(status, reason, known), expected, "{status:?} {reason:?} {known:?}");
        }
    }
}
