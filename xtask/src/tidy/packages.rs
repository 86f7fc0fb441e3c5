//! Checks of the dependencies: licences, sources, the Rust version that they need, and duplicate versions.

use serde_json::Value;
use std::collections::BTreeMap;

/// Licences whose conditions the released program fulfils. NCSA is that of libfuzzer, which is not released; BSD-2-Clause
/// that of the Python package's `numpy`.
const LICENCES: &[&str] =
    &["Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "NCSA", "Unicode-3.0", "Zlib"];
/// Crates that dependencies need in more than one version; `bitflags`, `kurbo` and `miniz_oxide` are svg2pdf's.
const ALLOWED_DUPLICATES: &[&str] = &[
    "bitflags",
    "cpufeatures",
    "getrandom",
    "kurbo",
    "miniz_oxide",
    "netlink-packet-route",
    "r-efi",
    "syn",
    "windows-sys",
];
/// Prefix of a package's source if that is a registry, not a git repository or a folder.
const REGISTRY_PREFIX: &str = "registry+";

/// Findings in the output of `cargo metadata`.
pub(super) fn check(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let (dependencies, workspace_members): (Vec<_>, Vec<_>) =
        packages.iter().partition(|package| package["source"].is_string());
    let workspace_msrv = workspace_members.iter().find_map(|package| parse_major_minor(&package["rust_version"]));
    let mut findings: Vec<String> =
        dependencies.iter().flat_map(|package| check_package(package, workspace_msrv)).collect();
    let mut versions = BTreeMap::<&str, u32>::new();
    dependencies.iter().for_each(|package| *versions.entry(as_str_or_empty(&package["name"])).or_default() += 1);
    let is_duplicate = |name: &str| versions.get(name).is_some_and(|count| *count > 1);
    let unlisted = versions.keys().filter(|name| is_duplicate(name) && !ALLOWED_DUPLICATES.contains(name));
    findings
        .extend(unlisted.map(|name| format!("`{name}` is used in more than one version; agree on one, or list it")));
    let stale = ALLOWED_DUPLICATES.iter().filter(|name| !is_duplicate(name));
    findings.extend(
        stale.map(|name| format!("`{name}` is used in one version only: take it out of xtask/src/tidy/packages.rs")),
    );
    findings
}

/// Findings in a package of the dependencies.
fn check_package(package: &Value, workspace_msrv: Option<[u64; 2]>) -> Vec<String> {
    let (name, licence) = (as_str_or_empty(&package["name"]), as_str_or_empty(&package["license"]));
    let mut findings = Vec::new();
    if !is_allowed(licence) {
        findings.push(format!("`{name}` has the licence `{licence}`, which xtask/src/tidy/packages.rs does not list"));
    }
    if !as_str_or_empty(&package["source"]).starts_with(REGISTRY_PREFIX) {
        findings.push(format!("`{name}` is not from a registry"));
    }
    let msrv = parse_major_minor(&package["rust_version"]);
    if msrv.is_some_and(|msrv| workspace_msrv.is_some_and(|workspace_msrv| msrv > workspace_msrv)) {
        findings.push(format!("`{name}` needs a newer Rust than the one that Cargo.toml promises"));
    }
    findings
}

/// The major and the minor number of a version.
fn parse_major_minor(version: &Value) -> Option<[u64; 2]> {
    let mut numbers = version.as_str()?.split('.').map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?])
}

/// Whether an SPDX expression can be fulfilled with listed licences alone.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut position = 0;
    parse_or(&tokens, &mut position) && position == tokens.len()
}

/// Parses operands of `OR`, which binds less than `AND`; whether one of them is allowed.
fn parse_or(tokens: &[&str], position: &mut usize) -> bool {
    let mut allowed = parse_and(tokens, position);
    while tokens.get(*position) == Some(&"OR") {
        *position += 1;
        allowed |= parse_and(tokens, position);
    }
    allowed
}

/// Parses operands of `AND`; whether all of them are allowed.
fn parse_and(tokens: &[&str], position: &mut usize) -> bool {
    let mut allowed = parse_license(tokens, position);
    while tokens.get(*position) == Some(&"AND") {
        *position += 1;
        allowed &= parse_license(tokens, position);
    }
    allowed
}

/// Parses a licence, with or without an exception (which only permits more), or an expression in parentheses.
fn parse_license(tokens: &[&str], position: &mut usize) -> bool {
    let token = tokens.get(*position).copied().unwrap_or_default();
    *position += 1;
    let allowed = if token == "(" { parse_or(tokens, position) } else { LICENCES.contains(&token) };
    match tokens.get(*position) {
        Some(&")") if token == "(" => *position += 1,
        Some(&"WITH") => *position += 2,
        _ => {}
    }
    allowed
}

fn as_str_or_empty(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_expression_is_fulfilled_with_listed_licences_alone() {
        let allowed = ["MIT", "MIT/Apache-2.0", "GPL-3.0 OR MIT", "(Apache-2.0 OR GPL-3.0) AND BSD-3-Clause"];
        assert!(allowed.iter().all(|package| is_allowed(package)));
        assert!(is_allowed("Apache-2.0 WITH LLVM-exception OR GPL-3.0"));
        let rejected = ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND GPL-3.0", "MIT MIT"];
        assert!(rejected.iter().all(|package| !is_allowed(package)));
    }

    #[test]
    fn a_source_a_licence_and_a_newer_rust_are_findings() {
        let member = json!({"name": "own", "source": null, "rust_version": "1.89"});
        let finding_count = |licence: &str, source: &str, rust: &str| {
            let package = json!({"name": "x", "license": licence, "source": source, "rust_version": rust});
            let mut findings = check(&json!({"packages": [member, package]}));
            findings.retain(|finding| !finding.contains("take it out"));
            findings.len()
        };
        assert_eq!(finding_count("MIT", REGISTRY_PREFIX, "1.89.0"), 0);
        assert_eq!(
            [
                finding_count("GPL-3.0", REGISTRY_PREFIX, "1.70"),
                finding_count("MIT", "git+https://example.org", "1.70")
            ],
            [1, 1]
        );
        assert_eq!(finding_count("MIT", REGISTRY_PREFIX, "1.90"), 1);
    }

    #[test]
    fn a_second_version_that_is_not_listed_is_a_finding() {
        let package = json!({"name": "x", "license": "MIT", "source": REGISTRY_PREFIX});
        let findings = check(&json!({"packages": [package, package]}));
        assert!(findings.iter().any(|finding| finding.contains("`x` is used in more than one version")));
    }
}
