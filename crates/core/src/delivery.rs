//! Which events go to the app, what is sent, and what its answer means.
//!
//! [`route`] says which events a destination gets, [`envelope`] and [`sign`] what is sent, [`answer`] what came back,
//! [`address`] where nothing is sent at all. Nothing here opens a connection.

pub mod address;
pub mod answer;
pub mod envelope;
mod header;
mod plan;
pub mod route;
pub mod sign;

pub use answer::{Answer, BODY_KEPT_BYTES, Fault, judge};
pub use envelope::{Outgoing, outgoing};
pub use plan::{Delivery, deliveries};
pub use route::Route;
pub use sign::{Signer, Signing};
