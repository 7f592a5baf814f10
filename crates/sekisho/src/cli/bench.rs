use super::Context;
#[derive(clap::Subcommand)]
pub enum Command {}
pub async fn run(command: Command, _context: &Context) -> anyhow::Result<std::process::ExitCode> {
    match command {}
}
