//! Requests that nobody who has the secret wrote: bent, stale, signed with another secret, or for another source.

use sekisho_core::Time;
use sekisho_core::event::Trust;
use sekisho_core::provider::{ALL, AboutProvider, encode_base64};

use super::letter::{self, Letter, now, path, sign};
use super::{Attack, Book};
use crate::http::Response;
use crate::rng::Rng;

const DAY_MS: i64 = 86_400_000;
/// The same for all, so that two requests differ in their proof alone.
const CREATED: Time = Time::from_ms(1_770_000_000_000);

pub fn run(attack: &mut Attack<'_>) -> Result<(), String> {
    let proven = ALL.iter().map(|provider| provider.about()).filter(|about| about.trust != Trust::Hint);
    for about in proven {
        let Some(good) = sample(about, 0, now()) else { continue };
        // Unbent it is believed: what is refused below is refused for its proof.
        let honest = attack.house.send(&good).map_err(|error| error.to_string())?;
        if honest.status >= 300 {
            return Err(format!("{} is refused: {} {}", about.name, honest.status, honest.text()));
        }
        let bent: Vec<_> = bent(about, &good, &mut attack.rng, attack.depth.of(6, 120)).collect();
        for (how, letter) in bent {
            send(attack, "forged and bent signatures", about, &how, &letter);
        }
        if about.tolerance_s.is_some() {
            for days in [-40_000, -3_650, -40, -8, 2, 3_650] {
                let at = Time::from_ms(now().ms().saturating_add(days * DAY_MS));
                // A scheme that was not told where the time stands signs none.
                let Some(old) = sample(about, 0, at).filter(|old| old.headers != good.headers) else {
                    continue;
                };
                send(attack, "stale and future times", about, &format!("{days} days"), &old);
            }
        }
        elsewhere(attack, about, &good);
    }
    tokens_without_a_key(attack);
    Ok(())
}

fn sample(about: &'static AboutProvider, salt: u8, at: Time) -> Option<Letter> {
    let id = format!("evt_forged_{}", about.name);
    sign(about, salt, about.draft(&id, about.sample_type, CREATED), at)
}

fn send(attack: &mut Attack<'_>, kind: &'static str, about: &AboutProvider, how: &str, letter: &Letter) {
    let answer = attack.house.send(letter);
    judge(attack.book, kind, &answer, || format!("{} {how}", about.name));
}

/// Accepted is whatever is not turned away.
fn judge(book: &mut Book, kind: &'static str, answer: &std::io::Result<Response>, what: impl Fn() -> String) {
    book.line(kind).asked(answer, what, |answer| answer.status < 300);
}

/// Every way to bend a good request that leaves something to believe.
fn bent<'a>(
    about: &'static AboutProvider,
    good: &'a Letter,
    rng: &'a mut Rng,
    flips: usize,
) -> impl Iterator<Item = (String, Letter)> + 'a {
    let mut out = Vec::new();
    for salt in 1..=2 {
        out.extend(sample(about, salt, now()).map(|letter| (format!("another secret {salt}"), letter)));
    }
    let other = sample(about, 1, now());
    // Shopify's time of the event is signed by nobody, and differs between two samples by the moment they were made.
    let is_proof = |header: &&(String, String)| {
        let differs = other.as_ref().is_none_or(|other| !other.headers.contains(header));
        differs && !header.0.to_ascii_lowercase().ends_with("shopify-triggered-at")
    };
    let proofs = good.headers.iter().filter(is_proof);
    for (name, value) in proofs {
        let odd = [
            String::new(),
            "0".into(),
            "null".into(),
            "sha256=".into(),
            "t=0,v1=".into(),
            format!("{value}x"),
            format!("x{value}"),
            value.chars().rev().collect(),
            value.chars().skip(1).collect(),
            value.chars().take(value.chars().count() / 2).collect(),
            value.replace("v1", "v0"),
            value.replace("sha256", "sha1"),
            "A".repeat(value.len()),
            format!("{value}, {value}x").replace(&**value, &"0".repeat(value.len())),
        ];
        let odd = odd.into_iter().filter(|odd| odd != value);
        out.extend(odd.map(|odd| (format!("{name}: {odd}"), good.clone().with(name, &odd))));
        let none = Letter {
            headers: good.headers.iter().filter(|(known, _)| known != name).cloned().collect(),
            ..good.clone()
        };
        out.push((format!("without {name}"), none));
        for _ in 0..flips {
            let mut letters: Vec<char> = value.chars().collect();
            let n = rng.below(letters.len() as u64) as usize;
            let new = *rng.pick(&['0', 'a', 'F', '9', '_', '=', '+']).expect("there are some");
            // The last letter of base 64 holds bits that nobody reads, and equal letters change nothing.
            if letters[n].eq_ignore_ascii_case(&new) || n + 2 >= letters.len() {
                continue;
            }
            letters[n] = new;
            let flipped: String = letters.into_iter().collect();
            out.push((format!("{name} with another letter: {flipped}"), good.clone().with(name, &flipped)));
        }
    }
    if about.trust == Trust::Signed && !good.body.is_empty() {
        out.extend(bodies(about, good, rng, flips));
    }
    out.into_iter()
}

/// The same signature over other words. Adyen signs some fields, of which the reference of the event is one.
fn bodies(about: &AboutProvider, good: &Letter, rng: &mut Rng, flips: usize) -> Vec<(String, Letter)> {
    let with = |how: &str, body: Vec<u8>| (how.to_owned(), Letter { body, ..good.clone() });
    let text = String::from_utf8_lossy(&good.body).into_owned();
    let id = format!("evt_forged_{}", about.name);
    let mut out = vec![with("another id in the body", text.replace(&id, "evt_other").into_bytes())];
    if !about.name.starts_with("adyen") {
        out.push(with("nothing in the body", Vec::new()));
        out.push(with("twice the body", good.body.repeat(2)));
        out.push(with("a body cut short", good.body[..good.body.len() - 1].to_vec()));
        for _ in 0..flips {
            let mut body = good.body.clone();
            let n = rng.below(body.len() as u64) as usize;
            body[n] ^= 1 << rng.below(7);
            out.push(with(&format!("bit of byte {n}"), body));
        }
    }
    out.retain(|(_, letter)| letter.body != good.body);
    out
}

/// What was signed for one source, at the others.
fn elsewhere(attack: &mut Attack<'_>, about: &'static AboutProvider, good: &Letter) {
    let others = ALL.iter().map(|provider| provider.about());
    let mut others: Vec<_> =
        others.filter(|other| other.name != about.name && other.trust != Trust::Hint).collect();
    for _ in 0..attack.depth.of(6, others.len()) {
        let other = others.swap_remove(attack.rng.below(others.len() as u64) as usize);
        let astray = Letter { path: path(other), ..good.clone() };
        let how = format!("a request of {}", about.name);
        send(attack, "one source's signature at another", other, &how, &astray);
    }
}

/// JSON web tokens that say they need no key.
fn tokens_without_a_key(attack: &mut Attack<'_>) {
    let about = letter::find("qstash").about();
    let Some(good) = sample(about, 0, now()) else { return };
    let Some((name, token)) = good.headers.iter().find(|(_, value)| value.matches('.').count() == 2).cloned()
    else {
        return;
    };
    let claims = token.split('.').nth(1).unwrap_or_default();
    let plain = |text: &str| encode_base64(text).trim_end_matches('=').replace('+', "-").replace('/', "_");
    for algorithm in ["none", "None", "NONE", "HS512", "RS256", "hs256", ""] {
        let head = plain(&format!(r#"{{"alg":"{algorithm}","typ":"JWT"}}"#));
        let signature = token.rsplit('.').next().unwrap_or_default();
        for signature in ["", signature] {
            let forged = good.clone().with(&name, &format!("{head}.{claims}.{signature}"));
            send(attack, "forged and bent signatures", about, &format!("alg {algorithm}"), &forged);
        }
    }
}
