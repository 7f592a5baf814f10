//! A value as the operator wrote it, and the ways to understand it. Every refusal says what to write instead.

use std::time::Duration;

use toml::de::DeValue;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    Text(String),
    /// The text of an environment variable, where commas make a list.
    Variable(String),
    Integer(i64),
    /// As it is written.
    Decimal(String),
    Boolean(bool),
    List(Vec<String>),
    /// Something no setting takes, by its name.
    Other(&'static str),
}

type Understood<T> = Result<T, String>;

impl Given {
    pub fn from_toml(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Self::Text(text.to_string()),
            DeValue::Boolean(boolean) => Self::Boolean(*boolean),
            DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
                .map_or(Self::Other("a number that is too large"), Self::Integer),
            DeValue::Float(number) => Self::Decimal(number.as_str().to_owned()),
            DeValue::Array(values) => {
                let texts: Option<Vec<_>> =
                    values.iter().map(|one| one.get_ref().as_str().map(str::to_owned)).collect();
                texts.map_or(Self::Other("a list of other things than texts"), Self::List)
            }
            other => Self::Other(other.type_str()),
        }
    }

    /// Environment variables are text: numbers, booleans and comma-separated lists are read out of it.
    pub fn from_env(text: &str) -> Self {
        match text {
            "true" => Self::Boolean(true),
            "false" => Self::Boolean(false),
            _ => text.parse().map_or_else(|_| Self::Variable(text.to_owned()), Self::Integer),
        }
    }

    pub fn text(&self) -> Understood<String> {
        match self {
            Self::Text(text) | Self::Variable(text) => Ok(text.clone()),
            other => Err(format!("expected a text in quotes, found {}", other.kind())),
        }
    }

    pub fn boolean(&self) -> Understood<bool> {
        match self {
            Self::Boolean(boolean) => Ok(*boolean),
            other => Err(format!("expected true or false, found {}", other.kind())),
        }
    }

    pub fn count(&self, least: i64, most: i64) -> Understood<i64> {
        match self {
            Self::Integer(number) if (least..=most).contains(number) => Ok(*number),
            Self::Integer(number) => Err(format!("{number} is not between {least} and {most}")),
            other => Err(format!("expected a number between {least} and {most}, found {}", other.kind())),
        }
    }

    /// A share of all: from 0 to 1.
    pub fn share(&self) -> Understood<f64> {
        let read = match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Decimal(text) | Self::Text(text) | Self::Variable(text) => {
                text.replace('_', "").parse().ok()
            }
            Self::Boolean(_) | Self::List(_) | Self::Other(_) => None,
        };
        let wanted = "expected a number between 0 and 1, such as 0.1";
        read.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| wanted.to_owned())
    }

    pub fn list(&self) -> Understood<Vec<String>> {
        match self {
            Self::List(list) => Ok(list.clone()),
            Self::Variable(text) => Ok(text.split(',').map(|one| one.trim().to_owned()).collect()),
            // Not split: a secret may hold a comma.
            Self::Text(text) => Ok(vec![text.clone()]),
            other => Err(format!("expected a list such as [\"a\", \"b\"], found {}", other.kind())),
        }
    }

    /// `"1500ms"`, `"10s"`, `"5m"`, `"24h"`, or a number of seconds.
    pub fn duration(&self) -> Understood<Duration> {
        const UNITS: [(&str, u64); 5] =
            [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
        let wanted = || "expected a time such as \"1500ms\", \"10s\", \"5m\" or \"24h\"".to_owned();
        match self {
            Self::Integer(seconds) => u64::try_from(*seconds).map(Duration::from_secs).map_err(|_| wanted()),
            Self::Text(text) | Self::Variable(text) => UNITS
                .iter()
                .find_map(|(unit, ms)| text.strip_suffix(unit)?.trim().parse::<u64>().ok()?.checked_mul(*ms))
                .map(Duration::from_millis)
                .ok_or_else(wanted),
            _ => Err(wanted()),
        }
    }

    /// `"512KiB"`, `"4MiB"`, or a number of bytes.
    pub fn bytes(&self) -> Understood<usize> {
        const UNITS: [(&str, usize); 3] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
        let wanted = || "expected a size such as \"512KiB\" or \"4MiB\"".to_owned();
        match self {
            Self::Integer(bytes) => usize::try_from(*bytes).map_err(|_| wanted()),
            Self::Text(text) | Self::Variable(text) => UNITS
                .iter()
                .find_map(|(unit, bytes)| {
                    text.strip_suffix(unit)?.trim().parse::<usize>().ok()?.checked_mul(*bytes)
                })
                .ok_or_else(wanted),
            _ => Err(wanted()),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Variable(_) => "a text",
            Self::Integer(_) | Self::Decimal(_) => "a number",
            Self::Boolean(_) => "true or false",
            Self::List(_) => "a list",
            Self::Other(kind) => kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_understood_or_explained() {
        let text = |text: &str| Given::Text(text.into());
        assert_eq!(text("1500ms").duration(), Ok(Duration::from_millis(1500)));
        assert_eq!(text("24h").duration(), Ok(Duration::from_hours(24)));
        assert_eq!(Given::Integer(3).duration(), Ok(Duration::from_secs(3)));
        assert_eq!(text("4MiB").bytes(), Ok(4 << 20));
        for bad in ["", "5", "5 weeks", "-1s", "1e3s"] {
            assert!(text(bad).duration().unwrap_err().contains("1500ms"), "{bad}");
            assert!(text(bad).bytes().unwrap_err().contains("4MiB"), "{bad}");
        }
    }

    #[test]
    fn environment_texts_become_what_they_look_like() {
        assert_eq!(Given::from_env("true"), Given::Boolean(true));
        assert_eq!(Given::from_env("17"), Given::Integer(17));
        assert_eq!(Given::from_env("127.0.0.1:80").text(), Ok("127.0.0.1:80".into()));
        assert_eq!(Given::from_env("5m").duration(), Ok(Duration::from_mins(5)));
        assert_eq!(Given::from_env("4MiB").bytes(), Ok(4 << 20));
        assert_eq!(Given::from_env("a, b").list(), Ok(vec!["a".to_owned(), "b".to_owned()]));
    }
}
