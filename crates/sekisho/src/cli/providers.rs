//! `sekisho providers`: what can be written in `provider = "…"`. The README's list comes from here.

use std::process::ExitCode;

use sekisho_core::provider::{ALL, AboutProvider};

use super::output::{line_out, table};

#[derive(clap::Args)]
pub struct Args {
    /// As a Markdown table
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.markdown {
        line_out(markdown().trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    if args.json {
        for about in ALL.iter().map(|provider| provider.about()) {
            super::output::json_out(&serde_json::json!({
                "provider": about.name,
                "title": about.title,
                "proof": about.proof,
                "trust": about.trust.name(),
                "settings": about.settings.iter().map(|setting| setting.name).collect::<Vec<_>>(),
            }));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<_> = ALL
        .iter()
        .map(|provider| provider.about())
        .map(|about| {
            vec![about.name.to_owned(), about.title.to_owned(), about.proof.to_owned(), needs(about)]
        })
        .collect();
    table(&["PROVIDER", "WHO", "PROVEN BY", "NEEDS"], &rows);
    Ok(ExitCode::SUCCESS)
}

/// What must stand in `[[source]]` besides name and provider.
fn needs(about: &AboutProvider) -> String {
    let mut needs = Vec::new();
    if !about.secret.is_empty() {
        needs.push("secrets");
    }
    if about.signs_url {
        needs.push("public_url");
    }
    needs.extend(about.settings.iter().filter(|setting| setting.required).map(|setting| setting.name));
    needs.join(", ")
}

/// The table as it stands in the README.
pub fn markdown() -> String {
    let mut text = String::from("| `provider` | who | proven by | needs |\n|---|---|---|---|\n");
    for about in ALL.iter().map(|provider| provider.about()) {
        text += &format!("| `{}` | {} | {} | {} |\n", about.name, about.title, about.proof, needs(about));
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn h6_the_readmes_list_providers_as_they_are() {
        for readme in [include_str!("../../../../README.md"), include_str!("../../../../README.ja.md")] {
            assert!(readme.contains(&super::markdown()), "run `sekisho providers --markdown` and paste it");
        }
    }
}
