//! What orders, their cases and compensations are called, in both languages.

use sekisho_core::language::Language;

/// Why a case was opened, or something was compensated. What is not known here is a rule's own word.
pub fn trigger(code: &str, lang: Language) -> &str {
    let (en, ja) = match code {
        "RENDER_FAILURE" => ("could not be made", "制作の失敗"),
        "EXPIRED_PAYMENT" => ("paid after the hold ended", "期限後の入金"),
        "WEBHOOK_DELAY" => ("the payment was told too late", "入金通知の遅延"),
        "REFUND_FAILED" => ("a refund was not made", "返金の未完了"),
        "DUPLICATE_PAYMENT" => ("paid too much", "過入金"),
        "SYSTEM_FAULT" => ("system fault", "システム障害"),
        "CUSTOMER_CANCEL" => ("cancelled by the customer", "お客様によるキャンセル"),
        "OPERATOR" => ("cancelled or refunded on request", "個別の指示による返金"),
        "AUTOMATIC" => ("ordered by your application", "アプリの指示"),
        "PROVIDER" => ("refunded at the provider", "決済事業者側での返金"),
        _ => return code,
    };
    lang.t(en, ja)
}

/// What was done.
pub fn compensation(kind: &str, lang: Language) -> &str {
    let (en, ja) = match kind {
        "REFUND" => ("refund", "返金"),
        "SLOT_REASSIGN" => ("other places", "枠の振り替え"),
        "MANUAL_RESOLUTION" => ("resolved by a person", "担当者による解決"),
        _ => return kind,
    };
    lang.t(en, ja)
}

/// What a rule does.
pub fn action(code: &str, lang: Language) -> &str {
    let (en, ja) = match code {
        "none" => ("tell people", "担当者に通知"),
        "refund" => ("refund all that is left", "全額返金"),
        "refund_surplus" => ("refund the surplus", "過入金分の返金"),
        _ => return code,
    };
    lang.t(en, ja)
}

/// How a case was resolved.
pub fn how(code: &str, lang: Language) -> &str {
    let (en, ja) = match code {
        "fixed" => ("put right", "修正済み"),
        "by_hand" => ("settled by hand", "個別に対応"),
        "no_action" => ("nothing to do", "対応不要"),
        "cleared" => ("the condition is over", "状況が解消"),
        _ => return code,
    };
    lang.t(en, ja)
}

/// Who did it: `SYSTEM`, `CUSTOMER`, `PROVIDER`, `ADMIN:{name}`, `API:{key}`.
pub fn by(who: &str, lang: Language) -> String {
    let (en, ja) = match who {
        "SYSTEM" => ("Sekisho", "Sekisho（自動）"),
        "CUSTOMER" => ("the customer", "お客様"),
        "PROVIDER" => ("the provider", "決済事業者"),
        _ => {
            let user = who.strip_prefix("ADMIN:").map(str::to_owned);
            let key = who.strip_prefix("API:").map(|key| match lang {
                Language::En => format!("API key {key}"),
                Language::Ja => format!("API キー {key}"),
            });
            return user.or(key).unwrap_or_else(|| who.to_owned());
        }
    };
    lang.t(en, ja).to_owned()
}

#[cfg(test)]
mod tests {
    use sekisho_core::compensation::{CompensationKind, RuleAction, shipped};

    use super::*;

    #[test]
    fn f6_what_cases_and_compensations_say_has_words_in_both_languages() {
        let check = |code: &str, words: fn(&str, Language) -> &str| {
            assert_ne!(words(code, Language::En), code);
            assert!(!words(code, Language::Ja).is_ascii(), "no Japanese for {code}");
        };
        for rule in shipped() {
            check(&rule.trigger, trigger);
        }
        for kind in CompensationKind::ALL {
            check(kind.name(), compensation);
        }
        for code in [RuleAction::None, RuleAction::Refund, RuleAction::RefundSurplus] {
            check(code.name(), action);
        }
        for code in ["fixed", "by_hand", "no_action", "cleared"] {
            check(code, how);
        }
        assert_eq!(
            (by("ADMIN:mika", Language::En), by("CUSTOMER", Language::Ja)),
            ("mika".into(), "お客様".into())
        );
        assert_eq!(by("API:shop", Language::Ja), "API キー shop");
    }
}
