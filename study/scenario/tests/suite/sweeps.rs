//! Sweeps and `--set`: which cells come out, and what each of them is.

use crate::common::{read, read_quick, try_read};
use link::LossModel;
use params::ParamValue;
use ropewalk_scenario::model::{AlgorithmChoice, FlowKind};
use ropewalk_scenario::{Cell, Scenario};
use units::Span;

const SWEPT: &str = r#"
name = "swept"
duration = "10s"
seeds = [7, 8]
[[path]]
name = "wire"
rate = "100mbit"
[[flow]]
name = "tcp"
count = 2
[sweep]
"flow.tcp.congestion" = [{ label = "default", value = "cubic" }, "reno", { name = "vegas", beta = 4 }]
path.wire.delay = ["10ms", "20ms"]
"#;

fn congestion(cell: &Cell) -> &AlgorithmChoice {
    let FlowKind::Tcp { congestion, .. } = &cell.experiment.flows[0].kind else { panic!("a tcp flow") };
    congestion
}

fn shown_values(scenario: &Scenario) -> Vec<String> {
    let show = |cell: &Cell| cell.parameters.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>().join(" ");
    scenario.cells.iter().map(show).collect()
}

#[test]
fn a_sweep_is_a_grid_in_file_order_with_the_last_key_turning_fastest() {
    let scenario = read(SWEPT, &[]);
    let vegas = "{ name = \"vegas\", beta = 4 }";
    let cells = ["default 10ms", "default 20ms", "reno 10ms", "reno 20ms"].map(String::from);
    assert_eq!(shown_values(&scenario)[..4], cells);
    assert_eq!(shown_values(&scenario)[4..], [format!("{vegas} 10ms"), format!("{vegas} 20ms")]);
    let keys: Vec<&str> = scenario.cells[0].parameters.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["flow.tcp.congestion", "path.wire.delay"]);
    assert_eq!(congestion(&scenario.cells[0]).name, "cubic");
    assert_eq!(congestion(&scenario.cells[5]).parameters["beta"], ParamValue::Number(4.0));
    let delays: Vec<u64> = scenario.cells.iter().map(|c| c.experiment.links[0].reverse.delay.as_millis()).collect();
    assert_eq!(delays, [10, 20, 10, 20, 10, 20], "back as there");
}

#[test]
fn a_set_of_a_swept_key_leaves_one_value_of_that_axis() {
    assert_eq!(shown_values(&read(SWEPT, &["path.wire.delay=5ms", "flow.tcp.congestion=reno"])), ["reno 5ms"]);
    // A label means its entry, so that the row keeps its name.
    let labelled = read(SWEPT, &["flow.tcp.congestion=default"]);
    assert_eq!(shown_values(&labelled), ["default 10ms", "default 20ms"]);
    assert_eq!(congestion(&labelled.cells[0]).name, "cubic");
}

#[test]
fn an_entry_with_a_label_takes_the_place_of_the_one_that_has_it() {
    let sets = ["sweep.flow.tcp.congestion=[{ label = \"default\", value = \"bbr\" }, \"reno\"]"];
    let scenario = read(SWEPT, &sets);
    assert_eq!(shown_values(&scenario), ["default 10ms", "default 20ms", "reno 10ms", "reno 20ms"]);
    assert_eq!(congestion(&scenario.cells[0]).name, "bbr");
}

#[test]
fn a_set_above_a_swept_key_does_away_with_the_axis() {
    let scenario = read(SWEPT, &["path.wire={ name = \"wire\", rate = \"1mbit\", delay = \"3ms\" }"]);
    assert_eq!(scenario.cells.len(), 3);
    assert_eq!(scenario.cells[0].experiment.links[0].forward.delay, Span::from_millis(3));
}

#[test]
fn a_set_below_a_swept_key_holds_in_every_cell() {
    let scenario = read(SWEPT, &["flow.tcp.congestion.beta=0.5"]);
    assert_eq!(scenario.cells.len(), 6);
    for cell in &scenario.cells {
        assert_eq!(congestion(cell).parameters["beta"], ParamValue::Number(0.5));
    }
}

#[test]
fn a_set_may_add_what_the_file_does_not_say_and_later_sets_win() {
    let sets = ["tunnel.kind=mpt-gre", "tunnel.mtu=\"1300b\"", "tunnel.mtu=1200b", "path.wire.reverse.delay=1ms"];
    let experiment = &read(SWEPT, &sets).cells[1].experiment;
    assert_eq!(experiment.tunnel.as_ref().unwrap().mtu, 1200);
    assert_eq!(experiment.links[0].forward.delay, Span::from_millis(20));
    assert_eq!(experiment.links[0].reverse.delay, Span::from_millis(1));
}

const CASES: &str = r#"
name = "cases"
duration = "10s"
[[path]]
name = "wire"
rate = "100mbit"
[[flow]]
name = "tcp"
[sweep]
"path.wire.delay" = ["10ms", "20ms"]
[case.plain]
[case.rival]
duration = "20s"
[[case.rival.flow]]
name = "rival"
[case.slow]
[[case.slow.path]]
name = "wire"
rate = "1mbit"
[quick]
duration = "1s"
sweep.case = ["slow"]
"#;

#[test]
fn cases_are_the_slowest_axis_and_each_is_laid_over_the_file() {
    let scenario = read(CASES, &[]);
    let names = ["plain 10ms", "plain 20ms", "rival 10ms", "rival 20ms", "slow 10ms", "slow 20ms"];
    assert_eq!(shown_values(&scenario), names);
    let flows: Vec<usize> = scenario.cells.iter().map(|cell| cell.experiment.flows.len()).collect();
    assert_eq!(flows, [1, 1, 2, 2, 1, 1]);
    let seconds: Vec<u64> = scenario.cells.iter().map(|cell| cell.experiment.duration.as_millis() / 1000).collect();
    assert_eq!(seconds, [10, 10, 20, 20, 10, 10]);
    let links: Vec<_> = scenario.cells.iter().map(|cell| cell.experiment.links[0].forward.clone()).collect();
    assert_eq!(
        links.iter().map(|link| link.rate.unwrap().0).collect::<Vec<_>>()[3..],
        [100_000_000, 1_000_000, 1_000_000]
    );
    assert_eq!(links[5].delay.as_millis(), 20, "the sweep still holds");
}

#[test]
fn a_set_chooses_a_case_and_the_short_form_may_choose_some() {
    let rival = read(CASES, &["case=rival"]);
    assert_eq!(shown_values(&rival), ["rival 10ms", "rival 20ms"]);
    let quick = read_quick(CASES);
    assert_eq!(shown_values(&quick), ["slow 10ms", "slow 20ms"]);
    assert_eq!(quick.cells[0].experiment.duration.as_millis(), 1000);
    assert_ne!(quick.hash, read(CASES, &[]).hash);
}

#[test]
fn a_set_chooses_a_case_that_the_short_form_leaves_out() {
    let quick = |text: &str, sets: &[&str]| shown_values(&try_read(text, sets, true).expect("a known case"));
    assert_eq!(quick(CASES, &["case=rival"]), ["rival 10ms", "rival 20ms"]);
    assert_eq!(
        quick(CASES, &["sweep.case=[\"slow\", \"plain\"]", "path.wire.delay=20ms"]),
        ["slow 20ms", "plain 20ms"]
    );
    let own = format!("{OWN_SWEEPS}[quick]\nsweep.case = [\"plain\"]\n");
    assert_eq!(quick(&own, &[]), ["plain"]);
    assert_eq!(quick(&own, &["case=slow"]), ["slow 1mbit vegas", "slow 2mbit vegas"]);
    let error = try_read(CASES, &["case=fast"], true).map(|_| ()).expect_err("no such case");
    assert!(error.help().contains("known: plain, rival, slow"), "{}", error.help());
}

#[test]
fn a_set_narrows_a_sweep_to_some_of_its_values_or_new_ones() {
    let cases = read(CASES, &["sweep.case=[\"rival\", \"plain\"]"]);
    assert_eq!(shown_values(&cases), ["rival 10ms", "rival 20ms", "plain 10ms", "plain 20ms"]);
    let restricted = read(CASES, &["sweep.case=[\"rival\"]", "sweep.path.wire.delay=[\"20ms\", \"30ms\"]"]);
    assert_eq!(shown_values(&restricted), ["rival 20ms", "rival 30ms"]);
    assert_eq!(restricted.cells[1].experiment.links[0].forward.delay.as_millis(), 30);
}

#[test]
fn a_set_sweeps_a_key_that_was_not_swept() {
    let text =
        "name = \"x\"\nduration = \"1s\"\n[[path]]\nname = \"wire\"\nrate = \"100mbit\"\n[[flow]]\nname = \"tcp\"\n";
    let labels = |sets: &[&str]| -> Vec<String> {
        let cells = read(text, sets).cells;
        cells
            .iter()
            .map(|cell| cell.parameters.iter().map(|(_, label)| label.as_str()).collect::<Vec<_>>().join(" "))
            .collect()
    };
    let rate = "sweep.path.wire.rate=[\"1mbit\", \"2mbit\"]";
    assert_eq!(labels(&[rate]), ["1mbit", "2mbit"]);
    assert_eq!(
        labels(&[rate, "sweep.path.wire.delay=[\"3ms\", \"4ms\"]"]),
        ["1mbit 3ms", "1mbit 4ms", "2mbit 3ms", "2mbit 4ms"]
    );
    assert_eq!(labels(&["sweep={ path.wire.delay = [\"3ms\"], \"path.wire.rate\" = [\"5mbit\"] }"]), ["3ms 5mbit"]);
    assert_eq!(labels(&["path.wire.rate=9mbit", rate]), ["1mbit", "2mbit"], "what is set later wins");
    assert_eq!(labels(&[rate, "path.wire.rate=9mbit"]), ["9mbit"]);
}

#[test]
fn seeds_and_repetitions_can_be_set_over_each_other() {
    assert_eq!(read(SWEPT, &[]).seeds, [7, 8]);
    assert_eq!(read(SWEPT, &["repetitions=3"]).seeds, [1, 2, 3]);
    assert_eq!(read(SWEPT, &["repetitions=3", "seeds=[4]"]).seeds, [4]);
}

#[test]
fn the_hash_tells_texts_and_sets_apart() {
    let hash = |sets: &[&str]| read(SWEPT, sets).hash;
    assert_eq!(hash(&[]), hash(&[]));
    assert_eq!(hash(&[]).len(), 16);
    assert_ne!(hash(&[]), hash(&["duration=10s"]));
    let [rate, duration] = ["path.wire.rate=1mbit", "duration=10s"];
    assert_eq!(hash(&[duration, rate]), hash(&[rate, duration]), "neither changes the other");
    assert_eq!(hash(&[duration, "duration=9s", rate, duration]), hash(&[duration, rate]), "the last value counts");
    assert_ne!(hash(&[rate, "path.*.rate=2mbit"]), hash(&["path.*.rate=2mbit", rate]));
    assert_eq!(hash(&["seeds=[7, 8]"]), hash(&["repetitions=3"]), "of the same study");
    assert_eq!(hash(&["seeds=[7, 8]"]), hash(&[]));
}

#[test]
fn a_caller_can_point_at_a_key_at_a_swept_value_and_at_a_set() {
    let scenario = read(SWEPT, &[]);
    let error = scenario.error_at("flow.tcp.count", "too many", "");
    assert_eq!((error.line(), error.key()), (10, "flow.tcp.count"));
    let error = scenario.error_in(2, "flow.tcp.congestion", "unknown algorithm `reno`", "did you mean `bbr`?");
    assert_eq!(error.line(), 12);
    let shown = error.to_string();
    assert!(shown.contains("test.toml:12:66") && shown.contains("help: did you mean `bbr`?"), "{shown}");
    // `tcp-2` is one of the flows that [[flow]] `tcp` stands for.
    assert_eq!(scenario.error_in(4, "flow.tcp-2.congestion.beta", "out of range", "").line(), 12);
    let set =
        read(SWEPT, &["flow.tcp.congestion=cubik"]).error_at("flow.tcp.congestion", "unknown algorithm `cubik`", "");
    assert!(set.to_string().contains("--set:1:21"), "{set}");
}

/// Cases that sweep keys of their own.
const OWN_SWEEPS: &str = include_str!("../data/cases.toml");

#[test]
fn a_case_may_sweep_keys_of_its_own() {
    let scenario = read(OWN_SWEEPS, &[]);
    let lossy = ["lossy 1% reno", "lossy 1% cubic", "lossy 2% reno", "lossy 2% cubic"];
    assert_eq!(shown_values(&scenario), [&lossy[..], &["plain", "slow 1mbit vegas", "slow 2mbit vegas"]].concat());
    let rates: Vec<Option<u64>> =
        scenario.cells.iter().map(|cell| cell.experiment.links[0].forward.rate.map(|rate| rate.0)).collect();
    assert_eq!(rates[4..], [None, Some(1_000_000), Some(2_000_000)]);
}

#[test]
fn a_star_is_every_element_of_a_list() {
    let experiment = &read(OWN_SWEEPS, &[]).cells[2].experiment;
    assert!(experiment.links.iter().all(|link| link.forward.loss == LossModel::Random(0.02)), "{:?}", experiment.links);
    let names = experiment.flows.iter().map(|flow| match &flow.kind {
        FlowKind::Tcp { congestion, .. } => congestion.name.as_str(),
        FlowKind::ConstantRate { .. } | FlowKind::Hosted(_) => "",
    });
    assert_eq!(names.collect::<Vec<_>>(), ["reno", "reno"]);
}

#[test]
fn a_beginning_with_a_star_is_every_element_whose_name_begins_so() {
    let text = SWEPT.replace("[sweep]", "[[flow]]\nname = \"tcp-far\"\n[[flow]]\nname = \"other\"\n[sweep]");
    let names = |set: &str| -> Vec<String> {
        let experiment = &read(&text, &["flow.tcp.congestion=reno", set]).cells[0].experiment;
        let name = |kind: &FlowKind| match kind {
            FlowKind::Tcp { congestion, .. } => congestion.name.clone(),
            FlowKind::ConstantRate { .. } | FlowKind::Hosted(_) => String::new(),
        };
        experiment.flows.iter().map(|flow| name(&flow.kind)).collect()
    };
    assert_eq!(names("flow.tcp*.congestion=bbr"), ["bbr", "bbr", "bbr", "cubic"]);
    assert_eq!(names("flow.tcp-*.congestion=bbr"), ["reno", "reno", "bbr", "cubic"]);
    let error = try_read(&text, &["flow.web*.congestion=bbr"], false).unwrap_err().to_string();
    assert!(error.contains("`web*`") && error.contains("tcp-far"), "{error}");
}

#[test]
fn a_set_holds_in_every_case_that_sweeps_its_key_and_a_case_that_is_not_run_takes_its_keys_with_it() {
    let bbr = read(OWN_SWEEPS, &["flow.*.congestion=bbr"]);
    assert_eq!(shown_values(&bbr), ["lossy 1% bbr", "lossy 2% bbr", "plain", "slow 1mbit bbr", "slow 2mbit bbr"]);
    let slow = read(OWN_SWEEPS, &["case=slow"]);
    assert_eq!(shown_values(&slow), ["slow 1mbit vegas", "slow 2mbit vegas"]);
}
