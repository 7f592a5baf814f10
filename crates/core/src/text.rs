//! What somebody meant who wrote a word that is not known.

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
    fn j2_a_slip_leads_to_the_word_that_was_meant() {
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
