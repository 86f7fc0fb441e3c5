//! Links that are known, measured in the simulator and fitted.

use fit::{
    AdviseOptions, Candidate, Fit, Goal, Links, Mode, Model, ModelError, Options, Progress, advise, candidates, fit,
    simulated_measurement,
};
use measured::Measured;
use std::path::PathBuf;

/// Links of a text.
fn links(text: &str) -> Links {
    Links { text: text.to_owned(), sets: Vec::new(), folder: PathBuf::new(), origin: "test".to_owned() }
}

/// One path of known rate, delay and loss.
fn known() -> Links {
    links(
        "name = \"hidden\"\nduration = \"10s\"\n[[path]]\nname = \"lte\"\nrate = \"12mbit\"\ndelay = \"20ms\"\njitter = \"1ms\"\n\
         queue = { limit = \"60p\" }\nloss = \"0.3%\"\nreverse = { rate = \"5mbit\", loss = \"0%\" }\n",
    )
}

fn measurement() -> Measured {
    simulated_measurement(&known(), &["lte"], &[901, 902, 903]).expect("the links are a scenario")
}

fn fitted(measured: &Measured, evaluations: usize, threads: usize) -> Fit {
    let model = Model::of_measurement(measured, &[]).expect("the measurement is whole");
    let options = Options { members: 4, hold: vec!["call".to_owned()], threads, seed: 1 };
    fit(&model, measured, &options, &mut |progress| left(progress, evaluations)).expect("the runs succeed")
}

fn left(progress: &Progress, evaluations: usize) -> f64 {
    1.0 - progress.evaluations as f64 / evaluations as f64
}

#[test]
fn the_ensemble_depends_on_the_evaluations_and_not_on_the_threads() {
    let measured = measurement();
    let [one, three] = [1, 3].map(|threads| fitted(&measured, 120, threads));
    assert_eq!(one.digest, three.digest);
    assert_eq!(one, three);
    assert_eq!(one.evaluations, 120);
}

#[test]
fn a_fit_of_one_known_path_finds_its_rate_and_beats_the_naive_links() {
    let fit = fitted(&measurement(), 300, 2);
    let of = |key: &str| fit.parameters.iter().find(|parameter| parameter.unknown.key == key).expect("an unknown");
    let (rate, delay) = (of("path.lte.rate").interval.median, of("path.lte.delay").interval.median);
    assert!((rate / 12e6 - 1.0).abs() < 0.1, "{rate}");
    assert!((delay / 0.020 - 1.0).abs() < 0.15, "{delay}");
    assert!(of("path.lte.rate").is_known && of("path.lte.delay").is_known, "{:?}", fit.parameters);
    assert!(
        fit.parameters.iter().all(|it| !it.is_known || it.interval.median > 1.01 * it.unknown.low),
        "{:?}",
        fit.parameters
    );
    assert!(fit.beats_naive(), "{:?} {:?}", fit.distance, fit.naive);
    assert!(fit.distance.held_out < fit.naive.held_out, "{:?} {:?}", fit.distance, fit.naive);
}

#[test]
fn a_scenario_with_unknown_keys_is_fitted_and_its_members_are_scenarios() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("links.toml");
    let text = known().text.replace("12mbit", "20mbit") + "[free]\n\"path.lte.rate\" = \"5mbit..40mbit\"\n";
    std::fs::write(&file, text).expect("the folder is ours");
    let measured = measurement();
    let model = Model::of_scenario(&file, &measured, &[]).expect("the file has an unknown");
    let options = Options { members: 2, hold: vec!["call".to_owned()], threads: 2, seed: 1 };
    let fit = fit(&model, &measured, &options, &mut |progress| left(progress, 240)).expect("the runs succeed");
    let rate = fit.parameters[0].interval.median;
    assert!((rate / 12e6 - 1.0).abs() < 0.1, "{rate}");
    let out = folder.path().join("out");
    let page = fit.write(&out).expect("the folder is ours");
    assert!(std::fs::read_to_string(page).expect("a page").contains("path.lte.rate"));
    assert_eq!(Fit::read(&out).expect("a fit"), fit);
    let member = scenario::load(&out.join("member-1.toml"), &scenario::Overrides::default()).expect("a scenario");
    assert_eq!(member.cells[0].experiment.flows.len(), 1);
    assert!(fit.write(folder.path()).is_err(), "a folder with something else");
}

#[test]
fn advice_depends_on_the_links_and_not_on_the_threads() {
    let paths = ["lte".to_owned(), "dsl".to_owned()];
    let text = known().text.replace("name = \"hidden\"\n", "")
        + "[[path]]\nname = \"dsl\"\nrate = \"6mbit\"\ndelay = \"8ms\"\n";
    let links = [links(&format!("name = \"two\"\n{text}"))];
    let names = ["cubic".to_owned(), "bbr".to_owned()];
    let candidates = candidates(&paths, Some(&names), false);
    let advice = |threads| {
        let options = AdviseOptions {
            goal: Goal::Throughput,
            default: Candidate::default_of_linux(),
            threads,
            error: ModelError::default(),
        };
        advise(&links, &paths, &candidates, &options, &mut |_| true).expect("the runs succeed")
    };
    let one = advice(1);
    assert_eq!(one, advice(3));
    // 12 Mbit/s with random loss and 6 Mbit/s: BBR over both carries most, and nothing carries more than both.
    let first = &one.ranked[0];
    assert_eq!((&first.candidate.mode, first.candidate.congestion.as_str()), (&Mode::Mptcp, "bbr"));
    assert!((12.0..18.0).contains(&first.goodput_mbps.median), "{first:?}");
    assert!(one.left_out.is_empty() && one.is_decided, "{one:?}");
}

/// The default over the links and each mode, by what the goal is about; the relay has no answers to requests.
#[test]
fn each_goal_is_measured_in_each_mode_or_says_what_it_leaves_out() {
    let paths = ["lte".to_owned(), "dsl".to_owned()];
    let links = [links(
        "name = \"two\"\n[[path]]\nname = \"lte\"\nrate = \"12mbit\"\ndelay = \"20ms\"\n\
         [[path]]\nname = \"dsl\"\nrate = \"6mbit\"\ndelay = \"8ms\"\n",
    )];
    let of_tunnel = |relay| Candidate::of_tunnel(Some("bbr"), Some("minrtt"), relay);
    let single = Candidate { mode: Mode::Single("lte".to_owned()), scheduler: None, ..Candidate::default_of_linux() };
    let candidates = [Candidate::default_of_linux(), single, of_tunnel(false), of_tunnel(true)];
    for goal in [Goal::Throughput, Goal::Calls, Goal::Web, Goal::Fair] {
        for default in [Candidate::default_of_linux(), of_tunnel(true)] {
            let options = AdviseOptions { goal, default, threads: 2, error: ModelError::default() };
            let advice = advise(&links, &paths, &candidates, &options, &mut |_| true).expect("the runs succeed");
            let relays = usize::from(goal != Goal::Web);
            assert_eq!((advice.ranked.len(), advice.left_out.len()), (3 + relays, 1 - relays), "{advice:?}");
            for of in &advice.ranked {
                assert!(of.goodput_mbps.median > 0.0, "{goal:?}: {of:?}");
                assert!((of.response_ms.median > 0.0) == (goal == Goal::Web), "{goal:?}: {of:?}");
            }
        }
    }
}
