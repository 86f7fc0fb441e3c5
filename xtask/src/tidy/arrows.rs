//! Which crate may depend on which, and what a pure crate may take from outside.

use serde_json::Value;

/// A crate of the workspace.
struct Room {
    /// Package name without `ropewalk-`.
    name: &'static str,
    /// Crates of the workspace that it depends on.
    crates: &'static [&'static str],
    /// Outside crates that a pure crate depends on; `None`: any.
    outside: Option<&'static [&'static str]>,
}

const fn pure(name: &'static str, crates: &'static [&'static str], outside: &'static [&'static str]) -> Room {
    Room { name, crates, outside: Some(outside) }
}

const fn free(name: &'static str, crates: &'static [&'static str]) -> Room {
    Room { name, crates, outside: None }
}

/// The allowed dependencies, lower crates first. Dev-dependencies are exempt.
const ROOMS: &[Room] = &[
    pure("units", &[], &["rand_core", "rand_pcg", "serde"]),
    pure("params", &[], &[]),
    free("testing", &[]),
    pure("parse", &["units"], &["annotate-snippets", "schemars", "serde", "toml"]),
    pure("control", &["params", "units"], &["libm"]),
    pure("schedule", &["params", "units"], &[]),
    pure("transport", &["control", "schedule", "units"], &[]),
    pure("link", &["units"], &["libm"]),
    pure("record", &["units"], &["hdrhistogram", "serde"]),
    pure("wire", &[], &[]),
    pure("seal", &["units", "wire"], &["base64ct", "blake2", "curve25519-dalek", "ring", "snow", "subtle", "zeroize"]),
    pure("machine", &["control", "link", "schedule", "transport", "units", "wire"], &[]),
    pure(
        "scenario",
        &["link", "machine", "params", "parse", "units"],
        &["libm", "schemars", "serde", "serde_json", "toml"],
    ),
    pure("mpt", &["parse", "schedule", "units", "wire"], &["ipnet"]),
    pure("node", &["machine", "seal", "units", "wire"], &[]),
    pure("testnet", &["link", "machine", "units"], &[]),
    free("daemon", &["control", "machine", "mpt", "node", "parse", "schedule", "seal", "units", "wire"]),
    free("lab", &["link", "params", "parse", "record", "scenario", "units"]),
    free(
        "sim",
        &[
            "control",
            "link",
            "machine",
            "mpt",
            "params",
            "record",
            "scenario",
            "schedule",
            "transport",
            "units",
            "wire",
        ],
    ),
    free("store", &["record"]),
    free("report", &["control", "parse", "record", "scenario"]),
    free(
        "ropewalk",
        &["control", "daemon", "lab", "mpt", "record", "report", "scenario", "schedule", "sim", "store", "units"],
    ),
    free("bench", &[]),
    free("fuzz", &["seal", "wire"]),
    free("xtask", &[]),
];

/// Findings in the output of `cargo metadata --no-deps`.
pub(super) fn check(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let mut findings = Vec::new();
    for package in packages {
        let name = room_name(text(&package["name"]));
        let Some(room) = ROOMS.iter().find(|room| room.name == name) else {
            findings.push(format!("crate `{name}` is not in the table of xtask/src/tidy/arrows.rs"));
            continue;
        };
        let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
        let dependencies = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
        findings.extend(dependencies.clone().filter_map(|dependency| refuse(room, dependency)));
        let unused =
            |name: &&&str| !dependencies.clone().any(|dependency| room_name(text(&dependency["name"])) == **name);
        let listed = room.crates.iter().chain(room.outside.unwrap_or_default());
        findings.extend(listed.filter(unused).map(|name| {
            format!("`{}` does not depend on `{name}`: take it out of the table in xtask/src/tidy/arrows.rs", room.name)
        }));
    }
    findings
}

fn refuse(room: &Room, dependency: &Value) -> Option<String> {
    let name = room_name(text(&dependency["name"]));
    if dependency["path"].is_string() {
        let allowed = room.crates.contains(&name);
        return (!allowed).then(|| format!("`{}` may not depend on `{name}` (ARCHITECTURE.md, arrows)", room.name));
    }
    let allowed = room.outside.is_none_or(|outside| outside.contains(&name));
    (!allowed).then(|| format!("`{}` is pure and may not use the outside crate `{name}`", room.name))
}

fn room_name(package: &str) -> &str {
    package.strip_prefix("ropewalk-").unwrap_or(package)
}

fn text(value: &Value) -> &str {
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
    fn an_arrow_upwards_is_refused_and_one_downwards_is_not() {
        let upwards = json!({"name": "ropewalk-sim", "path": "sim", "kind": null});
        assert_eq!(findings("ropewalk-control", &upwards).len(), 1);
        let downwards = json!({"name": "ropewalk-units", "path": "base/units", "kind": null});
        assert!(findings("ropewalk-control", &downwards).is_empty());
    }

    #[test]
    fn a_pure_crate_takes_no_outside_crate_that_is_not_listed() {
        let tokio = |kind: Value| json!({"name": "tokio", "kind": kind});
        assert_eq!(findings("ropewalk-units", &tokio(Value::Null)).len(), 1);
        assert!(findings("ropewalk-units", &tokio(json!("dev"))).is_empty(), "dev-dependencies are exempt");
        assert!(
            findings("ropewalk-sim", &tokio(Value::Null)).is_empty(),
            "the simulator is not in the list of pure crates"
        );
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_found() {
        assert_eq!(check(&json!({"packages": [{"name": "shed", "dependencies": []}]})).len(), 1);
    }

    #[test]
    fn the_table_itself_has_no_circle() {
        for (place, room) in ROOMS.iter().enumerate() {
            for below in room.crates {
                assert!(ROOMS[..place].iter().any(|earlier| earlier.name == *below), "{} -> {below}", room.name);
            }
        }
    }
}
