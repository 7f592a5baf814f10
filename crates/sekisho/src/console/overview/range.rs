//! Over how long the overview looks back, and how finely.

use sekisho_core::Time;
use sekisho_core::language::Language;
use sekisho_core::time::{HOUR_MS, hour_of};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverviewRange {
    #[default]
    Day,
    Week,
    Month,
}

impl OverviewRange {
    pub const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    /// As it stands in the address.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Day => "24h",
            Self::Week => "7d",
            Self::Month => "30d",
        }
    }

    /// What is not known is a day.
    pub fn of(name: Option<&str>) -> Self {
        Self::ALL.into_iter().find(|range| Some(range.name()) == name).unwrap_or_default()
    }

    pub const fn label(self, lang: Language) -> &'static str {
        match self {
            Self::Day => lang.t("24 hours", "24時間"),
            Self::Week => lang.t("7 days", "7日間"),
            Self::Month => lang.t("30 days", "30日間"),
        }
    }

    pub const fn bars(self) -> usize {
        match self {
            Self::Day => 24,
            Self::Week => 28,
            Self::Month => 30,
        }
    }

    /// How long each bar is.
    pub const fn bar_ms(self) -> i64 {
        match self {
            Self::Day => HOUR_MS,
            Self::Week => 6 * HOUR_MS,
            Self::Month => 24 * HOUR_MS,
        }
    }

    /// Labels stand below every so many bars.
    pub const fn label_every(self) -> usize {
        match self {
            Self::Day | Self::Month => 6,
            Self::Week => 4,
        }
    }

    /// When its first bar begins; the last ends with the open hour.
    pub fn begin(self, now: Time) -> Time {
        hour_of(now).plus_ms(HOUR_MS - self.bar_ms() * self.bars() as i64)
    }
}
