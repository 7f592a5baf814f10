//! What holds for every provider, and the answers that only some of them want.

use std::str::FromStr;

use http::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;
use crate::event::{IdProof, ObjectRef, Trust};
use crate::secret::Secret;

const NOW: Time = Time::from_ms(1_770_000_000_000);
/// Good as text, as hex and as base 64.
const SECRET: &str = "abcd0000abcd0000";

fn setup(provider: &dyn Provider) -> Setup {
    let settings = provider.about().settings.iter().filter(|setting| setting.required);
    Setup {
        secrets: vec![Secret::new(SECRET)],
        public_url: Some("https://shop.example.test/webhooks/x".into()),
        settings: settings.map(|setting| (setting.name.into(), setting.example.into())).collect(),
        ..Setup::default()
    }
}

fn open(name: &str) -> Box<dyn Scheme> {
    let provider = find(name).unwrap();
    provider.open(&setup(provider)).unwrap()
}

/// A request that owns its parts.
#[derive(Clone, Debug)]
struct Sent {
    method: Method,
    headers: HeaderMap,
    query: String,
    body: Vec<u8>,
}

impl Sent {
    fn new(signed: Signed) -> Self {
        let mut headers = HeaderMap::new();
        for (name, value) in signed.headers {
            headers.append(HeaderName::from_str(&name).unwrap(), HeaderValue::from_str(&value).unwrap());
        }
        Self { method: signed.method, headers, query: signed.query.unwrap_or_default(), body: signed.body }
    }

    /// The body, signed as the provider would.
    fn signed(name: &str, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        let draft = Draft { id: "id-1".into(), kind: kind.into(), body: body.into() };
        Self::new(open(name).sign(draft, NOW).unwrap())
    }

    /// The provider's sample, signed; `None` for those who can't.
    fn sample(provider: &dyn Provider) -> Option<Self> {
        let about = provider.about();
        let draft = about.draft("evt-1", about.sample_type, NOW);
        provider.open(&setup(provider)).unwrap().sign(draft, NOW).ok().map(Self::new)
    }

    fn request(&self) -> Request<'_> {
        Request {
            method: &self.method,
            headers: &self.headers,
            query: &self.query,
            body: &self.body,
            certificate: None,
        }
    }

    fn check(&self, scheme: &dyn Scheme) -> Result<(), RequestRefusal> {
        scheme.check(&self.request(), NOW)
    }

    fn read(&self, name: &str) -> Result<RequestReading<'_>, Unusable> {
        let scheme = open(name);
        read(scheme.as_ref(), &verify(scheme.as_ref(), self.request(), NOW).unwrap())
    }

    fn events(&self, name: &str) -> Vec<Event<'_>> {
        match self.read(name) {
            Ok(RequestReading::Events(events)) => events,
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn a2_names_are_unique_and_found_in_both_spellings() {
    let mut names: Vec<_> = ALL.iter().map(|provider| provider.about().name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len());
    assert_eq!(find("standard-webhooks").unwrap().about().name, "standard_webhooks");
    assert!(find("nobody").is_none());
}

/// A hint needs no keys, since it proves nothing; everyone else refuses to work without theirs.
#[test]
fn a2_every_provider_without_its_keys_refuses_to_open() {
    for provider in ALL {
        let about = provider.about();
        let opened = provider.open(&Setup::default()).is_ok();
        assert_eq!(opened, about.trust == Trust::Hint, "{}", about.name);
        assert!(provider.open(&setup(*provider)).is_ok(), "{}", about.name);
        assert!(!about.proof.is_empty(), "{}", about.name);
        assert!(!about.sample_type.is_empty(), "{}", about.name);
    }
}

#[test]
fn a2_a_provider_that_signs_our_address_wants_to_know_it() {
    for provider in ALL.iter().filter(|provider| provider.about().signs_url) {
        let setup = Setup { public_url: None, ..setup(*provider) };
        assert!(provider.open(&setup).err().unwrap().0.contains("public_url"));
    }
}

/// What a provider says of itself is what its scheme does: with a tolerance of a day, what was signed an hour ago is taken.
#[test]
fn a2_a_tolerance_and_a_certificate_are_for_those_who_have_one() {
    for provider in ALL {
        let about = provider.about();
        assert_eq!(about.has_certificate, ["paypal", "sns"].contains(&about.name), "{}", about.name);
        let Some(sent) = Sent::sample(*provider) else { continue };
        let late = |tolerance_s| {
            let scheme = provider.open(&Setup { tolerance_s, ..setup(*provider) });
            scheme.ok().map(|scheme| scheme.check(&sent.request(), NOW.plus_ms(3_600_000)).is_ok())
        };
        // Its samples sign no time, so it opens without a tolerance only.
        let expected = if about.name == "generic_hmac" { None } else { Some(true) };
        match about.tolerance_s {
            Some(_) => assert_eq!(late(Some(86_400)), expected, "{}", about.name),
            None => assert_eq!(late(Some(86_400)), late(Some(60)), "{}", about.name),
        }
    }
}

#[test]
fn a2_the_window_has_two_sides_and_forgives_a_minute_of_skew() {
    let now = Time::from_seconds(1000);
    assert_eq!(check_window(700, now, 300), Ok(()));
    assert_eq!(check_window(699, now, 300), Err(RequestRefusal::StaleTimestamp(301)));
    assert_eq!(check_window(1300, now, 300), Ok(()));
    assert_eq!(check_window(1301, now, 300), Err(RequestRefusal::FutureTimestamp(301)));
    assert_eq!(check_window(1060, now, 5), Ok(()));
    assert_eq!(check_window(1061, now, 5), Err(RequestRefusal::FutureTimestamp(61)));
    assert_eq!(check_window(i64::MIN, now, 300), Err(RequestRefusal::StaleTimestamp(i64::MAX)));
}

#[test]
fn a2_what_is_signed_here_is_genuine_and_reads_as_drafted() {
    for provider in ALL {
        let about = provider.about();
        let Some(sent) = Sent::sample(*provider) else {
            assert!(["paypal", "sns"].contains(&about.name), "{}", about.name);
            continue;
        };
        let events = sent.events(about.name);
        let event = &events[0];
        let id = match about.name {
            "adyen" => "evt-1:AUTHORISATION:true",
            "adyen_banking" => "sha256:",
            "line_pay" => "callback:",
            "mollie_classic" => "evt-1@1770000000000",
            _ => "evt-1",
        };
        assert!(event.id.starts_with(id), "{}: {}", about.name, event.id);
        assert_eq!(event.kind, about.sample_type, "{}", about.name);
        assert!(about.names_account || event.account.is_none(), "{}", about.name);
        // Headers are not signed but where the scheme puts the id beside the body.
        let open = ["payjp", "razorpay", "shopify", "github", "gitlab_token", "twilio", "qstash"];
        assert_eq!(event.id_proof != IdProof::Covered, open.contains(&about.name), "{}", about.name);
        if let Some(created) = event.created {
            assert_eq!(created.at, NOW, "{}", about.name);
            assert!(about.trust == Trust::Signed || !created.immutable, "{}", about.name);
        }
        for (header, value) in &sent.headers {
            let is_told = about.secret_headers.contains(&header.as_str());
            assert_eq!(is_told, value == SECRET, "{}: {header}", about.name);
        }
    }
}

/// A hook of GitLab may send its secret token beside the signature.
#[test]
fn h3_gitlabs_token_is_a_secret_in_both_ways() {
    for name in ["gitlab_signing", "gitlab_token"] {
        assert!(find(name).unwrap().about().secret_headers.contains(&"x-gitlab-token"), "{name}");
    }
}

#[test]
fn a2_any_of_several_secrets_may_match_and_no_other() {
    for provider in ALL.iter().filter(|provider| provider.about().trust != Trust::Hint) {
        let Some(sent) = Sent::sample(*provider) else { continue };
        let check = |secrets: &[&str]| {
            let secrets = secrets.iter().map(|text| Secret::new(*text)).collect();
            sent.check(provider.open(&Setup { secrets, ..setup(*provider) }).unwrap().as_ref())
        };
        assert_eq!(check(&["00000000", SECRET]), Ok(()), "{}", provider.about().name);
        let refusal = check(&["00000000", "11111111"]).unwrap_err();
        assert!(matches!(refusal, RequestRefusal::BadSignature | RequestRefusal::BadToken), "{refusal:?}");
    }
}

#[test]
fn a2_a_sample_survives_awkward_ids() {
    for provider in ALL.iter().filter(|provider| !provider.about().sample.is_empty()) {
        let id = "a\"b\\c&d=é";
        let body = provider.about().draft(id, "x", NOW).body;
        if provider.about().sample.starts_with('{') {
            assert!(serde_json::from_slice::<serde_json::Value>(&body).is_ok(), "{}", provider.about().name);
        } else {
            assert!(form_urlencoded::parse(&body).any(|(_, value)| value == id), "{}", provider.about().name);
        }
    }
}

#[test]
fn a3_handshakes_get_the_answer_their_provider_wants() {
    let echo = Handshake::Echo { body: "3eZbrw1a".into() };
    for (name, kind, body, answer) in [
        ("slack", "", r#"{"type":"url_verification","challenge":"3eZbrw1a"}"#, echo),
        ("slack", "", "ssl_check=1&token=x", Handshake::Acknowledge),
        ("line", "", r#"{"destination":"U","events":[]}"#, Handshake::Acknowledge),
        ("github", "ping", r#"{"zen":"Keep it logically awesome."}"#, Handshake::Acknowledge),
        ("komoju", "", r#"{"type":"ping"}"#, Handshake::Acknowledge),
        ("mollie", "", r#"{"id":"e","type":"hook.ping"}"#, Handshake::Acknowledge),
    ] {
        let sent = Sent::signed(name, kind, body);
        assert_eq!(sent.read(name), Ok(RequestReading::Handshake(answer)), "{name} {body}");
    }
}

#[test]
fn a3_a_genuine_request_without_a_usable_event_is_kept_apart() {
    let long = format!(r#"{{"id":"{}","type":"x","created":1}}"#, "a".repeat(256));
    for (name, body) in [
        ("stripe", "not json"),
        ("stripe", r#"{"id":"","type":"x","created":1}"#),
        ("stripe", r#"{"id":"a\u0000b","type":"x","created":1}"#),
        ("stripe", r#"{"id":"a","type":"x\n","created":1}"#),
        ("stripe", long.as_str()),
        ("line", r#"{"hello":"world"}"#),
        ("line", r#"{"events":[{"type":"message"}]}"#),
        ("slack", r#"{"type":"app_rate_limited"}"#),
        ("slack", "a=b"),
        ("slack", "ssl_check=0&token=x"),
        ("slack", "payload=%7B%7D"),
        ("komoju", r#"{"type":"payment.captured"}"#),
        ("twilio", "From=x"),
        ("generic_hmac", r#"{"id":{},"type":"x"}"#),
    ] {
        assert!(Sent::signed(name, "", body).read(name).is_err(), "{name} {body}");
    }
    let mut sent = Sent::signed("github", "push", "{}");
    sent.headers.remove("x-github-delivery");
    assert!(sent.read("github").is_err());
}

#[test]
fn a4_an_object_of_stripe_may_have_a_type_besides_its_kind() {
    let check = |body: &str, kind: &str, id: &str| {
        let body = format!(r#"{{"id":"evt_1","type":"x","created":1,{body}}}"#);
        let sent = Sent::signed("stripe", "", body);
        assert_eq!(sent.events("stripe")[0].object, Some(ObjectRef::new(kind, id)));
    };
    let card = r#""data":{"object":{"id":"pm_1","object":"payment_method","type":"card"}}"#;
    check(card, "payment_method", "pm_1");
    let thin =
        r#""related_object":{"id":"acct_1","type":"v2.core.account","url":"/v2/core/accounts/acct_1"}"#;
    check(thin, "v2.core.account", "acct_1");
}

#[test]
fn a4_each_event_of_a_batch_has_its_own_id_and_bytes() {
    let body = r#"{"destination":"U","events":[ {"type":"message","webhookEventId":"A","message":{"id":"7"}} ,{"type":"follow","webhookEventId":"B","timestamp":5}]}"#;
    let sent = Sent::signed("line", "", body);
    let events = sent.events("line");
    let names: Vec<_> = events.iter().map(|event| (event.id.as_ref(), event.kind.as_ref())).collect();
    assert_eq!(names, [("A", "message"), ("B", "follow")]);
    assert_eq!(*events[1].body, *br#"{"type":"follow","webhookEventId":"B","timestamp":5}"#);
    assert_eq!(events[0].object, Some(ObjectRef::new("message", "7")));
    assert_eq!(events[1].created, Some(Created { at: Time::from_ms(5), immutable: true }));
}

#[test]
fn a2_an_adyen_batch_is_believed_whole_or_not_at_all() {
    let item = |psp: &str, code: &str, more: &str| {
        format!(
            r#"{{"NotificationRequestItem":{{"pspReference":"{psp}","eventCode":"{code}","success":"true"{more}}}}}"#
        )
    };
    let batch = |items: &[String]| format!(r#"{{"live":"true","notificationItems":[{}]}}"#, items.join(","));
    let refund = item("P2", "REFUND", r#","originalReference":"P1","merchantAccountCode":"M""#);
    let mut sent = Sent::signed("adyen", "", batch(&[item("P1", "CAPTURE", ""), refund]));
    let events = sent.events("adyen");
    assert_eq!(events[0].id, "P1:CAPTURE:true");
    assert_eq!(events[1].id, "P2:REFUND:true");
    assert_eq!(events[1].object, Some(ObjectRef::new("payment", "P1")));
    assert_eq!(events[1].account.as_deref(), Some("M"));
    assert_eq!(events[0].livemode, Some(true));
    assert!(events[0].body.starts_with(b"{\"additionalData\"") && events[0].body.ends_with(b"}"));

    let forged = String::from_utf8(sent.body.clone()).unwrap().replace("REFUND", "CHARGEBACK");
    sent.body = forged.into_bytes();
    assert_eq!(sent.check(open("adyen").as_ref()), Err(RequestRefusal::BadSignature));
    sent.body = batch(&[]).into_bytes();
    assert_eq!(sent.check(open("adyen").as_ref()), Err(RequestRefusal::MalformedBody));
    // Two spellings of one field: which one was signed?
    let twice = item("P1", "CAPTURE", r#","pspReference":"P9""#);
    assert!(open("adyen").sign(Draft { id: String::new(), kind: String::new(), body: vec![] }, NOW).is_err());
    sent.body = batch(&[twice]).into_bytes();
    assert_eq!(sent.check(open("adyen").as_ref()), Err(RequestRefusal::MalformedBody));
}

#[test]
fn a2_mollie_repeats_its_header_while_a_secret_is_rotated() {
    let mut sent = Sent::signed("mollie", "", "{}");
    let good = sent.headers.remove("x-mollie-signature").unwrap();
    let other = HeaderValue::from_str(&format!("sha256={}", "00".repeat(32))).unwrap();
    sent.headers.append("x-mollie-signature", other.clone());
    assert_eq!(sent.check(open("mollie").as_ref()), Err(RequestRefusal::BadSignature));
    sent.headers.append("x-mollie-signature", good.clone());
    assert_eq!(sent.check(open("mollie").as_ref()), Ok(()));
    let joined = format!("{}, {}", other.to_str().unwrap(), good.to_str().unwrap());
    sent.headers.insert("x-mollie-signature", joined.parse().unwrap());
    assert_eq!(sent.check(open("mollie").as_ref()), Ok(()));
    // Elsewhere a second header is an attempt to confuse.
    let mut sent = Sent::signed("github", "push", "{}");
    sent.headers.append("x-hub-signature-256", good);
    assert!(matches!(sent.check(open("github").as_ref()), Err(RequestRefusal::MalformedHeader(_))));
}

#[test]
fn a4_no_hint_is_swallowed_by_an_earlier_one() {
    for provider in ALL.iter().filter(|provider| provider.about().trust == Trust::Hint) {
        let name = provider.about().name;
        let (sent, scheme) = (Sent::sample(*provider).unwrap(), open(name));
        let id = |now| match read(scheme.as_ref(), &verify(scheme.as_ref(), sent.request(), now).unwrap()) {
            Ok(RequestReading::Events(events)) => events[0].id.to_string(),
            other => panic!("{other:?}"),
        };
        // Whoever sends it before the customer approves takes nothing away from the provider's own.
        assert_ne!(id(NOW), id(NOW.plus_ms(1)), "{name}");
    }
}

#[test]
fn a3_of_a_hint_only_what_was_understood_is_kept() {
    let forged = r#"{"x":"&id=tr_1&y","id":"evt_1","type":"payment_intent.succeeded","data":{}}"#;
    let sent = Sent::signed("mollie_classic", "", forged);
    assert_eq!(*sent.events("mollie_classic")[0].body, *b"id=tr_1");
    let mut sent = Sent::sample(find("line_pay").unwrap()).unwrap();
    assert!(sent.events("line_pay")[0].body.is_empty());
    sent.body = br#"{"type":"payment_intent.succeeded"}"#.to_vec();
    assert_eq!(sent.check(open("line_pay").as_ref()).unwrap_err().reason(), "foreign_call");
}

#[test]
fn a2_a_hint_that_is_none_is_refused_before_anything_is_kept() {
    let scheme = open("line_pay");
    let mut sent = Sent::sample(find("line_pay").unwrap()).unwrap();
    assert_eq!(sent.check(scheme.as_ref()), Ok(()));
    sent.method = Method::POST;
    assert_eq!(sent.check(scheme.as_ref()).unwrap_err().reason(), "foreign_call");
    let sent = Sent { body: b"hello".to_vec(), ..sent };
    assert_eq!(sent.check(open("mollie_classic").as_ref()).unwrap_err().reason(), "foreign_call");
}

#[test]
fn a2_shopify_is_read_in_both_spellings_and_keeps_every_digit() {
    let mut sent = Sent::signed("shopify", "orders/paid", r#"{"id":820982911946154508}"#);
    let object = Some(ObjectRef::new("orders", "820982911946154508"));
    assert_eq!(sent.events("shopify")[0].object, object);
    let plain = |name: &HeaderName| name.as_str().trim_start_matches("x-").parse::<HeaderName>().unwrap();
    sent.headers = sent.headers.iter().map(|(name, value)| (plain(name), value.clone())).collect();
    assert!(sent.headers.contains_key("shopify-hmac-sha256"));
    assert_eq!(sent.events("shopify")[0].id, "id-1");
    let id = sent.headers.remove("shopify-event-id").unwrap();
    sent.headers.insert("shopify-webhook-id", id);
    assert_eq!(sent.events("shopify")[0].id, "id-1");
}

#[test]
fn a2_slack_forms_are_named_by_their_trigger() {
    let payload = form_urlencoded::byte_serialize(br#"{"type":"block_actions","trigger_id":"T.2"}"#);
    let payload = format!("payload={}", payload.collect::<String>());
    for (body, id, kind) in [
        ("command=%2Fpay&trigger_id=T.1&team_id=T0", "T.1", "slash_command"),
        ("ssl_check=1&command=%2Fpay&trigger_id=T.3", "T.3", "slash_command"),
        (&payload, "T.2", "block_actions"),
    ] {
        let sent = Sent::signed("slack", "", body);
        let events = sent.events("slack");
        assert_eq!((events[0].id.as_ref(), events[0].kind.as_ref()), (id, kind));
    }
}

#[test]
fn a2_twilio_names_calls_messages_and_json() {
    for (body, id, kind) in [
        ("CallSid=CA1&CallStatus=completed", "CA1:completed", "call.completed"),
        ("MessageSid=SM1&MessageStatus=delivered", "SM1:delivered", "message.delivered"),
        ("SmsSid=SM1&SmsStatus=received", "SM1:received", "message.received"),
        ("CallSid=CA1&Digits=1", "CA1", "twilio.request"),
        (
            r#"{"a":1}"#,
            "sha256:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862",
            "twilio.request",
        ),
    ] {
        let mut sent = Sent::signed("twilio", "", body);
        assert_eq!(sent.events("twilio")[0].id, "id-1");
        sent.headers.remove("i-twilio-idempotency-token");
        let events = sent.events("twilio");
        assert_eq!((events[0].id.as_ref(), events[0].kind.as_ref()), (id, kind));
    }
    let mut sent = Sent::signed("twilio", "", r#"{"a":1}"#);
    sent.body = br#"{"a":2}"#.to_vec();
    assert_eq!(sent.check(open("twilio").as_ref()), Err(RequestRefusal::BadSignature));
}

#[test]
fn a2_a_qstash_token_is_for_us_for_now_and_for_this_body() {
    let sent = Sent::signed("qstash", "", "hello");
    let provider = find("qstash").unwrap();
    let elsewhere = Setup { public_url: Some("https://other.example.test/".into()), ..setup(provider) };
    let elsewhere = provider.open(&elsewhere).unwrap();
    assert_eq!(sent.check(elsewhere.as_ref()).unwrap_err().reason(), "foreign_url");
    let at =
        |s: i64| open("qstash").check(&sent.request(), NOW.plus_ms(s * 1000)).err().map(|no| no.reason());
    assert_eq!(at(299), None);
    assert_eq!(at(300), Some("stale_timestamp"));
    // It is valid since a minute before it was made, and a minute is forgiven.
    assert_eq!(at(-120), None);
    assert_eq!(at(-121), Some("future_timestamp"));
    for token in ["", ".", "..", "a.b.c", "eyJhbGciOiJub25lIn0.e30."] {
        let mut sent = sent.clone();
        sent.headers.insert("upstash-signature", token.parse().unwrap());
        assert!(sent.check(open("qstash").as_ref()).is_err(), "{token}");
    }
}

/// Whose signature covers every byte of the body. Adyen signs eight fields, Twilio the fields of a form.
fn signers_of_bytes() -> Vec<(&'static dyn Provider, Sent)> {
    let signs_bytes =
        |about: &AboutProvider| about.trust == Trust::Signed && !["adyen", "twilio"].contains(&about.name);
    let all = ALL.iter().copied().filter(|provider| signs_bytes(provider.about()));
    all.filter_map(|provider| Some((provider, Sent::sample(provider)?))).collect()
}

/// Headers without which the request is refused.
fn proof_headers(scheme: &dyn Scheme, sent: &Sent) -> Vec<HeaderName> {
    let is_proof = |name: &&HeaderName| {
        let mut without = sent.clone();
        without.headers.remove(*name);
        without.check(scheme).is_err()
    };
    sent.headers.keys().filter(is_proof).cloned().collect()
}

#[test]
fn r19_a_changed_byte_of_body_or_signature_is_refused() {
    for (provider, sent) in signers_of_bytes() {
        let name = provider.about().name;
        let scheme = provider.open(&setup(provider)).unwrap();
        for position in 0..sent.body.len() {
            let mut changed = sent.clone();
            changed.body[position] ^= 1;
            assert!(changed.check(scheme.as_ref()).is_err(), "{name}: byte {position} of the body");
        }
        let proof = proof_headers(scheme.as_ref(), &sent);
        assert!(!proof.is_empty(), "{name}");
        for header in proof {
            let value = sent.headers[&header].as_bytes();
            for position in 0..value.len() {
                let mut value = value.to_vec();
                value[position] ^= 1;
                let Ok(value) = HeaderValue::from_bytes(&value) else { continue };
                let mut changed = sent.clone();
                changed.headers.insert(header.clone(), value);
                assert!(changed.check(scheme.as_ref()).is_err(), "{name}: byte {position} of {header}");
            }
        }
    }
}

proptest! {
    #[test]
    fn r19_any_other_body_under_the_same_signature_is_refused(
        index in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), mask in 1u8.., cut in 0usize..3, more in "[ \\n]{0,2}",
    ) {
        let all = signers_of_bytes();
        let (provider, sent) = index.get(&all);
        let scheme = provider.open(&setup(*provider)).unwrap();
        let mut changed = sent.clone();
        match cut {
            0 => changed.body[at.index(sent.body.len())] ^= mask,
            1 => changed.body.truncate(at.index(sent.body.len())),
            _ if more.is_empty() => return Ok(()),
            _ => changed.body.extend(more.as_bytes()),
        }
        prop_assert!(changed.check(scheme.as_ref()).is_err(), "{}", provider.about().name);
    }

    #[test]
    fn a2_no_request_however_strange_makes_a_provider_panic(
        body in strange_body(),
        headers in prop::collection::vec((any::<prop::sample::Index>(), "[ -~é]{0,40}|[a-z0-9]{1,3}=[0-9a-f,;=.]{0,40}"), 0..6),
        query in "[ -~]{0,30}",
        cross in any::<prop::sample::Index>(),
        now in any::<i64>(),
        get in any::<bool>(),
    ) {
        let samples: Vec<_> = ALL.iter().filter_map(|provider| Sent::sample(*provider)).collect();
        let mut names: Vec<HeaderName> = samples.iter().flat_map(|sent| sent.headers.keys().cloned()).collect();
        names.extend(["paypal-transmission-id", "paypal-cert-url", "paypal-auth-algo"].map(HeaderName::from_static));
        let mut sent = cross.get(&samples).clone();
        sent.method = if get { Method::GET } else { Method::POST };
        sent.query = query;
        sent.body = body;
        for (name, value) in headers {
            sent.headers.append(name.get(&names).clone(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        for provider in ALL {
            let scheme = provider.open(&setup(*provider)).unwrap();
            let now = Time::from_ms(now);
            let _ = scheme.certificate_url(&sent.request());
            let _ = scheme.check(&sent.request(), now);
            if let Ok(RequestReading::Events(events)) = read(scheme.as_ref(), &Verified { request: sent.request(), now }) {
                prop_assert!(!events.is_empty());
                prop_assert!(events.iter().all(|event| is_usable(&event.id) && is_usable(&event.kind)));
            }
        }
    }
}

/// Noise, samples with noise in the middle, and JSON that is too deep.
fn strange_body() -> impl Strategy<Value = Vec<u8>> {
    let samples: Vec<_> = ALL.iter().map(|provider| provider.about().draft("i", "t", NOW).body).collect();
    let broken = (
        prop::sample::select(samples),
        any::<prop::sample::Index>(),
        prop::collection::vec(any::<u8>(), 0..4),
    )
        .prop_map(|(mut body, at, noise)| {
            let at = at.index(body.len() + 1);
            body.splice(at..at, noise);
            body
        });
    let values = prop::sample::select(vec![
        "null",
        "1",
        "-1",
        "1e999",
        "\"\"",
        "\"\\ud800\"",
        "[]",
        "{}",
        "true",
        "\"é\"",
    ]);
    let swapped = (
        prop::sample::select(vec!["id", "type", "created", "events", "data", "event", "notificationItems"]),
        values,
    )
        .prop_map(|(key, value)| format!("{{\"{key}\":{value},\"type\":\"t\",\"id\":\"i\"}}").into_bytes());
    let deep = (1usize..3000).prop_map(|depth| "[".repeat(depth).into_bytes());
    prop_oneof![prop::collection::vec(any::<u8>(), 0..200), broken, swapped, deep]
}
