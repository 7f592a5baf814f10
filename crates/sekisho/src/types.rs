//! What the HTTP API takes and answers, one type for each: the server fills them, the command line reads them, and the
//! OpenAPI document is made from them. A field is described here and nowhere else; its comment is its description.
//!
//! Names, nulls and forms are a promise to callers. Times are RFC 3339, ids are texts, amounts are whole numbers in the
//! currency's smallest unit. These types know the core, and nothing of how things are stored, found or changed.

mod alert;
mod audit;
mod billing;
mod books;
mod case;
mod channel;
mod compensation_rule;
mod dead_letter;
mod delivery;
mod directory;
mod event;
mod fulfilment;
mod import;
mod inquiry;
mod key;
mod links;
mod message;
mod notice;
mod order_link;
mod page;
mod payment;
mod problem;
mod proof;
mod query;
mod reconciliation;
mod refund;
mod rejection;
mod reminder;
mod replay;
mod reservation;
mod route;
mod schedule;
mod source;
mod suppression;
mod trace;
mod user;

pub use alert::{AlertStanding, AlertTrial, SilenceAlert, TargetStanding, TargetWindow};
pub use audit::{AuditCheck, AuditEntry, ChangeDetails, ExportedEntry, SealedEntry};
pub use billing::{Billing, BillingReferences, Invoice, Period, Subscription};
pub use books::{Account, Balance, Books, BooksReport, CurrencyBalance, Difference, Line, Total, Warning};
pub use case::{AcknowledgeCase, Case, CaseNext, CaseWord, Compensation, ResolveCase};
pub use channel::{Channel, Resumed};
pub use compensation_rule::{CheckedRule, CompensationRule, RuleCheck};
pub use dead_letter::{
    DeadGroup, DeadLetter, DeadLetterDetail, DeadLetterSelection, DeadQuery, DeadReport, Risk,
};
pub use delivery::{
    Delivery, DeliveryQuery, DeliveryReport, DeliverySelection, EventDeliveries, Outage, RouteShare,
};
pub use directory::{
    Customer, Deleted, Member, NewCustomer, NewStaff, NewSubject, NewTenant, Staff, Subject, Tenant,
};
pub use event::{About, Content, Count, Event, EventDetail, EventQuery, Object};
pub use fulfilment::{
    CountedResult, Fulfilment, FulfilmentResult, FulfilmentRun, NewFulfilment, RetryFulfilment,
};
pub use import::{Import, Imported};
pub use inquiry::Inquiry;
pub use key::{ApiKey, NewApiKey, NewKeyAnswer, RevokedKey};
pub use links::{Link, Linked, Owner};
pub use message::{Call, Message, MessageDetail};
pub use notice::{Notice, NoticeDetail, Resend, Step};
pub use order_link::CustomerLink;
pub use page::{Dated, List, Page};
pub use payment::{
    Dispute, NewPayment, Payment, PaymentFacts, PaymentHistory, PaymentReferences, Refund, SettledAmount,
};
pub use problem::{FieldError, FullSlot, Problem};
pub use proof::{
    OwnEntry, PaymentProof, ProofBooks, ProofCall, ProofChain, ProofCheck, ProofDecision, ProofDelivery,
    ProofEntry, ProofEvent, ProofHead, ProofLine, ProofLink, ProofSum, RememberedEvent, StoredEvent,
};
pub use query::{read_query, write_query};
pub use reconciliation::{
    DayFigures, NewReconciliation, Reconciliation, ReconciliationDifference, ReconciliationFigures,
    ReconciliationReport,
};
pub use refund::{NewRefund, RefundOrder, RefundOrdered, ReleaseRefund};
pub use rejection::Rejection;
pub use reminder::{Remind, RemindReport, Reminded, ReminderSummary};
pub use replay::{NoticeForecast, Replay, ReplayReport, RouteForecast, Unanswered};
pub use reservation::{
    Cancel, Cancellation, Checkout, Confirm, Extend, NewCheckout, NewReservation, NewSlot, Reservation,
    ReservedCheckout, ReservedFulfilment, ReservedPayment, Slot,
};
pub use route::{Reset, Route};
pub use schedule::Schedule;
pub use source::Source;
pub use suppression::{Suppression, SuppressionTurn, Turn};
pub use trace::{Trace, TraceAttribute, TraceSpan};
pub use user::{Invite, NewInvite, NewRank, User};
