//! How a server is reached. A proxy of the environment (`http_proxy`) sees all that goes to a plain http address, so it is never
//! asked for a server on this machine, nor shown the key of a note.

use std::net::IpAddr;

use reqwest::{Client, Url};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Straight,
    /// As the environment says.
    AsConfigured,
}

impl Way {
    pub fn to(url: &str) -> Self {
        let url = Url::parse(url).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default().trim_matches(['[', ']']);
        let is_here = host == "localhost"
            || host.ends_with(".localhost")
            || host.parse().is_ok_and(|ip: IpAddr| ip.to_canonical().is_loopback());
        if is_here { Self::Straight } else { Self::AsConfigured }
    }

    pub fn client(self) -> reqwest::Result<Client> {
        let client = Client::builder().redirect(reqwest::redirect::Policy::none());
        match self {
            Self::Straight => client.no_proxy().build(),
            Self::AsConfigured => client.build(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h3_no_proxy_is_asked_for_this_machine() {
        for url in [
            "http://127.0.0.1:8787",
            "http://127.9.9.9",
            "http://localhost:1",
            "http://LOCALHOST",
            "http://a.localhost",
            "http://[::1]:8787",
            "http://[::ffff:127.0.0.1]",
        ] {
            assert_eq!(Way::to(url), Way::Straight, "{url}");
        }
        for url in ["http://sekisho.example", "http://10.0.0.7", "http://localhost.example", "no address"] {
            assert_eq!(Way::to(url), Way::AsConfigured, "{url}");
        }
    }
}
