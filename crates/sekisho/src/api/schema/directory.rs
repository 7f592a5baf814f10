//! Tenants, customers, staff and subjects. What the app writes stands first, then what it is shown.

use super::Fields;
use super::books::TIMES;

pub const SCHEMAS: &[(&str, Fields)] = &[
    ("NewTenant", &[("id", "text"), ("name", "text?"), ("language", "text?"), ("time_zone", "text?")]),
    ("NewCustomer", NEW_CUSTOMER),
    ("NewStaff", NEW_STAFF),
    ("NewSubject", NEW_SUBJECT),
    ("Import", &[("kind", "text"), ("rows", "any[]"), ("dry_run", "flag")]),
    ("Imported", &[("new", "integer"), ("changed", "integer"), ("unchanged", "integer")]),
    ("Tenant", TENANT),
    ("TenantDetail", TIMES),
    ("TenantPage", &[("items", "TenantDetail[]"), ("next", "text?")]),
    ("Customer", CUSTOMER),
    ("CustomerDetail", TIMES),
    ("CustomerPage", &[("items", "CustomerDetail[]"), ("next", "text?")]),
    ("Staff", STAFF),
    ("StaffDetail", TIMES),
    ("StaffPage", &[("items", "StaffDetail[]"), ("next", "text?")]),
    ("Subject", SUBJECT),
    ("SubjectDetail", TIMES),
    ("SubjectPage", &[("items", "SubjectDetail[]"), ("next", "text?")]),
    ("Deleted", &[("id", "text"), ("object", "text"), ("deleted", "flag"), ("was", "text?")]),
];

const NEW_CUSTOMER: Fields =
    &[("id", "text"), ("tenant", "text?"), ("name", "text?"), ("email", "text?"), ("language", "text?")];

const NEW_STAFF: Fields = &[
    ("id", "text"),
    ("tenant", "text"),
    ("family_name", "text?"),
    ("given_name", "text?"),
    ("email", "text"),
    ("language", "text?"),
    ("notifications", "flag?"),
    ("threshold_days", "integer?"),
];

const NEW_SUBJECT: Fields = &[
    ("id", "text"),
    ("tenant", "text"),
    ("name", "text"),
    ("renewal_due_on", "date?"),
    ("assessment_due_on", "date?"),
];

const TENANT: Fields =
    &[("id", "text"), ("object", "text"), ("name", "text?"), ("language", "text?"), ("time_zone", "text?")];

const CUSTOMER: Fields = &[
    ("id", "text"),
    ("object", "text"),
    ("tenant", "text?"),
    ("name", "text?"),
    ("email", "text?"),
    ("language", "text?"),
];

/// `name` is both halves as people read them, family name first.
const STAFF: Fields = &[
    ("id", "text"),
    ("object", "text"),
    ("tenant", "text"),
    ("name", "text?"),
    ("family_name", "text?"),
    ("given_name", "text?"),
    ("email", "text"),
    ("language", "text?"),
    ("notifications", "flag"),
    ("threshold_days", "integer"),
];

const SUBJECT: Fields = &[
    ("id", "text"),
    ("object", "text"),
    ("tenant", "text"),
    ("name", "text"),
    ("renewal_due_on", "date?"),
    ("assessment_due_on", "date?"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sekisho_core::directory::Register;
    use serde_json::json;

    use super::super::tests::{check, fields};
    use crate::acts::{Import, Imported};

    #[test]
    fn h2_orders_have_the_fields_that_the_document_names() {
        for (register, schema) in [
            (Register::Tenants, "NewTenant"),
            (Register::Customers, "NewCustomer"),
            (Register::Staff, "NewStaff"),
            (Register::Subjects, "NewSubject"),
        ] {
            assert_eq!(fields(schema), register.fields().iter().copied().collect::<BTreeSet<_>>());
        }
        check("Import", &json!(Import::default()));
        check("Imported", &json!(Imported::default()));
    }
}
