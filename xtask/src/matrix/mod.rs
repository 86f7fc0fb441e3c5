//! `cargo xtask kernel-matrix`: tests the programs for the kernel on kernels that this machine does not run, in virtual
//! machines without hardware support (QEMU's TCG), which work on every machine with QEMU.

mod debian;
mod hooks;
mod initramfs;
mod machine;

use crate::setup::Package;
use crate::{setup, shell};
use debian::Kernel;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Folder of the kernels, their initial file systems and their logs.
const FOLDER: &str = "target/kernel/matrix";

const PACKAGES: &[Package] = &[
    Package { name: "qemu-system-x86", command: "qemu-system-x86_64", purpose: "the matrix: virtual machines" },
    Package { name: "busybox-static", command: "busybox", purpose: "the matrix: the guest's shell" },
    Package { name: "iproute2", command: "tc", purpose: "the matrix: the guest's network" },
    Package { name: "dpkg", command: "dpkg-deb", purpose: "the matrix: kernels from packages" },
    Package { name: "xz-utils", command: "xz", purpose: "the matrix: the kernels' modules" },
];

/// The command line.
#[derive(Debug, Default, PartialEq)]
struct Options {
    /// `--kernel`: a Debian package or a kernel image; none for Debian's 6.1, 6.12 and newest.
    kernels: Vec<PathBuf>,
    /// `--soak`: minutes of everything at once instead of the trial.
    soak_minutes: Option<u64>,
    seed: u64,
    names: Vec<String>,
}

fn parse(arguments: &[&str]) -> Result<Options, String> {
    let mut options = Options { seed: 1, ..Options::default() };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value"));
        match *word {
            "--kernel" => options.kernels.push(PathBuf::from(value()?)),
            "--soak" => options.soak_minutes = Some(number(value()?)?),
            "--seed" => options.seed = number(value()?)?,
            option if option.starts_with('-') => {
                return Err(format!("no option `{option}`; there are --kernel FILE, --soak MINUTES and --seed N"));
            }
            name => options.names.push(name.to_owned()),
        }
    }
    if options.soak_minutes.is_some() && options.names.is_empty() {
        return Err("--soak needs names, of programs or of the kernel's own algorithms: lia balia reno".to_owned());
    }
    Ok(options)
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number"))
}

/// Boots each kernel, one after another, prints the results of the programs, and fails if one failed.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let options = parse(arguments)?;
    if let Some(manual_command) = setup::install(PACKAGES)? {
        return Err(manual_command);
    }
    shell::run("cargo build --quiet --locked --release -p ropewalk-stress")?;
    let folder = shell::root().join(FOLDER);
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let kernels = kernels(&options, &folder)?;
    let words = options.words();
    let (mut table, mut calls) = (String::new(), Vec::new());
    let mut failed = false;
    for kernel in &kernels {
        let report = machine::run(kernel, &initramfs::write(kernel, &folder)?, &folder, &words)?;
        failed |= !report.succeeded;
        calls.extend(report.hooks.iter().map(|line| (report.release.clone(), line.clone())));
        for row in report.rows {
            let _ = writeln!(table, "{:24} {row}", report.release);
        }
    }
    shell::print(&format!("\n{}\n{table}", hooks::table(&calls)))?;
    if failed {
        Err("not all kernels passed; the kernels' logs are in target/kernel/matrix".to_owned())
    } else {
        Ok(())
    }
}

fn kernels(options: &Options, folder: &Path) -> Result<Vec<Kernel>, String> {
    match &options.kernels[..] {
        [] => debian::SUITES.iter().map(|suite| debian::fetch(suite, folder)).collect(),
        files => files.iter().map(|file| debian::unpack(file, folder)).collect(),
    }
}

impl Options {
    /// The arguments of `ropewalk-stress`.
    fn words(&self) -> String {
        let names = self.names.join(" ");
        match self.soak_minutes {
            Some(minutes) => format!("soak {} {} {names}", minutes * 60, self.seed),
            None => format!("trial {names}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soak_is_told_in_seconds_and_a_trial_by_names() {
        let words = |line: &str| parse(&line.split_whitespace().collect::<Vec<_>>()).map(|options| options.words());
        assert_eq!(words("--soak 60 --seed 7 lia reno"), Ok("soak 3600 7 lia reno".to_owned()));
        assert_eq!(words("lia"), Ok("trial lia".to_owned()));
        assert!(words("--soak 60").is_err_and(|error| error.contains("needs names")));
        assert!(words("--kernels x").is_err_and(|error| error.contains("--kernel FILE")));
    }
}
