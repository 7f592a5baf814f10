//! What acts refuse, in Japanese. Acts speak English, as the API and the commands do; pages translate the whole sentence
//! by this table, as gettext does. `{}` stands for what a sentence names. A sentence that is not here stays English.

use std::borrow::Cow;

/// Both have the same number of `{}`, in the same order.
const SENTENCES: &[(&str, &str)] = &[
    (
        "the source {} has no api_key, or reconcile = false; correct its [[source]] and restart",
        "送信元 {} には api_key がないか、reconcile = false です。[[source]] を直して再起動してください",
    ),
    (
        "the provider refuses the key of this source; it is tried again at {}",
        "決済事業者がこの送信元の API キーを拒否しています。{} に再試行します",
    ),
    ("{} {} was behind here, and was taken in", "{} {} の変更が届いていなかったため、取り込みました"),
    ("{}: {} received ({}) here, {} ({}) there", "{}：こちらでは入金 {}（{}）、決済事業者では {}（{}）"),
    ("{}: {} taken here, {} there", "{}：こちらでは売上 {}、決済事業者では {}"),
    ("{}: refunded here, and not yet there", "{}：こちらでは返金済み、決済事業者では未返金"),
    (
        "a key named {} already exists; revoke it or choose another name",
        "{} という名前の API キーはすでにあります。無効にするか、別の名前にしてください",
    ),
    (
        "the configuration has a key named {}; choose another name",
        "{} という名前の API キーが設定ファイルにあります。別の名前にしてください",
    ),
    (
        "the name of a key has 1 to {} characters, all of them visible, and no blank at its ends",
        "API キーの名前は1〜{}文字です。見えない文字と前後の空白は使えません",
    ),
    (
        "the name {} is reserved for commands and keys; choose another",
        "{} という名前は予約されています。別の名前にしてください",
    ),
    (
        "nothing was received for this payment, so nothing can be refunded",
        "この決済には入金がないため、返金できません",
    ),
    ("nothing is left to refund", "返金できる金額が残っていません"),
    (
        "nothing is left to refund: the refund order {} of {} takes it",
        "返金できる金額が残っていません（返金の指示 {}、{} が対象です）",
    ),
    (
        "nothing is left to refund: it was refunded by {}",
        "返金できる金額が残っていません（{} で返金済みです）",
    ),
    (
        "nothing is left to refund: the dispute {} took it",
        "返金できる金額が残っていません（不審請求の申し立て {} の対象です）",
    ),
    (
        "only {} is left to refund (in the currency's smallest unit)",
        "返金できる金額は {} までです（通貨の最小単位）",
    ),
    (
        "{} is no amount in {}; expected one such as 1200 or 12.50",
        "{} は {} の金額ではありません。1200 や 12.50 のように入力してください",
    ),
    ("choose a reason", "理由を選んでください"),
    (
        "refunds are not allowed for {}: write refunds = true in its [[source]], beside an api_key that may create refunds, or refund it at the provider",
        "{} の返金は許可されていません。[[source]] に refunds = true と、返金を作成できる api_key を設定するか、決済事業者の管理画面で返金してください",
    ),
    ("this payment has no refund order {}", "この決済に返金の指示 {} はありません"),
    ("the refund order is not held back; it is {}", "この返金は承認待ちではありません（{}）"),
    ("there is no tenant {}; create it first", "テナント {} はありません。先に登録してください"),
    (
        "a user named {} already exists; choose another name",
        "{} という名前の利用者はすでにいます。別の名前にしてください",
    ),
    (
        "{} is the last admin: make another user admin first",
        "{} は最後の管理者です。先に別の利用者を管理者にしてください",
    ),
    ("there is no user {}", "利用者 {} はいません"),
    (
        "this invitation is used, expired or unknown; ask for another",
        "この招待は使用済みか期限切れです。新しい招待を依頼してください",
    ),
    (
        "too many wrong passwords: wait a quarter of an hour",
        "パスワードの誤りが続きました。15分ほど待ってください",
    ),
    ("the password is wrong", "パスワードが違います"),
    (
        "too many log-ins at once; try again in a moment",
        "ログインが混み合っています。しばらくしてからお試しください",
    ),
    (
        "the server could not check the password; try again",
        "パスワードを確認できませんでした。もう一度お試しください",
    ),
    ("at least 10 characters", "10文字以上にしてください"),
    ("at most 1000 bytes", "1000バイト以内にしてください"),
    ("not one character repeated, and not the name", "同じ文字の繰り返しや、名前を含むものは使えません"),
    ("1 to 64 of a–z, 0–9 and . _ - @ +", "a–z、0–9、. _ - @ + を1〜64文字で入力してください"),
    ("another name than cli", "cli 以外の名前にしてください"),
    (
        "a reason is required to discard; it is recorded in the audit log",
        "破棄には理由が必要です（監査ログに残ります）",
    ),
    ("the reason is longer than {} characters", "理由は{}文字以内にしてください"),
    ("no dead letter has the id {} (any more)", "デッドレター {} はありません（処理済みの可能性があります）"),
    ("no event has the id {}", "イベント {} はありません"),
    (
        "the record was changed concurrently too often; try again",
        "ほかの更新と競合しました。もう一度お試しください",
    ),
    ("the notice {} is {}: it is on its way", "通知 {} は送信処理中です（{}）"),
    (
        "notifications are switched off for this person: {}",
        "この相手は通知がオフになっています。オンにするか、宛先を指定してください（{}）",
    ),
    (
        "{} is on the suppression list ({}): release it first, with `sekisho suppressions release`",
        "{} は配信停止リストにあります（{}）。先に解除してください",
    ),
    ("{} is not on the suppression list", "{} は配信停止リストにありません"),
    ("{} is on the suppression list already: {}", "{} はすでに配信停止リストにあります（{}）"),
    (
        "{}: expected a time such as 2026-02-02T11:40, not {}",
        "{}: 日時は 2026-02-02T11:40 のように入力してください（入力: {}）",
    ),
    ("{}: expected a time such as 2026-11-16T09:00", "{}: 日時は 2026-11-16T09:00 のように入力してください"),
    ("status: expected one of {}", "status: 次のいずれかを指定してください: {}"),
    ("before: expected the end of a page, ntc_…", "before: ページの位置が正しくありません（ntc_…）"),
    ("before: expected the end of a page, a number", "before: ページの位置が正しくありません（数値）"),
    ("the reservation was cancelled", "この予約はキャンセル済みです"),
    (
        "the reservation is {}; only a hold can be extended",
        "延長できるのは仮押さえ中の予約だけです（現在の状態: {}）",
    ),
    ("its places lapsed, and too few are free now", "席は解放済みで、現在の空きが足りません"),
    ("a time after {} and not after {}", "{} より後で {} までの時刻を入力してください"),
    ("1 to {} characters without control characters", "1〜{}文字で入力してください（制御文字は使えません）"),
    ("1 to {} characters", "1〜{}文字で入力してください"),
    ("1 to {} places", "1〜{} 席で入力してください"),
    (
        "places are taken: its capacity can't be below {} now",
        "席が使われているため、定員は {} より少なくできません",
    ),
    (
        "the fulfilment is {}; only one that failed can be retried",
        "再試行できるのは失敗した制作だけです（現在の状態: {}）",
    ),
    (
        "its money went back, or its reservation was cancelled",
        "返金済みか、予約がキャンセルされているため実行できません",
    ),
    ("the case was resolved", "この案件は解決済みです"),
    ("the rule {} has ordered a refund already", "ルール {} により返金を指示済みです"),
    ("its links were revoked too often", "リンクの無効化が上限に達しました"),
    ("this message has no HTML part", "この通知に HTML 版はありません"),
];

pub fn translated(sentence: &str) -> Cow<'_, str> {
    let field = sentence.split_once(": expected ").filter(|(field, _)| !field.contains(' '));
    SENTENCES
        .iter()
        .find_map(|(en, ja)| Some(Cow::Owned(filled(ja, &named(sentence, en)?))))
        .or_else(|| {
            let (field, wanted) = field?;
            let ja = SENTENCES.iter().find_map(|(en, ja)| Some(filled(ja, &named(wanted, en)?)))?;
            Some(Cow::Owned(format!("{field}: {ja}")))
        })
        .unwrap_or(Cow::Borrowed(sentence))
}

/// What stands in the places of the pattern, if the sentence is one of it.
fn named<'s>(sentence: &'s str, pattern: &str) -> Option<Vec<&'s str>> {
    let mut parts = pattern.split("{}");
    let mut rest = sentence.strip_prefix(parts.next()?)?;
    let mut named = Vec::new();
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        let at = if is_last { rest.len().checked_sub(part.len()) } else { rest.find(part) }?;
        if !rest.is_char_boundary(at) || &rest[at..at + part.len()] != part {
            return None;
        }
        named.push(&rest[..at]);
        rest = &rest[at + part.len()..];
    }
    rest.is_empty().then_some(named)
}

fn filled(pattern: &str, named: &[&str]) -> String {
    let mut named = named.iter();
    let mut parts = pattern.split("{}");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + named.next().copied().unwrap_or_default() + part)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn h3_what_an_act_refuses_is_said_in_japanese() {
        for (en, ja) in [
            ("the password is wrong", "パスワードが違います"),
            ("password: expected at least 10 characters", "password: 10文字以上にしてください"),
            ("there is no user 関所", "利用者 関所 はいません"),
            ("reason: expected 1 to 200 characters", "reason: 1〜200文字で入力してください"),
            ("the notice ntc_1 is sending: it is on its way", "通知 ntc_1 は送信処理中です（sending）"),
            (
                "a@b.jp is on the suppression list already: bounce",
                "a@b.jp はすでに配信停止リストにあります（bounce）",
            ),
            ("something else", "something else"),
            ("", ""),
        ] {
            assert_eq!(translated(en), ja);
        }
    }

    /// The sources with `{}` for every place of a text.
    fn sources(folder: &Path, all: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, all);
            } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("japanese.rs") {
                let text = fs::read_to_string(&path).unwrap();
                let mut parts = text.split('{');
                all.push_str(parts.next().unwrap_or_default());
                for part in parts {
                    let after = part.split_once('}').filter(|(name, _)| !name.contains(['\n', '"', ' ']));
                    all.push('{');
                    all.push_str(&after.map_or_else(|| part.to_owned(), |(_, rest)| format!("}}{rest}")));
                }
            }
        }
    }

    #[test]
    fn h3_every_sentence_of_the_table_is_one_that_is_said() {
        let mut said = String::new();
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        sources(&own.join("src"), &mut said);
        sources(&own.join("../core/src"), &mut said);
        let is_said = |en: &str| said.contains(&format!("{en}\"")) || said.contains(&format!("\"{en}"));
        let unsaid: Vec<_> = SENTENCES.iter().map(|(en, _)| *en).filter(|en| !is_said(en)).collect();
        assert_eq!(unsaid, [""; 0], "correct the sentence here, too");
        for (en, ja) in SENTENCES {
            assert_eq!(en.matches("{}").count(), ja.matches("{}").count(), "{en}");
        }
    }
}
