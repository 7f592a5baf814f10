//! Which headers of a provider's request a raw delivery hands on: the provider's own, and none by which a server is told
//! who calls, by which way, or as whom. No signature covers those, and a server that trusts our address believes them.

/// Whole names.
const NAMES: [&str; 30] = [
    // Of the connection.
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    // Who calls, and by which way.
    "client-ip",
    "forwarded",
    "from",
    "origin",
    "referer",
    "true-client-ip",
    "via",
    "x-cluster-client-ip",
    "x-host",
    "x-real-ip",
    "x-scheme",
    "x-url-scheme",
    // As whom.
    "authorization",
    "cookie",
    "cookie2",
    "x-access-token",
    "x-api-key",
    "x-method-override",
    "x-user",
    // What is asked for, in other words.
    "x-http-method",
];

/// How names begin.
const BEGINNINGS: [&str; 30] = [
    "cf-",
    "fastly-",
    "fly-",
    "proxy-",
    "remote-",
    "sec-",
    "ssl-",
    "tailscale-",
    "x-accel-",
    "x-amzn-",
    "x-appengine-",
    "x-arr-",
    "x-auth-",
    "x-authenticated-",
    "x-client-",
    "x-csrf-",
    "x-envoy-",
    "x-forwarded-",
    "x-goog-authenticated-",
    "x-goog-iap-",
    "x-http-method-",
    "x-middleware-",
    "x-ms-client-",
    "x-original-",
    "x-proxy-",
    "x-remote-",
    "x-rewrite-",
    "x-ssl-",
    "x-user-",
    "x-xsrf-",
];

/// Whether a header is not the provider's to write, and so is left out.
pub fn is_strangers(name: &str) -> bool {
    // Many servers make one name of both: HTTP_X_REAL_IP.
    let name = name.to_ascii_lowercase().replace('_', "-");
    NAMES.contains(&&*name) || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::ALL;

    #[test]
    fn c1_nobody_is_told_who_calls_in_a_strangers_words() {
        for name in [
            "X-Forwarded-For",
            "x-forwarded-host",
            "X_Forwarded_For",
            "Forwarded",
            "X-Real-Ip",
            "Remote-User",
            "X-Remote-User",
            "X-HTTP-Method-Override",
            "Via",
            "X-Original-URL",
            "X-Rewrite-Url",
            "Cookie",
            "Authorization",
            "Proxy-Authorization",
            "X-Amzn-Oidc-Data",
            "CF-Connecting-IP",
            "x-middleware-subrequest",
        ] {
            assert!(is_strangers(name), "{name}");
        }
        for name in [
            "content-type",
            "content-encoding",
            "stripe-signature",
            "x-github-event",
            "x-hub-signature-256",
            "paypal-transmission-id",
            "x-shopify-topic",
            "x-amz-sns-message-type",
            "x-twilio-signature",
            "x-gitlab-event",
            "x-slack-signature",
            "webhook-id",
            "svix-id",
            "upstash-signature",
            "x-line-signature",
            "x-razorpay-event-id",
            "x-acme-timestamp",
            "idempotency-key",
        ] {
            assert!(!is_strangers(name), "{name}");
        }
    }

    #[test]
    fn c1_what_a_provider_signs_by_is_handed_on() {
        let vectors = include_str!("../../tests-data/signatures.json");
        let all: serde_json::Value = serde_json::from_str(vectors).unwrap();
        let headers = all["vectors"].as_array().unwrap().iter().filter_map(|one| one["headers"].as_array());
        let names: Vec<_> = headers.flatten().filter_map(|pair| pair[0].as_str()).collect();
        assert!(names.len() > ALL.len(), "{names:?}");
        for name in names.into_iter().filter(|name| !name.eq_ignore_ascii_case("host")) {
            assert!(!is_strangers(name), "{name}");
        }
    }

    #[test]
    fn c1_the_rule_stands_in_the_documents() {
        let page = include_str!("../../../../docs/operating/deliveries.md");
        for name in NAMES.iter().chain(&BEGINNINGS) {
            assert!(page.contains(&format!("`{name}")), "{name} is not in docs/operating/deliveries.md");
        }
    }
}
