use serde_json::json;

use super::*;

mod words;

/// Name and content.
type File<'f> = (&'f str, &'f str);

fn own(files: &[File]) -> Vec<(String, String)> {
    files.iter().map(|(file, content)| ((*file).to_owned(), (*content).to_owned())).collect()
}

/// What is said of these files.
fn flaws(files: &[File]) -> Vec<String> {
    Templates::with(own(files)).err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

fn sample(template: &str, language: Language, wanted: &str) -> Value {
    let mut samples = Templates::samples(template, language).into_iter();
    samples.find(|(name, _)| *name == wanted).unwrap().1
}

#[test]
fn g3_every_shipped_template_is_about_a_kind_of_thing() {
    let unknown = Templates::shipped();
    let unknown: Vec<_> = unknown
        .names()
        .into_iter()
        .filter(|name| SampleKind::of_shipped(name).is_none())
        .map(str::to_owned)
        .collect();
    assert_eq!(unknown, [""; 0], "say in template/sample.rs what it is about");
}

#[test]
fn g3_every_shipped_template_says_what_matters_in_both_languages() {
    let cases: [(&str, Language, &[&str]); 24] = [
        (
            "payment-received",
            Language::Ja,
            &["山田 太郎 様", "5,000円", "2026年11月16日(月) 14:05", "A-20261116-0042"],
        ),
        ("payment-received", Language::En, &["Hello Taro Yamada,", "¥5,000", "Mon, Nov 16, 2026, 14:05"]),
        (
            "payment-failed",
            Language::Ja,
            &["決済処理中にエラーが発生", "再度お試しください", "5,000円", "お問い合わせ"],
        ),
        ("payment-failed", Language::En, &["Please try again", "¥5,000", "contact us"]),
        ("refund-done", Language::Ja, &["返金", "2,000円", "3〜5営業日"]),
        ("refund-done", Language::En, &["refund", "¥2,000", "3–5 business days"]),
        (
            "refund-failed",
            Language::Ja,
            &["完了できませんでした", "担当者よりご連絡いたします", "お問い合わせ"],
        ),
        ("refund-failed", Language::En, &["did not go through", "We will contact you", "contact us"]),
        ("refund-pending", Language::Ja, &["まだ完了しておりません", "1,000円", "銀行口座"]),
        ("refund-pending", Language::En, &["has not arrived yet", "¥1,000", "bank account"]),
        (
            "reservation-confirmed",
            Language::Ja,
            &[
                "ご予約が確定しました",
                "2026年11月22日(日) 19:00",
                "rsv_4kT9",
                "https://hoshizora.example/orders/",
            ],
        ),
        ("reservation-confirmed", Language::En, &["is confirmed", "Sun, Nov 22, 2026, 19:00", "¥5,000"]),
        ("reservation-expired", Language::Ja, &["仮押さえを解除", "rsv_4kT9"]),
        ("reservation-expired", Language::En, &["no payment in time", "rsv_4kT9"]),
        ("reservation-cancelled", Language::Ja, &["キャンセルされました", "rsv_4kT9"]),
        ("reservation-cancelled", Language::En, &["was cancelled", "rsv_4kT9"]),
        (
            "video-render-failure",
            Language::Ja,
            &[
                "動画の生成に問題が発生しました",
                "2026年11月17日(火) 14:05",
                "自動的に返金されます",
                "お急ぎの場合は",
            ],
        ),
        ("video-render-failure", Language::En, &["Tue, Nov 17, 2026, 14:05", "refunded automatically"]),
        (
            "deadline-reminder",
            Language::Ja,
            &[
                "佐藤 花子 様",
                "ひまわり介護支援事業所",
                "30日以内",
                "2日超過",
                "本日",
                "https://care.example/dashboard",
            ],
        ),
        ("deadline-reminder", Language::En, &["Sato Hanako", "2 days overdue", "in 3 days", "today"]),
        (
            "operator-alert",
            Language::Ja,
            &["届けられなかったイベント", "dead letters", "503 Service Unavailable"],
        ),
        ("operator-alert", Language::En, &["Events could not be delivered", "Sunflower Care Office"]),
        ("test", Language::Ja, &["テスト通知", "evt_01KA5Z7Q"]),
        ("test", Language::En, &["This is a test", "evt_01KA5Z7Q"]),
    ];
    let templates = Templates::shipped();
    assert_eq!(cases.len(), templates.names().len() * Language::ALL.len());
    for (name, language, words) in cases {
        let full = templates.render(name, language, &sample(name, language, "full")).unwrap();
        let html = full.html.unwrap();
        for word in words {
            assert!(full.text.contains(word), "{name} {language:?} lacks {word}: {}", full.text);
            assert!(html.contains(word), "the HTML of {name} {language:?} lacks {word}");
        }
        let sparse = templates.render(name, language, &sample(name, language, "sparse")).unwrap();
        let shown = format!("{}{}{}", sparse.subject, sparse.text, sparse.html.unwrap());
        for wrong in ["none", "null", "undefined", "{{", "{%"] {
            let found = shown.replace("display:none", "").replace("text-decoration:none", "");
            assert!(!found.contains(wrong), "{name} {language:?} shows {wrong}: {}", sparse.text);
        }
    }
}

#[test]
fn g4_what_is_due_comes_by_date_and_a_long_list_is_cut() {
    let mut data = sample("deadline-reminder", Language::Ja, "full");
    let templates = Templates::shipped();
    let text = templates.render("deadline-reminder", Language::Ja, &data).unwrap().text;
    let at = |name: &str| text.find(name).unwrap();
    assert!(at("鈴木 節子") < at("田中 実") && at("田中 実") < at("高橋 一郎"), "{text}");
    let many =
        (0..200).map(|n| json!({ "name": format!("利用者{n}"), "due_on": "2026-11-20", "days_left": 4 }));
    data["reminder"]["renewals"] = many.collect();
    // The list was cut before; the count was not.
    data["reminder"]["renewal_count"] = json!(5000);
    let long = templates.render("deadline-reminder", Language::Ja, &data).unwrap();
    assert!(long.text.contains("ほか4950件"), "{}", long.text);
    assert!(long.html.unwrap().contains("ほか4950件"));
    assert!(long.subject.contains("更新5000件"));
}

#[test]
fn g4_without_a_dashboard_the_mail_leads_to_none() {
    for (language, line) in [(Language::Ja, "ダッシュボード:"), (Language::En, "Dashboard:")] {
        let mut data = sample("deadline-reminder", language, "full");
        let templates = Templates::shipped();
        let with = templates.render("deadline-reminder", language, &data).unwrap();
        assert!(with.text.contains(&format!("{line} https://care.example/dashboard\n\n")), "{}", with.text);
        data["reminder"]["dashboard_url"] = json!(null);
        let without = templates.render("deadline-reminder", language, &data).unwrap();
        assert!(!without.text.contains(line) && !without.text.contains("\n\n\n"), "{}", without.text);
        assert!(!without.html.unwrap().contains("class=\"button\""));
    }
}

#[test]
fn g3_a_missing_variable_is_named_with_file_and_line() {
    let cases = [
        (
            "Hi {{ pament.id }}",
            "mine.ja.txt:3: there is no variable `pament`; known are: about, alert, billing, brand, customer, event, fulfilment, language, order_url, payment, recipient, reminder, reservation, subject, tenant, time_zone; did you mean `payment`?",
        ),
        (
            "Hi\n{% if false %}{{ payment.amuont }}{% endif %}",
            "mine.ja.txt:4: there is no `amuont` in `payment`; known are: ",
        ),
        (
            "{% for one in reminder.renewals %}{{ one.nme }}{% endfor %}",
            "mine.ja.txt:3: undefined value: `one.nme` is undefined",
        ),
        (
            "Dear {{ recipient.name }}",
            "mine.ja.txt:3: `recipient.name` may be empty (null): put {% if recipient.name %}",
        ),
        (
            "{{ tenant.name }}",
            "mine.ja.txt:3: `tenant` may be empty (null): put {% if tenant %}…{% endif %} around `tenant.name`",
        ),
        (
            "{{ payment.metadata.color }}",
            "mine.ja.txt:3: `payment.metadata.color` may be missing: write {{ payment.metadata.color | default(\"…\") }}",
        ),
        ("{{ payment.amount | mony }}", "mine.ja.txt:3: filter mony is unknown; ours are money, date"),
        ("{{ payment.id | money('jpy') }}", "mine.ja.txt:3: invalid operation: `money` needs a whole number"),
        ("{{ payment.id | date }}", "mine.ja.txt:3: invalid operation: `date` needs a date such as"),
        (
            "{{ reminder.today | datetime }}",
            "mine.ja.txt:3: invalid operation: `datetime` needs a time such as",
        ),
        ("{% if payment %}", "mine.ja.txt:3: syntax error: "),
        ("{% include \"gone.txt\" %}", "mine.ja.txt:3: template not found: "),
        (
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
            "mine.ja.txt:3: it takes more than 250000 steps",
        ),
        (
            "{% for a in range(9999) %}{{ 'x' * 9999 }}{% endfor %}",
            "mine.ja.txt: it writes more than 512 KiB",
        ),
        ("{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}", "mine.ja.txt:3: "),
        ("{% include \"mine.ja.txt\" %}", "mine.ja.txt:3: "),
    ];
    for (text, expected) in cases {
        let content = format!("Subject: x\n\n{text}\n");
        let found = flaws(&[("mine.ja.txt", &content), ("mine.en.txt", "Subject: x\n\nx\n")]);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{text}\n{found:#?}\n{expected}");
    }
    let several = flaws(&[
        ("test.en.txt", "Subject: {{ evnt.id }}\n\n{% if %}\n"),
        ("test.ja.txt", "Subject: x\n\n{{ a }}\n{{ b }}\n"),
        ("refund-done.ja.txt", "Subject: x\n\n{{ payment.purpose }}\n"),
    ]);
    assert_eq!(several.len(), 4, "all at once: {several:#?}");
    let subject = flaws(&[("test.en.txt", "Subject: {{ evnt.id }}\n\nHi\n")]);
    assert!(subject[0].starts_with("test.en.txt:1: there is no variable `evnt`"), "{subject:?}");
    let layout = flaws(&[("layout.html", "<p>\n{{ brnd.name }}{% block content %}{% endblock %}")]);
    assert!(
        layout.iter().any(|flaw| flaw.starts_with("layout.html:2: there is no variable `brnd`")),
        "{layout:?}"
    );
}

#[test]
fn g3_files_that_make_no_template_are_refused_with_what_to_write() {
    let good = "Subject: x\n\nx\n";
    let cases: [(&[File], &[&str]); 9] = [
        (&[("mine.ja.txt", good), ("mine.en.txt", good)], &[]),
        (&[("mine.ja.txt", good)], &["mine.en.txt: missing: write it"]),
        (
            &[("mine.ja.txt", good), ("mine.en.txt", good), ("mine.en.html", "x")],
            &["mine.ja.html: missing: there is a mine.en.html"],
        ),
        (&[("mine.fr.txt", good)], &["mine.fr.txt: there is no language `fr`; known are ja and en"]),
        (
            &[("paymnt-received.ja.html", "x")],
            &[
                "paymnt-received.ja.html: there is no template `paymnt-received`; did you mean `payment-received.ja.html`?",
            ],
        ),
        (&[("My Mail.ja.txt", good)], &["My Mail.ja.txt: a template's name has 1 to 64"]),
        (&[("layout.htm", "x")], &["layout.htm: no file of a template: expected NAME.ja.txt, "]),
        (&[("test.ja.txt", "Hello\n\nx")], &["test.ja.txt:1: the first line must be `Subject: …`"]),
        (
            &[("test.ja.txt", "Subject: x\nx"), ("test.en.txt", "Subject: x\n\n")],
            &[
                "test.en.txt:3: the text is missing",
                "test.ja.txt:2: the line below the subject must be empty",
            ],
        ),
    ];
    for (files, expected) in cases {
        let found = flaws(files);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        assert!(found.iter().zip(expected).all(|(found, start)| found.starts_with(start)), "{found:?}");
    }
}

#[test]
fn g3_an_override_wins_and_the_rest_stays_as_shipped() {
    let file = "\u{feff}Subject: Thanks!\r\n\r\nPaid: {{ payment.id }}\r\n";
    let templates = Templates::with(own(&[("payment-received.en.txt", file)])).unwrap();
    let en = sample("payment-received", Language::En, "full");
    let own_words = templates.render("payment-received", Language::En, &en).unwrap();
    let shipped = Templates::shipped();
    assert_eq!((&*own_words.subject, &*own_words.text), ("Thanks!", "Paid: pay_01KA5Z7Q3M\n"));
    assert!(own_words.html.unwrap().contains("<title>Thanks!</title>"), "the rest goes with it");
    let ja = sample("payment-received", Language::Ja, "full");
    assert_eq!(
        templates.render("payment-received", Language::Ja, &ja),
        shipped.render("payment-received", Language::Ja, &ja)
    );
    let unknown = shipped.render("gone", Language::Ja, &ja).unwrap_err().to_string();
    assert!(
        unknown.starts_with("gone: there is no such template; known are: deadline-reminder, "),
        "{unknown}"
    );
}

#[test]
fn g3_a_template_suits_what_it_tells_of() {
    let text = "Subject: x\n\n{{ payment.id }}\n";
    let templates = Templates::with(own(&[("mine.ja.txt", text), ("mine.en.txt", text)])).unwrap();
    assert!(templates.suits("mine", SampleKind::Payment).is_ok());
    let flaws = templates.suits("mine", SampleKind::Alert).unwrap_err();
    assert!(flaws[0].to_string().starts_with("mine.en.txt:3: `payment` may be empty"), "{flaws:?}");
    for (name, kind) in
        [("payment-failed", SampleKind::Payment), ("test", SampleKind::Alert), ("test", SampleKind::Billing)]
    {
        assert!(templates.suits(name, kind).is_ok(), "{name}");
    }
}

#[test]
fn g3_hostile_names_stay_words() {
    let templates = Templates::shipped();
    let name = "<script>alert(1)</script>\"'&\u{202e}\u{7}";
    let mut data = sample("payment-received", Language::En, "full");
    data["recipient"]["name"] = json!(name);
    data["brand"]["name"] = json!("Evil\" onload=\"x");
    data["brand"]["support"] = json!("javascript:alert(1)");
    data["brand"]["url"] = json!("https://x.example/\"><img src=x>");
    data["payment"]["receipt_url"] = json!(" JavaScript:alert(1)");
    let rendered = templates.render("payment-received", Language::En, &data).unwrap();
    let html = rendered.html.unwrap();
    assert!(html.contains("Hello &lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;,"), "{html}");
    for wrong in ["<script", "<img", "onload=\"", "\u{202e}", "\u{7}", "href=\"javascript", "href=\" "] {
        assert!(!html.contains(wrong), "{wrong}");
    }
    assert!(!html.contains("View receipt"), "no button that leads to a script");
    assert!(rendered.text.contains("Hello <script>alert(1)</script>\"'&,"), "text is not escaped");
}

#[test]
fn g3_a_subject_is_one_line_whatever_is_in_it() {
    let templates = Templates::shipped();
    let mut data = sample("operator-alert", Language::En, "full");
    let cases = [
        ("a\r\nBcc: all@example.jp\r\n\r\nhi", "[Action needed] a Bcc: all@example.jp hi"),
        ("a\u{0}\u{85}\t b\u{202e}", "[Action needed] a b"),
        ("{{ 7 * 7 }}", "[Action needed] {{ 7 * 7 }}"),
    ];
    for (title, expected) in cases {
        data["alert"]["title"] = json!(title);
        assert_eq!(templates.render("operator-alert", Language::En, &data).unwrap().subject, expected);
    }
    data["alert"]["title"] = json!("長".repeat(5000));
    let long = templates.render("operator-alert", Language::En, &data).unwrap().subject;
    assert_eq!(long.chars().count(), 201);
    let empty = "Subject: {{ payment.metadata.x | default('') }}\n\nx\n";
    let found = flaws(&[("mine.ja.txt", empty), ("mine.en.txt", empty)]);
    assert_eq!(found, ["mine.en.txt:1: the subject is empty", "mine.ja.txt:1: the subject is empty"]);
}

#[test]
fn g3_what_a_caller_leaves_out_is_empty_and_not_an_error() {
    let templates = Templates::shipped();
    let data = json!({ "payment": { "id": "pay_9", "amount_received": 100 }, "brand": { "name": "B" } });
    let rendered = templates.render("payment-received", Language::En, &data).unwrap();
    assert!(rendered.text.contains("Payment ID: pay_9") && rendered.text.contains("Amount: –"));
    assert!(
        templates.render("payment-received", Language::En, &Value::Null).is_err(),
        "a payment it must have"
    );
    let mut data = sample("payment-received", Language::En, "full");
    data["brand"]["name"] = Value::Null;
    let gap = templates.render("payment-received", Language::En, &data).unwrap().subject;
    assert_eq!(gap, "[] We received your payment of ¥5,000", "a gap rather than no mail");
}

#[test]
fn g3_both_languages_have_the_same_shape() {
    fn keys(value: &Value, path: &str, all: &mut BTreeSet<String>) {
        for (key, value) in value.as_object().into_iter().flatten() {
            all.insert(format!("{path}.{key}"));
            keys(value, &format!("{path}.{key}"), all);
        }
    }
    let shape_of = |language| {
        let mut all = BTreeSet::new();
        keys(&sample("mine", language, "full"), "", &mut all);
        all
    };
    assert_eq!(shape_of(Language::Ja), shape_of(Language::En));
}

#[test]
fn g3_the_samples_are_shaped_as_the_api_shows_things() {
    use crate::settlement::{billing, payment};
    let facts = payment::Facts::default();
    let payment = payment::view("pay_1", &facts, &payment::Derived::of(&facts));
    let facts = billing::BillingFacts::default();
    let billing = billing::view(
        "bil_1",
        &facts,
        &billing::BillingDerived::of(&facts),
        crate::Time::from_ms(0),
        billing::GRACE,
    );
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let full = sample("mine", Language::En, "full");
    assert_eq!((keys(&full["payment"]), keys(&full["billing"])), (keys(&payment), keys(&billing)));
    assert_eq!(keys(&full["payment"]["references"]), keys(&payment["references"]));
    assert_eq!(keys(&full["billing"]["references"]), keys(&billing["references"]));
}
