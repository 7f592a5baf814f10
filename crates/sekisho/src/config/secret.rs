//! Secrets by reference: `env:NAME` and `file:PATH`, or the text itself with a warning.

use std::path::Path;

use sekisho_core::Secret;

pub struct Resolved {
    pub text: String,
    /// It stood there itself instead of a reference.
    pub plain: bool,
}

/// Follows `env:NAME` and `file:PATH`. Errors name the reference, never what is behind it.
pub fn resolve(written: &str) -> Result<Resolved, String> {
    let text = if let Some(name) = written.strip_prefix("env:") {
        std::env::var(name).map_err(|_| format!("the environment variable {name} is not set"))?
    } else if let Some(path) = written.strip_prefix("file:") {
        let text = std::fs::read_to_string(Path::new(path))
            .map_err(|error| format!("can't read the file {path}: {error}"))?;
        text.trim_end_matches(['\r', '\n']).to_owned()
    } else {
        return Ok(Resolved { text: written.to_owned(), plain: true });
    };
    if text.trim().is_empty() {
        Err(format!("{written} is empty"))
    } else {
        Ok(Resolved { text, plain: false })
    }
}

/// All secrets of one block, named for the warning as `source stripe`.
pub fn resolve_all(
    owner: &str,
    written: &[String],
    warnings: &mut Vec<String>,
    problems: &mut Vec<String>,
) -> Vec<Secret> {
    let mut secrets = Vec::new();
    for one in written {
        match resolve(one) {
            Ok(resolved) => {
                if resolved.plain {
                    warnings.push(format!(
                        "{owner}: a secret stands in the configuration as plain text; env:NAME or file:PATH is safer"
                    ));
                }
                secrets.push(Secret::new(resolved.text));
            }
            Err(problem) => problems.push(problem),
        }
    }
    secrets
}
