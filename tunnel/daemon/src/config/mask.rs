//! Masking of secrets in a file's text, before any of it is shown.

use seal::PublicKey;

/// The keys whose values are secret; `private-key-file` is not one.
const SECRETS: [&str; 2] = ["private-key", "preshared-key"];

/// Overwrites the secrets in `text` by `*`, without moving a byte: the values of `private-key` and `preshared-key`, and
/// every word in the form of a key on a line without `public-key` (the value of a misspelt key).
pub(crate) fn mask_secrets(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| if contains_secret_key(line) { mask_value(line) } else { mask_keys(line) })
        .collect()
}

fn contains_secret_key(line: &str) -> bool {
    SECRETS
        .iter()
        .any(|secret| line.match_indices(secret).any(|(start, _)| !line[start + secret.len()..].starts_with("-file")))
}

/// Masks everything after the first `=`.
fn mask_value(line: &str) -> String {
    let value_start = line.find('=').map_or(0, |equals| equals + 1);
    let mask_char = |c: char| if c.is_whitespace() || c == '"' { c.to_string() } else { "*".repeat(c.len_utf8()) };
    line[..value_start].chars().map(String::from).chain(line[value_start..].chars().map(mask_char)).collect()
}

/// Masks words that are 32 bytes in base64.
fn mask_keys(line: &str) -> String {
    if line.contains("public-key") {
        return line.to_owned();
    }
    let is_separator = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '='));
    let is_key = |word: &&str| word.parse::<PublicKey>().is_ok();
    line.split(is_separator)
        .filter(is_key)
        .fold(line.to_owned(), |line, word| line.replace(word, &"*".repeat(word.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "mDGZm3pYmDGZm3pYmDGZm3pYmDGZm3pYmDGZm3pYmDE=";

    #[test]
    fn secrets_are_masked_and_no_byte_is_moved() {
        for line in [
            format!("private-key = \"{KEY}\""),
            format!("peer = [{{ public-key = \"x\", preshared-key = \"{KEY}\" }}]"),
            format!("privat-key = \"{KEY}\""),
            format!("preshared-key = {KEY}"),
            "private-key = \"schlüssel\"\nname = \"rw0\"".to_owned(),
        ] {
            let masked = mask_secrets(&line);
            assert!(!masked.contains(KEY) && !masked.contains("schlüssel"), "{masked}");
            assert_eq!(masked.len(), line.len());
        }
        assert!(mask_secrets("private-key = 1\nname = \"rw0\"").ends_with("\nname = \"rw0\""));
    }

    #[test]
    fn public_keys_and_file_names_are_not_masked() {
        let public = format!("public-key = \"{KEY}\"\nprivate-key-file = \"/etc/ropewalk/rw0.key\"\n");
        assert_eq!(mask_secrets(&public), public);
    }
}
