//! A browser that logged in before shows a cookie that only the user's kept password could have made: another password,
//! and it is worth nothing.

use ring::hmac;
use subtle::ConstantTimeEq;

use super::User;
use crate::provider::encode_hex;

/// `NONCE.MAC`: what a browser is given that logged in.
pub fn proof_of_device(name: &str, user: &User, nonce: &str) -> String {
    let words = ["a browser that logged in", name, nonce].join("\0");
    let key = hmac::Key::new(hmac::HMAC_SHA256, user.password.as_bytes());
    format!("{nonce}.{}", encode_hex(hmac::sign(&key, words.as_bytes())))
}

/// The nonce of a browser that this user's password once let in.
pub fn shown_device<'d>(name: &str, user: &User, device: &'d str) -> Option<&'d str> {
    let (nonce, _) = device.split_once('.')?;
    let is_ours = proof_of_device(name, user, nonce).as_bytes().ct_eq(device.as_bytes());
    bool::from(is_ours).then_some(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;
    use crate::user::Rank;

    #[test]
    fn h1_a_device_is_known_to_one_user_with_one_password() {
        let mika = User::new(Rank::Viewer, "hash".into(), Time::from_ms(1));
        let device = proof_of_device("mika", &mika, "0123");
        assert_eq!(shown_device("mika", &mika, &device), Some("0123"));
        assert_eq!(shown_device("tomo", &mika, &device), None);
        let changed = User { password: "another".into(), ..mika.clone() };
        assert_eq!(shown_device("mika", &changed, &device), None);
        for forged in ["0123", "0123.", &format!("0{device}"), &format!("{device}0")] {
            assert_eq!(shown_device("mika", &mika, forged), None, "{forged}");
        }
    }
}
