//! One of the directory as the audit log says it: with its address masked.

use serde_json::{Value, json};

use super::Member;

/// What is kept of it, with its address masked.
pub(super) fn said(member: &Member) -> Value {
    let masked = member.email().map(ToString::to_string);
    match member {
        Member::Tenant(tenant) => json!({
            "name": tenant.name,
            "language": tenant.language,
            "time_zone": tenant.time_zone,
        }),
        Member::Customer(customer) => json!({
            "tenant": customer.tenant,
            "name": customer.name,
            "email": masked,
            "language": customer.language,
        }),
        Member::Staff(staff) => json!({
            "tenant": staff.tenant,
            "family_name": staff.family_name,
            "given_name": staff.given_name,
            "email": masked,
            "language": staff.language,
            "notifications": staff.notifications,
            "threshold_days": staff.threshold_days,
        }),
        Member::Subject(subject) => json!({
            "tenant": subject.tenant,
            "name": subject.name,
            "renewal_due_on": subject.renewal_due_on,
            "assessment_due_on": subject.assessment_due_on,
        }),
    }
}
