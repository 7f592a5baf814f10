//! "Is all well?" in one strip on top of the overview: what is down and since when, what failed, how much money hangs on it, and
//! what needs a person. Each line leads to where it can be mended. Nothing to say is said, too.

use std::collections::{BTreeMap, BTreeSet};

use sekisho_core::Time;
use sekisho_core::change::Rejection;
use sekisho_core::language::Language;
use sekisho_core::money;
use sekisho_core::time::{HOUR_MS, hour_of};
use sekisho_store::{Count, DeadLetter};

use crate::console::events::address;
use crate::types::{Channel, Route};
use crate::view::show;

/// Requests with a wrong signature in two hours, and none with a right one: then it is the secret that is wrong.
const WRONG_SECRET_MIN: i64 = 5;
const WRONG_SECRET: [&str; 2] = ["bad_signature", "bad_token"];

/// What the strip is made from.
pub struct Seen<'s> {
    pub unready: Option<String>,
    pub routes: &'s [Route],
    pub channels: &'s [Channel],
    /// The newest dead letters, and whether there are more.
    pub dead: &'s [DeadLetter],
    pub is_more_dead: bool,
    /// Payments that need attention, and whether there are more.
    pub payments: usize,
    pub are_more_payments: bool,
    pub rejections: &'s [Rejection],
    pub counts: &'s [Count],
    pub at: Time,
}

/// One line of the strip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matter {
    pub text: String,
    pub link: String,
}

/// Everything that wants somebody's eyes, the worst first; empty is "all good".
pub fn matters(seen: &Seen<'_>, lang: Language) -> Vec<Matter> {
    let mut matters = Vec::new();
    let mut say = |text: String, link: String| matters.push(Matter { text, link });
    if let Some(reason) = &seen.unready {
        say(reason.clone(), "/console#standing".into());
    }
    for source in wrong_secrets(seen) {
        say(wrong_secret(&source, lang), address("/console/rejections", [("source", &*source)]));
    }
    for route in seen.routes.iter().filter(|route| route.breaker != "closed") {
        say(down(&route.name, route.open_since, seen.at, lang), "/console/sources".into());
    }
    for channel in seen.channels.iter().filter(|channel| channel.breaker != "closed") {
        say(down(&channel.name, channel.open_since, seen.at, lang), "/console/notices".into());
    }
    if !seen.dead.is_empty() {
        let number = counted(seen.dead.len(), seen.is_more_dead);
        let risk = at_risk(seen.dead);
        let more = if seen.is_more_dead { "+" } else { "" };
        let text = match lang {
            Language::En if risk.is_empty() => format!("{number} failed for good"),
            Language::En => format!("{number} failed for good, {risk}{more} at stake"),
            Language::Ja if risk.is_empty() => format!("デッドレター {number} 件"),
            Language::Ja => format!("デッドレター {number} 件（関係する決済 {risk}{more}）"),
        };
        say(text, "/console/dead".into());
    }
    if seen.payments > 0 {
        let number = counted(seen.payments, seen.are_more_payments);
        let text = match lang {
            Language::En if seen.payments == 1 => "1 payment needs attention".to_owned(),
            Language::En => format!("{number} payments need attention"),
            Language::Ja => format!("確認が必要な決済 {number} 件"),
        };
        say(text, "/console/payments?attention=any".into());
    }
    matters
}

/// What is said of a source of which no request has the right signature.
pub fn wrong_secret(source: &str, lang: Language) -> String {
    match lang {
        Language::En => format!(
            "Every request to {source} is rejected for its signature: the secret is probably another endpoint's"
        ),
        Language::Ja => {
            format!(
                "{source} へのリクエストはすべて署名が一致しません。別のエンドポイントのシークレットが設定されている可能性があります"
            )
        }
    }
}

/// Sources to which many come with a wrong signature, and none with a right one, in the open hour and the one before.
fn wrong_secrets(seen: &Seen<'_>) -> Vec<String> {
    let since = hour_of(seen.at).plus_ms(-HOUR_MS);
    let mut refused: BTreeMap<&str, i64> = BTreeMap::new();
    for one in seen.rejections.iter().filter(|one| one.last_at >= since) {
        if WRONG_SECRET.contains(&&*one.reason) {
            *refused.entry(&one.source).or_default() += one.count;
        }
    }
    let accepted: BTreeSet<&str> = seen
        .counts
        .iter()
        .filter(|count| count.hour >= since && count.events > 0)
        .map(|count| &*count.source)
        .collect();
    let wrong = |(source, count): &(&str, i64)| *count >= WRONG_SECRET_MIN && !accepted.contains(source);
    refused.into_iter().filter(wrong).map(|(source, _)| source.to_owned()).collect()
}

fn down(name: &str, since: Option<Time>, now: Time, lang: Language) -> String {
    let minutes = since.map(|since| (now.ms() - since.ms()).max(0) / 60_000);
    match (lang, minutes) {
        (Language::En, Some(minutes)) => format!("{name} down for {}", lasting(minutes, lang)),
        (Language::En, None) => format!("{name} down"),
        (Language::Ja, Some(minutes)) => format!("{name} 停止中（{}）", lasting(minutes, lang)),
        (Language::Ja, None) => format!("{name} 停止中"),
    }
}

fn lasting(minutes: i64, lang: Language) -> String {
    let (number, en, ja) = match minutes {
        0 => return lang.t("less than a minute", "1分未満").to_owned(),
        1..120 => (minutes, "min", "分"),
        120..2_880 => (minutes / 60, "h", "時間"),
        _ => (minutes / 1_440, "days", "日"),
    };
    match lang {
        Language::En => format!("{number} {en}"),
        Language::Ja => format!("{number}{ja}"),
    }
}

/// What the payments of dead letters are worth, each once, by currency.
fn at_risk(dead: &[DeadLetter]) -> String {
    let mut worth: BTreeMap<&str, (BTreeSet<&str>, i64)> = BTreeMap::new();
    for letter in dead {
        let Some(stake) = &letter.stake else { continue };
        let (known, sum) = worth.entry(&stake.currency).or_default();
        if known.insert(&stake.payment) {
            *sum = money::sum([*sum, stake.amount]);
        }
    }
    let sums = worth.iter().map(|(currency, (_, sum))| show::money(*sum, currency));
    sums.collect::<Vec<_>>().join(" + ")
}

fn counted(number: usize, is_more: bool) -> String {
    format!("{}{}", show::grouped(&number.to_string()), if is_more { "+" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    fn seen() -> Seen<'static> {
        Seen {
            unready: None,
            routes: &[],
            channels: &[],
            dead: &[],
            is_more_dead: false,
            payments: 0,
            are_more_payments: false,
            rejections: &[],
            counts: &[],
            at: NOW,
        }
    }

    fn route(breaker: &str, minutes: i64) -> Route {
        Route {
            name: "crm".into(),
            url: String::new(),
            breaker: breaker.into(),
            open_since: Some(NOW.plus_ms(-minutes * 60_000)),
            open_until: None,
            oldest_due_at: None,
        }
    }

    fn texts(seen: &Seen<'_>, lang: Language) -> Vec<String> {
        matters(seen, lang).into_iter().map(|matter| matter.text).collect()
    }

    #[test]
    fn h1_nothing_to_say_is_all_good() {
        let routes = [route("closed", 5)];
        assert_eq!(matters(&Seen { routes: &routes, ..seen() }, Language::En), []);
    }

    #[test]
    fn h1_what_is_down_says_since_when() {
        for (minutes, en, ja) in [
            (0, "crm down for less than a minute", "crm 停止中（1分未満）"),
            (17, "crm down for 17 min", "crm 停止中（17分）"),
            (150, "crm down for 2 h", "crm 停止中（2時間）"),
            (5_000, "crm down for 3 days", "crm 停止中（3日）"),
        ] {
            let routes = [route("half_open", minutes)];
            let seen = Seen { routes: &routes, payments: 1, ..seen() };
            assert_eq!(texts(&seen, Language::En), [en, "1 payment needs attention"]);
            assert_eq!(texts(&seen, Language::Ja)[0], ja);
        }
    }

    #[test]
    fn h1_a_source_whose_every_request_fails_its_signature_has_the_wrong_secret() {
        let refused = |count, reason: &str| Rejection {
            seq: sekisho_core::Seq::from_i64(1),
            count,
            source: "stripe".into(),
            reason: reason.into(),
            at: NOW,
            last_at: NOW,
            peer: String::new(),
            network: String::new(),
            detail: String::new(),
            request_id: String::new(),
        };
        let count = |source: &str| Count {
            hour: hour_of(NOW),
            source: source.into(),
            event_type: "a".into(),
            status: sekisho_store::Status::Success,
            events: 1,
        };
        for (rejections, counts, is_wrong) in [
            (vec![refused(5, "bad_signature")], vec![], true),
            (vec![refused(4, "bad_signature")], vec![], false),
            (vec![refused(3, "bad_signature"), refused(2, "bad_token")], vec![count("shop")], true),
            (vec![refused(50, "bad_signature")], vec![count("stripe")], false),
            (vec![refused(50, "too_large")], vec![], false),
        ] {
            let seen = Seen { rejections: &rejections, counts: &counts, ..seen() };
            assert_eq!(!matters(&seen, Language::En).is_empty(), is_wrong, "{rejections:?}");
        }
    }
}
