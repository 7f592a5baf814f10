//! Reads the file, lays the environment over it, and reports everything that is wrong at once, by line.

use std::fmt;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use sekisho_store::StoreUrl;

use super::Config;
use super::given::Given;
use super::settings::{SETTINGS, Setting};
use super::source::{Draft, SETTINGS as SOURCE_SETTINGS};

pub struct Loaded {
    pub config: Config,
    pub warnings: Vec<String>,
}

/// One thing that is wrong, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    /// `sekisho.toml:12`, or the name of an environment variable.
    pub place: String,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Reads a configuration. `environment` gives the variables, so that tests need not set any.
pub fn load(
    file: &Path,
    text: &str,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<Loaded, Vec<Problem>> {
    let mut reader = Reader::new(file, text);
    match DeTable::parse(text) {
        Ok(table) => reader.read(table.get_ref()),
        Err(error) => reader.problem(error.span().unwrap_or_default(), error.message().to_owned()),
    }
    reader.overlay(environment);
    if reader.problems.is_empty() {
        Ok(Loaded { config: reader.config, warnings: reader.warnings })
    } else {
        Err(reader.problems)
    }
}

/// What a command needs that only looks: no secret is resolved, no key opened.
#[derive(Debug)]
pub struct Glance {
    pub store: StoreUrl,
    pub sources: Vec<String>,
}

/// Reads only where the store is and what the sources are called.
pub fn glance(
    file: &Path,
    text: &str,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<Glance, Vec<Problem>> {
    let mut reader = Reader::new(file, text);
    let mut sources = Vec::new();
    match DeTable::parse(text) {
        Ok(table) => {
            for (key, value) in table.get_ref() {
                match (key.get_ref().as_ref(), value.get_ref()) {
                    ("store", DeValue::Table(keys)) => reader.section("store", keys),
                    ("source", DeValue::Array(all)) => {
                        let names = all.iter().filter_map(|one| one.get_ref().get("name"));
                        sources.extend(names.filter_map(|name| name.get_ref().as_str().map(str::to_owned)));
                    }
                    _ => {}
                }
            }
        }
        Err(error) => reader.problem(error.span().unwrap_or_default(), error.message().to_owned()),
    }
    reader.overlay(environment);
    if reader.problems.is_empty() {
        Ok(Glance { store: reader.config.store.url, sources })
    } else {
        Err(reader.problems)
    }
}

struct Reader<'t> {
    file: String,
    text: &'t str,
    config: Config,
    warnings: Vec<String>,
    problems: Vec<Problem>,
}

impl<'t> Reader<'t> {
    fn new(file: &Path, text: &'t str) -> Self {
        Self {
            file: file.display().to_string(),
            text,
            config: Config::default(),
            warnings: Vec::new(),
            problems: Vec::new(),
        }
    }

    fn problem(&mut self, span: Range<usize>, message: String) {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        self.problems.push(Problem { place: format!("{}:{line}", self.file), message });
    }

    fn read(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            let (name, span) = (key.get_ref().as_ref(), key.span());
            match value.get_ref() {
                DeValue::Array(sources) if name == "source" => {
                    sources.iter().for_each(|source| self.source(source));
                }
                DeValue::Table(_) if name == "source" => {
                    self.problem(span, "sources are a list: write [[source]] with double brackets".into());
                }
                DeValue::Table(keys) if SETTINGS.iter().any(|setting| setting.section == name) => {
                    self.section(name, keys);
                }
                _ => {
                    let mut sections: Vec<_> = SETTINGS.iter().map(|setting| setting.section).collect();
                    sections.dedup();
                    self.problem(span, unknown_key(name, "the file", sections.into_iter().chain(["source"])));
                }
            }
        }
        self.check_sources();
    }

    fn section(&mut self, section: &str, keys: &DeTable<'_>) {
        for (key, value) in keys {
            let name = key.get_ref().as_ref();
            let setting = SETTINGS.iter().find(|setting| setting.section == section && setting.key == name);
            let Some(setting) = setting else {
                let known =
                    SETTINGS.iter().filter(|setting| setting.section == section).map(|setting| setting.key);
                self.problem(key.span(), unknown_key(name, &format!("[{section}]"), known));
                continue;
            };
            if let Err(message) = (setting.set)(&mut self.config, &Given::from_toml(value.get_ref())) {
                self.problem(value.span(), format!("{section}.{name}: {message}"));
            }
        }
    }

    fn source(&mut self, value: &Spanned<DeValue<'_>>) {
        let DeValue::Table(keys) = value.get_ref() else {
            self.problem(value.span(), "a source is a table: write [[source]] above its keys".into());
            return;
        };
        let mut draft = Draft::default();
        let before = self.problems.len();
        for (key, value) in keys {
            let name = key.get_ref().as_ref();
            let given = Given::from_toml(value.get_ref());
            let result = match SOURCE_SETTINGS.iter().find(|setting| setting.key == name) {
                Some(setting) => (setting.set)(&mut draft, &given),
                None => own_setting(&given).map(|text| {
                    draft.own.insert(name.to_owned(), text);
                }),
            };
            if let Err(message) = result {
                self.problem(value.span(), format!("source.{name}: {message}"));
            }
        }
        if self.problems.len() > before {
            return;
        }
        match draft.finish(&mut self.warnings) {
            Ok(source) => self.config.sources.push(source),
            Err(messages) => messages.into_iter().for_each(|message| self.problem(value.span(), message)),
        }
    }

    fn check_sources(&mut self) {
        let mut clashes = Vec::new();
        for (n, source) in self.config.sources.iter().enumerate() {
            for earlier in &self.config.sources[..n] {
                if earlier.name == source.name {
                    clashes.push(format!("two sources are named {}: give one another name", source.name));
                } else if earlier.path == source.path {
                    clashes.push(format!(
                        "sources {} and {} share the path {}",
                        earlier.name, source.name, source.path
                    ));
                }
            }
        }
        clashes.into_iter().for_each(|clash| self.problem(0..0, clash));
    }

    fn overlay(&mut self, environment: impl Iterator<Item = (String, String)>) {
        for (name, value) in environment {
            let Some(setting) = SETTINGS.iter().find(|setting| setting.variable() == name) else {
                self.check_variable(&name);
                continue;
            };
            if let Err(message) = (setting.set)(&mut self.config, &Given::from_env(&value)) {
                self.problems.push(Problem { place: name, message });
            }
        }
    }
}

impl Reader<'_> {
    /// `SEKISHO_SERVER_LISTN` is a slip; `SEKISHO_ANYTHING_ELSE` is somebody else's.
    fn check_variable(&mut self, name: &str) {
        let ours =
            |setting: &&Setting| name.starts_with(&format!("SEKISHO_{}_", setting.section.to_uppercase()));
        if SETTINGS.iter().any(|setting| ours(&setting)) {
            let known: Vec<_> = SETTINGS.iter().filter(ours).map(Setting::variable).collect();
            let message = unknown_key(name, "the environment", known.iter().map(String::as_str));
            self.problems.push(Problem { place: name.to_owned(), message });
        }
    }
}

/// A provider's own key takes a text or a number.
fn own_setting(given: &Given) -> Result<String, String> {
    match given {
        Given::Integer(number) => Ok(number.to_string()),
        Given::List(list) => Ok(list.join(",")),
        other => other.text(),
    }
}

/// "There is no key X in Y; did you mean Z?"
pub fn unknown_key<'k>(key: &str, place: &str, known: impl Iterator<Item = &'k str>) -> String {
    let known: Vec<_> = known.collect();
    let nearest = known.iter().min_by_key(|candidate| distance(key, candidate));
    match nearest.filter(|candidate| distance(key, candidate) <= 3) {
        Some(candidate) => format!("there is no key `{key}` in {place}; did you mean `{candidate}`?"),
        None => format!("there is no key `{key}` in {place}; known are {}", known.join(", ")),
    }
}

/// How many letters must be changed, added or removed.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.chars().enumerate() {
            let change = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

/// The whole example file: every key with its help and its default.
pub fn example() -> String {
    let mut text = String::from(
        "# Sekisho: every setting, with its default. All of it may be left out but one [[source]].\n\
         # A variable such as SEKISHO_SERVER_LISTEN overrides the key `listen` of [server].\n",
    );
    let mut section = "";
    let line = |text: &mut String, help: &str, key: &str, value: &str, comment: &str| {
        writeln!(text, "# {help}\n{comment}{key} = {value}").expect("writing to a string can't fail");
    };
    for setting in SETTINGS {
        if setting.section != section {
            section = setting.section;
            writeln!(text, "\n[{section}]").expect("writing to a string can't fail");
        }
        line(&mut text, setting.help, setting.key, setting.default, "");
    }
    text.push_str("\n# One block per endpoint that a provider calls.\n[[source]]\n");
    for (n, setting) in SOURCE_SETTINGS.iter().enumerate() {
        // The first three are needed; the rest are shown as comments.
        line(&mut text, setting.help, setting.key, setting.example, if n < 3 { "" } else { "# " });
    }
    text.push_str("\n# Keys that only some providers have:\n");
    for provider in sekisho_core::provider::ALL {
        for setting in provider.about().settings {
            let name = provider.about().name;
            let example = format!("\"{}\"", setting.example);
            line(&mut text, &format!("{name}: {}", setting.help), setting.name, &example, "# ");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        load(Path::new("s.toml"), text, variables)
            .map(|loaded| loaded.config)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }

    const SOURCE: &str = "[[source]]\nname = \"stripe\"\nprovider = \"stripe\"\nsecrets = [\"whsec_1\"]\n";

    #[test]
    fn h5_the_example_file_is_the_one_the_program_prints() {
        let file = include_str!("../../../../sekisho.example.toml");
        assert!(
            file.trim_end() == example().trim_end(),
            "run `sekisho config example > sekisho.example.toml`"
        );
    }

    #[test]
    fn h5_the_example_is_complete_and_says_the_defaults() {
        let text = example().replace("env:STRIPE_WEBHOOK_SECRET", "whsec_1");
        let config = check(&text, &[]).unwrap();
        let default = Config::default();
        assert_eq!(config.server, default.server);
        assert_eq!(config.store, default.store);
        assert_eq!(config.gate, default.gate);
        assert_eq!(config.admission, default.admission);
        assert_eq!(config.log, default.log);
        for setting in SETTINGS {
            assert!(text.contains(&format!("\n{} = ", setting.key)), "{}", setting.key);
        }
        for setting in SOURCE_SETTINGS {
            assert!(text.contains(&format!("{} = ", setting.key)), "{}", setting.key);
        }
    }

    #[test]
    fn h5_every_example_of_a_source_key_is_itself_valid() {
        for setting in &SOURCE_SETTINGS[3..] {
            let text = format!("{SOURCE}{} = {}\n", setting.key, setting.example);
            let result = check(&text, &[]);
            if setting.key == "certificate" {
                assert!(result.unwrap_err().contains("can't read the file ./provider.pem"));
            } else {
                result.unwrap();
            }
        }
    }

    #[test]
    fn h5_a_few_lines_are_a_complete_configuration() {
        let config = check(SOURCE, &[]).unwrap();
        assert_eq!(&*config.sources[0].name, "stripe");
        assert_eq!(config.sources[0].path, "/webhooks/stripe");
        assert_eq!(config.sources[0].ack_status, 204);
    }

    #[test]
    fn h5_what_is_wrong_is_named_with_its_line_and_a_cure() {
        let cases = [
            (
                "[server]\nlistn = \"x\"\n",
                "s.toml:2: there is no key `listn` in [server]; did you mean `listen`?",
            ),
            ("[server]\nlisten = 80\n", "s.toml:2: server.listen: expected a text in quotes, found a number"),
            ("[server]\n\n\nlisten = \"here\"\n", "s.toml:4: server.listen: expected an address and a port"),
            ("[sever]\n", "s.toml:1: there is no key `sever` in the file; did you mean `server`?"),
            ("listen = \"x\"\n", "s.toml:1: there is no key `listen` in the file; known are server, store"),
            ("[source]\nname = \"x\"\n", "s.toml:1: sources are a list: write [[source]]"),
            ("[[source]]\nname = \"x\"\n", "s.toml:1: source x needs a provider"),
            (
                "[[source]]\nname = \"x\"\nprovider = \"strip\"\n",
                "there is no provider strip; known are stripe",
            ),
            ("[[source]]\nname = \"x y\"\n", "s.toml:2: source.name: expected 1 to 64 letters"),
            ("[[source]]\nname = \"x\"\nprovider = \"stripe\"\n", "`secrets` is missing"),
            ("[store]\nurl = \"mysql://x\"\n", "s.toml:2: store.url: a store is sqlite:PATH"),
            ("[server\n", "s.toml:1: "),
        ];
        for (text, expected) in cases {
            let found = check(text, &[]).unwrap_err();
            assert!(found.contains(expected), "{text}\nexpected {expected}\nfound {found}");
        }
        let typo = format!("{SOURCE}tolerence = \"5m\"\n");
        assert!(check(&typo, &[]).unwrap_err().contains("did you mean `tolerance`?"));
        assert!(check(&SOURCE.repeat(2), &[]).unwrap_err().contains("two sources are named stripe"));
    }

    #[test]
    fn h5_everything_wrong_is_reported_at_once() {
        let found = check("[server]\nlisten = 1\nbody_timeout = \"soon\"\n[log]\nlevel = \"loud\"\n", &[])
            .unwrap_err();
        assert_eq!(found.lines().count(), 3, "{found}");
    }

    #[test]
    fn h5_the_environment_overrides_the_file() {
        let text = format!("[server]\nlisten = \"127.0.0.1:1\"\n{SOURCE}");
        let config =
            check(&text, &[("SEKISHO_SERVER_LISTEN", "127.0.0.1:2"), ("SEKISHO_GATE_ENTRIES", "7")]).unwrap();
        assert_eq!(config.server.listen.port(), 2);
        assert_eq!(config.gate.entries, 7);
        let found = check(&text, &[("SEKISHO_LOG_LEVEL", "loud")]).unwrap_err();
        assert!(found.contains("SEKISHO_LOG_LEVEL: expected"));
        let found = check(&text, &[("SEKISHO_SERVER_LISTN", "127.0.0.1:2")]).unwrap_err();
        assert!(found.contains("did you mean `SEKISHO_SERVER_LISTEN`?"), "{found}");
        check(&text, &[("SEKISHO_TEST_POSTGRES", "x")]).unwrap();
    }

    #[test]
    fn h2_to_look_no_secret_is_needed() {
        let text =
            format!("[store]\nurl = \"sqlite:x.db\"\n{}", SOURCE.replace("whsec_1", "env:SEKISHO_NO_SUCH"));
        let glance = glance(Path::new("s.toml"), &text, std::iter::empty()).ok().unwrap();
        assert_eq!(
            (glance.store.to_string().as_str(), glance.sources.as_slice()),
            ("sqlite:x.db", &["stripe".to_owned()][..])
        );
    }

    #[test]
    fn h3_a_secret_is_found_by_reference_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "whsec_canary\n").unwrap();
        let text = SOURCE.replace("whsec_1", &format!("file:{}", file.display()));
        let config = check(&text, &[]).unwrap();
        assert_eq!(config.sources[0].setup.secrets[0].expose(), "whsec_canary");
        assert!(!format!("{config:?} {:?}", config.sources[0].setup).contains("canary"));
        let found = check(&SOURCE.replace("whsec_1", "env:SEKISHO_NO_SUCH"), &[]).unwrap_err();
        assert!(found.contains("the environment variable SEKISHO_NO_SUCH is not set"), "{found}");
        let loaded = load(Path::new("s.toml"), SOURCE, std::iter::empty()).ok().unwrap();
        assert!(loaded.warnings[0].contains("plain text"));
        assert!(!loaded.warnings[0].contains("whsec_1"));
    }
}
