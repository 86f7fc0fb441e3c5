//! The HTML page stands alone, shows every value, and cannot be taken over by a name.

mod made_up;

use ropewalk_report::html;

#[test]
fn the_page_loads_nothing() {
    let runs = made_up::runs(&[1], 50);
    let page = html(&made_up::study(&runs));
    let addresses: Vec<&str> = page.match_indices("://").map(|(at, _)| &page[at - 5..at + 30]).collect();
    // uPlot names its home in a comment.
    assert!(addresses.iter().all(|address| address.contains("github.com/leeoniya/uPlot")), "{addresses:?}");
    for loader in [" src=", "<link", "@import", "url(", "import(", "fetch(", "XMLHttpRequest"] {
        assert!(!page.contains(loader), "{loader}");
    }
    let hrefs = page.match_indices("href=\"").map(|(at, _)| &page[at + 6..at + 7]);
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
    for published in ["174", "0.609", "coming: published, not run here yet"] {
        assert!(page.contains(published), "{published}");
    }
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
    study.layout.tables[0].references[0].name = EVIL.to_owned();
    study.layout.tables[0].references[0].source = EVIL.to_owned();
    study.layout.tables[0].references[0].note = EVIL.to_owned();
    study.layout.tables[0].references[0].columns[0] = EVIL.to_owned();
    study.layout.tables[0].references[0].rows[0].0 = EVIL.to_owned();
    for field in [&mut study.title, &mut study.about, &mut study.source, &mut study.scenario_text, &mut study.digest] {
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
    let page = html(&made_up::study(&runs));
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
    assert!(!page.contains("<script"), "nothing to be interactive about");
    study.runs = &[];
    assert!(html(&study).contains("0 cells"));
}
