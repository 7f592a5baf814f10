use super::*;
use crate::event::IdProof;
use crate::secret::Secret;

fn open(settings: &[(&str, &str)]) -> Result<Box<dyn Scheme>, SetupError> {
    let mut all = vec![("header", "X-Signature")];
    all.extend(settings);
    GenericHmac.open(&Setup {
        secrets: vec![Secret::new("secret")],
        settings: all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..Setup::default()
    })
}

#[test]
fn a2_settings_that_prove_nothing_are_refused_with_what_to_write() {
    for (settings, word) in [
        (&[("algorithm", "md5")][..], "sha256"),
        (&[("encoding", "base32")], "hex"),
        (&[("header", "a b")], "X-Signature"),
        (&[("signed", "{timestamp}"), ("timestamp_header", "T")], "{body}"),
        (&[("signed", "fixed")], "{body}"),
        (&[("signed", "{timestamp}.{body}")], "timestamp_header"),
        (&[("timestamp_header", "T")], "{timestamp}"),
        (&[("signed", "{id}.{body}")], "header:"),
        (&[("signed", "{nonce}.{body}")], "{timestamp}"),
        (&[("signed", "{id}{body}"), ("event_id", "header:X-Id")], "between them"),
        (
            &[("signed", "{id}{timestamp}.{body}"), ("event_id", "header:X-Id"), ("timestamp_header", "T")],
            "between them",
        ),
        (&[("signed", "{body")], "{body}"),
        (&[("event_id", "id")], "body:"),
        (&[("event_id", "body:")], "body:"),
        (&[("event_id", "text:always-the-same")], "body:"),
        (&[("event_type", "sha256")], "body:"),
    ] {
        let error = open(settings).err().unwrap_or_else(|| panic!("{settings:?} was accepted")).0;
        assert!(error.contains(word), "{settings:?}: {error}");
    }
    let all = [
        ("signed", "v1:{id}.{timestamp}.{body}!"),
        ("timestamp_header", "X-Time"),
        ("event_id", "header:X-Id"),
        ("event_type", "text:any"),
        ("created", "body:at"),
    ];
    assert!(open(&all).is_ok());
}

#[test]
fn a4_an_id_or_type_that_is_not_signed_is_told_and_the_id_is_not_relied_on() {
    let signed = [("signed", "{id}.{body}"), ("event_id", "header:X-Id"), ("event_type", "text:any")];
    let body = [("event_id", "body:id"), ("event_type", "body:type")];
    let open_id = [("event_id", "header:X-Id"), ("event_type", "text:any")];
    let open_type = [("event_id", "sha256"), ("event_type", "header:X-Type")];
    for (settings, told) in [
        (&signed[..], &[][..]),
        (&body, &[]),
        (&open_id, &["event_id stands in a header"]),
        (&open_type, &["event_type stands in a header"]),
    ] {
        let scheme = open(settings).unwrap();
        let warnings = scheme.warnings();
        assert_eq!(warnings.len(), told.len(), "{warnings:?}");
        assert!(warnings.iter().zip(told).all(|(found, told)| found.starts_with(told)), "{warnings:?}");
        let draft = Draft { id: "7".into(), kind: "t".into(), body: br#"{"id":"7","type":"t"}"#.to_vec() };
        let sent = scheme.sign(draft, Time::from_ms(0)).unwrap();
        let header = |name: &str| HeaderName::from_str(name).unwrap();
        let headers: http::HeaderMap =
            sent.headers.iter().map(|(name, value)| (header(name), value.parse().unwrap())).collect();
        let request = Request {
            method: &sent.method,
            headers: &headers,
            query: "",
            body: &sent.body,
            certificate: None,
        };
        let verified = super::super::verify(&*scheme, request, Time::from_ms(0)).unwrap();
        let Ok(RequestReading::Events(events)) = scheme.read(&verified) else { panic!("it is an event") };
        let is_open = told.iter().any(|told| told.starts_with("event_id"));
        assert_eq!(events[0].id_proof != IdProof::Covered, is_open);
    }
}

#[test]
fn a2_a_tolerance_without_a_signed_time_is_refused() {
    let open = |settings: &[(&str, &str)]| {
        let all = [("header", "X-Signature")].iter().chain(settings);
        GenericHmac.open(&Setup {
            secrets: vec![Secret::new("secret")],
            settings: all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            tolerance_s: Some(60),
            ..Setup::default()
        })
    };
    let error = open(&[]).err().unwrap().0;
    assert!(error.contains("timestamp_header") && error.contains("leave tolerance out"), "{error}");
    assert!(open(&[("signed", "{timestamp}.{body}"), ("timestamp_header", "T")]).is_ok());
}

#[test]
fn a2_a_signed_time_is_written_in_one_way() {
    let scheme = open(&[("signed", "{timestamp}{body}"), ("timestamp_header", "T")]).unwrap();
    let now = Time::from_seconds(1_770_000_000);
    let keys = Keys::from_text(
        &Setup { secrets: vec![Secret::new("secret")], ..Setup::default() },
        hmac::HMAC_SHA256,
    );
    let keys = keys.unwrap();
    for (time, body, is_good) in [
        ("1770000000", "{}", true),
        ("1770000000123", "{}", true),
        ("01770000000", "{}", false),
        ("+1770000000", "{}", false),
        // The same letters, cut elsewhere: milliseconds become seconds, and the body gets what is left.
        ("1770000000", "123{}", false),
    ] {
        let code = Encoding::Hex.write(keys.sign(&[time.as_bytes(), body.as_bytes()]));
        let headers: http::HeaderMap = [("x-signature", code.as_str()), ("t", time)]
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .into_iter()
            .collect();
        let body = body.as_bytes();
        let request =
            Request { method: &Method::POST, headers: &headers, query: "", body, certificate: None };
        assert_eq!(scheme.check(&request, now).is_ok(), is_good, "{time} {body:?}");
    }
}

#[test]
fn a_moment_is_read_in_three_spellings() {
    let time = Some(Time::from_seconds(1_770_000_000));
    for text in ["1770000000", "1770000000000", "2026-02-02T02:40:00Z"] {
        assert_eq!(moment(text), time, "{text}");
    }
    assert_eq!(moment("soon"), None);
}
