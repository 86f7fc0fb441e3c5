//! Two studies side by side: the errors are those that were put in, the worst stand first, and nothing is dropped.

use record::{Flow, Run, Series};
use ropewalk_report::{Comparison, Study, compare_html, compare_terminal};
use std::slice::from_ref;

/// Twenty-one cells that differ in the delay, with so many samples of a window that grows.
fn cells(samples: u32) -> Vec<Run> {
    let series = Series {
        subject: "flow tcp".to_owned(),
        columns: ["goodput_mbps", "cwnd_packets"].map(str::to_owned).to_vec(),
        time_s: (1..=samples).map(f64::from).collect(),
        values: vec![vec![100.0; samples as usize], (1..=samples).map(f64::from).collect()],
    };
    let flow =
        Flow { name: "tcp".to_owned(), congestion_control: "cubic".to_owned(), goodput_mbps: 100.0, ..Flow::default() };
    let run = |index| Run {
        parameters: [("delay".to_owned(), format!("{index}ms"))].into(),
        duration_s: 20.0,
        flows: vec![flow.clone()],
        series: vec![series.clone(); usize::from(samples > 0)],
        ..Run::default()
    };
    (0..21).map(run).collect()
}

/// The cells with errors of 1 to 21 %, alternately negative and positive, in no order of size.
fn with_errors(mut runs: Vec<Run>) -> Vec<Run> {
    for (index, run) in runs.iter_mut().enumerate() {
        let percent = (index * 8 % 21 + 1) as f64;
        run.flows[0].goodput_mbps = if index % 2 == 0 { 100.0 + percent } else { 100.0 - percent };
    }
    runs
}

fn study(runs: &[Run]) -> Study<'_> {
    Study { title: "Made up", scenario: "made-up", driver: "simulator", runs, ..Study::default() }
}

/// Simulated runs measured by a kernel's.
fn measured<'a>(simulated: &'a [Run], kernel: &'a [Run]) -> Comparison<'a> {
    Comparison::new([("sim", study(simulated)), ("kernel", study(kernel))], 1)
}

/// The content of a section of the page.
fn section<'p>(page: &'p str, id: &str) -> &'p str {
    let (_, content) = page.split_once(&format!("<section id=\"{id}\">")).expect("there is such a section");
    content.split_once("</section>").expect("it ends").0
}

#[test]
fn the_distribution_of_errors_is_the_one_that_was_put_in() {
    let kernel = cells(0);
    let simulated = with_errors(cells(0));
    // Interpolated linearly between the order statistics 1, 2 ... 21.
    let sentence = "Goodput of sim against kernel: 21 values in 21 common cells, median |error| 11.0 %, 90th percentile \
                19.0 %, 95th 20.0 %, worst 21.0 %.";
    let comparison = measured(&simulated, &kernel);
    assert!(
        compare_terminal(from_ref(&comparison), 400, false).contains(sentence),
        "{}",
        compare_terminal(from_ref(&comparison), 400, false)
    );
    let page = compare_html(from_ref(&comparison));
    let numbers = ["21", "11.0", "19.0", "20.0", "21.0"].map(|number| format!("<td>{number}</td>")).concat();
    let agreement = section(&page, "agreement");
    assert!(agreement.contains(&sentence.replace(" %", "&nbsp;%")) && agreement.contains(&numbers));
}

#[test]
fn the_baseline_is_the_study_that_is_named() {
    let kernel = cells(0);
    let simulated = with_errors(cells(0));
    let swapped = Comparison::new([("sim", study(&simulated)), ("kernel", study(&kernel))], 0);
    let text = compare_terminal(from_ref(&swapped), 400, false);
    // 79 is the minimum of the simulated: the kernel's 100 are 26.6 % more.
    assert!(text.contains("Goodput of kernel against sim") && text.contains("worst 26.6 %"), "{text}");
}

#[test]
fn the_worst_cell_stands_first_and_leads_to_its_plot() {
    let kernel = cells(20);
    let simulated = with_errors(cells(20));
    let page = compare_html(&[measured(&simulated, &kernel)]);
    let rows = section(&page, "cells").split("<tr><th scope=\"row\">").skip(1);
    let size = |row: &str| {
        let (_, error) = row.split_once("<br>").expect("a value has an error");
        error.split('%').next().unwrap().parse::<f64>().expect("a number").abs()
    };
    let sizes: Vec<f64> = rows.clone().map(size).collect();
    assert_eq!(sizes, (1..=21).rev().map(f64::from).collect::<Vec<_>>());
    let first = rows.clone().next().unwrap();
    assert!(first.starts_with("<a href=\"#cell-0\">") && first.contains("<small>100</small>"), "{first}");
    let series = section(&page, "series");
    assert_eq!(series.matches("flow tcp cwnd, kernel").count(), 21, "both in one plot");
    assert_eq!(series.matches("flow tcp goodput, kernel").count(), 21);
    // The same windows: no distance.
    assert_eq!(section(&page, "cells").matches("<td>0</td></tr>").count(), 21);
}

#[test]
fn cells_of_one_alone_are_listed() {
    let (kernel, simulated) = (cells(0), with_errors(cells(0)));
    let comparison = measured(&simulated[..20], &kernel[2..]);
    let text = compare_terminal(from_ref(&comparison), 400, false);
    assert!(text.contains("Only in a: 0ms; 1ms.") && text.contains("Only in b: 20ms."), "{text}");
    assert!(text.contains("18 values in 18 common cells"), "{text}");
    let page = compare_html(from_ref(&comparison));
    let alone = section(&page, "alone");
    assert!(alone.contains("2 cells only in sim") && alone.contains("<li>0ms</li><li>1ms</li>"), "{alone}");
    assert!(alone.contains("1 cell only in kernel") && alone.contains("<li>20ms</li>"), "{alone}");
    let nothing = compare_html(&[measured(&simulated[..2], &kernel[2..])]);
    assert!(section(&nothing, "agreement").contains("No cell of one has the parameters"));
}

#[test]
fn several_comparisons_have_one_distribution_and_a_section_each() {
    // Errors of 0.5 to 20.5 %, and 20 times none.
    let (kernel, mut simulated) = (cells(20), with_errors(cells(20)));
    for run in &mut simulated {
        let goodput = &mut run.flows[0].goodput_mbps;
        *goodput += 0.5 * (100.0 - *goodput).signum();
    }
    let other_study = |runs| Study { scenario: "other", ..study(runs) };
    let exact = Comparison::new([("sim", other_study(&kernel[..20])), ("kernel", other_study(&kernel[..20]))], 1);
    let comparisons = [measured(&simulated, &kernel), exact];
    let sentence = "Goodput in 2 comparisons: 41 values in 41 common cells, median |error| 0.5 %, 90th percentile 16.5 %, 95th \
                18.5 %, worst 20.5 %; 25 within 5 %, 30 within 10 %, 40 within 20 %.";
    let text = compare_terminal(&comparisons, 400, false);
    assert!(text.contains(sentence), "{text}");
    let row = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).expect("it has a line");
        line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("made-up"), ["21", "21", "10.5", "18.5", "19.5", "20.5", "5", "10", "20"]);
    assert_eq!(row("other"), ["20", "20", "0.0", "0.0", "0.0", "0.0", "20", "20", "20"]);
    assert_eq!(row("all"), ["41", "41", "0.5", "16.5", "18.5", "20.5", "25", "30", "40"]);
    let narrow = compare_terminal(&comparisons, 50, false);
    assert!(narrow.lines().all(|line| line.chars().count() <= 50), "{narrow}");
    let page = compare_html(&comparisons);
    let agreement = section(&page, "agreement");
    assert!(agreement.contains("<a href=\"#pair-1\">other</a>"));
    let place = |text: &str| agreement.find(text).expect(text);
    assert!(place(">cells<") < place(">compared<"), "heads stand over their columns");
    assert!(place("<td>21</td>") < place(">sim against kernel<"), "heads stand over their columns");
    let ids: Vec<&str> = page.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    for id in ["pair-0", "pair-1", "agreement-1", "series-0", "drawn-1", "cell-0", "cell-40"] {
        assert_eq!(ids.iter().filter(|known| **known == id).count(), 1, "{id}");
    }
    // The worst of the first pair, and the first of the second, lead to their own plots.
    assert!(section(&page, "cells-0").contains("#cell-0\"") && section(&page, "cells-1").contains("#cell-21\""));
}

/// Comparisons of one scenario are told apart by a folder, or by both if folders are called alike.
#[test]
fn comparisons_of_one_scenario_are_named_by_their_folders() {
    let runs = cells(20);
    let label = |folders: [&str; 2]| {
        let comparisons = folders.map(|folder| Comparison::new([(folder, study(&runs)), ("kernel", study(&runs))], 1));
        let text = compare_terminal(&comparisons, 400, false);
        let named =
            text.lines().filter(|line| line.starts_with("made-up, ")).map(|line| line.split("  ").next().unwrap());
        named.take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(label(["out/loss", "out/rival/"]), ["made-up, loss", "made-up, rival"]);
    assert_eq!(label(["a/loss", "b/loss"]), ["made-up, a/loss against kernel", "made-up, b/loss against kernel"]);
}

#[test]
fn the_page_loads_nothing_and_hostile_names_stay_text() {
    const EVIL: &str = "</script><script>alert(1)</script><img onerror='x' \"&";
    let mut runs = cells(20);
    for run in &mut runs {
        run.parameters.insert(EVIL.to_owned(), run.parameters["delay"].clone() + EVIL);
        run.flows[0].name = EVIL.to_owned();
        run.series[0].subject = format!("flow {EVIL}");
    }
    let evil = || Study { title: EVIL, driver: EVIL, scenario: EVIL, ..study(&runs) };
    let page = compare_html(&[Comparison::new([(EVIL, evil()), (EVIL, evil())], 0)]);
    assert!(!page.contains("<script>alert") && !page.contains("<img"));
    for loader in [" src=", "<link", "@import", "url(", "import(", "fetch(", "XMLHttpRequest"] {
        assert!(!page.contains(loader), "{loader}");
    }
}
