//! What was given before the command: which configuration, which store, which server; and what they say.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use sekisho_core::source_name::Origin;

use super::client::Connection;
use super::output;
use crate::config::{
    Config, ConfigProblem, FILE, Glance, LoadedConfig, Source, StoreUrl, glance, load, load_sources,
};

/// Cheap to make; nothing is read before it is asked for.
pub struct Context {
    pub config: Option<PathBuf>,
    pub store: Option<String>,
    pub connection: Connection,
}

impl Context {
    /// The configuration this command works with. Without a file: the defaults and the source named `stripe`,
    /// whose secret the first `serve` generates.
    pub fn load(&self) -> anyhow::Result<LoadedConfig> {
        let (file, text) = self.read()?;
        self.with_store(load(&file, &text, std::env::vars()).map_err(to_mend)?)
    }

    /// The same without routes, schedules and keys, for whoever only sends.
    pub fn load_sources(&self) -> anyhow::Result<LoadedConfig> {
        let (file, text) = self.read()?;
        self.with_store(load_sources(&file, &text, std::env::vars()).map_err(to_mend)?)
    }

    fn read(&self) -> anyhow::Result<(PathBuf, String)> {
        match self.read_file()? {
            Some(read) => Ok(read),
            None => Ok((PathBuf::from("(built-in configuration)"), self.built_in()?)),
        }
    }

    fn with_store(&self, mut loaded: LoadedConfig) -> anyhow::Result<LoadedConfig> {
        if let Some(url) = self.store_url()? {
            loaded.config.store.url = url;
        }
        Ok(loaded)
    }

    /// Where the store is and what the sources are called: all that is needed to look, and no secret.
    pub fn glance(&self) -> anyhow::Result<Glance> {
        let (file, text) = self.read_file()?.unwrap_or_default();
        let mut seen = glance(&file, &text, std::env::vars()).map_err(to_mend)?;
        if self.is_built_in() {
            seen.sources.push("stripe".into());
            seen.origins.insert("stripe".into(), Origin { provider: "stripe", livemode: None });
        }
        if let Some(url) = self.store_url()? {
            seen.store = url;
        }
        Ok(seen)
    }

    /// The named file, or the usual one if it is there.
    fn read_file(&self) -> anyhow::Result<Option<(PathBuf, String)>> {
        let found = self.config.clone().or_else(|| Some(PathBuf::from(FILE)).filter(|file| file.exists()));
        let Some(file) = found else { return Ok(None) };
        let text = std::fs::read_to_string(&file);
        let text = text.with_context(|| format!("can't read the configuration {}", file.display()))?;
        Ok(Some((file, text)))
    }

    pub fn is_built_in(&self) -> bool {
        self.config.is_none() && !Path::new(FILE).exists()
    }

    pub fn store_url(&self) -> anyhow::Result<Option<StoreUrl>> {
        self.store
            .as_ref()
            .map(|url| url.parse().map_err(|error| anyhow::anyhow!("--store: {error}")))
            .transpose()
    }

    fn built_in(&self) -> anyhow::Result<String> {
        let secret = self.generated_secret()?;
        if !secret.exists() {
            bail!(
                "there is no {FILE} here, and no server was started in this folder without one: \
                 start one with `sekisho serve`, or name a configuration with --config FILE"
            );
        }
        Ok(format!(
            "[[source]]\nname = \"stripe\"\nprovider = \"stripe\"\nsecrets = [{}]\n",
            toml_text(&format!("file:{}", secret.display()))
        ))
    }

    /// Where the generated secret is kept: beside the SQLite file.
    pub fn generated_secret(&self) -> anyhow::Result<PathBuf> {
        let folder = match self.store_url()? {
            Some(StoreUrl::Sqlite(path)) => path.parent().map(Path::to_owned).unwrap_or_default(),
            _ => Config::data_folder(),
        };
        Ok(folder.join("stripe-secret"))
    }

    /// The same with the server that a command was given.
    pub fn to(self, connection: Connection) -> Self {
        Self { connection, ..self }
    }
}

/// Everything that is wrong, as one error.
fn to_mend(problems: Vec<ConfigProblem>) -> anyhow::Error {
    let lines: Vec<_> = problems.iter().map(|problem| format!("  {problem}")).collect();
    anyhow::anyhow!("the configuration has {}:\n{}", output::count(lines.len(), "problem"), lines.join("\n"))
}

fn toml_text(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The source a command means: the one named, or the only one there is.
pub fn choose<'c>(config: &'c Config, name: Option<&str>) -> anyhow::Result<&'c Source> {
    let names = || config.sources.iter().map(|source| &*source.name).collect::<Vec<_>>().join(", ");
    match (name, config.sources.as_slice()) {
        (_, []) => bail!("the configuration has no [[source]]"),
        (None, [only]) => Ok(only),
        (None, _) => bail!("there are several sources: choose one with --source ({})", names()),
        (Some(name), all) => match all.iter().find(|source| &*source.name == name) {
            Some(source) => Ok(source),
            None => bail!("there is no source {name}; configured are {}", names()),
        },
    }
}
