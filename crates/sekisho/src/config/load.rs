//! Reads the file, lays the environment over it, and reports everything that is wrong at once, by line.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use sekisho_core::provider;
use sekisho_core::source_name::Origin;
use sekisho_core::text::nearest;
use sekisho_store::StoreUrl;

use super::given::Given;
use super::settings::{SETTINGS, Setting, overlay_otel};
use super::table::Table;
use super::{Config, channel, compensation, key, notify, overrides, route, schedule, source};

pub struct LoadedConfig {
    pub config: Config,
    pub warnings: Vec<String>,
}

/// One thing that is wrong, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// `sekisho.toml:12`, or the name of an environment variable.
    pub place: String,
    /// In the file; after all lines for a variable.
    line: usize,
    pub message: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Reads a configuration. `environment` gives the variables, so that tests need not set any.
pub fn load(
    file: &Path,
    text: &str,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<LoadedConfig, Vec<ConfigProblem>> {
    read(Reader::new(file, text), text, environment)
}

/// The same without routes, schedules and keys: whoever only sends needs none of their secrets.
pub fn load_sources(
    file: &Path,
    text: &str,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<LoadedConfig, Vec<ConfigProblem>> {
    read(Reader { only_sources: true, ..Reader::new(file, text) }, text, environment)
}

fn read(
    mut reader: Reader<'_>,
    text: &str,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<LoadedConfig, Vec<ConfigProblem>> {
    match DeTable::parse(text) {
        Ok(table) => reader.read(table.get_ref()),
        Err(error) => reader.problem(error.span().unwrap_or_default(), error.message().to_owned()),
    }
    reader.overlay(environment);
    reader.load_templates();
    reader.config.name_the_house();
    let clashes = super::whole::clashes(&reader.config, &mut reader.warnings);
    for clash in clashes {
        let span = clash.block.and_then(|(kind, name)| block_span(text, kind, &name));
        reader.problem(span.unwrap_or_default(), clash.message);
    }
    // As a person reads the file.
    reader.problems.sort_by_key(|problem| problem.line);
    if reader.problems.is_empty() {
        Ok(LoadedConfig { config: reader.config, warnings: reader.warnings })
    } else {
        Err(reader.problems)
    }
}

/// Where the block of this kind and name begins.
fn block_span(text: &str, kind: &str, name: &str) -> Option<Range<usize>> {
    let table = DeTable::parse(text).ok()?;
    let blocks = table.get_ref().get(kind)?.get_ref().as_array()?.iter();
    let is_named = |block: &&Spanned<DeValue<'_>>| {
        block.get_ref().get("name").is_some_and(|written| written.get_ref().as_str() == Some(name))
    };
    blocks.into_iter().find(is_named).map(Spanned::span)
}

/// What a command needs that only looks: no secret is resolved, no key opened.
#[derive(Debug)]
pub struct Glance {
    pub store: StoreUrl,
    pub sources: Vec<String>,
    /// The provider of each, where it is known.
    pub origins: BTreeMap<String, Origin>,
    /// Names of [[key]] blocks.
    pub keys: Vec<String>,
    pub grace: Duration,
}

/// Reads only where the store is, what the sources are called, and until when tenants have access.
pub fn glance(
    file: &Path,
    text: &str,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<Glance, Vec<ConfigProblem>> {
    let mut reader = Reader::new(file, text);
    let (mut sources, mut origins, mut own_keys) = (Vec::new(), BTreeMap::new(), Vec::new());
    match DeTable::parse(text) {
        Ok(table) => {
            for (key, value) in table.get_ref() {
                match (key.get_ref().as_ref(), value.get_ref()) {
                    ("store", DeValue::Table(keys)) => reader.section("store", keys),
                    ("settlement", DeValue::Table(keys)) => reader.section("settlement", keys),
                    ("source", DeValue::Array(all)) => {
                        for one in all {
                            let text =
                                |key: &str| one.get_ref().get(key)?.get_ref().as_str().map(str::to_owned);
                            let provider = text("provider").and_then(|name| provider::find(&name));
                            let origin =
                                provider.map(|one| Origin { provider: one.about().name, livemode: None });
                            origins.extend(text("name").zip(origin));
                            sources.extend(text("name"));
                        }
                    }
                    ("key", DeValue::Array(all)) => own_keys.extend(names(all)),
                    _ => {}
                }
            }
        }
        Err(error) => reader.problem(error.span().unwrap_or_default(), error.message().to_owned()),
    }
    reader.overlay(environment);
    if reader.problems.is_empty() {
        let (store, grace) = (reader.config.store.url, reader.config.grace);
        Ok(Glance { store, sources, origins, keys: own_keys, grace })
    } else {
        Err(reader.problems)
    }
}

/// What blocks are called.
fn names<'b>(blocks: &'b DeArray<'_>) -> impl Iterator<Item = String> + 'b {
    let names = blocks.iter().filter_map(|one| one.get_ref().get("name"));
    names.filter_map(|name| name.get_ref().as_str().map(str::to_owned))
}

/// What may stand in the file several times. Who only sends needs the first.
const BLOCKS: [&str; 7] = [
    source::SourceDraft::NAME,
    route::RouteDraft::NAME,
    channel::ChannelDraft::NAME,
    notify::NotifyDraft::NAME,
    schedule::ScheduleDraft::NAME,
    compensation::CompensationDraft::NAME,
    key::KeyDraft::NAME,
];

struct Reader<'t> {
    file: String,
    text: &'t str,
    config: Config,
    warnings: Vec<String>,
    problems: Vec<ConfigProblem>,
    only_sources: bool,
}

impl<'t> Reader<'t> {
    fn new(file: &Path, text: &'t str) -> Self {
        Self {
            file: file.display().to_string(),
            text,
            config: Config::default(),
            warnings: Vec::new(),
            problems: Vec::new(),
            only_sources: false,
        }
    }

    fn problem(&mut self, span: Range<usize>, message: String) {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        self.problems.push(ConfigProblem { place: format!("{}:{line}", self.file), line, message });
    }

    fn read(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            let (name, span) = (key.get_ref().as_ref(), key.span());
            match value.get_ref() {
                _ if name == source::SourceDraft::NAME => {
                    let blocks = self.blocks::<source::SourceDraft>(span, value);
                    self.config.sources.extend(blocks);
                }
                // What others read may name blocks that were not.
                _ if self.only_sources && (BLOCKS[1..].contains(&name) || name == "notifications") => {}
                _ if name == route::RouteDraft::NAME => {
                    let blocks = self.blocks::<route::RouteDraft>(span, value);
                    self.config.routes.extend(blocks);
                }
                _ if name == channel::ChannelDraft::NAME => {
                    let blocks = self.blocks::<channel::ChannelDraft>(span, value);
                    self.config.channels.extend(blocks);
                }
                _ if name == notify::NotifyDraft::NAME => {
                    let blocks = self.blocks::<notify::NotifyDraft>(span, value);
                    self.config.rules.extend(blocks);
                }
                _ if name == schedule::ScheduleDraft::NAME => {
                    let blocks = self.blocks::<schedule::ScheduleDraft>(span, value);
                    self.config.schedules.extend(blocks);
                }
                _ if name == compensation::CompensationDraft::NAME => {
                    for rule in self.blocks::<compensation::CompensationDraft>(span, value) {
                        self.config.orders.set_rule(rule);
                    }
                }
                _ if name == key::KeyDraft::NAME => {
                    let blocks = self.blocks::<key::KeyDraft>(span, value);
                    self.config.keys.extend(blocks);
                }
                DeValue::Table(keys) if SETTINGS.iter().any(|setting| setting.section == name) => {
                    self.section(name, keys);
                }
                _ => {
                    let mut sections: Vec<_> = SETTINGS.iter().map(|setting| setting.section).collect();
                    sections.dedup();
                    self.problem(span, unknown_key(name, "the file", sections.into_iter().chain(BLOCKS)));
                }
            }
        }
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

    /// All blocks of one kind that are in order.
    fn blocks<T: Table>(&mut self, span: Range<usize>, value: &Spanned<DeValue<'_>>) -> Vec<T::Ready> {
        let DeValue::Array(blocks) = value.get_ref() else {
            let name = T::NAME;
            self.problem(span, format!("{name}s are a list: write [[{name}]] with double brackets"));
            return Vec::new();
        };
        blocks.iter().filter_map(|block| self.block::<T>(block)).collect()
    }

    fn block<T: Table>(&mut self, value: &Spanned<DeValue<'_>>) -> Option<T::Ready> {
        let section = T::NAME;
        let DeValue::Table(keys) = value.get_ref() else {
            self.problem(value.span(), format!("a {section} is a table: write [[{section}]] above its keys"));
            return None;
        };
        let mut draft = T::default();
        let before = self.problems.len();
        for (key, value) in keys {
            let name = key.get_ref().as_ref();
            let given = Given::from_toml(value.get_ref());
            let known = T::KEYS.iter().find(|known| known.name == name);
            let result = match known {
                Some(known) => {
                    (known.set)(&mut draft, &given).map_err(|message| format!("{section}.{name}: {message}"))
                }
                None => draft.set_other(name, &given),
            };
            if let Err(message) = result {
                self.problem(value.span(), message);
            }
        }
        if self.problems.len() > before {
            return None;
        }
        match draft.finish(&mut self.warnings) {
            Ok(ready) => Some(ready),
            Err(messages) => {
                messages.into_iter().for_each(|message| self.problem(value.span(), message));
                None
            }
        }
    }

    fn overlay(&mut self, environment: impl Iterator<Item = (String, String)>) {
        let mut of_otel = Vec::new();
        for (name, value) in environment {
            if name.starts_with("OTEL_") {
                of_otel.push((name, value));
                continue;
            }
            let Some(setting) = SETTINGS.iter().find(|setting| setting.variable() == name) else {
                self.check_variable(&name);
                continue;
            };
            if let Err(message) = (setting.set)(&mut self.config, &Given::from_env(&value)) {
                self.problems.push(ConfigProblem { place: name, line: usize::MAX, message });
            }
        }
        if let Err(message) = overlay_otel(&mut self.config, &of_otel) {
            let place = "OTEL_…".to_owned();
            self.problems.push(ConfigProblem { place, line: usize::MAX, message });
        }
    }
}

impl Reader<'_> {
    /// Every template is filled with samples now, so that none breaks when somebody is told something.
    fn load_templates(&mut self) {
        let Some(folder) = self.config.notifications.templates.clone().filter(|_| !self.only_sources) else {
            return;
        };
        match overrides::load(&folder) {
            Ok(templates) => self.config.templates = templates,
            Err(flaws) => {
                for flaw in flaws {
                    let place =
                        flaw.line.map_or_else(|| flaw.file.clone(), |line| format!("{}:{line}", flaw.file));
                    self.problems.push(ConfigProblem { place, line: usize::MAX, message: flaw.problem });
                }
            }
        }
    }

    /// `SEKISHO_SERVER_LISTN` is a slip; `SEKISHO_ANYTHING_ELSE` is somebody else's.
    fn check_variable(&mut self, name: &str) {
        let ours =
            |setting: &&Setting| name.starts_with(&format!("SEKISHO_{}_", setting.section.to_uppercase()));
        if SETTINGS.iter().any(|setting| ours(&setting)) {
            let known: Vec<_> = SETTINGS.iter().filter(ours).map(Setting::variable).collect();
            let message = unknown_key(name, "the environment", known.iter().map(String::as_str));
            self.problems.push(ConfigProblem { place: name.to_owned(), line: usize::MAX, message });
        }
    }
}

/// "There is no key X in Y; did you mean Z?"
pub fn unknown_key<'k>(key: &str, place: &str, known: impl Iterator<Item = &'k str>) -> String {
    let known: Vec<_> = known.collect();
    match nearest(key, known.iter().copied()) {
        Some(candidate) => format!("there is no key `{key}` in {place}; did you mean `{candidate}`?"),
        None => format!("there is no key `{key}` in {place}; known are {}", known.join(", ")),
    }
}

#[cfg(test)]
pub mod tests;
