//! `[telemetry]`: where traces and errors go, and how many; `[log]` of processed events.

use http::HeaderName;
use sekisho_core::Secret;

use super::super::given::Given;
use super::super::secret::resolve;
use super::{Setting, link};
use crate::effects::sentry::Dsn;

const SECTION: &str = "telemetry";

pub const OTLP: Setting = Setting {
    section: SECTION,
    key: "otlp",
    default: "\"\"",
    help: "A collector of traces by OTLP over HTTP: http://127.0.0.1:4318. Default: OTEL_EXPORTER_OTLP_(TRACES_)ENDPOINT, else none.",
    set: |config, given| {
        config.telemetry.otlp = link(given)?;
        Ok(())
    },
};

pub const OTLP_HEADERS: Setting = Setting {
    section: SECTION,
    key: "otlp_headers",
    default: "[]",
    help: "Headers for it: [\"authorization=env:OTLP_AUTHORIZATION\"]; the value may be env:NAME or file:PATH.",
    set: |config, given| {
        let lines = given.list()?.into_iter().filter(|line| !line.is_empty());
        config.telemetry.otlp_headers = lines.map(|line| header(&line)).collect::<Result<_, _>>()?;
        Ok(())
    },
};

pub const SAMPLE: Setting = Setting {
    section: SECTION,
    key: "sample",
    default: "0.1",
    help: "The share of traces that is exported, from 0 to 1. Dead letters always are.",
    set: |config, given| {
        config.telemetry.sample = given.share()?;
        Ok(())
    },
};

pub const SERVICE: Setting = Setting {
    section: SECTION,
    key: "service",
    default: "\"\"",
    help: "What this installation is called there. Default: OTEL_SERVICE_NAME, else sekisho.",
    set: |config, given| {
        config.telemetry.service = Some(given.text()?).filter(|text| !text.is_empty());
        Ok(())
    },
};

pub const TRACE_URL: Setting = Setting {
    section: SECTION,
    key: "trace_url",
    default: "\"\"",
    help: "Where people see a trace, for links in the console: https://grafana.example.jp/explore?trace={trace_id}",
    set: |config, given| {
        let url = link(given)?;
        if url.as_ref().is_some_and(|url| !url.contains("{trace_id}")) {
            return Err("expected an address that holds {trace_id}".into());
        }
        config.telemetry.trace_url = url;
        Ok(())
    },
};

pub const SENTRY_DSN: Setting = Setting {
    section: SECTION,
    key: "sentry_dsn",
    default: "\"\"",
    help: "Errors and panics of this program go there: env:SENTRY_DSN. Without otlp, traces too.",
    set: |config, given| {
        let written = resolve(&given.text()?)?.text;
        let dsn = Some(written).filter(|text| !text.is_empty()).map(|text| Dsn::parse(&text));
        config.telemetry.sentry_dsn = dsn.transpose().map_err(|error| format!("{error:#}"))?;
        Ok(())
    },
};

pub const LOG_EVENTS: Setting = Setting {
    section: "log",
    key: "events",
    default: "1.0",
    help: "The share of processed events with a line of their own at info, from 0 to 1; at most 50 lines a second.",
    set: |config, given| {
        config.log.events = given.share()?;
        Ok(())
    },
};

fn header(line: &str) -> Result<(HeaderName, Secret), String> {
    let wanted = || "expected headers such as \"authorization=env:OTLP_AUTHORIZATION\"".to_owned();
    let (name, value) = line.split_once('=').ok_or_else(wanted)?;
    Ok((name.trim().parse().map_err(|_| wanted())?, Secret::new(resolve(value.trim())?.text)))
}

/// What OpenTelemetry's own variables say, where the configuration says nothing.
pub fn overlay(config: &mut super::Config, variables: &[(String, String)]) -> Result<(), String> {
    let find = |name: &str| {
        let found = variables.iter().find(|(known, value)| known == name && !value.is_empty());
        found.map(|(_, value)| value.clone())
    };
    let telemetry = &mut config.telemetry;
    if find("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        telemetry.otlp = None;
        telemetry.is_disabled = true;
        return Ok(());
    }
    if telemetry.otlp.is_none() {
        let whole = find("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let base = || find("OTEL_EXPORTER_OTLP_ENDPOINT");
        telemetry.otlp = whole.or_else(base).map(|url| link(&Given::Text(url))).transpose()?.flatten();
        if telemetry.otlp_headers.is_empty()
            && let Some(lines) =
                find("OTEL_EXPORTER_OTLP_TRACES_HEADERS").or_else(|| find("OTEL_EXPORTER_OTLP_HEADERS"))
        {
            telemetry.otlp_headers = lines.split(',').map(header).collect::<Result<_, _>>()?;
        }
    }
    let attributes = find("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let pairs = attributes.split(',').filter_map(|pair| pair.split_once('='));
    telemetry.resource =
        pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect();
    if telemetry.service.is_none() {
        let named = telemetry.resource.iter().find(|(name, _)| name == "service.name");
        telemetry.service = find("OTEL_SERVICE_NAME").or_else(|| named.map(|(_, value)| value.clone()));
    }
    Ok(())
}
