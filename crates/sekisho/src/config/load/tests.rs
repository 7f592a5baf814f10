use super::*;
use crate::config::example;

pub fn check(text: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    load(Path::new("s.toml"), text, variables)
        .map(|loaded| loaded.config)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

pub const SOURCE: &str = "[[source]]\nname = \"stripe\"\nprovider = \"stripe\"\nsecrets = [\"whsec_1\"]\n";

#[test]
fn h5_the_example_file_is_the_one_the_program_prints() {
    let file = include_str!("../../../../../sekisho.example.toml");
    assert!(file.trim_end() == example().trim_end(), "run `sekisho config example > sekisho.example.toml`");
}

fn shows_every_key<T: Table>(text: &str) {
    for key in T::KEYS {
        assert!(text.contains(&format!("{} = {}\n", key.name, key.example)), "{}", key.name);
    }
}

#[test]
fn h5_the_example_is_complete_and_says_the_defaults() {
    let text = example().replace("env:STRIPE_WEBHOOK_SECRET", "whsec_1");
    let config = check(&text, &[]).unwrap();
    let default = Config::default();
    assert_eq!(config.server, default.server);
    assert_eq!(config.store, default.store);
    assert_eq!(config.gate, default.gate);
    assert_eq!(config.admission, default.admission);
    assert_eq!(config.retention, default.retention);
    assert_eq!(config.console, default.console);
    assert_eq!(config.metrics, default.metrics);
    assert_eq!(config.log, default.log);
    let plain = |config: &Config| {
        let settled = (config.references.clone(), config.grace, config.automatic_refunds_per_hour);
        format!("{settled:?} {:?} {:?}", config.reconcile, config.notifications)
    };
    // Who speaks is worked out from the whole, so it is compared with a file in which nothing is written.
    assert_eq!(plain(&config), plain(&check("", &[]).unwrap()));
    assert!(config.routes.is_empty() && config.schedules.is_empty() && config.keys.is_empty());
    for setting in SETTINGS {
        assert!(text.contains(&format!("\n{} = ", setting.key)), "{}", setting.key);
    }
    shows_every_key::<source::SourceDraft>(&example());
    shows_every_key::<route::RouteDraft>(&example());
    shows_every_key::<schedule::ScheduleDraft>(&example());
    shows_every_key::<compensation::CompensationDraft>(&example());
    shows_every_key::<key::KeyDraft>(&example());
}

#[test]
fn h5_every_example_of_a_source_key_is_itself_valid() {
    let paypal = "[[source]]\nname = \"p\"\nprovider = \"paypal\"\nwebhook_id = \"1JE\"\n";
    for key in &source::SourceDraft::KEYS[3..] {
        let source = if key.name == "certificate" { paypal } else { SOURCE };
        let text = format!("{source}{} = {}\n", key.name, key.example);
        let result = check(&text, &[]);
        match key.name {
            "certificate" => assert!(result.unwrap_err().contains("can't read the file ./provider.pem")),
            "api_key" => assert!(result.unwrap_err().contains("STRIPE_API_KEY is not set")),
            "client_id" => assert!(result.unwrap_err().contains("no effect without api_key")),
            _ => drop(result.unwrap()),
        }
    }
}

/// The block as the example shows it, with its references replaced by a text that will do.
pub fn example_of<T: Table>(keys: impl Fn(&str) -> bool) -> String {
    let lines = T::KEYS.iter().filter(|key| keys(key.name)).map(|key| {
        let value = if key.example.contains("env:") { SECRET } else { key.example };
        let value =
            if key.example.starts_with('[') && value == SECRET { &format!("[{SECRET}]") } else { value };
        format!("{} = {value}\n", key.name)
    });
    format!("[[{}]]\n{}", T::NAME, lines.collect::<String>())
}

const SECRET: &str = "\"whsec_c2VjcmV0IG9mIHR3ZW50eQ==\"";

#[test]
fn h5_the_other_blocks_are_valid_as_the_example_shows_them() {
    let all = example_of::<route::RouteDraft>(|_| true)
        + &example_of::<schedule::ScheduleDraft>(|_| true)
        + &example_of::<key::KeyDraft>(|_| true);
    let config = check(&(SOURCE.to_owned() + &all), &[]).unwrap();
    assert_eq!((config.routes.len(), config.schedules.len(), config.keys.len()), (1, 1, 1));
}

#[test]
fn h5_blocks_of_a_kind_have_different_names() {
    let blocks = [
        ("routes", example_of::<route::RouteDraft>(|_| true)),
        ("schedules", example_of::<schedule::ScheduleDraft>(|_| true)),
        ("keys", example_of::<key::KeyDraft>(|_| true)),
    ];
    for (kind, block) in blocks {
        let found = check(&block.repeat(3), &[]).unwrap_err();
        assert!(found.contains(&format!("two {kind} are named")), "{found}");
    }
}

#[test]
fn a8_the_largest_body_must_fit_into_what_may_wait() {
    let found = check("[admission]\nwaiting_bytes_max = \"512KiB\"\n", &[]).unwrap_err();
    assert!(found.contains("server.body_bytes_max is 1048576"), "{found}");
    let variable = ("SEKISHO_SERVER_BODY_BYTES_MAX", "65536");
    check("[admission]\nwaiting_bytes_max = \"512KiB\"\n", &[variable]).unwrap();
}

#[test]
fn a4_events_are_kept_at_least_as_long_as_providers_resend() {
    assert_eq!(check("", &[]).unwrap().retention.days, 90);
    assert_eq!(check("[retention]\ndays = 35\n", &[]).unwrap().retention.days, 35);
    assert_eq!(check("", &[("SEKISHO_RETENTION_DAYS", "400")]).unwrap().retention.days, 400);
    for days in [0, 34, 3_651] {
        let found = check(&format!("[retention]\ndays = {days}\n"), &[]).unwrap_err();
        assert!(found.contains("s.toml:2: retention.days") && found.contains("35"), "{found}");
    }
}

#[test]
fn h5_a_few_lines_are_a_complete_configuration() {
    let config = check(SOURCE, &[]).unwrap();
    assert_eq!(&*config.sources[0].name, "stripe");
    assert_eq!(config.sources[0].path, "/webhooks/stripe");
    assert_eq!(config.sources[0].ack_status, 204);
}

#[test]
fn h5_what_is_wrong_is_named_with_its_line_and_a_cure() {
    let cases = [
        (
            "[server]\nlistn = \"x\"\n",
            "s.toml:2: there is no key `listn` in [server]; did you mean `listen`?",
        ),
        ("[server]\nlisten = 80\n", "s.toml:2: server.listen: expected a text in quotes, found a number"),
        ("[server]\n\n\nlisten = \"here\"\n", "s.toml:4: server.listen: expected an address and a port"),
        ("[sever]\n", "s.toml:1: there is no key `sever` in the file; did you mean `server`?"),
        ("listen = \"x\"\n", "s.toml:1: there is no key `listen` in the file; known are server, store"),
        ("[source]\nname = \"x\"\n", "s.toml:1: sources are a list: write [[source]]"),
        ("[[source]]\nname = \"x\"\n", "s.toml:1: source x needs a provider"),
        ("[[source]]\nname = \"x\"\nprovider = \"strip\"\n", "there is no provider strip; known are stripe"),
        ("[[source]]\nname = \"x y\"\n", "s.toml:2: source.name: expected 1 to 64 letters"),
        ("[[source]]\nname = \"x\"\nprovider = \"stripe\"\n", "`secrets` is missing"),
        ("[store]\nurl = \"mysql://x\"\n", "s.toml:2: store.url: a store is sqlite:PATH"),
        ("[route]\nname = \"x\"\n", "s.toml:1: routes are a list: write [[route]]"),
        ("[[rout]]\n", "s.toml:1: there is no key `rout` in the file; did you mean `route`?"),
        ("key = 5\n", "s.toml:1: keys are a list: write [[key]]"),
        ("[server\n", "s.toml:1: "),
    ];
    for (text, expected) in cases {
        let found = check(text, &[]).unwrap_err();
        assert!(found.contains(expected), "{text}\nexpected {expected}\nfound {found}");
    }
    let typo = format!("{SOURCE}tolerence = \"5m\"\n");
    assert!(check(&typo, &[]).unwrap_err().contains("did you mean `tolerance`?"));
    assert!(check(&SOURCE.repeat(2), &[]).unwrap_err().contains("two sources are named stripe"));
}

#[test]
fn h5_a_key_that_the_provider_would_not_look_at_is_told() {
    let source = |provider: &str, more: &str| {
        let text = SOURCE.replace("provider = \"stripe\"", &format!("provider = \"{provider}\""));
        format!("\n{text}{more}\n")
    };
    for provider in ["github", "line", "payjp"] {
        let text = source(provider, "tolerance = \"1m\"");
        let warnings = load(Path::new("s.toml"), &text, std::iter::empty()).unwrap().warnings;
        let told =
            format!("source stripe: requests of {provider} carry no signed time, so tolerance has no effect");
        assert!(warnings.iter().any(|warning| warning.starts_with(&told)), "{warnings:?}");
    }
    let found = check(&source("generic_hmac", "header = \"X\"\ntolerance = \"1m\""), &[]).unwrap_err();
    assert!(found.contains("s.toml:2: source stripe: `tolerance` is for a signed time"), "{found}");
    let found = check(&source("stripe", "certificate = \"file:./none.pem\""), &[]).unwrap_err();
    let cure = "s.toml:2: source stripe: stripe signs with no certificate; leave certificate out, it is for paypal and sns";
    assert_eq!(found, cure);
    let config = check(&source("slack", "tolerance = \"1m\""), &[]).unwrap();
    assert_eq!(config.sources[0].setup.tolerance_s, Some(60));
}

#[test]
fn h5_a_text_where_a_list_belongs_is_one_and_never_split() {
    let one = SOURCE.replace("[\"whsec_1\"]", "\"one,secret\"");
    let config = check(&one, &[]).unwrap();
    let secrets = &config.sources[0].setup.secrets;
    assert_eq!((secrets.len(), secrets[0].expose()), (1, "one,secret"));
    let variable = ("SEKISHO_NOTIFICATIONS_OPERATORS", "a@example.jp, b@example.jp");
    assert_eq!(check("", &[variable]).unwrap().notifications.house.operators.len(), 2);
}

#[test]
fn h5_a_tolerance_has_whole_seconds() {
    for wrong in ["\"500ms\"", "\"1500ms\"", "\"0s\"", "0"] {
        let found = check(&format!("{SOURCE}tolerance = {wrong}\n"), &[]).unwrap_err();
        assert!(found.contains("s.toml:5: source.tolerance: expected whole seconds"), "{wrong}: {found}");
    }
    let config = check(&format!("{SOURCE}tolerance = \"2000ms\"\n"), &[]).unwrap();
    assert_eq!(config.sources[0].setup.tolerance_s, Some(2));
}

#[test]
fn h5_everything_wrong_is_reported_at_once() {
    let found =
        check("[server]\nlisten = 1\nbody_timeout = \"soon\"\n[log]\nlevel = \"loud\"\n", &[]).unwrap_err();
    assert_eq!(found.lines().count(), 3, "{found}");
}

#[test]
fn h5_the_environment_overrides_the_file() {
    let text = format!("[server]\nlisten = \"127.0.0.1:1\"\n{SOURCE}");
    let config =
        check(&text, &[("SEKISHO_SERVER_LISTEN", "127.0.0.1:2"), ("SEKISHO_GATE_ENTRIES", "7")]).unwrap();
    assert_eq!(config.server.listen.port(), 2);
    assert_eq!(config.gate.entries, 7);
    let found = check(&text, &[("SEKISHO_LOG_LEVEL", "loud")]).unwrap_err();
    assert!(found.contains("SEKISHO_LOG_LEVEL: expected"));
    let found = check(&text, &[("SEKISHO_SERVER_LISTN", "127.0.0.1:2")]).unwrap_err();
    assert!(found.contains("did you mean `SEKISHO_SERVER_LISTEN`?"), "{found}");
    check(&text, &[("SEKISHO_TEST_POSTGRES", "x")]).unwrap();
}

#[test]
fn h6_who_only_sends_needs_no_channel_and_no_template() {
    let text = "[notifications]\nalerts = \"ops\"\nreminders = \"mail\"\ntemplates = \"./none\"\n".to_owned()
        + SOURCE
        + "[[notify]]\nname = \"n\"\n[[channel]]\nname = \"mail\"\n";
    let loaded = load_sources(Path::new("s.toml"), &text, std::iter::empty());
    assert_eq!(loaded.ok().unwrap().config.sources.len(), 1);
}

#[test]
fn g4_reminders_without_a_dashboard_are_told_at_start() {
    let channel = "[[channel]]\nname = \"mail\"\nkind = \"smtp\"\nhost = \"127.0.0.1\"\nfrom = \"shop@example.jp\"\ntls = \"none\"\nauth = \"none\"\n";
    let warnings = |notifications: &str| {
        let text = format!("[notifications]\n{notifications}\n{SOURCE}{channel}");
        load(Path::new("s.toml"), &text, std::iter::empty()).unwrap().warnings.join("\n")
    };
    assert!(warnings("reminders = \"mail\"").contains("write dashboard_url"));
    let with = "reminders = \"mail\"\ndashboard_url = \"https://app.example.jp/{tenant}\"";
    assert!(!warnings(with).contains("dashboard_url"));
    assert!(!warnings("").contains("dashboard_url"), "nobody is reminded");
}

#[test]
fn h2_to_look_no_secret_is_needed() {
    let text =
        format!("[store]\nurl = \"sqlite:x.db\"\n{}", SOURCE.replace("whsec_1", "env:SEKISHO_NO_SUCH"))
            + "[[route]]\nsecrets = [\"env:SEKISHO_NO_SUCH\"]\n[[key]]\nsecret = \"env:SEKISHO_NO_SUCH\"\n";
    let glance = glance(Path::new("s.toml"), &text, std::iter::empty()).ok().unwrap();
    assert_eq!(
        (glance.store.to_string().as_str(), glance.sources.as_slice()),
        ("sqlite:x.db", &["stripe".to_owned()][..])
    );
}

#[test]
fn h3_a_secret_is_found_by_reference_and_never_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, "whsec_canary\n").unwrap();
    let text = SOURCE.replace("whsec_1", &format!("file:{}", file.display()));
    let config = check(&text, &[]).unwrap();
    assert_eq!(config.sources[0].setup.secrets[0].expose(), "whsec_canary");
    assert!(!format!("{config:?} {:?}", config.sources[0].setup).contains("canary"));
    let found = check(&SOURCE.replace("whsec_1", "env:SEKISHO_NO_SUCH"), &[]).unwrap_err();
    assert!(found.contains("the environment variable SEKISHO_NO_SUCH is not set"), "{found}");
    let loaded = load(Path::new("s.toml"), SOURCE, std::iter::empty()).ok().unwrap();
    assert!(loaded.warnings[0].contains("plain text"));
    assert!(!loaded.warnings[0].contains("whsec_1"));
}

#[test]
fn a1_a_source_takes_the_mode_its_key_says_and_none_that_contradicts_it() {
    let livemode = |more: &str| {
        let loaded = load(Path::new("s.toml"), &format!("{SOURCE}{more}"), std::iter::empty());
        loaded.map(|loaded| loaded.config.sources[0].livemode)
    };
    for (more, expected) in [
        ("", None),
        ("api_key = \"rk_live_1\"\n", Some(true)),
        ("api_key = \"sk_test_1\"\n", Some(false)),
        ("api_key = \"sk_test_1\"\nlivemode = false\n", Some(false)),
        ("api_key = \"odd\"\nlivemode = true\n", Some(true)),
    ] {
        assert_eq!(livemode(more).unwrap(), expected, "{more}");
    }
    let problems = livemode("api_key = \"sk_test_1\"\nlivemode = true\n").unwrap_err();
    assert!(problems[0].message.contains("the other mode"), "{}", problems[0].message);
}

#[test]
fn a1_an_account_is_for_providers_whose_events_name_one() {
    let source = |provider: &str| {
        let text = SOURCE.replace("provider = \"stripe\"", &format!("provider = \"{provider}\""));
        check(&format!("{text}account = \"acct_1\"\n"), &[])
    };
    assert!(source("stripe").is_ok());
    assert!(source("github").unwrap_err().contains("events of github name no account"));
}

#[test]
fn a4_an_id_that_is_not_signed_is_told_at_start() {
    let text = SOURCE.replace("provider = \"stripe\"", "provider = \"generic_hmac\"\nheader = \"X-S\"");
    let warnings = |more: &str| {
        load(Path::new("s.toml"), &format!("{text}{more}"), std::iter::empty()).unwrap().warnings
    };
    let told = warnings("event_id = \"header:X-Id\"\nevent_type = \"header:X-Type\"\n").join("\n");
    assert!(told.contains("source stripe: event_id stands in a header that is not signed"), "{told}");
    assert!(told.contains("source stripe: event_type stands in a header that is not signed"), "{told}");
    assert!(!warnings("").join("\n").contains("is not signed"));
}
