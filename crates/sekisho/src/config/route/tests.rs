use std::path::Path;

use super::*;
use crate::config::load;
use crate::config::load::tests::{SOURCE, check, example_of};

const ROUTE: &str = "[[route]]\nname = \"app\"\nurl = \"https://app.example.com/hook\"\n";
const SECRETS: &str = "secrets = [\"whsec_c2VjcmV0\"]\n";

fn route(keys: &str) -> Result<Route, String> {
    check(&format!("{ROUTE}{keys}"), &[]).map(|mut config| config.routes.remove(0))
}

fn to(url: &str, keys: &str) -> Result<Route, String> {
    check(&format!("[[route]]\nname = \"app\"\nurl = \"{url}\"\n{SECRETS}{keys}"), &[])
        .map(|mut config| config.routes.remove(0))
}

#[test]
fn c1_a_name_an_address_and_a_secret_are_a_route() {
    let route = route(SECRETS).unwrap();
    assert_eq!(route.url.as_str(), "https://app.example.com/hook");
    assert_eq!(route.signer.kind(), Signing::StandardWebhooks);
    assert_eq!((route.timeout, route.concurrency, route.rate), (Duration::from_secs(30), 20, None));
    assert_eq!((route.retry, route.breaker), (Retry::default(), breaker::Policy::default()));
    assert_eq!((route.route.send, route.allow_private), (Send::Raw, false));
    assert!(route.route.events.is_empty() && route.route.sources.is_empty());
    assert!(route.route.filter.is_none() && route.route.fifo.is_none());
}

#[test]
fn c4_every_example_of_a_key_is_valid_and_what_is_optional_shows_its_default() {
    let needed = ["name", "url", "secrets"];
    let base = example_of::<RouteDraft>(|key| needed.contains(&key));
    let default = check(&base, &[]).unwrap().routes.remove(0);
    for key in KEYS.iter().filter(|key| !needed.contains(&key.name)) {
        let with = check(&format!("{base}{} = {}\n", key.name, key.example), &[]).unwrap().routes.remove(0);
        assert_eq!(
            (with.timeout, with.concurrency, &with.retry, &with.breaker, with.signer.kind()),
            (default.timeout, default.concurrency, &default.retry, &default.breaker, default.signer.kind()),
            "{}",
            key.name
        );
    }
}

#[test]
fn c4_all_that_is_written_is_taken() {
    let keys = r#"events = ["payment_intent.*", "*.refunded"]
sources = ["stripe"]
filter = "body.amount > 5"
fifo = "event.object.id"
send = "event"
signing = "stripe"
timeout = "2m"
concurrency = 3
rate = 7
retries = 9
retry_first = "500ms"
retry_cap = "10m"
breaker_failures = 0
headers = ["X-Env: prod", "authorization: Bearer x:y"]
"#;
    let route = route(&(SECRETS.to_owned() + keys)).unwrap();
    assert_eq!(
        route.route.events.iter().map(Pattern::as_str).collect::<Vec<_>>(),
        ["payment_intent.*", "*.refunded"]
    );
    assert_eq!(route.route.sources, [Pattern::new("stripe")]);
    assert_eq!(route.route.filter.as_ref().map(Rule::as_str), Some("body.amount > 5"));
    assert_eq!(route.route.fifo.as_ref().map(Rule::as_str), Some("event.object.id"));
    assert_eq!((route.route.send, route.signer.kind()), (Send::Event, Signing::Stripe));
    assert_eq!((route.timeout, route.concurrency, route.rate), (Duration::from_mins(2), 3, Some(7)));
    assert_eq!((route.retry.retries, route.retry.first_ms, route.retry.cap_ms), (9, 500, 600_000));
    assert_eq!(route.breaker.failures, 0);
    let headers: Vec<_> =
        route.route.headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(headers, [("x-env", "prod"), ("authorization", "Bearer x:y")]);
}

#[test]
fn c3_signing_is_chosen_never_forgotten() {
    assert!(route("").unwrap_err().contains("app: needs secrets = [\"env:NAME\"]"));
    assert_eq!(route("signing = \"none\"\n").unwrap().signer.kind(), Signing::None);
    assert!(route(&format!("signing = \"none\"\n{SECRETS}")).unwrap_err().contains("remove one of them"));
    assert!(route("signing = \"stripe\"\n").unwrap_err().contains("`secrets` is missing"));
    let signing = RouteDraft::KEYS.iter().find(|key| key.name == "signing").unwrap();
    for kind in Signing::ALL {
        assert!(signing.help.contains(kind.name()), "{kind:?}");
        assert!(route("signing = \"hmac\"\n").unwrap_err().contains(kind.name()), "{kind:?}");
    }
    let found = route("secrets = [\"env:SEKISHO_NO_SUCH\"]\n").unwrap_err();
    assert_eq!(found, "s.toml:1: the environment variable SEKISHO_NO_SUCH is not set");
    assert!(
        route("secrets = [\"not base 64!\"]\n").unwrap_err().contains("route app: secret 1 is not base 64")
    );
    assert_eq!(route(&format!("signing = \"upstash\"\n{SECRETS}")).unwrap().signer.kind(), Signing::Upstash);
}

#[test]
fn c5_an_address_inside_must_be_allowed() {
    let inside = [
        "http://localhost:3000/hook",
        "http://LOCALHOST./hook",
        "http://app.localhost/",
        "http://127.0.0.1:3000/",
        "http://127.1/",
        "http://0x7f.1/",
        "http://2130706433/",
        "http://0/",
        "http://10.0.0.8/",
        "http://169.254.169.254/latest/meta-data",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://[fd00::1]:8443/",
        "http://192.168.1.1\\t/",
    ];
    for url in inside {
        let found = to(url, "").unwrap_err();
        assert!(found.contains("write allow_private = true"), "{url}: {found}");
        assert!(to(url, "allow_private = true\n").unwrap().allow_private, "{url}");
    }
    for url in [
        "https://app.example.com",
        "http://app.example.com:8080/x?y=z",
        "https://8.8.8.8/",
        "https://支払.example/",
    ] {
        to(url, "").unwrap();
    }
}

#[test]
fn c1_what_is_wrong_with_a_route_is_said_with_a_cure() {
    for (url, expected) in [
        ("app.example.com/hook", "its url is no address such as"),
        ("ftp://app.example.com/", "its url is no address such as"),
        ("file:/no/such/file", "can't read the file"),
        ("data:text/plain,x", "its url is no address such as"),
        ("https://", "its url is no address such as"),
        ("https://user:canary@app.example.com/", "holds a user name or password"),
        ("https://app.example.com/#x", "a part after #"),
    ] {
        let found = to(url, "").unwrap_err();
        assert!(found.contains(expected) && !found.contains("canary"), "{url}: {found}");
    }
    for (keys, expected) in [
        ("evnts = []\n", "s.toml:4: there is no key `evnts` in [[route]]; did you mean `events`?"),
        ("events = [\"\"]\n", "a pattern is empty"),
        ("filter = \"event.type = 1\"\n", "s.toml:4: route.filter: line 1, column 12"),
        ("fifo = \"(\"\n", "route.fifo: line 1"),
        ("send = \"all\"\n", "expected \"raw\", \"event\" or \"settled\""),
        ("timeout = \"16m\"\n", "expected between 1000 ms and 900 s"),
        ("timeout = \"500ms\"\n", "expected between 1000 ms and 900 s"),
        ("concurrency = 0\n", "0 is not between 1 and 1000"),
        ("retries = -1\n", "not between"),
        ("headers = [\"X-Env\"]\n", "expected lines such as"),
        ("headers = [\"Host: x\"]\n", "the header host is written by Sekisho itself"),
        ("headers = [\"Sekisho-Attempt: 1\"]\n", "written by Sekisho itself"),
        ("headers = [\"a b: 1\"]\n", "expected lines such as"),
        ("retry_first = \"1h\"\nretry_cap = \"1m\"\n", "route app: retry_cap is shorter than retry_first"),
        ("headers = [\"X-Key: env:SEKISHO_NO_SUCH\"]\n", "SEKISHO_NO_SUCH is not set"),
        ("headers = [\"X-Key: a\\u0007b\"]\n", "x-key can't be sent"),
    ] {
        let found = route(keys).unwrap_err();
        assert!(found.contains(expected), "{keys}\nexpected {expected}\nfound {found}");
    }
    let both = check("[[route]]\nname = \"app\"\n", &[]).unwrap_err();
    assert_eq!(both.lines().count(), 2, "everything at once: {both}");
    assert!(check("[[route]]\n", &[]).unwrap_err().contains("a route needs a name"));
}

#[test]
fn h3_a_routes_secrets_are_never_shown() {
    let text = format!(
        "{SOURCE}[[route]]\nname = \"app\"\nurl = \"https://app.example.com/?token=canary\"\nsigning = \"stripe\"\nsecrets = [\"canary\"]\nheaders = [\"X-Key: canary\"]\nsources = [\"strip\"]\n"
    );
    let loaded = load::load(Path::new("s.toml"), &text, std::iter::empty()).ok().unwrap();
    assert!(!format!("{:?} {:?}", loaded.config, loaded.config.routes[0].route).contains("canary"));
    let warnings = loaded.warnings.join("\n");
    assert!(warnings.contains("route app: a secret stands in the configuration as plain text"), "{warnings}");
    assert!(warnings.contains("route app: there is no source strip"), "{warnings}");
    assert!(!warnings.contains("canary"));
}

#[test]
fn c1_a_filter_that_can_never_be_one_is_refused_at_start() {
    for (filter, expected) in [
        ("evnt.type == 'x'", "`evnt` is not known"),
        ("event.type", "expected true or false, found"),
        ("1 + 1", "expected true or false, found"),
    ] {
        let found = route(&format!("{SECRETS}filter = \"{filter}\"\n")).unwrap_err();
        assert!(found.contains(expected), "{filter}: {found}");
    }
    for filter in
        ["event.livemode", "body.amount > 1000", "has(body.a) && body.a.b == 'c'", "event.object.id != ''"]
    {
        route(&format!("{SECRETS}filter = \"{filter}\"\n")).unwrap();
    }
}

const GITHUB: &str = "[[source]]\nname = \"github\"\nprovider = \"github\"\nsecrets = [\"s\"]\n";

#[test]
fn c3_signing_as_stripe_would_is_for_stripes_events_alone() {
    let with = |sources: &str| {
        let keys = format!("{SECRETS}signing = \"stripe\"\n{sources}\n");
        check(&format!("{SOURCE}{GITHUB}{ROUTE}{keys}"), &[]).map(|mut config| config.routes.remove(0))
    };
    for fine in ["", "sources = [\"stripe\"]", "sources = [\"str*\", \"sekisho\", \"schedule\"]"] {
        assert_eq!(with(fine).unwrap().route.speaks_for, Some("stripe"), "{fine}");
    }
    for sources in ["sources = [\"stripe\", \"github\"]", "sources = [\"git*\"]", "sources = [\"*\"]"] {
        let problem = with(sources).unwrap_err();
        for words in
            ["s.toml:9", "events of github (GitHub) pass for stripe's", "take github out of its sources"]
        {
            assert!(problem.contains(words), "{problem}");
        }
    }
    let other = check(&format!("{SOURCE}{GITHUB}{ROUTE}{SECRETS}sources = [\"*\"]\n"), &[]).unwrap();
    assert_eq!(other.routes[0].route.speaks_for, None);
}

#[test]
fn c3_a_hint_that_no_route_names_is_said() {
    let hint = "[[source]]\nname = \"pay\"\nprovider = \"line_pay\"\n";
    let warned = |text: &str| {
        let loaded = load(Path::new("s.toml"), text, std::iter::empty()).unwrap();
        loaded.warnings.concat().contains("goes only to routes that name it, and none does")
    };
    assert!(warned(&format!("{hint}{ROUTE}{SECRETS}")));
    assert!(warned(&format!("{hint}{ROUTE}{SECRETS}sources = [\"p*\"]\n")));
    assert!(!warned(&format!("{hint}{ROUTE}{SECRETS}sources = [\"pay\"]\n")));
    assert!(!warned(hint), "without a route nothing goes anywhere");
}

#[test]
fn a8_hints_have_a_rate_for_all_and_one_for_each_network() {
    let rates = |text: &str| {
        let source = check(text, &[]).unwrap().sources.remove(0);
        (source.rate, source.network_rate)
    };
    let hint = "[[source]]\nname = \"pay\"\nprovider = \"line_pay\"\n";
    assert_eq!(rates(hint), (Some(20), Some(5)));
    assert_eq!(rates(&format!("{hint}rate = 50\n")), (Some(50), Some(13)));
    assert_eq!(rates(&format!("{hint}rate = 50\nnetwork_rate = 50\n")), (Some(50), Some(50)));
    assert_eq!(rates(SOURCE), (None, None), "what is signed has none");
    assert_eq!(rates(&format!("{SOURCE}network_rate = 7\n")), (None, Some(7)));
}
