//! JSON, cut into tokens that still are the text they came as. Whatever is no JSON is a token, too: nothing is refused.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'t> {
    Open(char),
    Close(char),
    Comma,
    Colon,
    /// What stands between the quotes, escapes and all.
    Text(&'t str),
    Number(&'t str),
    /// `true`, `null`, or anything else that is written in letters.
    Word(&'t str),
    Odd(char),
}

/// Walks a text from token to token, each with where it begins.
pub struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Tokens<'t> {
    pub const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Whether what was just opened is closed at once.
    pub fn peek_close(&mut self) -> bool {
        self.skip_space();
        self.rest().starts_with(['}', ']'])
    }

    /// Past the level that was just opened; with what closes it.
    pub fn skip_level(&mut self) -> Option<char> {
        let mut depth = 0usize;
        loop {
            match self.next()?.1 {
                Token::Open(_) => depth += 1,
                Token::Close(letter) if depth == 0 => return Some(letter),
                Token::Close(_) => depth -= 1,
                Token::Comma
                | Token::Colon
                | Token::Text(_)
                | Token::Number(_)
                | Token::Word(_)
                | Token::Odd(_) => {}
            }
        }
    }

    /// As long as all its letters are of a kind.
    fn run(&mut self, is_of: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|letter| !is_of(letter)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn quoted(&mut self) -> &'t str {
        self.at += 1;
        let rest = self.rest();
        let mut is_escaped = false;
        for (at, letter) in rest.char_indices() {
            match letter {
                '"' if !is_escaped => {
                    self.at += at + 1;
                    return &rest[..at];
                }
                letter => is_escaped = letter == '\\' && !is_escaped,
            }
        }
        self.at = self.text.len();
        rest
    }
}

impl<'t> Iterator for Tokens<'t> {
    type Item = (usize, Token<'t>);

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_space();
        let at = self.at;
        let letter = self.rest().chars().next()?;
        let single = |token| (token, letter.len_utf8());
        let (token, step) = match letter {
            '{' | '[' => single(Token::Open(letter)),
            '}' | ']' => single(Token::Close(letter)),
            ',' => single(Token::Comma),
            ':' => single(Token::Colon),
            '"' => (Token::Text(self.quoted()), 0),
            '-' | '0'..='9' => {
                let is_of = |letter: char| letter.is_ascii_alphanumeric() || "+-.".contains(letter);
                (Token::Number(self.run(is_of)), 0)
            }
            letter if letter.is_alphabetic() => (Token::Word(self.run(char::is_alphanumeric)), 0),
            letter => single(Token::Odd(letter)),
        };
        self.at += step;
        Some((at, token))
    }
}

/// The text that is meant; an escape that means nothing stays as it is. Half a letter is shown as `\u{fffd}`.
pub fn decode(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(letter) = rest.chars().next() else {
            out.push('\\');
            break;
        };
        rest = &rest[letter.len_utf8()..];
        match letter {
            '"' | '\\' | '/' => out.push(letter),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'u' if unit(rest).is_some() => {
                let (letters, left) = units(rest);
                out.push_str(&letters);
                rest = left;
            }
            letter => out.extend(['\\', letter]),
        }
    }
    out + rest
}

/// The four digits of a code.
fn unit(text: &str) -> Option<u16> {
    let digits = text.get(..4)?;
    digits.bytes().all(|digit| digit.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

/// Codes in a row: two of them may be one letter.
fn units(text: &str) -> (String, &str) {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(one) = unit(rest) {
        found.push(one);
        let after = &rest[4..];
        match after.strip_prefix("\\u").filter(|next| unit(next).is_some()) {
            Some(next) => rest = next,
            None => return (String::from_utf16_lossy(&found), after),
        }
    }
    (String::from_utf16_lossy(&found), rest)
}
