//! A results folder's life: begun or resumed, filled run by run, finished, read back.

use crate::{Error, Manifest, ShardManifest, files, manifest, parts, series, tables};
use filesystem::{Folder, Lock};
use record::{Digest, Run};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// The folder within a results folder that holds its baseline.
const BASELINE: &str = "baseline";

/// The folder within a results folder that holds what runs on a kernel left.
const RAW: &str = "raw";

/// A run's place in a study: its cell of the sweep and its seed.
pub type Key = (usize, u64);

/// Runs with their keys.
pub type Runs = Vec<(Key, Run)>;

/// A results folder that is being filled.
#[derive(Debug)]
pub struct Results {
    dir: PathBuf,
    /// Another process that wants to fill the folder is refused until this is dropped.
    _lock: Lock,
    manifest: Manifest,
    /// The runs that the folder held when it was resumed.
    resumed: Vec<Key>,
}

impl Results {
    /// Creates a folder, or resumes one of the same scenario, program version and commit, and returns its finished runs
    /// by cell and seed. The seeds of these runs stay in its manifest.
    ///
    /// # Errors
    /// The folder holds something else, a file in it is damaged, another process fills it, or it cannot be written.
    pub fn create_or_resume(dir: &Path, mut manifest: Manifest) -> Result<(Self, Vec<(Key, Run)>), Error> {
        refuse_other_study(dir, &manifest)?;
        let lock = lock(dir)?;
        let runs = match Manifest::find(dir)? {
            Some(previous) => resume(dir, &previous, &mut manifest)?,
            None => begin(dir, &mut manifest).map(|()| Vec::new())?,
        };
        let resumed = runs.iter().map(|(key, _)| *key).collect();
        Ok((Self { dir: dir.to_owned(), _lock: lock, manifest, resumed }, runs))
    }

    /// The folder for what the run of `key` on a kernel leaves.
    #[must_use]
    pub fn raw_folder(&self, (cell, seed): Key) -> PathBuf {
        self.dir.join(RAW).join(format!("{cell}-{seed}"))
    }

    /// The number of runs that the unfinished folder `dir` holds; of one that cannot be read none.
    #[must_use]
    pub fn stored(dir: &Path) -> usize {
        files::names(&parts::folder(dir)).map_or(0, |names| names.len())
    }

    /// The seeds of the runs in the folder `dir`, ascending, if it holds runs of the whole study of `manifest`.
    #[must_use]
    pub fn seeds_of(dir: &Path, manifest: &Manifest) -> Option<Vec<u64>> {
        let stored = Manifest::find(dir).ok()??;
        if stored.shard.is_some() || !stored.same_study(manifest) {
            return None;
        }
        Some(if stored.complete { stored.seeds } else { parts::seeds(dir) })
    }

    /// Stores a finished run. May be called from several threads.
    ///
    /// # Errors
    /// The file cannot be written, or the run holds numbers that would not read back.
    pub fn add(&self, cell: usize, seed: u64, run: &Run) -> Result<(), Error> {
        if run.seed != seed {
            return Err(Error::Refused { cell, seed, reason: format!("says its seed is {}", run.seed) });
        }
        parts::write(&self.dir, (cell, seed), run)
    }

    /// Writes the tables of all runs, those found on resuming included, in any order; gives the complete manifest.
    ///
    /// # Errors
    /// A file cannot be written, or a run that the folder held is not among `runs`.
    pub fn finish(mut self, runs: &[(Key, Run)]) -> Result<Manifest, Error> {
        let mut sorted: Vec<(Key, &Run)> = runs.iter().map(|(key, run)| (*key, run)).collect();
        sorted.sort_by_key(|(key, _)| *key);
        let keys: BTreeSet<Key> = sorted.iter().map(|(key, _)| *key).collect();
        if let Some(&(cell, seed)) = self.resumed.iter().find(|key| !keys.contains(key)) {
            return Err(Error::Refused { cell, seed, reason: "would be lost from the folder".to_owned() });
        }
        for ((cell, seed), run) in &sorted {
            series::check(&run.series).map_err(|reason| Error::Refused { cell: *cell, seed: *seed, reason })?;
        }
        tables::write(&self.dir, &sorted)?;
        if let Some(shard) = &mut self.manifest.shard {
            shard.tables = table_digests(&self.dir)?;
        }
        self.manifest.digest = Some(digest(sorted.iter().map(|(_, run)| *run)));
        self.manifest.complete = true;
        self.manifest.write(&self.dir)?;
        remove_parts(&self.dir)?;
        Ok(self.manifest)
    }

    /// Reads a finished folder: its manifest and its runs, by cell and seed.
    ///
    /// # Errors
    /// There is no finished folder, or a file in it is damaged.
    pub fn open(dir: &Path) -> Result<(Manifest, Vec<Run>), Error> {
        let (manifest, runs) = Self::open_by_key(dir)?;
        Ok((manifest, runs.into_iter().map(|(_, run)| run).collect()))
    }

    /// As [`Results::open`], with the cell and the seed of each run.
    ///
    /// # Errors
    /// As [`Results::open`].
    pub fn open_by_key(dir: &Path) -> Result<(Manifest, Runs), Error> {
        let manifest = finished_manifest(dir)?;
        if let Some(ShardManifest { shard, .. }) = manifest.shard {
            return Err(Error::Shard { path: dir.to_owned(), shard });
        }
        Ok((manifest, tables::read(dir)?))
    }

    /// The folder of the baseline's copy in the results folder `dir`.
    #[must_use]
    pub fn baseline_folder(dir: &Path) -> PathBuf {
        dir.join(BASELINE)
    }

    /// Reads a finished shard: its manifest and its runs with their keys. The tables have the digests that the manifest
    /// says.
    ///
    /// # Errors
    /// There is no finished shard; a file in it is missing, damaged, or no regular file.
    pub fn open_shard(dir: &Path) -> Result<(Manifest, ShardManifest, Runs), Error> {
        let manifest = finished_manifest(dir)?;
        files::check_all_regular(dir)?;
        let shard = manifest.shard.clone().ok_or_else(|| Error::Whole { path: dir.to_owned() })?;
        let tables = table_digests(dir)?;
        for name in shard.tables.keys().chain(tables.keys()) {
            if shard.tables.get(name) != tables.get(name) {
                return Err(Error::damaged(&dir.join(name))("it is not the file that the shard's run wrote"));
            }
        }
        let runs = tables::read(dir)?;
        if runs.len() != shard.runs || manifest.digest != Some(digest(runs.iter().map(|(_, run)| run))) {
            return Err(Error::damaged(&dir.join(manifest::FILE))("its digest is not that of the runs"));
        }
        Ok((manifest, shard, runs))
    }

    /// Reads the baseline that lies in a finished folder.
    ///
    /// # Errors
    /// As [`Results::open`].
    pub fn open_baseline(dir: &Path) -> Result<(Manifest, Vec<Run>), Error> {
        Self::open(&Self::baseline_folder(dir))
    }

    /// Lays a copy of the finished folder `baseline`, its manifest and tables, into this one, in the place of an
    /// earlier copy.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn keep_baseline(&self, baseline: &Path) -> Result<(), Error> {
        let is_result_file = |name: &str| name == manifest::FILE || name.ends_with(".parquet");
        files::copy_folder(baseline, &Self::baseline_folder(&self.dir), is_result_file)
    }

    /// Copies what the shard in `dir` holds beside its tables: the baseline, and of runs on a kernel `setup.txt` and
    /// what each of them left.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn keep_files_of(&self, dir: &Path) -> Result<(), Error> {
        if dir.join(BASELINE).is_dir() {
            self.keep_baseline(&dir.join(BASELINE))?;
        }
        ["setup.txt", RAW].iter().try_for_each(|name| files::copy_tree(&dir.join(name), &self.dir.join(name)))
    }

    /// Writes another file into a folder, such as `report.html`, and says where it is.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_text(dir: &Path, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = dir.join(name);
        files::write(&path, text.as_bytes()).map(|()| path)
    }
}

/// Refuses a folder of another study whether or not a process fills it.
fn refuse_other_study(dir: &Path, manifest: &Manifest) -> Result<(), Error> {
    match Manifest::find(dir)? {
        Some(previous) if !previous.same_study(manifest) => {
            let (holds, difference) = (previous.describe(), previous.differences(manifest));
            Err(Error::Occupied { path: dir.to_owned(), holds, difference })
        }
        _ => Ok(()),
    }
}

/// Creates the folder if there is none, and locks it: by a file that only its owner can open, because anybody who may
/// read the folder could lock the folder itself.
fn lock(dir: &Path) -> Result<Lock, Error> {
    fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
    let lock = Folder::open(dir).and_then(|folder| folder.try_lock(files::LOCK));
    lock.map_err(Error::io("lock", dir))?.ok_or_else(|| Error::Locked { path: dir.to_owned() })
}

fn finished_manifest(dir: &Path) -> Result<Manifest, Error> {
    let manifest = Manifest::find(dir)?.ok_or_else(|| Error::Io {
        doing: "read",
        path: dir.to_owned(),
        reason: std::io::Error::new(std::io::ErrorKind::NotFound, "not a results folder (it has no manifest.json)"),
    })?;
    if manifest.complete { Ok(manifest) } else { Err(Error::Incomplete { path: dir.to_owned() }) }
}

/// The names of a folder's tables, each with a digest of its bytes.
fn table_digests(dir: &Path) -> Result<BTreeMap<String, String>, Error> {
    let names = files::names(dir)?.into_iter().filter(|name| name.ends_with(".parquet"));
    names
        .map(|name| {
            let path = dir.join(&name);
            let digest = files::open(&path).and_then(file_digest);
            Ok((name, digest.map_err(Error::io("read", &path))?))
        })
        .collect()
}

/// The digest of a file's length and bytes.
fn file_digest(file: fs::File) -> std::io::Result<String> {
    let mut digest = Digest::default();
    digest.add(file.metadata()?.len());
    for byte in BufReader::new(file).bytes() {
        digest.add(u64::from(byte?));
    }
    Ok(digest.hex())
}

fn begin(dir: &Path, manifest: &mut Manifest) -> Result<(), Error> {
    if !files::names(dir)?.is_empty() {
        return Err(Error::Occupied {
            path: dir.to_owned(),
            holds: "files that are not Ropewalk's results".to_owned(),
            difference: String::new(),
        });
    }
    files::remove_temporary(dir)?;
    mark_incomplete(dir, manifest)
}

/// States on disk that the study is under way; from here the parts hold every finished run.
fn mark_incomplete(dir: &Path, manifest: &mut Manifest) -> Result<(), Error> {
    manifest.complete = false;
    manifest.digest = None;
    manifest.write(dir)?;
    create_parts(dir)
}

fn resume(dir: &Path, previous: &Manifest, requested: &mut Manifest) -> Result<Vec<(Key, Run)>, Error> {
    let requested_keys: Vec<Key> =
        (0..requested.cells).flat_map(|cell| requested.seeds.iter().map(move |seed| (cell, *seed))).collect();
    files::remove_temporary(dir)?;
    if !previous.complete {
        create_parts(dir)?;
        files::remove_temporary(&parts::folder(dir))?;
        let runs = parts::read(dir)?;
        add_seeds(requested, &runs);
        mark_incomplete(dir, requested)?;
        return Ok(runs);
    }
    remove_parts(dir)?;
    let runs = tables::read(dir)?;
    add_seeds(requested, &runs);
    let finished: BTreeSet<Key> = runs.iter().map(|(key, _)| *key).collect();
    // A shard's seeds are not all with each of its cells; its scenario's hash says that its runs are the same.
    if previous.shard.is_none() && !requested_keys.iter().all(|key| finished.contains(key)) {
        // More is to come: the runs go back to parts first, so that nothing hangs on tables about to be replaced.
        create_parts(dir)?;
        runs.iter().try_for_each(|(key, run)| parts::write(dir, *key, run))?;
        mark_incomplete(dir, requested)?;
    }
    Ok(runs)
}

/// Adds the seeds of runs to those of a manifest.
fn add_seeds(manifest: &mut Manifest, runs: &[(Key, Run)]) {
    let stored = runs.iter().map(|((_, seed), _)| *seed);
    manifest.seeds = BTreeSet::from_iter(stored.chain(manifest.seeds.iter().copied())).into_iter().collect();
}

fn create_parts(dir: &Path) -> Result<(), Error> {
    let folder = parts::folder(dir);
    fs::create_dir_all(&folder).map_err(Error::io("create", &folder))
}

fn remove_parts(dir: &Path) -> Result<(), Error> {
    let folder = parts::folder(dir);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &folder)(error)),
        _ => Ok(()),
    }
}

/// Digest over the digests of all runs, in their order: by cell and seed.
pub fn digest<'a>(runs: impl IntoIterator<Item = &'a Run>) -> String {
    let mut digest = Digest::default();
    runs.into_iter().for_each(|run| digest.add_text(&run.digest));
    digest.hex()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_reader_of_a_results_folder_cannot_lock_it_and_the_lock_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let reader = fs::OpenOptions::new().read(true).open(dir.path()).unwrap();
        reader.lock().unwrap();
        let held = lock(dir.path()).unwrap();
        assert!(matches!(lock(dir.path()), Err(Error::Locked { .. })));
        let mode = fs::metadata(dir.path().join(files::LOCK)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "no reader can open it");
        assert!(files::names(dir.path()).unwrap().is_empty());
        drop(held);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        lock(dir.path()).unwrap();
    }
}
