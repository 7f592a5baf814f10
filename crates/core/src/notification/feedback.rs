//! What came back of a mail: it bounced, was delivered, or somebody called it spam. Read from what Amazon SES publishes
//! through SNS, in both of its shapes: notifications of an identity, and events of a configuration set.
//!
//! Total: any bytes are read without harm, and fields that SES adds one day are passed over. Says what SES said and
//! whether that suppresses the address ([`Feedback::suppresses`]); finding the notice and writing it down is done
//! elsewhere.

use serde_json::Value;

use crate::mail_address::{MailAddress, mask_text};
use crate::text::without_hidden;
use crate::time::Time;

/// More recipients than SES takes for one mail.
const ADDRESSES_MAX: usize = 100;
/// Letters kept of what a mail server said.
const DIAGNOSTIC_MAX: usize = 500;
/// The longest line that mail allows (RFC 5322).
const MESSAGE_ID_MAX: usize = 998;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feedback {
    pub kind: What,
    /// Whom it concerns, each with what the other side's mail server said, in which addresses are masked. What is no
    /// address that a mail could have gone to is left out.
    pub addresses: Vec<(MailAddress, Option<String>)>,
    /// SES's own id of the mail, which it said when it took it.
    pub ses_id: String,
    /// The mail's `Message-ID` as we wrote it, without `<>`. There only if SES is set to include headers.
    pub message_id: Option<String>,
    pub at: Option<Time>,
    /// Sent by the AWS account that the topic is of. A topic whose policy is wide takes such messages from anybody's SES.
    pub is_own: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Bounced {
        /// There is no such mailbox, or SES itself refuses to send to it.
        permanent: bool,
        /// SES's word: `General`, `MailboxFull`, `OnAccountSuppressionList`…
        subtype: String,
    },
    Complained {
        /// The mailbox provider's word: `abuse`, `fraud`…
        kind: Option<String>,
    },
    Delivered,
    /// SES took it and then did not send it: it found a virus.
    Rejected,
}

impl Feedback {
    /// Nothing more must go to these addresses.
    pub fn suppresses(&self) -> bool {
        match &self.kind {
            What::Bounced { permanent, .. } => *permanent,
            // A report of this kind takes an earlier suspicion back.
            What::Complained { kind } => kind.as_deref() != Some("not-spam"),
            What::Delivered | What::Rejected => false,
        }
    }
}

/// It is from SES, and lacks what such a message must have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("SES says {kind}, but {missing} is missing or not what it should be; nothing was taken from it")]
pub struct UnreadableFeedback {
    pub kind: &'static str,
    pub missing: &'static str,
}

/// Reads a stored event of an SNS source. `None`: not from SES, or news that changes nothing (sent, opened, delayed).
pub fn read(sns_body: &[u8]) -> Option<Result<Feedback, UnreadableFeedback>> {
    let envelope: Value = serde_json::from_slice(sns_body).ok()?;
    let said: Value = serde_json::from_str(envelope["Message"].as_str()?).ok()?;
    let mail = said.get("mail").filter(|mail| mail.is_object())?;
    // Configuration sets call it eventType.
    let kind = said["notificationType"].as_str().or_else(|| said["eventType"].as_str())?;
    let read = match kind {
        "Bounce" => bounce,
        "Complaint" => complaint,
        "Delivery" => delivery,
        "Reject" => reject,
        _ => return None,
    };
    let feedback = read(&said, mail).map(|feedback| Feedback { is_own: is_own(&envelope, mail), ..feedback });
    Some(feedback)
}

/// `arn:aws:sns:ap-northeast-1:123456789012:ses-events` is of the account 123456789012.
fn is_own(envelope: &Value, mail: &Value) -> bool {
    let owner = envelope["TopicArn"].as_str().and_then(|arn| arn.split(':').nth(4));
    owner.is_some_and(|owner| !owner.is_empty() && mail["sendingAccountId"].as_str() == Some(owner))
}

fn bounce(said: &Value, mail: &Value) -> Result<Feedback, UnreadableFeedback> {
    let about = part(said, "Bounce", "bounce")?;
    let kind = about["bounceType"].as_str().ok_or(missing("Bounce", "bounce.bounceType"))?;
    let subtype = about["bounceSubType"].as_str().unwrap_or_default().to_owned();
    // SES did not even try: the address bounced before, here or for another of its customers.
    let is_listed = matches!(subtype.as_str(), "OnAccountSuppressionList" | "Suppressed");
    let what = What::Bounced { permanent: kind == "Permanent" || is_listed, subtype };
    let addresses = listed(&about["bouncedRecipients"], |one| one["diagnosticCode"].as_str());
    feedback(what, "Bounce", addresses, time(&about["timestamp"]), mail)
}

fn complaint(said: &Value, mail: &Value) -> Result<Feedback, UnreadableFeedback> {
    let about = part(said, "Complaint", "complaint")?;
    let kind =
        ["complaintFeedbackType", "complaintSubType"].into_iter().find_map(|name| about[name].as_str());
    let what = What::Complained { kind: kind.map(str::to_owned) };
    let addresses = listed(&about["complainedRecipients"], |_| None);
    let at = time(&about["arrivalDate"]).or_else(|| time(&about["timestamp"]));
    feedback(what, "Complaint", addresses, at, mail)
}

fn delivery(said: &Value, mail: &Value) -> Result<Feedback, UnreadableFeedback> {
    let about = part(said, "Delivery", "delivery")?;
    let addresses = listed(&about["recipients"], |_| about["smtpResponse"].as_str());
    feedback(What::Delivered, "Delivery", addresses, time(&about["timestamp"]), mail)
}

fn reject(said: &Value, mail: &Value) -> Result<Feedback, UnreadableFeedback> {
    let about = part(said, "Reject", "reject")?;
    let addresses = listed(&mail["destination"], |_| about["reason"].as_str());
    feedback(What::Rejected, "Reject", addresses, time(&mail["timestamp"]), mail)
}

fn feedback(
    what: What,
    kind: &'static str,
    addresses: Vec<(MailAddress, Option<String>)>,
    at: Option<Time>,
    mail: &Value,
) -> Result<Feedback, UnreadableFeedback> {
    let ses_id = mail["messageId"].as_str().filter(|id| !id.is_empty());
    let ses_id = ses_id.ok_or(missing(kind, "mail.messageId"))?.to_owned();
    let message_id = message_id(mail, &ses_id);
    Ok(Feedback { kind: what, addresses, ses_id, message_id, at, is_own: false })
}

fn part<'v>(
    said: &'v Value,
    kind: &'static str,
    name: &'static str,
) -> Result<&'v Value, UnreadableFeedback> {
    said.get(name).filter(|part| part.is_object()).ok_or(missing(kind, name))
}

const fn missing(kind: &'static str, missing: &'static str) -> UnreadableFeedback {
    UnreadableFeedback { kind, missing }
}

fn time(value: &Value) -> Option<Time> {
    value.as_str().and_then(Time::parse_rfc3339)
}

/// Recipients are texts, or objects with an address.
fn listed<'v>(
    recipients: &'v Value,
    said: impl Fn(&'v Value) -> Option<&'v str>,
) -> Vec<(MailAddress, Option<String>)> {
    let one = |recipient: &'v Value| {
        let written = recipient.as_str().or_else(|| recipient["emailAddress"].as_str())?;
        let address = address(written)?;
        Some((address, said(recipient).map(diagnostic)))
    };
    recipients.as_array().into_iter().flatten().take(ADDRESSES_MAX).filter_map(one).collect()
}

/// `taro@example.jp`, or `"Taro" <taro@example.jp>`.
fn address(text: &str) -> Option<MailAddress> {
    let text = text.trim();
    let inner = text.strip_suffix('>').and_then(|text| text.rsplit_once('<')).map(|(_, inner)| inner);
    inner.unwrap_or(text).parse().ok()
}

/// Mail servers like to repeat the address. It is kept beside, and what is kept as a text is shown in lists and logs. Nor
/// do they need letters that nobody sees.
fn diagnostic(said: &str) -> String {
    mask_text(&without_hidden(said)).chars().take(DIAGNOSTIC_MAX).collect()
}

/// From the headers as we wrote them, if they came along. What merely repeats SES's own id is not ours.
fn message_id(mail: &Value, ses_id: &str) -> Option<String> {
    let is_ours =
        |header: &&Value| header["name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case("message-id"));
    let header = mail["headers"].as_array().into_iter().flatten().find(is_ours);
    let written = header.map(|header| &header["value"]).into_iter();
    let written = written.chain([&mail["commonHeaders"]["messageId"]]).filter_map(Value::as_str);
    let bare = |text: &str| text.trim().trim_start_matches('<').trim_end_matches('>').to_owned();
    let is_new = |id: &String| {
        (1..=MESSAGE_ID_MAX).contains(&id.len()) && id.split('@').next().is_some_and(|own| own != ses_id)
    };
    written.map(bare).find(is_new)
}

#[cfg(test)]
mod tests;
