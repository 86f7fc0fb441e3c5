//! `cargo xtask dist`: the program as it is released, with link-time and profile-guided optimisation.
//!
//! An instrumented build runs the training scenarios, `llvm-profdata` merges the profiles that it writes, and a second
//! build is optimised with them. Both builds name their target, so that build scripts and procedural macros stay as
//! they are.
//!
//! The build is reproducible: the same commit, compiler and profile give the same bytes in any folder. The program contains
//! no path of this machine, and no time. The profile itself is not reproducible, because the counters of threads race. So it
//! is kept next to the program, and `--profile` builds with a given one.

use crate::shell;
use std::fs;
use std::path::{Path, PathBuf};

/// Scenarios for the instrumented program: the workloads of the benchmark, and tunnels in the simulator.
const TRAINING: &[&str] = &[
    "scenarios/bench/w1.toml",
    "scenarios/bench/w2.toml",
    "scenarios/bench/w3.toml",
    "scenarios/papers/al-imareen-2024.toml --quick",
    "scenarios/tunnel/al-imareen-ropewalk.toml --quick",
];

/// The options of `cargo xtask dist`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    /// The profile to build with, instead of a new one.
    profile: Option<PathBuf>,
    /// Whether the program is built a second time in another folder.
    check_reproducible: bool,
}

impl Options {
    fn parse(arguments: &[&str]) -> Result<Self, String> {
        match arguments {
            [] => Ok(Self::default()),
            ["--check-reproducible", rest @ ..] => Ok(Self { check_reproducible: true, ..Self::parse(rest)? }),
            ["--profile", file, rest @ ..] => {
                let profile = fs::canonicalize(file).map_err(|error| format!("--profile {file}: {error}"))?;
                Ok(Self { profile: Some(profile), ..Self::parse(rest)? })
            }
            [unknown, ..] => Err(format!("no option `{unknown}` of dist: --profile FILE, --check-reproducible")),
        }
    }
}

/// The folder of the release: the program and its profile.
pub(crate) fn folder() -> PathBuf {
    shell::target().join("released")
}

/// `cargo xtask dist [--profile FILE] [--check-reproducible]`.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    if options.check_reproducible && !shell::output("git status --porcelain")?.is_empty() {
        return Err("--check-reproducible builds the commit, and there are changes that are not committed".into());
    }
    let program = build_with(options.profile)?;
    let hashes = [&program, &folder().join("ropewalk.profdata")].map(|file| sha256(file));
    let [program_hash, profile_hash] = hashes;
    let program_hash = program_hash?;
    shell::print(&format!("{}\nsha256 {program_hash}\nprofile {}\n", program.display(), profile_hash?))?;
    if !options.check_reproducible {
        return Ok(());
    }
    let second_hash = sha256(&build_elsewhere()?)?;
    match second_hash == program_hash {
        true => shell::print("the same in another folder\n"),
        false => Err(format!("not reproducible: in another folder it has the hash {second_hash}")),
    }
}

/// Builds the program, with a given profile or a new one, and returns its path.
pub(crate) fn build(profile: &[&str]) -> Result<PathBuf, String> {
    match Options::parse(profile)? {
        Options { profile, check_reproducible: false } => build_with(profile),
        _ => Err("--check-reproducible is an option of dist".into()),
    }
}

fn build_with(profile: Option<PathBuf>) -> Result<PathBuf, String> {
    let (released, kept_profile) = (folder().join("ropewalk"), folder().join("ropewalk.profdata"));
    let profile = profile.map_or_else(train, Ok)?;
    fs::create_dir_all(folder()).map_err(|error| io_error(&released, &error))?;
    if profile != kept_profile {
        fs::copy(&profile, &kept_profile).map_err(|error| io_error(&profile, &error))?;
    }
    let program = compile(&shell::root(), &shell::target(), "use", &kept_profile)?;
    fs::copy(&program, &released).map_err(|error| io_error(&program, &error))?;
    Ok(released)
}

/// Makes a profile; returns its path.
fn train() -> Result<PathBuf, String> {
    let compiler = shell::output("rustc -vV")?;
    let llvm = field(&compiler, "LLVM version:").and_then(|version| version.split('.').next());
    let profdata = profdata(llvm.ok_or("`rustc -vV` names no LLVM version")?)?;
    let folder = shell::target().join("pgo");
    let (raw, merged, results) = (folder.join("raw"), folder.join("merged.profdata"), folder.join("results"));
    let _ = fs::remove_dir_all(&folder);
    let program = compile(&shell::root(), &shell::target(), "generate", &raw)?;
    for scenario in TRAINING {
        let _ = fs::remove_dir_all(&results);
        shell::run(&format!("{} run {scenario} --quiet --out {}", program.display(), results.display()))?;
    }
    shell::run(&format!("{profdata} merge --output {} {}", merged.display(), raw.display()))?;
    Ok(merged)
}

/// Builds the commit in a folder of another name, with the same profile; returns the program's path.
fn build_elsewhere() -> Result<PathBuf, String> {
    let folder = shell::target().join("reproduce");
    let (sources, target) = (folder.join("elsewhere/sources"), folder.join("built-there"));
    let _ = fs::remove_dir_all(&folder);
    shell::run(&format!("git clone --quiet --no-hardlinks {} {}", shell::root().display(), sources.display()))?;
    let program = compile(&sources, &target, "use", &self::folder().join("ropewalk.profdata"))?;
    Ok(program)
}

/// The program of the package `ropewalk-kernel`: the feature `kernel` alone, as small as possible. Returns its path.
pub(crate) fn build_loader() -> Result<PathBuf, String> {
    cargo_build(&shell::root(), &shell::target(), "loader", "--no-default-features --features kernel", &[])
}

/// Compiles the sources in `root` with a profile; returns the program's path.
fn compile(root: &Path, target: &Path, stage: &str, profile: &Path) -> Result<PathBuf, String> {
    let flags = [format!("-Cprofile-{stage}={}", profile.display())];
    cargo_build(root, target, "dist", "--all-features", &flags)
}

/// Compiles the sources in `root` so that the program names no folder of this machine; returns its path.
fn cargo_build(
    root: &Path,
    target: &Path,
    cargo_profile: &str,
    features: &str,
    flags: &[String],
) -> Result<PathBuf, String> {
    let compiler = shell::output("rustc -vV")?;
    let host = field(&compiler, "host:").ok_or("`rustc -vV` names no host")?;
    let paths = remapped_paths(root, target, &compiler)?;
    let mut flags = flags.to_vec();
    let is_instrumented = flags.iter().any(|flag| flag.starts_with("-Cprofile-generate"));
    flags.extend(paths.iter().map(|(path, name)| format!("--remap-path-prefix={path}={name}")));
    // Flags for the assembler and C code of libraries.
    let c_flags: Vec<_> = paths.iter().map(|(path, name)| format!("-ffile-prefix-map={path}={name}")).collect();
    let variables = [("CARGO_ENCODED_RUSTFLAGS", &*flags.join("\x1f")), ("CFLAGS", &*c_flags.join(" "))];
    let (manifest, target_folder) = (root.join("Cargo.toml"), target.display());
    shell::run_with(
        &variables,
        &format!(
            "cargo build --locked --profile {cargo_profile} --package ropewalk {features} --target {host} \
             --manifest-path {} --target-dir {target_folder}",
            manifest.display()
        ),
    )?;
    let program = target.join(host).join(cargo_profile).join("ropewalk");
    let bytes = fs::read(&program).map_err(|error| io_error(&program, &error))?;
    match paths.iter().find(|(path, _)| bytes.windows(path.len()).any(|window| window == path.as_bytes())) {
        // An instrumented program contains the path of its profile.
        Some((path, _)) if !is_instrumented => Err(format!("{} contains the path {path}", program.display())),
        _ => Ok(program),
    }
}

/// Folders of this machine, and their names in the program. If several match, the last one applies.
fn remapped_paths(root: &Path, target: &Path, compiler: &str) -> Result<Vec<(String, String)>, String> {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    let cargo =
        std::env::var_os("CARGO_HOME").map(PathBuf::from).or(home).ok_or("neither CARGO_HOME nor HOME is set")?;
    // The standard library's sources, if they are installed; without them the compiler uses these names itself.
    let library = Path::new(shell::output("rustc --print sysroot")?.trim()).join("lib/rustlib/src/rust");
    let library_name = format!("/rustc/{}", field(compiler, "commit-hash:").ok_or("`rustc -vV` names no commit")?);
    let folders = [(root, "/ropewalk"), (&cargo, "/cargo"), (target, "/target"), (&library, &library_name)];
    Ok(folders.map(|(folder, name)| (folder.display().to_string(), name.to_owned())).into())
}

/// The value of a line of `rustc -vV`.
pub(crate) fn field<'a>(compiler: &'a str, key: &str) -> Option<&'a str> {
    compiler.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

fn sha256(file: &Path) -> Result<String, String> {
    let line = shell::output(&format!("sha256sum {}", file.display()))?;
    line.split(' ').next().map(str::to_owned).ok_or_else(|| "sha256sum printed nothing".to_owned())
}

fn io_error(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// The `llvm-profdata` that reads this compiler's profiles: rustup's component, or Debian's of the same LLVM.
fn profdata(llvm: &str) -> Result<String, String> {
    let libraries = shell::output("rustc --print target-libdir")?;
    let component = Path::new(libraries.trim()).with_file_name("bin/llvm-profdata").display().to_string();
    let candidates = [component, format!("llvm-profdata-{llvm}")];
    candidates.into_iter().find(|program| shell::succeeds(&format!("{program} --version"))).ok_or_else(|| {
        format!(
            "llvm-profdata of LLVM {llvm} is missing: rustup component add llvm-tools, or apt-get install llvm-{llvm}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_any_order_and_unknown_ones_refused() {
        let file = std::env::current_exe().unwrap();
        let expected = Options { profile: Some(fs::canonicalize(&file).unwrap()), check_reproducible: true };
        let file = file.to_str().unwrap();
        assert_eq!(Options::parse(&["--check-reproducible", "--profile", file]).as_ref(), Ok(&expected));
        assert_eq!(Options::parse(&["--profile", file, "--check-reproducible"]).as_ref(), Ok(&expected));
        assert_eq!(Options::parse(&[]), Ok(Options::default()));
        for wrong in [&["--profile"][..], &["--profile", "/no/such/file"], &["--fast"]] {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
