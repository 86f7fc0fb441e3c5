//! `cargo xtask static`: the tunnel alone as one file that needs no library, for routers and containers.
//!
//! It is linked with musl, also for another processor. The simulator is left out.

use super::archive::{self, File, Files};
use crate::{python, shell};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The processor and system if none is named.
const DEFAULT_TARGET: &str = "x86_64-unknown-linux-musl";
/// The C compiler.
const ZIG_REQUIREMENTS: &str = "python/requirements-zig.txt";

/// Options of these chores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// The target, as the compiler names it.
    pub(crate) target: String,
    /// The profile of the build.
    pub(crate) profile: String,
    /// OpenWrt's name of the processor, if it is not the target's.
    pub(crate) architecture: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { target: DEFAULT_TARGET.into(), profile: "small".into(), architecture: None }
    }
}

impl Options {
    pub(crate) fn parse(arguments: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        for option in arguments.chunks(2) {
            match *option {
                ["--target", triple] if triple.ends_with("musl") || triple.ends_with("musleabihf") => {
                    options.target = triple.into();
                }
                ["--target", triple] => {
                    return Err(format!("--target {triple}: only targets with musl link statically"));
                }
                ["--profile", name] => options.profile = name.into(),
                ["--arch", name] => options.architecture = Some(name.into()),
                _ => {
                    return Err(format!(
                        "no option `{}`: --target TRIPLE, --profile NAME, --arch NAME",
                        option.join(" ")
                    ));
                }
            }
        }
        Ok(options)
    }
}

/// A built program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) file: PathBuf,
    pub(crate) target: String,
    pub(crate) version: String,
}

impl Program {
    /// The processor, as the compiler names it.
    pub(crate) fn processor(&self) -> &str {
        self.target.split('-').next().unwrap_or_default()
    }

    /// Its path and its size.
    pub(crate) fn description(&self) -> String {
        let bytes = fs::metadata(&self.file).map_or(0, |metadata| metadata.len());
        format!("{} ({:.2} MB)", self.file.display(), bytes as f64 / 1e6)
    }

    /// The name of an artefact: `ropewalk-VERSION-TARGET` and a suffix.
    pub(crate) fn artefact(&self, suffix: &str) -> PathBuf {
        folder().join(format!("ropewalk-{}-{}{suffix}", self.version, self.target))
    }
}

/// The folder of these artefacts.
pub(crate) fn folder() -> PathBuf {
    shell::target().join("artefacts")
}

/// Builds the program.
pub(crate) fn build(options: &Options) -> Result<Program, String> {
    let Options { target, profile, .. } = options;
    let libraries = shell::output(&format!("rustc --print target-libdir --target {target}"))?;
    if !fs::exists(libraries.trim()).is_ok_and(|exists| exists) {
        shell::run(&format!("rustup target add {target}"))?;
    }
    let variable = target.replace('-', "_");
    let compiler = c_compiler(target)?;
    // rustc's own linker and start files make a static program whose address is random, which zig's do not.
    let variables = [
        (format!("CC_{variable}"), compiler.display().to_string()),
        (format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()), "rust-lld".to_owned()),
        (
            format!("CARGO_TARGET_{}_RUSTFLAGS", variable.to_uppercase()),
            "-Clink-self-contained=yes -Clinker-flavor=ld.lld".to_owned(),
        ),
    ];
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (&**name, &**value)).collect();
    let line = format!("cargo build --locked --profile {profile} --target {target} --package ropewalk");
    shell::run_with(&variables, &format!("{line} --no-default-features --features tunnel"))?;
    let built = match profile.as_str() {
        "dev" => "debug",
        profile => profile,
    };
    let file = shell::target().join(target).join(built).join("ropewalk");
    Ok(Program { file, target: target.clone(), version: shell::version()? })
}

/// A C compiler for the target, as the build script of `ring` calls one: zig's, which has musl's headers, under its own
/// name of the target.
fn c_compiler(target: &str) -> Result<PathBuf, String> {
    let python = python::environment("python-zig", ZIG_REQUIREMENTS)?.join("bin/python");
    let name = target.replace("-unknown", "");
    let script = format!(
        "#!/bin/sh\nfor word; do\n    shift\n    case $word in --target=*) ;; *) set -- \"$@\" \"$word\" ;; esac\ndone\n\
         exec {} -m ziglang cc -target {name} \"$@\"\n",
        python.display()
    );
    let file = write(folder().join(format!("cc-{name}")), script.as_bytes())?;
    let executable = fs::set_permissions(&file, fs::Permissions::from_mode(0o755));
    executable.map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(file)
}

/// Packs the program with its licences, as `cargo binstall` fetches it.
pub(crate) fn pack(program: &Program) -> Result<PathBuf, String> {
    let root = shell::root();
    let mut files = Files::from([("ropewalk".to_owned(), File::Regular(0o755, archive::read(&program.file)?))]);
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        files.insert(name.to_owned(), File::Regular(0o644, archive::read(&root.join(name))?));
    }
    write(program.artefact(".tar.gz"), &archive::gzip(&archive::tar(&files, false)?)?)
}

/// Writes an artefact atomically.
pub(crate) fn write(file: PathBuf, bytes: &[u8]) -> Result<PathBuf, String> {
    let new = file.with_extension("new");
    let written =
        fs::create_dir_all(folder()).and_then(|()| fs::write(&new, bytes)).and_then(|()| fs::rename(&new, &file));
    written.map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(file)
}
