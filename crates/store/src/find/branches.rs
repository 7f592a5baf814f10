//! Which words follow a prefix in the names of things, up to the next slash. Each is met by one look into the index, so what
//! it costs follows the number of words and not that of names.

/// What is left to look for.
pub(crate) struct Branches {
    prefix: String,
    limit: usize,
    words: Vec<String>,
}

/// What stands right after a slash in the order of names.
const AFTER_SLASH: char = '0';

impl Branches {
    /// `prefix` ends with a slash.
    pub(crate) fn new(prefix: String, limit: usize) -> Self {
        Self { prefix, limit, words: Vec::new() }
    }

    /// From which name on, and before which, the next is looked for; `None` when enough were met.
    pub(crate) fn span(&self) -> Option<(String, String)> {
        let from = match self.words.last() {
            Some(word) => format!("{}{word}{AFTER_SLASH}", self.prefix),
            None => self.prefix.clone(),
        };
        let stem = self.prefix.strip_suffix('/')?;
        (self.words.len() < self.limit).then(|| (from, format!("{stem}{AFTER_SLASH}")))
    }

    /// The first name in that span, if there is one; says whether to look on.
    pub(crate) fn met(&mut self, name: Option<&str>) -> bool {
        let word =
            name.and_then(|name| name.strip_prefix(&self.prefix)).and_then(|rest| rest.split('/').next());
        self.words.extend(word.map(str::to_owned));
        word.is_some()
    }

    pub(crate) fn into_words(self) -> Vec<String> {
        self.words
    }
}
