//! Errors of results folders; their messages say what to do next.

use crate::Shard;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Errors of results folders.
#[derive(Debug)]
pub enum Error {
    /// The operating system refused.
    Io {
        /// The operation: `write`, `read`, `create`, ...
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        reason: io::Error,
    },
    /// A file is damaged.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// Stored runs of an unfinished study are damaged.
    DamagedParts {
        /// The folder of the parts.
        folder: PathBuf,
        /// The files, each with its fault.
        parts: Vec<(String, String)>,
    },
    /// Another process fills the folder.
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// A file is compressed with Zstandard, as earlier versions wrote it; its codec is a C library and not linked.
    Zstandard {
        /// The file.
        path: PathBuf,
    },
    /// The folder belongs to another study.
    Occupied {
        /// The folder.
        path: PathBuf,
        /// The contents of the folder.
        holds: String,
        /// What is different from the study that was to be put there; empty if it holds no study.
        difference: String,
    },
    /// The folder is not complete.
    Incomplete {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds a shard where a whole study is wanted.
    Shard {
        /// The folder.
        path: PathBuf,
        /// The shard.
        shard: Shard,
    },
    /// The folder holds a whole study where a shard is wanted.
    Whole {
        /// The folder.
        path: PathBuf,
    },
    /// The rows of a table cannot be made.
    Rows {
        /// The reason.
        reason: String,
    },
    /// A run cannot be stored, or would be lost.
    Refused {
        /// The index of the sweep cell.
        cell: usize,
        /// The seed of the run.
        seed: u64,
        /// The reason.
        reason: String,
    },
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |reason| Self::Io { doing, path, reason }
    }

    pub(crate) fn damaged<E: fmt::Display>(path: &Path) -> impl Fn(E) -> Self {
        let path = path.to_owned();
        move |reason| Self::Damaged { path: path.clone(), reason: reason.to_string() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, path, reason } => write!(f, "cannot {doing} {}: {reason}", path.display()),
            Self::DamagedParts { folder, parts } => damaged_parts(f, folder, parts),
            Self::Locked { path } => write!(
                f,
                "another process is filling {}\nwait until it is done, or choose another folder",
                path.display()
            ),
            Self::Damaged { path, reason } => write!(f, "{} is damaged: {reason}", path.display()),
            Self::Rows { reason } => f.write_str(reason),
            Self::Zstandard { path } => write!(
                f,
                "{} is compressed with Zstandard, by an earlier version\nrun the scenario again into another folder, or write \
                 the file anew with another codec, in Python:\n  import pyarrow.parquet as p; p.write_table(p.read_table(FILE), \
                 FILE, compression='snappy')",
                path.display()
            ),
            Self::Occupied { path, holds, difference } => {
                write!(f, "{} holds {holds}\n{difference}choose another folder, or remove this one", path.display())
            }
            Self::Incomplete { path } => {
                write!(f, "the results in {} are not complete: run the scenario again to go on", path.display())
            }
            Self::Shard { path, shard } => {
                let path = path.display();
                write!(
                    f,
                    "{path} holds shard {shard} of a study\nmake one folder of all {} shards with `ropewalk merge`",
                    shard.count
                )
            }
            Self::Whole { path } => write!(f, "{} holds a whole study, not a shard", path.display()),
            Self::Refused { cell, seed, reason } => write!(f, "the run of cell {cell} with seed {seed} {reason}"),
        }
    }
}

fn damaged_parts(f: &mut fmt::Formatter<'_>, folder: &Path, parts: &[(String, String)]) -> fmt::Result {
    let (folder, count) = (folder.display(), parts.len());
    writeln!(f, "{count} stored {} in {folder} cannot be used:", if count == 1 { "run" } else { "runs" })?;
    parts.iter().try_for_each(|(name, reason)| writeln!(f, "  {name}: {reason}"))?;
    write!(f, "remove what is damaged, and the same command makes these runs again and keeps the others:\n  rm")?;
    parts.iter().try_for_each(|(name, _)| write!(f, " {folder}/{name}"))
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { reason, .. } => Some(reason),
            _ => None,
        }
    }
}
