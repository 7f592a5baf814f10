//! A4: several events in one request are stored together and named one by one.

use crate::support::{Gateway, Provider, each_store};

const LINE_SECRET: &str = "canary_line_channel";
const ADYEN_SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789cafe00";

fn line(ids: &[&str]) -> String {
    let event = |id: &&str| {
        format!(
            r#"{{"type":"message","webhookEventId":"{id}","timestamp":2100000000000,"message":{{"id":"m-{id}","type":"text","text":"こんにちは"}}}}"#
        )
    };
    let events: Vec<_> = ids.iter().map(event).collect();
    format!(r#"{{"destination":"U1","events":[{}]}}"#, events.join(","))
}

fn gateway(place: &crate::support::Place) -> Gateway {
    let config = "[[source]]\nname = \"line\"\nprovider = \"line\"\nsecrets = [\"env:LINE\"]\n\
                  [[source]]\nname = \"adyen\"\nprovider = \"adyen\"\nsecrets = [\"env:ADYEN\"]\n";
    let mut gateway = Gateway::with_env(place, config, &[("LINE", LINE_SECRET), ("ADYEN", ADYEN_SECRET)]);
    gateway.canaries.push(ADYEN_SECRET.into());
    gateway
}

#[test]
fn a4_a_batch_of_three_is_three_events_with_their_ids_listed() {
    each_store(|place| {
        let gateway = gateway(place);
        let sender = Provider::new("line", LINE_SECRET);
        let answer = gateway.send(&sender.body(&line(&["a", "b", "c"])));
        assert_eq!((answer.status, answer.header("sekisho-outcome")), (204, Some("accepted")));
        assert_eq!(answer.header("sekisho-event-id"), Some("a,b,c"));
        let messages: Vec<_> =
            answer.header("sekisho-message-id").unwrap().split(',').map(str::to_owned).collect();
        assert_eq!(messages.len(), 3);
        assert_eq!(gateway.event_ids(), ["a", "b", "c"]);

        // One of them again, with a new one: only the new one is stored, and the old one keeps its number.
        let answer = gateway.send(&sender.body(&line(&["c", "d"])));
        assert_eq!((answer.status, answer.header("sekisho-outcome")), (204, Some("accepted")));
        let again: Vec<_> = answer.header("sekisho-message-id").unwrap().split(',').collect();
        assert_eq!(again[0], messages[2]);
        assert_eq!(gateway.event_ids(), ["a", "b", "c", "d"]);

        let answer = gateway.send(&sender.body(&line(&["a", "b", "c"])));
        assert_eq!((answer.status, answer.header("sekisho-outcome")), (204, Some("duplicate")));
        assert_eq!(answer.header("sekisho-message-id"), Some(messages.join(",").as_str()));

        // Each event keeps its own bytes.
        let shown = gateway.type_in(&["events", "show", "b", "--source", "line", "--body"]).done().stdout;
        assert!(shown.contains("m-b") && !shown.contains("m-a"), "{shown}");
    });
}

#[test]
fn a4_an_id_repeated_inside_a_batch_is_one_event() {
    each_store(|place| {
        let gateway = gateway(place);
        let answer = gateway.send(&Provider::new("line", LINE_SECRET).body(&line(&["x", "y", "x", "x"])));
        assert_eq!((answer.status, answer.header("sekisho-outcome")), (204, Some("accepted")));
        let messages: Vec<_> = answer.header("sekisho-message-id").unwrap().split(',').collect();
        assert_eq!(messages.len(), 4);
        assert!(messages[0] == messages[2] && messages[0] == messages[3] && messages[0] != messages[1]);
        assert_eq!(gateway.event_ids(), ["x", "y"]);
    });
}

#[test]
fn a4_an_adyen_batch_is_stored_whole_or_refused_whole() {
    each_store(|place| {
        let gateway = gateway(place);
        let adyen = Provider::new("adyen", ADYEN_SECRET);
        let item = |id: &str| -> serde_json::Value {
            let body: serde_json::Value = serde_json::from_slice(&adyen.event(id).body).unwrap();
            body["notificationItems"][0].clone()
        };
        let letter = |items: Vec<serde_json::Value>| {
            let mut letter = adyen.event("PSP0");
            letter.body =
                serde_json::json!({ "live": "false", "notificationItems": items }).to_string().into();
            letter
        };
        let answer = gateway.send(&letter(vec![item("PSP1"), item("PSP2"), item("PSP3")]));
        assert_eq!(answer.status, 204, "{}", answer.text());
        assert_eq!(answer.header("sekisho-event-id").unwrap().split(',').count(), 3);
        let mut forged = item("PSP5");
        forged["NotificationRequestItem"]["amount"]["value"] = 1.into();
        assert_eq!(gateway.send(&letter(vec![item("PSP4"), forged])).status, 400);
        let ids = gateway.event_ids();
        assert_eq!(ids.len(), 3, "{ids:?}");
        assert!(ids.iter().zip(["PSP1", "PSP2", "PSP3"]).all(|(id, psp)| id.starts_with(psp)), "{ids:?}");
    });
}
