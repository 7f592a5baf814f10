use super::*;
use crate::delivery::route::tests::stored;

const BODY: &str = r#"{"data":{"object":{"amount":1200,"big":18446744073709551615,"rate":0.5,"email":"canary@example.com",
    "items":[{"sku":"a","n":2},{"sku":"b","n":3}],"none":null}}}"#;

fn is_true(rule: &str) -> Result<bool, RuleError> {
    is_true_on(rule, BODY)
}

fn is_true_on(rule: &str, body: &str) -> Result<bool, RuleError> {
    let event = stored(body);
    Rule::compile(rule)?.is_true(&Variables::of(&event))
}

fn text(rule: &str) -> Result<Option<String>, RuleError> {
    let event = stored(BODY);
    Rule::compile(rule)?.text(&Variables::of(&event))
}

#[test]
fn c1_a_rule_sees_the_event_and_its_body() {
    for rule in [
        "event.type == 'payment_intent.succeeded' && event.source == 'stripe' && event.livemode",
        "event.event_id == 'evt_1' && event.id.startsWith('evt_')",
        "event.object.kind == 'payment_intent' && event.object.id == 'pi_1'",
        "event.account == null",
        "event.received_at == '2026-02-02T02:40:00.000Z' && event.received_at < '2027'",
        "event.type in ['a', 'payment_intent.succeeded']",
        "event.type.matches('^payment_.*d$')",
        "body.data.object.amount > 1000 && body.data.object.amount + 1 == 1201",
        "body.data.object.rate < 1.0 && body.data.object.big > 5",
        "body.data.object.items.exists(item, item.sku == 'b' && item.n > 2)",
        "body.data.object.items.map(item, item.n)[1] == 3",
        "body.data.object.items.filter(item, item.n > 2).size() == 1",
        "has(body.data.object.amount) && !has(body.data.object.missing)",
        "body.data.object.none == null",
        "body['data']['object'].items.all(i, i.n < event.type.size())",
        "event.livemode ? true : false",
    ] {
        assert_eq!(is_true(rule), Ok(true), "{rule}");
    }
    assert_eq!(is_true("body.data.object.amount > 2000"), Ok(false));
    assert_eq!(is_true_on("body == null", "a=1&b=2"), Ok(true));
}

#[test]
fn c1_what_is_missing_or_of_another_type_is_said_and_never_quoted() {
    for (rule, expected) in [
        ("body.data.missing == 1", "there is no key `missing`"),
        ("bodi.data == 1", "`bodi` is not known; there are `event` and `body`"),
        ("body.data.object.amount", "expected true or false, found int"),
        ("body.data.object.email > 5", "overload"),
        ("body.data.object.email + 5 == 1", "another type"),
        ("body.data.object.items[7].n == 1", "shorter than the index"),
        ("1 / 0 == 1", "divided by zero"),
        ("event.account.x == 1", ""),
        ("frobnicate(body)", "`frobnicate` is not known"),
    ] {
        let error = is_true(rule).unwrap_err().to_string();
        assert!(error.contains(expected), "{rule}: {error}");
        assert!(!error.contains("canary"), "{rule}: {error}");
    }
}

#[test]
fn c1_a_slip_is_found_at_start_with_its_place() {
    for (rule, expected) in [
        ("event.type = 'x'", "line 1, column 12"),
        ("true &&\n && false", "line 2"),
        ("(1", "line 1"),
        ("'open", ""),
        ("", "empty"),
        (" \n", "empty"),
    ] {
        let error = Rule::compile(rule).unwrap_err().to_string();
        assert!(error.contains(expected), "{rule}: {error}");
    }
}

#[test]
fn c4_a_key_is_a_text_a_number_or_a_boolean() {
    assert_eq!(text("event.object.id"), Ok(Some("pi_1".into())));
    assert_eq!(text("body.data.object.amount"), Ok(Some("1200".into())));
    assert_eq!(text("body.data.object.big"), Ok(Some("18446744073709551615".into())));
    assert_eq!(text("body.data.object.rate"), Ok(Some("0.5".into())));
    assert_eq!(text("event.livemode"), Ok(Some("true".into())));
    assert_eq!(text("event.source + '/' + event.object.id"), Ok(Some("stripe/pi_1".into())));
    assert_eq!(text("body.data.object.none"), Ok(None));
    assert_eq!(text("body.data.object.missing"), Ok(None));
    let bare = crate::event::Stored { object: None, livemode: None, ..stored("{}") };
    for rule in ["event.object.id", "event.object.kind", "event.account", "event.livemode"] {
        assert_eq!(Rule::compile(rule).unwrap().text(&Variables::of(&bare)), Ok(None), "{rule}");
    }
    assert!(text("body.data.object.items").is_err());
    assert!(text("body.data.object").is_err());
}

#[test]
fn deep_and_long_expressions_are_refused_without_harm() {
    let chain = |piece: &str, times: usize| piece.repeat(times);
    let refused = [
        chain("(", 10_000) + "1" + &chain(")", 10_000),
        chain("(", 1_500) + "1" + &chain(")", 1_500),
        chain("(1+", 240) + "1" + &chain(")", 240),
        chain("(1+", 90) + "1" + &chain(")", 90),
        chain("[", 450) + &chain("]", 450),
        chain("{1:", 300) + "1" + &chain("}", 300),
        chain("!-", 1_900) + "1",
        chain("!-", 400) + "1",
        chain("1+", 1_900) + "1",
        chain("1+", 450) + "1",
        chain("true?1:", 450) + "1",
        chain("true?1:", 200) + "1",
        "body".to_owned() + &chain(".a", 450),
        "body".to_owned() + &chain("[0]", 300),
        chain("size(", 300) + "1" + &chain(")", 300),
        chain("[1].all(x,", 80) + "true" + &chain(")", 80),
        "'".to_owned() + &chain("x", limit::TEXT_BYTES_MAX) + "'",
        chain("body,", 900),
        format!("[{}]", chain("body,", 200)),
    ];
    for rule in refused {
        assert!(Rule::compile(&rule).is_err(), "{}…", &rule[..40]);
    }
    // As many alternatives as anyone needs.
    let many: Vec<_> = (0..200).map(|n| format!("'type.{n}'")).collect();
    assert_eq!(is_true(&format!("!(event.type in [{}])", many.join(","))), Ok(true));
    let many: Vec<_> = (0..60).map(|n| format!("event.type != 'type.{n}'")).collect();
    assert_eq!(is_true(&many.join(" && ")), Ok(true));
    let deep = "[".repeat(100_000);
    assert_eq!(is_true_on("body == null", &deep), Ok(true));
    let allowed = "[".repeat(120) + &"]".repeat(120);
    assert_eq!(is_true_on("body != null && body == body", &allowed), Ok(true));
}

#[test]
fn a_long_run_ends() {
    let list = |elements: usize| format!("[{}0]", "0,".repeat(elements - 1));
    let too_long = |rule: &str, body: &str| {
        let error = is_true_on(rule, body).unwrap_err().to_string();
        assert!(error.contains("too long"), "{rule}: {error}");
    };
    let ten = "[0,1,2,3,4,5,6,7,8,9]";
    let nested = (0..8).fold("true".to_owned(), |inner, n| format!("{ten}.all(x{n}, {inner})"));
    too_long(&nested, "{}");
    too_long(&nested.replace("all", "exists_one"), "{}");
    too_long("body.all(x, body.all(y, true))", &list(2_000));
    too_long("body.all(x, x in body || true)", &list(100_000));
    too_long("body.all(x, true)", &list(200_000));
    too_long("body.all(x, body.all(y, x == 1) || true) || true", &list(2_000));
    too_long("body.map(x, body).size() > 0", &list(20_000));
    let text = format!("{{\"s\":\"{}\"}}", "x".repeat(1 << 20));
    too_long(&format!("{ten}.all(x, {} != '')", ["body.s"; 50].join("+")), &text);
    // What is of use still runs.
    assert_eq!(is_true_on("body.all(x, x == 0)", &list(50_000)), Ok(true));
    assert_eq!(is_true_on("body.all(x, body.all(y, x == y))", &list(100)), Ok(true));
    assert_eq!(is_true_on("body.all(x, x < event.type.size())", &list(2_000)), Ok(true));
    for rule in ["event.type.matches(event.source)", "['a'].all(x, x.matches('a'))"] {
        assert!(Rule::compile(rule).unwrap_err().to_string().contains("matches"), "{rule}");
    }
    for pattern in ["(", r"(\\w{1000}){1000}"] {
        let error = Rule::compile(&format!("event.type.matches('{pattern}')")).unwrap_err().to_string();
        assert!(error.contains("no regular expression"), "{error}");
    }
}

#[test]
fn a_rule_is_shared_between_threads() {
    fn shared<T: Send + Sync + Clone>(_: &T) {}
    let rule = Rule::compile("event.livemode").unwrap();
    shared(&rule);
    assert_eq!(rule.as_str(), "event.livemode");
    let answers: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| (0..100).all(|_| rule.is_true(&Variables::of(&stored("{}"))) == Ok(true)))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(answers, [true; 4]);
}

#[test]
fn a_panic_of_the_library_is_an_error_of_the_rule() {
    assert!(caught(|| panic!("from within")).unwrap_err().to_string().contains("panic"));
}
