//! Certificates nobody trusts yet, made by the `openssl` command.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

/// Not a CA: a certificate that is one may not stand for a server.
const WANTED: &str = "[req]\nprompt = no\ndistinguished_name = name\nx509_extensions = extensions\n\
    [name]\nCN = lab\n\
    [extensions]\nbasicConstraints = critical, CA:FALSE\nsubjectAltName = IP:127.0.0.1";

/// Puts `key.pem` and `certificate.pem` there, for these names and 127.0.0.1.
pub fn make(folder: &Path, names: &[&str]) -> io::Result<()> {
    let names: Vec<_> = names.iter().map(|name| format!(", DNS:{name}")).collect();
    std::fs::write(folder.join("wanted"), format!("{WANTED}{}\n", names.concat()))?;
    let kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
    make_as(folder, &[&kind[..], &["-config", "wanted"]].concat())
}

fn make_as(folder: &Path, how: &[&str]) -> io::Result<()> {
    let what = ["req", "-x509", "-nodes", "-days", "2", "-keyout", "key.pem", "-out", "certificate.pem"];
    openssl(folder, what.iter().chain(how), b"").map(drop)
}

fn openssl(
    folder: &Path,
    words: impl IntoIterator<Item = impl AsRef<OsStr>>,
    input: &[u8],
) -> io::Result<Vec<u8>> {
    let mut child = Command::new("openssl")
        .args(words)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            io::Error::other(format!("openssl: {error}; install the Debian package `openssl`"))
        })?;
    child.stdin.take().expect("it was asked for").write_all(input)?;
    let done = child.wait_with_output()?;
    if done.status.success() {
        return Ok(done.stdout);
    }
    Err(io::Error::other(format!("openssl failed: {}", String::from_utf8_lossy(&done.stderr))))
}

/// A server's side of it, and the certificate in PEM, for those who shall trust it.
pub(crate) fn fresh(names: &[&str]) -> io::Result<(TlsAcceptor, String)> {
    let folder = tempfile::tempdir()?;
    make(folder.path(), names)?;
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

/// Signs as PayPal and SNS do: by RSA, with a certificate that others check it by.
#[derive(Debug)]
pub struct CertificateSigner(TempDir);

impl CertificateSigner {
    pub fn new() -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        make_as(folder.path(), &["-newkey", "rsa:2048", "-subj", "/CN=signer"])?;
        Ok(Self(folder))
    }

    pub fn certificate(&self) -> io::Result<String> {
        std::fs::read_to_string(self.0.path().join("certificate.pem"))
    }

    /// Its private key as PEM, for who signs so much that a process for each would be too slow.
    pub fn key(&self) -> io::Result<String> {
        std::fs::read_to_string(self.0.path().join("key.pem"))
    }

    pub fn sign(&self, text: &[u8]) -> io::Result<Vec<u8>> {
        openssl(self.0.path(), ["dgst", "-sha256", "-sign", "key.pem"], text)
    }
}
