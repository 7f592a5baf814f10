//! What the shop promises about cancelling and refunds, for everybody to read.

use askama::Template;
use sekisho_core::language::Language;

use super::frame::{CustomerFrame, Reply};
use super::{Answer, Customers, text};

#[derive(Template)]
#[template(path = "customer/policy.html")]
struct PolicyPage {
    f: CustomerFrame,
    sentences: [String; 3],
}

#[expect(clippy::unnecessary_wraps, reason = "it answers as every page does")]
pub fn show(shop: &Customers, lang: Language) -> Answer {
    let (en, ja) = text::POLICY;
    Ok(Reply::page(&PolicyPage {
        f: CustomerFrame::lone(shop, lang, lang.t(en, ja)),
        sentences: text::policy(lang, &shop.pages, shop.policy.cancel_until_ms),
    }))
}
