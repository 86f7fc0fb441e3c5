//! Algorithms that are registered at run time: their code is part of a study, and their errors end a run.

use control::{
    AlgorithmEntry, AlgorithmError, Constructor, Context, Decision, PathController, PathEvent, Properties, registry,
};
use ropewalk_runner::{Error, Simulator, Study};
use scenario::{Overrides, Scenario};
use std::path::Path;
use store::Results;
use units::INFINITE_SSTHRESH;

/// A window that stays, or an error at the first acknowledgement of data.
#[derive(Debug)]
struct Fixed {
    fails: bool,
}

impl PathController for Fixed {
    fn on_event(&mut self, event: &PathEvent, _: &mut Context<'_>) {
        if self.fails && matches!(event, PathEvent::Ack(_)) {
            AlgorithmError("it cannot go on".into()).raise();
        }
    }

    fn decision(&self) -> Decision {
        Decision { cwnd: 10, ssthresh: INFINITE_SSTHRESH, pacing_rate: None }
    }
}

fn register(name: &'static str, code_version: &'static str, fails: bool) {
    let entry = AlgorithmEntry {
        name,
        aliases: &[],
        title: "a window that stays",
        source: "a test",
        parameters: &[],
        properties: Properties { code_version: Some(code_version), ..Properties::DEFAULT },
        constructor: Constructor::PerPathDyn(std::sync::Arc::new(move |_| Box::new(Fixed { fails }))),
    };
    registry::register(entry).expect("right");
}

fn scenario(congestion: &str) -> Scenario {
    let text = format!(
        "name = 'one'\nduration = '1s'\nseeds = [1]\n[[path]]\nname = 'a'\nrate = '10mbit'\ndelay = '5ms'\n\
         [[flow]]\nname = 'tcp'\ncongestion = '{congestion}'\n"
    );
    scenario::parse("one.toml", &text, Path::new(""), &Overrides::default()).unwrap()
}

#[test]
fn a_folder_of_other_code_is_not_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario("edited");
    register("edited", "first", false);
    let study = Study::new(&scenario, &Simulator, false, Vec::new()).unwrap();
    study.open(dir.path()).unwrap().run(Some(1), &mut ()).unwrap();
    assert_eq!(Results::open(dir.path()).unwrap().0.code_versions["congestion edited"], "first");
    assert!(study.open(dir.path()).is_ok(), "of the same code it is");
    register("edited", "second", false);
    let error = Study::new(&scenario, &Simulator, false, Vec::new()).unwrap().open(dir.path()).unwrap_err();
    assert!(error.to_string().contains("congestion edited first"), "{error}");
}

#[test]
fn the_manifest_of_built_in_algorithms_has_no_versions_of_code() {
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario("cubic");
    let study = Study::new(&scenario, &Simulator, false, Vec::new()).unwrap();
    study.open(dir.path()).unwrap().run(Some(1), &mut ()).unwrap();
    let text = std::fs::read_to_string(dir.path().join("manifest.json")).unwrap();
    assert!(!text.contains("code_versions"), "{text}");
}

#[test]
fn an_error_of_an_algorithm_ends_the_run_and_says_which() {
    register("failing", "1", true);
    let scenario = scenario("failing");
    let study = Study::new(&scenario, &Simulator, false, Vec::new()).unwrap();
    match study.run(Some(2), &mut ()) {
        Err(Error::Run(message)) => {
            assert!(message.contains("with seed 1 failed: it cannot go on"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}
