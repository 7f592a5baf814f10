//! H1, B4, G5, A3: what operators do at the console, in a real browser, in both languages, on a phone and at a desk.

use sekisho_lab::app::{App, Behaviour};
use sekisho_lab::browser::Look;
use sekisho_lab::smtp::{self, Smtp};

use super::delivery::event;
use super::notices::mail;
use crate::support::{Gateway, Letter, Person, Place, each_store, route_to, stripe_source, wait_until};

const FAST: &str = "spacing = \"1ms\"\nrate = 1000";
const RECEIPT: &str = "[[notify]]\nname = \"receipt\"\nevents = [\"payment.paid\"]\nto = \"customer\"\nchannel = \"mail\"\n\
                       template = \"payment-received\"\n";
const NO_RETRY: &str = "retries = 0\ntype = \"raw\"";
