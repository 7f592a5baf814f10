//! `sekisho send`: signs any body as the source's provider would, and sends it.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use sekisho_core::provider::Draft;

use super::output::{json_out, line_out};
use super::target::Target;
use super::{Context, choose};
use crate::now;

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    target: Target,
    /// The body; - reads standard input. Without it the provider's smallest event is made
    #[arg(long, value_name = "FILE")]
    body: Option<PathBuf>,
    /// The event's type, for bodies made here and for providers that put it into a header
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// The event's id, likewise; a new one if not given
    #[arg(long)]
    id: Option<String>,
    /// Print the signed request instead of sending it
    #[arg(long)]
    dry_run: bool,
    /// As one JSON object
    #[arg(long)]
    json: bool,
}

pub async fn run(args: Args, context: &Context) -> anyhow::Result<ExitCode> {
    let config = context.load_sources()?.config;
    let source = choose(&config, args.target.source.as_deref())?;
    let about = source.provider.about();
    let id = args.id.unwrap_or_else(|| format!("evt_test_{:x}", now().ms()));
    let kind = args.event_type.unwrap_or_else(|| about.sample_type.to_owned());
    let draft = match args.body {
        Some(file) => Draft { id, kind, body: read(&file)? },
        None => about.draft(&id, &kind, now()),
    };
    let signed = source.scheme.sign(draft, now())?;
    let client = args.target.client(&config, source)?;
    if args.dry_run {
        let query = signed.query.as_deref().map(|query| format!("?{query}")).unwrap_or_default();
        line_out(&format!("{} {}{query}", signed.method, client.url()));
        for (name, value) in &signed.headers {
            let shown = if about.secret_headers.contains(&name.as_ref()) { "(secret)" } else { value };
            line_out(&format!("{name}: {shown}"));
        }
        line_out("");
        // Byte for byte, so that it can be saved and judged by `verify`.
        std::io::stdout().write_all(&signed.body)?;
        return Ok(ExitCode::SUCCESS);
    }
    let answer = client.deliver(signed).await?;
    if args.json {
        json_out(&answer.json());
    } else {
        line_out(&answer.sentence());
    }
    Ok(if answer.status < 300 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(file: &std::path::Path) -> anyhow::Result<Vec<u8>> {
    if file.as_os_str() == "-" {
        let mut body = Vec::new();
        std::io::stdin().read_to_end(&mut body)?;
        return Ok(body);
    }
    std::fs::read(file).with_context(|| format!("can't read {}", file.display()))
}
