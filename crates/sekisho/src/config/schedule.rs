//! `[[schedule]]`: an event that Sekisho makes itself, at the times of a cron line.

use sekisho_core::schedule::Schedule as Times;

use super::table::{self, SettingKey, Table};

/// A schedule, checked and ready.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub name: String,
    pub times: Times,
    pub cron: String,
    pub timezone: String,
    /// The type of the events it makes.
    pub event_type: String,
    /// JSON, as written.
    pub data: Option<String>,
}

/// A schedule as written, before it is checked.
#[derive(Default)]
pub struct ScheduleDraft {
    name: Option<String>,
    cron: Option<String>,
    timezone: Option<String>,
    event_type: Option<String>,
    data: Option<String>,
}

const DATA_BYTES_MAX: usize = 64 << 10;
const TYPE_BYTES_MAX: usize = 255;

const KEYS: &[SettingKey<ScheduleDraft>] = &[
    SettingKey {
        name: "name",
        example: "\"nightly\"",
        help: "Letters, digits, - and _.",
        set: |draft, given| {
            draft.name = Some(table::name(given)?);
            Ok(())
        },
    },
    SettingKey {
        name: "cron",
        example: "\"0 3 * * *\"",
        help: "Minute, hour, day, month and weekday; six fields begin with seconds.",
        set: |draft, given| {
            draft.cron = Some(given.text()?);
            Ok(())
        },
    },
    SettingKey {
        name: "timezone",
        example: "\"UTC\"",
        help: "Whose clock the line speaks of: UTC, Asia/Tokyo, Europe/Berlin, …",
        set: |draft, given| {
            draft.timezone = Some(given.text()?);
            Ok(())
        },
    },
    SettingKey {
        name: "type",
        example: "\"schedule.nightly\"",
        help: "The type of its events; default: schedule.NAME.",
        set: |draft, given| {
            let text = given.text()?;
            if text.is_empty() || text.len() > TYPE_BYTES_MAX || text.chars().any(char::is_control) {
                return Err(format!(
                    "expected a type such as \"schedule.nightly\", up to {TYPE_BYTES_MAX} bytes"
                ));
            }
            draft.event_type = Some(text);
            Ok(())
        },
    },
    SettingKey {
        name: "data",
        example: "'{\"report\": \"daily\"}'",
        help: "JSON that its events carry.",
        set: |draft, given| {
            let text = given.text()?;
            if text.len() > DATA_BYTES_MAX {
                return Err(format!("expected at most {DATA_BYTES_MAX} bytes"));
            }
            serde_json::from_str::<serde_json::Value>(&text)
                .map_err(|error| format!("expected JSON such as '{{\"report\": \"daily\"}}': {error}"))?;
            draft.data = Some(text);
            Ok(())
        },
    },
];

impl Table for ScheduleDraft {
    const NAME: &'static str = "schedule";
    const ABOUT: &'static str = "One block per event that Sekisho makes by the clock.";
    const KEYS: &'static [SettingKey<Self>] = KEYS;
    type Ready = Schedule;

    fn finish(self, _warnings: &mut Vec<String>) -> Result<Schedule, Vec<String>> {
        let Some(name) = self.name else {
            return Err(vec!["a schedule needs a name: write name = \"nightly\"".into()]);
        };
        let Some(cron) = self.cron else {
            return Err(vec![format!("schedule {name} needs a time: write cron = \"0 3 * * *\"")]);
        };
        let timezone = self.timezone.unwrap_or_else(|| "UTC".into());
        let times =
            Times::parse(&cron, &timezone).map_err(|problem| vec![format!("schedule {name}: {problem}")])?;
        let event_type = self.event_type.unwrap_or_else(|| format!("schedule.{name}"));
        Ok(Schedule { name, times, cron, timezone, event_type, data: self.data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::tests::check;

    fn schedule(keys: &str) -> Result<Schedule, String> {
        check(&format!("[[schedule]]\n{keys}"), &[]).map(|mut config| config.schedules.remove(0))
    }

    #[test]
    fn h5_a_name_and_a_time_are_a_schedule() {
        let nightly = schedule("name = \"nightly\"\ncron = \"0 3 * * *\"\n").unwrap();
        assert_eq!((nightly.timezone.as_str(), nightly.event_type.as_str()), ("UTC", "schedule.nightly"));
        assert_eq!(nightly.data, None);
        assert!(nightly.times.is_due_at(sekisho_core::Time::parse_rfc3339("2026-02-02T03:00:00Z").unwrap()));
        let tokyo = schedule(
            "name = \"n\"\ncron = \"0 3 * * *\"\ntimezone = \"Asia/Tokyo\"\ntype = \"report.due\"\n",
        )
        .unwrap();
        assert!(tokyo.times.is_due_at(sekisho_core::Time::parse_rfc3339("2026-02-01T18:00:00Z").unwrap()));
        assert_eq!(tokyo.event_type, "report.due");
    }

    #[test]
    fn h5_what_is_wrong_with_a_schedule_is_said_with_a_cure() {
        let cases = [
            ("cron = \"0 3 * * *\"\n", "s.toml:1: a schedule needs a name"),
            ("name = \"n\"\n", "s.toml:1: schedule n needs a time: write cron"),
            ("name = \"n\"\ncron = \"at 3\"\n", "schedule n: \"at 3\" is no cron line: it has 2 fields"),
            ("name = \"n\"\ncron = \"0 3 * * *\"\ntimezone = \"Tokyo\"\n", "no time zone \"Tokyo\""),
            ("name = \"n\"\ndata = \"{\"\n", "s.toml:3: schedule.data: expected JSON"),
            ("name = \"n\"\ntype = \"\"\n", "s.toml:3: schedule.type: expected a type"),
            (
                "name = \"n\"\ncrom = \"\"\n",
                "s.toml:3: there is no key `crom` in [[schedule]]; did you mean `cron`?",
            ),
        ];
        for (keys, expected) in cases {
            let found = schedule(keys).unwrap_err();
            assert!(found.contains(expected), "{keys}\nexpected {expected}\nfound {found}");
        }
    }
}
