//! What people and apps do: they create payments and members of the directory, retry or discard what failed, replay past
//! events, close breakers, resend notices, let others in. API, console and commands write here and nowhere else.
//!
//! An order ([`DeadLetterSelection`], [`Replay`]) is plain data, the same over HTTP as in process, so both ways do the same. A dry run
//! answers what would happen and changes nothing. An act is: read the order, [`transact`](crate::transact) a rule of the core,
//! answer. Each is audited in its own transaction.

mod alert;
mod api_key;
mod breaker;
mod case;
mod checkout;
mod dead;
mod decided;
mod deletion;
mod deliveries;
mod directory;
mod fault;
mod fields;
mod fulfilment;
mod holds;
mod house_key;
mod import;
mod inquiry;
mod installation;
mod invites;
mod login;
mod note;
mod notices;
mod order_link;
mod password;
mod payment;
mod preview;
mod refund;
mod reminders;
mod replay;
mod request;
mod reservation;
mod reservation_change;
mod session;
mod slot;
mod suppressions;
mod users;

pub use sekisho_core::actor::Actor;
pub use sekisho_core::api_key::NewKey;
pub use sekisho_core::selection::REASON_MAX;

pub use crate::refusal::{Refusal, Result};
pub use crate::types::{
    DeadLetterSelection, DeadReport, DeliveryReport, DeliverySelection, FieldError, Import, Imported, Remind,
    RemindReport, Replay, ReplayReport,
};

pub use alert::{silence_alert, try_alert};
pub use api_key::{CreatedKey, create_key, revoke_key};
pub use breaker::{reset, resume};
pub use case::{acknowledge_case, resolve_case};
pub use checkout::{CheckoutRequest, check_out};
pub use dead::{discard, retry, to_discard, to_retry};
pub use deletion::{delete_billing, delete_member};
pub use deliveries::{cancel, to_cancel};
pub use directory::{check_member, create_member};
pub use fault::report_fault;
pub use fields::Fields;
pub use fulfilment::{create_fulfilment, retry_fulfilment, take_result};
pub use holds::{Holds, ProbeStep};
pub use house_key::house_key;
pub use import::{IMPORT_PROBLEMS_MAX, IMPORT_ROWS_MAX, import};
pub use inquiry::{NewInquiry, close_inquiry, forget_inquiries, receive_inquiry};
pub use installation::{make_installation, read_installation};
pub use invites::{first_invite, invite, join, withdraw_invite};
pub use login::{FailedLogin, LoginOutcome, Visitor, enter, note_failed_login};
pub use note::note_test;
pub use notices::{post_notices, resend};
pub use order_link::revoke_links;
pub use payment::create_payment;
pub use preview::{FulfilmentPreview, ReservationPreview, preview_reservation};
pub use refund::{RefundOrderRequest, order_refund, release_refund};
pub use reminders::run_reminders;
pub use replay::{replay, to_replay};
pub use request::{Answered, OnceKey};
pub use reservation::HoldDraft;
pub use reservation_change::{ReservationChange, change_reservation};
pub use session::{SessionTicket, SessionUser, end_session, find_session};
pub use slot::set_slot;
pub use suppressions::{SuppressionOrder, release, suppress};
pub use users::{change_password, change_user};

#[cfg(test)]
mod tests;
