//! News for operators: a channel or a route that was shut or is open again, a notice or a delivery that did not go out, a key that a
//! provider's API refuses, a source that has gaps, an alert that fires. Announced as events, so that rules and routes can name them
//! like any other.

use serde_json::{Value, json};

use super::{Audience, Notice};
use crate::announcement::{Announcement, is_alert};
use crate::event::Stored;
use crate::id::Seq;
use crate::job::DeadReason;
use crate::language::Language;
use crate::mail_address::{MailAddress, mask_text};
use crate::source_name::OWN;
use crate::time::Time;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    pub news: News,
    /// Names what happened: the same twice is told once.
    pub id: String,
    /// (kind, id).
    pub object: (&'static str, String),
    pub tenant: Option<String>,
    pub detail: String,
    pub fields: Vec<(&'static str, String)>,
}

/// Alerts of one kind and channel in so long are one.
const ALERT_MS: i64 = 10 * 60_000;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// A channel is paused.
    Paused,
    /// A channel was resumed.
    Resumed,
    /// A notice did not go out.
    Failed,
    /// A provider's API refuses the key of a source.
    KeyRefused,
    /// It takes the key again.
    KeyAccepted,
    /// Events that never came were read from the provider.
    GapClosed,
    /// We say what the provider denies.
    Differs,
    /// A delivery became a dead letter.
    DeliveryDead,
    /// Deliveries to a destination pause: it fails.
    RoutePaused,
    /// They go on.
    RouteResumed,
    /// An alert fires; it still does; it is over.
    Fired,
    Repeated,
    Resolved,
}

impl News {
    #[cfg(test)]
    const ALL: [Self; 13] = [
        Self::Paused,
        Self::Resumed,
        Self::Failed,
        Self::KeyRefused,
        Self::KeyAccepted,
        Self::GapClosed,
        Self::Differs,
        Self::DeliveryDead,
        Self::RoutePaused,
        Self::RouteResumed,
        Self::Fired,
        Self::Repeated,
        Self::Resolved,
    ];

    /// The type of its event.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Paused => "channel.paused",
            Self::Resumed => "channel.resumed",
            Self::Failed => "notice.failed",
            Self::KeyRefused => "source.key_refused",
            Self::KeyAccepted => "source.key_accepted",
            Self::GapClosed => "source.gap_closed",
            Self::Differs => "source.differs",
            Self::DeliveryDead => "delivery.dead",
            Self::RoutePaused => "route.paused",
            Self::RouteResumed => "route.resumed",
            Self::Fired => "alert.fired",
            Self::Repeated => "alert.repeated",
            Self::Resolved => "alert.resolved",
        }
    }

    const fn title(self, language: Language) -> &'static str {
        match (self, language) {
            (Self::Paused, Language::Ja) => "送信経路を停止しました",
            (Self::Paused, Language::En) => "A channel is paused",
            (Self::Resumed, Language::Ja) => "送信経路が再開しました",
            (Self::Resumed, Language::En) => "A channel was resumed",
            (Self::Failed, Language::Ja) => "通知を送れませんでした",
            (Self::Failed, Language::En) => "A notice was not sent",
            (Self::KeyRefused, Language::Ja) => "API キーが拒否されました",
            (Self::KeyRefused, Language::En) => "An API key is refused",
            (Self::KeyAccepted, Language::Ja) => "API キーが再び使えるようになりました",
            (Self::KeyAccepted, Language::En) => "An API key is accepted again",
            (Self::GapClosed, Language::Ja) => "届かなかったイベントを取り込みました",
            (Self::GapClosed, Language::En) => "Events that never arrived were read from the provider",
            (Self::Differs, Language::Ja) => "決済事業者の記録と一致しません",
            (Self::Differs, Language::En) => "The provider's records differ from ours",
            (Self::DeliveryDead, Language::Ja) => "イベントを配送できませんでした",
            (Self::DeliveryDead, Language::En) => "An event could not be delivered",
            (Self::RoutePaused, Language::Ja) => "配送先が応答せず、配送を停止しました",
            (Self::RoutePaused, Language::En) => "A destination fails: its deliveries are paused",
            (Self::RouteResumed, Language::Ja) => "配送先への配送を再開しました",
            (Self::RouteResumed, Language::En) => "Deliveries to a destination go on",
            (Self::Fired, Language::Ja) => "警報",
            (Self::Fired, Language::En) => "An alert fires",
            (Self::Repeated, Language::Ja) => "警報が続いています",
            (Self::Repeated, Language::En) => "An alert still fires",
            (Self::Resolved, Language::Ja) => "警報が解消しました",
            (Self::Resolved, Language::En) => "An alert is over",
        }
    }
}

impl Alert {
    /// Something about a channel that every node may find out by itself.
    pub fn of_channel(channel: &str, news: News, reason: &str, detail: &str, at: Time) -> Self {
        Self {
            news,
            id: format!("channel/{channel}/{}/{}", news.name(), at.ms().div_euclid(ALERT_MS)),
            object: ("channel", channel.to_owned()),
            tenant: None,
            detail: detail.to_owned(),
            fields: vec![("channel", channel.to_owned()), ("reason", reason.to_owned())],
        }
    }

    /// Something about the key of a source that every node may find out by itself. `right` is what it is about: the key
    /// as a whole, or one thing that it may or may not do.
    pub fn of_key(source: &str, right: &str, news: News, reason: &str, detail: &str, at: Time) -> Self {
        Self {
            news,
            id: format!("source/{source}/{right}/{}/{}", news.name(), at.ms().div_euclid(ALERT_MS)),
            object: ("source", source.to_owned()),
            tenant: None,
            detail: detail.to_owned(),
            fields: vec![("source", source.to_owned()), ("reason", reason.to_owned())],
        }
    }

    /// Something that a reconciliation of a source found; `what` names it: the same is told once.
    pub fn of_source(source: &str, news: News, what: &str, detail: &str) -> Self {
        Self {
            news,
            id: format!("source/{source}/{}/{what}", news.name()),
            object: ("source", source.to_owned()),
            tenant: None,
            detail: detail.to_owned(),
            fields: vec![("source", source.to_owned())],
        }
    }

    /// A notice that waits for a person. Of their own, operators hear nothing: an alert that fails must not cause one.
    pub fn of_notice(id: &str, notice: &Notice) -> Option<Self> {
        let status = notice.status();
        // What was told because of an alert raises none: one address that fails would never end.
        let is_of_alert = notice.data["event"]["type"].as_str().is_some_and(is_alert);
        if is_of_alert || !status.needs_a_person() || notice.audience == Audience::Operator {
            return None;
        }
        let note = notice.steps.last().and_then(|step| step.note.clone());
        Some(Self {
            news: News::Failed,
            id: format!("notice/{}/{}", Notice::message_id(id, notice.again), status.name()),
            object: ("notice", id.to_owned()),
            tenant: notice.tenant.clone(),
            detail: note.unwrap_or_default(),
            fields: vec![
                ("notice", id.to_owned()),
                ("template", notice.template.clone()),
                ("channel", notice.channel.clone()),
                ("to", notice.to.as_ref().map(MailAddress::masked).unwrap_or_default()),
                ("status", status.name().to_owned()),
            ],
        })
    }

    /// A delivery that became a dead letter. Told once for each reason, however often it is tried again; what is told because
    /// of an alert raises none.
    pub fn of_delivery(message: Seq, route: &str, event: &Stored, death: &DeadReason) -> Option<Self> {
        if is_alert(&event.event_type) && *event.source == *OWN {
            return None;
        }
        let id = message.as_message().to_string();
        Some(Self {
            news: News::DeliveryDead,
            id: format!("delivery/{id}/{}", death.reason),
            object: ("message", id.clone()),
            tenant: None,
            detail: death.error.clone(),
            fields: vec![
                ("route", route.to_owned()),
                ("event", event.event_type.clone()),
                ("event_id", event.event_id.clone()),
                ("message", id),
                ("reason", death.reason.clone()),
                ("class", death.class.name().to_owned()),
            ],
        })
    }

    /// Deliveries to a destination pause, or go on. `since` is when it began to fail: the outage is the fact.
    pub fn of_route(route: &str, news: News, since: Option<Time>, detail: &str) -> Self {
        let since = since.map(|since| since.to_string()).unwrap_or_default();
        Self {
            news,
            id: format!("route/{route}/{}/{since}", news.name()),
            object: ("route", route.to_owned()),
            tenant: None,
            detail: detail.to_owned(),
            fields: vec![("route", route.to_owned()), ("since", since)],
        }
    }

    pub fn announcement(self, at: Time) -> Announcement {
        let titles = json!({
            "ja": self.news.title(Language::Ja),
            "en": self.news.title(Language::En),
        });
        let fields = self.fields.iter().map(|(name, value)| json!({ "name": name, "value": value }));
        let data = json!({
            "object": "alert",
            "titles": titles,
            "detail": mask_text(&self.detail),
            "happened_at": at,
            "link": null,
            "fields": fields.collect::<Vec<_>>(),
        });
        Announcement {
            id: self.id,
            event_type: self.news.name().to_owned(),
            livemode: None,
            object: self.object,
            tenant: self.tenant,
            about: Value::Null,
            data,
            at,
        }
    }
}

/// An alert as its reader sees it.
pub fn in_words(mut alert: Value, language: Language) -> Value {
    for (both, one) in [("titles", "title"), ("details", "detail"), ("fields_in", "fields")] {
        let said = alert[both][language.name()].clone();
        if let Some(alert) = alert.as_object_mut().filter(|_| !said.is_null()) {
            alert.remove(both);
            alert.insert(one.into(), said);
        }
    }
    alert
}

#[cfg(test)]
mod tests {
    use super::super::NoticeStatus;
    use super::super::compose::tests::notice_to;
    use super::*;
    use crate::announcement::TYPES;

    #[test]
    fn g5_news_for_operators_are_known_as_such() {
        let alerts = TYPES.into_iter().filter(|kind| is_alert(kind)).collect::<Vec<_>>();
        let mut news = News::ALL.map(News::name).to_vec();
        news.sort_unstable();
        assert_eq!(alerts, news);
    }

    #[test]
    fn h4_what_was_told_because_of_an_alert_raises_none() {
        let failed = notice_to("taro@example.jp", NoticeStatus::Failed);
        assert!(Alert::of_notice("ntc_1", &failed).is_some());
        let mut of_alert = failed.clone();
        of_alert.data["event"]["type"] = json!(News::Failed.name());
        assert_eq!(Alert::of_notice("ntc_1", &of_alert), None, "whoever it was told to");
        assert_eq!(Alert::of_notice("ntc_1", &Notice { audience: Audience::Operator, ..failed }), None);
    }

    #[test]
    fn c2_a_dead_delivery_is_told_once_a_reason_and_that_of_an_alert_never() {
        let death = |reason: &str| DeadReason::terminal(reason, "no");
        let event =
            Stored { source: "stripe".into(), event_type: "charge.failed".into(), ..Stored::nothing() };
        let told =
            |event: &Stored, reason| Alert::of_delivery(Seq::from_i64(7), "app", event, &death(reason));
        assert_eq!(told(&event, "timeout").unwrap().id, told(&event, "timeout").unwrap().id);
        assert_ne!(told(&event, "timeout").unwrap().id, told(&event, "non_retryable").unwrap().id);
        for news in News::ALL {
            let own = Stored { source: OWN.into(), event_type: news.name().into(), ..Stored::nothing() };
            assert_eq!(told(&own, "timeout"), None, "{}", news.name());
            let theirs = Stored { source: "stripe".into(), ..own };
            assert!(told(&theirs, "timeout").is_some(), "somebody else's event of that name");
        }
        let paid = Stored { source: OWN.into(), event_type: "payment.paid".into(), ..Stored::nothing() };
        assert!(told(&paid, "timeout").is_some());
    }

    #[test]
    fn h4_an_alert_is_told_once_in_a_while_in_the_readers_language_and_shows_no_address() {
        let at = Time::from_ms(1_780_000_000_000);
        let alert =
            |at| Alert::of_channel("mail", News::Paused, "bad_credentials", "535 for taro@example.jp", at);
        assert_eq!(alert(at).id, alert(at.plus_ms(1_000)).id);
        assert_ne!(alert(at).id, alert(at.plus_ms(ALERT_MS)).id);
        let said = alert(at).announcement(at).data;
        assert_eq!(in_words(said.clone(), Language::En)["title"], "A channel is paused");
        assert_eq!(in_words(said.clone(), Language::Ja)["title"], "送信経路を停止しました");
        assert_eq!(said["detail"], "535 for t***@example.jp");
    }
}
