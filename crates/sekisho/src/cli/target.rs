//! Where a command sends its test events.

use super::server_file::ServerFile;
use crate::config::{Config, Source};
use crate::test_event::TestClient;

#[derive(clap::Args)]
pub struct Target {
    /// The server, when it is neither the one that runs here nor where the configuration says: http://127.0.0.1:8787
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The source to send to; needed only when there are several
    #[arg(long)]
    pub source: Option<String>,
}

impl Target {
    pub fn client(&self, config: &Config, source: &Source) -> anyhow::Result<TestClient> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let base = match &self.url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => ServerFile::address(config),
        };
        TestClient::to(format!("{base}{}", source.path))
    }
}
