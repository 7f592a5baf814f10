//! Where traces and errors go.

use http::HeaderName;
use sekisho_core::Secret;

use crate::effects::otlp;
use crate::effects::sentry::Dsn;

#[derive(Clone, Debug)]
pub struct Telemetry {
    /// The collector, with or without its path.
    pub otlp: Option<String>,
    pub otlp_headers: Vec<(HeaderName, Secret)>,
    pub sample: f64,
    pub service: Option<String>,
    /// Attributes of the resource, as OpenTelemetry's variable lists them.
    pub resource: Vec<(String, String)>,
    /// `{trace_id}` stands for the trace.
    pub trace_url: Option<String>,
    pub sentry_dsn: Option<Dsn>,
    /// Whoever runs this switched all traces off.
    pub is_disabled: bool,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            otlp: None,
            otlp_headers: Vec::new(),
            sample: 0.1,
            service: None,
            resource: Vec::new(),
            trace_url: None,
            sentry_dsn: None,
            is_disabled: false,
        }
    }
}

/// The path by which collectors take traces.
const TRACES: &str = "/v1/traces";

impl Telemetry {
    /// Where spans go, if anywhere: the collector, or else Sentry.
    pub fn collector(&self) -> Option<otlp::Settings> {
        if self.is_disabled {
            return None;
        }
        let service = self.service.clone().unwrap_or_else(|| "sekisho".to_owned());
        let own = [("service.name", &*service), ("service.version", env!("CARGO_PKG_VERSION"))];
        let mut resource: Vec<_> = own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        resource.extend(self.resource.iter().filter(|(name, _)| name != "service.name").cloned());
        let (url, headers) = match (&self.otlp, &self.sentry_dsn) {
            (Some(url), _) => {
                let url = url.trim_end_matches('/');
                let path = if url.ends_with(TRACES) { "" } else { TRACES };
                (format!("{url}{path}"), self.otlp_headers.clone())
            }
            (None, Some(dsn)) => (dsn.otlp_url().ok()?, vec![dsn.otlp_auth()]),
            (None, None) => return None,
        };
        Some(otlp::Settings { url, headers, resource })
    }
}

#[cfg(test)]
mod tests {
    use crate::config::load::tests::check;

    fn url(text: &str, env: &[(&str, &str)]) -> Option<String> {
        check(text, env).unwrap().telemetry.collector().map(|settings| settings.url)
    }

    #[test]
    fn h3_the_collector_is_what_the_file_or_opentelemetrys_variables_say() {
        assert_eq!(url("", &[]), None);
        let file = "[telemetry]\notlp = \"http://127.0.0.1:4318\"\n";
        assert_eq!(url(file, &[]).as_deref(), Some("http://127.0.0.1:4318/v1/traces"));
        let (base, whole) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        assert_eq!(url("", &[(base, "http://c:1/x/")]).as_deref(), Some("http://c:1/x/v1/traces"));
        let both = [(base, "http://c:1"), (whole, "http://d:2/v1/traces")];
        assert_eq!(url("", &both).as_deref(), Some("http://d:2/v1/traces"));
        assert_eq!(url(file, &both).as_deref(), Some("http://127.0.0.1:4318/v1/traces"), "the file counts");
        assert_eq!(url(file, &[("OTEL_SDK_DISABLED", "true")]), None);
    }

    #[test]
    fn h3_service_attributes_headers_and_sample_are_read() {
        let env = [
            ("OTEL_SERVICE_NAME", "shop-webhooks"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=prod,service.name=x"),
            ("SEKISHO_TELEMETRY_SAMPLE", "0.25"),
        ];
        let text = "[telemetry]\notlp = \"http://c\"\notlp_headers = [\"authorization=Bearer canary\"]\n";
        let telemetry = check(text, &env).unwrap().telemetry;
        assert!((telemetry.sample - 0.25).abs() < f64::EPSILON);
        assert!(!format!("{telemetry:?}").contains("canary"));
        let settings = telemetry.collector().unwrap();
        let attribute = |name: &str| settings.resource.iter().find(|(known, _)| known == name).unwrap();
        assert_eq!(attribute("service.name").1, "shop-webhooks");
        assert_eq!(attribute("deployment.environment.name").1, "prod");
        assert_eq!(settings.headers[0].1.expose(), "Bearer canary");
        for (wrong, said) in [
            ("sample = 2\n", "between 0 and 1"),
            ("sample = \"often\"\n", "between 0 and 1"),
            ("otlp = \"collector:4317\"\n", "expected an address"),
            ("trace_url = \"https://x/\"\n", "{trace_id}"),
            ("sentry_dsn = \"https://sentry.io\"\n", "expected a DSN"),
            ("otlp_headers = [\"nothing\"]\n", "expected headers"),
        ] {
            let found = check(&format!("[telemetry]\n{wrong}"), &[]).unwrap_err();
            assert!(found.contains(said), "{wrong}: {found}");
        }
    }

    #[test]
    fn h3_with_a_dsn_alone_traces_go_to_sentry() {
        let settings = check("[telemetry]\nsentry_dsn = \"https://abc@o1.ingest.sentry.io/42\"\n", &[]);
        let settings = settings.unwrap().telemetry.collector().unwrap();
        assert_eq!(settings.url, "https://o1.ingest.sentry.io/api/42/integration/otlp/v1/traces");
        assert_eq!(settings.headers[0].1.expose(), "sentry sentry_key=abc");
    }
}
