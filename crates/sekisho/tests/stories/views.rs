//! B5: people who look with SQL find `webhook_events` on both stores, with the same columns and words.

use sekisho_lab::process::ServerOptions;

use crate::support::{Gateway, Provider, each_store, stripe_source, wait_until};

const COLUMNS: &str = "id\nevent_id\nevent_type\nsource\nbilling_id\ntenant_id\npayment_id\npayload\nstatus\n\
                       error_message\nprocessed_at\ncreated_at";

#[test]
fn b5_the_view_has_the_promised_columns_and_says_where_each_event_stands() {
    each_store(|place| {
        let receiver = Gateway::started(&place.url, &stripe_source(""), &[], |options| ServerOptions {
            role: Some("gateway".into()),
            ..options
        });
        let mut gateway = receiver.unwrap();
        let body = r#"{"id":"evt_waits","type":"charge.succeeded","created":2100000000,"livemode":false,"data":{"object":{"object":"charge","id":"ch_1","amount":5,"currency":"jpy","metadata":{"tenant":"ginza"}}}}"#;
        assert_eq!(gateway.send(&Provider::stripe().body(body)).status, 204);
        assert_eq!(gateway.send(&Provider::stripe().body("no event")).status, 204);

        let columns = if place.is_sqlite() {
            "SELECT name FROM pragma_table_info('webhook_events') ORDER BY cid"
        } else {
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'webhook_events' \
             ORDER BY ordinal_position"
        };
        assert_eq!(place.sql(columns), COLUMNS);
        let standing = "SELECT event_type, source, status, payload, error_message IS NOT NULL, \
                        processed_at IS NOT NULL, billing_id, tenant_id, payment_id FROM webhook_events \
                        WHERE source = 'stripe' ORDER BY id";
        let (yes, no) = if place.is_sqlite() { ("1", "0") } else { ("t", "f") };
        let unusable = format!("unusable|stripe|failed|no event|{yes}|{yes}|||");
        let waiting = |kind: &str, body: &str| format!("{kind}|stripe|received|{body}|{no}|{no}|||");
        let both = [waiting("charge.succeeded", body), waiting("unusable", "no event")];
        assert_eq!(place.sql(standing), both.join("\n"));
        gateway.server.kill9();

        let worker = Gateway::open(place);
        wait_until("it is settled", || worker.events().iter().all(|event| event["status"] != "received"));
        let payment = place.sql("SELECT id FROM payments");
        assert!(payment.starts_with("pay_"), "{payment}");
        let settled = format!("charge.succeeded|stripe|success|{body}|{no}|{yes}||ginza|{payment}");
        assert_eq!(place.sql(standing), format!("{settled}\n{unusable}"));
        // The question the view is for: what needs a person?
        let failed = "SELECT count(*) FROM webhook_events WHERE status = 'failed'";
        assert_eq!(place.sql(failed), "1");
        // Times are readable, and today.
        let today = sekisho::now().to_string()[..7].to_owned();
        for time in place.sql("SELECT created_at FROM webhook_events").lines() {
            assert!(time.starts_with(&today), "{time}");
        }
    });
}
