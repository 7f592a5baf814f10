//! What looks like a secret, by its name or by how it begins. Names are compared without case and signs: `client_secret`
//! is `clientSecret`.

/// In any part of a name.
const PARTS: [&str; 11] = [
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "privatekey",
    "accesskey",
    "credential",
    "cardnumber",
    "securitycode",
    "cookie",
];
const ENDS: [&str; 4] = ["token", "authorization", "signature", "accountnumber"];
const WHOLE: [&str; 6] = ["cvc", "cvv", "cvn", "pin", "otp", "pan"];

/// What keys and tokens of the usual providers begin with.
const BEGINNINGS: [&str; 13] = [
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "rk_test_",
    "whsec_",
    "xoxb-",
    "xoxp-",
    "ghp_",
    "github_pat_",
    "glpat-",
    "AKIA",
    "Bearer ",
    "-----BEGIN",
];

/// `parent` is the name of what it stands in.
pub fn is_secret_name(name: &str, parent: Option<&str>) -> bool {
    let plain = plain(name);
    let is_card = || parent.is_some_and(|parent| self::plain(parent).contains("card"));
    PARTS.iter().any(|part| plain.contains(part))
        || ENDS.iter().any(|end| plain.ends_with(end))
        || WHOLE.contains(&&*plain)
        || (plain == "number" && is_card())
}

pub fn is_secret_value(text: &str) -> bool {
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning)) || text.contains("_secret_")
}

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Letters of a signature that are shown, so that two can be told apart.
const SIGNATURE_SHOWN: usize = 24;
const HEADER_SHOWN: usize = 500;

/// A header as it may be shown: what lets in is hidden, a signature is shortened.
pub fn mask_header(name: &str, value: &str) -> String {
    let is_signature = plain(name).contains("signature") || plain(name).ends_with("hmac");
    let hides = is_secret_name(name, None) && !is_signature;
    let most = if is_signature { SIGNATURE_SHOWN } else { HEADER_SHOWN };
    match value.char_indices().nth(most) {
        _ if hides || is_secret_value(value) => "••••••".to_owned(),
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}
