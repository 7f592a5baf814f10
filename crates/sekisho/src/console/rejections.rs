//! Requests that were turned away: who tried what, how often, and what it most likely was.

use std::collections::BTreeMap;

use askama::Template;
use sekisho_core::Time;
use sekisho_core::change::Rejection;
use sekisho_core::language::Language;
use sekisho_store::{FIND_MAX, REJECTIONS_MAX, RejectionFilter};

use super::frame::Frame;
use super::page::{Answer, Page, PageMethod, Reply, VIEWER, Visit};
use crate::attempts::{API, CONSOLE};

pub const PAGES: &[Page] = &[Page {
    method: PageMethod::Get,
    path: "/console/rejections",
    needs: VIEWER,
    run: |visit| Box::pin(list(visit)),
}];

/// Lines on a page, and groups at its top.
const PAGE: usize = 50;
const GROUPS: usize = 8;

/// Every word that a refusal can have.
const REASONS: [&str; 25] = [
    "bad_signature",
    "bad_token",
    "missing_header",
    "malformed_header",
    "malformed_body",
    "stale_timestamp",
    "future_timestamp",
    "unsigned",
    "address_not_allowed",
    "second_body",
    "foreign_call",
    "foreign_url",
    "foreign_topic",
    "foreign_certificate",
    "bad_certificate",
    "certificate_not_at_hand",
    "subscription_not_confirmed",
    "too_large",
    "too_slow",
    "broken_off",
    "method_not_allowed",
    "unknown_source",
    "bad_key",
    "bad_login",
    "two_names",
];

#[derive(Template)]
#[template(path = "console/rejections.html")]
struct RejectionsPage {
    f: Frame,
    sources: Vec<String>,
    source: String,
    reasons: &'static [&'static str],
    reason: String,
    by_reason: Vec<Group>,
    by_network: Vec<Group>,
    /// Lines that were counted, and whether there are more.
    counted: usize,
    is_more: bool,
    total: i64,
    rows: Vec<RejectionRow>,
    next: Option<String>,
    kept: usize,
}

struct Group {
    name: String,
    count: i64,
    last: Time,
}

struct RejectionRow {
    at: Time,
    /// If it is one of several.
    last_at: Option<Time>,
    source: String,
    peer: String,
    network: String,
    reason: String,
    detail: String,
    cause: &'static str,
    count: i64,
    request_id: String,
}

async fn list(visit: Visit) -> Answer {
    let text = |name: &str| visit.param(name).unwrap_or_default().to_owned();
    let filter = RejectionFilter {
        source: visit.param("source").map(str::to_owned),
        reason: visit.param("reason").map(str::to_owned),
        before: None,
        limit: FIND_MAX,
    };
    let store = &*visit.console.store;
    let newest = store.find_rejections(filter.clone()).await?;
    let before = visit.before()?;
    let page = match before {
        None => newest.iter().take(PAGE).cloned().collect(),
        Some(_) => store.find_rejections(RejectionFilter { before, limit: PAGE, ..filter }).await?,
    };
    let next = page.last().filter(|_| page.len() == PAGE).map(|last| last.seq.as_rejection().to_string());
    Reply::page(&RejectionsPage {
        f: visit.frame("rejections", visit.lang.t("Rejected requests", "拒否したリクエスト")),
        sources: visit
            .console
            .known
            .sources
            .iter()
            .map(String::as_str)
            .chain([API, CONSOLE])
            .map(str::to_owned)
            .collect(),
        source: text("source"),
        reasons: &REASONS,
        reason: text("reason"),
        by_reason: grouped(&newest, |one| &one.reason),
        by_network: grouped(&newest, |one| &one.network),
        counted: newest.len(),
        is_more: newest.len() == FIND_MAX,
        total: newest.iter().map(|one| one.count).sum(),
        rows: page.into_iter().map(|one| RejectionRow::of(one, visit.lang)).collect(),
        next,
        kept: REJECTIONS_MAX,
    })
}

/// What is most frequent, first.
fn grouped(newest: &[Rejection], by: impl Fn(&Rejection) -> &String) -> Vec<Group> {
    let mut groups: BTreeMap<&String, (i64, Time)> = BTreeMap::new();
    for one in newest {
        let group = groups.entry(by(one)).or_insert((0, one.last_at));
        *group = (group.0 + one.count, group.1.max(one.last_at));
    }
    let mut groups: Vec<_> =
        groups.into_iter().map(|(name, (count, last))| Group { name: name.clone(), count, last }).collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups.truncate(GROUPS);
    groups
}

impl RejectionRow {
    fn of(one: Rejection, lang: Language) -> Self {
        Self {
            cause: likely(&one.reason, lang),
            at: one.at,
            last_at: Some(one.last_at).filter(|last| *last > one.at),
            source: one.source,
            peer: one.peer,
            network: one.network,
            reason: one.reason,
            detail: one.detail,
            count: one.count,
            request_id: one.request_id,
        }
    }
}

/// What is most likely behind it, and what to do if it was no attack.
fn likely(reason: &str, lang: Language) -> &'static str {
    let (en, ja) = match reason {
        "bad_signature" | "bad_token" => (
            "A forgery, or the secret is another endpoint's or was rotated: compare it with the provider's.",
            "なりすまし、またはシークレットの不一致（別のエンドポイント用・更新済み）です。プロバイダー側と照合してください。",
        ),
        "missing_header" | "malformed_header" | "malformed_body" | "unsigned" => (
            "A scanner, another provider's webhook, or a proxy in front that removes headers.",
            "スキャナー、別サービスのWebhook、または手前のプロキシによるヘッダー削除です。",
        ),
        "stale_timestamp" => (
            "An old request sent again, or this machine's clock is fast: check its time service.",
            "古いリクエストの再送、またはこのサーバーの時計の進みです。時刻同期を確認してください。",
        ),
        "future_timestamp" => (
            "This machine's clock is slow, or the sender's fast: check the time service.",
            "このサーバーの時計の遅れ、または送信側の時計の進みです。時刻同期を確認してください。",
        ),
        "bad_key" => (
            "A guessed key, or a program that still uses a revoked or replaced one: give it a new key.",
            "API キーの推測、または無効化・変更前のキーを使い続けているプログラムです。新しいキーに差し替えてください。",
        ),
        "bad_login" => (
            "A guessed or mistyped password. If the user exists, the audit log has the name.",
            "パスワードの推測、または利用者の入力誤りです。登録済みの利用者であれば、監査ログに名前が残ります。",
        ),
        "two_names" => (
            "A client sent its own name beside the proxy's: configure the proxy to remove that header from client requests.",
            "プロキシの付けた名前とは別に、クライアントが名前を送信しました。同名のヘッダーをプロキシで削除してください。",
        ),
        "address_not_allowed" => (
            "A call by a third party, or the provider has new addresses: compare allow_ips with its list.",
            "第三者からの呼び出し、またはプロバイダーの送信元IPの変更です。allow_ips を照合してください。",
        ),
        "foreign_certificate" | "bad_certificate" => (
            "A forged certificate, or a problem with this machine's clock or outgoing connections.",
            "偽の証明書によるなりすまし、または時計・外部接続の不具合です。",
        ),
        "foreign_topic" => (
            "A message of a topic that is not configured: write it into topic_arn if it is yours.",
            "未設定のトピックからの通知です。自社のものであれば topic_arn に追加してください。",
        ),
        "second_body" => (
            "A forgery: the transmission had come before with another body. Find out who saw that request; only one body of it was \
             taken.",
            "偽造です。同じ送信が別の本文で届いていました（受け付けた本文は1つだけです）。元のリクエストが第三者に漏れた経路を調べてください。",
        ),
        "foreign_url" => (
            "Signed for another address: write the address that the provider calls into public_url.",
            "別のURLに対する署名です。プロバイダーに登録したURLを public_url に設定してください。",
        ),
        "foreign_call" => (
            "Not a call that this provider makes: a scanner may be probing the address.",
            "このプロバイダーが行わない呼び出しです。URLを探られている可能性があります。",
        ),
        "certificate_not_at_hand" => (
            "A forged request with a certificate that does not exist, or the provider can't be reached from here.",
            "存在しない証明書を指定したなりすまし、またはこのサーバーからプロバイダーへ接続できない状態です。",
        ),
        "subscription_not_confirmed" => (
            "Amazon did not accept the confirmation: its link has expired, or can't be reached from here. Subscribe anew.",
            "Amazonが購読の確認を受け付けませんでした。リンクの期限切れか、外部接続の不具合です。購読をやり直してください。",
        ),
        "too_large" => (
            "If the provider sends webhooks of this size, raise server.body_bytes_max and let it send again.",
            "プロバイダーがこの大きさのWebhookを送る場合は server.body_bytes_max を上げ、再送してください。",
        ),
        "too_slow" | "broken_off" => (
            "A bad connection, a proxy with too short a timeout, or an attack that holds connections open.",
            "通信経路の不調、手前のプロキシのタイムアウト、または接続を占有する攻撃です。",
        ),
        "method_not_allowed" => (
            "A browser or a monitor opened the address: webhooks are sent by POST.",
            "ブラウザーや監視ツールによるアクセスです。WebhookはPOSTで送られます。",
        ),
        "unknown_source" => (
            "The address at the provider is misspelt, the source is not configured, or a scanner is probing addresses.",
            "プロバイダー側のURLの誤り、ソースの設定漏れ、またはURLの探索です。",
        ),
        _ => ("", ""),
    };
    lang.t(en, ja)
}

#[cfg(test)]
mod tests {
    use sekisho_core::Seq;

    use super::*;

    #[test]
    fn a3_every_reason_has_words_and_a_likely_cause_in_both_languages() {
        for reason in REASONS {
            for lang in [Language::En, Language::Ja] {
                assert_ne!(crate::view::words::reason(reason, lang), reason, "no words for {reason}");
                assert!(!likely(reason, lang).is_empty(), "no cause for {reason}");
            }
        }
    }

    #[test]
    fn a3_lines_add_up_by_what_they_stand_for() {
        let line = |peer: &str, count, ms| Rejection {
            seq: Seq::from_i64(ms),
            at: Time::from_ms(ms),
            last_at: Time::from_ms(ms),
            source: "stripe".into(),
            peer: peer.into(),
            network: String::new(),
            reason: "bad_signature".into(),
            detail: String::new(),
            request_id: String::new(),
            count,
        };
        let groups = grouped(&[line("b", 2, 9), line("a", 1, 7), line("a", 4, 5)], |one| &one.peer);
        let told: Vec<_> = groups.iter().map(|group| (&*group.name, group.count, group.last.ms())).collect();
        assert_eq!(told, [("a", 5, 7), ("b", 2, 9)]);
    }
}
