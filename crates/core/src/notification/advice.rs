//! The next step, for whoever asks why nothing came: from how a notice ended and what else is known by now. Words are for
//! whoever shows it.

use super::{Notice, Status};

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

fn advice(status: Status, reason: Option<&str>, known: Known) -> Advice {
    match status {
        Status::Queued if known.is_shut => Advice::ResumeChannel,
        Status::Queued | Status::Sending | Status::Retrying => Advice::Wait,
        // Whatever it was, nothing goes to this address now.
        Status::Failed | Status::Uncertain | Status::Sent | Status::Off | Status::RateLimited
            if known.is_suppressed =>
        {
            Advice::ReleaseFirst
        }
        Status::RateLimited => Advice::ResendIfMeant,
        Status::Sent if known.is_mail => Advice::LookInSpam,
        Status::Sent => Advice::LookThere,
        Status::Failed => after_failure(reason),
        Status::Uncertain => Advice::AskFirst,
        Status::Suppressed if !known.is_suppressed => Advice::Resend,
        Status::Suppressed if reason == Some("complaint") => Advice::ReleaseIfTheyAsk,
        Status::Suppressed => Advice::CorrectOrRelease,
        Status::Off => Advice::SwitchOn,
        Status::Bounced if reason == Some("bounced_for_now") => Advice::ResendLater,
        Status::Bounced => Advice::ReplaceAddress,
        Status::Complained => Advice::LeaveThemAlone,
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
            (Status::Queued, None, MAIL, Advice::Wait),
            (Status::Queued, None, Known { is_shut: true, ..MAIL }, Advice::ResumeChannel),
            (Status::Sending, None, MAIL, Advice::Wait),
            (Status::Retrying, Some("throttled"), MAIL, Advice::Wait),
            (Status::Sent, None, MAIL, Advice::LookInSpam),
            (Status::Sent, None, Known::default(), Advice::LookThere),
            (Status::Sent, None, listed, Advice::ReleaseFirst),
            (Status::Failed, Some("no_address"), MAIL, Advice::EnterAddress),
            (Status::Failed, Some("bad_recipient"), MAIL, Advice::CorrectAddress),
            (Status::Failed, Some("template_error"), MAIL, Advice::CorrectTemplate),
            (Status::Failed, Some("channel_removed"), MAIL, Advice::RestoreChannel),
            (Status::Failed, Some("bad_credentials"), MAIL, Advice::CorrectLogin),
            (Status::Failed, Some("connect"), MAIL, Advice::ReachServer),
            (Status::Failed, Some("something_new"), MAIL, Advice::MendWhatIsSaid),
            (Status::Failed, None, MAIL, Advice::MendWhatIsSaid),
            (Status::Failed, Some("bad_recipient"), listed, Advice::ReleaseFirst),
            (Status::Uncertain, Some("reply_lost"), MAIL, Advice::AskFirst),
            (Status::Suppressed, Some("bounce"), listed, Advice::CorrectOrRelease),
            (Status::Suppressed, Some("complaint"), listed, Advice::ReleaseIfTheyAsk),
            (Status::Suppressed, Some("bounce"), MAIL, Advice::Resend),
            (Status::RateLimited, Some("rate_limited"), MAIL, Advice::ResendIfMeant),
            (Status::RateLimited, Some("rate_limited"), listed, Advice::ReleaseFirst),
            (Status::Off, Some("notifications_off"), MAIL, Advice::SwitchOn),
            (Status::Bounced, Some("bounced"), MAIL, Advice::ReplaceAddress),
            (Status::Bounced, Some("bounced_for_now"), MAIL, Advice::ResendLater),
            (Status::Complained, None, listed, Advice::LeaveThemAlone),
        ] {
            assert_eq!(advice(status, reason, known), expected, "{status:?} {reason:?} {known:?}");
        }
    }
}
