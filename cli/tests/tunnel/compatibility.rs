//! Configurations of earlier versions, as they were: this one reads them all, and says nothing against them.

use daemon::config;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A folder of files for each version: an editor's, with every key, and those that the setup wrote.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tunnel/compatibility");
/// What `mpt` mode is told at each start.
const MPT_WARNING: &str = "neither authenticates nor encrypts";

/// A copy of a folder whose files only their owner may read, as git does not keep it.
fn private_copy(folder: &Path) -> PathBuf {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compatibility").join(folder.file_name().unwrap());
    let _ = fs::remove_dir_all(&copy);
    fs::create_dir_all(&copy).unwrap();
    for file in fs::read_dir(folder).unwrap().flatten() {
        let copy = copy.join(file.file_name());
        fs::copy(file.path(), &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o600)).unwrap();
    }
    copy
}

#[test]
fn every_configuration_of_an_earlier_version_is_still_one() {
    let mut number = 0;
    for version in fs::read_dir(FOLDER).unwrap().flatten() {
        for file in fs::read_dir(private_copy(&version.path())).unwrap().flatten().map(|file| file.path()) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            if !name.ends_with(".toml") || name.ends_with(".peers.toml") {
                continue;
            }
            let config = config::load(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let warnings: Vec<_> = config.warnings.iter().filter(|text| !text.contains(MPT_WARNING)).collect();
            assert!(warnings.is_empty(), "{}: {warnings:?}", file.display());
            number += 1;
        }
    }
    assert!(number >= 4, "{number} configurations");
}

#[test]
fn the_keys_of_the_description_are_in_a_kept_configuration() {
    let description =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/tunnel-configuration.md")).unwrap();
    let files =
        fs::read_dir(FOLDER).unwrap().flatten().flat_map(|version| fs::read_dir(version.path()).unwrap().flatten());
    let kept: String = files.map(|file| fs::read_to_string(file.path()).unwrap()).collect();
    let (tables, _) = description.split_once("## What a reload changes").unwrap();
    let headings = tables.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`'));
    let keys = headings.filter_map(|heading| heading.rsplit('.').next());
    let missing: Vec<_> = keys.filter(|key| !kept.contains(&format!("{key} ="))).collect();
    // A key of the configuration itself, which every-key.toml has in a file.
    assert_eq!(missing, ["private-key"], "a new key belongs into the folder of the version that brings it");
}
