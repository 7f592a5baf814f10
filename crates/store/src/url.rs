//! Where a store is: `sqlite:PATH` or `postgres://…`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    Sqlite(PathBuf),
    /// May hold a password: see the `Display` of this type.
    Postgres(String),
}

impl FromStr for StoreUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err("sqlite: needs a path, such as sqlite:./sekisho-data/sekisho.db".into());
            }
            return Ok(Self::Sqlite(PathBuf::from(path)));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return match tokio_postgres::Config::from_str(text) {
                Ok(_) => Ok(Self::Postgres(text.to_owned())),
                Err(_) if text.contains("sslmode=verify-") => {
                    Err("sslmode is disable, prefer or require here; certificates are always verified".into())
                }
                // The driver's message may quote the address, password and all.
                Err(_) => Err("not a PostgreSQL address: write postgres://user@host:5432/database".into()),
            };
        }
        Err("a store is sqlite:PATH or postgres://user@host:5432/database".into())
    }
}

/// Without the password, so that it can be printed and logged.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => f.write_str(&without_password(url)),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    // The driver takes everything up to the first @ for credentials, whatever stands in them.
    let (user, rest) = match rest.split_once('@') {
        Some((user, rest)) => (format!("{}@", user.split(':').next().unwrap_or_default()), rest),
        None => (String::new(), rest),
    };
    let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
    let base = format!("{scheme}://{user}{place}");
    let kept: Vec<_> = query
        .into_iter()
        .flat_map(|query| query.split('&'))
        .filter(|pair| !pair.starts_with("password"))
        .collect();
    if kept.is_empty() { base } else { format!("{base}?{}", kept.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_bad_ones_say_what_to_write() {
        assert_eq!("sqlite:a/b.db".parse(), Ok(StoreUrl::Sqlite("a/b.db".into())));
        assert_eq!("sqlite:///var/s.db".parse(), Ok(StoreUrl::Sqlite("/var/s.db".into())));
        for bad in ["", "sqlite:", "mysql://x", "postgres://[", "/var/s.db"] {
            let message = bad.parse::<StoreUrl>().unwrap_err();
            assert!(message.contains("sqlite:") || message.contains("postgres://"), "{bad}: {message}");
        }
    }

    #[test]
    fn h3_a_password_is_never_printed() {
        for url in [
            "postgres://app:canary@db:5432/x",
            "postgres://app:pa?canary@db/x",
            "postgresql://app:canary@db/x?sslmode=require&password=canary",
        ] {
            let url: StoreUrl = url.parse().unwrap();
            assert!(!format!("{url} {url:?}").contains("canary"));
            assert!(url.to_string().contains("app@db"));
        }
    }
}
