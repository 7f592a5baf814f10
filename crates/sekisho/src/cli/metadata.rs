//! What a program keeps with a thing, as people type it.

/// `colour=blue`
pub fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    if key.is_empty() {
        return Err("expected KEY=VALUE with a key before the =".into());
    }
    Ok((key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2_metadata_is_a_key_and_a_value() {
        assert_eq!(pair("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert_eq!(pair("a="), Ok(("a".into(), String::new())));
        assert!(pair("a").is_err() && pair("=b").is_err());
    }
}
