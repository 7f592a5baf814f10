//! Notices, suppressions, reminders and channels. What is ordered stands first, then what is shown.

use super::Fields;

pub const SCHEMAS: &[(&str, Fields)] = &[
    ("Resend", &[("to", "text?")]),
    ("Turn", &[("address", "text"), ("reason", "text")]),
    ("Remind", &[("date", "text?"), ("tenant", "text?"), ("dry_run", "flag")]),
    ("Notice", NOTICE),
    ("NoticeDetail", &[("steps", "Step[]"), ("audit", "AuditEntry[]")]),
    ("NoticePage", &[("items", "Notice[]"), ("next", "text?")]),
    ("Step", &[("at", "time"), ("status", "text"), ("reason", "text?"), ("note", "text?")]),
    ("Suppression", SUPPRESSION),
    ("SuppressionPage", &[("items", "Suppression[]"), ("next", "text?")]),
    ("SuppressionTurn", &[("at", "time"), ("cause", "text"), ("note", "text?"), ("by", "text?")]),
    ("RemindReport", REMIND_REPORT),
    ("Reminded", REMINDED),
    ("ReminderSummary", REMINDER_SUMMARY),
    ("Channel", CHANNEL),
    ("ChannelList", &[("items", "Channel[]")]),
    ("Resumed", &[("channel", "text"), ("was", "text")]),
];

const NOTICE: Fields = &[
    ("id", "text"),
    ("object", "text"),
    ("status", "text"),
    ("to", "text?"),
    ("name", "text?"),
    ("channel", "text"),
    ("audience", "text"),
    ("template", "text"),
    ("language", "text"),
    ("tenant", "text?"),
    ("payment", "text?"),
    ("event", "text?"),
    ("batch", "text?"),
    ("message", "text?"),
    ("reason", "text?"),
    ("note", "text?"),
    ("advice", "text?"),
    ("details", "any"),
    ("attempts", "integer"),
    ("resent", "integer"),
    ("created_at", "time?"),
    ("changed_at", "time?"),
];

const SUPPRESSION: Fields = &[
    ("id", "text"),
    ("object", "text"),
    ("address", "text"),
    ("suppressed", "flag"),
    ("cause", "text"),
    ("note", "text?"),
    ("by", "text?"),
    ("at", "time"),
    ("history", "SuppressionTurn[]"),
];

const REMIND_REPORT: Fields = &[
    ("dry_run", "flag"),
    ("channel", "text"),
    ("days", "text[]"),
    ("offices", "integer"),
    ("due", "integer"),
    ("new", "integer"),
    ("queued", "integer"),
    ("off", "integer"),
    ("recipients", "Reminded[]"),
];

const REMINDED: Fields =
    &[("to", "text?"), ("tenant", "text?"), ("status", "text"), ("language", "text"), ("details", "any")];

const REMINDER_SUMMARY: Fields = &[
    ("object", "text"),
    ("date", "text"),
    ("total", "integer"),
    ("waiting", "integer"),
    ("by_status", "any"),
];

const CHANNEL: Fields = &[
    ("name", "text"),
    ("kind", "text"),
    ("breaker", "text"),
    ("why", "text?"),
    ("open_since", "time?"),
    ("open_until", "time?"),
    ("used_today", "integer?"),
    ("daily", "integer?"),
    ("oldest_due_at", "time?"),
];
