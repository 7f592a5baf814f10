//! Texts that fit. Services count letters, some of them as UTF-16 does; counting like those never exceeds the others.

use std::borrow::Cow;

use sekisho_core::notification::Message;

const MORE: char = '…';

/// The beginning that has at most so many letters, with `…` where something is missing.
pub fn cut(text: &str, letters_max: usize) -> String {
    fit(text.chars().map(|letter| Cow::Owned(letter.to_string())), letters_max)
}

/// [`cut`] for pieces that make no sense by halves: an escaped letter, a link.
pub fn fit<'t>(pieces: impl Iterator<Item = Cow<'t, str>>, letters_max: usize) -> String {
    let (mut text, mut letters, mut room_for_more) = (String::new(), 0, 0);
    for piece in pieces {
        letters += piece.encode_utf16().count();
        if letters > letters_max {
            text.truncate(room_for_more);
            text.push(MORE);
            break;
        }
        text.push_str(&piece);
        if letters < letters_max {
            room_for_more = text.len();
        }
    }
    text
}

/// What it is about. Services refuse a message that says nothing.
pub fn headline(message: &Message) -> &str {
    let subject = message.subject.trim();
    if subject.is_empty() { &message.template } else { subject }
}
