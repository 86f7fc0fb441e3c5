//! Core knows no clock, thread, socket or hash order. Clippy says the same by types (`core/clippy.toml`); this reads the
//! text and so also sees what is imported and not called.

use super::Source;

const BANNED: &[&str] =
    &["std::time::Instant", "SystemTime", "std::net", "std::thread", "std::process", "HashMap", "HashSet"];

/// Findings in `core/*/src`.
pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let core = sources.iter().filter(|source| {
        source.path.starts_with("core/") && source.path.contains("/src/") && source.path.ends_with(".rs")
    });
    core.flat_map(|source| source.text.lines().enumerate().filter_map(|(index, line)| finding(source, index, line)))
        .collect()
}

fn finding(source: &Source, index: usize, line: &str) -> Option<String> {
    let code = line.split("//").next().unwrap_or_default();
    let banned = BANNED.iter().find(|banned| code.contains(*banned))?;
    Some(format!("{}:{}: core is pure; `{banned}` belongs to a driver", source.path, index + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        check(&[Source { path: path.to_owned(), text: text.to_owned() }])
    }

    #[test]
    fn a_clock_in_core_is_found_with_its_line() {
        let found = findings("core/control/src/x.rs", "//! About\nuse std::time::Instant;\n");
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("core/control/src/x.rs:2:"), "{}", found[0]);
    }

    #[test]
    fn comments_and_other_rooms_may_name_anything() {
        assert!(findings("core/control/src/x.rs", "// no HashMap: its order is random").is_empty());
        assert!(findings("drive/sim/src/x.rs", "use std::collections::HashMap;").is_empty());
        assert!(findings("core/control/tests/x.rs", "use std::thread;").is_empty());
    }
}
