//! A step of an alert in words, as an announcement: what is wrong, how far beyond which limit, since when, what to do and
//! where to look. Each incident has one name; all that is told of it bears that name.

use serde_json::{Value, json};

use super::table::{AlertRule, AlertSubject};
use super::{AlertName, AlertState, AlertStep, alert_id};
use crate::announcement::Announcement;
use crate::job::Lane;
use crate::language::Language;
use crate::notification::alert::News;
use crate::time::Time;

/// What operators hear of a step. `base` is where the console is.
pub fn announcement(
    alert: AlertName,
    subject: &str,
    state: &AlertState,
    step: AlertStep,
    base: &str,
    at: Time,
) -> Announcement {
    let id = alert_id(alert, subject);
    let incident = format!("alert/{id}/{}", state.incidents);
    let (news, own) = match step {
        AlertStep::Fired => (News::Fired, format!("{incident}/fired")),
        AlertStep::Repeated => (News::Repeated, format!("{incident}/repeated/{}", state.told)),
        AlertStep::Resolved => (News::Resolved, format!("{incident}/resolved")),
    };
    let said = Said { alert, subject, state, step };
    said.announcement(news, own, &incident, base, at)
}

/// One that says how such an alert looks, and that it is only a trial.
pub fn trial(alert: AlertName, threshold: String, base: &str, at: Time) -> Announcement {
    let state = AlertState { threshold, value: "–".into(), since: Some(at), ..AlertState::default() };
    let incident = format!("alert/{}/trial/{}", alert.name(), at.ms());
    let said = Said { alert, subject: "trial", state: &state, step: AlertStep::Fired };
    let mut announcement = said.announcement(News::Fired, format!("{incident}/fired"), &incident, base, at);
    for (language, prefix) in [("en", "Trial, nothing is wrong: "), ("ja", "テスト（異常なし）: ")] {
        let title = format!("{prefix}{}", announcement.data["titles"][language].as_str().unwrap_or_default());
        announcement.data["titles"][language] = title.into();
    }
    announcement
}

struct Said<'s> {
    alert: AlertName,
    subject: &'s str,
    state: &'s AlertState,
    step: AlertStep,
}

impl Said<'_> {
    fn announcement(&self, news: News, id: String, incident: &str, base: &str, at: Time) -> Announcement {
        let AlertState { value, threshold, since, .. } = self.state;
        let in_both =
            |of: &dyn Fn(Language) -> Value| json!({ "ja": of(Language::Ja), "en": of(Language::En) });
        let rule = self.alert.rule();
        let data = json!({
            "object": "alert",
            "titles": in_both(&|language| self.title(rule, language).into()),
            "details": in_both(&|language| self.detail(rule, language).into()),
            "happened_at": at,
            "link": format!("{base}{}", rule.page),
            "fields_in": in_both(&|language| self.fields(language)),
            "incident": incident,
            "resolved": self.step == AlertStep::Resolved,
        });
        Announcement {
            id,
            event_type: news.name().to_owned(),
            livemode: None,
            object: ("alert", alert_id(self.alert, self.subject)),
            tenant: None,
            about: json!({
                "alert": self.alert.name(),
                "subject": self.subject,
                "incident": incident,
                "value": value,
                "threshold": threshold,
                "since": since,
            }),
            data,
            at,
        }
    }

    fn title(&self, rule: &AlertRule, language: Language) -> String {
        let title = language.t(rule.title.0, rule.title.1).replace("{}", &subject_name(rule, self.subject));
        let prefix = match self.step {
            AlertStep::Fired => "",
            AlertStep::Repeated => language.t("Still: ", "継続中: "),
            AlertStep::Resolved => language.t("Resolved: ", "解消: "),
        };
        format!("{prefix}{title}")
    }

    fn detail(&self, rule: &AlertRule, language: Language) -> String {
        match self.step {
            AlertStep::Fired | AlertStep::Repeated => language.t(rule.advice.0, rule.advice.1).to_owned(),
            AlertStep::Resolved => language
                .t(
                    "It is back within its limit. Nothing is to be done.",
                    "基準内に戻りました。対応は不要です。",
                )
                .to_owned(),
        }
    }

    fn fields(&self, language: Language) -> Value {
        let AlertState { value, threshold, since, .. } = self.state;
        let rule = self.alert.rule();
        let fires = language.t(rule.fires.0, rule.fires.1).replace("{}", threshold);
        let since = since.map(|since| since.to_string()).unwrap_or_default();
        let fields = [
            (language.t("alert", "警報"), alert_id(self.alert, self.subject)),
            (language.t("value", "値"), value.clone()),
            (language.t("fires when", "条件"), fires),
            (language.t("since", "開始"), since),
        ];
        fields.map(|(name, value)| json!({ "name": name, "value": value })).to_vec().into()
    }
}

/// A subject as operators call it: a lane by its route or channel.
pub fn subject_name(rule: &AlertRule, subject: &str) -> String {
    match rule.subject {
        AlertSubject::Lane | AlertSubject::Worker => {
            let lane = Lane::from(subject.to_owned());
            lane.route().or(lane.channel()).unwrap_or(subject).to_owned()
        }
        AlertSubject::Installation
        | AlertSubject::Source
        | AlertSubject::EventType
        | AlertSubject::Stage
        | AlertSubject::Channel => subject.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::alert::in_words;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    #[test]
    fn h4_a_step_says_value_threshold_since_advice_and_where_to_look_in_both_languages() {
        let state = AlertState {
            incidents: 2,
            since: Some(NOW),
            value: "3".into(),
            threshold: "0".into(),
            told: 3,
            ..AlertState::default()
        };
        let tell = |step| announcement(AlertName::DeadLetters, "to:app", &state, step, "https://c", NOW);
        let fired = tell(AlertStep::Fired);
        assert_eq!((&*fired.id, &*fired.event_type), ("alert/dead_letters/to:app/2/fired", "alert.fired"));
        assert_eq!(tell(AlertStep::Repeated).id, "alert/dead_letters/to:app/2/repeated/3");
        let en = in_words(fired.data.clone(), Language::En);
        assert_eq!(en["title"], "Dead letters wait: app");
        assert_eq!(en["link"], "https://c/console/dead");
        let text = en.to_string();
        for word in
            ["Read why they failed", "more than 0 dead letters wait", "\"3\"", "2026-05-28T20:26:40.000Z"]
        {
            assert!(text.contains(word), "{word} in {text}");
        }
        let ja = in_words(fired.data.clone(), Language::Ja);
        assert_eq!(ja["title"], "デッドレターがあります: app");
        assert!(ja.get("details").is_none() && ja.get("fields_in").is_none(), "{ja}");
        let resolved = tell(AlertStep::Resolved);
        assert_eq!(resolved.data["incident"], fired.data["incident"]);
        assert_eq!((&resolved.data["resolved"], &fired.data["resolved"]), (&json!(true), &json!(false)));
        assert_eq!(in_words(resolved.data, Language::Ja)["title"], "解消: デッドレターがあります: app");
    }

    #[test]
    fn h4_a_trial_says_that_it_is_one() {
        for alert in AlertName::ALL {
            let trial = trial(alert, "1".into(), "", NOW);
            let title = in_words(trial.data, Language::En)["title"].as_str().unwrap().to_owned();
            assert!(title.starts_with("Trial, nothing is wrong"), "{title}");
        }
    }
}
