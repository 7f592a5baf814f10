//! What is asked of the store, beside its own questions: how a payment came to stand where it stands, whether the books are
//! right, what a replay would lead to, who is known by a name. API, console, commands and [`crate::acts`] read here, so all
//! find the same.
//!
//! Only reads, each of them bounded.

mod api_keys;
mod audit;
mod books;
mod checkout;
mod compensation;
mod condition;
mod context;
mod customer_order;
mod dead;
mod decided;
mod deliveries;
mod directory;
mod dossier;
mod events;
mod figures;
mod forecast;
mod look_up;
mod notices;
mod order_link;
mod order_records;
mod orders;
mod reminders;
mod states;
mod suppressions;
mod trace;
mod users;

pub use api_keys::{find_key, find_key_called, list_keys, strongest_key};
pub use audit::{AuditReport, each_link, verify_audit};
pub use books::{check_books, differences};
pub use checkout::{awaited_payment, checkout_payment};
pub use compensation::{check_rules, compensation_rules};
pub use condition::{Condition, DeadLettersWaiting, PausedChannel, condition};
pub use context::OrderContext;
pub use customer_order::{CustomerOrder, customer_order};
pub use dead::find_letter;
pub use deliveries::{delivery_status, find_deliveries, find_events};
pub use directory::{NAMED_MAX, every_of_id, find_member, several};
pub use dossier::{Dossier, History, dossier, history};
pub use events::{event_status, find_event};
pub use figures::{
    Present, WINDOWS, alert_states, meter_log, meter_rows, present, sample, target_course, target_figures,
};
pub use forecast::forecast;
pub use look_up::{billing_state, payment_state, payments_by_reference};
pub use notices::{NoticePage, NoticeQuery, mailed, notice, offices, parties};
pub use order_link::order_link;
pub use order_records::{OrderRecords, SlotClaim, order_records, slot_claims};
pub use orders::{
    case, case_view, compensation_view, fulfilment, fulfilments, inquiry_view, reservation, reservation_view,
    shown_inquiry, slot, slots,
};
pub use reminders::{no_channel, reminders, reminders_summary};
pub use states::load;
pub use suppressions::{suppression, suppression_view, suppressions};
pub use trace::trace;
pub use users::{
    find_invite, find_open_invite, find_user, is_disabled, is_known_device, open_invites, users,
};
