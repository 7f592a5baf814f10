//! What is said of settings for the provider's API that do not fit.

use crate::config::load::tests::check;

const STRIPE: &str = "provider = \"stripe\"\nsecrets = [\"whsec_1\"]\n";
const PAYPAL: &str = "provider = \"paypal\"\nwebhook_id = \"1JE\"\n";
const LINE_PAY: &str = "provider = \"line_pay\"\n";
const KOMOJU: &str = "provider = \"komoju\"\nsecrets = [\"k\"]\n";
const SQUARE: &str =
    "provider = \"square\"\nsecrets = [\"s\"]\npublic_url = \"https://shop.example.test/webhooks/square\"\n";

fn source(name: &str, text: &str) -> String {
    format!("[[source]]\nname = \"{name}\"\n{text}")
}

#[test]
fn h5_settings_of_a_providers_api_that_do_not_fit_say_what_to_write() {
    let (key, id) = ("api_key = \"k1\"\n", "client_id = \"1479113123\"\n");
    for (provider, more, expected) in [
        (
            STRIPE,
            id.to_owned(),
            "client_id has no effect without api_key; write both, or leave client_id out",
        ),
        (STRIPE, format!("{key}{id}"), "Stripe has no client_id; leave it out"),
        (STRIPE, format!("{key}client_id = \"a b\"\n"), "expected the id as the provider's console shows it"),
        (PAYPAL, format!("{key}livemode = true\n"), "api_key needs client_id beside it: the app's client id"),
        (LINE_PAY, format!("{key}livemode = true\n"), "the channel id; api_key is then the channel secret"),
        (PAYPAL, format!("{key}{id}"), "write livemode = true, or false for the sandbox"),
        (SQUARE, format!("{key}livemode = true\n"), "api_key needs account beside it"),
        (KOMOJU, format!("{key}refunds = true\n"), "Sekisho makes no refunds at KOMOJU; leave refunds out"),
        (STRIPE, "refunds = true\n".to_owned(), "refunds = true needs an api_key that may create refunds"),
        (STRIPE, "api_key = \"sk_test_1\"\nlivemode = true\n".to_owned(), "api_key is of the other mode"),
        (
            "provider = \"github\"\nsecrets = [\"g\"]\n",
            key.to_owned(),
            "nothing is read from github yet; leave api_key out",
        ),
    ] {
        let error = check(&source("s", &(provider.to_owned() + &more)), &[]).unwrap_err();
        assert!(error.contains(expected), "{more}: {error}");
    }
    for (provider, more) in [
        (STRIPE, key.to_owned()),
        (PAYPAL, format!("{key}{id}livemode = false\n")),
        (LINE_PAY, format!("{key}{id}livemode = true\n")),
        (SQUARE, format!("{key}livemode = true\naccount = \"6SSW7HV8K2ST5\"\n")),
        (KOMOJU, key.to_owned()),
    ] {
        let config = check(&source("s", &(provider.to_owned() + &more)), &[]).unwrap();
        assert!(config.sources[0].api.is_some(), "{more}");
    }
}

#[test]
fn h5_two_sources_that_would_take_in_each_others_events_are_refused() {
    let pair = |one: &str, other: &str| {
        check(&(source("a", &(STRIPE.to_owned() + one)) + &source("b", &(STRIPE.to_owned() + other))), &[])
    };
    let (k1, k2) = ("api_key = \"rk_live_1\"\n", "api_key = \"rk_live_2\"\n");
    let error = pair(k1, k1).unwrap_err();
    for expected in
        ["sources a and b have the same api_key at Stripe", "write reconcile = false in one of them"]
    {
        assert!(error.contains(expected), "{error}");
    }
    let (one, other) = ("account = \"acct_1\"\n", "account = \"acct_2\"\n");
    let error = pair(&(k1.to_owned() + one), &(k2.to_owned() + one)).unwrap_err();
    assert!(error.contains("have the same account at Stripe"), "{error}");
    let error = pair(&(k1.to_owned() + one), &(k1.to_owned() + other)).unwrap_err();
    assert!(
        error.contains("have the same api_key"),
        "one key lists one account, whatever is written: {error}"
    );
    for (one, other) in [
        (k1.to_owned(), k2.to_owned()),
        (k1.to_owned(), format!("{k1}reconcile = false\n")),
        (format!("{k1}{one}"), format!("{k2}{other}")),
        (format!("{k1}{one}"), format!("api_key = \"rk_test_1\"\n{one}")),
    ] {
        pair(&one, &other).unwrap();
    }
}
