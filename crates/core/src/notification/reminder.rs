//! Who of an office is reminded of which deadlines (G4): one mail a day for each member of staff, with what is due within
//! that person's own threshold. Nothing due, no mail.

use serde_json::{Value, json};

use super::compose::{House, Person, TenantPlace, frame};
use super::notice::Step;
use super::{Audience, Notice};
use crate::actor::Actor;
use crate::calendar::{Day, local_date};
use crate::directory::{Deadline, Staff, Subject, scoped};
use crate::schedule::zone;
use crate::time::Time;

/// One day's reminders.
#[derive(Clone, Copy, Debug)]
pub struct ReminderRun<'a> {
    pub today: Day,
    pub channel: &'a str,
    /// `{tenant}` stands for the office.
    pub dashboard_url: Option<&'a str>,
    pub house: &'a House,
}

pub const TEMPLATE: &str = "deadline-reminder";

/// How often it is looked whose morning it is: clocks differ by quarters of an hour.
pub const QUARTER_MS: i64 = 15 * 60_000;

/// Lines of one table in one mail; there are as many more as the count says.
const LINES_MAX: usize = 200;

/// Days that a tenant's key can run, seen from today.
const DAYS_BACK: i32 = 7;
const DAYS_AHEAD: i32 = 1;

/// A tenant's key asked for a day that is not near.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("date: a tenant's key runs days near today, up to {DAYS_BACK} days back and {DAYS_AHEAD} ahead")]
pub struct FarDay;

/// Whether an actor may run the reminders of this day. Each day is another mail for everybody, and the day's quota is
/// everybody's, so a tenant's key runs only days near today.
pub fn check_day(day: Day, actor: &Actor<'_>, zone: &str) -> Result<(), FarDay> {
    let today = local_date(zone, actor.at);
    let is_near = today.is_none_or(|today| (-DAYS_BACK..=DAYS_AHEAD).contains(&today.days_until(day)));
    if actor.tenant.is_none() || is_near { Ok(()) } else { Err(FarDay) }
}

/// What the run of a day is called.
pub fn batch(today: Day) -> String {
    format!("reminders/{today}")
}

/// The day whose reminders are due in a zone at a moment, on a clock that shows `remind_at` minutes since midnight.
pub fn due_day(zone_name: &str, at: Time, remind_at: i64) -> Option<Day> {
    let zone = zone(zone_name).ok()?;
    let clock = |at: Time| {
        let clock = jiff::Timestamp::from_millisecond(at.ms()).ok()?.to_zoned(zone.clone());
        Some((clock.date(), i64::from(clock.hour()) * 60 + i64::from(clock.minute())))
    };
    // The first quarter at which it is that late: when the clock jumps over the time, the one after the gap.
    let ((before, minute_before), (day, minute)) = (clock(at.plus_ms(-QUARTER_MS))?, clock(at)?);
    let is_due = minute >= remind_at && (before < day || minute_before < remind_at);
    if is_due { local_date(zone_name, at) } else { None }
}

impl ReminderRun<'_> {
    pub fn reminders(
        &self,
        office: &TenantPlace,
        staff: &[(String, Staff)],
        subjects: &[Subject],
        now: Time,
    ) -> Vec<Notice> {
        staff.iter().filter_map(|(id, one)| self.reminder(office, id, one, subjects, now)).collect()
    }

    fn reminder(
        &self,
        office: &TenantPlace,
        id: &str,
        staff: &Staff,
        subjects: &[Subject],
        now: Time,
    ) -> Option<Notice> {
        let due: Vec<_> = subjects
            .iter()
            .flat_map(|subject| {
                let due = subject.due_within(self.today, staff.threshold_days);
                due.into_iter().map(|due| (due.deadline, due.on, &*subject.name, due.days_left))
            })
            .collect();
        if due.is_empty() {
            return None;
        }
        let of = |wanted: Deadline| {
            let mut due: Vec<_> = due.iter().filter(|one| one.0 == wanted).collect();
            due.sort();
            let lines = due.iter().take(LINES_MAX).map(|(_, due_on, name, days_left)| {
                json!({ "name": name, "due_on": due_on, "days_left": days_left })
            });
            (lines.collect::<Vec<Value>>(), due.len())
        };
        let ((renewals, renewal_count), (assessments, assessment_count)) =
            (of(Deadline::Renewal), of(Deadline::Assessment));
        let person = Person::of_staff(id, staff);
        let language = person.language.or(office.language).unwrap_or(self.house.language);
        let office_name = office.name.as_deref().unwrap_or(&office.id);
        let staff_name = person.name.as_deref().unwrap_or(id);
        let mut data = frame(Some(office), &person, self.house, language);
        data["reminder"] = json!({
            "office": office_name,
            "staff_name": staff_name,
            "threshold_days": staff.threshold_days,
            "today": self.today,
            "renewals": renewals,
            "renewal_count": renewal_count,
            "assessments": assessments,
            "assessment_count": assessment_count,
            "dashboard_url": self.dashboard_url.map(|url| url.replace("{tenant}", &percent_encoded(&office.id))),
        });
        Some(Notice {
            key: format!("remind/{}/{}", self.today, scoped(Some(&office.id), id)),
            channel: self.channel.to_owned(),
            audience: Audience::Staff,
            to: person.address.clone(),
            name: person.name.clone(),
            language,
            template: TEMPLATE.into(),
            data,
            details: json!({
                "staff_name": staff_name,
                "office_name": office_name,
                "renewal_alert_count": renewal_count,
                "assessment_alert_count": assessment_count,
                "email_threshold_days": staff.threshold_days,
            }),
            tenant: Some(office.id.clone()),
            payment: None,
            event: None,
            batch: Some(batch(self.today)),
            message: None,
            again: 0,
            trace: None,
            steps: vec![Step::first(&person, now)],
        })
    }
}

/// As it may stand in an address.
fn percent_encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::super::NoticeStatus;
    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    fn member(id: &str, threshold_days: u16) -> (String, Staff) {
        let staff = Staff {
            tenant: "off 1".into(),
            family_name: Some("山田".into()),
            given_name: Some("花子".into()),
            email: format!("{id}@example.jp").parse().unwrap(),
            language: None,
            notifications: true,
            threshold_days,
        };
        (id.to_owned(), staff)
    }

    fn subject(name: &str, renewal: Option<&str>, assessment: Option<&str>) -> Subject {
        let day = |text: &str| text.parse().unwrap();
        Subject {
            tenant: "off 1".into(),
            name: name.into(),
            renewal_due_on: renewal.map(day),
            assessment_due_on: assessment.map(day),
        }
    }

    fn reminders(staff: &[(String, Staff)], subjects: &[Subject]) -> Vec<Notice> {
        let house = House { time_zone: "Asia/Tokyo".into(), ..House::default() };
        let url = Some("https://app.example.jp/offices/{tenant}");
        let today = "2026-11-16".parse().unwrap();
        let run = ReminderRun { today, channel: "mail", dashboard_url: url, house: &house };
        let office =
            TenantPlace {
                id: "off 1".into(), name: Some("青空事業所".into()), ..TenantPlace::default()
            };
        run.reminders(&office, staff, subjects, NOW)
    }

    #[test]
    fn g4_each_is_reminded_of_what_is_due_within_the_own_threshold() {
        let subjects = [
            subject("佐藤", Some("2026-12-16"), None),
            subject("鈴木", Some("2026-11-01"), Some("2026-11-20")),
            subject("高橋", Some("2027-11-16"), None),
            subject("田中", None, None),
        ];
        let notices = reminders(&[member("wide", 30), member("narrow", 3), member("none", 0)], &subjects);
        let counts = |n: usize| {
            let details = &notices[n].details;
            (details["renewal_alert_count"].as_u64(), details["assessment_alert_count"].as_u64())
        };
        assert_eq!(
            [counts(0), counts(1), counts(2)],
            [(Some(2), Some(1)), (Some(1), Some(0)), (Some(1), Some(0))]
        );
        let wide = &notices[0];
        assert_eq!(wide.key, "remind/2026-11-16/off 1/wide");
        assert_eq!(wide.name.as_deref(), Some("山田 花子"), "family name first");
        assert_eq!(wide.data["reminder"]["renewals"][0]["days_left"], -15, "what is overdue comes first");
        assert_eq!(wide.data["reminder"]["dashboard_url"], "https://app.example.jp/offices/off%201");
        assert_eq!((wide.batch.as_deref(), wide.audience), (Some("reminders/2026-11-16"), Audience::Staff));
        assert_eq!(wide.details["email_threshold_days"], 30);
    }

    #[test]
    fn g4_nothing_due_is_no_mail_and_switched_off_is_recorded() {
        assert_eq!(reminders(&[member("a", 30)], &[subject("佐藤", Some("2027-06-01"), None)]), []);
        let mut off = member("b", 30);
        off.1.notifications = false;
        let notices = reminders(&[off], &[subject("佐藤", Some("2026-11-17"), None)]);
        assert_eq!(notices[0].status(), NoticeStatus::Off);
    }

    #[test]
    fn g4_a_long_list_is_cut_and_counted() {
        let subjects: Vec<_> = (0..500).map(|n| subject(&format!("{n}"), Some("2026-11-17"), None)).collect();
        let notices = reminders(&[member("a", 30)], &subjects);
        let reminder = &notices[0].data["reminder"];
        assert_eq!(reminder["renewals"].as_array().map(Vec::len), Some(LINES_MAX));
        assert_eq!(reminder["renewal_count"], 500);
    }

    #[test]
    fn g4_it_is_morning_at_another_moment_in_every_zone() {
        let at = |text: &str| Time::parse_rfc3339(text).unwrap();
        let day = |zone: &str, text: &str| due_day(zone, at(text), 9 * 60).map(|day| day.to_string());
        assert_eq!(day("Asia/Tokyo", "2026-11-16T00:00:00Z").as_deref(), Some("2026-11-16"));
        assert_eq!(day("America/Los_Angeles", "2026-11-16T17:00:00Z").as_deref(), Some("2026-11-16"));
        assert_eq!(day("Asia/Kathmandu", "2026-11-16T03:15:00Z").as_deref(), Some("2026-11-16"));
        assert_eq!(day("Asia/Tokyo", "2026-11-16T00:15:00Z"), None);
        assert_eq!(day("Asia/Edo", "2026-11-16T00:00:00Z"), None);
        // 2027-03-14: in New York the clock jumps from 02:00 to 03:00, at 07:00 UTC.
        let early =
            |text: &str| due_day("America/New_York", at(text), 2 * 60 + 30).map(|day| day.to_string());
        assert_eq!(early("2027-03-14T07:00:00Z").as_deref(), Some("2027-03-14"), "at the end of the gap");
        assert_eq!(early("2027-03-14T07:15:00Z"), None, "and once");
        assert_eq!(early("2027-03-15T06:30:00Z").as_deref(), Some("2027-03-15"));
    }
    #[test]
    fn g4_a_tenants_key_runs_only_days_near_today() {
        let role = crate::audit::Role::ApiKey;
        let all = Actor { name: "app", role, tenant: None, at: NOW };
        let of_a = Actor { tenant: Some("a"), ..all };
        let run = |day: &str, actor: &Actor<'_>| check_day(day.parse().unwrap(), actor, "Asia/Tokyo").is_ok();
        // It is 2026-05-29 in Tokyo.
        for (day, is_near) in
            [("2026-05-21", false), ("2026-05-22", true), ("2026-05-30", true), ("2026-05-31", false)]
        {
            assert_eq!((run(day, &of_a), run(day, &all)), (is_near, true), "{day}");
        }
    }
}
