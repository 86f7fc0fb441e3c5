//! Which room may depend on which, and what core may take from outside.

use serde_json::Value;

/// A crate of the workspace.
struct Room {
    /// Package name without `ropewalk-`.
    name: &'static str,
    /// Rooms it may depend on.
    rooms: &'static [&'static str],
    /// Outside crates it may depend on: core says which, the others are free.
    outside: Option<&'static [&'static str]>,
}

const fn core(name: &'static str, rooms: &'static [&'static str], outside: &'static [&'static str]) -> Room {
    Room { name, rooms, outside: Some(outside) }
}

const fn free(name: &'static str, rooms: &'static [&'static str]) -> Room {
    Room { name, rooms, outside: None }
}

/// The arrows. Dev-dependencies are exempt: a test may look down into any room that exists for it.
const ROOMS: &[Room] = &[
    core("units", &[], &["rand_core", "rand_pcg", "serde"]),
    core("settings", &[], &[]),
    core("control", &["settings", "units"], &["libm"]),
    core("schedule", &["settings", "units"], &["libm"]),
    core("record", &["units"], &["serde"]),
    core("notation", &["units"], &["annotate-snippets", "schemars", "serde", "toml"]),
    core("scenario", &["notation", "units"], &["libm", "schemars", "serde", "serde_json", "toml"]),
    core("recovery", &["control", "units"], &["libm"]),
    core("link", &["scenario", "units"], &["libm"]),
    core("wire", &["units"], &[]),
    core("seal", &["units"], &["aws-lc-rs", "base64ct", "snow", "zeroize"]),
    core("protocol", &["control", "link", "record", "recovery", "schedule", "units", "wire"], &["libm"]),
    core("host", &["protocol", "seal", "units", "wire"], &[]),
    core("worlds", &["control", "protocol", "schedule", "units"], &[]),
    free("lab", &["link", "notation", "record", "scenario", "units"]),
    free("tunnel", &["control", "host", "notation", "protocol", "schedule", "seal", "settings", "units", "wire"]),
    free(
        "sim",
        &["control", "link", "protocol", "record", "recovery", "scenario", "schedule", "settings", "units", "wire"],
    ),
    free("store", &["record", "units"]),
    free("report", &["record", "scenario", "units"]),
    free(
        "ropewalk",
        &[
            "control", "lab", "protocol", "record", "recovery", "report", "scenario", "schedule", "sim", "store",
            "tunnel", "units",
        ],
    ),
    free("xtask", &[]),
];

/// Findings in the output of `cargo metadata --no-deps`.
pub(super) fn check(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let mut findings = Vec::new();
    for package in packages {
        let name = room_name(text(&package["name"]));
        let Some(room) = ROOMS.iter().find(|room| room.name == name) else {
            findings.push(format!("crate `{name}` has no place among the rooms in xtask/src/tidy/arrows.rs"));
            continue;
        };
        let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
        let dependencies = dependencies.iter().filter(|dependency| dependency["kind"] != "dev");
        findings.extend(dependencies.filter_map(|dependency| refuse(room, dependency)));
    }
    findings
}

fn refuse(room: &Room, dependency: &Value) -> Option<String> {
    let name = room_name(text(&dependency["name"]));
    if dependency["path"].is_string() {
        let allowed = room.rooms.contains(&name);
        return (!allowed).then(|| format!("`{}` may not depend on `{name}` (ARCHITECTURE.md, arrows)", room.name));
    }
    let allowed = room.outside.is_none_or(|outside| outside.contains(&name));
    (!allowed).then(|| format!("`{}` lies in core, which may not use the outside crate `{name}`", room.name))
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
        check(&json!({"packages": [{"name": package, "dependencies": [dependency]}]}))
    }

    #[test]
    fn an_arrow_upwards_is_refused_and_one_downwards_is_not() {
        let upwards = json!({"name": "ropewalk-sim", "path": "drive/sim", "kind": null});
        assert_eq!(findings("ropewalk-control", &upwards).len(), 1);
        let downwards = json!({"name": "ropewalk-units", "path": "core/units", "kind": null});
        assert!(findings("ropewalk-control", &downwards).is_empty());
    }

    #[test]
    fn core_takes_no_outside_crate_that_is_not_listed() {
        let tokio = |kind: Value| json!({"name": "tokio", "kind": kind});
        assert_eq!(findings("ropewalk-units", &tokio(Value::Null)).len(), 1);
        assert!(findings("ropewalk-units", &tokio(json!("dev"))).is_empty(), "dev-dependencies are exempt");
        assert!(findings("ropewalk-sim", &tokio(Value::Null)).is_empty(), "drivers are free");
    }

    #[test]
    fn a_crate_without_a_room_is_found() {
        assert_eq!(check(&json!({"packages": [{"name": "shed", "dependencies": []}]})).len(), 1);
    }

    #[test]
    fn the_table_itself_has_no_circle() {
        for (place, room) in ROOMS.iter().enumerate() {
            for below in room.rooms {
                assert!(ROOMS[..place].iter().any(|earlier| earlier.name == *below), "{} -> {below}", room.name);
            }
        }
    }
}
