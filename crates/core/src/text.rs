//! What somebody meant who wrote a word that is not known, and letters that nobody sees.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a letter is not seen itself, but moves, hides or recolours what stands around it: the control characters (C0,
/// DEL and C1, of which a terminal makes commands) and those that turn the direction of writing.
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// With each hidden letter as a blank, line breaks and tabs too: for what strangers say and we keep.
pub fn without_hidden(text: &str) -> String {
    text.chars().map(|letter| if is_hidden(letter) { ' ' } else { letter }).collect()
}

/// With each hidden letter written out, as `\u{1b}`; those that `is_kept` stay as they are.
pub fn visible(text: &str, is_kept: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_written = |letter: char| is_hidden(letter) && !is_kept(letter);
    if !text.contains(is_written) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_written(letter) {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(letter));
        } else {
            out.push(letter);
        }
    }
    Cow::Owned(out)
}

/// The known word that is most like it, at most [`SLIPS_MAX`] letters away; the first of several.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let distances = known.into_iter().map(|candidate| (distance(word, candidate), candidate));
    let (away, candidate) = distances.min_by_key(|(away, _)| *away)?;
    (away <= SLIPS_MAX).then_some(candidate)
}

/// Farther away, it is another word.
const SLIPS_MAX: usize = 3;

/// How many letters must be changed, added or removed.
pub fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.chars().enumerate() {
            let change = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2_letters_that_nobody_sees_are_written_out_or_left_out() {
        let odd = "a\u{1b}]52;c;x\u{7}\u{7f}\u{9b}2J\u{202e}b\u{2066}\u{200f}\n\t関所 é";
        let all = r"a\u{1b}]52;c;x\u{7}\u{7f}\u{9b}2J\u{202e}b\u{2066}\u{200f}\u{a}\u{9}関所 é";
        assert_eq!(visible(odd, |_| false), all);
        assert_eq!(visible("a\n\tb\r", |letter| matches!(letter, '\n' | '\t')), "a\n\tb\\u{d}");
        assert_eq!(without_hidden(odd), "a ]52;c;x   2J b    関所 é");
        assert!(matches!(visible("関所 \\u{1b}", |_| false), Cow::Borrowed(_)), "what was written out stays");
    }

    #[test]
    fn h5_a_slip_leads_to_the_word_that_was_meant() {
        let known = ["listen", "limits", "email", "メール"];
        let cases = [
            ("listn", Some("listen")),
            ("emial", Some("email")),
            ("メイル", Some("メール")),
            ("limit", Some("limits")),
            ("database", None),
        ];
        for (word, expected) in cases {
            assert_eq!(nearest(word, known), expected, "{word}");
        }
        assert_eq!(nearest("ab", ["ax", "ay"]), Some("ax"));
        assert_eq!((distance("", "abc"), distance("abc", "abc"), distance("abc", "")), (3, 0, 3));
    }
}
