//! The version of a stack, for results folders.

/// The lock file with which the program was built.
const LOCK: &str = include_str!("../../../Cargo.lock");

/// What both stacks' hosts have in common.
const HOST: &str = include_str!("host.rs");

/// The name and the version of the package `name`, with a hash. The hash is of its place in the lock file, which has the checksum
/// of a release or the commit of a git repository, and of the code that hosts it: [`HOST`] and `adapter`.
pub(crate) fn of(name: &str, adapter: &str) -> &'static str {
    let is_package = |block: &&str| block.lines().any(|line| line == format!("name = \"{name}\""));
    let package = LOCK.split("\n\n").find(is_package).unwrap_or_default();
    let version = package.lines().find_map(|line| line.strip_prefix("version = ")).unwrap_or_default();
    params::code_version(name, version.trim_matches('"'), &[package, HOST, adapter])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_names_the_release_and_differs_with_the_code() {
        let version = of("quinn-proto", "");
        assert!(version.starts_with("quinn-proto 0.11."), "{version}");
        assert_ne!(version, of("quinn-proto", "fn new() {}"));
    }
}
