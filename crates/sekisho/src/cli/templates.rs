//! `sekisho templates`: what notices look like. Lists and shows them, writes the shipped ones out as a start for one's
//! own, and checks a folder of them as the server would. Needs no server, no store and no configuration.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use sekisho_core::language::Language;
use sekisho_core::notification::{Flaw, Rendered, Templates};

use super::output::{count, json_out, line_out, table};
use crate::config::overrides;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// With the templates of this folder over the shipped ones
    #[arg(long, global = true, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List the templates there are (the same as without a command)
    List {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Fill a template with sample data and print it
    Preview(Preview),
    /// Write the shipped templates into a folder, as a start for your own; nothing is overwritten
    Export {
        #[arg(value_name = "DIR")]
        to: PathBuf,
    },
    /// Say everything that is wrong with a folder of templates
    Check {
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

#[derive(clap::Args)]
struct Preview {
    name: String,
    /// ja or en
    #[arg(long, default_value = "ja")]
    language: Language,
    /// With only what is always known, instead of everything
    #[arg(long)]
    sparse: bool,
    /// Print only this part; otherwise subject and text
    #[arg(long)]
    part: Option<Part>,
    /// Write the HTML to this file, to be opened in a browser
    #[arg(long, value_name = "FILE", conflicts_with = "part")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Part {
    Subject,
    Text,
    Html,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let folder = args.folder.as_deref();
    match args.command {
        None => list(&templates(folder)?, args.json),
        Some(Command::List { json }) => list(&templates(folder)?, json || args.json),
        Some(Command::Preview(preview)) => show(&preview, &templates(folder)?)?,
        Some(Command::Export { to }) => export(&to)?,
        Some(Command::Check { folder }) => {
            let templates = templates(Some(&folder))?;
            line_out(&format!("{} OK", count(templates.names().len(), "template")));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn templates(folder: Option<&Path>) -> anyhow::Result<Templates> {
    folder.map_or_else(|| Ok(Templates::shipped()), |folder| overrides::load(folder).map_err(to_mend))
}

/// Everything that is wrong, as one error.
fn to_mend(flaws: Vec<Flaw>) -> anyhow::Error {
    let lines: Vec<_> = flaws.iter().map(|flaw| format!("  {flaw}")).collect();
    anyhow::anyhow!("the templates have {}:\n{}", count(lines.len(), "problem"), lines.join("\n"))
}

fn list(templates: &Templates, as_json: bool) {
    let is_shipped = |name: &str| Templates::shipped_files().iter().any(|(file, _)| of(file) == name);
    let each = templates.names().into_iter().map(|name| {
        let has_html = Language::ALL.into_iter().all(|language| templates.has_html(name, language));
        let subject = subject(templates, name);
        (name, if is_shipped(name) { "shipped" } else { "yours" }, has_html, subject)
    });
    if as_json {
        each.for_each(|(name, from, has_html, subject)| {
            json_out(&serde_json::json!({
                "template": name, "from": from, "html": has_html, "sample_subject": subject,
            }));
        });
        return;
    }
    let rows: Vec<_> = each
        .map(|(name, from, has_html, subject)| {
            let parts = if has_html { "text, html" } else { "text" };
            vec![name.to_owned(), from.to_owned(), parts.to_owned(), subject]
        })
        .collect();
    table(&["TEMPLATE", "FROM", "PARTS", "SUBJECT, WITH SAMPLE DATA"], &rows);
}

/// The template that a file belongs to.
fn of(file: &str) -> &str {
    file.split('.').next().unwrap_or(file)
}

fn subject(templates: &Templates, name: &str) -> String {
    let sample = Templates::samples(name, Language::En).into_iter().next();
    let rendered = sample.and_then(|(_, data)| templates.render(name, Language::En, &data).ok());
    rendered.map(|rendered| rendered.subject).unwrap_or_default()
}

fn show(preview: &Preview, templates: &Templates) -> anyhow::Result<()> {
    let name = &preview.name;
    if !templates.has(name) {
        bail!("there is no template {name}; known are {}", templates.names().join(", "));
    }
    let wanted = if preview.sparse { "sparse" } else { "full" };
    let samples = Templates::samples(name, preview.language).into_iter();
    let (_, data) = samples
        .into_iter()
        .find(|(sample, _)| *sample == wanted)
        .with_context(|| format!("there is no {wanted} sample for {name}"))?;
    let Rendered { subject, text, html } = templates.render(name, preview.language, &data)?;
    let html = || html.with_context(|| format!("{name} has no HTML part"));
    if let Some(file) = &preview.out {
        std::fs::write(file, html()?).with_context(|| format!("can't write {}", file.display()))?;
        line_out(&format!("wrote {}", file.display()));
        return Ok(());
    }
    match preview.part {
        None => line_out(&format!("Subject: {subject}\n\n{}", text.trim_end())),
        Some(Part::Subject) => line_out(&subject),
        Some(Part::Text) => line_out(text.trim_end()),
        Some(Part::Html) => line_out(html()?.trim_end()),
    }
    Ok(())
}

fn export(to: &Path) -> anyhow::Result<()> {
    let files = Templates::shipped_files();
    let there = files.iter().map(|(file, _)| to.join(file)).find(|path| path.symlink_metadata().is_ok());
    if let Some(path) = there {
        bail!("{} is already there, and is not overwritten: choose an empty folder", path.display());
    }
    std::fs::create_dir_all(to).with_context(|| format!("can't make the folder {}", to.display()))?;
    for (file, content) in files {
        let path = to.join(file);
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .and_then(|mut file| file.write_all(content.as_bytes()))
            .with_context(|| format!("can't write {}", path.display()))?;
    }
    line_out(&format!("wrote {} into {}", count(files.len(), "file"), to.display()));
    line_out("keep those that you change and delete the rest: what is not there stays as shipped");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g3_exported_templates_are_good_and_nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("mine");
        export(&to).unwrap();
        let templates = overrides::load(&to).unwrap();
        assert_eq!(templates.names(), Templates::shipped().names());
        let again = export(&to).unwrap_err().to_string();
        assert!(again.contains("not overwritten"), "{again}");
    }
}
