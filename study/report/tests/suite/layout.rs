//! The report's part of a scenario: read in file order, following what is swept, and blamed at its line.

use parse::Error;
use ropewalk_report::{HeatMap, Layout, Scale, fits, layout, schema};
use scenario::{Overrides, Scenario};
use std::path::Path;

fn scenario(text: &str, sets: &[&str], quick: bool) -> Result<Scenario, Error> {
    let sets = sets.iter().map(ToString::to_string).collect();
    scenario::parse("bad.toml", text, Path::new(""), &Overrides { sets, quick })
}

fn read(text: &str, sets: &[&str], quick: bool) -> Layout {
    scenario(text, sets, quick).and_then(|scenario| layout(&scenario)).unwrap_or_else(|error| panic!("{error}"))
}

const SWEPT: &str = r#"
name = "swept"
duration = "10s"
[[path]]
name = "wire"
rate = "100mbit"
[[flow]]
name = "tcp"
count = 2
[sweep]
"flow.tcp.congestion" = [{ label = "default", value = "cubic" }, "reno"]
path.wire.delay = ["10ms", "20ms"]
[[table]]
rows = "flow.tcp.congestion"
columns = "path.wire.delay"
value = "goodput_mbps"
flow = "tcp-2"
[[table.reference]]
name = "paper"
source = "Table I"
unit = "Mbit/s"
columns = ["20ms", "10ms"]
rows = { zeta = [1, nan], alpha = [2.5, 3] }
"#;

#[test]
fn tables_and_references_come_through_in_file_order() {
    let layout = read(SWEPT, &[], false);
    let table = &layout.tables[0];
    assert_eq!(table.rows, ["flow.tcp.congestion"]);
    assert_eq!(table.columns.as_deref(), Some("path.wire.delay"));
    assert_eq!((table.values[0].value.as_str(), table.scope.flow.as_deref()), ("goodput_mbps", Some("tcp-2")));
    let rows = vec![("zeta".to_owned(), vec![Some(1.0), None]), ("alpha".to_owned(), vec![Some(2.5), Some(3.0)])];
    assert_eq!(table.references[0].rows, rows);
    assert_eq!(table.references[0].columns, ["20ms", "10ms"]);
}

#[test]
fn a_set_that_leaves_one_value_keeps_the_table_and_one_that_removes_the_key_does_not() {
    assert_eq!(read(SWEPT, &["flow.tcp.congestion=default"], false).tables.len(), 1);
    let set = "path.wire={ name = \"wire\", rate = \"1mbit\", delay = \"3ms\" }";
    assert_eq!(read(SWEPT, &[set], false).tables, []);
}

/// Cases that sweep keys of their own, and what a report shows of them.
const CASES: &str = concat!(
    include_str!("../../../scenario/tests/data/cases.toml"),
    r#"[[table]]
rows = "path.*.loss"
columns = "flow"
value = "throughput_mbps"
only = { flow = ["both", "both/a", "rival"] }
[[table]]
rows = "path.a.rate"
value = ["goodput_mbps", { label = "RTT over b", value = "srtt_ms.mean", flow = "both/b" }]
only = { case = ["slow", "plain"] }
[[claim]]
says = "both takes no more over a than its rival"
value = "throughput_mbps"
of = "flow"
each = "flow.*.congestion"
only = { case = ["lossy"] }
ratio = ["both/a", "rival"]
max = 1.0
[quick]
sweep.case = ["slow"]
"#
);

#[test]
fn what_belongs_to_cases_that_are_not_run_is_left_out() {
    assert_eq!(read(CASES, &["flow.*.congestion=bbr"], false).claims.len(), 1);
    let slow = read(CASES, &["case=slow"], false);
    assert_eq!((slow.tables.len(), slow.claims.len()), (1, 0), "{slow:?}");
    assert_eq!(read(CASES, &[], false).tables[1].scope.only["case"], ["slow", "plain"]);
    assert_eq!(read(CASES, &[], true).tables[0].scope.only["case"], ["slow"]);
}

/// A case with flows of its own, whose table asks for one of them.
const FLOWS_OF_A_CASE: &str = r#"
name = "flows-of-a-case"
duration = "10s"
[[path]]
name = "wire"
rate = "100mbit"
[[flow]]
name = "tcp"
[case.one]
[case.two]
flow = [{ name = "tcp" }, { name = "far" }]
[sweep]
case = ["one", "two"]
"flow.tcp.congestion" = ["cubic", "reno"]
[[table]]
rows = "flow.tcp.congestion"
value = [{ label = "far", value = "goodput_mbps", flow = "far" }]
only = { case = ["two"] }
"#;

#[test]
fn a_table_of_another_case_needs_none_of_its_flows() {
    let tables = |set| read(FLOWS_OF_A_CASE, &[set], false).tables.len();
    assert_eq!(["case=one", "case=two"].map(tables), [0, 1]);
}

#[test]
fn tables_and_claims_go_by_flow_and_subflow() {
    let layout = read(CASES, &[], false);
    assert_eq!(layout.tables[0].columns.as_deref(), Some("flow"));
    assert_eq!(layout.tables[0].scope.only["flow"], ["both", "both/a", "rival"]);
    let [plain, labelled] = &layout.tables[1].values[..] else { panic!("two values") };
    assert_eq!((plain.value.as_str(), plain.label.as_str(), &plain.flow), ("goodput_mbps", "", &None));
    assert_eq!((labelled.label.as_str(), labelled.flow.as_deref()), ("RTT over b", Some("both/b")));
    assert_eq!(layout.claims[0].test.names(), ["both/a", "rival"]);
    assert_eq!(layout.claims[0].scope.only["flow"], ["both", "both/a", "rival"], "all flows and what is named");
}

/// The shortest scenario; the lines of a bad one are put behind it.
const HEAD: &str = "name = \"x\"\nduration = \"10s\"\n";
const PATH: &str = "[[path]]\nname = \"wire\"\nrate = \"100mbit\"\ndelay = \"10ms\"\n";
const FLOW: &str = "[[flow]]\nname = \"tcp\"\n";

/// Line and key where the fault is found, and a phrase of the message or of the help.
#[test]
fn a_figure_by_subflow_has_all_subflows_or_those_of_a_flow() {
    let paths =
        ["a", "b"].map(|name| format!("[[path]]\nname = \"{name}\"\nrate = \"10mbit\"\ndelay = \"5ms\"\n")).concat();
    let flows = "[[flow]]\nname = \"one\"\nkind = \"mptcp\"\n[[flow]]\nname = \"two\"\nkind = \"mptcp\"\n";
    let head = format!("name = \"s\"\nduration = \"10s\"\nsample = \"1s\"\n{paths}{flows}");
    let figure = |more: &str| format!("{head}[[figure]]\nlines = \"subflow\"\nvalue = \"cwnd_packets\"\n{more}");
    let lines = |more: &str| {
        let figure = read(&figure(more), &[], false).figures.remove(0);
        (figure.lines, figure.scope.only["flow"].join(" "), figure.scope.flow)
    };
    assert_eq!(lines(""), ("flow".to_owned(), "one/a one/b two/a two/b".to_owned(), None));
    assert_eq!(lines("flow = \"two\"").1, "two/a two/b");
    assert_eq!(lines("only = { flow = [\"one/b\"] }").1, "one/b");
    let without = figure("").replace("kind = \"mptcp\"", "path = \"a\"");
    let error = scenario(&without, &[], false).and_then(|scenario| layout(&scenario)).unwrap_err().to_string();
    assert!(error.contains("no flow here has subflows"), "{error}");
}

fn check(text: &str, line: usize, key: &str, phrase: &str) {
    let parsed = scenario(text, &[], false).unwrap_or_else(|error| panic!("{error}"));
    let error = layout(&parsed).map(|_| ()).expect_err(text);
    assert_eq!((error.line(), error.key()), (line, key), "{text}\n{error}");
    assert!(error.message().contains(phrase) || error.help().contains(phrase), "{phrase:?} is not in:\n{error}");
}

#[test]
fn tables_and_figures_are_blamed_at_their_line() {
    let sweep = |lines: &str| format!("{HEAD}{PATH}{FLOW}[sweep]\n{lines}\n");
    let table = "\"duration\" = [\"1s\"]\n[[table]]\nrows = \"duration\"\nvalue = \"goodput_mbps\"\n";
    check(&sweep(&format!("{table}columns = \"path\"")), 14, "table.0.columns", "unknown swept key `path`");
    check(&sweep(&format!("{table}columns = \"duration\"\nflow = \"udp\"")), 15, "table.0.flow", "unknown flow `udp`");
    let rows = "[[table.reference]]\nname = \"a\"\nsource = \"b\"\nunit = \"c\"\ncolumns = [\"d\", \"e\"]\nrows = { f = [1] }\n";
    check(&sweep(&format!("{table}{rows}")), 19, "table.0.reference.a.rows", "1 values for 2 columns");
    check(
        &sweep(&format!("{table}only = {{ duration = [\"2s\"] }}")),
        14,
        "table.0.only.duration",
        "did you mean `1s`?",
    );
    check(
        &sweep(&format!("{table}only = {{ flow = [\"tcp\"] }}")),
        14,
        "table.0.only.flow",
        "nothing here goes by flow",
    );
    let by_flow = format!("{table}columns = \"flow\"\n");
    check(&sweep(&format!("{by_flow}only = {{ flow = [\"tpc\"] }}")), 15, "table.0.only.flow", "did you mean `tcp`?");
    check(&sweep(&format!("{table}flow = \"tcp/wire\"")), 14, "table.0.flow", "unknown flow `tcp/wire`");
    check(&sweep(&format!("{table}until = \"1s\"")), 14, "table.0.until", "set `sample`");
    let sampled = "sample = \"300ms\"\n";
    check(&format!("{sampled}{}", sweep(&format!("{table}from = \"1s\""))), 15, "table.0.from", "multiple of `sample`");
    let value = "\"duration\" = [\"1s\"]\n[[table]]\nrows = \"duration\"\nvalue = ";
    let unlabelled = sweep(&format!("{value}[{{ value = \"goodput_mbps\" }}]"));
    check(&unlabelled, 13, "table.0.value", "a list of values and of { label, value, flow }");
    check(
        &sweep(&format!("{value}\"jain\"")).replace("rows = \"duration\"", "rows = 3"),
        12,
        "table.0.rows",
        "a list of them",
    );
    let several = "value = [\"goodput_mbps\", \"rtt_ms.p95\"]\ncolumns = \"duration\"\n";
    let head = "\"duration\" = [\"1s\"]\n[[table]]\nrows = \"duration\"\n";
    check(&sweep(&format!("{head}{several}")), 13, "table.0.value", "shows one value");
    check(
        &sweep("\"duration\" = [\"1s\"]\n[[figure]]\nlines = \"duration\"\nvalue = \"x\""),
        12,
        "figure.0.lines",
        "set `sample`",
    );
    let figure = |lines: &str| sweep(&format!("\"duration\" = [\"1s\"]\n[[figure]]\nvalue = \"x\"\n{lines}"));
    check(&figure(""), 12, "figure.0.value", "lines = \"KEY\" over time");
    check(&figure("bars = \"duration\""), 13, "figure.0.bars", "across = \"KEY\"");
    let sampled_figure = |lines: &str| format!("sample = \"1s\"\n{}", figure(lines));
    check(&figure("lines = \"flow\"\nbars = \"duration\""), 14, "figure.0.bars", "of one kind");
    check(&figure("bars = \"flow\"\ndistribution = \"flow\""), 14, "figure.0.distribution", "of one kind");
    check(&figure("distribution = \"flow\"\nacross = \"duration\""), 14, "figure.0.across", "only lines and bars");
    check(&sampled_figure("lines = \"flow\"\nthreshold = 1"), 15, "figure.0.threshold", "only a distribution");
    check(&sampled_figure("lines = \"flow\"\nattainable = \"92%\""), 15, "figure.0.attainable", "values over time");
    check(&figure("lines = \"duration\"\nacross = \"flow\""), 14, "figure.0.across", "not numbers of one unit");
    check(&figure("scatter = \"flow\""), 13, "figure.0.scatter", "against = \"rtt_ms.p50\"");
    check(
        &figure("bars = \"flow\"\nagainst = \"jain\"\nacross = \"duration\""),
        14,
        "figure.0.against",
        "only a scatter",
    );
    check(&figure("stacked = \"flow\""), 13, "figure.0.stacked", "set `sample`");
    check(&sampled_figure("stacked = \"duration\""), 14, "figure.0.stacked", "stacked = \"flow\"");
    check(&sampled_figure("lines = \"flow\"\nscale = \"log\""), 15, "figure.0.scale", "lines across a key");
    check(&figure("distribution = \"flow\"\nscale = \"ccdf\""), 14, "figure.0.scale", "value = \"rtt_ms\"");
    check(&figure("distribution = \"flow\"\nscale = \"cdf\""), 14, "figure.0.scale", "`ccdf`");
    check(&figure("bars = \"flow\"\nacross = \"dration\""), 14, "figure.0.across", "did you mean `duration`?");
}

#[test]
fn a_delay_has_samples_in_a_distribution_and_a_number_elsewhere() {
    let figure =
        |lines: &str| format!("{HEAD}{PATH}{FLOW}[sweep]\n\"duration\" = [\"1s\", \"2s\"]\n[[figure]]\n{lines}\n");
    let layout = read(&figure("distribution = \"duration\"\nvalue = \"rtt_ms\"\nscale = \"ccdf\""), &[], false);
    assert!(layout.figures[0].distribution && layout.figures[0].scale == Scale::Ccdf);
    let bars = "bars = \"duration\"\nacross = \"flow\"\nvalue = \"rtt_ms\"";
    check(&figure(bars), 14, "figure.0.value", "rtt_ms.mean, .p50");
    let scatter = "scatter = \"duration\"\nagainst = \"rtt_ms\"\nvalue = \"goodput_mbps\"";
    check(&figure(scatter), 13, "figure.0.against", "many samples per run");
    check(&figure("distribution = \"duration\"\nvalue = \"rt_ms\""), 13, "figure.0.value", "no `rt_ms`");
    let timed = "distribution = \"duration\"\nvalue = \"rtt_ms\"\nfrom = \"1s\"";
    check(&format!("sample = \"1s\"\n{}", figure(timed)), 15, "figure.0.from", "those of the whole run");
    let column = "bars = \"duration\"\nacross = \"flow\"\nvalue = \"srtt_ms\"\nfrom = \"1s\"";
    let layout = read(&format!("sample = \"1s\"\n{}", figure(column)), &[], false);
    assert_eq!(layout.figures.len(), 1, "a column of the time series");
}

#[test]
fn errors_in_shares_and_heat_maps_name_their_line() {
    let table = |path: &str, lines: &str| {
        let sweep = "[sweep]\n\"duration\" = [\"1s\", \"2s\"]\n[[table]]\nrows = \"duration\"\n";
        format!("{HEAD}{path}{FLOW}{sweep}{lines}\n")
    };
    let share = "value = \"goodput_mbps\"\nattainable = \"92%\"\n";
    let layout = read(&table(PATH, &format!("{share}heat_map = {{ threshold = 0.9 }}")), &[], false);
    let expected = HeatMap { min: 0.0, max: 1.0, threshold: Some(0.9), even: None };
    assert_eq!((layout.tables[0].scope.attainable, layout.tables[0].heat_map), (Some(0.92), Some(expected)));
    check(&table(PATH, &share.replace("92", "0")), 14, "table.0.attainable", "more than zero");
    check(&table(PATH, &share.replace("goodput_mbps", "rtt_ms.p95")), 13, "table.0.value", "is no rate");
    let unlimited = PATH.replace("rate = \"100mbit\"\n", "");
    check(&table(&unlimited, share), 12, "table.0.value", "what the paths can carry is not known");
    for scale in ["min = 1", "threshold = 1", "min = 0.5, threshold = 0.5", "max = 0"] {
        let lines = format!("{share}heat_map = {{ {scale} }}");
        check(&table(PATH, &lines), 15, "table.0.heat_map", "does not ascend");
    }
    let several = table(PATH, share).replace("rows = \"duration\"", "rows = [\"duration\", \"dration\"]");
    check(&several, 12, "table.0.rows", "did you mean `duration`?");
    check(&several.replace("[\"duration\", \"dration\"]", "[]"), 12, "table.0.rows", "a table has rows");
}

#[test]
fn a_layout_that_was_stored_with_one_key_for_its_rows_is_read() {
    let layout = read(SWEPT, &[], false);
    let mut stored = serde_json::to_value(&layout).unwrap();
    stored["tables"][0]["rows"] = "flow.tcp.congestion".into();
    stored["tables"][0].as_object_mut().unwrap().remove("heat_map");
    stored["tables"][0]["scope"].as_object_mut().unwrap().remove("attainable");
    assert_eq!(serde_json::from_value::<Layout>(stored).unwrap(), layout);
}

#[test]
fn a_claim_that_was_stored_without_a_tolerance_and_an_unknown_key_is_read() {
    let layout = read(CASES, &[], false);
    let mut stored = serde_json::to_value(&layout).unwrap();
    for key in ["unknown", "within"] {
        stored["claims"][0].as_object_mut().unwrap().remove(key).expect("it is written");
    }
    assert_eq!(serde_json::from_value::<Layout>(stored).unwrap(), layout);
}

#[test]
fn claims_are_blamed_at_their_line() {
    let claim = |lines: &str| {
        let head = "[sweep]\n\"duration\" = [\"1s\", \"2s\"]\n[[claim]]\nof = \"duration\"\nvalue = \"goodput_mbps\"\n";
        format!("{HEAD}{PATH}{FLOW}{head}says = \"long is best\"\n{lines}\n")
    };
    check(&claim(""), 14, "claim.0.says", "in one way");
    check(&claim("highest = [\"2s\"]\nlowest = [\"1s\"]"), 14, "claim.0.says", "in one way");
    check(&claim("highest = [\"3s\"]"), 14, "claim.0.says", "unknown value of `duration` `3s`");
    check(&claim("range = []\nmin = 1"), 14, "claim.0.says", "in one way");
    check(&claim("each = \"path\"\nhighest = [\"2s\"]"), 15, "claim.0.each", "unknown swept key");
    check(&claim("unknown = \"path\"\nhighest = [\"2s\"]"), 15, "claim.0.unknown", "unknown swept key");
    check(&claim("unknown = \"duration\"\nhighest = [\"2s\"]"), 15, "claim.0.unknown", "different keys");
    check(&claim("each = \"duration\"\nhighest = [\"2s\"]"), 15, "claim.0.each", "twice");
    let both = ["range = [\"2s\"]", "ratio = [\"2s\", \"1s\"]"];
    for test in both {
        check(&claim(&format!("{test}\nmin = 1\nwithin = \"1%\"")), 17, "claim.0.within", "no meaning");
        check(&claim(&format!("{test}\nmin = 2\nmax = 1")), 16, "claim.0.min", "`min` is more than `max`");
    }
    for test in ["highest", "lowest", "order", "alike"] {
        check(&claim(&format!("{test} = [\"2s\"]\nmin = 1")), 16, "claim.0.min", "only range and ratio");
        check(&claim(&format!("{test} = [\"2s\"]\nmax = 1")), 16, "claim.0.max", "only range and ratio");
        check(&claim(&format!("{test} = [\"2s\"]\nor_max = 1")), 16, "claim.0.or_max", "only ratio has");
        let tolerant = scenario(&claim(&format!("{test} = [\"2s\"]\nwithin = \"1%\"")), &[], false).unwrap();
        layout(&tolerant).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn fits_are_read_and_blamed_at_their_line() {
    let fit = |lines: &str| {
        let sweep = "[sweep]\n\"flow.tcp.congestion\" = [\"reno\", \"cubic\"]\n";
        format!("{HEAD}{PATH}{FLOW}{sweep}[[fit]]\nsays = \"fast\"\nkey = \"path.wire.delay\"\n{lines}\n")
    };
    let good =
        "value = \"goodput_mbps\"\nchosen = \"10ms\"\nbetween = [\"1ms\", \"20.5ms\"]\ntarget = 50\nwithin = \"2%\"";
    let read = scenario(&fit(good), &[], false).and_then(|scenario| fits(&scenario)).unwrap();
    assert_eq!((read[0].chosen, read[0].between, read[0].unit.as_str()), (10.0, [1.0, 20.5], "ms"));
    assert_eq!((read[0].target, read[0].tolerance), (50.0, 1.0));
    let last_line = |text: &str, key: &str| {
        text.lines().zip(1..).filter(|(line, _)| line.starts_with(&format!("{key} = "))).last().unwrap().1
    };
    for (from, to, key, phrase) in [
        ("goodput_mbps", "goodput", "value", "did you mean `goodput_mbps`?"),
        ("chosen = \"10ms\"", "chosen = \"fast\"", "chosen", "does not begin with a number"),
        ("1ms\", \"20.5ms", "1us\", \"20.5ms", "between", "in the unit of `chosen`"),
        ("1ms\", \"20.5ms", "11ms\", \"20.5ms", "between", "less and more than 10ms"),
        ("target = 50", "target = 0", "target", "more than zero"),
        ("2%", "0%", "within", "within = \"2%\""),
        ("target = 50", "target = 50\nonly = { path = [\"a\"] }", "only.path", "flow.tcp.congestion"),
        ("target = 50", "target = 50\nflow = \"tpc\"", "flow", "did you mean `tcp`?"),
    ] {
        let text = fit(&good.replacen(from, to, 1));
        let start = if key == "only.path" { "only" } else { key };
        check(&text, last_line(&text, start), &format!("fit.0.{key}"), phrase);
    }
}

#[test]
fn the_schema_has_the_reports_part_too() {
    let schema = schema();
    for part in ["table", "figure", "claim", "reference"] {
        assert!(schema["$defs"][part]["properties"].is_object(), "{part}");
    }
    assert_eq!(schema["properties"]["table"]["items"]["$ref"], "#/$defs/table");
    assert_eq!(schema["$defs"]["path"]["additionalProperties"], false);
}
