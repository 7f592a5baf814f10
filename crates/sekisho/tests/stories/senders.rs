//! A2, H6: every provider that can be signed for is sent by `sekisho send`, verified, and stored under its type.

use sekisho_core::provider::{ALL, Setup};
use sekisho_core::{Secret, event::Trust};

use crate::support::{Gateway, Letter, Place, Provider, each_store};

/// Good as text, as hex and as base 64; another one for each provider.
fn secret(n: usize) -> String {
    format!("cafe0123456789abcdef{n:04x}")
}

/// One source for each provider, named like it.
fn everybody() -> (String, Vec<(String, String)>) {
    let (mut config, mut env) = (String::new(), Vec::new());
    for (n, about) in ALL.iter().map(|provider| provider.about()).enumerate() {
        config += &format!("[[source]]\nname = \"{0}\"\nprovider = \"{0}\"\n", about.name);
        if !about.secret.is_empty() {
            config += &format!("secrets = [\"env:SECRET_{n}\"]\n");
            env.push((format!("SECRET_{n}"), secret(n)));
        }
        if about.signs_url {
            config += &format!("public_url = \"https://shop.example.test/webhooks/{}\"\n", about.name);
        }
        for setting in about.settings.iter().filter(|setting| setting.required) {
            config += &format!("{} = \"{}\"\n", setting.name, setting.example);
        }
    }
    (config, env)
}

fn gateway(place: &Place) -> Gateway {
    let (config, env) = everybody();
    let borrowed: Vec<_> = env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut gateway = Gateway::with_env(place, &config, &borrowed);
    gateway.canaries.extend(env.into_iter().map(|(_, secret)| secret));
    gateway
}

/// Some providers sign with a private key that only they have.
fn can_sign(n: usize) -> bool {
    let about = ALL[n].about();
    let settings = about.settings.iter().filter(|setting| setting.required);
    let setup = Setup {
        secrets: vec![Secret::new(secret(n))],
        public_url: Some("https://shop.example.test/x".into()),
        settings: settings.map(|setting| (setting.name.into(), setting.example.into())).collect(),
        ..Setup::default()
    };
    let now = sekisho::now();
    ALL[n].open(&setup).unwrap().sign(about.draft("x", about.sample_type, now), now).is_ok()
}

#[test]
fn a2_every_provider_that_can_be_signed_for_is_accepted_and_stored() {
    each_store(|place| {
        let gateway = gateway(place);
        let mut sent = 0;
        for (n, about) in ALL.iter().map(|provider| provider.about()).enumerate() {
            let words = ["send", "--source", about.name, "--id", "9001", "--json"];
            if !can_sign(n) {
                let said = gateway.type_in_with_url(&words).failed(1);
                assert!(
                    said.stderr.contains("only") && said.stderr.len() > 40,
                    "{}: {}",
                    about.name,
                    said.stderr
                );
                continue;
            }
            let first = &gateway.type_in_with_url(&words).done().lines()[0];
            assert_eq!(
                (&first["status"], &first["outcome"]),
                (&204.into(), &"accepted".into()),
                "{}",
                about.name
            );
            let listed =
                gateway.type_in(&["events", "list", "--json", "--source", about.name]).done().lines();
            assert_eq!(listed.len(), 1, "{}", about.name);
            assert_eq!(listed[0]["type"], about.sample_type, "{}", about.name);
            assert_eq!(listed[0]["trust"], about.trust.name(), "{}", about.name);
            assert_eq!(listed[0]["event_id"], first["event_id"], "{}", about.name);
            sent += 1;
        }
        assert!(sent >= 20, "{sent} of {} providers", ALL.len());
        assert_eq!(gateway.events().len(), sent);
    });
}

#[test]
fn a2_what_was_signed_for_one_source_is_refused_by_every_other() {
    let place = Place::sqlite();
    let gateway = gateway(&place);
    let proven = |n: &usize| can_sign(*n) && ALL[*n].about().trust != Trust::Hint;
    let mut tried = 0;
    for n in (0..ALL.len()).filter(proven) {
        let about = ALL[n].about();
        let settings = about.settings.iter().filter(|setting| setting.required);
        let settings: Vec<_> = settings.map(|setting| (setting.name, setting.example)).collect();
        let url = format!("https://shop.example.test/webhooks/{}", about.name);
        let letter = Provider::with(about.name, &[&secret(n)], &settings, Some(&url)).event("evt_astray");
        for other in ALL.iter().map(|provider| provider.about()) {
            if other.name != about.name && other.trust != Trust::Hint {
                let astray = Letter { path: format!("/webhooks/{}", other.name), ..letter.clone() };
                let answer = gateway.send(&astray);
                assert_eq!(answer.status, 400, "{} believed {}: {}", other.name, about.name, answer.text());
                tried += 1;
            }
        }
    }
    assert!(tried > 300, "{tried}");
    assert!(gateway.events().is_empty());
}
