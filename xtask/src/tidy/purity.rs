//! Checks that pure crates use no clock, thread, socket or hash order. Clippy checks the same by type (the root's
//! `clippy.toml`); this check reads the text, and so also finds imports without a call. A crate is pure unless it has a
//! `clippy.toml` of its own.

use super::Source;

const BANNED: &[&str] = &[
    "std::time::Instant",
    "SystemTime",
    "TcpListener",
    "TcpStream",
    "UdpSocket",
    "std::thread",
    "std::process",
    "HashMap",
    "HashSet",
];

/// Findings in the `src` folders of pure crates.
pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let folders_with = |file: &'static str| sources.iter().filter_map(move |source| source.path.strip_suffix(file));
    let impure: Vec<_> = folders_with("/clippy.toml").collect();
    let pure: Vec<_> = folders_with("/Cargo.toml")
        .filter(|folder| !impure.contains(folder))
        .map(|folder| format!("{folder}/src/"))
        .collect();
    let rust = sources
        .iter()
        .filter(|source| source.path.ends_with(".rs") && pure.iter().any(|folder| source.path.starts_with(folder)));
    rust.flat_map(|source| source.text.lines().enumerate().filter_map(|(index, line)| finding(source, index, line)))
        .collect()
}

fn finding(source: &Source, index: usize, line: &str) -> Option<String> {
    let code = line.split("//").next().unwrap_or_default();
    let banned = BANNED.iter().find(|banned| code.contains(*banned))?;
    Some(format!("{}:{}: this crate is pure; `{banned}` belongs to a driver", source.path, index + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let source = |(path, text): (&str, &str)| Source { path: path.to_owned(), text: text.to_owned() };
        let files = [("cc/control/Cargo.toml", ""), ("sim/Cargo.toml", ""), ("sim/clippy.toml", ""), (path, text)];
        check(&files.map(source))
    }

    #[test]
    fn a_clock_in_a_pure_crate_is_found_with_its_line() {
        let findings = findings("cc/control/src/x.rs", "//! About\nuse std::time::Instant;\n");
        assert_eq!(findings.len(), 1);
        assert!(findings[0].starts_with("cc/control/src/x.rs:2:"), "{}", findings[0]);
    }

    #[test]
    fn comments_tests_and_other_crates_may_name_anything() {
        assert!(findings("cc/control/src/x.rs", "// no HashMap: its order is random").is_empty());
        assert!(findings("sim/src/x.rs", "use std::collections::HashMap;").is_empty());
        assert!(findings("cc/control/tests/x.rs", "use std::thread;").is_empty());
    }
}
