//! Keys that travel in addresses: the link by which a customer sees their order, and the token by which a renderer answers
//! for its run. Both are signed with the house's keys and nothing of them is stored, so a forged one is refused before the
//! store is asked.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use subtle::ConstantTimeEq;

use crate::fulfilment::run_key;
use crate::id::Seq;
use crate::provider::sha256;
use crate::secret::Secret;
use crate::time::{HOUR_MS, Time};
use crate::{fulfilment, reservation};

/// What a renderer's token begins with.
pub const RESULT_TAG: &str = "frt_";

const ORDER_LINK: &[u8] = b"sekisho/order-link/1";
const RESULT_TOKEN: &[u8] = b"sekisho/result-token/1";
/// Bytes of a link before its proof, of the proof, and of both.
const HEAD: usize = 16;
const PROOF: usize = 16;
const WHOLE: usize = HEAD + PROOF;

/// The keys that links are signed with: the first signs, all of them are believed, so that they can be changed one by one.
#[derive(Clone, Debug, Default)]
pub struct LinkKeys(Vec<Secret>);

/// Whose page a link opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkedOrder {
    Reservation(Seq),
    /// What is made without a reservation.
    Fulfilment(Seq),
}

/// What a customer's link says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderLink {
    pub order: LinkedOrder,
    /// In whole hours: rounded up.
    pub expires_at: Time,
    /// Links of a generation before the order's own are void.
    pub generation: u16,
}

impl LinkedOrder {
    /// Of an id that has a page.
    pub fn of(id: &str) -> Option<Self> {
        let of_reservation = Seq::of_tagged(id, reservation::TAG).map(Self::Reservation);
        of_reservation.or_else(|| Seq::of_tagged(id, fulfilment::TAG).map(Self::Fulfilment))
    }

    pub fn id(self) -> String {
        match self {
            Self::Reservation(seq) => seq.tagged(reservation::TAG),
            Self::Fulfilment(seq) => seq.tagged(fulfilment::TAG),
        }
    }

    const fn kind(self) -> u8 {
        match self {
            Self::Reservation(_) => b'r',
            Self::Fulfilment(_) => b'f',
        }
    }

    const fn seq(self) -> Seq {
        match self {
            Self::Reservation(seq) | Self::Fulfilment(seq) => seq,
        }
    }

    const fn read(kind: u8, seq: Seq) -> Option<Self> {
        match kind {
            b'r' => Some(Self::Reservation(seq)),
            b'f' => Some(Self::Fulfilment(seq)),
            _ => None,
        }
    }
}

impl LinkKeys {
    pub fn new(keys: Vec<Secret>) -> Self {
        Self(keys)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The last part of a customer's address: 43 letters. `None` while there is no key.
    pub fn sign_link(&self, link: &OrderLink) -> Option<String> {
        let key = self.0.first()?;
        let hours =
            u32::try_from((link.expires_at.ms() + HOUR_MS - 1).div_euclid(HOUR_MS)).unwrap_or(u32::MAX);
        let mut token = [0; WHOLE];
        token[0] = mark(key);
        token[1] = link.order.kind();
        token[2..10].copy_from_slice(&link.order.seq().as_i64().to_be_bytes());
        token[10..14].copy_from_slice(&hours.to_be_bytes());
        token[14..16].copy_from_slice(&link.generation.to_be_bytes());
        let proof = prove(key, ORDER_LINK, &token[..HEAD]);
        token[HEAD..].copy_from_slice(&proof);
        Some(URL_SAFE_NO_PAD.encode(token))
    }

    /// What a link says, if one of our keys signed it and it is not over.
    pub fn read_link(&self, token: &str, now: Time) -> Option<OrderLink> {
        let bytes: [u8; WHOLE] = URL_SAFE_NO_PAD.decode(token).ok()?.try_into().ok()?;
        let (head, proof) = bytes.split_at(HEAD);
        let is_ours = |key: &&Secret| {
            head[0] == mark(key) && bool::from(prove(key, ORDER_LINK, head).as_slice().ct_eq(proof))
        };
        self.0.iter().find(is_ours)?;
        let number = i64::from_be_bytes(head[2..10].try_into().ok()?);
        let hours = u32::from_be_bytes(head[10..14].try_into().ok()?);
        let generation = u16::from_be_bytes(head[14..16].try_into().ok()?);
        let expires_at = Time::from_ms(i64::from(hours) * HOUR_MS);
        let order = LinkedOrder::read(head[1], Seq::from_i64(number))?;
        (now < expires_at).then_some(OrderLink { order, expires_at, generation })
    }

    /// By which a renderer may answer for one run of one fulfilment, and for nothing else.
    pub fn result_token(&self, fulfilment: &str, run: u32) -> Option<String> {
        let proof = prove(self.0.first()?, RESULT_TOKEN, run_key(fulfilment, run).as_bytes());
        let token = [&run.to_be_bytes()[..], &proof].concat();
        Some(format!("{RESULT_TAG}{}", URL_SAFE_NO_PAD.encode(token)))
    }

    /// For which run of this fulfilment a token speaks.
    pub fn run_of_token(&self, token: &str, fulfilment: &str) -> Option<u32> {
        let bytes = URL_SAFE_NO_PAD.decode(token.strip_prefix(RESULT_TAG)?).ok()?;
        let (run, proof) = bytes.split_first_chunk::<4>()?;
        let run = u32::from_be_bytes(*run);
        let text = run_key(fulfilment, run);
        let is_ours = |key: &Secret| bool::from(prove(key, RESULT_TOKEN, text.as_bytes()).ct_eq(proof));
        self.0.iter().any(is_ours).then_some(run)
    }
}

/// Tells keys apart without telling anything of them.
fn mark(key: &Secret) -> u8 {
    sha256(key.expose().as_bytes()).as_ref()[0]
}

fn prove(key: &Secret, what: &[u8], of: &[u8]) -> [u8; PROOF] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.expose().as_bytes());
    let mut context = hmac::Context::with_key(&key);
    context.update(what);
    context.update(&[0]);
    context.update(of);
    let mut proof = [0; PROOF];
    proof.copy_from_slice(&context.sign().as_ref()[..PROOF]);
    proof
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_ms(1_780_000_000_000);

    fn keys(texts: &[&str]) -> LinkKeys {
        LinkKeys::new(texts.iter().map(|text| Secret::new(*text)).collect())
    }

    fn link() -> OrderLink {
        let order = LinkedOrder::Reservation(Seq::floor_of(NOW));
        OrderLink { order, expires_at: NOW.plus_ms(180 * 24 * HOUR_MS), generation: 3 }
    }

    #[test]
    fn f8_a_link_opens_one_order_until_it_is_over() {
        let keys = keys(&["one"]);
        let token = keys.sign_link(&link()).unwrap();
        assert_eq!(token.len(), 43);
        let read = keys.read_link(&token, NOW).unwrap();
        assert_eq!((read.order, read.generation), (link().order, 3));
        assert_eq!(LinkedOrder::of(&read.order.id()), Some(read.order));
        let left = read.expires_at.ms() - link().expires_at.ms();
        assert!((0..HOUR_MS).contains(&left), "rounded up to an hour: {left}");
        assert_eq!(keys.read_link(&token, read.expires_at), None);
        assert!(keys.read_link(&token, read.expires_at.plus_ms(-1)).is_some());
        assert_eq!(LinkKeys::default().sign_link(&link()), None);
    }

    #[test]
    fn f8_no_altered_link_is_believed() {
        let keys = keys(&["one"]);
        let token = keys.sign_link(&link()).unwrap();
        let bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut altered = bytes.clone();
                altered[at] ^= 1 << bit;
                assert_eq!(
                    keys.read_link(&URL_SAFE_NO_PAD.encode(altered), NOW),
                    None,
                    "byte {at}, bit {bit}"
                );
            }
        }
        for odd in ["", "x", &token[1..], &format!("{token}A"), &format!("{token}="), &"A".repeat(43)] {
            assert_eq!(keys.read_link(odd, NOW), None, "{odd}");
        }
    }

    #[test]
    fn f8_keys_are_changed_one_by_one() {
        let token = keys(&["old"]).sign_link(&link()).unwrap();
        assert!(keys(&["new", "old"]).read_link(&token, NOW).is_some());
        assert_eq!(keys(&["new"]).read_link(&token, NOW), None);
    }

    #[test]
    fn f2_a_result_token_speaks_for_its_run_only() {
        let all = keys(&["one"]);
        let token = all.result_token("ful_1", 2).unwrap();
        assert_eq!(all.run_of_token(&token, "ful_1"), Some(2));
        assert_eq!(keys(&["two", "one"]).run_of_token(&token, "ful_1"), Some(2));
        assert_eq!(all.run_of_token(&token, "ful_2"), None);
        assert_eq!(keys(&["two"]).run_of_token(&token, "ful_1"), None);
        let bytes = URL_SAFE_NO_PAD.decode(&token[RESULT_TAG.len()..]).unwrap();
        for at in 0..bytes.len() {
            let mut altered = bytes.clone();
            altered[at] ^= 1;
            let altered = format!("{RESULT_TAG}{}", URL_SAFE_NO_PAD.encode(altered));
            assert_eq!(all.run_of_token(&altered, "ful_1"), None, "byte {at}");
        }
        // A link's proof is no token's, though one key made both.
        let link = format!("{RESULT_TAG}{}", all.sign_link(&link()).unwrap());
        for odd in ["", "frt_", "frt_AAAA", &token[1..], &format!("{token}A"), &link] {
            assert_eq!(all.run_of_token(odd, "ful_1"), None, "{odd}");
        }
    }
}
