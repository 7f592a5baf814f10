//! Who is told what, by which channel, and what became of it.
//!
//! A [`Notice`] is one message to one recipient by one channel: it is written down before anything is sent, under a key
//! that names the fact it tells, so that the same thing is told once. [`template`] puts it into words; [`message`] is
//! what a channel is handed and what it says of it. Mail, chat and phone know no dedupe: a send whose end nobody saw is
//! *uncertain*, and a policy decides.

pub mod advice;
pub mod alert;
pub mod compose;
pub mod feedback;
mod hear;
pub mod incident;
pub mod message;
pub mod notice;
mod order_alert;
pub mod ordered;
pub mod post;
pub mod quota;
pub mod recipient;
pub mod reminder;
pub mod resend;
pub mod rule;
pub mod suppression;
pub mod template;
pub mod tries;

pub use advice::Advice;
pub use alert::Alert;
pub use compose::{House, Named, Parties, Person, TenantPlace, awaits_receipt, compose};
pub use incident::Incident;
pub use message::{Message, Receipt, Sent};
pub use notice::{Audience, Notice, NoticeStatus, Step};
pub use ordered::OrderPage;
pub use quota::{Limits, Quota, Reserved};
pub use resend::{ResendOrder, ResendRefusal, Resent};
pub use rule::{NotifyRule, To, tasks};
pub use suppression::{Suppression, SuppressionRefusal};
pub use template::{Flaw, Rendered, Templates};
pub use tries::{Doubt, Then, Tries};
