//! The books: accounts, their lines, and what customers have.

use schemars::JsonSchema;
use sekisho_core::Time;
use serde::{Deserialize, Serialize};

/// Every account, and whether all that was booked sums to zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Books {
    pub balanced: bool,
    pub totals: Vec<Total>,
    pub accounts: Vec<Account>,
}

/// Everything that was booked in one currency and mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Total {
    pub currency: String,
    pub livemode: Option<bool>,
    pub sum: i64,
    pub balanced: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    pub account: String,
    pub currency: String,
    pub livemode: Option<bool>,
    /// As posted: what sums to zero.
    pub sum: i64,
    /// With the sign that the account's owner expects.
    pub balance: i64,
    pub lines: i64,
}

/// What a customer has, and the newest entries that made it so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Balance {
    pub customer: String,
    pub tenant: Option<String>,
    pub balances: Vec<CurrencyBalance>,
    pub entries: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurrencyBalance {
    pub currency: String,
    pub livemode: Option<bool>,
    pub balance: i64,
}

/// One line of the books.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    pub id: i64,
    pub at: Time,
    pub account: String,
    pub currency: String,
    pub livemode: Option<bool>,
    /// With the sign that the account's owner expects.
    pub amount: i64,
    pub payment: String,
    /// Why, such as `captured`.
    pub cause: String,
}

/// What was checked and what was found.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BooksReport {
    pub payments: u64,
    pub lines: u64,
    pub accounts: u64,
    pub differences: Vec<Difference>,
    pub warnings: Vec<Warning>,
}

/// Something that is not as it must be. Amounts are in the currency's smallest unit, as they are booked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Difference {
    /// The lines of all payments don't sum to zero.
    Unbalanced {
        currency: String,
        livemode: Option<bool>,
        sum: i64,
    },
    /// The lines of this payment don't.
    Lopsided {
        payment: String,
        currency: String,
        livemode: Option<bool>,
        sum: i64,
    },
    /// The lines say something else than the facts.
    Wrong {
        payment: String,
        account: String,
        currency: String,
        cause: String,
        expected: i64,
        booked: i64,
    },
    /// Lines of a payment that is not there.
    Orphaned {
        payment: String,
    },
    Unreadable {
        payment: String,
        error: String,
    },
}

/// Something that may be as it is, but that a person should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Warning {
    /// More was taken back than the customer had left.
    Negative { account: String, currency: String, livemode: Option<bool>, balance: i64 },
    /// It changed each time it was looked at.
    Restless { payment: String },
}
