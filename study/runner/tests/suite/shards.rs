//! Shards partition a plan in balance; shards of two machines that disagree are refused.

use crate::execute::scenario;
use record::Run;
use ropewalk_runner::{Checked, Driver, Error, Job, Plan, Simulator, Study, merge};
use scenario::Scenario;
use store::{Key, Shard};

#[test]
fn shards_are_disjoint_whole_and_balanced() {
    // Costs 1 to 60: a shard's greatest cost is at most the mean plus one run's (Graham 1969).
    let plan = Plan { keys: (0..60).map(|run| (run, 1)).collect(), costs: (1..=60).collect(), notes: Vec::new() };
    for count in [1, 2, 7, 60, 80] {
        let shards: Vec<Plan> = (1..=count).map(|index| plan.shard(Shard { index, count })).collect();
        let mut keys: Vec<Key> = shards.iter().flat_map(|shard| shard.keys.clone()).collect();
        keys.sort_unstable();
        assert_eq!(keys, plan.keys);
        let greatest = shards.iter().map(|shard| shard.costs.iter().sum::<u64>()).max().unwrap();
        let total: u64 = plan.costs.iter().sum();
        assert!(greatest <= total / count as u64 + 60, "{count}: {greatest}");
    }
}

#[test]
fn more_packets_cost_more() {
    let scenario = scenario();
    let plan = ropewalk_runner::plan(&scenario, &Simulator, false).unwrap();
    // Twice the rate, twice the packets; some work comes before the first one.
    assert!(plan.costs[2] > plan.costs[0] && plan.costs[2] < 2 * plan.costs[0], "{:?}", plan.costs);
}

#[test]
fn a_shard_that_two_machines_made_differently_is_refused() {
    let (scenario, dir) = (scenario(), tempfile::tempdir().unwrap());
    let make = |driver: &dyn Driver, index: usize, name: &str| {
        let study = Study::new(&scenario, driver, false, Vec::new()).unwrap().shard(Shard { index, count: 2 });
        study.open(&dir.path().join(name)).unwrap().run(None, &mut ()).unwrap();
        dir.path().join(name)
    };
    let folders = [make(&Simulator, 1, "one"), make(&Simulator, 2, "two"), make(&Skewed, 2, "skewed")];
    let error = merge(&folders, &dir.path().join("out")).unwrap_err().to_string();
    for part in ["both shard 2/2", "two", "skewed", "have different results, first in the run of cell"] {
        assert!(error.contains(part), "{error}");
    }
    assert!(!dir.path().join("out").exists());
    // What `out` holds of the study already is not overwritten by something else.
    merge(&[make(&Simulator, 1, "one"), make(&Skewed, 2, "skewed")], &dir.path().join("out")).unwrap();
    let error = merge(&folders[..2], &dir.path().join("out")).unwrap_err().to_string();
    assert!(error.contains("holds another result of cell"), "{error}");
}

/// A simulator that counts otherwise.
#[derive(Debug)]
struct Skewed;

impl Driver for Skewed {
    fn describe(&self, scenario: &Scenario) -> String {
        Simulator.describe(scenario)
    }

    fn check(&self, scenario: &Scenario, partial: bool) -> Result<Checked, Error> {
        Simulator.check(scenario, partial)
    }

    fn jobs(&self, _: &Scenario) -> usize {
        1
    }

    fn run(&self, job: &Job<'_>) -> Result<Option<Run>, String> {
        let run = Simulator.run(job)?;
        Ok(run.map(|run| Run { digest: format!("{}0", run.digest), ..run }))
    }

    fn setup(&self, _: &Scenario) -> Option<String> {
        None
    }
}

#[test]
fn a_shard_with_anything_but_regular_files_is_refused_by_its_name_and_gives_nothing_away() {
    let (scenario, dir) = (scenario(), tempfile::tempdir().unwrap());
    let study = Study::new(&scenario, &Simulator, false, Vec::new()).unwrap().shard(Shard { index: 1, count: 1 });
    let [shard, out, secret] = ["shard", "out", "secret"].map(|name| dir.path().join(name));
    study.open(&shard).unwrap().run(None, &mut ()).unwrap();
    std::fs::write(&secret, "a secret").unwrap();
    std::fs::create_dir_all(shard.join("raw/0-1")).unwrap();
    for name in ["setup.txt", "raw/0-1/log.txt", "raw/0-2", "baseline", "series.parquet.link"] {
        std::os::unix::fs::symlink(&secret, shard.join(name)).unwrap();
        let error = merge(std::slice::from_ref(&shard), &out).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("a symbolic link"), "{error}");
        std::fs::remove_file(shard.join(name)).unwrap();
    }
    // A pipe without a writer, at which an ordinary copy would wait for ever.
    let pipe = shard.join("raw/0-1/fifo");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let error = merge(std::slice::from_ref(&shard), &out).unwrap_err().to_string();
    assert!(error.contains("raw/0-1/fifo") && error.contains("a named pipe"), "{error}");
    std::fs::remove_file(pipe).unwrap();
    assert!(!out.exists());
    std::fs::write(shard.join("raw/0-1/log.txt"), "of the run").unwrap();
    merge(std::slice::from_ref(&shard), &out).unwrap();
    assert_eq!(std::fs::read_to_string(out.join("raw/0-1/log.txt")).unwrap(), "of the run");
}
