//! What Sekisho decides. Pure: no I/O, no clock, no randomness, no async.
//!
//! - [`provider`] which requests are genuine, and what events they carry: one file per provider
//! - [`diagnose`] why a request was refused, in words that lead to the cure
//! - [`event`] an event as read from a request, and the key that makes it unique
//! - [`job`] work: what is to be done ([`job::Task`]), who holds it, how it ended
//! - [`change`] the language between the crates: what `store` is asked to write, and what it answers
//! - [`state`] what is remembered of one thing · [`audit`] who changed it, so that anybody can check
//! - [`settlement`] what an event means · [`money`] amounts and currencies
//! - [`meter`] how much was done, by minute and node · [`target`] what is to be reached · [`alert`] when operators are called
//! - [`announcement`] what Sekisho itself has to tell · [`source_name`] where events come from besides the configured sources
//! - [`directory`] tenants, customers, staff, and what they have deadlines for · [`deletion`] what is left of what was deleted
//! - [`delivery`] which events go to the app, what is sent, and what its answer means
//! - [`notification`] who is told what, by mail, chat or phone, and what became of it
//! - [`queue`] when failed work runs again, and when a destination is left alone for a while
//! - [`reconcile`] what a provider lists, compared with what came
//! - [`slot`] places that can be sold once · [`reservation`] whose they are · [`fulfilment`] what was paid for and must be made
//! - [`compensation`] what is done when that goes wrong · [`case`] who sees to it, and until when
//! - [`schedule`] when a cron line is due · [`trace`] which trace an event belongs to, and its spans
//! - [`actor`] who acts · [`user`] who may enter the console · [`api_key`] what a key may do · [`selection`] how much one order may touch
//! - [`rule`] an operator's expression over an event
//! - [`text`] what somebody meant who wrote a word that is not known · letters that nobody sees
//! - [`calendar`], [`header`], [`id`], [`language`], [`mail_address`], [`pattern`], [`time`], [`traceparent`], [`secret`] the small words everything else is written in

pub mod actor;
pub mod alert;
pub mod announcement;
pub mod api_key;
pub mod audit;
pub mod calendar;
pub mod case;
pub mod change;
pub mod compensation;
pub mod deletion;
pub mod delivery;
pub mod diagnose;
pub mod directory;
pub mod event;
pub mod fulfilment;
pub mod header;
pub mod id;
pub mod inquiry;
pub mod job;
pub mod language;
pub mod link;
pub mod mail_address;
pub mod meter;
pub mod money;
pub mod notification;
pub mod pattern;
pub mod provider;
pub mod queue;
pub mod reconcile;
pub mod reservation;
pub mod rule;
pub mod schedule;
pub mod secret;
pub mod selection;
pub mod settlement;
pub mod slot;
pub mod source_name;
pub mod state;
pub mod target;
pub mod text;
pub mod time;
pub mod trace;
pub mod traceparent;
pub mod user;

pub use id::{Epoch, Seq};
pub use secret::Secret;
pub use time::Time;
