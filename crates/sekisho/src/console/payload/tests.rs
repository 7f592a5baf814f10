use sekisho_lab::rng::Rng;

use super::*;

fn shown(body: &[u8], eyes: Eyes) -> (String, Shown) {
    let shown = show(body, eyes, Bound::BODY);
    (plain(&shown.html.to_string()), shown)
}

/// What a person reads: without our spans.
fn plain(html: &str) -> String {
    let mut out = html.replace("</span>", "");
    for class in ["key", "text", "number", "hidden"] {
        out = out.replace(&format!("<span class=\"{class}\">"), "");
    }
    let letters = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    letters.iter().fold(out, |out, (code, letter)| out.replace(code, letter))
}

#[test]
fn h3_json_is_laid_out_and_otherwise_as_it_came() {
    let cases = [
        (r#"{"a":12345678901234567890.10}"#, "{\n  \"a\": 12345678901234567890.10\n}"),
        (r#"{"b":1e400,"a":-0.0,"b":2}"#, "{\n  \"b\": 1e400,\n  \"a\": -0.0,\n  \"b\": 2\n}"),
        ("[ ]", "[]"),
        (r#"{"a":{ },"b":[1,[]]}"#, "{\n  \"a\": {},\n  \"b\": [\n    1,\n    []\n  ]\n}"),
        (r#"{"t":true,"n":null}"#, "{\n  \"t\": true,\n  \"n\": null\n}"),
        (
            r#"{"name":"\u6771\u4eac \ud83d\ude00 \"x\" \\ \n \/"}"#,
            "{\n  \"name\": \"東京 😀 \\\"x\\\" \\\\ \\n /\"\n}",
        ),
        // Letters that turn a line around or can't be seen are shown as codes.
        ("{\"a\":\"x\u{202e}y\\u200bz\"}", "{\n  \"a\": \"x\\u202ey\\u200bz\"\n}"),
        (r#"{"half":"\ud83d"}"#, "{\n  \"half\": \"\u{fffd}\"\n}"),
    ];
    for (body, expected) in cases {
        let (text, shown) = shown(body.as_bytes(), Eyes::Operator);
        assert_eq!(text, expected);
        assert!(
            shown.form == Form::Json && !shown.is_cut && !shown.is_veiled || body.contains("half"),
            "{body}"
        );
    }
}

#[test]
fn h3_secrets_are_hidden_from_everybody() {
    let hidden = [
        r#"{"client_secret":"VALUE"}"#,
        r#"{"clientSecret":"VALUE"}"#,
        r#"{"SECRET":["VALUE","VALUE"]}"#,
        r#"{"a":[{"access_token":"VALUE"}]}"#,
        r#"{"Password":12344321}"#,
        r#"{"api-key":"VALUE"}"#,
        r#"{"Authorization":"VALUE"}"#,
        r#"{"card":{"number":"VALUE","cvc":"12344321"}}"#,
        r#"{"cards":[{"number":12344321}]}"#,
        r#"{"p\u0061ssword":"VALUE"}"#,
        r#"{"id":"sk_live_VALUE"}"#,
        r#"{"next_action":"pi_1_secret_VALUE"}"#,
        r#"{"id":"whsec_VALUE"}"#,
        // Broken, and hidden all the same.
        r#"{"a":1,"secret":"VALUE"#,
        r#"{"a" "secret":"VALUE"}"#,
        "token=VALUE&text=hello",
        "payload=%7B%22token%22%3A%22VALUE%22%7D",
        "the key is sk_live_VALUE now",
    ];
    for body in hidden {
        for eyes in [Eyes::Viewer, Eyes::Operator] {
            let (text, shown) = shown(body.as_bytes(), eyes);
            assert!(!text.contains("VALUE") && !text.contains("12344321"), "{body}: {text}");
            assert!(text.contains(HIDDEN) && (shown.is_veiled || shown.form == Form::Text), "{body}: {text}");
        }
    }
    for body in [
        r#"{"number":"R-77"}"#,
        r#"{"tokens_used":"77"}"#,
        r#"{"token_type":"77"}"#,
        r#"{"cvc_check":"77"}"#,
        r#"{"authorization_id":"77"}"#,
        r#"{"name":"Basic 77"}"#,
        r#"{"token":{"id":"77"}}"#,
        r#"{"secret":null,"x":77}"#,
    ] {
        let (text, shown) = shown(body.as_bytes(), Eyes::Viewer);
        assert!(text.contains("77") && !shown.is_veiled, "{body}: {text}");
    }
}

#[test]
fn h3_addresses_are_masked_for_who_may_only_look() {
    for body in [
        r#"{"email":"taro@example.jp"}"#,
        r#"{"email":"taro\u0040example.jp \q"}"#,
        r#"{"taro@example.jp":1}"#,
        r#"["write to taro@example.jp"]"#,
        "From=taro%40example.jp",
        "hello taro@example.jp",
    ] {
        let (seen, shown) = shown(body.as_bytes(), Eyes::Viewer);
        assert!(seen.contains("t***@example.jp") && !seen.contains("taro@"), "{body}: {seen}");
        assert!(shown.is_veiled);
        assert!(self::shown(body.as_bytes(), Eyes::Operator).0.contains("taro@example.jp"), "{body}");
    }
}

#[test]
fn h3_where_an_address_may_hide_who_may_only_look_sees_nothing() {
    for body in
        [&b"[error] no such user taro@example.jp"[..], b"{taro@example.jp", b"\x00\xfftaro@example.jp"]
    {
        let (seen, shown) = shown(body, Eyes::Viewer);
        assert_eq!((seen.as_str(), shown.is_veiled), (HIDDEN, true), "{body:?}");
        assert!(self::shown(body, Eyes::Operator).0.contains("taro"), "{body:?}");
    }
}

#[test]
fn h3_what_is_not_json_is_shown_as_what_it_is() {
    let cases: [(&[u8], Form, &str); 8] = [
        (b"", Form::Empty, ""),
        (b"hello\n<b>world</b>", Form::Text, "hello\n<b>world</b>\n"),
        (b"a=1&b=x%20y", Form::Fields, "a = 1\nb = x y\n"),
        (b"{\"a\":1,}", Form::BrokenJson, "{\n  \"a\": 1,\n  \n}"),
        (b"{\"a\":\"never ends", Form::BrokenJson, "{\n  \"a\": \"never ends\""),
        (b"{a: 'x'}", Form::BrokenJson, "{\n  a: 'x'\n}"),
        (b"\x00\x01\xffAB<", Form::Bytes, "0000  00 01 ff 41 42 3c                                ···AB<\n"),
        (b"]]}", Form::Text, "]]}\n"),
    ];
    for (body, form, expected) in cases {
        let (text, shown) = shown(body, Eyes::Operator);
        assert_eq!((shown.form, text.as_str()), (form, expected), "{body:?}");
    }
}

#[test]
fn h3_what_is_huge_or_deep_is_cut_and_says_so() {
    let check = |body: String, form: Form| {
        let (text, shown) = shown(body.as_bytes(), Eyes::Operator);
        assert!(shown.is_cut && shown.form == form, "{:?} {}", shown.form, shown.is_cut);
        assert!(text.len() < 4 * Bound::BODY.bytes, "{}", text.len());
        assert_eq!(shown.bytes, body.len());
        text
    };
    check(format!("[{}1]", "1,".repeat(300_000)), Form::Json);
    check(format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20)), Form::Json);
    let deep = check(format!("{}7{}", "[".repeat(100_000), "]".repeat(100_000)), Form::Json);
    assert!(deep.contains("[ … ]") && deep.ends_with("\n]"), "it is closed again");
    check("line\n".repeat(10_000), Form::Text);
    check("x".repeat(1 << 20), Form::Text);
    let fields = "a=1&".repeat(100_000) + "b=2";
    check(fields, Form::Fields);
    let bytes = show(&vec![0; 1 << 20], Eyes::Operator, Bound::BODY);
    assert!(bytes.is_cut && bytes.html.to_string().len() < 4_000);
}

#[test]
fn h3_headers_that_let_in_are_hidden_and_signatures_shortened() {
    let long = "t=1770000000,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd";
    let cases = [
        ("authorization", "Bearer x", "••••••"),
        ("Cookie", "a=b", "••••••"),
        ("x-api-key", "abc", "••••••"),
        ("x-gitlab-token", "abc", "••••••"),
        ("content-type", "application/json", "application/json"),
        ("stripe-signature", long, "t=1770000000,v1=5257a869…"),
        ("X-Shopify-Hmac-Sha256", "short", "short"),
    ];
    for (name, value, expected) in cases {
        assert_eq!(mask_header(name, value), expected, "{name}");
    }
}

const ATTACK: &str = "<script>alert(1)</script>\"'>&";

#[test]
fn h3_nothing_in_a_body_becomes_markup() {
    let json = serde_json::json!({ ATTACK: [ATTACK, { "secret": ATTACK }] }).to_string();
    let broken = format!("{{\"a\":{ATTACK} <script>");
    let form = format!("a[{ATTACK}]={ATTACK}");
    let encoded = "a=%3Cscript%3Ealert(1)%3C%2Fscript%3E".to_owned();
    let bytes = format!("\0{ATTACK}");
    for body in [json, broken, form, encoded, bytes, ATTACK.to_owned()] {
        let html = show(body.as_bytes(), Eyes::Viewer, Bound::BODY).html.to_string();
        assert!(!html.contains("<script") && !html.contains("\"'>"), "{html}");
    }
}

#[test]
fn h3_any_body_can_be_shown() {
    let mut rng = Rng::new(7);
    let letters: Vec<char> = "[]{}:,\"\\a0u<>& '@=\n関\u{202e}".chars().collect();
    for _ in 0..5_000 {
        let text: String = (0..rng.below(60)).filter_map(|_| rng.pick(&letters)).collect();
        let mut bytes = text.clone().into_bytes();
        if rng.chance(0.2) {
            rng.fill(&mut bytes);
        }
        let html = show(&bytes, Eyes::Viewer, Bound { bytes: 40, lines: 5 }).html.to_string();
        let rest = html.replace("</span>", "").replace("<span class=\"", "");
        assert!(!rest.contains('<') && !rest.contains('\''), "{text:?}: {html}");
    }
}

#[test]
fn h3_json_reads_back_as_it_was() {
    let mut rng = Rng::new(8);
    let letters: Vec<char> = "ab \"\\/\n\t\u{1}関😀\u{200b}<&".chars().collect();
    for _ in 0..1_000 {
        let text: String = (0..rng.below(20)).filter_map(|_| rng.pick(&letters)).collect();
        let value = serde_json::json!({ "a": [text, { "b": rng.next_u64(), "c": [], "d": {} }, null] });
        let (text, _) = shown(value.to_string().as_bytes(), Eyes::Operator);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
