//! The allowed dependencies among the crates, and the outside crates that a pure crate may use.

use serde_json::Value;

/// A crate of the workspace and the crates that it may depend on.
struct CrateRule {
    /// Package name without `ropewalk-`.
    name: &'static str,
    /// Crates of the workspace that it depends on.
    crates: &'static [&'static str],
    /// Outside crates that a pure crate depends on; `None`: any.
    outside: Option<&'static [&'static str]>,
}

const fn pure(name: &'static str, crates: &'static [&'static str], outside: &'static [&'static str]) -> CrateRule {
    CrateRule { name, crates, outside: Some(outside) }
}

const fn impure(name: &'static str, crates: &'static [&'static str]) -> CrateRule {
    CrateRule { name, crates, outside: None }
}

/// The allowed dependencies, lower crates first. Dev-dependencies are exempt.
const CRATES: &[CrateRule] = &[
    pure("strings", &[], &[]),
    pure("units", &["strings"], &["rand_core", "rand_pcg", "serde"]),
    pure("filesystem", &[], &["nix"]),
    pure("params", &["strings"], &[]),
    impure("testing", &[]),
    impure("sock-diag", &[]),
    pure("parse", &["units"], &["annotate-snippets", "schemars", "serde", "toml"]),
    pure("control", &["params", "units"], &["libm"]),
    pure("schedule", &["control", "params", "units"], &[]),
    pure("policy", &["control", "schedule", "units"], &["libm"]),
    pure("sender", &["control", "units"], &[]),
    pure("bridge", &["control", "sender", "units"], &[]),
    impure("noq", &["bridge", "control", "units"]),
    impure("quinn", &["bridge", "control", "units"]),
    pure("transport", &["control", "schedule", "sender", "units"], &[]),
    pure("replay", &["control", "transport", "units"], &["serde"]),
    pure("conformance", &["control", "params", "schedule", "transport", "units"], &[]),
    pure("drill", &["control", "transport", "units"], &[]),
    pure("link", &["units"], &["libm"]),
    pure("world", &["link", "units"], &[]),
    pure("stack", &["link", "params", "units"], &[]),
    pure("record", &["strings", "units"], &["serde", "serde_json"]),
    pure("wire", &[], &[]),
    pure("seal", &["units", "wire"], &["base64ct", "blake2", "curve25519-dalek", "ring", "snow", "subtle", "zeroize"]),
    pure("machine", &["control", "link", "schedule", "sender", "units", "wire"], &[]),
    pure(
        "scenario",
        &["filesystem", "link", "machine", "params", "parse", "strings", "transport", "units"],
        &["libm", "schemars", "serde", "serde_json", "toml", "toml_edit"],
    ),
    pure("measured", &["filesystem", "scenario"], &["flate2", "schemars", "serde", "serde_json"]),
    pure("mpt", &["parse", "schedule", "units", "wire"], &["ipnet"]),
    pure("relay", &["units", "wire"], &[]),
    pure("node", &["machine", "seal", "units", "wire"], &[]),
    pure("testnet", &["link", "machine", "seal", "units", "wire", "world"], &[]),
    impure(
        "daemon",
        &[
            "control",
            "filesystem",
            "machine",
            "mpt",
            "node",
            "parse",
            "relay",
            "schedule",
            "seal",
            "strings",
            "units",
            "wire",
        ],
    ),
    impure("kernel", &[]),
    impure("stress", &["kernel", "units"]),
    impure(
        "lab",
        &["kernel", "link", "params", "parse", "record", "replay", "scenario", "sock-diag", "strings", "units"],
    ),
    impure(
        "sim",
        &[
            "control",
            "link",
            "machine",
            "mpt",
            "params",
            "policy",
            "record",
            "relay",
            "scenario",
            "schedule",
            "stack",
            "transport",
            "units",
            "wire",
            "world",
        ],
    ),
    impure(
        "learning",
        &["control", "link", "params", "parse", "policy", "record", "scenario", "schedule", "sim", "units"],
    ),
    impure("store", &["filesystem", "record"]),
    impure("report", &["control", "parse", "record", "scenario", "strings", "units"]),
    impure(
        "trace",
        &[
            "control",
            "link",
            "machine",
            "measured",
            "record",
            "report",
            "scenario",
            "schedule",
            "sim",
            "store",
            "strings",
            "transport",
            "units",
        ],
    ),
    impure(
        "runner",
        &["control", "record", "report", "scenario", "schedule", "sim", "stack", "store", "strings", "units"],
    ),
    impure("probe", &["measured", "sock-diag", "units"]),
    impure(
        "fit",
        &[
            "control",
            "filesystem",
            "machine",
            "measured",
            "record",
            "report",
            "runner",
            "scenario",
            "schedule",
            "strings",
            "units",
        ],
    ),
    impure("worlds", &["filesystem", "record", "runner", "scenario", "store", "units"]),
    impure(
        "ropewalk",
        &[
            "control",
            "daemon",
            "drill",
            "filesystem",
            "fit",
            "kernel",
            "lab",
            "measured",
            "mpt",
            "parse",
            "policy",
            "probe",
            "record",
            "report",
            "runner",
            "scenario",
            "sock-diag",
            "schedule",
            "seal",
            "stack",
            "store",
            "strings",
            "trace",
            "units",
            "worlds",
        ],
    ),
    impure(
        "python",
        &[
            "conformance",
            "control",
            "fit",
            "learning",
            "measured",
            "parse",
            "policy",
            "record",
            "report",
            "runner",
            "scenario",
            "schedule",
            "store",
            "trace",
            "units",
        ],
    ),
    impure("plugin-example", &["control", "ropewalk"]),
    impure("plugin-example-python", &["plugin-example", "python"]),
    impure("stacks", &["link", "noq", "params", "quinn", "ropewalk", "stack", "strings", "units"]),
    impure("bench", &["kernel", "machine", "node", "seal", "stress", "testnet", "units", "wire"]),
    impure("fuzz", &["control", "machine", "node", "relay", "seal", "transport", "units", "wire"]),
    impure("xtask", &[]),
];

/// Findings in the output of `cargo metadata --no-deps`.
pub(super) fn check(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let mut findings = Vec::new();
    for package in packages {
        let name = crate_name(as_str_or_empty(&package["name"]));
        let Some(rule) = CRATES.iter().find(|rule| rule.name == name) else {
            findings.push(format!("crate `{name}` is not in the table of xtask/src/tidy/dependencies.rs"));
            continue;
        };
        let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
        let dependencies = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
        findings.extend(dependencies.clone().filter_map(|dependency| check_dependency(rule, dependency)));
        let unused = |name: &&&str| {
            !dependencies.clone().any(|dependency| crate_name(as_str_or_empty(&dependency["name"])) == **name)
        };
        let listed = rule.crates.iter().chain(rule.outside.unwrap_or_default());
        findings.extend(listed.filter(unused).map(|name| {
            format!(
                "`{}` does not depend on `{name}`: take it out of the table in xtask/src/tidy/dependencies.rs",
                rule.name
            )
        }));
    }
    findings
}

fn check_dependency(rule: &CrateRule, dependency: &Value) -> Option<String> {
    let name = crate_name(as_str_or_empty(&dependency["name"]));
    if dependency["path"].is_string() {
        let allowed = rule.crates.contains(&name);
        return (!allowed).then(|| format!("`{}` may not depend on `{name}` (ARCHITECTURE.md)", rule.name));
    }
    let allowed = rule.outside.is_none_or(|outside| outside.contains(&name));
    (!allowed).then(|| format!("`{}` is pure and may not use the outside crate `{name}`", rule.name))
}

fn crate_name(package: &str) -> &str {
    package.strip_prefix("ropewalk-").unwrap_or(package)
}

fn as_str_or_empty(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn findings(package: &str, dependency: &Value) -> Vec<String> {
        let mut findings = check(&json!({"packages": [{"name": package, "dependencies": [dependency]}]}));
        findings.retain(|finding| !finding.contains("take it out of the table"));
        findings
    }

    #[test]
    fn a_dependency_that_is_not_listed_is_a_finding() {
        let upwards = json!({"name": "ropewalk-sim", "path": "sim", "kind": null});
        assert_eq!(findings("ropewalk-control", &upwards).len(), 1);
        let downwards = json!({"name": "ropewalk-units", "path": "base/units", "kind": null});
        assert!(findings("ropewalk-control", &downwards).is_empty());
    }

    #[test]
    fn an_unlisted_outside_crate_of_a_pure_crate_is_a_finding() {
        let tokio = |kind: Value| json!({"name": "tokio", "kind": kind});
        assert_eq!(findings("ropewalk-units", &tokio(Value::Null)).len(), 1);
        assert!(findings("ropewalk-units", &tokio(json!("dev"))).is_empty(), "dev-dependencies are exempt");
        assert!(
            findings("ropewalk-sim", &tokio(Value::Null)).is_empty(),
            "the simulator is not in the list of pure crates"
        );
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_a_finding() {
        assert_eq!(check(&json!({"packages": [{"name": "shed", "dependencies": []}]})).len(), 1);
    }

    #[test]
    fn every_crate_is_listed_after_its_dependencies() {
        for (index, rule) in CRATES.iter().enumerate() {
            for dependency in rule.crates {
                assert!(
                    CRATES[..index].iter().any(|earlier| earlier.name == *dependency),
                    "{} -> {dependency}",
                    rule.name
                );
            }
        }
    }
}
