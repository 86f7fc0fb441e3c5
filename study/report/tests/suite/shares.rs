//! Shares of what is attainable: heat maps and distributions.

use crate::made_up;
use record::{Flow, Run};
use ropewalk_report::{Figure, HeatMap, Layout, Scope, Study, Table, html, terminal};

/// Two modes, two delays, two losses and two algorithms over paths that carry 200 Mbit/s: goodputs 10, 20, ... 160
/// Mbit/s.
fn runs() -> Vec<Run> {
    let cell = |index: u32| {
        let pick = |bit: u32, values: [&str; 2]| values[(index >> bit) as usize % 2].to_owned();
        let parameters = [
            ("case", pick(3, ["tunnel", "alone"])),
            ("flow.tcp.congestion", pick(0, ["cubic", "bbr"])),
            ("link.wan.delay", pick(2, ["0ms", "50ms"])),
            ("link.wan.loss", pick(1, ["0%", "5%"])),
        ];
        let flow = Flow { name: "tcp".to_owned(), goodput_mbps: 10.0 * f64::from(index + 1), ..Flow::default() };
        Run {
            parameters: parameters.map(|(key, value)| (key.to_owned(), value)).into(),
            capacity_mbps: Some(200.0),
            flows: vec![flow],
            duration_s: 60.0,
            ..Run::default()
        }
    };
    (0..16).map(cell).collect()
}

fn layout() -> Layout {
    let scope = Scope { attainable: Some(0.8), ..Scope::default() };
    let table = Table {
        rows: vec!["link.wan.delay".to_owned(), "link.wan.loss".to_owned()],
        columns: Some("flow.tcp.congestion".to_owned()),
        values: vec![made_up::column("goodput_mbps")],
        scope: scope.clone(),
        heat_map: Some(HeatMap { min: 0.0, max: 1.0, threshold: Some(0.5), even: None }),
        ..Table::default()
    };
    let figure = Figure {
        title: "Sorted".to_owned(),
        lines: "case".to_owned(),
        distribution: true,
        threshold: Some(0.5),
        value: "goodput_mbps".to_owned(),
        scope,
        ..Figure::default()
    };
    Layout { tables: vec![table], figures: vec![figure], ..Layout::default() }
}

fn study(runs: &[Run]) -> Study<'_> {
    Study { layout: layout(), ..made_up::study(runs) }
}

#[test]
fn the_terminal_shows_shares_by_combinations_of_keys_and_marks_those_below_the_threshold() {
    let runs = runs();
    let text = terminal(&study(&runs), 100, false);
    assert!(text.contains("Goodput, share of attainable; case tunnel"), "{text}");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.contains(&vec!["delay,", "loss", "\\", "congestion", "cubic", "bbr"]), "{text}");
    // 10 and 20 of 0.8 x 200 Mbit/s are 0.0625 and 0.125.
    assert!(rows.contains(&vec!["0ms,", "0%", "0.06▾", "0.12▾"]), "{text}");
    assert!(rows.contains(&vec!["50ms,", "5%", "0.44▾", "0.50"]), "{text}");
    assert!(rows.contains(&vec!["50ms,", "5%", "0.94", "1.00"]), "{text}");
    let note = "1 of 8 values are 0.50 or more; median 0.28, minimum 0.06 (0ms, 0%, cubic). ▾ is less than 0.50.";
    assert!(text.contains(note), "{text}");
    let narrow = terminal(&study(&runs), 24, false);
    assert!(narrow.lines().all(|line| line.chars().count() <= 24), "{narrow}");
    assert_eq!(narrow.matches("0.44▾").count(), 1);
}

#[test]
fn the_page_colours_either_side_of_the_threshold() {
    let page = html(&study(&runs()));
    assert_eq!(["\"less\"", "\"more\""].map(|class| page.matches(&format!("<td class={class}")).count()), [7, 9]);
    assert!(page.contains("<td class=\"less\" style=\"--h:0.91\">0.06</td>"), "0.25 + 0.75 x (0.5 - 0.0625) / 0.5");
    assert!(page.contains("<td class=\"more\" style=\"--h:0.25\">0.50</td>"), "80 of 160 Mbit/s");
    assert!(page.contains("<td class=\"more\" style=\"--h:1.00\">1.00</td>"));
}

#[test]
fn a_distribution_has_a_step_for_each_cell_and_counts_those_at_the_threshold() {
    let page = html(&study(&runs()));
    let figures = page.split_once("id=\"figures\"").unwrap().1.split("</section>").next().unwrap();
    let note = "Dashed: 0.5. Cells that reach it: tunnel 1 of 8, alone 8 of 8.";
    assert!(figures.contains("Sorted") && figures.contains(note), "{figures}");
    let (picture, curves) = figures.split_once("<figure>").unwrap().1.split_once("class=\"l\"").unwrap();
    // The dashed line is in the middle of the axis, which ends at 1: 31.6 + 0.5 x (244 - 31.6).
    assert!(picture.contains("d=\"M137.8 132.0V6.0\""), "{picture}");
    let curves: Vec<&str> =
        curves.split("class=\"l\"").map(|curve| curve.split("class=\"t\"").next().unwrap()).collect();
    let steps: Vec<usize> = curves.iter().map(|curve| curve.matches('V').count()).collect();
    assert_eq!(steps, [8, 8]);
    // The last step of the tunnel's curve is at 0.5, where all of its cells are.
    assert!(curves[0].contains("H137.8V6.0"), "{curves:?}");
}

#[test]
fn without_a_capacity_there_is_no_share() {
    let mut runs = runs();
    runs.iter_mut().for_each(|run| run.capacity_mbps = None);
    let text = terminal(&study(&runs), 80, false);
    assert!(text.contains("0ms, 0%") && !text.contains("0.06"), "{text}");
    assert!(text.contains("Sorted (without values here)"), "{text}");
    assert!(html(&study(&runs)).contains("No run here has a value for this figure."));
}
