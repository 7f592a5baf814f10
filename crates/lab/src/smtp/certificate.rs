//! A certificate nobody trusts yet, made by the `openssl` command.

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Not a CA: a certificate that is one may not stand for a server.
const WANTED: &str = "[req]\nprompt = no\ndistinguished_name = name\nx509_extensions = extensions\n\
    [name]\nCN = localhost\n\
    [extensions]\nbasicConstraints = critical, CA:FALSE\nsubjectAltName = DNS:localhost, IP:127.0.0.1\n";

/// Puts `key.pem` and `certificate.pem` there, for `localhost` and 127.0.0.1.
pub fn make_certificate(folder: &Path) -> io::Result<()> {
    std::fs::write(folder.join("wanted"), WANTED)?;
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
        .args(["-days", "2", "-config", "wanted", "-keyout", "key.pem", "-out", "certificate.pem"])
        .current_dir(folder)
        .output()
        .map_err(|error| {
            io::Error::other(format!("openssl: {error}; install the Debian package `openssl`"))
        })?;
    if made.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("openssl made no certificate: {}", String::from_utf8_lossy(&made.stderr))))
}

/// A server's side of it, and the certificate in PEM, for those who shall trust it.
pub(super) fn fresh() -> io::Result<(TlsAcceptor, String)> {
    let folder = tempfile::tempdir()?;
    make_certificate(folder.path())?;
    let pem = std::fs::read_to_string(folder.path().join("certificate.pem"))?;
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_file(folder.path().join("key.pem")).map_err(io::Error::other)?;
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .map_err(io::Error::other)?;
    Ok((TlsAcceptor::from(Arc::new(config)), pem))
}
