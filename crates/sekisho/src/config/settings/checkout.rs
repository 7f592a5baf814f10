//! `[checkout]`: who makes the sessions in which customers pay.

use sekisho_core::settlement::checkout::{METHODS_MAX, is_method};

use super::Setting;

const SECTION: &str = "checkout";

pub const SOURCE: Setting = Setting {
    section: SECTION,
    key: "source",
    default: "\"\"",
    help: "The [[source]] whose api_key makes Checkout Sessions for reservations, and new ones when a payment failed. Empty: your app makes its own.",
    set: |config, given| {
        config.orders.checkout.source = Some(given.text()?).filter(|name| !name.is_empty());
        Ok(())
    },
};

pub const RETRIES: Setting = Setting {
    section: SECTION,
    key: "retries",
    default: "3",
    help: "After so many failed payments a customer is asked to contact you instead of trying again; at most 10 sessions are made for one payment.",
    set: |config, given| {
        config.orders.checkout.retries = given.count(1, 10)? as u32;
        Ok(())
    },
};

pub const METHODS: Setting = Setting {
    section: SECTION,
    key: "methods",
    default: "[]",
    help: "Ways to pay, in the provider's words: [\"card\", \"konbini\"]. Empty: as the provider's dashboard says.",
    set: |config, given| {
        let methods = given.list()?;
        if methods.len() > METHODS_MAX || !methods.iter().all(|method| is_method(method)) {
            return Err("expected words such as \"card\" or \"konbini\"".into());
        }
        config.orders.checkout.methods = methods;
        Ok(())
    },
};
