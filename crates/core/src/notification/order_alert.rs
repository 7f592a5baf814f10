//! What operators are told of orders: cases, what could not be made, what customers ask; in words, with what they need to act.

use serde_json::{Value, json};

use crate::language::Language;

/// What a notice about an order says; none for other events.
pub fn of_order(event_type: &str, body: &Value, language: Language) -> Option<Value> {
    let (about, data) = (&body["about"], &body["data"]);
    let t = |en: &'static str, ja: &'static str| language.t(en, ja);
    let field = |en, ja, value: &Value| json!({ "name": t(en, ja), "value": value });
    let (title, detail, fields) = match event_type {
        "case.raised" | "case.overdue" => {
            let title = match event_type {
                "case.raised" => t("An order needs attention", "注文の対応が必要です"),
                _ => t("Still no answer: an order needs attention", "未対応の案件があります"),
            };
            let title =
                format!("{title}: {} ({} {})", text(&about["trigger"]), t("level", "レベル"), about["level"]);
            let fields = vec![
                field("case", "対応案件", &data["id"]),
                field("about", "対象", &data["subject"]),
                field("payment", "決済", &data["payment"]),
                field("answer by", "回答期限", &about["respond_by"]),
                field("automatic refund at", "自動返金の予定", &about["refund_at"]),
            ];
            (title, Value::Null, fields)
        }
        "case.resolved" => {
            let title = t("Closed: an order needs no attention any more", "案件は解決済みです");
            let fields = vec![
                field("case", "対応案件", &data["id"]),
                field("about", "対象", &data["subject"]),
                field("by", "対応者", &about["by"]),
                field("how", "対応方法", &about["how"]),
            ];
            (format!("{title}: {}", text(&about["trigger"])), about["note"].clone(), fields)
        }
        "fulfilment.failed" => {
            let title = t("What was paid for could not be made", "制作に失敗しました");
            let fields = vec![
                json!({ "name": "type", "value": "VIDEO_RENDER_FAILURE" }),
                json!({ "name": "id", "value": data["id"] }),
                json!({ "name": "error", "value": about["error"] }),
                json!({ "name": "timestamp", "value": body["created_at"] }),
                field("automatic refund at", "自動返金の予定", &about["refund_by"]),
            ];
            (title.to_owned(), about["error"].clone(), fields)
        }
        "inquiry.received" => {
            let title = t("A customer asks about an order", "お客様からお問い合わせがありました");
            let fields = vec![
                field("inquiry", "お問い合わせ", &data["id"]),
                field("order", "注文", &about["order"]),
                field("name", "お名前", &data["name"]),
                field("answer to", "返信先", &data["email"]),
            ];
            (title.to_owned(), about["text"].clone(), fields)
        }
        _ => return None,
    };
    let said = fields.into_iter().filter(|field| !field["value"].is_null());
    Some(json!({
        "title": title,
        "detail": detail,
        "happened_at": body["created_at"],
        "link": null,
        "fields": said.collect::<Vec<_>>(),
    }))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(alert: &Value) -> Vec<&str> {
        alert["fields"].as_array().unwrap().iter().map(|field| field["name"].as_str().unwrap()).collect()
    }

    #[test]
    fn f2_a_final_failure_tells_type_id_error_and_time() {
        let body = json!({
            "created_at": "2026-12-24T10:00:00.000Z",
            "about": { "error": "out of memory", "refund_by": null },
            "data": { "id": "ful_1" },
        });
        let alert = of_order("fulfilment.failed", &body, Language::En).unwrap();
        assert_eq!(names(&alert), ["type", "id", "error", "timestamp"]);
        assert_eq!(alert["fields"][0]["value"], "VIDEO_RENDER_FAILURE");
        assert_eq!(alert["fields"][3]["value"], "2026-12-24T10:00:00.000Z");
    }

    #[test]
    fn f5_cases_and_questions_are_told_in_words_of_both_languages() {
        let body = json!({
            "created_at": "2026-12-24T10:00:00.000Z",
            "about": { "trigger": "RENDER_FAILURE", "level": 2, "respond_by": "2026-12-24T14:00:00.000Z", "refund_at": null, "order": "rsv_1", "text": "When?" },
            "data": { "id": "case_1", "subject": "ful_1", "payment": "pay_1", "name": "Taro", "email": "taro@example.jp" },
        });
        let raised = of_order("case.raised", &body, Language::En).unwrap();
        assert_eq!(raised["title"], "An order needs attention: RENDER_FAILURE (level 2)");
        assert_eq!(names(&raised), ["case", "about", "payment", "answer by"]);
        for event_type in ["case.raised", "case.overdue", "inquiry.received", "fulfilment.failed"] {
            let title = of_order(event_type, &body, Language::Ja).unwrap()["title"].clone();
            assert!(!title.as_str().unwrap().is_ascii(), "{event_type}");
        }
        assert_eq!(of_order("inquiry.received", &body, Language::En).unwrap()["detail"], "When?");
        assert_eq!(of_order("payment.paid", &body, Language::En), None);
    }
}
