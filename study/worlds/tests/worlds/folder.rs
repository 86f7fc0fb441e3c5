//! The folder is filled up: nothing is run twice, whatever killed the first attempt.

use record::Run;
use runner::Observer;
use std::fs;
use std::path::Path;
use store::Key;
use worlds::{Algorithm, Folder, Part, outcomes};

/// Counts runs, and cancels after some.
#[derive(Default)]
struct Counter {
    runs: usize,
    most: usize,
}

impl Observer for Counter {
    fn finished(&mut self, _: Key, _: &Run) {
        self.runs += 1;
    }

    fn is_cancelled(&mut self) -> bool {
        self.runs >= self.most
    }
}

fn read(file: &Path) -> String {
    filesystem::read_text_of_any(file, 1 << 20).unwrap()
}

fn fill(dir: &Path, to: u64, part: Option<Part>, most: usize) -> (usize, Vec<u64>) {
    let algorithm = Algorithm::new("reno", "\"reno\"").unwrap();
    let mut counter = Counter { runs: 0, most };
    let mut folder = Folder::at(dir).unwrap();
    let outcomes = outcomes(&algorithm, &(0..to), part, &mut folder, Some(1), &mut counter).unwrap();
    (counter.runs, outcomes.into_keys().collect())
}

#[test]
fn what_a_killed_process_has_done_is_kept_and_the_rest_is_made() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(fill(dir.path(), 6, Some(Part::Judge), 100), (3, vec![1, 3, 5]));
    let file = dir.path().join("reno.jsonl");
    let whole = read(&file);
    // Killed in the middle of the last line.
    fs::write(&file, &whole[..whole.len() - 40]).unwrap();
    assert_eq!(fill(dir.path(), 6, None, 100), (4, vec![0, 1, 2, 3, 4, 5]), "the torn world and the even ones");
    assert_eq!(fill(dir.path(), 8, Some(Part::Judge), 100), (1, vec![1, 3, 5, 7]));
    assert_eq!(fill(dir.path(), 8, Some(Part::Judge), 100).0, 0);
    assert_eq!(read(&file).lines().count(), 1 + 7, "a head and a line for each world");
}

#[test]
fn a_first_line_that_is_half_written_is_written_again() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 1, None, 100);
    let file = dir.path().join("reno.jsonl");
    let whole = read(&file);
    fs::write(&file, &whole[..20]).unwrap();
    assert_eq!(fill(dir.path(), 1, None, 100), (1, vec![0]));
    assert_eq!(fill(dir.path(), 1, None, 100), (0, vec![0]), "it can be read again");
    assert_eq!(read(&file), whole);
}

#[test]
fn a_cancelled_study_keeps_what_it_has_done() {
    let dir = tempfile::tempdir().unwrap();
    let (runs, kept) = fill(dir.path(), 40, None, 1);
    assert!(runs >= 1 && runs == kept.len() && runs < 40, "{runs} {kept:?}");
    assert_eq!(fill(dir.path(), 2, None, 100).1, vec![0, 1]);
}

#[test]
fn a_file_of_another_program_or_with_damage_is_refused_by_its_name() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 1, None, 100);
    let file = dir.path().join("reno.jsonl");
    let whole = read(&file);
    let refuse = |text: String| {
        fs::write(&file, text).unwrap();
        let algorithm = Algorithm::new("reno", "\"reno\"").unwrap();
        let folder = &mut Folder::at(dir.path()).unwrap();
        outcomes(&algorithm, &(0..1), None, folder, None, &mut ()).unwrap_err().to_string()
    };
    let other = refuse(whole.replacen("\"commit\":\"", "\"commit\":\"x", 1));
    assert!(other.contains("reno.jsonl holds runs of reno") && other.contains("--out"), "{other}");
    let there = format!("there: commit x{}\nnow: commit {0}\n", runner::COMMIT);
    assert!(other.contains(&there), "{other}");
    let hash = refuse(whole.replacen("\"hash\":\"", "\"hash\":\"0", 1));
    assert!(hash.contains("there: algorithm reno (0") && hash.contains("now: algorithm reno ("), "{hash}");
    let damaged = refuse(whole.replace("\"digest\"", "\"digset\""));
    assert!(damaged.contains("damaged in line 2"), "{damaged}");
    assert!(refuse("no head\n".to_owned()).contains("does not begin as a file of worlds"));
}

#[test]
fn two_processes_do_not_fill_one_folder() {
    let dir = tempfile::tempdir().unwrap();
    let _first = Folder::at(dir.path()).unwrap();
    assert!(Folder::at(dir.path()).unwrap_err().to_string().contains("another process"));
}

#[test]
fn parameters_make_another_file_and_wrong_ones_are_refused() {
    assert!(Algorithm::new("reno", "\"renno\"").is_err());
    assert!(Algorithm::new("x", "{ name = \"cubic\", beta = 7 }").is_err());
    let dir = tempfile::tempdir().unwrap();
    let value = "{ name = \"cubic\", beta = 0.8 }";
    let algorithm = Algorithm::new(value, value).unwrap();
    outcomes(&algorithm, &(0..1), None, &mut Folder::at(dir.path()).unwrap(), None, &mut ()).unwrap();
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().any(|name| name.to_string_lossy().starts_with("algorithm-")), "{names:?}");
}
