//! Payments, billing, balances and keys. What the app writes stands first, then what it is shown.

use super::Fields;

pub const SCHEMAS: &[(&str, Fields)] = &[
    ("NewPayment", NEW_PAYMENT),
    ("NewApiKey", &[("name", "text?"), ("scopes", "text[]"), ("tenant", "text?")]),
    ("RevokedKey", &[("key", "text")]),
    ("Payment", PAYMENT),
    ("PaymentDetail", TIMES),
    ("PaymentPage", &[("items", "PaymentDetail[]"), ("next", "text?")]),
    ("PaymentReferences", PAYMENT_REFERENCES),
    ("PaymentFacts", PAYMENT_FACTS),
    ("Refund", REFUND),
    ("Settled", SETTLED),
    ("Dispute", DISPUTE),
    ("PaymentProof", PAYMENT_PROOF),
    ("ProofCheck", &[("name", "text"), ("passed", "flag"), ("looked_at", "integer"), ("fault", "text?")]),
    ("ProofBooks", &[("lines", "any"), ("sums", "any")]),
    ("ProofChain", &[("links", "any"), ("heads", "any")]),
    ("Billing", BILLING),
    ("BillingPage", &[("items", "Billing[]"), ("next", "text?")]),
    ("BillingReferences", &[("customers", "text[]"), ("subscriptions", "text[]")]),
    ("Subscription", SUBSCRIPTION),
    ("Invoice", INVOICE),
    ("Period", &[("start", "time?"), ("end", "time?")]),
    ("Balance", BALANCE),
    ("CurrencyBalance", &[("currency", "text"), ("livemode", "flag?"), ("balance", "integer")]),
    ("Line", LINE),
    ("Books", &[("balanced", "flag"), ("totals", "Total[]"), ("accounts", "Account[]")]),
    ("Total", &[("currency", "text"), ("livemode", "flag?"), ("sum", "integer"), ("balanced", "flag")]),
    ("Account", ACCOUNT),
    ("ApiKey", API_KEY),
    ("ApiKeyDetail", &[("key", "text")]),
    ("ApiKeyList", &[("items", "ApiKey[]")]),
    ("User", USER),
    ("UserList", &[("items", "User[]")]),
    ("NewInvite", &[("rank", "text?")]),
    ("NewRank", &[("rank", "text")]),
    ("Invite", &[("path", "text"), ("rank", "text"), ("expires_at", "time")]),
];

const USER: Fields = &[
    ("name", "text"),
    ("rank", "text"),
    ("created_at", "time"),
    ("entered_at", "time?"),
    ("disabled_at", "time?"),
    ("shut_until", "time?"),
    ("sessions", "integer"),
];

const NEW_PAYMENT: Fields = &[
    ("amount", "integer"),
    ("currency", "text"),
    ("tenant", "text?"),
    ("customer", "text?"),
    ("purpose", "text?"),
    ("reference", "text?"),
    ("account", "text?"),
    ("description", "text?"),
    ("metadata", "any"),
    ("livemode", "flag?"),
];

const BALANCE: Fields =
    &[("customer", "text"), ("tenant", "text?"), ("balances", "CurrencyBalance[]"), ("entries", "Line[]")];

const PAYMENT: Fields = &[
    ("id", "text"),
    ("object", "text"),
    ("status", "text"),
    ("amount", "integer"),
    ("currency", "text?"),
    ("amount_received", "integer"),
    ("amount_missing", "integer"),
    ("failed_tries", "integer"),
    ("amount_tip", "integer"),
    ("amount_surcharge", "integer"),
    ("amount_refunded", "integer"),
    ("amount_refund_pending", "integer"),
    ("fee", "integer?"),
    ("net", "integer?"),
    ("settled", "Settled[]"),
    ("disputed", "flag"),
    ("dispute_status", "text?"),
    ("dispute_fee", "integer"),
    ("net_of_dispute", "integer"),
    ("livemode", "flag?"),
    ("tenant", "text?"),
    ("customer", "text?"),
    ("purpose", "text?"),
    ("reference", "text?"),
    ("description", "text?"),
    ("metadata", "any"),
    ("linked", "flag"),
    ("attention", "text?"),
    ("references", "PaymentReferences"),
    ("refunds", "Refund[]"),
    ("disputes", "Dispute[]"),
    ("receipt_url", "text?"),
    ("facts", "PaymentFacts"),
];

/// When a thing was written first, and last.
pub(super) const TIMES: Fields = &[("created_at", "time"), ("changed_at", "time")];

const PAYMENT_REFERENCES: Fields = &[
    ("payment_intents", "text[]"),
    ("charges", "text[]"),
    ("sessions", "text[]"),
    ("orders", "text[]"),
    ("invoices", "text[]"),
    ("customers", "text[]"),
];

/// Each an object of the provider's objects, by their ids.
const PAYMENT_FACTS: Fields = &[
    ("intents", "any"),
    ("charges", "any"),
    ("sessions", "any"),
    ("transactions", "any"),
    ("refunds", "any"),
    ("disputes", "any"),
];

/// What the provider booked in another currency than the payment's.
const SETTLED: Fields =
    &[("currency", "text"), ("amount", "integer"), ("fee", "integer"), ("net", "integer")];

const REFUND: Fields =
    &[("id", "text"), ("status", "text"), ("amount", "integer"), ("reason", "text?"), ("failure", "text?")];

const DISPUTE: Fields = &[
    ("id", "text"),
    ("status", "text"),
    ("amount", "integer"),
    ("reason", "text?"),
    ("withdrawn", "integer"),
    ("reinstated", "integer"),
    ("fee", "integer"),
    ("fee_returned", "integer"),
];

/// The lists hold what the endpoint of each thing shows, with hashes and without what must not be handed on.
const PAYMENT_PROOF: Fields = &[
    ("object", "text"),
    ("made_at", "time"),
    ("made_by", "text"),
    ("passed", "flag"),
    ("complete", "flag"),
    ("checks", "ProofCheck[]"),
    ("payment", "PaymentDetail"),
    ("known_as", "text[]"),
    ("parts", "text[]"),
    ("events", "any"),
    ("decisions", "any"),
    ("deliveries", "any"),
    ("notices", "any"),
    ("books", "ProofBooks"),
    ("chain", "ProofChain"),
];

const BILLING: Fields = &[
    ("id", "text"),
    ("object", "text"),
    ("tenant", "text?"),
    ("status", "text"),
    ("access", "flag"),
    ("entitled_until", "time?"),
    ("paid_through", "time?"),
    ("current_period", "Period"),
    ("trial_end", "time?"),
    ("cancel_at", "time?"),
    ("ended_at", "time?"),
    ("currency", "text?"),
    ("paid_invoices", "integer"),
    ("amount_paid_total", "integer"),
    ("livemode", "flag?"),
    ("attention", "text?"),
    ("subscriptions", "Subscription[]"),
    ("invoices", "Invoice[]"),
    ("references", "BillingReferences"),
    ("created_at", "time"),
    ("changed_at", "time"),
];

const SUBSCRIPTION: Fields = &[
    ("id", "text"),
    ("status", "text"),
    ("currency", "text?"),
    ("current_period", "Period"),
    ("trial_end", "time?"),
    ("cancel_at", "time?"),
    ("ended_at", "time?"),
    ("paid_through", "time?"),
];

const INVOICE: Fields = &[
    ("id", "text"),
    ("status", "text"),
    ("subscription", "text?"),
    ("amount_due", "integer"),
    ("amount_paid", "integer"),
    ("currency", "text?"),
    ("paid_at", "time?"),
    ("paid_through", "time?"),
    ("payment_intents", "text[]"),
];

const LINE: Fields = &[
    ("id", "integer"),
    ("at", "time"),
    ("account", "text"),
    ("currency", "text"),
    ("livemode", "flag?"),
    ("amount", "integer"),
    ("payment", "text"),
    ("cause", "text"),
];

const ACCOUNT: Fields = &[
    ("account", "text"),
    ("currency", "text"),
    ("livemode", "flag?"),
    ("sum", "integer"),
    ("balance", "integer"),
    ("lines", "integer"),
];

const API_KEY: Fields = &[
    ("name", "text"),
    ("hint", "text"),
    ("scopes", "text[]"),
    ("tenant", "text?"),
    ("created_at", "time"),
    ("revoked_at", "time?"),
];

#[cfg(test)]
mod tests {
    use sekisho_core::Time;
    use sekisho_core::state::{Index, Key, Kind, Posting, State};
    use sekisho_store::{BookedLine, Sum};

    use super::super::tests::check;
    use sekisho_core::user::{Invite, Rank, User};

    use crate::acts::ApiKey;
    use crate::config::Scope;
    use crate::view;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    fn state(kind: Kind, facts: &str) -> State {
        let (key, facts, index) = (Key::new(kind, "x"), facts.to_owned(), Index::default());
        State { key, version: 1, facts, index, created_at: NOW, changed_at: NOW }
    }

    #[test]
    fn h2_payments_and_billing_have_the_fields_that_the_document_names() {
        let facts = r#"{"refunds":{"re_1":{}},"disputes":{"dp_1":{}}}"#;
        let payment = view::payment(&state(Kind::Payment, facts)).unwrap();
        check("PaymentDetail", &payment);
        check("PaymentReferences", &payment["references"]);
        check("PaymentFacts", &payment["facts"]);
        check("Refund", &payment["refunds"][0]);
        check("Dispute", &payment["disputes"][0]);
        let facts = r#"{"subscriptions":{"sub_1":{}},"invoices":{"in_1":{}}}"#;
        let billing = view::billing(&state(Kind::Billing, facts), NOW, std::time::Duration::ZERO).unwrap();
        check("Billing", &billing);
        check("BillingReferences", &billing["references"]);
        check("Subscription", &billing["subscriptions"][0]);
        check("Invoice", &billing["invoices"][0]);
        check("Period", &billing["current_period"]);
        assert!(
            view::payment(&state(Kind::Payment, "[1]")).is_err(),
            "what can't be read is not shown as unpaid"
        );
    }

    #[tokio::test]
    async fn h2_a_proof_has_the_fields_that_the_document_names() {
        let store = sekisho_store::memory::MemoryStore::default();
        let paid = view::samples::paid("o_1", 1200, &serde_json::json!({}));
        let id = view::samples::settle(&store, &paid).await;
        let proof = view::proof(&store, &id, NOW).await.unwrap().unwrap();
        check("PaymentProof", &proof);
        check("ProofCheck", &proof["checks"][0]);
        check("ProofBooks", &proof["books"]);
        check("ProofChain", &proof["chain"]);
        check("PaymentDetail", &proof["payment"]);
    }

    #[test]
    fn h2_books_and_keys_have_the_fields_that_the_document_names() {
        let (account, currency, livemode, amount) = ("customer/a/c".to_owned(), "jpy".to_owned(), None, -1);
        let sum = Sum { account: account.clone(), currency: currency.clone(), livemode, amount, lines: 1 };
        let (payment, cause) = ("pay_1".into(), "captured".into());
        let posting = Posting { account, currency, livemode, amount, payment, cause };
        let line = BookedLine { number: 1, at: NOW, posting };
        let sums = [sum];
        let balance = view::balance(Some("a"), "c", &sums, &[line]);
        check("Balance", &balance);
        check("CurrencyBalance", &balance["balances"][0]);
        check("Line", &balance["entries"][0]);
        assert_eq!(
            (&balance["balances"][0]["balance"], &balance["entries"][0]["amount"]),
            (&1.into(), &1.into())
        );
        let books = view::books(&sums);
        check("Books", &books);
        check("Total", &books["totals"][0]);
        check("Account", &books["accounts"][0]);
        check("User", &view::user("mika", &User::new(Rank::Viewer, String::new(), NOW), NOW));
        check("Invite", &view::invite("token", &Invite::new(Rank::Viewer, "hash".into(), None, NOW)));
        let key = ApiKey {
            name: "k".into(),
            scopes: vec![Scope::Read],
            tenant: None,
            hint: "sk_1".into(),
            created_at: NOW,
            revoked_at: None,
        };
        check("ApiKey", &view::key(&key));
    }
}
