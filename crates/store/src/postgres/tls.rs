//! TLS to PostgreSQL. Stricter than libpq: a certificate is always verified against the system's roots, with
//! `sslmode=prefer` (encrypt if the server offers it) as with `sslmode=require`. Encryption that does not know whom
//! it talks to protects from nobody who can answer in the server's place.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Error, Result};

/// Where the common systems keep their roots; `SSL_CERT_FILE` comes first.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
];

/// `required`: without roots no connection could succeed, so that is said at once.
pub fn connector(required: bool) -> Result<MakeRustlsConnect> {
    let roots = roots();
    if required && roots.is_empty() {
        return Err(Error::unavailable(
            "sslmode=require needs root certificates: set SSL_CERT_FILE to a PEM bundle",
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(Error::unavailable)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn roots() -> RootCertStore {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let bundle = named.or_else(|| BUNDLES.iter().map(PathBuf::from).find(|path| path.exists()));
    let mut roots = RootCertStore::empty();
    let certificates = bundle.and_then(|path| CertificateDer::pem_file_iter(path).ok());
    // A bundle may hold a few that we can't read; the others still serve.
    roots.add_parsable_certificates(certificates.into_iter().flatten().flatten());
    roots
}
