//! The kinds of figures: distributions of samples, scatter plots, lines across a number, shares over time.

use crate::{made_up, made_up_multipath};
use record::{Distribution, Flow, Run, Series, Summary};
use ropewalk_report::{Figure, FigureFile, Form, Layout, Scale, Scope, Study, figure_files, html, terminal};
use units::Span;

/// CUBIC and BBR at three losses, two seeds each: with seed 1, CUBIC's RTTs are 1 to 100 ms and BBR's are a tenth of
/// that; with seed 2, all are 20 ms. Goodput is 10 and 30 Mbit/s with CUBIC, 20 with BBR, and falls with the loss.
fn runs() -> Vec<Run> {
    let run = |congestion: &str, (index, loss): (usize, &str), seed: u64| {
        let mut rtt = Distribution::default();
        let tenths = if congestion == "cubic" { 10 } else { 1 };
        for tenth in 1..=100 {
            rtt.add(if seed == 1 { Span::from_micros(100 * tenth * tenths) } else { Span::from_millis(20) });
        }
        let goodput = if congestion == "cubic" { [10.0, 30.0][seed as usize - 1] } else { 20.0 } / (1 + index) as f64;
        let flow = Flow {
            name: "tcp".to_owned(),
            congestion_control: congestion.to_owned(),
            goodput_mbps: goodput,
            rtt_ms: Summary { p50: goodput + 5.0 * tenths as f64, ..rtt.summary() },
            ..Flow::default()
        };
        Run {
            parameters: [("flow.tcp.congestion", congestion), ("path.wire.loss", loss)]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            seed,
            digest: format!("{congestion}{loss}{seed}"),
            duration_s: 10.0,
            histograms: rtt.histogram("flow tcp", "rtt_ms").into_iter().collect(),
            flows: vec![flow],
            ..Run::default()
        }
    };
    let losses = ["0%", "1%", "0.1%"].into_iter().enumerate();
    let cells = losses.flat_map(|loss| ["cubic", "bbr"].map(|congestion| (congestion, loss)));
    cells.flat_map(|(congestion, loss)| [1, 2].map(|seed| run(congestion, loss, seed))).collect()
}

fn figure(value: &str) -> Figure {
    Figure { lines: "flow.tcp.congestion".to_owned(), value: value.to_owned(), ..Figure::default() }
}

fn without_loss() -> Scope {
    Scope { only: [("path.wire.loss".to_owned(), vec!["0%".to_owned()])].into(), ..Scope::default() }
}

/// The figure on the page, and its file.
fn drawn(runs: &[Run], figure: Figure) -> (String, FigureFile) {
    let layout = Layout { figures: vec![figure], ..Layout::default() };
    let study = Study { layout, ..made_up::study(runs) };
    let page = html(&study);
    let section = page.split_once("id=\"figures\"").unwrap().1.split("</section>").next().unwrap().to_owned();
    (section, figure_files(&study).remove(0))
}

/// The numbers in a piece of a path.
fn numbers(path: &str) -> Vec<f64> {
    path.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn a_delay_has_the_distribution_of_the_samples_of_all_seeds() {
    let figure = Figure { distribution: true, scope: without_loss(), threshold: Some(50.0), ..figure("rtt_ms") };
    let (section, file) = drawn(&runs(), figure);
    assert!(section.contains("share of the samples, %") && !section.contains("share of the cells"), "{section}");
    // Half of all are 20 ms. Of CUBIC's other 100, 19 are less, and the median is the 100th of 200.
    assert!(section.contains("cubic: median 20.1, p95 89.6, p99 97.8 ms; 200 samples"), "{section}");
    assert!(section.contains("bbr: median 10.0, p95 20.1, p99 20.1 ms; 200 samples"), "{section}");
    assert!(section.contains("Samples above it: cubic 25.5 %, bbr 0 %."), "51 of 200 lie in buckets above 50 ms");
    assert!(section.contains("All samples of 2 runs per line, merged."), "{section}");
    assert_eq!(section.matches("class=\"band\"").count(), 2);
    let rows: Vec<&str> = file.csv.lines().collect();
    assert_eq!(rows[0], "panel,line,rtt_ms,samples,share");
    assert!(rows.contains(&",bbr,20.223,200,1"), "{rows:?}");
    assert!(rows[1].starts_with(",cubic,1.007,1,0.005"), "{rows:?}");
}

#[test]
fn the_complementary_distribution_goes_down_to_one_of_all_samples() {
    let figure = Figure { distribution: true, scale: Scale::Ccdf, scope: without_loss(), ..figure("rtt_ms") };
    let (section, _) = drawn(&runs(), figure);
    assert!(section.contains("share of the samples above, %") && !section.contains("right edge"), "{section}");
    let ticks = ["1", "10", "100"].map(|tick| section.contains(&format!("\">{tick}</text>")));
    assert_eq!(ticks, [true; 3], "from 0.5 % to 100 %: {section}");
    // CUBIC's curve begins at the top and ends at the bottom of the axis, which is at 132.
    let curve = section.split("class=\"l\"").nth(3).unwrap().split(" d=\"").nth(1).unwrap().split('"').next().unwrap();
    let (first, last) = (numbers(curve)[1], *numbers(curve).last().unwrap());
    assert_eq!((first, last), (6.0, 132.0), "{curve}");
}

#[test]
fn without_samples_a_figure_says_so_and_a_quantile_has_the_distribution_over_cells() {
    let mut without = runs();
    without.iter_mut().for_each(|run| run.histograms.clear());
    let samples = Figure { distribution: true, ..figure("rtt_ms") };
    let (section, _) = {
        let layout = Layout { figures: vec![samples.clone()], ..Layout::default() };
        let study = Study { layout, ..made_up::study(&without) };
        assert!(terminal(&study, 80, false).contains("RTT (without values here)"));
        (html(&study), ())
    };
    assert!(section.contains("have no samples of a delay, only values such as rtt_ms.p95"), "{section}");
    let (section, _) = drawn(&runs(), Figure { value: "rtt_ms.p95".to_owned(), ..samples.clone() });
    assert!(section.contains("share of the cells, %") && !section.contains("samples"), "{section}");
    // A setting of another key has a separate chart.
    assert_eq!(drawn(&runs(), samples).0.matches("<figure>").count(), 3);
}

#[test]
fn a_scatter_plot_has_less_delay_further_right_and_an_ellipse_of_the_runs() {
    let figure = Figure {
        form: Form::Scatter,
        against: Some("rtt_ms.p50".to_owned()),
        scope: without_loss(),
        ..figure("goodput_mbps")
    };
    let (section, file) = drawn(&runs(), figure);
    let mean = |name: &str| {
        let cloud = section.split("<g><title>").find(|cloud| cloud.starts_with(name)).unwrap();
        let marker = numbers(cloud.split("class=\"m\"").nth(1).unwrap().split(" d=\"").nth(1).unwrap());
        (marker[0], marker[1])
    };
    // BBR: 25 ms and 20 Mbit/s. CUBIC: 60 and 80 ms, 10 and 30 Mbit/s, on a line.
    let [cubic, bbr] =
        ["cubic: goodput, Mbit/s 20, RTT p50, ms 70", "bbr: goodput, Mbit/s 20, RTT p50, ms 25"].map(mean);
    assert!(bbr.0 > cubic.0 + 50.0 && (bbr.1 - cubic.1).abs() < 3.0, "{bbr:?} {cubic:?}");
    assert!(section.contains("The axis of RTT p50 is reversed"), "{section}");
    assert_eq!(["class=\"e\"", "<circle"].map(|part| section.matches(part).count()), [2, 4]);
    assert_eq!(
        file.csv,
        "panel,flow.tcp.congestion,rtt_ms.p50,goodput_mbps\n,cubic,60,10\n,cubic,80,30\n,bbr,25,20\n,bbr,25,20\n"
    );
    let svg = file.svg.unwrap();
    assert!(!svg.contains("var(--") && svg.contains(">bbr</text>"), "colours and legend are in the file");
}

#[test]
fn a_page_that_nothing_is_asked_of_has_the_distribution_of_the_delay_and_goodput_against_it() {
    let runs = runs();
    let figures = |layout: Layout| -> Vec<String> {
        let files = figure_files(&Study { layout, ..made_up::study(&runs) });
        files.into_iter().map(|file| file.name).filter(|name| name.starts_with("figure")).collect()
    };
    assert_eq!(figures(Layout::default()), ["figure-1-rtt", "figure-2-goodput"]);
    let page = html(&Study { layout: Layout::default(), ..made_up::study(&runs) });
    assert!(page.contains("share of the samples, %") && page.contains("class=\"e\""), "{page}");
    let asked = Layout { figures: vec![Figure { distribution: true, ..figure("goodput_mbps") }], ..Layout::default() };
    assert_eq!(figures(asked), ["figure-1-goodput"]);
    let page = html(&Study { layout: Layout::default(), ..made_up::study(&made_up::runs(&[1], 10)) });
    assert!(!page.contains("share of the samples"), "no samples");
}

#[test]
fn lines_across_a_number_have_it_in_order_with_an_interval_at_each() {
    let across = Some("path.wire.loss".to_owned());
    let figure = Figure { form: Form::Across, across, scale: Scale::Log, ..figure("goodput_mbps") };
    let (section, file) = drawn(&runs(), figure);
    let line = |name: &str| {
        let names: Vec<&str> = section.split("<g><title>").skip(1).filter(|point| point.contains(name)).collect();
        names.iter().map(|point| point.split(':').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(line(", cubic"), ["0%, cubic", "0.1%, cubic", "1%, cubic"], "the sweep has 1 % before 0.1 %");
    assert_eq!(section.matches("class=\"w\"").count(), 6);
    assert!(section.contains("0%, cubic: 20 ± 127 Mbit/s"), "t(1) = 12.7 times 10: {section}");
    assert!(section.contains("Zero, which a logarithmic axis does not have"), "{section}");
    let path = section.split("class=\"panels").nth(1).unwrap().split("class=\"l\"").nth(1).unwrap();
    let points = numbers(path.split(" d=\"").nth(1).unwrap().split('"').next().unwrap());
    let (first, second) = (points[2] - points[0], points[4] - points[2]);
    assert!((first - second).abs() < 0.2, "equal ratios, and zero as far before the least: {points:?}");
    assert!(file.csv.starts_with("panel,path.wire.loss,flow.tcp.congestion,mean,"), "{}", file.csv);
}

#[test]
fn shares_over_time_are_stacked_to_all_of_the_height() {
    let mut runs = made_up_multipath::runs();
    let series = |subject: &str, rate: f64| Series {
        subject: subject.to_owned(),
        columns: vec!["throughput_mbps".to_owned()],
        time_s: vec![1.0, 2.0],
        values: vec![vec![rate, 5.0]],
    };
    for run in &mut runs {
        run.series = vec![series("subflow both/a", 15.0), series("subflow both/b", 5.0)];
    }
    let names = ["both/a", "both/b"].map(str::to_owned).to_vec();
    let figure = Figure {
        lines: "flow".to_owned(),
        form: Form::Stacked,
        scope: Scope { only: [("flow".to_owned(), names)].into(), ..Scope::default() },
        ..figure("throughput_mbps")
    };
    let (section, file) = drawn(&runs, figure);
    assert!(section.contains("share of throughput, %"), "{section}");
    let rows: Vec<&str> = file.csv.lines().map(|row| row.split_once(",both").map_or(row, |(_, row)| row)).collect();
    assert_eq!(rows[..5], ["panel,line,time_s,share", "/a,1,0.75", "/a,2,0.5", "/b,1,0.25", "/b,2,0.5"]);
    // The lower area is three quarters and a half of the height, 132 to 16, and the upper one fills the rest.
    let areas: Vec<Vec<f64>> =
        section.split(" d=\"").filter(|path| path.contains("<title>both")).map(numbers).collect();
    let edges = |area: &Vec<f64>| [1, 2, 4, 6].map(|index| area[index]); // bottom, tops of both steps, bottom of the second
    assert_eq!(
        areas.iter().take(2).map(edges).collect::<Vec<_>>(),
        [[132.0, 45.0, 74.0, 132.0], [45.0, 16.0, 16.0, 74.0]]
    );
}
