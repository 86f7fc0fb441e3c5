//! The HTML page stands alone, shows every value, and cannot be taken over by a name.

use crate::made_up;
use crate::made_up_multipath;
use ropewalk_report::{BY_FLOW, Baseline, Claim, Figure, Layout, Scope, Study, Table, Test, html, terminal};

#[test]
fn the_page_loads_nothing() {
    let runs = made_up::runs(&[1], 50);
    let page = html(&made_up::study(&runs));
    let addresses: Vec<&str> = page.match_indices("://").map(|(index, _)| &page[index - 5..index + 30]).collect();
    // uPlot names its home in a comment; a file that the page saves names its format.
    let known = ["github.com/leeoniya/uPlot", "www.w3.org/2000/svg"];
    assert!(addresses.iter().all(|address| known.iter().any(|known| address.contains(known))), "{addresses:?}");
    for loader in [" src=", "<link", "@import", "url(", "import(", "fetch(", "XMLHttpRequest"] {
        assert!(!page.contains(loader), "{loader}");
    }
    let hrefs = page.match_indices("href=\"").map(|(index, _)| &page[index + 6..index + 7]);
    assert!(hrefs.into_iter().all(|first| first == "#"), "links stay on the page");
}

#[test]
fn without_javascript_every_value_and_chart_is_there() {
    let runs = made_up::runs(&[1], 50);
    let page = html(&made_up::study(&runs));
    let (page, _) = page.split_once("<script").expect("the scripts come last");
    for (index, run) in runs.iter().enumerate() {
        let goodput = run.flows[0].goodput_mbps;
        // Three significant digits, said another way than the page does.
        let decimals = [99.95, 9.995, 0.9995].iter().filter(|bound| goodput < **bound).count();
        let cell = format!("<a href=\"#cell-{index}\">{goodput:.decimals$}</a>");
        assert!(page.contains(&cell), "{cell}");
        assert!(page.contains(&format!("id=\"cell-{index}\"")));
    }
    assert_eq!(page.matches("Smoothed RTT, ms</figcaption>").count(), runs.len());
    for published in ["174", "0.609", "published, not run here"] {
        assert!(page.contains(published), "{published}");
    }
}

/// The number of occurrences of `part` in the page before its scripts.
fn count(page: &str, part: &str) -> usize {
    page.split("<script").next().unwrap().matches(part).count()
}

#[test]
fn a_figure_is_a_chart_for_each_setting_with_a_line_for_each_value() {
    let runs = made_up::runs(&[1], 50);
    let mut study = made_up::study(&runs);
    let drawing = |study: &Study<'_>| {
        let page = html(study);
        let (_, figures) = page.split_once("id=\"figures\"").expect("there is a section");
        let figures = figures.split("</section>").next().unwrap().to_owned();
        (count(&figures, "<figure>"), count(&figures, "class=\"l\""), figures)
    };
    study.layout.figures = vec![made_up::figure()];
    let (charts, lines, _) = drawing(&study);
    assert_eq!((charts, lines), (6, 6 * 8 + 8), "six delays, eight algorithms, and their names once");
    study.layout.figures[0].scope.only = [("path.eno2.delay".to_owned(), vec!["10ms".to_owned()])].into();
    study.layout.figures[0].scope.until_s = Some(30.0);
    let (charts, lines, figures) = drawing(&study);
    assert_eq!((charts, lines), (1, 8 + 8));
    assert!(figures.contains("Windows in the first 30 s") && figures.contains(">30<") && !figures.contains(">35<"));
    study.baseline = Some(Baseline { name: "kernel-6.1", runs: &runs[..12] });
    let (_, lines, figures) = drawing(&study);
    assert_eq!(lines, 8 + 2 + 8, "the baseline has two of the algorithms");
    assert!(figures.contains("Broad and pale: kernel-6.1."));
}

#[test]
fn claims_have_a_mark_a_word_and_the_numbers() {
    let runs = made_up::runs(&[1], 20);
    let mut study = made_up::study(&runs);
    let [vegas, cubic] = ["vegas", "cubic"].map(|name| vec![name.to_owned()]);
    study.layout.claims = vec![
        made_up::claim("Vegas is slow", Test::Lowest(vegas.clone())),
        made_up::claim("CUBIC is slow", Test::Lowest(cubic)),
        made_up::claim("Westwood is slow", Test::Lowest(vec!["westwood".to_owned()])),
    ];
    let page = html(&study);
    for (mark, words) in [("✓", "holds (1 run)"), ("✗", "does not hold (1 run)"), ("–", "not run")] {
        assert_eq!(count(&page, &format!("<i>{mark}</i> {words}</td>")), 1, "{words}");
    }
    assert!(
        page.contains(
            "1 holds, 1 does not hold, 1 not run (1 run per cell). 1 of 2 claims hold in the published table; 1 has no values there."
        ) && page.contains("no value of westwood")
    );
    assert!(page.contains("before cubic") && page.contains("<small>Section 5</small>"));
    study.baseline = Some(Baseline { name: "kernel-6.1", runs: &runs });
    assert_eq!(count(&html(&study), "<i>✓</i> holds (1 run)</td>"), 2, "the baseline has a verdict of its own");
}

#[test]
fn bars_stand_across_a_key_with_their_interval_their_runs_and_the_baseline() {
    let runs = made_up::runs(&[1, 2, 3], 0);
    let mut study = made_up::study(&runs);
    let delays = ["10ms", "20ms"].map(str::to_owned).to_vec();
    let scope = Scope { only: [("path.eno2.delay".to_owned(), delays)].into(), ..Scope::default() };
    let (across, value) = (Some("path.eno2.delay".to_owned()), "goodput_mbps".to_owned());
    study.layout.figures = vec![Figure { across, value, scope, ..made_up::figure() }];
    let figures = |study: &Study<'_>| {
        html(study).split_once("id=\"figures\"").unwrap().1.split("</section>").next().unwrap().to_owned()
    };
    let section = figures(&study);
    assert_eq!(
        ["<figure>", "<rect x", "class=\"w\"", "class=\"run\""].map(|part| count(&section, part)),
        [1, 16, 16, 48]
    );
    assert_eq!(count(&section, "class=\"b\""), 0);
    // The bars are as high as the values that a pointer reads. These are rounded to 1 Mbit/s, which is 0.74 high.
    let bars: Vec<(f64, f64)> = section.split("<title>").skip(1).map(bar).collect();
    let per_unit = bars[0].1 / bars[0].0;
    assert!(bars.iter().all(|(value, height)| (height - per_unit * value).abs() < 0.85), "{bars:?}");
    study.baseline = Some(Baseline { name: "kernel-6.1", runs: &runs[..3] });
    let compared = figures(&study);
    assert!(count(&compared, "class=\"b\"") == 1 && compared.contains("Dashed: kernel-6.1."), "one cell of it");
    study.layout.figures[0].value = "cpu_percent".to_owned();
    let nothing = figures(&study);
    assert!(nothing.contains("measured on a kernel in real time only.") && count(&nothing, "<svg") == 0, "{nothing}");
}

/// The value in a bar's title, and the bar's height.
fn bar(text: &str) -> (f64, f64) {
    let (title, drawn) = text.split_once("</title>").unwrap();
    let value = title.split_once(": ").unwrap().1.split(' ').next().unwrap().parse();
    let height = drawn.split_once("height=\"").unwrap().1.split('"').next().unwrap().parse();
    (value.unwrap(), height.unwrap())
}

#[test]
fn a_figure_by_flow_has_a_line_for_each_flow_and_subflow_that_has_a_series() {
    let runs = made_up_multipath::runs();
    let mut study = made_up::study(&runs);
    let names = ["both", "both/b", "rival"].map(str::to_owned).to_vec();
    let scope = Scope { only: [(BY_FLOW.to_owned(), names)].into(), ..Scope::default() };
    let value = "throughput_mbps".to_owned();
    study.layout = Layout::default();
    study.layout.figures = vec![Figure { lines: BY_FLOW.to_owned(), value, scope, ..made_up::figure() }];
    let page = html(&study);
    let data = page.split_once("id=\"data\">").and_then(|(_, rest)| rest.split_once("</script>")).unwrap().0;
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let panels = data["figures"][0]["panels"].as_array().unwrap();
    let values = |panel: &serde_json::Value| {
        let lines = panel["lines"].as_array().unwrap().iter();
        lines.map(|line| (line["of"].as_u64().unwrap(), line["values"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(panels.len(), 2, "one an algorithm");
    assert_eq!(values(&panels[0]), [(0, serde_json::json!([6, 10])), (1, serde_json::json!([4, 6]))]);
}

/// The figures of a page without its scripts, of runs with a layout of this one figure.
fn figures(runs: &[record::Run], figure: Figure) -> String {
    let study = Study { layout: Layout { figures: vec![figure], ..Layout::default() }, ..made_up::study(runs) };
    html(&study).split_once("id=\"figures\"").unwrap().1.split("</section>").next().unwrap().to_owned()
}

#[test]
fn a_section_has_its_claims_tables_and_figures_and_the_others_are_as_ever() {
    let runs = made_up::runs(&[1, 2], 20);
    let in_section = |name: &str| Scope { section: name.to_owned(), ..Scope::default() };
    let mut study = made_up::study(&runs);
    let table = study.layout.tables[0].clone();
    let titled = |title: &str, section| Table { title: title.to_owned(), scope: in_section(section), ..table.clone() };
    study.layout.tables = vec![titled("Alpha", "5.1 Queues"), titled("Beta", "5.2 <Loss>"), titled("Gamma", "")];
    study.layout.figures = vec![Figure { scope: in_section("5.2 <Loss>"), ..made_up::figure() }];
    let highest = Test::Highest(vec!["bbr".to_owned()]);
    study.layout.claims = vec![Claim { scope: in_section("5.1 Queues"), ..made_up::claim("It is first", highest) }];
    let page = html(&study);
    let links = page.split_once("<nav>").unwrap().1.split("</nav>").next().unwrap();
    let positions = ["Result", "Claims", "5.1 Queues", "5.2 &lt;Loss&gt;", "What was run"]
        .map(|name| links.find(&format!(">{name}</a>")).unwrap_or_else(|| panic!("no {name} in {links}")));
    assert!(positions.is_sorted(), "{links}");
    let section =
        |id: &str| page.split_once(&format!("<section id=\"{id}\">")).unwrap().1.split("</section>").next().unwrap();
    let parts = |id: &str| {
        let section = section(id);
        ["It is first", "Alpha", "Beta", "Gamma", "class=\"figure"].map(|part| section.contains(part))
    };
    assert_eq!(parts("results"), [false, false, false, true, false]);
    assert_eq!(parts("section-5-1-queues"), [true, true, false, false, false]);
    assert_eq!(parts("section-5-2-loss"), [false, false, true, false, true]);
    assert!(!page.contains("id=\"figures\""), "its only figure has a section");
    let text = terminal(&study, 80, false);
    assert_eq!((count(&text, "5.1 Queues\n"), count(&text, "5.2 <Loss>\n")), (1, 1), "{text}");
}

#[test]
fn a_title_says_that_lines_are_of_subflows_or_sums_over_them() {
    let runs = made_up_multipath::runs();
    let figure = |names: &[&str], value: &str| Figure {
        lines: BY_FLOW.to_owned(),
        value: value.to_owned(),
        scope: Scope {
            only: [(BY_FLOW.to_owned(), names.iter().map(|name| (*name).to_owned()).collect())].into(),
            ..Scope::default()
        },
        ..made_up::figure()
    };
    let mut runs = runs;
    for series in runs.iter_mut().flat_map(|run| &mut run.series) {
        series.columns.push("cwnd_packets".to_owned());
        series.values.push(vec![1.0, 2.0]);
    }
    let heading = |names: &[&str], value: &str| {
        let figures = figures(&runs, figure(names, value));
        figures.split_once("<h3>").unwrap().1.split("</h3>").next().unwrap().to_owned()
    };
    assert_eq!(heading(&["both/b"], "cwnd_packets"), "Windows, per subflow, packets");
    assert_eq!(heading(&["both", "rival"], "cwnd_packets"), "Windows, sum over subflows, packets");
    assert_eq!(heading(&["both", "both/b"], "throughput_mbps"), "Windows, Mbit/s");
}

#[test]
fn where_each_chart_had_one_line_of_one_flow_the_algorithms_share_a_chart() {
    let runs = made_up::runs(&[1], 20);
    let by_flow = Figure { lines: BY_FLOW.to_owned(), ..made_up::figure() };
    let figures = figures(&runs, by_flow);
    assert_eq!((count(&figures, "<figure>"), count(&figures, "class=\"l\"")), (6, 6 * 8 + 8), "one chart a delay");
    assert!(!figures.contains("The first 12"));
}

#[test]
fn twelve_charts_of_a_figure_are_shown_and_the_files_have_all() {
    let mut runs = made_up::runs(&[1], 20);
    let more = runs.clone().into_iter().chain(runs.clone()).enumerate();
    let more = more.map(|(index, mut run)| {
        run.parameters.insert("path.eno1.delay".to_owned(), if index < 48 { "1ms" } else { "2ms" }.to_owned());
        run
    });
    let more: Vec<record::Run> = more.collect();
    runs.iter_mut().for_each(|run| drop(run.parameters.insert("path.eno1.delay".to_owned(), "3ms".to_owned())));
    runs.extend(more);
    let page = figures(&runs, made_up::figure());
    assert_eq!(count(&page, "<figure>"), 12);
    assert!(page.contains("The first 12 of 18 charts."), "{page}");
    let study =
        Study { layout: Layout { figures: vec![made_up::figure()], ..Layout::default() }, ..made_up::study(&runs) };
    assert_eq!(ropewalk_report::figure_files(&study)[0].svg.as_ref().unwrap().matches("<svg x=").count(), 18);
}

#[test]
fn tables_are_shaded_by_what_is_good_and_not_at_all_where_nothing_is() {
    let runs = made_up::runs(&[1], 20);
    let mut study = made_up::study(&runs);
    study.layout.tables[0].references.clear();
    let mut classes = |value: &str| {
        study.layout.tables[0].values[0].value = value.to_owned();
        let page = html(&study);
        (["good", "bad"].map(|class| count(&page, &format!("<td class=\"{class}\""))), page.contains("is better"))
    };
    assert_eq!(classes("goodput_mbps"), ([48, 0], true));
    assert_eq!(classes("rtt_ms.p95"), ([0, 48], true));
    assert_eq!(classes("recoveries"), ([0, 0], false));
}

#[test]
fn a_page_begins_with_its_answer_then_the_first_table_then_figures() {
    let runs = made_up::runs(&[1, 2, 3], 20);
    let mut study = made_up::study(&runs);
    study.layout.figures = vec![made_up::figure()];
    study.layout.claims = vec![made_up::claim("Vegas is slow", Test::Lowest(vec!["vegas".to_owned()]))];
    study.layout.tables.push(study.layout.tables[0].clone());
    let page = html(&study);
    let place = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part}"));
    let places = [
        "class=\"answer\">Averaged over 6 values of delay, goodput is highest with highspeed",
        "id=\"results\"",
        "id=\"figures\"",
        "id=\"claims\"",
        "id=\"tables\"",
        "id=\"series\"",
        "<dt>Digest</dt>",
    ]
    .map(place);
    assert!(places.is_sorted(), "{places:?}");
    let text = ropewalk_report::terminal(&study, 100, false);
    let answer = text.find("Averaged over 6 values of delay").unwrap();
    assert!(answer < text.find("congestion \\ delay").unwrap(), "{text}");
}

#[test]
fn charts_of_a_simulated_cell_have_the_command_that_traces_its_first_seed() {
    let runs = made_up::runs(&[4, 5], 20);
    let mut study = made_up::study(&runs);
    let page = html(&study);
    let details = page.split("<details").filter(|part| part.contains("id=\"cell-")).count();
    assert_eq!((details > 1, count(&page, "<code>ropewalk trace . --cell ")), (true, details));
    for (key, value) in &runs[0].parameters {
        assert!(page.contains(&format!("--cell {key}={value}")), "{key}");
    }
    assert_eq!(count(&page, "--seed 4 --page trace.html</code>"), details);
    study.driver = "kernel";
    assert_eq!(count(&html(&study), "ropewalk trace"), 0);
}

#[test]
fn what_was_published_has_a_column_a_note_stands_below_and_a_ranking_closes_the_table() {
    let runs = made_up::runs(&[1], 0);
    let mut study = made_up::study(&runs);
    study.layout.claims = vec![made_up::claim("Vegas is slow", Test::Lowest(vec!["vegas".to_owned()]))];
    assert!(!html(&study).contains(">published</th>"));
    study.layout.claims[0].published = "0.6 <Mbit/s>".to_owned();
    study.layout.claims[0].note = "It sees <one> path.".to_owned();
    let page = html(&study);
    assert!(page.contains(">published</th>") && page.contains("<p>It sees &lt;one&gt; path.</p>"));
    assert_eq!(count(&page, "<td class=\"published\" rowspan=\"2\">0.6 &lt;Mbit/s&gt;</td>"), 1);
    assert_eq!(count(&page, "Kendall's τ-b"), 1, "of six delays, one row");
}

#[test]
fn a_baseline_stands_beside_values_and_under_lines() {
    let runs = made_up::runs(&[1], 50);
    let baseline_runs: Vec<_> = runs[..6].to_vec();
    let mut study = made_up::study(&runs);
    study.layout.tables[0].references.clear();
    study.baseline = Some(Baseline { name: "kernel-6.1", runs: &baseline_runs });
    let page = html(&study);
    assert!(page.contains("Here against kernel-6.1") && page.contains("of 6 values, 6 within 5 %"));
    assert_eq!(count(&page, "flow tcp cwnd, kernel-6.1"), 6);
    assert_eq!(count(&page, "flow tcp goodput, kernel-6.1"), 6);
    let published = &made_up::study(&runs).layout.tables[0].references;
    study.layout.tables[0].references = published.clone();
    assert!(!html(&study).contains("Here against kernel-6.1"), "a table's own references come first");
}

#[test]
fn hostile_names_stay_text() {
    const EVIL: &str = "</script><script>alert(1)</script><img onerror='x' \"&";
    let mut runs = made_up::runs(&[1], 20);
    for run in &mut runs {
        run.flows[0].name = EVIL.to_owned();
        run.flows[0].congestion_control = EVIL.to_owned();
        run.paths[0].name = EVIL.to_owned();
        run.series[0].subject = format!("flow {EVIL}");
        run.series[1].columns[0] = EVIL.to_owned();
        run.parameters.insert(EVIL.to_owned(), EVIL.to_owned());
        run.parameters.insert("path.eno2.delay".to_owned(), EVIL.to_owned());
    }
    let mut study = made_up::study(&runs);
    study.baseline = Some(Baseline { name: EVIL, runs: &runs });
    study.layout.figures = vec![made_up::figure()];
    study.layout.figures[0].title = EVIL.to_owned();
    study.layout.claims = vec![made_up::claim(EVIL, Test::Highest(vec![EVIL.to_owned()]))];
    study.layout.claims[0].source = EVIL.to_owned();
    study.layout.claims[0].each = Some(EVIL.to_owned());
    study.layout.tables[0].references[0].name = EVIL.to_owned();
    study.layout.tables[0].references[0].source = EVIL.to_owned();
    study.layout.tables[0].references[0].note = EVIL.to_owned();
    study.layout.tables[0].references[0].columns[0] = EVIL.to_owned();
    study.layout.tables[0].references[0].rows[0].0 = EVIL.to_owned();
    for field in [&mut study.title, &mut study.about, &mut study.source, &mut study.provenance.file, &mut study.digest]
    {
        *field = EVIL;
    }
    let page = html(&study);
    assert!(!page.contains("<script>alert") && !page.contains("<img"));
    assert_eq!(page.matches("</script>").count(), 3, "data, uPlot, ours");
}

#[test]
fn the_same_study_gives_the_same_page() {
    let runs = made_up::runs(&[1, 2, 3], 50);
    assert!(html(&made_up::study(&runs)) == html(&made_up::study(&runs)));
}

#[test]
fn a_big_sweep_stays_below_ten_megabytes() {
    let mut runs = Vec::new();
    for buffer in 0..12 {
        let mut more = made_up::runs(&[1], 2000);
        more.iter_mut().for_each(|run| drop(run.parameters.insert("path.eno1.queue".to_owned(), format!("{buffer}p"))));
        runs.append(&mut more);
    }
    let mut study = made_up::study(&runs);
    study.layout.figures = vec![made_up::figure(); 3];
    study.baseline = Some(Baseline { name: "kernel-6.1", runs: &runs });
    let page = html(&study);
    assert!(page.len() < 10_000_000, "{} bytes", page.len());
    assert!(page.contains("of 576 cells are shown"), "what does not fit is said");
    assert!(page.contains("queue 11p"), "a third parameter makes a table for each of its values");
}

#[test]
fn a_study_without_layout_or_series_still_has_its_tables() {
    let mut runs = made_up::runs(&[1], 0);
    runs.iter_mut().for_each(|run| run.series.clear());
    let mut study = made_up::study(&runs);
    study.layout.tables.clear();
    let page = html(&study);
    assert!(page.contains("<details open><summary>Flows, 48 rows") && page.contains("Paths, 96 rows"));
    assert!(
        !page.contains("uPlot.iife") && !page.contains("new uPlot=") && page.matches("<script").count() == 2,
        "no charts"
    );
    study.runs = &[];
    assert!(html(&study).contains("0 cells"));
}

#[test]
fn seeds_with_one_digest_are_said_to_be_identical_and_have_no_interval() {
    let mut runs = made_up::runs(&[1, 2, 3], 0);
    let first = runs[0].clone();
    for run in &mut runs[..3] {
        let seed = run.seed;
        *run = record::Run { seed, digest: "0123456789abcdef".to_owned(), ..first.clone() };
    }
    let page = html(&made_up::study(&runs));
    assert_eq!(count(&page, "<small>3 seeds, identical runs</small>"), 1, "of one cell");
    assert_eq!(count(&page, "<small>± "), 47, "the other cells have intervals");
    let text = ropewalk_report::terminal(&made_up::study(&runs), 100, false);
    assert!(text.contains("identical"), "{text}");
}

#[test]
fn two_states_are_shown_with_their_shares_in_the_page_and_in_the_terminal() {
    let mut runs = made_up::runs(&[1, 2, 3, 4, 5], 0);
    for (run, goodput) in runs.iter_mut().zip([4.0, 80.0, 82.0, 5.0, 78.0]) {
        run.flows[0].goodput_mbps = goodput;
    }
    let page = html(&made_up::study(&runs));
    assert_eq!(count(&page, "<small class=\"states\">"), 1, "of one cell");
    assert_eq!(count(&page, "4.50 (40 %)<br>80 (60 %)"), 1);
    assert_eq!([" 7.5h0", " 2.5h0"].map(|dot| count(&page, dot)), [2, 3], "the lower state's dots lie lower");
    assert_eq!(count(&page, "Two states: the runs fall"), 1, "the rule");
    let text = ropewalk_report::terminal(&made_up::study(&runs), 100, false);
    let line = |label: &str| text.lines().find(|line| line.trim_start().starts_with(label)).unwrap_or_default();
    assert!(line("lower state").contains("4.50 (40 %)") && line("upper state").contains("80 (60 %)"), "{text}");
    let steady = made_up::runs(&[1, 2, 3, 4, 5], 0);
    let text = ropewalk_report::terminal(&made_up::study(&steady), 100, false);
    assert!(!text.contains("state"), "{text}");
}

#[test]
fn figures_are_files_with_axes_and_every_number() {
    let runs = made_up::runs(&[1, 2, 3], 50);
    let mut study = made_up::study(&runs);
    study.layout.figures = vec![made_up::figure()];
    let files = ropewalk_report::figure_files(&study);
    let figure = &files[0];
    assert!(figure.name.starts_with("figure-1-windows"), "{}", figure.name);
    let svg = figure.svg.as_ref().unwrap();
    assert!(svg.starts_with("<svg xmlns=") && !svg.contains("var(") && svg.contains(">time, s</text>"), "stands alone");
    assert_eq!(svg.matches("<svg x=").count(), 6, "a chart a delay");
    let page = html(&study);
    let chart = page.split("<svg class=\"p\" ").nth(1).unwrap().split("</svg>").next().unwrap();
    let drawn = chart.split("class=\"l\"").nth(1).unwrap().split(" d=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(svg.contains(drawn), "the file and the page draw the same");
    let column = |run: &record::Run| {
        let series = run.series.iter().find(|series| series.subject.starts_with("flow ")).unwrap();
        let index = series.columns.iter().position(|column| column == "cwnd_packets").unwrap();
        // A sample stands for the interval that it ends; one at zero stands for none.
        series
            .time_s
            .iter()
            .zip(&series.values[index])
            .filter(|(time, value)| **time > 0.0 && value.is_finite())
            .count()
    };
    let samples: usize = runs.iter().filter(|run| run.seed == 1).map(column).sum();
    assert_eq!(figure.csv.lines().count(), 1 + samples, "every sample that is a number");
    assert!(figure.csv.starts_with("panel,line,time_s,cwnd_packets\n"), "{}", &figure.csv[..60]);
    assert!(files.iter().any(|file| file.name.starts_with("table-1-")), "tables are CSV");
    assert!(files.iter().any(|file| file.name.starts_with("over-time/cell-0-")), "cells have charts");
}

#[test]
fn no_two_lines_of_a_chart_look_the_same() {
    let runs = made_up_multipath::runs();
    let study = Study { layout: Layout::default(), ..made_up::study(&runs) };
    let page = html(&study);
    for chart in page.split("<svg class=\"p\" ").skip(1).map(|chart| chart.split("</svg>").next().unwrap()) {
        let looks: Vec<&str> =
            chart.split("class=\"l\" ").skip(1).map(|line| line.split(" d=").next().unwrap()).collect();
        for (index, look) in looks.iter().enumerate() {
            assert!(!looks[..index].contains(look), "{look} twice in {}", &chart[..200.min(chart.len())]);
        }
    }
}
