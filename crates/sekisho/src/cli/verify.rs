//! `sekisho verify`: takes a saved request and says which check fails and why, most likely; or checks a whole file
//! of signature vectors.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use sekisho_core::diagnose::{Diagnosis, diagnose};
use sekisho_core::provider::{self, Certificate, Provider, Request, Setup, vectors};
use sekisho_core::{Secret, Time};
use serde::Deserialize;
use serde_json::json;

use super::output::{json_out, line_out};
use super::{Context, choose};
use crate::config::resolve;
use crate::now;

#[derive(clap::Args)]
pub struct Args {
    /// A file of signature vectors: checks each at its own time
    #[arg(long, value_name = "FILE", conflicts_with_all = ["request", "source", "provider"])]
    vectors: Option<PathBuf>,
    /// A saved request: as HTTP text (request line, headers, empty line, body) or as JSON with
    /// `headers` [[name, value]…] and `body` or `body_base64`
    #[arg(long, value_name = "FILE", required_unless_present = "vectors")]
    request: Option<PathBuf>,
    /// Judge it as this configured source would
    #[arg(long)]
    source: Option<String>,
    /// Judge it as this provider, without a configuration
    #[arg(long, conflicts_with = "source")]
    provider: Option<String>,
    /// With --provider: env:NAME or file:PATH of the secret
    #[arg(long, requires = "provider", value_name = "REFERENCE")]
    secret: Vec<String>,
    /// With --provider: the address the provider calls
    #[arg(long, requires = "provider", value_name = "URL")]
    public_url: Option<String>,
    /// With --provider: one of its own settings, as name=value
    #[arg(long, requires = "provider", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// PayPal and SNS: the certificate the request names, saved as PEM; a configured one is used otherwise
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// The time of receipt, in seconds since 1970; now if not given
    #[arg(long, value_name = "SECONDS")]
    at: Option<i64>,
    /// As one JSON object; with --vectors, one for each of them
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    if let Some(file) = &args.vectors {
        return check_vectors(file, args.json);
    }
    let file = args.request.as_deref().context("--request FILE is missing")?;
    let saved = read(file)?;
    let at = args.at.map_or_else(now, Time::from_seconds);
    let given = args.certificate.as_deref().map(read_certificate).transpose()?;
    if let Some(name) = &args.provider {
        let Some(provider) = provider::find(name) else {
            bail!("there is no provider {name}; `sekisho providers` lists them");
        };
        return judge(provider, &setup(&args)?, given.as_ref(), &saved, at, args.json);
    }
    let config = context.load_sources()?.config;
    let source = choose(&config, args.source.as_deref())?;
    let certificate = given.as_ref().or(source.certificate.as_deref());
    judge(source.provider, &source.setup, certificate, &saved, at, args.json)
}

fn check_vectors(file: &Path, as_json: bool) -> anyhow::Result<ExitCode> {
    let text = std::fs::read_to_string(file).with_context(|| format!("can't read {}", file.display()))?;
    let vectors = vectors::parse(&text).map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?;
    let mut failed = 0;
    for vector in &vectors {
        let verdict = vector.check();
        let word = if verdict.passed { "ok  " } else { "FAIL" };
        failed += usize::from(!verdict.passed);
        if as_json {
            let (name, passed, message) = (&verdict.name, verdict.passed, &verdict.message);
            json_out(&json!({ "name": name, "passed": passed, "message": message }));
        } else {
            line_out(format!("{word} {} {}", verdict.name, verdict.message).trim_end());
        }
    }
    if !as_json {
        line_out(&format!("{} passed, {failed} failed", vectors.len() - failed));
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn setup(args: &Args) -> anyhow::Result<Setup> {
    let mut setup = Setup { public_url: args.public_url.clone(), ..Setup::default() };
    for reference in &args.secret {
        setup.secrets.push(Secret::new(resolve(reference).map_err(anyhow::Error::msg)?.text));
    }
    for pair in &args.set {
        let (name, value) =
            pair.split_once('=').with_context(|| format!("--set takes name=value, not {pair}"))?;
        setup.settings.insert(name.to_owned(), value.to_owned());
    }
    Ok(setup)
}

fn judge(
    provider: &dyn Provider,
    setup: &Setup,
    certificate: Option<&Certificate>,
    saved: &Saved,
    at: Time,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let request = Request {
        method: &saved.method,
        headers: &saved.headers,
        query: &saved.query,
        body: &saved.body,
        certificate,
    };
    let diagnosis = diagnose(provider, setup, &request, at);
    if json {
        let is_told = diagnosis.needed_certificate.is_none();
        json_out(&json!({
            "genuine": is_told.then_some(diagnosis.genuine),
            "reason": diagnosis.refusal.as_ref().map(provider::RequestRefusal::reason),
            "refusal": diagnosis.refusal.as_ref().map(ToString::to_string),
            "cause": diagnosis.cause,
            "needed_certificate": diagnosis.needed_certificate,
        }));
    } else {
        for check in &diagnosis.checks {
            let word = if check.ok { "ok  " } else { "FAIL" };
            line_out(format!("{word} {}  {}", check.name, check.detail).trim_end());
        }
        conclude(&diagnosis);
    }
    Ok(if diagnosis.genuine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn conclude(diagnosis: &Diagnosis) {
    if let Some(url) = &diagnosis.needed_certificate {
        line_out(&format!("?    certificate  missing: {url}"));
        line_out("whether the request is genuine can't be told without its certificate");
        line_out(&format!(
            "next: curl -o certificate.pem {url}, and the same again with --certificate certificate.pem"
        ));
        return;
    }
    line_out(if diagnosis.genuine { "the request is genuine" } else { "the request would be refused" });
    if let Some(cause) = &diagnosis.cause {
        line_out(&format!("likely cause: {cause}"));
    }
}

fn read_certificate(file: &Path) -> anyhow::Result<Certificate> {
    let pem = std::fs::read(file).with_context(|| format!("can't read {}", file.display()))?;
    Certificate::from_pem(&pem).map_err(|what| anyhow::anyhow!("the certificate {} {what}", file.display()))
}

/// A request as somebody saved it.
struct Saved {
    method: Method,
    query: String,
    headers: HeaderMap,
    body: Vec<u8>,
}

#[derive(Deserialize)]
struct SavedJson {
    headers: Vec<(String, String)>,
    method: Option<String>,
    query: Option<String>,
    body: Option<String>,
    body_base64: Option<String>,
}

fn read(file: &Path) -> anyhow::Result<Saved> {
    let bytes = std::fs::read(file).with_context(|| format!("can't read {}", file.display()))?;
    let saved = if bytes.first() == Some(&b'{') { read_json(&bytes) } else { read_http(&bytes) };
    saved.with_context(|| format!("{} is not a saved request", file.display()))
}

fn read_json(bytes: &[u8]) -> anyhow::Result<Saved> {
    let saved: SavedJson = serde_json::from_slice(bytes)?;
    let body = match (saved.body, saved.body_base64) {
        (Some(text), _) => text.into_bytes(),
        (None, Some(text)) => provider::decode_base64(&text).context("body_base64 is not base 64")?,
        (None, None) => bail!("it has neither `body` nor `body_base64`"),
    };
    let mut headers = HeaderMap::new();
    for (name, value) in &saved.headers {
        headers.append(HeaderName::try_from(name.as_str())?, HeaderValue::try_from(value.as_str())?);
    }
    let method = saved.method.map_or(Ok(Method::POST), |method| method.parse())?;
    Ok(Saved { method, query: saved.query.unwrap_or_default(), headers, body })
}

fn read_http(bytes: &[u8]) -> anyhow::Result<Saved> {
    let gap = |pattern: &[u8]| bytes.windows(pattern.len()).position(|window| window == pattern);
    let (end, skip) = match (gap(b"\r\n\r\n"), gap(b"\n\n")) {
        (Some(crlf), lf) if lf.is_none_or(|lf| crlf < lf) => (crlf, 4),
        (_, Some(lf)) => (lf, 2),
        (Some(crlf), None) => (crlf, 4),
        (None, None) => bail!("no empty line parts the headers from the body"),
    };
    let head = std::str::from_utf8(&bytes[..end]).context("the headers are not text")?;
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default();
    let mut words = first.split_whitespace();
    let method: Method =
        words.next().unwrap_or_default().parse().context("the first line names no method")?;
    let target = words.next().unwrap_or_default();
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(':').with_context(|| format!("`{line}` is no header"))?;
        headers.append(HeaderName::try_from(name.trim())?, HeaderValue::try_from(value.trim())?);
    }
    let query = target.split_once('?').map_or("", |(_, query)| query).to_owned();
    Ok(Saved { method, query, headers, body: bytes[end + skip..].to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_request_is_read_in_both_forms_and_the_body_stays_as_it_was() {
        for text in ["POST /x?a=1 HTTP/1.1\r\nA: b\r\n\r\n{\n\n}\n", "POST /x?a=1 HTTP/1.1\nA: b\n\n{\n\n}\n"]
        {
            let saved = read_http(text.as_bytes()).unwrap();
            assert_eq!((saved.query.as_str(), saved.body.as_slice()), ("a=1", b"{\n\n}\n".as_slice()));
            assert_eq!(saved.headers["a"], "b");
        }
        let saved = read_json(br#"{"headers":[["A","b"]],"body_base64":"aGk="}"#).unwrap();
        assert_eq!(saved.body, b"hi");
        for bad in ["hello", "POST / HTTP/1.1\nno colon\n\n"] {
            assert!(read_http(bad.as_bytes()).is_err());
        }
        assert!(read_json(br#"{"headers":[]}"#).is_err());
    }
}
