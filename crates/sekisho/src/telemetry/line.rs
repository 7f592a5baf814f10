//! How a log line is written: as one JSON object with its keys in a fixed order, or for people at a terminal. Both have a
//! correlation id in every line.

use std::fmt::{self, Write as _};

use serde_json::Value;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::fields::LineFields;

/// `{"time":…,"level":…,"message":…,"correlation_id":…}`
pub struct JsonLine;

/// `2026-11-18T13:05:00.000Z  WARN job failed; it will be retried correlation_id=msg_… lane=to:app`
pub struct PrettyLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut to: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        to.write_str(&json_line(&now(), *event.metadata().level(), &LineFields::of(event)))
    }
}

impl<S, N> FormatEvent<S, N> for PrettyLine
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    N: for<'w> FormatFields<'w> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut to: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let colours = to.has_ansi_escapes();
        to.write_str(&pretty_line(&now(), *event.metadata().level(), &LineFields::of(event), colours))
    }
}

#[allow(clippy::disallowed_methods, reason = "a line is stamped by the machine's own clock")]
fn now() -> String {
    crate::env::now().to_string()
}

fn json_line(time: &str, level: Level, fields: &LineFields) -> String {
    let mut line = format!("{{\"time\":\"{time}\",\"level\":\"{level}\",\"message\":");
    push_text(&mut line, &fields.message);
    for (name, value) in fields.iter() {
        line.push(',');
        push_text(&mut line, name);
        line.push(':');
        match value {
            Value::String(text) => push_text(&mut line, text),
            other => line.push_str(&other.to_string()),
        }
    }
    line.push_str("}\n");
    line
}

fn push_text(line: &mut String, text: &str) {
    line.push_str(&serde_json::to_string(text).expect("texts serialise"));
}

fn pretty_line(time: &str, level: Level, fields: &LineFields, colours: bool) -> String {
    let colour = match level {
        Level::ERROR => "31",
        Level::WARN => "33",
        Level::INFO => "32",
        _ => "34",
    };
    let mut line = if colours {
        format!("\u{1b}[2m{time}\u{1b}[0m \u{1b}[{colour}m{level:>5}\u{1b}[0m {}", visible(&fields.message))
    } else {
        format!("{time} {level:>5} {}", visible(&fields.message))
    };
    for (name, value) in fields.iter() {
        let value = value.as_str().map_or_else(|| value.to_string(), visible);
        let quoted = if value.contains([' ', '"']) { format!("{value:?}") } else { value };
        let written = if colours {
            write!(line, " \u{1b}[2m{name}=\u{1b}[0m{quoted}")
        } else {
            write!(line, " {name}={quoted}")
        };
        written.expect("writing to a string can't fail");
    }
    line.push('\n');
    line
}

/// Nobody outside moves the cursor of whoever reads the log.
fn visible(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use sekisho_core::Seq;
    use tracing_subscriber::layer::{Context, SubscriberExt};

    use super::*;
    use crate::telemetry::context::{LineContext, boot_id};

    type Lines = Arc<Mutex<Vec<(String, String)>>>;

    struct Keep(Lines);

    impl<S: Subscriber> tracing_subscriber::Layer<S> for Keep {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let (level, fields) = (*event.metadata().level(), LineFields::of(event));
            let json = json_line("2026-11-18T00:00:00.000Z", level, &fields);
            self.0.lock().unwrap().push((json, pretty_line("T", level, &fields, false)));
        }
    }

    fn written(act: impl FnOnce()) -> Vec<(String, String)> {
        let lines = Lines::default();
        let subscriber = tracing_subscriber::registry().with(Keep(Arc::clone(&lines)));
        tracing::subscriber::with_default(subscriber, act);
        std::mem::take(&mut lines.lock().unwrap())
    }

    #[test]
    fn h3_a_line_is_json_with_its_keys_in_a_fixed_order() {
        let lines = written(|| {
            tracing::warn!(
                zebra = 1,
                error = "no\n\"way\"",
                error_type = "timeout",
                attempt = 2,
                lane = "to:app",
                message_id = "msg_1",
                event_id = "evt_1",
                source = "",
                "job failed; it will be retried"
            );
        });
        let (json, pretty) = &lines[0];
        let keys = json.split("\":").filter_map(|part| part.rsplit('"').next());
        // Other tests of this process may have joined a store.
        let keys: Vec<_> = keys.filter(|key| *key != "node").collect();
        assert_eq!(
            &keys[..9],
            [
                "time",
                "level",
                "message",
                "correlation_id",
                "event_id",
                "message_id",
                "lane",
                "attempt",
                "error_type"
            ]
        );
        let read: Value = serde_json::from_str(json).unwrap();
        assert_eq!(read["correlation_id"], "msg_1", "the job's, where nothing else is known");
        assert_eq!((&read["zebra"], &read["error"]), (&1.into(), &"no\n\"way\"".into()));
        assert!(read.get("source").is_none(), "what is empty is left out");
        assert_eq!(json.matches('\n').count(), 1);
        assert!(pretty.contains("correlation_id=msg_1") && pretty.matches('\n').count() == 1, "{pretty}");
    }

    #[test]
    fn h3_every_line_has_a_correlation_id() {
        let plain = written(|| tracing::info!("something happened"));
        assert!(plain[0].0.contains(&format!("\"correlation_id\":\"{}\"", boot_id())), "{}", plain[0].0);
        assert!(plain[0].1.contains(boot_id()));
        let asked = written(|| tracing::warn!(request_id = "req_7", "request rejected"));
        assert!(asked[0].0.contains("\"correlation_id\":\"req_7\""), "{}", asked[0].0);
        let within = written(|| {
            let context = LineContext::of_request(Seq::from_i64(7), Some("stripe".into()), None);
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(context.around(async { tracing::info!(source = "own", "asked") }));
        });
        let id = Seq::from_i64(7).as_request().to_string();
        assert!(within[0].0.contains(&format!("\"correlation_id\":\"{id}\"")), "{}", within[0].0);
        assert!(within[0].0.contains("\"source\":\"own\""), "the line's own word counts");
    }
}
