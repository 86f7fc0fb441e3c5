//! Masking of secrets in a file's text, before any of it is shown.

use seal::PublicKey;

/// The keys whose values are secret; `private-key-file` is not one.
const SECRETS: [&str; 2] = ["private-key", "preshared-key"];

/// Overwrites the secrets in `text` by `*`, without moving a byte: the values of `private-key` and `preshared-key`, and
/// every word in the form of a key on a line without `public-key` (the value of a misspelt key). No other copy of the
/// text is made.
pub(crate) fn mask_secrets(text: &str) -> String {
    let mut masked = text.as_bytes().to_vec();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let line_bytes = &mut masked[start..start + line.len()];
        if contains_secret_key(line) {
            mask_value(line, line_bytes);
        } else {
            mask_keys(line, line_bytes);
        }
        start += line.len();
    }
    String::from_utf8(masked).expect("whole characters are overwritten")
}

fn contains_secret_key(line: &str) -> bool {
    SECRETS
        .iter()
        .any(|secret| line.match_indices(secret).any(|(start, _)| !line[start + secret.len()..].starts_with("-file")))
}

/// Masks everything after the first `=` in `masked`, the bytes of `line`.
fn mask_value(line: &str, masked: &mut [u8]) {
    let value_start = line.find('=').map_or(0, |equals| equals + 1);
    let is_kept = |c: char| c.is_whitespace() || c == '"';
    for (start, c) in line[value_start..].char_indices().filter(|(_, c)| !is_kept(*c)) {
        masked[value_start + start..][..c.len_utf8()].fill(b'*');
    }
}

/// Masks words that are 32 bytes in base64 in `masked`, the bytes of `line`.
fn mask_keys(line: &str, masked: &mut [u8]) {
    if line.contains("public-key") {
        return;
    }
    let mut start = 0;
    let is_separator = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '='));
    for word in line.split_inclusive(is_separator) {
        let key = word.trim_end_matches(is_separator);
        if key.parse::<PublicKey>().is_ok() {
            masked[start..start + key.len()].fill(b'*');
        }
        start += word.len();
    }
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
