//! The certificate some providers sign with. It is believed because it was fetched over TLS from a host that
//! the provider's file allows by name (docs/adr/0003); here it must still be readable and in date.

use ring::signature::{
    RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
};
use x509_cert::der::DecodePem;

use super::RequestRefusal;
use super::signature::from_base64;
use crate::time::Time;

#[derive(Clone, Debug)]
pub struct Certificate {
    valid_from: Time,
    valid_until: Time,
    /// PKCS #1, as ring wants it.
    public_key: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashAlgorithm {
    Sha1,
    Sha256,
}

impl Certificate {
    /// Reads the first certificate of a PEM file.
    pub fn from_pem(pem: &[u8]) -> Result<Self, &'static str> {
        const END: &str = "-----END CERTIFICATE-----";
        let text = std::str::from_utf8(pem).map_err(|_| "is not PEM text")?;
        let start = text.find("-----BEGIN CERTIFICATE-----").ok_or("is not PEM text")?;
        let length = text[start..].find(END).ok_or("is cut off")? + END.len();
        let parsed = x509_cert::Certificate::from_pem(&text.as_bytes()[start..start + length])
            .map_err(|_| "can't be read")?
            .tbs_certificate;
        let at = |time: x509_cert::time::Time| Time::from_seconds(time.to_unix_duration().as_secs() as i64);
        Ok(Self {
            valid_from: at(parsed.validity.not_before),
            valid_until: at(parsed.validity.not_after),
            public_key: parsed.subject_public_key_info.subject_public_key.raw_bytes().to_vec(),
        })
    }

    pub fn verify(
        &self,
        hash: HashAlgorithm,
        message: &[u8],
        signature: &[u8],
        now: Time,
    ) -> Result<(), RequestRefusal> {
        if now < self.valid_from || now > self.valid_until {
            return Err(RequestRefusal::BadCertificate("is out of date"));
        }
        let algorithm = match hash {
            HashAlgorithm::Sha1 => &RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY,
            HashAlgorithm::Sha256 => &RSA_PKCS1_2048_8192_SHA256,
        };
        UnparsedPublicKey::new(algorithm, &self.public_key)
            .verify(message, signature)
            .map_err(|_| RequestRefusal::BadSignature)
    }
}

/// A signature as such a key makes it, from its base 64. What none can have made is told apart before a certificate is
/// fetched for it.
pub fn read_signature(text: &str) -> Option<Vec<u8>> {
    /// Of keys of 2048 to 8192 bits.
    const BYTES: std::ops::RangeInclusive<usize> = 256..=1024;
    let text = Some(text).filter(|text| text.len() <= BYTES.end().div_ceil(3) * 4)?;
    from_base64(text).filter(|bytes| BYTES.contains(&bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::super::signature::to_base64;
    use super::*;

    #[test]
    fn a2_what_is_not_a_certificate_is_refused() {
        for bad in [
            "",
            "hello",
            "-----BEGIN CERTIFICATE-----\nAAAA\n",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
        ] {
            assert!(Certificate::from_pem(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(Certificate::from_pem(&[0xff, 0xfe]).is_err());
    }
    #[test]
    fn a2_a_signature_is_as_long_as_keys_make_them() {
        for (bytes, expected) in [(255, false), (256, true), (1024, true), (1025, false), (60_000, false)] {
            assert_eq!(read_signature(&to_base64(vec![7; bytes])).is_some(), expected, "{bytes}");
        }
        assert_eq!(read_signature(""), None);
        assert_eq!(read_signature(&"?".repeat(344)), None);
    }
}
