//! Secrets are masked before any of a file's text can be shown.

use seal::PublicKey;

/// What introduces a secret; `private-key-file` does not.
const SECRETS: [&str; 3] = ["private-key", "preshared-key", "auth_key"];

/// `text` with secrets overwritten by `*`, every byte in its place: what stands after `private-key` and
/// `preshared-key`, and whatever has a key's form on a line that does not say `public-key` (a misspelt key's value).
pub(crate) fn masked(text: &str) -> String {
    text.split_inclusive('\n').map(|line| if names_secret(line) { hide_all(line) } else { hide_keys(line) }).collect()
}

fn names_secret(line: &str) -> bool {
    SECRETS
        .iter()
        .any(|secret| line.match_indices(secret).any(|(at, _)| !line[at + secret.len()..].starts_with("-file")))
}

/// Everything behind the first `=`.
fn hide_all(line: &str) -> String {
    let from = line.find('=').map_or(0, |equals| equals + 1);
    let stars = |c: char| if c.is_whitespace() || c == '"' { c.to_string() } else { "*".repeat(c.len_utf8()) };
    line[..from].chars().map(String::from).chain(line[from..].chars().map(stars)).collect()
}

/// Words that are 32 bytes in base64.
fn hide_keys(line: &str) -> String {
    if line.contains("public-key") {
        return line.to_owned();
    }
    let apart = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '='));
    let is_key = |word: &&str| word.parse::<PublicKey>().is_ok();
    line.split(apart).filter(is_key).fold(line.to_owned(), |line, word| line.replace(word, &"*".repeat(word.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "mDGZm3pYmDGZm3pYmDGZm3pYmDGZm3pYmDGZm3pYmDE=";

    #[test]
    fn no_secret_is_left_and_every_byte_keeps_its_place() {
        for line in [
            format!("private-key = \"{KEY}\""),
            format!("peer = [{{ public-key = \"x\", preshared-key = \"{KEY}\" }}]"),
            format!("privat-key = \"{KEY}\""),
            format!("preshared-key = {KEY}"),
            "private-key = \"schlüssel\"\nname = \"rw0\"".to_owned(),
        ] {
            let shown = masked(&line);
            assert!(!shown.contains(KEY) && !shown.contains("schlüssel"), "{shown}");
            assert_eq!(shown.len(), line.len());
        }
        assert!(masked("private-key = 1\nname = \"rw0\"").ends_with("\nname = \"rw0\""));
    }

    #[test]
    fn what_is_public_stays() {
        let public = format!("public-key = \"{KEY}\"\nprivate-key-file = \"/etc/ropewalk/rw0.key\"\n");
        assert_eq!(masked(&public), public);
    }
}
