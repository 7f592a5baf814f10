//! What Sekisho promises, told as stories and seen from outside: the real binary, a socket, the command line, SQL.
//!
//! One file per subject; `support` holds the people and places (providers, gateways, stores). Each story has its
//! own folder, database and port. Whatever is random prints its seed. Every gateway that a story opened is searched
//! for planted secrets when it closes (`support::Gateway`), so that each story also proves H3.

#![allow(clippy::unwrap_used, reason = "a story that can't go on should stop where it stands")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "stories run beside a server, not in it"
)]

mod support;

mod alerts;
mod api;
mod apps;
mod attacks;
mod attacks_console;
mod attacks_gateway;
mod batches;
mod beginnings;
mod books;
mod books_api;
mod books_cli;
mod checkout;
mod cli;
mod console;
mod crashes;
mod customer_pages;
mod database;
mod deletion;
mod deliveries;
mod delivery;
mod demo;
mod dependencies;
mod differences;
mod directory;
mod disks;
mod engine;
mod four_providers;
mod gate;
mod handshakes;
mod hints;
mod histories;
mod lessons;
mod limits;
mod listen;
mod mail_server;
mod notices;
mod notices_cli;
mod once;
mod operator;
mod order_faults;
mod order_news;
mod orders;
mod orders_cli;
mod outages;
mod patience;
mod proof;
mod reconcile;
mod redo;
mod references;
mod refunds;
mod refusals;
mod reminders;
mod repeats;
mod replay;
mod reservations;
mod schedules;
mod secrets;
mod senders;
mod start;
mod telemetry;
mod tenants;
mod terminal;
mod tidy;
mod torture;
mod traces;
mod unusable;
mod views;
mod walk;
