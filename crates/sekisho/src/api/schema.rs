//! What bodies and answers look like, in a short notation: `text`, `time`, `date`, `integer`, `flag`, `any`, the name of
//! another schema; `?` for "or null", `[]` for a list.

mod books;
mod directory;
mod notifications;

use serde_json::{Map, Value, json};

type Fields = &'static [(&'static str, &'static str)];

const SCHEMAS: &[(&str, Fields)] = &[
    ("Object", &[("kind", "text"), ("id", "text")]),
    ("About", &[("payment", "text?"), ("billing", "text?"), ("tenant", "text?")]),
    ("Event", EVENT),
    ("EventDetail", EVENT_DETAIL),
    ("EventPage", &[("items", "Event[]"), ("next", "text?")]),
    ("DeadLetter", DEAD_LETTER),
    ("DeadLetterDetail", DEAD_LETTER_DETAIL),
    ("DeadLetterPage", &[("items", "DeadLetter[]"), ("next", "text?")]),
    ("Message", MESSAGE),
    ("MessageDetail", &[("calls", "Call[]")]),
    ("Call", CALL),
    ("Route", ROUTE),
    ("RouteList", &[("items", "Route[]")]),
    ("Reset", &[("route", "text"), ("was", "text")]),
    ("Schedule", SCHEDULE),
    ("ScheduleList", &[("items", "Schedule[]")]),
    ("AuditEntry", AUDIT_ENTRY),
    ("AuditPage", &[("items", "AuditEntry[]"), ("next", "integer?")]),
    (
        "Count",
        &[("hour", "time"), ("source", "text"), ("type", "text"), ("status", "text"), ("events", "integer")],
    ),
    ("CountList", &[("items", "Count[]")]),
    ("DeadQuery", DEAD_QUERY),
    (
        "DeadLetterSelection",
        &[
            ("ids", "text[]"),
            ("filter", "DeadQuery"),
            ("all", "flag"),
            ("dry_run", "flag"),
            ("reason", "text"),
        ],
    ),
    ("DeadGroup", DEAD_GROUP),
    ("Risk", &[("currency", "text"), ("amount", "integer"), ("payments", "integer")]),
    ("DeadGroupList", &[("items", "DeadGroup[]")]),
    ("Rejection", REJECTION),
    ("RejectionPage", &[("items", "Rejection[]"), ("next", "text?")]),
    ("DeadReport", DEAD_REPORT),
    ("EventQuery", EVENT_QUERY),
    ("Replay", REPLAY),
    ("RouteForecast", ROUTE_FORECAST),
    ("NoticeForecast", NOTICE_FORECAST),
    ("Unanswered", &[("rule", "text"), ("error", "text"), ("count", "integer")]),
    ("ReplayReport", REPLAY_REPORT),
    (
        "Problem",
        &[
            ("type", "text"),
            ("title", "text"),
            ("status", "integer"),
            ("detail", "text"),
            ("errors", "FieldError[]"),
            ("request_id", "text"),
        ],
    ),
    ("FieldError", &[("field", "text"), ("detail", "text")]),
];

const EVENT: Fields = &[
    ("id", "text"),
    ("event_id", "text"),
    ("source", "text"),
    ("type", "text"),
    ("status", "text"),
    ("received_at", "time"),
    ("created_at", "time?"),
    ("object", "Object?"),
    ("account", "text?"),
    ("livemode", "flag?"),
    ("trust", "text"),
    ("id_reused", "flag"),
    ("note", "text?"),
    ("processed_at", "time?"),
    ("about", "About"),
];

/// Besides what [`EVENT`] has. The other details likewise.
const EVENT_DETAIL: Fields = &[
    ("headers", "any"),
    ("body", "text?"),
    ("body_base64", "text?"),
    ("body_masked", "flag"),
    ("messages", "Message[]"),
];

const DEAD_LETTER: Fields = &[
    ("id", "text"),
    ("kind", "text"),
    ("lane", "text"),
    ("route", "text?"),
    ("reason", "text"),
    ("class", "text"),
    ("error", "text"),
    ("attempts", "integer"),
    ("crashes", "integer"),
    ("died_at", "time"),
    ("event", "text?"),
    ("event_id", "text?"),
    ("type", "text?"),
    ("source", "text?"),
    ("about", "About"),
    ("amount", "integer?"),
    ("currency", "text?"),
];

const DEAD_LETTER_DETAIL: Fields = &[
    ("object", "Object?"),
    ("timer", "text?"),
    ("notice", "text?"),
    ("headers", "any"),
    ("body", "text?"),
    ("body_base64", "text?"),
    ("body_masked", "flag"),
    ("calls", "Call[]"),
];

const MESSAGE: Fields = &[
    ("id", "text"),
    ("lane", "text"),
    ("route", "text?"),
    ("event", "text?"),
    ("attempts", "integer"),
    ("standing", "text"),
    ("at", "time?"),
    ("due_at", "time?"),
    ("note", "text?"),
    ("reason", "text?"),
    ("class", "text?"),
    ("error", "text?"),
];

const CALL: Fields = &[
    ("attempt", "integer"),
    ("at", "time"),
    ("took_ms", "integer"),
    ("status", "integer?"),
    ("reason", "text?"),
    ("error", "text?"),
    ("headers", "any"),
    ("body", "text?"),
    ("body_base64", "text?"),
    ("body_masked", "flag"),
];

const ROUTE: Fields = &[
    ("name", "text"),
    ("url", "text"),
    ("breaker", "text"),
    ("open_since", "time?"),
    ("open_until", "time?"),
    ("oldest_due_at", "time?"),
];

const AUDIT_ENTRY: Fields = &[
    ("id", "integer"),
    ("at", "time"),
    ("actor", "text?"),
    ("role", "text?"),
    ("action", "text"),
    ("target", "text"),
    ("target_type", "text"),
    ("tenant", "text?"),
    ("event", "text?"),
    ("reason", "text?"),
    ("details", "any"),
];

const SCHEDULE: Fields =
    &[("name", "text"), ("type", "text"), ("cron", "text"), ("timezone", "text"), ("next_at", "time?")];

const DEAD_QUERY: Fields = &[
    ("source", "text?"),
    ("type", "text?"),
    ("reason", "text?"),
    ("route", "text?"),
    ("lane", "text?"),
    ("event", "text?"),
    ("since", "time?"),
    ("until", "time?"),
];

const DEAD_GROUP: Fields = &[
    ("reason", "text"),
    ("class", "text"),
    ("lane", "text"),
    ("count", "integer"),
    ("oldest", "time"),
    ("newest", "time"),
    ("at_risk", "Risk[]"),
];

const REJECTION: Fields = &[
    ("id", "text"),
    ("at", "time"),
    ("last_at", "time"),
    ("source", "text"),
    ("peer", "text"),
    ("network", "text"),
    ("reason", "text"),
    ("detail", "text"),
    ("request_id", "text"),
    ("count", "integer"),
];

const DEAD_REPORT: Fields = &[
    ("dry_run", "flag"),
    ("until", "time?"),
    ("found", "integer"),
    ("done", "integer"),
    ("in_doubt", "integer"),
    ("missing", "text[]"),
    ("more", "flag"),
    ("groups", "DeadGroup[]"),
];

const EVENT_QUERY: Fields = &[
    ("source", "text?"),
    ("type", "text?"),
    ("status", "text?"),
    ("object", "text?"),
    ("payment", "text?"),
    ("tenant", "text?"),
    ("since", "time?"),
    ("until", "time?"),
    ("own", "flag"),
];

const REPLAY: Fields = &[
    ("ids", "text[]"),
    ("filter", "EventQuery"),
    ("all", "flag"),
    ("again", "flag"),
    ("dry_run", "flag"),
    ("reason", "text"),
];

const ROUTE_FORECAST: Fields = &[
    ("route", "text"),
    ("new", "integer"),
    ("delivered", "integer"),
    ("waiting", "integer"),
    ("dead", "integer"),
    ("discarded", "integer"),
];

const NOTICE_FORECAST: Fields =
    &[("rule", "text"), ("channel", "text"), ("new", "integer"), ("told", "integer"), ("unsent", "integer")];

const REPLAY_REPORT: Fields = &[
    ("dry_run", "flag"),
    ("until", "time?"),
    ("again", "flag"),
    ("found", "integer"),
    ("queued", "integer"),
    ("unfinished", "integer"),
    ("missing", "text[]"),
    ("more", "flag"),
    ("routes", "RouteForecast[]"),
    ("notices", "NoticeForecast[]"),
    ("announcements", "integer"),
    ("without_route", "integer"),
    ("unanswered", "Unanswered[]"),
];

fn each() -> impl Iterator<Item = &'static (&'static str, Fields)> {
    SCHEMAS.iter().chain(books::SCHEMAS).chain(directory::SCHEMAS).chain(notifications::SCHEMAS)
}

/// Every schema, by name. A `…Detail` has all that the short form has, too.
pub fn all() -> Value {
    let schemas = each().map(|(name, fields)| {
        let own = object(fields);
        let short = name.strip_suffix("Detail");
        let schema = short.map_or(own.clone(), |short| json!({ "allOf": [of(short), own] }));
        ((*name).to_owned(), schema)
    });
    schemas.collect::<Map<_, _>>().into()
}

fn object(fields: Fields) -> Value {
    let properties: Map<_, _> = fields.iter().map(|(name, kind)| ((*name).to_owned(), of(kind))).collect();
    json!({ "type": "object", "properties": properties })
}

/// A type of the notation.
pub fn of(kind: &str) -> Value {
    if let Some(item) = kind.strip_suffix("[]") {
        return json!({ "type": "array", "items": of(item) });
    }
    if let Some(kind) = kind.strip_suffix('?') {
        return json!({ "anyOf": [of(kind), { "type": "null" }] });
    }
    match kind {
        "text" => json!({ "type": "string" }),
        "time" => json!({ "type": "string", "format": "date-time" }),
        "date" => json!({ "type": "string", "format": "date" }),
        "integer" => json!({ "type": "integer" }),
        "flag" => json!({ "type": "boolean" }),
        "any" => json!({}),
        name => json!({ "$ref": format!("#/components/schemas/{name}") }),
    }
}

#[cfg(test)]
pub mod tests {
    use std::collections::BTreeSet;

    use super::*;

    pub fn fields(name: &str) -> BTreeSet<&'static str> {
        let (_, own) = each().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("{name}"));
        let mut all: BTreeSet<_> = own.iter().map(|(field, _)| *field).collect();
        if let Some(short) = name.strip_suffix("Detail") {
            all.extend(fields(short));
        }
        all
    }

    /// Insists that the value has exactly the fields that the schema promises.
    pub fn check(name: &str, value: &Value) {
        let found: BTreeSet<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(found, fields(name), "{name}");
    }

    #[test]
    fn h2_orders_and_reports_have_the_fields_that_the_document_names() {
        use crate::acts as t;
        check("DeadLetterSelection", &json!(t::DeadLetterSelection::default()));
        check("DeadQuery", &json!(t::DeadQuery::default()));
        check("DeadReport", &json!(t::DeadReport::default()));
        check("Replay", &json!(t::Replay::default()));
        check("EventQuery", &json!(t::EventQuery::default()));
        check("ReplayReport", &json!(t::ReplayReport::default()));
        check("RouteForecast", &json!(t::RouteForecast::default()));
        check("NoticeForecast", &json!(t::NoticeForecast::default()));
        check("Reset", &json!(t::Reset { route: String::new(), was: String::new() }));
        check("Remind", &json!(t::Remind::default()));
        check("RemindReport", &json!(t::RemindReport::default()));
        check("Resumed", &json!(t::Resumed { channel: String::new(), was: String::new() }));
    }

    #[tokio::test]
    async fn h2_what_is_shown_has_the_fields_that_the_document_names() {
        use std::sync::Arc;

        use sekisho_core::audit::Entry;
        use sekisho_core::change::{Arrival, ChangeSet, Rejection};
        use sekisho_core::event::{DedupeKey, Trust};
        use sekisho_core::job::{Attempt, DeadReason, End, Lease};
        use sekisho_core::{Seq, Time};
        use sekisho_store::memory::MemoryStore;
        use sekisho_store::{
            AuditEntry, Count, DeadFilter, DeadGroup, DeadLetter, EventFilter, Stake, Status, Store,
        };

        use crate::view;

        let (seq, now, text) = (Seq::from_i64(7), Time::from_ms(1_780_000_000_000), String::new);
        let arrival = Arrival {
            key: DedupeKey::new("shop", "evt_1", None),
            first_body: None,
            seq,
            received_at: now,
            source: "shop".into(),
            event_id: "evt_1".into(),
            event_type: text(),
            created_at: None,
            object: Some(("payment".into(), "pi_1".into())),
            account: None,
            livemode: None,
            trust: Trust::Signed,
            headers: "[]".into(),
            body: bytes::Bytes::new(),
            held: None,
        };
        let store = MemoryStore::default();
        let epoch = store.join(now).await.unwrap().epoch;
        store.admit(Arc::new([arrival]), Some(epoch)).await.unwrap();
        let end = End::Dead(DeadReason::terminal("unusable_body", "odd"));
        store.commit(vec![ChangeSet::end(Lease::born(seq, epoch), end, now)]).await.unwrap();
        let event = view::event_with_all(&store, seq).await.unwrap().unwrap();
        check("EventDetail", &event);
        check("Object", &event["object"]);
        check("About", &event["about"]);
        check("DeadLetterDetail", &view::dead_letter_with_all(&store, seq).await.unwrap().unwrap());
        check("MessageDetail", &view::message_with_all(&store, seq).await.unwrap().unwrap());
        let events = store.find_events(EventFilter { limit: 1, ..EventFilter::default() }).await.unwrap();
        check("Event", &view::event(&events.events[0]));
        let letters = store.find_dead(DeadFilter { limit: 1, ..DeadFilter::default() }).await.unwrap();
        check("DeadLetter", &view::dead_letter(&letters[0]));
        let stake = Some(Stake { payment: text(), amount: 1, currency: text() });
        let group = json!(DeadGroup::all(&[DeadLetter { stake, ..letters[0].clone() }])[0]);
        check("DeadGroup", &group);
        check("Risk", &group["at_risk"][0]);
        let (source, peer, reason, detail, request_id) = (text(), text(), text(), text(), text());
        let (last_at, network) = (now, text());
        let refused =
            Rejection { seq, at: now, last_at, source, peer, network, reason, detail, request_id, count: 1 };
        check("Rejection", &view::rejection(&refused));
        check("Message", &view::message(&store.find_message(seq).await.unwrap().unwrap()));
        let (reason, error, headers, body) = (None, None, None, None);
        let call = Attempt { at: now, took_ms: 1, status: None, reason, error, headers, body };
        check("Call", &view::call(1, &call));
        let target = (text(), text());
        let (actor, role, tenant, event) = (None, None, None, None);
        let (action, details) = (text(), "{}".into());
        let entry = Entry { at: now, actor, role, action, target, tenant, event, details };
        check("AuditEntry", &view::audit(&AuditEntry { number: 1, entry }));
        let (source, event_type) = (text(), text());
        let count = Count { hour: now, source, event_type, status: Status::Failed, events: 1 };
        check("Count", &view::count(&count));
        let place = view::Place { name: "app".into(), url: text() };
        check("Route", &view::routes(&[place], &store).await.unwrap()[0]);
    }

    #[test]
    fn h2_every_name_in_the_document_leads_somewhere() {
        let text = crate::api::openapi::document().to_string();
        for name in text.split("#/components/schemas/").skip(1) {
            let name = name.split('"').next().unwrap();
            assert!(each().any(|(known, _)| *known == name), "{name}");
        }
    }
}
