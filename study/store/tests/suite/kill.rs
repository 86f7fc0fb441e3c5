//! A study killed at any moment leaves whole files only, and goes on where it was.

use crate::common::{identical, manifest, run};
use ropewalk_store::{Key, Results};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Tells the child where to work.
const CHILD: &str = "ROPEWALK_STORE_CHILD";
/// The child tells of a finished run.
const DONE: &str = "a run is finished";
const CELLS: usize = 12;

/// Not a test of its own: the process that gets killed. It completes the newest seed in the folder, then adds seeds.
#[test]
fn child_of_the_test_below() {
    let Ok(dir) = std::env::var(CHILD) else { return };
    let (_, found) = Results::create_or_resume(Path::new(&dir), manifest("h", 0, &[])).unwrap();
    let newest = found.iter().map(|((_, seed), _)| *seed).max().unwrap_or(1);
    for seed in newest.. {
        let (results, mut runs) = Results::create_or_resume(Path::new(&dir), manifest("h", CELLS, &[seed])).unwrap();
        let missing = |cell: &usize| !runs.iter().any(|(done, _)| *done == (*cell, seed));
        let new: Vec<_> = (0..CELLS).filter(missing).map(|cell| ((cell, seed), run(cell, seed))).collect();
        thread::scope(|scope| {
            for runs in new.chunks(CELLS / 2) {
                let results = &results;
                scope.spawn(move || {
                    runs.iter().for_each(|((cell, _), run)| {
                        results.add(*cell, seed, run).unwrap();
                        // Past libtest's capture.
                        writeln!(std::io::stdout(), "\n{DONE}").unwrap();
                    });
                });
            }
        });
        runs.extend(new);
        results.finish(&runs).unwrap();
    }
}

/// Lets a child work until it has finished `runs` more runs, and then for `delay`.
fn kill_after(dir: &Path, runs: usize, delay: Duration) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child_of_the_test_below"])
        .env(CHILD, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let done = lines.by_ref().map_while(Result::ok).filter(|line| line.contains(DONE)).take(runs).count();
    assert_eq!(done, runs, "the child failed by itself");
    thread::sleep(delay);
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
}

#[test]
fn a_study_killed_at_any_moment_keeps_every_finished_run() {
    let dir = tempfile::tempdir().unwrap();
    let mut finished: Vec<Key> = Vec::new();
    for round in 0..25 {
        kill_after(dir.path(), round % 9, Duration::from_micros(700 * round as u64));
        // Asking for nothing more changes nothing, so this reads what the killed process left.
        let (_, found) = Results::create_or_resume(dir.path(), manifest("h", 0, &[])).unwrap();
        for ((cell, seed), stored) in &found {
            assert!(identical(stored, &run(*cell, *seed)), "cell {cell}, seed {seed} is not what was written");
        }
        let keys: Vec<Key> = found.iter().map(|(key, _)| *key).collect();
        assert!(finished.iter().all(|key| keys.contains(key)), "round {round} lost a run");
        assert!(keys.len() >= finished.len() + round % 9, "round {round} lost a run that was finished");
        finished = keys;
    }
    assert!(
        finished.len() > CELLS,
        "more than one study of {CELLS} cells was done between the kills: {}",
        finished.len()
    );
}
