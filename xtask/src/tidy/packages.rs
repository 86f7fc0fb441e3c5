//! What others wrote and we build: its licences, its sources, the Rust it needs, and versions that stand twice.

use serde_json::Value;
use std::collections::BTreeMap;

/// Licences whose conditions a program of ours fulfils. NCSA's is the fuzzer's, which nothing released holds.
const LICENCES: &[&str] = &["Apache-2.0", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "NCSA", "Unicode-3.0", "Zlib"];
/// Crates that others want in more than one version.
const TWICE: &[&str] = &["cpufeatures", "getrandom", "netlink-packet-route", "r-efi", "syn", "windows-sys"];
/// What the source of a package begins with that is neither a git repository nor a folder.
const REGISTRY: &str = "registry+";

/// Findings in the output of `cargo metadata`.
pub(super) fn check(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let (foreign, own): (Vec<_>, Vec<_>) = packages.iter().partition(|package| package["source"].is_string());
    let ours = own.iter().find_map(|package| version(&package["rust_version"]));
    let mut findings: Vec<String> = foreign.iter().flat_map(|package| faults(package, ours)).collect();
    let mut versions = BTreeMap::<&str, u32>::new();
    foreign.iter().for_each(|package| *versions.entry(text(&package["name"])).or_default() += 1);
    let twice = |name: &str| versions.get(name).is_some_and(|count| *count > 1);
    let new = versions.keys().filter(|name| twice(name) && !TWICE.contains(name));
    findings.extend(new.map(|name| format!("`{name}` is there in more than one version; agree on one, or list it")));
    let gone = TWICE.iter().filter(|name| !twice(name));
    findings.extend(gone.map(|name| format!("`{name}` is there once: take it out of xtask/src/tidy/packages.rs")));
    findings
}

fn faults(package: &Value, ours: Option<[u64; 2]>) -> Vec<String> {
    let (name, licence) = (text(&package["name"]), text(&package["license"]));
    let mut faults = Vec::new();
    if !is_allowed(licence) {
        faults.push(format!("`{name}` has the licence `{licence}`, which xtask/src/tidy/packages.rs does not list"));
    }
    if !text(&package["source"]).starts_with(REGISTRY) {
        faults.push(format!("`{name}` is not from a registry"));
    }
    let needs = version(&package["rust_version"]);
    if needs.is_some_and(|needs| ours.is_some_and(|ours| needs > ours)) {
        faults.push(format!("`{name}` needs a newer Rust than the one that Cargo.toml promises"));
    }
    faults
}

/// Major and minor number.
fn version(text: &Value) -> Option<[u64; 2]> {
    let mut numbers = text.as_str()?.split('.').map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?])
}

/// Whether an SPDX expression can be fulfilled with listed licences alone.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    either(&words, &mut at) && at == words.len()
}

/// `AND` binds closer than `OR`. Both sides are read in any case.
fn either(words: &[&str], at: &mut usize) -> bool {
    let mut allowed = both(words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        allowed |= both(words, at);
    }
    allowed
}

fn both(words: &[&str], at: &mut usize) -> bool {
    let mut allowed = one(words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        allowed &= one(words, at);
    }
    allowed
}

/// A licence, with or without an exception (which only allows more), or an expression in parentheses.
fn one(words: &[&str], at: &mut usize) -> bool {
    let word = words.get(*at).copied().unwrap_or_default();
    *at += 1;
    let allowed = if word == "(" { either(words, at) } else { LICENCES.contains(&word) };
    match words.get(*at) {
        Some(&")") if word == "(" => *at += 1,
        Some(&"WITH") => *at += 2,
        _ => {}
    }
    allowed
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_expression_is_fulfilled_with_listed_licences_alone() {
        let allowed = ["MIT", "MIT/Apache-2.0", "GPL-3.0 OR MIT", "(Apache-2.0 OR GPL-3.0) AND BSD-3-Clause"];
        assert!(allowed.iter().all(|it| is_allowed(it)));
        assert!(is_allowed("Apache-2.0 WITH LLVM-exception OR GPL-3.0"));
        let refused = ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND GPL-3.0", "MIT MIT"];
        assert!(refused.iter().all(|it| !is_allowed(it)));
    }

    #[test]
    fn a_source_a_licence_and_a_newer_rust_are_found() {
        let own = json!({"name": "own", "source": null, "rust_version": "1.89"});
        let found = |licence: &str, source: &str, rust: &str| {
            let package = json!({"name": "x", "license": licence, "source": source, "rust_version": rust});
            let mut findings = check(&json!({"packages": [own, package]}));
            findings.retain(|finding| !finding.contains("take it out"));
            findings.len()
        };
        assert_eq!(found("MIT", REGISTRY, "1.89.0"), 0);
        assert_eq!([found("GPL-3.0", REGISTRY, "1.70"), found("MIT", "git+https://example.org", "1.70")], [1, 1]);
        assert_eq!(found("MIT", REGISTRY, "1.90"), 1);
    }

    #[test]
    fn a_second_version_that_is_not_listed_is_found() {
        let package = json!({"name": "x", "license": "MIT", "source": REGISTRY});
        let findings = check(&json!({"packages": [package, package]}));
        assert!(findings.iter().any(|finding| finding.contains("`x` is there in more than one version")));
    }
}
