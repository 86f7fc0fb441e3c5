//! Terminal tables fit, say what is compared, and never make a value up.

use crate::made_up;
use crate::made_up_multipath;
use record::Run;
use ropewalk_report::{BY_FLOW, Baseline, Claim, Column, Comparison, Layout, Reference, Scope, Study, Table, Test};
use ropewalk_report::{compare_terminal, html, terminal};
use unicode_width::UnicodeWidthStr;

fn assert_fits(text: &str, width: usize) {
    for line in text.lines() {
        assert!(line.width() <= width, "{} of {width} columns: {line:?}", line.width());
    }
}

/// Two studies side by side, the second measured by the first.
fn beside(first: &Study<'_>, second: &Study<'_>, width: usize) -> String {
    compare_terminal(&[Comparison::new([("first", first.clone()), ("second", second.clone())], 0)], width, false)
}

/// The study with and without its layout, and compared with itself.
fn texts(study: &Study<'_>, width: usize) -> [String; 3] {
    let plain = Study { layout: Layout::default(), ..study.clone() };
    [terminal(study, width, false), terminal(&plain, width, false), beside(study, &plain, width)]
}

#[test]
fn a_short_run_shows_neither_published_values_nor_claims() {
    let runs = made_up::runs(&[1], 0);
    let command = ["ropewalk", "run", "made-up", "--quick"].map(str::to_owned);
    let mut study = made_up::study(&runs);
    study.layout.claims = vec![made_up::claim("CUBIC is first", Test::Highest(vec!["cubic".to_owned()]))];
    let shows = |study: &Study<'_>| {
        [terminal(study, 200, false), html(study)]
            .map(|text| ["CUBIC is first", "published", "Short run"].map(|part| text.contains(part)))
    };
    assert_eq!(shows(&study), [[true, true, false]; 2]);
    study.provenance.command = &command;
    for [claim, _, note] in shows(&study) {
        assert_eq!([claim, note], [false, true]);
    }
    let text = terminal(&study, 200, false);
    assert!(!text.contains("  published") && text.contains("also shows published values, claims."), "{text}");
    study.layout.tables[0].references.clear();
    assert!(shows(&study).iter().all(|[claim, ..]| *claim), "a study without published values has only its claims");
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    const LONG: &str = "a-name-that-goes-on-and-on-and-on-until-it-is-wider-than-any-sensible-terminal-should-ever-be-長い名前-\u{1b}[31m";
    let mut runs = made_up::runs(&[1, 2], 0);
    let usual = runs.clone();
    for run in &mut runs {
        run.flows[0].name = LONG.to_owned();
        run.paths[1].name = LONG.to_owned();
        let delay = run.parameters["path.eno2.delay"].clone();
        run.parameters.insert("path.eno2.delay".to_owned(), format!("{delay}{LONG}"));
        run.parameters.insert(LONG.to_owned(), delay);
    }
    for runs in [&usual, &runs] {
        let mut study = made_up::study(runs);
        study.layout.tables[0].references[0].name = LONG.to_owned();
        study.title = LONG;
        study.layout.claims = vec![made_up::claim(LONG, Test::Highest(vec!["cubic".to_owned()])); 2];
        study.layout.claims[1].each = Some("path.eno2.delay".to_owned());
        study.layout.figures = vec![made_up::figure()];
        study.layout.figures[0].title = LONG.to_owned();
        study.baseline = Some(Baseline { name: LONG, runs });
        for width in [20, 40, 80, 120, 200] {
            for text in texts(&study, width) {
                assert_fits(&text, width);
                assert!(!text.contains('\u{1b}'), "a name sent an escape sequence to the terminal");
            }
        }
    }
}

/// Ten thousand flows are for the Parquet files.
#[test]
fn a_table_of_many_flows_is_cut_and_says_so() {
    let mut runs = made_up::runs(&[1], 0);
    runs.truncate(1);
    let flow = runs[0].flows[0].clone();
    runs[0].flows = (0..1500).map(|number| record::Flow { name: format!("flow-{number}"), ..flow.clone() }).collect();
    let study = Study { layout: Layout::default(), ..made_up::study(&runs) };
    let text = terminal(&study, 80, false);
    assert_eq!(text.lines().filter(|line| line.starts_with("flow-")).count(), 100);
    assert!(text.contains("and 1400 more rows, which the Parquet files have"), "{text}");
    let page = html(&study);
    assert!(page.contains("Flows, 1500 rows") && page.contains("The first 1000 rows;"));
    assert!(page.contains("flow-999<") && !page.contains("flow-1000<"));
}

#[test]
fn six_delays_stand_side_by_side_in_eighty_columns() {
    let runs = made_up::runs(&[1], 0);
    let text = terminal(&made_up::study(&runs), 80, false);
    let lines: Vec<&str> = text.lines().collect();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let head = lines.iter().find(|line| line.contains("10ms")).unwrap();
    assert_eq!(words(head)[3..], ["10ms", "20ms", "30ms", "40ms", "50ms", "100ms"]);
    let vegas = lines.iter().position(|line| line.starts_with("vegas")).unwrap();
    assert_eq!(words(lines[vegas + 1]), ["published", "5.65", "3.13", "2.11", "1.64", "1.15", "0.609"]);
}

#[test]
fn the_values_of_the_first_key_of_the_rows_change_slowest() {
    let runs = made_up::runs(&[1], 0);
    let first_rows = |keys: [&str; 2]| {
        let mut study = made_up::study(&runs);
        let rows = keys.map(str::to_owned).to_vec();
        study.layout.tables[0] = Table { rows, values: vec![made_up::column("goodput_mbps")], ..Table::default() };
        let text = terminal(&study, 80, false);
        let rows = text.lines().filter(|line| line.contains("ms,") || line.contains("ms  "));
        rows.take(2).map(|row| row.split("  ").next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let [algorithm, delay] = ["flow.tcp.congestion", "path.eno2.delay"];
    assert_eq!(first_rows([algorithm, delay]), ["uncontrolled, 10ms", "uncontrolled, 20ms"]);
    assert_eq!(first_rows([delay, algorithm]), ["10ms, uncontrolled", "10ms, cubic"]);
}

#[test]
fn errors_are_those_of_the_means_over_seeds() {
    let mut runs = made_up::runs(&[1, 2, 3], 0);
    let goodput = |run: &mut Run, value| run.flows[0].goodput_mbps = value;
    let cubic = |run: &&mut Run| {
        run.parameters["flow.tcp.congestion"] == "cubic" && run.parameters["path.eno2.delay"] == "10ms"
    };
    runs.iter_mut().filter(cubic).zip([170.0, 173.0, 176.0]).for_each(|(run, value)| goodput(run, value));
    let text = terminal(&made_up::study(&runs), 80, false);
    let cubic: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("cubic")).take(4).collect();
    let first = |line: &str, skip: usize| line.split_whitespace().nth(skip).map(str::to_owned);
    assert_eq!(first(cubic[0], 1).as_deref(), Some("173"));
    // 4.30265 * 3 / sqrt(3)
    assert_eq!(first(cubic[1], 3).as_deref(), Some("7.5"));
    assert_eq!(first(cubic[2], 1).as_deref(), Some("174"));
    // 173 / 174 - 1
    assert_eq!(first(cubic[3], 1).as_deref(), Some("-0.6%"));
}

#[test]
fn what_was_published_but_not_run_is_shown_as_such() {
    let mut runs = made_up::runs(&[1], 0);
    runs.retain(|run| run.parameters["flow.tcp.congestion"] != "bbr");
    let text = terminal(&made_up::study(&runs), 80, false);
    for name in ["bbr", "westwood"] {
        let index = text.lines().position(|line| line.starts_with(name)).unwrap();
        let rows: Vec<Vec<&str>> =
            text.lines().skip(index).take(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], [name, "not", "run"]);
        assert_eq!(rows[1].len(), 7, "its published values: {rows:?}");
    }
}

#[test]
fn claims_wrap_beside_their_numbers_and_below_each_other_where_it_is_narrow() {
    let runs = made_up::runs(&[1], 0);
    let mut study = made_up::study(&runs);
    study.layout.claims =
        vec![made_up::claim("Vegas, of all that were tried, is the slowest", Test::Lowest(vec!["vegas".to_owned()]))];
    let claims = |study: &Study<'_>, width| {
        let text = terminal(study, width, false);
        let lines: Vec<String> =
            text.lines().skip_while(|line| !line.starts_with("Claims")).map(str::to_owned).collect();
        lines.split(String::is_empty).next().unwrap().to_vec()
    };
    let wide = claims(&study, 160);
    assert_eq!((wide[0].as_str(), wide.len()), ("Claims: 1 holds (1 run per cell)", 5), "{wide:?}");
    assert_eq!(wide[1], "1 of 1 claims hold in the published table.");
    assert!(
        wide[3].starts_with("Vegas, of all that were tried, is the slowest (Section 5)  ")
            && wide[3].ends_with("  holds (1 run)")
    );
    assert!(
        wide[3].contains("vegas 2.") && wide[3].contains(", next bbr ") && wide[3].contains(" Mbit/s "),
        "{}",
        wide[3]
    );
    assert!(wide[4].contains("in the published table: vegas 2.38, next bbr 17.0 Mbit/s "), "{}", wide[4]);
    let narrow = claims(&study, 40);
    assert_eq!(narrow[3], "Vegas, of all that were tried, is the");
    assert!(narrow[5].starts_with("  holds (1 run): vegas 2."), "{narrow:?}");
    study.layout.claims[0].each = Some("path.eno2.delay".to_owned());
    assert_eq!(claims(&study, 160).iter().filter(|line| line.contains("ms: vegas ")).count(), 6, "a verdict a delay");
}

#[test]
fn a_name_without_a_value_in_one_cell_cannot_be_compared() {
    let mut runs = made_up::runs(&[1], 0);
    let lost = runs.iter_mut().find(|run| run.parameters["flow.tcp.congestion"] == "vegas").unwrap();
    lost.flows[0].goodput_mbps = f64::NAN;
    let mut study = made_up::study(&runs);
    let [vegas, cubic] = ["vegas", "cubic"].map(|name| vec![name.to_owned()]);
    study.layout.claims = vec![made_up::claim("One", Test::Lowest(vegas)), made_up::claim("Two", Test::Highest(cubic))];
    let text = terminal(&study, 160, false);
    assert!(text.contains("no value of vegas") && text.contains("1 not run"), "{text}");
}

#[test]
fn a_table_without_references_is_compared_with_the_baseline() {
    let runs = made_up::runs(&[1], 0);
    let mut baseline_runs = runs.clone();
    baseline_runs.iter_mut().for_each(|run| run.flows[0].goodput_mbps /= 1.12);
    baseline_runs.retain(|run| run.parameters["flow.tcp.congestion"] != "reno");
    let mut study = made_up::study(&runs);
    study.layout.tables[0].references.clear();
    study.baseline = Some(Baseline { name: "kernel-6.1", runs: &baseline_runs });
    let text = terminal(&study, 120, false);
    assert!(text.contains("of 42 values, 0 within 5 %, 0 within 10 %, 42 within 15 %, 42 within 25 %;"), "{text}");
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = text.lines().map(words).collect();
    let line_of = |name: &str| lines.iter().position(|line| line.first().is_some_and(|first| first == name)).unwrap();
    assert_eq!(lines[line_of("vegas") + 1][0], "kernel-6.1");
    assert_eq!(lines[line_of("vegas") + 2], ["error", "+12%", "+12%", "+12%", "+12%", "+12%", "+12%"]);
    assert_eq!(lines[line_of("reno") + 1][0], "vegas", "what the baseline has not run stands alone");
}

#[test]
fn the_course_of_windows_is_compared_with_the_baseline() {
    let runs = made_up::runs(&[1], 300);
    let mut baseline_runs = runs.clone();
    for series in baseline_runs.iter_mut().map(|run| &mut run.series[0]) {
        series.values[1].iter_mut().for_each(|window| *window /= 1.2);
    }
    let mut study = made_up::study(&runs);
    study.baseline = Some(Baseline { name: "kernel-6.1", runs: &baseline_runs });
    let table = &mut study.layout.tables[0];
    (table.columns, table.references) = (None, Vec::new());
    table.values = ["mean_cwnd_error_percent", "cwnd_quantile_error_percent"].map(made_up::column).to_vec();
    table.scope.only = [("path.eno2.delay".to_owned(), vec!["10ms".to_owned()])].into();
    let text = terminal(&study, 120, false);
    let cubic: Vec<&str> = text.lines().find(|line| line.starts_with("cubic")).unwrap().split_whitespace().collect();
    // The mean of the percentiles is near the mean, and both are a fifth too great.
    assert!(cubic[1] == "20.0" && cubic[2].starts_with("20."), "{text}");
    assert!(text.contains("kernel-6.1: median |mean cwnd error| 20.0 %; 0 of 8 cells under 10 %"), "{text}");
    assert!(!text.contains("not run") && !text.contains("baseline)"), "{text}");
    study.layout.tables[0].values = vec![made_up::column("cwnd_trajectory_error_percent")];
    study.baseline = Some(Baseline { name: "kernel-6.1", runs: &runs });
    let text = terminal(&study, 120, false);
    assert!(text.contains("median |cwnd trajectory error| 0.0 %; 8 of 8 cells under 10 %"), "{text}");
}

#[test]
fn what_has_another_unit_is_not_compared() {
    let runs = made_up::runs(&[1], 0);
    let mut study = made_up::study(&runs);
    study.layout.tables[0].values = vec![made_up::column("rtt_ms.p95")];
    let text = terminal(&study, 80, false);
    assert!(text.contains("RTT p95, ms") && !text.contains("published") && !text.contains("westwood"), "{text}");
}

#[test]
fn colour_changes_nothing_but_colour() {
    let runs = made_up::runs(&[1], 0);
    let study = made_up::study(&runs);
    let plain =
        ["\x1b[0m", "\x1b[1m", "\x1b[2m"].iter().fold(terminal(&study, 80, true), |text, code| text.replace(code, ""));
    assert_eq!(plain, terminal(&study, 80, false));
}

#[test]
fn a_comparison_shows_both_values_the_change_and_what_only_one_has() {
    let first = made_up::runs(&[1], 0);
    let mut second = first.clone();
    second.iter_mut().for_each(|run| run.flows[0].goodput_mbps *= 2.0);
    second.pop();
    let text = beside(&made_up::study(&first), &made_up::study(&second), 80);
    let rows: Vec<Vec<&str>> =
        text.lines().filter(|line| line.contains("0ms  ")).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), first.len());
    assert!(rows[..47].iter().all(|row| row.last() == Some(&"+100%")), "{text}");
    assert_eq!(rows[47][3..], ["–", "–"]);
    assert!(text.contains("Only in a: bbr, 100ms.") && text.contains("47 values in 47 common cells"), "{text}");
    let plain = |runs| Study { layout: Layout::default(), ..made_up::study(runs) };
    let text = beside(&plain(&first), &plain(&[]), 80);
    assert!(text.contains("No cell of one") && text.contains("RTT mean, ms"), "{text}");
}

#[test]
fn a_disturbed_run_is_marked_and_left_out_where_there_are_others() {
    let mut runs = made_up::runs(&[1, 2], 0);
    runs.iter_mut().for_each(|run| run.flows[0].goodput_mbps = if run.seed == 1 { 10.0 } else { 30.0 });
    // Of the first cell the second seed, of the second cell both.
    for (index, steal_s) in [(0, 0.6), (1, 0.61), (2, 60.0), (3, 60.0)] {
        runs[index].steal_s = Some(steal_s);
    }
    let study = made_up::study(&runs);
    for text in [terminal(&study, 120, false), beside(&study, &study, 120)] {
        assert!(text.contains("† 3 of 96 runs lacked the CPU for more than 1 % of their time"), "{text}");
    }
    let text = terminal(&study, 120, false);
    let row = text.lines().find(|line| line.starts_with("uncontrolled")).unwrap();
    assert_eq!(row.split_whitespace().skip(1).collect::<Vec<_>>(), ["10†", "20†", "20", "20", "20", "20"]);
    let baseline = Study { baseline: Some(Baseline { name: "kernel", runs: &runs }), ..made_up::study(&runs[4..]) };
    assert!(terminal(&baseline, 120, false).contains("† 3 of 96 runs of kernel lacked the CPU"));
}

/// A study of the made-up MPTCP runs that shows this.
fn multipath(runs: &[Run], layout: Layout) -> Study<'_> {
    Study { layout, ..made_up::study(runs) }
}

fn flows(names: &[&str]) -> Scope {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Scope { only: [(BY_FLOW.to_owned(), names)].into(), ..Scope::default() }
}

fn by(key: &str) -> String {
    key.to_owned()
}

#[test]
fn a_table_goes_by_flow_and_subflow() {
    let runs = made_up_multipath::runs();
    let table = Table {
        rows: vec![by("flow.both.congestion")],
        columns: Some(by(BY_FLOW)),
        values: vec![made_up::column("throughput_mbps")],
        scope: flows(&["both", "both/b", "rival"]),
        ..Table::default()
    };
    let all_flows = Table { scope: Scope::default(), ..table.clone() };
    let text = terminal(&multipath(&runs, Layout { tables: vec![table, all_flows], ..Layout::default() }), 80, false);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.contains(&vec!["congestion", "\\", "flow", "both", "both/b", "rival"]), "{text}");
    assert!(rows.contains(&vec!["lia", "8", "5", "6"]) && rows.contains(&vec!["olia", "10", "7", "6"]), "{text}");
    assert!(rows.contains(&vec!["lia", "8", "6"]), "without names: the flows\n{text}");
}

#[test]
fn a_column_may_be_of_a_subflow_and_has_its_label_and_its_rank() {
    let run = |(index, name): (u32, &str)| {
        let mut run = made_up_multipath::runs().remove(0);
        run.parameters.insert(by("flow.both.congestion"), name.to_owned());
        run.subflows[0].srtt_ms.mean = f64::from(40 + index);
        run
    };
    let runs: Vec<Run> = (0..).zip(["lia", "olia", "balia"]).map(run).collect();
    let column = |label: &str, value: &str, flow: &str| Column {
        label: label.to_owned(),
        value: value.to_owned(),
        flow: Some(flow.to_owned()),
    };
    let reference = Reference {
        name: "paper".to_owned(),
        source: "Table 1".to_owned(),
        unit: String::new(),
        columns: vec!["SRTT a".to_owned(), "SRTT b".to_owned()],
        rows: [("lia", 3.0), ("olia", 1.0), ("balia", 2.0)]
            .map(|(name, value)| (by(name), vec![Some(value), Some(value)]))
            .to_vec(),
        note: String::new(),
    };
    let table = Table {
        rows: vec![by("flow.both.congestion")],
        values: vec![column("SRTT a", "srtt_ms.mean", "both/a"), column("SRTT b", "srtt_ms.mean", "both/b")],
        references: vec![reference],
        ..Table::default()
    };
    let text = terminal(&multipath(&runs, Layout { tables: vec![table], ..Layout::default() }), 80, false);
    // 40, 41, 42 against 3, 1, 2: one pair of three in order. The other column ties all.
    assert!(text.contains("SRTT a") && text.contains("tau-b, paper  -0.333       –"), "{text}");
}

#[test]
fn flows_of_one_cell_are_compared_and_what_was_published_stands_beside() {
    let runs = made_up_multipath::runs();
    let test = Test::Ratio { of: [by("both/b"), by("rival")], min: 1.0, max: None, or_max: None };
    let claim = Claim {
        of: by(BY_FLOW),
        each: Some(by("flow.both.congestion")),
        value: by("throughput_mbps"),
        published: "about the same".to_owned(),
        note: "The paths differ.".to_owned(),
        scope: flows(&["both", "rival", "both/b"]),
        ..made_up::claim("over b it is no worse than its rival", test)
    };
    let varies = Claim {
        value: "variation_percent".to_owned(),
        scope: flows(&["both", "both/b"]),
        ..made_up::claim("the whole varies more", Test::Order(vec![by("both"), by("both/b")]))
    };
    let claims = vec![claim, Claim { of: by(BY_FLOW), ..varies }];
    let text = terminal(&multipath(&runs, Layout { claims, ..Layout::default() }), 240, false);
    for words in [
        "published: about the same",
        "congestion lia: both/b 5 over rival 6 Mbit/s: ratio 0.833, claimed at least 1",
        "congestion olia: both/b 7 over rival 6 Mbit/s: ratio 1.17, claimed at least 1",
        "note: The paths differ.",
        "both 25 ≥ both/b 20 %", // 6 and 10 about 8; 4 and 6 about 5
    ] {
        assert!(text.contains(words), "{words:?} is not in:\n{text}");
    }
}

#[test]
fn an_outlier_is_marked_named_and_stays_in_the_mean() {
    let mut runs = made_up::runs(&[1, 2, 3, 4, 5], 0);
    let cubic = |run: &&mut Run| {
        run.parameters["flow.tcp.congestion"] == "cubic" && run.parameters["path.eno2.delay"] == "10ms"
    };
    for (run, goodput) in runs.iter_mut().filter(cubic).zip([180.0, 181.0, 10.0, 182.0, 180.0]) {
        run.flows[0].goodput_mbps = goodput;
    }
    let text = terminal(&made_up::study(&runs), 400, false);
    let row = text.lines().find(|line| line.starts_with("cubic")).expect("it has a line");
    assert_eq!(row.split_whitespace().nth(1), Some("147‡"), "(180 + 181 + 10 + 182 + 180) / 5 is 146.6: {row}");
    assert!(text.contains("cubic, 10ms: 10 with seed 3") && text.contains("Tukey's rule"), "{text}");
    let page = html(&made_up::study(&runs));
    assert_eq!(page.matches("class=\"out\"").count(), text.matches("with seed").count(), "each is a point");
    assert!(page.contains("147‡") && page.contains("cubic, 10ms: 10 with seed 3"));
}
