//! Outcomes on disk: one file per algorithm, with one line per world.
//!
//! The first line describes the origin of the others: program, commit, algorithm. Lines are written whole and in the order
//! in which runs end. A line that a killed process left half-written is cut off when the file is opened again.

use crate::{Algorithm, Outcome};
use filesystem::Links;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The maximum size of a file, bytes: some hundred thousand worlds.
const MAX_LEN: u64 = 1 << 30;
/// The file that is locked while the folder is filled.
const LOCK: &str = ".ropewalk.lock";

/// The first line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    ropewalk_version: String,
    commit: String,
    algorithm: String,
    /// Of the algorithm with its parameters and files.
    hash: String,
    /// As in a manifest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    code_versions: BTreeMap<String, String>,
}

/// The reason why outcomes are not available.
#[derive(Debug)]
pub enum Error {
    /// The folder: the fault and a hint.
    Folder(String),
    /// A run failed.
    Run(runner::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(message) => f.write_str(message),
            Self::Run(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<runner::Error> for Error {
    fn from(error: runner::Error) -> Self {
        Self::Run(error)
    }
}

/// A folder of outcomes, or none. Without a folder nothing is kept.
#[derive(Debug, Default)]
pub struct Folder {
    dir: Option<PathBuf>,
    file: Option<(PathBuf, File)>,
    _lock: Option<filesystem::Lock>,
}

impl Folder {
    /// The folder `dir`, created if there is none, and locked.
    ///
    /// # Errors
    /// It cannot be written, or another process fills it.
    pub fn at(dir: &Path) -> Result<Self, Error> {
        let cannot = |error| Error::Folder(format!("cannot write {}: {error}", dir.display()));
        fs::create_dir_all(dir).map_err(cannot)?;
        let lock = filesystem::Folder::open(dir).and_then(|folder| folder.try_lock(LOCK)).map_err(cannot)?;
        let busy = || Error::Folder(format!("another process is filling {}", dir.display()));
        Ok(Self { dir: Some(dir.to_owned()), file: None, _lock: Some(lock.ok_or_else(busy)?) })
    }

    /// Opens the file of an algorithm, and returns the outcomes in it.
    pub(crate) fn open(&mut self, algorithm: &Algorithm) -> Result<BTreeMap<u64, Outcome>, Error> {
        let Some(dir) = &self.dir else { return Ok(BTreeMap::new()) };
        let path = dir.join(format!("{}.jsonl", file_stem(algorithm)));
        let (whole_lines, outcomes) = read(&path, &Head::of(algorithm))?;
        let cannot = |error| Error::Folder(format!("cannot write {}: {error}", path.display()));
        let mut file = OpenOptions::new().create(true).append(true).open(&path).map_err(cannot)?;
        file.set_len(whole_lines).map_err(cannot)?;
        if whole_lines == 0 {
            line(&mut file, &Head::of(algorithm)).map_err(cannot)?;
        }
        self.file = Some((path, file));
        Ok(outcomes)
    }

    /// Keeps an outcome of the algorithm whose file is open.
    pub(crate) fn add(&mut self, outcome: &Outcome) -> Result<(), Error> {
        let Some((path, file)) = &mut self.file else { return Ok(()) };
        line(file, outcome).map_err(|error| Error::Folder(format!("cannot write {}: {error}", path.display())))
    }
}

impl Head {
    fn of(algorithm: &Algorithm) -> Self {
        Self {
            ropewalk_version: runner::VERSION.to_owned(),
            commit: runner::COMMIT.to_owned(),
            algorithm: algorithm.label.clone(),
            hash: algorithm.hash().to_owned(),
            code_versions: algorithm.code_versions(),
        }
    }

    /// The first thing in which `other` differs, as it is here and there; the last of all if nothing does.
    fn difference(&self, other: &Self) -> [String; 2] {
        let origin = |head: &Self| {
            [
                format!("algorithm {} ({})", head.algorithm, head.hash),
                format!("ropewalk {}", head.ropewalk_version),
                format!("commit {}", head.commit),
                format!("code {:?}", head.code_versions),
            ]
        };
        let mut pairs = origin(self).into_iter().zip(origin(other)).peekable();
        while pairs.len() > 1 && pairs.peek().is_some_and(|(here, there)| here == there) {
            pairs.next();
        }
        pairs.next().expect("the last is left").into()
    }
}

/// A readable name, with the hash if the algorithm has parameters.
fn file_stem(algorithm: &Algorithm) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match algorithm.label.chars().all(is_plain) {
        true => algorithm.label.clone(),
        false => format!("algorithm-{}", algorithm.hash()),
    }
}

fn line(file: &mut File, value: &impl Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_string(value).expect("text, numbers and lists");
    text.push('\n');
    file.write_all(text.as_bytes())
}

/// The length of the whole lines of a file, zero without a first line, and their outcomes.
fn read(path: &Path, head: &Head) -> Result<(u64, BTreeMap<u64, Outcome>), Error> {
    let refuse =
        |why: String| Err(Error::Folder(format!("{} {why}\nchoose another folder with --out", path.display())));
    let text = match filesystem::read_text(path, Links::Refuse, MAX_LEN) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((0, BTreeMap::new())),
        Err(error) => return refuse(format!("cannot be read: {error}")),
    };
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let mut lines = text[..whole].lines();
    let Some(first) = lines.next() else { return Ok((0, BTreeMap::new())) };
    match serde_json::from_str::<Head>(first) {
        Ok(found) if found == *head => {}
        Ok(found) => {
            let [there, now] = found.difference(head);
            return refuse(format!("holds runs of {}\nthere: {there}\nnow: {now}", found.algorithm));
        }
        Err(error) => return refuse(format!("does not begin as a file of worlds: {error}")),
    }
    let mut outcomes = BTreeMap::new();
    for (index, line) in lines.enumerate() {
        match serde_json::from_str::<Outcome>(line) {
            Ok(outcome) => drop(outcomes.insert(outcome.seed, outcome)),
            Err(error) => return refuse(format!("is damaged in line {}: {error}", index + 2)),
        }
    }
    Ok((whole as u64, outcomes))
}
