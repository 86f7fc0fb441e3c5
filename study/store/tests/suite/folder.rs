//! A results folder is resumed, finished and read back without losing a bit, and never overwrites another study.

use crate::common::{identical, manifest, run};
use record::Run;
use ropewalk_store::{Error, Key, Results};
use std::fs;
use std::path::Path;

fn fill(dir: &Path, hash: &str, cells: usize, seeds: &[u64]) -> Vec<(Key, Run)> {
    let (results, mut runs) = Results::create_or_resume(dir, manifest(hash, cells, seeds)).unwrap();
    for cell in 0..cells {
        for seed in seeds {
            if !runs.iter().any(|(done, _)| *done == (cell, *seed)) {
                results.add(cell, *seed, &run(cell, *seed)).unwrap();
                runs.push(((cell, *seed), run(cell, *seed)));
            }
        }
    }
    results.finish(&runs).unwrap();
    runs
}

#[test]
fn a_finished_folder_reads_back_bit_for_bit_by_cell_and_seed() {
    let dir = tempfile::tempdir().unwrap();
    let (results, _) = Results::create_or_resume(dir.path(), manifest("h", 4, &[1, 20, u64::MAX])).unwrap();
    let mut runs: Vec<_> =
        (0..4).flat_map(|cell| [1, 20, u64::MAX].map(|seed| ((cell, seed), run(cell, seed)))).collect();
    runs.reverse(); // workers finish in any order
    let written = results.finish(&runs).unwrap();
    let (manifest, read) = Results::open(dir.path()).unwrap();
    runs.reverse();
    assert_eq!(manifest, written);
    assert!(manifest.complete && manifest.digest.is_some());
    assert_eq!(read.len(), runs.len());
    for ((_, written), read) in runs.iter().zip(&read) {
        assert!(identical(written, read), "{written:#?}\n{read:#?}");
    }
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 9, "eight tables and a manifest, no parts: {names:?}");
}

#[test]
fn an_interrupted_study_hands_back_its_runs_and_ends_with_the_digest_of_an_uninterrupted_one() {
    let (broken, whole) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (results, found) = Results::create_or_resume(broken.path(), manifest("h", 3, &[1])).unwrap();
    assert!(found.is_empty());
    results.add(2, 1, &run(2, 1)).unwrap();
    drop(results);
    assert!(matches!(Results::open(broken.path()), Err(Error::Incomplete { .. })));
    let (_, found) = Results::create_or_resume(broken.path(), manifest("h", 3, &[1])).unwrap();
    assert!(found.len() == 1 && found[0].0 == (2, 1) && identical(&found[0].1, &run(2, 1)));
    fill(broken.path(), "h", 3, &[1]);
    fill(whole.path(), "h", 3, &[1]);
    assert_eq!(Results::open(broken.path()).unwrap().0.digest, Results::open(whole.path()).unwrap().0.digest);
    for table in ["runs", "flows", "subflows", "paths", "tunnels", "cpu", "histograms", "series"] {
        let bytes = |dir: &Path| fs::read(dir.join(format!("{table}.parquet"))).unwrap();
        assert!(bytes(broken.path()) == bytes(whole.path()), "{table}.parquet differs");
    }
}

#[test]
fn a_baseline_is_copied_whole_and_replaced_whole() {
    let [dir, first, second] = [0; 3].map(|_| tempfile::tempdir().unwrap());
    fill(first.path(), "first", 2, &[1]);
    fill(second.path(), "second", 3, &[1]);
    fs::create_dir(first.path().join("baseline")).unwrap(); // its own baseline stays behind,
    fs::write(first.path().join("report.html"), "a page").unwrap(); // and its page
    for baseline in [&first, &second] {
        let (results, _) = Results::create_or_resume(dir.path(), manifest("h", 1, &[1])).unwrap();
        results.keep_baseline(baseline.path()).unwrap();
        assert_eq!(Results::open_baseline(dir.path()).unwrap().0, Results::open(baseline.path()).unwrap().0);
    }
    let names = |dir: &Path| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!(names(&dir.path().join("baseline")).len(), 9);
    assert_eq!(names(dir.path()).len(), 3, "manifest, parts, baseline: {:?}", names(dir.path()));
    fs::create_dir(dir.path().join(".baseline.1.0.tmp")).unwrap(); // a killed process was copying
    fill(dir.path(), "h", 1, &[1]);
    assert!(!names(dir.path()).contains(&".baseline.1.0.tmp".into()));
    assert_eq!(Results::open_baseline(dir.path()).unwrap().1.len(), 3, "finishing leaves the baseline alone");
}

#[test]
fn more_seeds_extend_a_complete_folder() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), "h", 2, &[1]);
    assert_eq!(fill(dir.path(), "h", 2, &[2, 3]).len(), 6);
    let (manifest, runs) = Results::open(dir.path()).unwrap();
    assert_eq!(manifest.seeds, [1, 2, 3]);
    let keys: Vec<_> = runs.iter().map(|run| (run.parameters["delay"].clone(), run.seed)).collect();
    assert_eq!(keys.len(), 6);
    assert_eq!(keys[3], ("1ms".to_owned(), 1));
}

#[test]
fn runs_that_were_found_cannot_be_dropped() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), "h", 2, &[1]);
    let (results, _) = Results::create_or_resume(dir.path(), manifest("h", 2, &[2])).unwrap();
    let error = results.finish(&[((0, 2), run(0, 2)), ((1, 2), run(1, 2))]).unwrap_err();
    assert_eq!(error.to_string(), "the run of cell 0 with seed 1 would be lost from the folder");
}

#[test]
fn another_study_is_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), "one", 1, &[1]);
    let error = Results::create_or_resume(dir.path(), manifest("two", 1, &[1])).unwrap_err().to_string();
    for part in [
        "scenario \"sample\" (one,",
        "now: scenario \"sample\" (two)",
        "choose another folder",
        dir.path().to_str().unwrap(),
    ] {
        assert!(error.contains(part), "{error}");
    }
    let mut other_program = manifest("one", 1, &[1]);
    other_program.commit = "def".to_owned();
    assert!(matches!(Results::create_or_resume(dir.path(), other_program), Err(Error::Occupied { .. })));
    let mut other_driver = manifest("one", 1, &[1]);
    other_driver.driver = "Linux 6.1".to_owned();
    assert!(matches!(Results::create_or_resume(dir.path(), other_driver), Err(Error::Occupied { .. })));
}

#[test]
fn a_folder_of_other_files_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.tex"), "dear").unwrap();
    let error = Results::create_or_resume(dir.path(), manifest("h", 1, &[1])).unwrap_err().to_string();
    assert!(error.contains("not Ropewalk's results"), "{error}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let below = dir.path().join("file").join("results");
    let error = Results::create_or_resume(&below, manifest("h", 1, &[1])).unwrap_err().to_string();
    assert!(error.starts_with("cannot ") && error.contains("results"), "{error}");
}

#[test]
fn a_folder_is_filled_by_one_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let (results, _) = Results::create_or_resume(dir.path(), manifest("h", 1, &[1])).unwrap();
    let error = Results::create_or_resume(dir.path(), manifest("h", 1, &[1])).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    let other = Results::create_or_resume(dir.path(), manifest("other", 1, &[1])).unwrap_err();
    assert!(matches!(other, Error::Occupied { .. }), "{other}");
    drop(results);
    Results::create_or_resume(dir.path(), manifest("h", 1, &[1])).unwrap();
}

#[test]
fn damage_is_reported_with_the_name_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let cut = |name: &str| {
        let path = dir.path().join(name);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        bytes
    };
    let (results, _) = Results::create_or_resume(dir.path(), manifest("h", 2, &[1])).unwrap();
    results.add(0, 1, &run(0, 1)).unwrap();
    results.add(1, 1, &run(1, 1)).unwrap();
    drop(results);
    cut("parts/00000-1.json");
    let text = fs::read_to_string(dir.path().join("parts/00001-1.json")).unwrap();
    fs::write(dir.path().join("parts/00001-1.json"), text.replacen("\"seed\":1", "\"seed\":2", 1)).unwrap();
    let error = Results::create_or_resume(dir.path(), manifest("h", 2, &[1])).unwrap_err().to_string();
    assert!(error.contains("00000-1.json: it has no digest, or is cut off"), "{error}");
    assert!(error.contains("00001-1.json: its digest is not that of its contents"), "{error}");
    assert!(error.contains("\n  rm "), "{error}");
    fs::remove_dir_all(dir.path().join("parts")).unwrap();
    fill(dir.path(), "h", 2, &[1]);
    for name in ["runs", "flows", "subflows", "paths", "tunnels", "cpu", "histograms", "series"]
        .map(|table| format!("{table}.parquet"))
    {
        let bytes = cut(&name);
        let error = Results::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("{name} is damaged")), "{error}");
        fs::write(dir.path().join(name), bytes).unwrap();
    }
    cut("manifest.json");
    let error = Results::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("manifest.json is damaged"), "{error}");
}

#[test]
fn a_run_that_would_not_read_back_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (results, _) = Results::create_or_resume(dir.path(), manifest("h", 1, &[1])).unwrap();
    for name in ["goodput_mbps", "jain", "rtt_ms.p95", "queue_delay_ms"] {
        let mut bad = run(0, 1);
        match name {
            "goodput_mbps" => bad.flows[0].goodput_mbps = f64::NAN,
            "jain" => bad.jain = Some(f64::INFINITY),
            "rtt_ms.p95" => bad.flows[0].rtt_ms.p95 = f64::NAN,
            _ => bad.paths.push(record::Path { queue_delay_ms: f64::NEG_INFINITY, ..Default::default() }),
        }
        let error = results.add(0, 1, &bad).unwrap_err().to_string();
        assert_eq!(error, format!("the run of cell 0 with seed 1 has a {name} that is not a finite number"));
    }
    let mut bad = run(1, 1);
    bad.series[0].time_s.pop();
    assert!(matches!(results.add(0, 1, &bad), Err(Error::Refused { .. })));
}

#[test]
fn a_folder_with_earlier_names_is_read_with_todays() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/validation/mptcp-6.1");
    let (_, runs) = Results::open(&kept).unwrap();
    let series: Vec<_> = runs.iter().flat_map(|run| &run.series).collect();
    for name in ["cwnd_packets", "ssthresh_packets", "srtt_ms"] {
        assert!(series.iter().any(|series| series.columns.iter().any(|column| column == name)), "{name}");
    }
    assert!(runs.iter().flat_map(|run| &run.flows).all(|flow| flow.recoveries >= flow.spurious_recoveries));
}

/// The file is one that an earlier version wrote.
#[test]
fn a_file_compressed_with_zstandard_is_refused_with_a_way_to_read_it() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), "h", 1, &[1]);
    fs::write(dir.path().join("runs.parquet"), include_bytes!("../data/runs-zstandard.parquet")).unwrap();
    let error = Results::open(dir.path()).unwrap_err();
    assert!(matches!(error, Error::Zstandard { .. }), "{error}");
    assert!(error.to_string().contains("run the scenario again"), "{error}");
}
