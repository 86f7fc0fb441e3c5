//! Parts of a report for notebooks.

use crate::made_up;
use ropewalk_report::{Layout, Scope, Study, estimates, html_tables};

#[test]
fn the_fragment_has_each_row_with_its_published_values_and_no_page() {
    let runs = made_up::runs(&[1, 2], 10);
    let html = html_tables(&made_up::study(&runs));
    assert!(html.starts_with("<div class=\"ropewalk\">") && html.ends_with("</div>\n"));
    assert_eq!(html.matches("</i>").count(), 9, "algorithms, also one that was not run");
    assert_eq!(html.matches("<th>published</th>").count(), 9);
    assert_eq!(html.matches("<th>error</th>").count(), 8);
    assert!(html.contains("not run") && !html.contains("<script") && !html.contains("<html"));
}

#[test]
fn without_a_layout_it_has_the_flows() {
    let runs = made_up::runs(&[1], 10);
    let html = html_tables(&Study { layout: Layout::default(), ..made_up::study(&runs) });
    assert!(html.contains("goodput Mbit/s") && html.contains("<th>cubic</th>"), "{html}");
}

#[test]
fn an_estimate_is_the_mean_over_the_seeds_of_a_cell() {
    let runs = made_up::runs(&[1, 2], 10);
    let cells = estimates(&made_up::study(&runs), "goodput_mbps", &Scope::default(), false).unwrap();
    assert_eq!(cells.len(), made_up::ALGORITHMS.len() * made_up::DELAYS.len());
    let mean = (runs[0].flows[0].goodput_mbps + runs[1].flows[0].goodput_mbps) / 2.0;
    assert_eq!((cells[0].mean, cells[0].runs, &cells[0].parameters), (mean, 2, &runs[0].parameters));
    let error = estimates(&made_up::study(&runs), "goodput", &Scope::default(), false).unwrap_err();
    assert!(error.contains("no result has a value `goodput`"), "{error}");
}
