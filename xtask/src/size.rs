//! `cargo xtask bench size`: the sizes of the program `ropewalk-kernel`, its package and its eBPF objects, compared with the
//! whole program.

use crate::{deb, dist, shell};
use std::fs;
use std::path::{Path, PathBuf};

/// Above this size, bytes, somebody should find out what has been added to the small program.
const LIMIT: u64 = 3_000_000;
/// The file to which `--record` adds its rows.
const HISTORY: &str = "bench/size.csv";

/// Measures; options are `--whole FILE`, a whole program instead of the released one, and `--record`.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let (whole, record) = parse(options)?;
    let program = dist::build_loader()?;
    let package = deb::pack_loader(&program)?;
    let program_size = size(&program)?;
    let mut rows = vec![
        ("ropewalk-kernel: program", program_size),
        ("ropewalk-kernel: package", size(&package)?),
        ("eBPF objects", sizes(&shell::root().join("kernel/bpf/objects"))?),
    ];
    if whole.exists() {
        rows.push(("ropewalk: program", size(&whole)?));
    }
    for (what, bytes) in &rows {
        shell::print(&format!("{what:26} {bytes:>11}\n"))?;
    }
    if record {
        add(&rows)?;
    }
    if program_size > LIMIT {
        return Err(format!("{} has {program_size} bytes, more than {LIMIT}", program.display()));
    }
    Ok(())
}

fn parse(options: &[&str]) -> Result<(PathBuf, bool), String> {
    let released = shell::target().join("released/ropewalk");
    match options {
        [] => Ok((released, false)),
        ["--record"] => Ok((released, true)),
        ["--whole", file] => Ok((file.into(), false)),
        ["--whole", file, "--record"] => Ok((file.into(), true)),
        _ => Err(format!("no option `{}`: --whole FILE, --record", options.join(" "))),
    }
}

fn size(file: &Path) -> Result<u64, String> {
    fs::metadata(file).map(|metadata| metadata.len()).map_err(|error| format!("{}: {error}", file.display()))
}

/// The sizes of a folder's files, together.
fn sizes(folder: &Path) -> Result<u64, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    entries.flatten().map(|entry| size(&entry.path())).sum()
}

fn add(rows: &[(&str, u64)]) -> Result<(), String> {
    let commit = shell::output("git log -1 --abbrev=8 --format=%h,%cs")?;
    let file = shell::root().join(HISTORY);
    let mut text = fs::read_to_string(&file).unwrap_or_else(|_| "commit,date,what,bytes\n".into());
    rows.iter().for_each(|(what, bytes)| text.push_str(&format!("{},{what},{bytes}\n", commit.trim())));
    fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_program_may_be_named_and_unknown_options_are_refused() {
        assert_eq!(parse(&["--whole", "/x", "--record"]), Ok((PathBuf::from("/x"), true)));
        assert!(parse(&[]).is_ok_and(|(file, record)| file.ends_with("released/ropewalk") && !record));
        assert!(parse(&["--recrod"]).is_err() && parse(&["--whole"]).is_err());
    }
}
